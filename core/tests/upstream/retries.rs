//! A retry is taken out of the budget when it is decided, and put back if it is never sent.

use core::cell::Cell;

use holdoff::{
    Backoff, BackoffConfig, BudgetConfig, Failure, Hint, Mode, Outcome, PolicyConfig, Ratio,
    Safety, Step, Stop, Upstream, classified, drive,
};

use crate::common::{at, secs};
use crate::{POLICY, breaker, budget, call, fail, level, poll, start, succeed, trip};

#[test]
fn a_retry_is_charged_when_it_is_decided_and_only_once() {
    let upstream = Upstream::new().with_budget(budget(3));
    let mut call = call(&upstream, at(secs(0)));
    let mut levels = Vec::new();
    for now in [0, 1] {
        start(&mut call, at(secs(now)));
        levels.push(level(&upstream));
        fail(&mut call, at(secs(now)));
        levels.push(level(&upstream));
        for _ in 0..3 {
            assert!(matches!(poll(&mut call, at(secs(now))), Step::Backoff { .. }));
            levels.push(level(&upstream));
        }
    }
    start(&mut call, at(secs(2)));
    succeed(&mut call, at(secs(2)));
    levels.push(level(&upstream));
    assert_eq!(levels, [3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1]);
}

#[test]
fn a_call_earns_its_share_with_its_first_attempt_and_not_with_others() {
    let config = BudgetConfig::new(0, Ratio::ONE).with_capacity(50);
    let upstream = Upstream::new().with_budget(config.build().expect("valid"));
    let mut first = call(&upstream, at(secs(0)));
    assert_eq!(level(&upstream), 0, "not sent yet");
    start(&mut first, at(secs(0)));
    assert_eq!(level(&upstream), 1);
    start(&mut first, at(secs(0)));
    assert_eq!(level(&upstream), 1, "still the same attempt");
    fail(&mut first, at(secs(0)));
    poll(&mut first, at(secs(0)));
    start(&mut first, at(secs(1)));
    assert_eq!(level(&upstream), 0, "a retry earns nothing");
    fail(&mut first, at(secs(1)));
    assert_eq!(poll(&mut first, at(secs(1))), Step::Stop(Stop::Budget));
}

#[test]
fn an_empty_budget_says_when_it_would_have_tried_again() {
    let hinted = Failure::throttled().with_hint(Hint::after(secs(7)));
    for (failure, wait) in [(Failure::transient(), 1), (hinted, 7)] {
        let upstream = Upstream::new().with_budget(budget(0));
        let mut call = call(&upstream, at(secs(0)));
        start(&mut call, at(secs(0)));
        call.record(at(secs(0)), Outcome::Failure(failure), || 0);
        for _ in 0..2 {
            assert_eq!(poll(&mut call, at(secs(0))), Step::Stop(Stop::Budget));
        }
        assert_eq!(call.retry_after(), Some(secs(wait)));
    }
}

#[test]
fn what_is_not_tried_again_anyhow_is_not_charged() {
    let two = PolicyConfig::new(*POLICY.backoff()).with_max_attempts(1).build().expect("valid");
    let late = POLICY.with_deadline(secs(1));
    let hint = |seconds| Failure::throttled().with_hint(Hint::after(secs(seconds)));
    for (policy, failure, stop) in [
        (two, Failure::transient(), Stop::Attempts),
        (late, Failure::transient(), Stop::Deadline),
        (POLICY, hint(301), Stop::HintTooLong { hint: secs(301) }),
        (late, hint(1), Stop::HintTooLong { hint: secs(1) }),
        (POLICY, Failure::permanent(), Stop::Permanent),
        (POLICY, Failure::quota(), Stop::Quota),
    ] {
        // Its own reason is told, whether or not there is a budget left.
        for reserve in [0, 1] {
            let upstream = Upstream::new().with_budget(budget(reserve));
            let mut call = upstream.call(&policy, Safety::Idempotent, at(secs(0)));
            start(&mut call, at(secs(0)));
            call.record(at(secs(0)), Outcome::Failure(failure), || 0);
            assert_eq!(poll(&mut call, at(secs(0))), Step::Stop(stop));
            assert_eq!(level(&upstream), reserve, "{stop:?}");
        }
    }
}

