//! Whatever is done in whatever order, it says what the reference says.

use core::cell::Cell;
use core::time::Duration;

use holdoff::{BreakerConfig, CircuitBreaker, Instant, Permit, Ratio};
use proptest::prelude::*;

use crate::operations::{Clock, Operation, any_operation};
use crate::reference::{Reference, Report, Role, Ticket};
use crate::setups::{Setup, counting, over_time};

/// A breaker, its reference, and those who are out.
struct Pair<'a, const BUCKETS: usize> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    reference: Reference,
    out: Vec<(Permit<'a, BUCKETS>, Ticket)>,
    slow: Duration,
    now: Instant,
}

impl<'a, const BUCKETS: usize> Pair<'a, BUCKETS> {
    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Acquire => self.acquire(),
            Operation::Clock(clock) => self.now = self.moved(clock),
            Operation::Mode(mode) => {
                self.breaker.set_mode(mode);
                self.reference.set_mode(mode);
            }
            Operation::Drop(who) => {
                if let Some((permit, ticket)) = self.leave(who) {
                    drop(permit);
                    self.reference.report(self.now, ticket, Report::Nothing, 0);
                }
            }
            Operation::Report(who, report, sample) => {
                if let Some((permit, ticket)) = self.leave(who) {
                    self.report(permit, ticket, report, sample);
                }
            }
        }
        let (breaker, reference, now) = (self.breaker, &self.reference, self.now);
        assert_eq!(breaker.state(now), reference.state(now), "after {operation:?}");
        assert_eq!(breaker.mode(), reference.mode());
        let peeked = breaker.peek(now).map_err(|open| open.retry_at);
        assert_eq!(peeked, reference.peek(now), "after {operation:?}");
    }

    fn acquire(&mut self) {
        let now = self.now;
        match (self.breaker.try_acquire(now), self.reference.try_acquire(now)) {
            (Ok(permit), Ok(ticket)) => {
                assert_eq!(permit.is_probe(), ticket.role == Role::Probe);
                assert_eq!(permit.would_be_refused(), ticket.role == Role::Shadow);
                self.out.push((permit, ticket));
            }
            (Err(open), Err(retry_at)) => {
                assert_eq!(open.retry_at, retry_at);
                // It names a time at which asking again can succeed: later, and not refused unless
                // somebody else was first.
                let serves = |at| at > now && self.breaker.peek(at).is_ok();
                assert!(retry_at.is_none_or(|at| at == Instant::MAX || serves(at)));
            }
            (admitted, expected) => panic!("{admitted:?} instead of {expected:?} at {now:?}"),
        }
    }

    fn report(&mut self, permit: Permit<'a, BUCKETS>, ticket: Ticket, report: Report, sample: u64) {
        let samples = Cell::new(0);
        let draw = || {
            samples.set(samples.get() + 1);
            sample
        };
        let change = match report {
            Report::Failure => permit.failure(self.now, draw),
            Report::Success => permit.success(self.now, draw),
            Report::Nothing => {
                permit.neutral();
                None
            }
        };
        let expected = self.reference.report(self.now, ticket, report, sample);
        assert_eq!(change, expected, "{report:?} by {ticket:?} at {:?}", self.now);
        assert!(samples.get() <= 1);
    }

    fn leave(&mut self, who: usize) -> Option<(Permit<'a, BUCKETS>, Ticket)> {
        let who = who.checked_rem(self.out.len())?;
        Some(self.out.swap_remove(who))
    }

    fn moved(&self, clock: Clock) -> Instant {
        let near =
            |at: Instant, off: i64| Instant::from_nanos(at.as_nanos().saturating_add_signed(off));
        match clock {
            Clock::Back(time) => self.now.saturating_sub(time),
            Clock::Forward(time) => self.now.saturating_add(time),
            Clock::To(at) => at,
            Clock::Near(which, off) => {
                let boundaries = self.reference.boundaries().into_iter().flatten();
                let boundaries: Vec<_> = boundaries.collect();
                near(boundaries[which % boundaries.len()], off)
            }
            Clock::Slow(who, off) => match self.out.as_slice() {
                [] => self.now,
                out => {
                    let (_, ticket) = &out[who % out.len()];
                    near(ticket.admitted_at.saturating_add(self.slow), off)
                }
            },
        }
    }
}

fn compare<const BUCKETS: usize>(setup: Setup, start: Instant, operations: &[Operation]) {
    let breaker: CircuitBreaker<BUCKETS> = setup.config().build_with_buckets().expect("valid");
    let reference = Reference::new(setup, BUCKETS as u128);
    // As long as a call can take without being slow.
    let slow = setup.slow.map_or(0, |slow| slow.as_nanos().div_ceil(1_000_000).min(9_000));
    let slow = Duration::from_millis(u64::try_from(slow).expect("at most 9 s"));
    let mut pair = Pair { breaker: &breaker, reference, out: Vec::new(), slow, now: start };
    for &operation in operations {
        pair.apply(operation);
    }
    // Whoever is left goes without a word.
    while !pair.out.is_empty() {
        pair.apply(Operation::Drop(0));
    }
}

const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn starts(latest: Duration) -> impl Strategy<Value = Instant> {
    let latest = u64::try_from(latest.as_nanos()).expect("under 584 years");
    prop_oneof![3 => Just(0), 2 => 0..=60_000_000_000_u64, 1 => 0..=latest]
        .prop_map(Instant::from_nanos)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_breaker_that_counts_does_what_a_naive_one_does(
        setup in counting(),
        start in starts(YEAR * 584),
        operations in prop::collection::vec(any_operation(YEAR * 584), 1..100),
    ) {
        compare::<0>(setup, start, &operations);
        compare::<4>(setup, start, &operations); // Unused buckets change nothing.
    }

    #[test]
    fn a_breaker_with_buckets_does_what_a_naive_one_does(
        setup in over_time(),
        start in starts(YEAR),
        operations in prop::collection::vec(any_operation(YEAR), 1..100),
    ) {
        compare::<4>(setup, start, &operations);
    }

    #[test]
    fn one_bucket_is_a_window_that_starts_anew(
        setup in over_time(),
        operations in prop::collection::vec(any_operation(YEAR), 1..60),
    ) {
        compare::<1>(setup, Instant::EPOCH, &operations);
    }
}

// The shortest periods there are can be told apart for 24 days.
#[test]
fn a_window_forgets_when_nobody_called_for_long() {
    const DAY: Duration = Duration::from_secs(86_400);
    for idle in [Duration::from_millis(4), DAY / 24, DAY, DAY * 24] {
        let config = BreakerConfig::rate_over(Duration::from_millis(4), Ratio::percent(50));
        let breaker: CircuitBreaker<4> =
            config.with_min_calls(4).build_with_buckets().expect("valid");
        let fail = |now| breaker.try_acquire(now).expect("closed").failure(now, || 0);
        let now = Instant::EPOCH.saturating_add(idle);
        for _ in 0..3 {
            assert_eq!(fail(Instant::EPOCH), None);
        }
        for _ in 0..3 {
            assert_eq!(fail(now), None, "after {idle:?}");
        }
        assert!(fail(now).is_some(), "after {idle:?}");
    }
}
