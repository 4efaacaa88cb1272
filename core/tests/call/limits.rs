//! Several limits on one call: all or nothing.

use core::time::Duration;

use holdoff::{
    BreakerConfig, Call, CircuitBreaker, Failure, Hint, Instant, Limit, Limiter, Limits, Outcome,
    PolicyConfig, Quota, Rate, Safety, Step, Stop,
};
use proptest::prelude::*;

use crate::common::{at, between, secs};

/// One token every `seconds`.
fn limiter(seconds: u64, burst: u32) -> Limiter {
    Limiter::new(Quota::new(Rate::every(secs(seconds)), burst).expect("valid"))
}

fn policy() -> holdoff::Policy {
    PolicyConfig::standard().build().expect("valid")
}

#[test]
fn a_limit_that_refuses_costs_nothing_anywhere() {
    let now = at(secs(0));
    // What each of three limits has, the last one being the call's own; and when all have enough.
    for (levels, until) in [
        ([3, 3, 3], None),
        ([2, 3, 3], Some(1)),
        ([3, 1, 3], Some(20)),
        ([3, 3, 0], Some(300)),
        ([1, 2, 3], Some(2)),
    ] {
        let limiters = [limiter(1, 3), limiter(10, 3), limiter(100, 3)];
        for (limiter, level) in limiters.iter().zip(levels) {
            limiter.try_acquire(now, 3 - level).expect("full");
        }
        let [first, second, own] = &limiters;
        let limits = [Limit::new(first, 3), Limit::new(second, 3)];
        let (limits, policy) = (Limits::new(&limits), policy());
        let mut call =
            Call::new(&policy, Safety::Idempotent, now).with_limiter(own, 3).with_limits(&limits);
        assert!(call.wants_permit(now));
        let step = call.poll(now, || 0);
        let left = limiters.each_ref().map(|limiter| limiter.available(now));
        match until {
            None => {
                assert!(matches!(step, Step::Attempt(_)), "{step:?}");
                assert_eq!(left, [0, 0, 0]);
            }
            Some(until) => {
                assert_eq!(step, Step::Throttled { until: at(secs(until)) });
                assert_eq!(left, levels, "nothing is taken");
            }
        }
    }
}

#[test]
fn what_can_never_be_had_stops_the_call_and_is_not_waited_for() {
    let (small, large) = (limiter(1, 2), limiter(1, 9));
    for (costs, stop) in [
        ([3, 1], Some(Stop::CostTooHigh { burst: 2 })),
        ([1, 10], Some(Stop::CostTooHigh { burst: 9 })),
        ([0, 0], None),
    ] {
        let limits = [Limit::new(&small, costs[0]), Limit::new(&large, costs[1])];
        let (limits, policy) = (Limits::new(&limits), policy());
        let mut call = Call::new(&policy, Safety::Idempotent, at(secs(0))).with_limits(&limits);
        assert!(!call.wants_permit(at(secs(0))), "{costs:?}");
        match (call.poll(at(secs(0)), || 0), stop) {
            (Step::Stop(told), Some(stop)) => assert_eq!(told, stop),
            (Step::Attempt(_), None) => {}
            (step, stop) => panic!("{step:?} instead of {stop:?}"),
        }
        assert_eq!([&small, &large].map(|limiter| limiter.available(at(secs(0)))), [2, 9]);
    }
}

#[test]
fn a_probe_that_comes_too_late_gives_all_of_it_back() {
    let breaker: CircuitBreaker = BreakerConfig::consecutive(1).build().expect("valid");
    let (narrow, own) = (limiter(100, 1), limiter(100, 1));
    let limits = [Limit::new(&narrow, 1)];
    let (limits, policy) = (Limits::new(&limits), policy());
    breaker.try_acquire(at(secs(0))).expect("closed").failure(at(secs(0)), || 0);
    let now = at(secs(10));
    let probe = breaker.try_acquire(now).expect("half-open");
    let mut call = Call::new(&policy, Safety::Idempotent, now)
        .with_limiter(&own, 1)
        .with_limits(&limits)
        .with_breaker(&breaker);
    assert!(matches!(call.poll(now, || 0), Step::Stop(Stop::CircuitOpen { .. })));
    assert_eq!([&narrow, &own].map(|limiter| limiter.available(now)), [1, 1]);
    drop(probe);
}

