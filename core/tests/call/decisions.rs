//! Random policies, answers, clocks and samples: the rules hold, and nothing exceeds its bound.

use core::time::Duration;

use holdoff::{
    Call, Class, DelaySource, Failure, Hint, Instant, Limiter, Outcome, Policy, Quota, Rate,
    Safety, Sent, Step, Stop, UnhintedThrottle,
};
use proptest::prelude::*;

use crate::common::{at, between, secs};
use crate::reference::Reference;
use crate::rules::{Rules, Schedule, any_outcome, any_rules};

/// What happens from one step to the next.
#[derive(Clone, Copy, Debug)]
struct Turn {
    outcome: Option<Outcome>,
    /// How the clock moves during an attempt or a wait that is polled too early.
    clock: Move,
    /// How the clock moves from the end of an attempt to the next question.
    pause: Move,
    /// How much too long a sleep takes.
    oversleep: Duration,
    sample: u64,
    /// What somebody else takes from the limiter meanwhile.
    others: u32,
}

#[derive(Clone, Copy, Debug)]
enum Move {
    Back(Duration),
    Forward(Duration),
}

impl Move {
    const fn from(self, now: Instant) -> Instant {
        match self {
            Self::Back(by) => now.saturating_sub(by),
            Self::Forward(by) => now.saturating_add(by),
        }
    }
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        2 => Just(Move::Forward(Duration::ZERO)),
        4 => between(Duration::ZERO, secs(4)).prop_map(Move::Forward),
        1 => between(Duration::ZERO, secs(4)).prop_map(Move::Back),
        1 => between(Duration::ZERO, secs(10_000)).prop_map(Move::Forward),
        1 => between(Duration::ZERO, secs(10_000)).prop_map(Move::Back),
    ]
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let oversleep = prop_oneof![
        4 => Just(Duration::ZERO),
        2 => between(Duration::ZERO, secs(1)),
        1 => between(Duration::ZERO, secs(60)),
    ];
    let sample = prop_oneof![Just(0), Just(u64::MAX), any::<u64>()];
    let outcome = prop_oneof![9 => any_outcome().prop_map(Some), 1 => Just(None)];
    let pause = prop_oneof![4 => Just(Move::Forward(Duration::ZERO)), 1 => any_move()];
    let others = prop_oneof![3 => Just(0), 1 => 0..4_u32];
    (outcome, any_move(), pause, oversleep, sample, others).prop_map(
        |(outcome, clock, pause, oversleep, sample, others)| Turn {
            outcome,
            clock,
            pause,
            oversleep,
            sample,
            others,
        },
    )
}

/// The quota of the limiter, and what an attempt costs.
fn any_limit() -> impl Strategy<Value = Option<(Quota, u32)>> {
    let quota = (1..=20_u32, between(Duration::from_nanos(1), secs(4)), 1..=5_u32);
    let quota = quota.prop_map(|(tokens, per, burst)| Quota::new(Rate::new(tokens, per), burst));
    prop::option::of((quota.prop_map(|quota| quota.expect("valid")), 0..=6_u32))
}

/// What the bounds are checked against while a call runs.
struct Witness {
    limit: Option<(Quota, u32)>,
    starts: u32,
    /// The last failure and when it happened.
    failed: Option<(Instant, Failure)>,
    draws: u32,
}

impl Witness {
    fn check(&self, rules: &Rules, reference: &Reference<'_>, now: Instant, step: Step) {
        match step {
            Step::Attempt(attempt) => {
                assert!(attempt.number <= rules.max_attempts);
                assert_eq!(attempt.number, self.starts + 1);
                assert!(reference.is_in_time(now.as_nanos().into()), "started too late");
                assert!(attempt.timeout() != Some(Duration::ZERO));
                assert!(attempt.timeout().is_none_or(|timeout| {
                    rules.attempt_timeout.is_none_or(|most| timeout <= most)
                }));
                if let Some((failed_at, failure)) = self.failed {
                    let hint = failure.hint.delay().unwrap_or_default();
                    assert!(now >= failed_at.saturating_add(hint), "earlier than the hint");
                }
            }
            Step::Backoff { until, source } => {
                assert!(reference.is_in_time(until.as_nanos().into()), "waits for nothing");
                let Some((failed_at, failure)) = self.failed else { return };
                let delay = until.saturating_duration_since(now.max(failed_at));
                let own = match (failure.class, rules.unhinted) {
                    (Class::Throttled, UnhintedThrottle::Backoff(_)) => None,
                    _ => Some(rules.schedule),
                };
                match (source, failure.hint.delay(), own) {
                    (DelaySource::Hint, hint, _) => assert!(Some(delay) >= hint),
                    (DelaySource::Schedule, hint, own) => {
                        assert_eq!(hint, None, "a hint passed over");
                        let fits = |own: Schedule| own.min <= delay && delay <= own.max;
                        assert!(own.is_none_or(fits), "{delay:?}");
                    }
                }
            }
            Step::Throttled { until } => {
                assert!(until > now);
                assert!(reference.is_in_time(until.as_nanos().into()), "waits for nothing");
            }
            Step::Done => assert_eq!(self.failed, None),
            Step::Stop(stop) => self.check_stop(rules, reference, now, stop),
        }
    }

