//! A circuit breaker as one would explain it: who is out, what they said, and when.

use core::time::Duration;

use holdoff::{BreakerChange, BreakerState, Instant, Mode};

use crate::setups::{Rule, Setup};

/// The last time (ms) that a breaker can tell from a later one.
const LAST: u128 = (1 << 42) - 1;
/// How often an open period can double.
const MOST_DOUBLINGS: u32 = 15;

#[derive(Debug)]
pub(crate) struct Reference {
    setup: Setup,
    /// Of a rule over time, how many periods make up its span.
    periods: u128,
    mode: Mode,
    phase: Phase,
    tickets: u64,
    /// How often the next open period has doubled.
    doublings: u32,
    /// When a probe succeeded, by the latest reading of the clock (ms).
    recovered_at: u128,
}

#[derive(Debug)]
enum Phase {
    Closed {
        /// Those admitted since it closed: they alone count.
        since_ticket: u64,
        log: Vec<Entry>,
    },
    HalfOpen {
        successes: u8,
        probe: Option<Probe>,
    },
    Open {
        end: u128,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    failed: bool,
    period: u128,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    ticket: u64,
    lease_end: u128,
}

/// One admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    number: u64,
    pub(crate) admitted_at: Instant,
    pub(crate) role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Call,
    Probe,
    Shadow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Failure,
    Nothing,
    Success,
}

impl Reference {
    pub(crate) const fn new(setup: Setup, periods: u128) -> Self {
        let phase = Phase::Closed { since_ticket: 0, log: Vec::new() };
        let mode = Mode::Normal;
        Self { setup, periods, mode, phase, tickets: 0, doublings: 0, recovered_at: 0 }
    }

    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        match (self.mode, &self.phase) {
            (Mode::Disabled, _) => BreakerState::Disabled,
            (Mode::ForcedOpen, _) => BreakerState::ForcedOpen,
            (_, Phase::Closed { .. }) => BreakerState::Closed,
            (_, Phase::Open { end }) if floor(now) < *end => {
                BreakerState::Open { until: instant(*end) }
            }
            (_, Phase::Open { .. }) => BreakerState::HalfOpen { probing_until: None },
            (_, Phase::HalfOpen { probe, .. }) => {
                let held = probe.filter(|probe| floor(now) < probe.lease_end);
                BreakerState::HalfOpen { probing_until: held.map(|held| instant(held.lease_end)) }
            }
        }
    }

    /// The verdict on somebody who asks, whether or not it is carried out: the earliest time at
    /// which the answer can be another, if it is no.
    fn refusal(&self, now: Instant) -> Option<Option<Instant>> {
        match self.state(now) {
            BreakerState::ForcedOpen => Some(None),
            BreakerState::HalfOpen { probing_until: Some(until) }
            | BreakerState::Open { until } => Some(Some(until)),
            _ => None,
        }
    }

    pub(crate) fn peek(&self, now: Instant) -> Result<(), Option<Instant>> {
        match self.refusal(now) {
            Some(retry_at) if self.mode != Mode::Shadow => Err(retry_at),
            _ => Ok(()),
        }
    }

    pub(crate) fn try_acquire(&mut self, now: Instant) -> Result<Ticket, Option<Instant>> {
        self.peek(now)?;
        let lease_end = self.later(now, ceil_millis(self.setup.lease.unwrap_or(self.setup.open)));
        self.tickets += 1;
        let number = self.tickets;
        let role = if self.refusal(now).is_some() {
            Role::Shadow
        } else if self.state(now) == (BreakerState::HalfOpen { probing_until: None }) {
            let successes = match self.phase {
                Phase::HalfOpen { successes, .. } => successes,
                _ => 0,
            };
            let probe = Some(Probe { ticket: number, lease_end });
            self.phase = Phase::HalfOpen { successes, probe };
            Role::Probe
        } else {
            Role::Call
        };
        Ok(Ticket { number, admitted_at: now, role })
    }

    pub(crate) fn report(
        &mut self,
        now: Instant,
        ticket: Ticket,
        report: Report,
        sample: u64,
    ) -> Option<BreakerChange> {
        let is_slow = self.setup.slow.is_some_and(|slow| {
            // Never, if it is longer than what fits (49 days).
            let slow = ceil_millis(slow);
            let took = now.saturating_duration_since(ticket.admitted_at).as_nanos();
            slow < u128::from(u32::MAX) && took > slow * 1_000_000
        });
        let report = if report == Report::Success && is_slow { Report::Failure } else { report };
        match &mut self.phase {
            Phase::HalfOpen { successes, probe }
                if probe.is_some_and(|probe| probe.ticket == ticket.number) =>
            {
                *probe = None;
                match report {
                    Report::Nothing => None,
                    Report::Failure => {
                        self.doublings += 1;
                        Some(BreakerChange::Reopened { until: self.open(now, sample) })
                    }
                    Report::Success => {
                        *successes += 1;
                        let enough = *successes == self.setup.probes;
                        self.recovered_at = self.recovered_at.max(ceil(now));
                        enough.then(|| {
                            self.doublings += 1;
                            self.close();
                            BreakerChange::Closed
                        })
                    }
                }
            }
            Phase::Closed { since_ticket, log }
                if ticket.role == Role::Call
                    && ticket.number > *since_ticket
                    && self.mode != Mode::Disabled
                    && report != Report::Nothing =>
            {
                let failed = report == Report::Failure;
                if !trips(self.setup.rule, self.periods, log, now, failed) {
                    return None;
                }
                if self.later_in_full(self.recovered_at, self.stable_millis()) <= floor(now) {
                    self.doublings = 0;
                }
                Some(BreakerChange::Opened { until: self.open(now, sample) })
            }
            _ => None,
        }
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.doublings = 0;
        self.close();
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    /// The times at which it may behave differently from just before.
    pub(crate) fn boundaries(&self) -> [Option<Instant>; 2] {
        let stable = instant(self.later_in_full(self.recovered_at, self.stable_millis()));
        match self.phase {
            Phase::Closed { .. } => [Some(stable), None],
            Phase::Open { end } => [Some(instant(end)), Some(stable)],
            Phase::HalfOpen { probe, .. } => {
                [probe.map(|probe| instant(probe.lease_end)), Some(stable)]
            }
        }
    }

    fn close(&mut self) {
        self.phase = Phase::Closed { since_ticket: self.tickets, log: Vec::new() };
    }

    fn open(&mut self, now: Instant, sample: u64) -> Instant {
        let percent = u128::from(self.setup.jitter.as_ppm()).div_ceil(10_000);
        // Such that the jitter fits below the maximum, and no period is shorter than the first.
        let (most, first) = (ceil_millis(self.setup.max), ceil_millis(self.setup.open));
        let cap = (most * 100 / (100 + percent)).max(first);
        self.doublings = self.doublings.min(MOST_DOUBLINGS);
        let shortest = (first * 2_u128.pow(self.doublings)).min(cap);
        let longest = (shortest + shortest * percent / 100).min(most);
        let drawn = shortest + (((longest - shortest + 1) * u128::from(sample)) >> 64);
        let end = self.later(now, drawn);
        self.phase = Phase::Open { end };
        instant(end)
    }

    fn stable_millis(&self) -> u128 {
        let seconds = self.setup.stable.as_nanos().div_ceil(1_000_000_000);
        seconds.min(u128::from(u16::MAX)) * 1_000
    }

    fn later(&self, now: Instant, millis: u128) -> u128 {
        self.later_in_full(ceil(now), millis)
    }

    fn later_in_full(&self, since: u128, millis: u128) -> u128 {
        (since + millis).min(LAST)
    }
}