#[test]
fn a_breaker_added_last_changes_nothing_else() {
    let breaker: CircuitBreaker = BreakerConfig::consecutive(1).build().expect("valid");
    let (narrow, own) = (limiter(100, 5), limiter(100, 5));
    let limits = [Limit::new(&narrow, 2)];
    let (limits, policy, now) = (Limits::new(&limits), policy(), at(secs(0)));
    let mut call = Call::new(&policy, Safety::Idempotent, now)
        .with_limiter(&own, 3)
        .with_limits(&limits)
        .nested()
        .with_breaker(&breaker);
    assert!(matches!(call.poll(now, || 0), Step::Attempt(_)));
    assert_eq!([&narrow, &own].map(|limiter| limiter.available(now)), [3, 2]);
    call.record(now, Outcome::Failure(Failure::throttled().with_hint(Hint::Malformed)), || 0);
    assert_eq!(call.poll(now, || 0), Step::Stop(Stop::Nested));
}

// The server knows the key that all share, and nothing of our tenants.
#[test]
fn a_hint_pauses_the_widest_limit_only() {
    let hint = Outcome::Failure(Failure::throttled().with_hint(Hint::after(secs(5))));
    for has_own in [false, true] {
        let limiters = [limiter(1, 9), limiter(1, 9), limiter(1, 9)];
        let [narrow, wide, own] = &limiters;
        let limits = [Limit::new(narrow, 1), Limit::new(wide, 1)];
        let (limits, policy, now) = (Limits::new(&limits), policy(), at(secs(0)));
        let mut call = Call::new(&policy, Safety::Idempotent, now).with_limits(&limits);
        if has_own {
            call = call.with_limiter(own, 1);
        }
        call.poll(now, || 0);
        call.record(now, hint, || 0);
        let paused = limiters.each_ref().map(|limiter| limiter.available(at(secs(4))) == 0);
        assert_eq!(paused, [false, !has_own, has_own]);
    }
}

// C60: BerriAI/litellm#7262 and #34129, microsoft/openaivec#186, mpfaffenberger/code_puppy#317.
#[test]
fn a_nested_call_makes_one_attempt_and_its_own_reasons_come_first() {
    let policy = PolicyConfig::llm().build().expect("valid");
    let unsafe_to_repeat = (Failure::transient(), Safety::NonIdempotent);
    for (failure, safety, stop) in [
        (Failure::transient(), Safety::Idempotent, Stop::Nested),
        (Failure::throttled().with_hint(Hint::after(secs(1))), Safety::Idempotent, Stop::Nested),
        (Failure::permanent(), Safety::Idempotent, Stop::Permanent),
        (Failure::throttled(), Safety::Idempotent, Stop::Quota),
        (unsafe_to_repeat.0, unsafe_to_repeat.1, Stop::NotIdempotent),
    ] {
        let now = Instant::EPOCH;
        let mut call = Call::new(&policy, safety, now).nested();
        assert!(matches!(call.poll(now, || 0), Step::Attempt(_)));
        call.record(now, Outcome::Failure(failure), || 0);
        assert_eq!(call.poll(now, || 0), Step::Stop(stop));
        let hint = failure.hint.delay();
        assert_eq!((call.attempts(), call.retry_after()), (1, hint), "{stop:?}");
    }
}

proptest! {
    // Whatever the order, the costs and the times: each limit is kept, and none loses a token to a
    // call that the others refuse.
    #[test]
    fn each_limit_holds_and_none_leaks(
        calls in prop::collection::vec(
            (between(Duration::ZERO, secs(3)), 0..4_u32, 0..4_u32),
            1..40,
        ),
    ) {
        let limiters = [limiter(1, 3), limiter(2, 4)];
        let naive = [limiter(1, 3), limiter(2, 4)];
        let [first, second] = &limiters;
        let (policy, mut now) = (policy(), at(secs(0)));
        for (gap, one, other) in calls {
            now = now.saturating_add(gap);
            let limits = [Limit::new(first, one), Limit::new(second, other)];
            let limits = Limits::new(&limits);
            let mut call = Call::new(&policy, Safety::Idempotent, now).with_limits(&limits);
            let starts = matches!(call.poll(now, || 0), Step::Attempt(_));
            let there = [naive[0].available(now) >= one, naive[1].available(now) >= other];
            prop_assert_eq!(starts, there == [true, true]);
            if starts {
                naive[0].try_acquire(now, one).expect("available");
                naive[1].try_acquire(now, other).expect("available");
            }
            for (limiter, naive) in limiters.iter().zip(&naive) {
                prop_assert_eq!(limiter.available(now), naive.available(now));
            }
        }
    }
}