    /// A reason is true, whichever of several true ones it is.
    fn check_stop(&self, rules: &Rules, reference: &Reference<'_>, now: Instant, stop: Stop) {
        let failure = self.failed.map(|(_, failure)| failure);
        // Whoever looks at a clock that has stepped back since looks at when the failure was.
        let now = self.failed.map_or(now, |(failed_at, _)| now.max(failed_at));
        let class = failure.map(|failure| failure.class);
        match stop {
            Stop::Attempts => assert_eq!(self.starts, rules.max_attempts),
            Stop::Deadline => {
                // Only without a limit of its own does the clock's end come first.
                assert!(rules.deadline.is_some() || now.as_nanos() > u64::MAX - 30_000_000_000);
            }
            Stop::HintTooLong { hint } => {
                assert_eq!(failure.and_then(|failure| failure.hint.delay()), Some(hint));
                let start = u128::from(now.as_nanos()) + hint.as_nanos();
                assert!(hint > rules.max_hint || !reference.is_in_time(start));
            }
            Stop::NotIdempotent => {
                assert_eq!(rules.safety, Safety::NonIdempotent);
                assert_eq!(failure.map(|failure| failure.sent), Some(Sent::Maybe));
            }
            Stop::Permanent => assert!(matches!(class, Some(Class::Permanent) | None)),
            Stop::Quota => {
                let unhinted = class == Some(Class::Throttled)
                    && rules.unhinted == UnhintedThrottle::Stop
                    && failure.is_some_and(|failure| failure.hint == Hint::Absent);
                assert!(class == Some(Class::Quota) || unhinted);
            }
            Stop::CostTooHigh { burst } => {
                let (quota, cost) = self.limit.expect("a limiter");
                assert!(burst == quota.burst() && cost > burst);
            }
            _ => panic!("an unknown reason: {stop}"),
        }
    }
}

/// Polls the call and the reference, and once more to see that the answer stays.
fn poll(
    call: &mut Call<'_>,
    reference: &mut Reference<'_>,
    now: Instant,
    sample: u64,
) -> (Step, u32) {
    let mut draws = 0;
    let mut draw = || {
        draws += 1;
        sample
    };
    let step = call.poll(now, &mut draw);
    assert_eq!(step, reference.poll(now, sample));
    assert_eq!(call.poll(now, || panic!("the delay was drawn already")), step);
    (step, draws)
}

