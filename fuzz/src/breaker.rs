//! Operation sequences on a circuit breaker, against one that keeps plain lists.
//!
//! Beside the comparison: at most one probe holds a live lease, nothing is admitted before an open
//! period or a lease has passed to the nanosecond, and who comes back when told to is admitted.

mod config;

use std::mem;
use std::time::Duration;

use arbitrary::Arbitrary;
use holdoff::{BreakerChange, CircuitBreaker, CircuitOpen, Instant, Mode, Permit};

pub(crate) use self::config::{Config, RuleInput};
use crate::clock::{TestClock, Tick};
use crate::input::decoded;
use crate::model::breaker::{self as model, Breaker, Change, Ending, Period, Role, Ticket};

#[derive(Arbitrary, Debug)]
struct Input {
    config: Config,
    ops: Vec<(Tick, Op)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Acquire,
    Drop(u8),
    Failure(u8, u64),
    /// The permit is lost without a report.
    Forget(u8),
    Neutral(u8),
    /// Admitted and reported at once, so many times.
    Run {
        times: u8,
        ends: Ends,
    },
    SetMode(ModeInput),
    Success(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Ends {
    Failing,
    Succeeding,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum ModeInput {
    Disabled,
    ForcedOpen,
    Normal,
    Shadow,
}

impl ModeInput {
    pub(crate) const fn mode(self) -> Mode {
        match self {
            Self::Disabled => Mode::Disabled,
            Self::ForcedOpen => Mode::ForcedOpen,
            Self::Normal => Mode::Normal,
            Self::Shadow => Mode::Shadow,
        }
    }
}

/// Runs a sequence of operations.
///
/// # Panics
/// If an answer is not the naive breaker's, or a promise is broken.
pub fn run(data: &[u8]) {
    let Some(Input { config, ops }) = decoded::<Input>(data) else { return };
    match config.rule {
        RuleInput::OverTime { buckets: config::Buckets::Four, .. } => run_with::<4>(config, &ops),
        RuleInput::OverTime { buckets: config::Buckets::One, .. } => run_with::<1>(config, &ops),
        _ => run_with::<0>(config, &ops),
    }
}

fn run_with<const BUCKETS: usize>(config: Config, ops: &[(Tick, Op)]) {
    let (breaker, terms) = config.build_or_preset::<BUCKETS>();
    let mut pair = Pair {
        breaker: &breaker,
        model: Breaker::new(terms),
        terms,
        permits: Vec::new(),
        clock: TestClock::default(),
        shut_until: Instant::EPOCH,
        probe: None,
    };
    for &(tick, op) in ops.iter().take(128) {
        pair.clock.tick(tick);
        let now = pair.clock.now();
        if pair.model.has_wrapped(now) {
            return;
        }
        match op {
            Op::Acquire => {
                pair.acquire();
            }
            Op::Drop(place) => pair.report(place.into(), Ending::Neutral, |permit| {
                drop(permit);
                None
            }),
            Op::Failure(place, sample) => pair.report(place.into(), Ending::Failure, |permit| {
                let mut draws = 0;
                let change = permit.failure(now, || {
                    draws += 1;
                    sample
                });
                assert!(draws <= 1, "drawn twice");
                change
            }),
            Op::Forget(place) => pair.forget(place),
            Op::Neutral(place) => pair.report(place.into(), Ending::Neutral, |permit| {
                permit.neutral();
                None
            }),
            Op::Run { times, ends } => {
                for _ in 0..times % 64 {
                    if !pair.acquire() {
                        break;
                    }
                    let last = pair.permits.len() - 1;
                    match ends {
                        Ends::Failing => {
                            pair.report(last, Ending::Failure, |permit| permit.failure(now, || 0));
                        }
                        Ends::Succeeding => {
                            pair.report(last, Ending::Success, |permit| permit.success(now, || 0));
                        }
                    }
                }
            }
            Op::SetMode(mode) => pair.set_mode(mode.mode()),
            Op::Success(place) => {
                pair.report(place.into(), Ending::Success, |permit| permit.success(now, || 0));
            }
        }
        pair.compare();
    }
}

/// A breaker and its model, driven alike.
struct Pair<'a, const BUCKETS: usize> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    model: Breaker,
    terms: model::Terms,
    permits: Vec<(Permit<'a, BUCKETS>, Ticket)>,
    clock: TestClock,
    /// Nothing may be admitted before.
    shut_until: Instant,
    /// The last probe, unless it has reported, and when its lease ends.
    probe: Option<(Ticket, Instant)>,
}

impl<'a, const BUCKETS: usize> Pair<'a, BUCKETS> {
    /// Whether it was admitted.
    fn acquire(&mut self) -> bool {
        let now = self.clock.now();
        let answer = self.breaker.try_acquire(now);
        let expected = self.model.try_acquire(now);
        match (answer, expected) {
            (Ok(permit), Ok(ticket)) => {
                assert_eq!(permit.is_probe(), ticket.role == Role::Probe);
                assert_eq!(permit.would_be_refused(), ticket.role == Role::Shadow);
                self.check_admitted(ticket);
                self.permits.push((permit, ticket));
                true
            }
            (Err(CircuitOpen { retry_at, .. }), Err(expected)) => {
                assert_eq!(retry_at, expected, "when to ask again");
                self.check_refused(retry_at);
                false
            }
            (answer, expected) => panic!("{answer:?} is not {expected:?} at {now:?}"),
        }
    }

    fn check_admitted(&mut self, ticket: Ticket) {
        let now = self.clock.now();
        if ticket.role == Role::Shadow {
            return;
        }
        assert!(now >= self.shut_until, "opened early");
        self.shut_until = Instant::EPOCH; // It was over once, even if the clock steps back.
        if ticket.role == Role::Probe {
            let is_alone = self.probe.is_none_or(|(_, lease_end)| lease_end <= now);
            assert!(is_alone, "two probes at once");
            let lease = Duration::from_millis(self.terms.lease);
            self.probe = Some((ticket, now.saturating_add(lease)));
        }
    }

    /// Whoever comes back then, and alone, is admitted; a nanosecond earlier is too early.
    fn check_refused(&mut self, retry_at: Option<Instant>) {
        let Some(retry_at) = retry_at else {
            assert_eq!(self.breaker.mode(), Mode::ForcedOpen);
            return;
        };
        if retry_at == Instant::MAX {
            return; // Past the end of its time.
        }
        assert!(retry_at > self.clock.now(), "the time to come back has passed");
        assert_eq!(self.breaker.peek(retry_at), Ok(()), "not admitted when told to come back");
        let before = Instant::from_nanos(retry_at.as_nanos() - 1);
        assert!(self.breaker.peek(before).is_err(), "could have come back earlier");
        self.clock.name(retry_at);
    }

    fn report(
        &mut self,
        place: usize,
        ending: Ending,
        tell: impl FnOnce(Permit<'a, BUCKETS>) -> Option<BreakerChange>,
    ) {
        let Some(place) = place.checked_rem(self.permits.len()) else { return };
        let (permit, ticket) = self.permits.swap_remove(place);
        let now = self.clock.now();
        let was = self.breaker.state(now);
        let is_stale = !self.model.counts(ticket);
        let expected = self.model.report(now, ticket, ending);
        let change = tell(permit);
        if is_stale {
            assert_eq!((change, self.breaker.state(now)), (None, was), "a stale report counts");
        }
        if self.probe.is_some_and(|(probe, _)| probe.id == ticket.id) {
            self.probe = None;
        }
        match (change, expected) {
            (None, None) => {}
            (Some(BreakerChange::Closed), Some(Change::Closed)) => self.shut_until = Instant::EPOCH,
            (Some(BreakerChange::Opened { until }), Some(Change::Opened(ends)))
            | (Some(BreakerChange::Reopened { until }), Some(Change::Reopened(ends))) => {
                let Period { earliest, latest } = ends;
                let until_millis = until.as_nanos().div_ceil(1_000_000).min(model::TIME_MAX);
                assert!(
                    (earliest..=latest).contains(&until_millis),
                    "opens until {until_millis}, not {earliest} to {latest}"
                );
                self.model.opened_until(until);
                self.clock.name(until);
                let least = self
                    .terms
                    .open
                    .min(self.terms.max_open * 100 / (100 + self.terms.open_jitter_percent));
                self.shut_until = now.saturating_add(Duration::from_millis(least));
            }
            (change, expected) => panic!("{change:?} is not {expected:?} at {now:?}"),
        }
    }

    fn forget(&mut self, place: u8) {
        if let Some(place) = usize::from(place).checked_rem(self.permits.len()) {
            mem::forget(self.permits.swap_remove(place));
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        self.breaker.set_mode(mode);
        self.model.set_mode(mode);
        (self.shut_until, self.probe) = (Instant::EPOCH, None);
    }

    fn compare(&self) {
        let now = self.clock.now();
        assert_eq!(self.breaker.state(now), self.model.state(now), "state at {now:?}");
        assert_eq!(self.breaker.mode(), self.model.mode());
        let peeked = self.breaker.peek(now).map_err(|CircuitOpen { retry_at, .. }| retry_at);
        assert_eq!(peeked, self.model.peek(now), "peek at {now:?}");
    }
}
