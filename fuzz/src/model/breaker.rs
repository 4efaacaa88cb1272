//! A circuit breaker that keeps an explicit list of outcomes and of who holds what.
//!
//! Times are milliseconds as in the breaker, readings rounded down and ends rounded up.

use std::time::Duration;

use holdoff::{BreakerState, Instant, Mode};

/// The latest time a breaker knows, 139 years after the epoch.
pub(crate) const TIME_MAX: u64 = (1 << 42) - 1;
const NANOS: u64 = 1_000_000;

/// When it trips.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Consecutive {
        failures: usize,
    },
    /// Over so many periods of so many milliseconds.
    OverTime {
        least: usize,
        period: u64,
        periods: u64,
        ppm: usize,
    },
    Rate {
        window: usize,
        least: usize,
        ppm: usize,
    },
}

/// Everything else, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) rule: Rule,
    pub(crate) lease: u64,
    pub(crate) max_open: u64,
    pub(crate) open: u64,
    pub(crate) open_jitter_percent: u64,
    pub(crate) probes: u32,
    pub(crate) slow: Option<u64>,
    pub(crate) stable: u64,
}

#[derive(Clone, Debug)]
enum State {
    Closed,
    HalfOpen { probe: Option<Probe>, successes: u32 },
    Open { end: u64 },
}

/// The probe that holds the slot.
#[derive(Clone, Copy, Debug)]
struct Probe {
    permit: u64,
    lease_end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Call,
    Probe,
    Shadow,
}

/// What the model hands out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) role: Role,
    pub(crate) id: u64,
    admitted_at: Instant,
    /// In which stretch of being closed it was admitted.
    stretch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failure,
    Neutral,
    Success,
}

/// Between which times (ms) an open period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) earliest: u64,
    pub(crate) latest: u64,
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Closed,
    Opened(Period),
    Reopened(Period),
}

#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    terms: Terms,
    mode: Mode,
    state: State,
    /// How often the next open period has grown.
    growth: u32,
    recovered_at: u64,
    /// Outcomes since it was closed, oldest first: the number of the period and whether it failed.
    outcomes: Vec<(u64, bool)>,
    stretch: u64,
    tickets: u64,
    /// Trips, probes and closings: the generations of the breaker.
    moves: u32,
}