#[test]
fn a_retry_that_never_starts_is_put_back() {
    let late = POLICY.with_deadline(secs(5));
    let open = Stop::CircuitOpen { retry_at: at(secs(10)) };
    for (stop, woken) in [(Stop::Deadline, 5), (Stop::Deadline, 60), (open, 1), (open, 4)] {
        let upstream = Upstream::new().with_breaker(breaker(9)).with_budget(budget(1));
        let mut call = upstream.call(&late, Safety::Idempotent, at(secs(0)));
        start(&mut call, at(secs(0)));
        fail(&mut call, at(secs(0)));
        assert!(matches!(poll(&mut call, at(secs(0))), Step::Backoff { .. }));
        assert_eq!(level(&upstream), 0);
        trip(&upstream, at(secs(0)));
        assert_eq!(poll(&mut call, at(secs(woken))), Step::Stop(stop));
        assert_eq!(level(&upstream), 1, "{stop:?}");
        drop(call);
        assert_eq!(level(&upstream), 1, "{stop:?}: put back once");
    }
}

// A change of mode while a retry waits is as good as a trip.
#[test]
fn a_retry_that_is_refused_by_hand_is_put_back() {
    let upstream = Upstream::new().with_breaker(breaker(9)).with_budget(budget(1));
    let mut call = call(&upstream, at(secs(0)));
    start(&mut call, at(secs(0)));
    fail(&mut call, at(secs(0)));
    poll(&mut call, at(secs(0)));
    upstream.breaker().expect("it has one").set_mode(Mode::ForcedOpen);
    assert!(matches!(poll(&mut call, at(secs(1))), Step::Stop(Stop::CircuitOpen { .. })));
    assert_eq!(level(&upstream), 1);
}

/// Requests that `calls` calls make, each attempt of which is a call of its own, all of them out of
/// one budget, while everything fails.
fn requests(upstream: &Upstream, calls: u32, [outer, inner]: [u32; 2]) -> u32 {
    const NONE: Backoff =
        holdoff::valid!(BackoffConfig::constant(core::time::Duration::ZERO).build());
    let policy =
        |attempts| PolicyConfig::new(NONE).with_max_attempts(attempts).build().expect("valid");
    let (outer, inner) = (policy(outer), policy(inner));
    let clock = Cell::new(at(secs(0)));
    let requests = Cell::new(0);
    for _ in 0..calls {
        let outer = |now| upstream.call(&outer, Safety::Idempotent, now);
        drive::run_blocking(
            &clock,
            |_| {},
            outer,
            || 0,
            classified,
            |_| {
                let inner = |now| upstream.call(&inner, Safety::Idempotent, now);
                drive::run_blocking(
                    &clock,
                    |_| {},
                    inner,
                    || 0,
                    classified,
                    |_| {
                        requests.set(requests.get() + 1);
                        Err::<(), _>(Failure::transient())
                    },
                )
                .map_err(|gave_up| gave_up.last.expect("an attempt was made"))
            },
        )
        .expect_err("everything fails");
    }
    requests.get()
}

// C60: BerriAI/litellm#7262 and #34129, microsoft/openaivec#186, mpfaffenberger/code_puppy#317.
#[test]
fn layers_that_share_a_budget_do_not_multiply() {
    for (floor, percent, layers, calls, expected) in [
        // Two retries of the inner call, and one of the outer.
        (3, 10, [4, 3], 1, 4),
        (0, 10, [4, 3], 1, 1),
        (1, 10, [4, 3], 1, 2),
        (2, 10, [4, 3], 1, 3),
        (3, 10, [12, 3], 1, 4),
        (3, 10, [4, 12], 1, 4),
        (3, 10, [100, 100], 1, 4),
        // No better than without, where it is large enough: twelve.
        (100, 10, [4, 3], 1, 12),
        // In a long storm: what the two layers' calls earn, 10 % each, and the floor.
        (3, 10, [4, 3], 100, 123),
        (3, 10, [4, 3], 1_000, 1_203),
        (0, 0, [4, 3], 1_000, 1_000),
    ] {
        let config = BudgetConfig::new(floor, Ratio::percent(percent));
        let upstream = Upstream::new().with_budget(config.build().expect("valid"));
        let sent = requests(&upstream, calls, layers);
        assert_eq!(sent, expected, "{floor} and {percent} %, {layers:?}, {calls} calls");
    }
    assert_eq!(requests(&Upstream::new(), 1, [4, 3]), 12, "without a budget");
}