fn run(rules: &Rules, limit: Option<(Quota, u32)>, start: Instant, turns: &[Turn]) {
    let policy = rules.policy();
    let limiters = limit.map(|(quota, cost)| (Limiter::new(quota), Limiter::new(quota), cost));
    let mut now = start;
    let mut call = Call::new(&policy, rules.safety, now);
    let mut twin = None;
    if let Some((limiter, copy, cost)) = &limiters {
        call = call.with_limiter(limiter, *cost);
        twin = Some((copy, *cost));
    }
    let mut reference = Reference::new(rules, twin, now);
    let mut witness = Witness { limit, starts: 0, failed: None, draws: 0 };

    // Nothing is in flight yet: a report of it changes nothing.
    call.record(now, Outcome::Success, || 0);
    call.record_timeout(now, || 0);
    // Each attempt has a delay and a wait for the limiter, and others may lengthen a few.
    let mut others_left = 8;
    let mut steps_left = 3 * rules.max_attempts + others_left + 1;
    for turn in turns.iter().cycle() {
        assert!(steps_left > 0, "it does not end");
        steps_left -= 1;
        let (step, draws) = poll(&mut call, &mut reference, now, turn.sample);
        witness.check(rules, &reference, now, step);
        witness.draws += draws;
        match step {
            Step::Attempt(attempt) => {
                witness.starts = attempt.number;
                now = turn.clock.from(now);
                let cut_off = Outcome::Failure(Failure::transient());
                let outcome = turn.outcome.unwrap_or(cut_off);
                match turn.outcome {
                    Some(outcome) => call.record(now, outcome, || 0),
                    None => call.record_timeout(now, || 0),
                }
                reference.record(now, outcome);
                witness.failed = match outcome {
                    Outcome::Failure(failure) => Some((now, failure)),
                    Outcome::Ignored | Outcome::Success => None,
                };
                // Reported twice is reported once.
                call.record(now, Outcome::Ignored, || 0);
                now = turn.pause.from(now);
            }
            Step::Backoff { until, .. } | Step::Throttled { until } => {
                if matches!(step, Step::Backoff { .. }) && turn.clock.from(now) < until {
                    // Woken too early, wherever the clock stands: the answer is the same.
                    let (early, _) = poll(&mut call, &mut reference, turn.clock.from(now), 0);
                    assert_eq!(early, step);
                }
                now = until.saturating_add(turn.oversleep);
                if let (Some((limiter, copy, _)), 1..) = (&limiters, others_left) {
                    others_left -= 1;
                    let took = [limiter, copy].map(|one| one.try_acquire(now, turn.others));
                    assert_eq!(took[0], took[1]);
                }
            }
            Step::Stop(_) => {
                assert_eq!(call.retry_after(), reference.retry_after);
                break;
            }
            Step::Done => break,
        }
    }
    assert_eq!(call.attempts(), witness.starts);
    assert!(witness.draws <= witness.starts, "one sample a retry at most");
    if let Some((limiter, copy, _)) = &limiters {
        assert_eq!(limiter.available(now), copy.available(now), "tokens lost or gained");
    }

    // It is over for good.
    let (over, _) = poll(&mut call, &mut reference, now, 0);
    call.record(now, Outcome::Success, || 0);
    for later in [Instant::EPOCH, now, Instant::MAX] {
        assert_eq!(call.poll(later, || 0), over);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_decision_is_what_the_rules_say(
        rules in any_rules(),
        limit in any_limit(),
        start in prop_oneof![
            2 => Just(Duration::ZERO),
            2 => between(Duration::ZERO, secs(100)),
            1 => Just(Duration::from_nanos(1 << 60)),
        ],
        turns in prop::collection::vec(any_turn(), 1..12),
    ) {
        run(&rules, limit, at(start), &turns);
    }

    #[test]
    fn a_call_at_the_end_of_time_is_ordinary(
        rules in any_rules(),
        before_the_end in 0..=u64::MAX >> 1,
        shift in 0..64_u32,
        turns in prop::collection::vec(any_turn(), 1..12),
    ) {
        let start = Instant::from_nanos(u64::MAX - (before_the_end >> shift));
        run(&rules, None, start, &turns);
    }
}

#[test]
fn a_wait_for_the_limiter_that_does_not_fit_stops_the_call_and_says_how_long_it_is() {
    let policy = Policy::STANDARD.with_deadline(secs(10));
    for (level, cost, answer) in [
        (1, 1, None),
        (0, 1, Some(secs(4))),
        (0, 2, Some(secs(8))),
        (0, 3, Some(secs(12))), // longer than the deadline
        (1, 3, Some(secs(8))),
    ] {
        let limiter = Limiter::new(Quota::new(Rate::new(1, secs(4)), 3).expect("valid"));
        assert_eq!(limiter.try_acquire(Instant::EPOCH, 3 - level), Ok(()));
        let call = Call::new(&policy, Safety::Idempotent, Instant::EPOCH);
        let mut call = call.with_limiter(&limiter, cost);
        let step = call.poll(Instant::EPOCH, || 0);
        match answer {
            None => assert!(matches!(step, Step::Attempt(_))),
            Some(wait) if wait < secs(10) => {
                assert_eq!(step, Step::Throttled { until: at(wait) });
            }
            Some(wait) => {
                assert_eq!(step, Step::Stop(Stop::Deadline));
                assert_eq!(call.retry_after(), Some(wait));
                // Nothing was taken.
                assert_eq!(limiter.available(at(secs(12))), 3);
            }
        }
    }
}

#[test]
fn what_a_call_says_of_coming_back_is_never_about_an_earlier_attempt() {
    let policy = Policy::STANDARD.with_deadline(secs(20));
    let hinted = Failure::throttled().with_hint(Hint::after(secs(5)));
    let second_attempt = || {
        let mut call = Call::new(&policy, Safety::Idempotent, Instant::EPOCH);
        assert!(matches!(call.poll(Instant::EPOCH, || 0), Step::Attempt(_)));
        call.record(Instant::EPOCH, Outcome::Failure(hinted), || 0);
        assert!(matches!(call.poll(Instant::EPOCH, || 0), Step::Backoff { .. }));
        call
    };

    // The wait took so long that the hint is over.
    let mut overslept = second_attempt();
    assert_eq!(overslept.poll(at(secs(30)), || 0), Step::Stop(Stop::Deadline));
    assert_eq!(overslept.retry_after(), None);

    let limiter = Limiter::new(Quota::new(Rate::per_second(1), 3).expect("valid"));
    let mut too_dear = second_attempt().with_limiter(&limiter, 4);
    assert_eq!(too_dear.poll(at(secs(5)), || 0), Step::Stop(Stop::CostTooHigh { burst: 3 }));
    assert_eq!(too_dear.retry_after(), None);

    let mut cancelled = second_attempt();
    assert!(matches!(cancelled.poll(at(secs(5)), || 0), Step::Attempt(_)));
    cancelled.record(at(secs(5)), Outcome::Ignored, || 0);
    assert_eq!(cancelled.poll(at(secs(5)), || 0), Step::Stop(Stop::Permanent));
    assert_eq!(cancelled.retry_after(), None);
}

#[test]
fn a_call_stays_small() {
    println!("a call takes {} bytes", size_of::<Call<'_>>());
    assert!(size_of::<Call<'_>>() <= 176);
}