/// Whether one more outcome trips a breaker with that log.
fn trips(rule: Rule, periods: u128, log: &mut Vec<Entry>, now: Instant, failed: bool) -> bool {
    match rule {
        Rule::Consecutive { failures } => {
            log.push(Entry { failed, period: 0 });
            let run = log.iter().rev().take_while(|entry| entry.failed).count();
            u32::try_from(run).is_ok_and(|run| run >= failures)
        }
        Rule::Rate { window, least, threshold } => {
            log.push(Entry { failed, period: 0 });
            let judged = &log[log.len().saturating_sub(window)..];
            let failures = judged.iter().filter(|entry| entry.failed).count();
            let ppm = usize::try_from(threshold.as_ppm()).expect("64 bits");
            judged.len() >= least && failures * 1_000_000 >= ppm * judged.len()
        }
        Rule::OverTime { span, least, threshold } => {
            let length = span.as_nanos().div_ceil(periods).div_ceil(1_000_000);
            let period = floor(now) / length;
            // A period takes the place of the one that a span ago was in it, and one that the clock
            // went back from keeps its place.
            let same_place = |entry: &Entry| entry.period % periods == period % periods;
            let there = log.iter().filter(|entry| same_place(entry)).map(|entry| entry.period);
            let counted_in = there.max().unwrap_or(period).max(period);
            log.retain(|entry| !same_place(entry) || entry.period == counted_in);
            log.push(Entry { failed, period: counted_in });
            let judged = log.iter().filter(|entry| entry.period + periods > period);
            let (calls, failures) = judged.fold((0, 0), |(calls, failures), entry| {
                (calls + 1, failures + u128::from(entry.failed))
            });
            let ppm = u128::from(threshold.as_ppm());
            calls >= least && failures * 1_000_000 > ppm * calls as u128
        }
    }
}

/// The last millisecond stands still just before the end.
fn floor(now: Instant) -> u128 {
    (u128::from(now.as_nanos()) / 1_000_000).min(LAST - 1)
}

fn ceil(now: Instant) -> u128 {
    u128::from(now.as_nanos()).div_ceil(1_000_000)
}

/// At most what fits a configuration (49 days).
fn ceil_millis(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000).min(u128::from(u32::MAX))
}

fn instant(millis: u128) -> Instant {
    if millis == LAST {
        return Instant::MAX;
    }
    Instant::from_nanos(u64::try_from(millis * 1_000_000).expect("in range"))
}