impl Breaker {
    pub(crate) const fn new(terms: Terms) -> Self {
        Self {
            terms,
            mode: Mode::Normal,
            state: State::Closed,
            growth: 0,
            recovered_at: 0,
            outcomes: Vec::new(),
            stretch: 0,
            tickets: 0,
            moves: 0,
        }
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether it would admit a call, and if not when to ask again.
    fn verdict(&self, now: Instant) -> Result<Role, Option<Instant>> {
        let now = down(now);
        match (self.mode, &self.state) {
            (Mode::ForcedOpen, _) => Err(None),
            (Mode::Disabled, _) | (_, State::Closed) => Ok(Role::Call),
            (_, &State::Open { end }) if now < end => Err(Some(instant(end))),
            (_, &State::HalfOpen { probe: Some(Probe { lease_end, .. }), .. })
                if now < lease_end =>
            {
                Err(Some(instant(lease_end)))
            }
            (_, State::HalfOpen { .. } | State::Open { .. }) => Ok(Role::Probe),
        }
    }

    pub(crate) fn peek(&self, now: Instant) -> Result<(), Option<Instant>> {
        match self.verdict(now) {
            Err(retry_at) if self.mode != Mode::Shadow => Err(retry_at),
            _ => Ok(()),
        }
    }

    /// When to come back, if nobody will be admitted at `then`, as things stand; a probe under way
    /// may be over by then.
    pub(crate) fn refuses_at(&self, then: Instant) -> Option<Instant> {
        match self.state(then) {
            BreakerState::ForcedOpen => Some(Instant::MAX),
            BreakerState::Open { until } if self.mode == Mode::Normal => Some(until),
            _ => None,
        }
    }

    pub(crate) fn try_acquire(&mut self, now: Instant) -> Result<Ticket, Option<Instant>> {
        self.try_acquire_for(now, 0)
    }

    /// A probe's lease begins when its attempt has to be over: the longest open period if it need
    /// never be.
    pub(crate) fn try_acquire_within(
        &mut self,
        now: Instant,
        timeout: Option<Duration>,
    ) -> Result<Ticket, Option<Instant>> {
        let millis = |timeout: Duration| timeout.as_nanos().div_ceil(NANOS.into());
        let patience = timeout.map_or(u128::from(self.terms.max_open), millis);
        let patience = u64::try_from(patience).unwrap_or(TIME_MAX).min(TIME_MAX);
        self.try_acquire_for(now, patience)
    }

    fn try_acquire_for(&mut self, now: Instant, patience: u64) -> Result<Ticket, Option<Instant>> {
        self.peek(now)?;
        let role = self.verdict(now).unwrap_or(Role::Shadow);
        self.tickets += 1;
        let ticket = Ticket { role, id: self.tickets, admitted_at: now, stretch: self.stretch };
        if role == Role::Probe {
            self.moves += 1;
            let successes = match self.state {
                State::HalfOpen { successes, .. } => successes,
                _ => 0,
            };
            let lease_end = later(up(now), patience + self.terms.lease);
            let probe = Some(Probe { permit: ticket.id, lease_end });
            self.state = State::HalfOpen { probe, successes };
        }
        Ok(ticket)
    }

    /// A report of a call from before a trip, or of a probe whose place another has taken, changes
    /// nothing.
    pub(crate) fn counts(&self, ticket: Ticket) -> bool {
        match (ticket.role, &self.state) {
            (Role::Call, State::Closed) => {
                ticket.stretch == self.stretch && self.mode != Mode::Disabled
            }
            (Role::Probe, State::HalfOpen { probe: Some(probe), .. }) => probe.permit == ticket.id,
            _ => false,
        }
    }

    pub(crate) fn report(
        &mut self,
        now: Instant,
        ticket: Ticket,
        ending: Ending,
    ) -> Option<Change> {
        if !self.counts(ticket) {
            return None;
        }
        let took = now.saturating_duration_since(ticket.admitted_at).as_nanos();
        let slow = self.terms.slow.map(|millis| u128::from(millis) * u128::from(NANOS));
        let ending = match ending {
            Ending::Success if slow.is_some_and(|slow| took > slow) => Ending::Failure,
            ending => ending,
        };
        match self.state {
            State::Open { .. } => None,
            State::Closed if ending == Ending::Neutral => None,
            State::Closed => {
                let is_stable = later(self.recovered_at, self.terms.stable) <= down(now);
                self.trips(down(now), ending == Ending::Failure).then(|| {
                    if is_stable {
                        self.growth = 0;
                    }
                    Change::Opened(self.open(now))
                })
            }
            State::HalfOpen { successes, .. } => match ending {
                Ending::Failure => {
                    self.growth += 1;
                    Some(Change::Reopened(self.open(now)))
                }
                Ending::Neutral => {
                    self.state = State::HalfOpen { probe: None, successes };
                    None
                }
                Ending::Success => {
                    self.recovered_at = self.recovered_at.max(up(now));
                    if successes + 1 < self.terms.probes {
                        self.moves += 1;
                        self.state = State::HalfOpen { probe: None, successes: successes + 1 };
                        return None;
                    }
                    self.growth += 1;
                    self.close();
                    Some(Change::Closed)
                }
            },
        }
    }

    /// Counts an outcome; whether there are too many failures now.
    fn trips(&mut self, now: u64, failed: bool) -> bool {
        match self.terms.rule {
            Rule::Consecutive { failures } => {
                self.outcomes.push((0, failed));
                let run = self.outcomes.iter().rev().take_while(|(_, failed)| *failed).count();
                run >= failures
            }
            Rule::Rate { window, least, ppm } => {
                self.outcomes.push((0, failed));
                let last: Vec<_> = self.outcomes.iter().rev().take(window).collect();
                let failures = last.iter().filter(|(_, failed)| *failed).count();
                last.len() >= least && failures * 1_000_000 >= ppm * last.len()
            }
            Rule::OverTime { least, period, periods, ppm } => {
                let number = now / period;
                // A clock that is behind counts in the newest period that shares a bucket.
                let shares = |other: u64| other % periods == number % periods;
                let counted =
                    self.outcomes.iter().map(|&(other, _)| other).filter(|&other| shares(other));
                let counted = counted.max().unwrap_or(0).max(number);
                self.outcomes.retain(|&(other, _)| !shares(other) || other == counted);
                self.outcomes.push((counted, failed));
                let covered: Vec<_> =
                    self.outcomes.iter().filter(|(other, _)| other + periods > number).collect();
                let failures = covered.iter().filter(|(_, failed)| *failed).count();
                covered.len() >= least && failures * 1_000_000 > ppm * covered.len()
            }
        }
    }

    fn open(&mut self, now: Instant) -> Period {
        let Terms { max_open, open, open_jitter_percent: jitter, .. } = self.terms;
        let grown = u128::from(open) << self.growth.min(15);
        // The jitter fits below the maximum; no period is shorter than the first.
        let most = u128::from(max_open) * 100 / (100 + u128::from(jitter));
        let most = most.max(u128::from(open));
        let period: u64 = grown.min(most).try_into().expect("at most 49 days");
        let longest = period + period * jitter / 100;
        let earliest = later(up(now), period);
        self.state = State::Open { end: earliest };
        self.moves += 1;
        self.stretch += 1;
        self.outcomes.clear();
        Period { earliest, latest: later(up(now), longest.min(max_open)) }
    }

    /// Its open period ends then, within what was announced.
    pub(crate) fn opened_until(&mut self, until: Instant) {
        let end = if until == Instant::MAX { TIME_MAX } else { down(until) };
        self.state = State::Open { end };
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.moves += 1;
        self.stretch += 1;
        self.outcomes.clear();
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.growth = 0;
        self.close();
    }

    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        let now = down(now);
        match (self.mode, &self.state) {
            (Mode::Disabled, _) => BreakerState::Disabled,
            (Mode::ForcedOpen, _) => BreakerState::ForcedOpen,
            (_, State::Closed) => BreakerState::Closed,
            (_, &State::Open { end }) if now < end => BreakerState::Open { until: instant(end) },
            (_, State::Open { .. }) => BreakerState::HalfOpen { probing_until: None },
            (_, State::HalfOpen { probe, .. }) => {
                let lease = probe.map(|probe| probe.lease_end).filter(|&end| now < end);
                BreakerState::HalfOpen { probing_until: lease.map(instant) }
            }
        }
    }

    /// Whether a number has wrapped: that of a generation, after 1024 moves, or that of a period,
    /// if an outcome was counted 2^31 periods away.
    pub(crate) fn has_wrapped(&self, now: Instant) -> bool {
        if self.moves > 800 {
            return true;
        }
        let Rule::OverTime { period, .. } = self.terms.rule else { return false };
        let number = down(now) / period;
        self.outcomes.iter().any(|&(other, _)| number.abs_diff(other) >= (1 << 31) - 64)
    }
}

/// The last millisecond stands still just before the end.
pub(crate) fn down(now: Instant) -> u64 {
    (now.as_nanos() / NANOS).min(TIME_MAX - 1)
}

pub(crate) const fn up(now: Instant) -> u64 {
    now.as_nanos().div_ceil(NANOS)
}

pub(crate) const fn instant(millis: u64) -> Instant {
    if millis == TIME_MAX { Instant::MAX } else { Instant::from_nanos(millis * NANOS) }
}

fn later(time: u64, length: u64) -> u64 {
    (time + length).min(TIME_MAX)
}
