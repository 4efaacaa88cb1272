//! Requests that no wait can admit.

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive;
use holdoff::{Call, Failure, Instant, Limiter, PolicyConfig, Quota, Rate, Refusal, Safety, Stop};

use crate::common::{at, secs};
use crate::own_backoff;

// C41: run-llama/llama_index#23202, ax-llm/ax#631, governor CHANGELOG 0.2.0
#[test]
fn a_cost_above_the_burst_is_refused_for_ever_at_once() {
    let quota = Quota::new(Rate::per_minute(100), 100).expect("valid");
    for cost in [101, 102, 200, 1 << 31, u32::MAX] {
        for level in [100, 99, 0] {
            let limiter = Limiter::new(quota);
            limiter.try_acquire(Instant::EPOCH, 100 - level).expect("the bucket is full");
            let never = Refusal::Never { burst: 100 };
            assert_eq!(limiter.try_acquire(Instant::EPOCH, cost), Err(never), "{cost}");
            assert_eq!(limiter.reserve(Instant::EPOCH, cost), Err(never), "{cost}");
            // Nothing was taken, and no length of time helps.
            assert_eq!(limiter.available(Instant::EPOCH), level, "{cost}");
            assert_eq!(limiter.try_acquire(at(secs(1 << 32)), cost), Err(never), "{cost}");
            limiter.pause_until(at(secs(60)));
            assert_eq!(limiter.try_acquire(Instant::EPOCH, cost), Err(never), "{cost} paused");
        }
    }
}

// C41, the other side of the limit
#[test]
fn the_whole_burst_can_be_taken_at_once_and_nothing_is_free_but_nothing() {
    let limiter = Limiter::new(Quota::new(Rate::per_minute(100), 100).expect("valid"));
    let now = Instant::EPOCH;
    assert_eq!(limiter.try_acquire(now, 100), Ok(()));
    let until = at(secs(60));
    assert_eq!(limiter.try_acquire(now, 100), Err(Refusal::NotYet { until }));
    limiter.pause_until(at(secs(60)));
    assert_eq!(limiter.try_acquire(now, 0), Ok(()));
    assert_eq!(limiter.reserve(now, 0).expect("free").ready_at(), now);
}

// C41, when the burst shrinks below a cost that was fine before
#[test]
fn a_change_of_quota_makes_costs_possible_or_impossible() {
    let limiter = Limiter::new(Quota::new(Rate::per_second(1), 10).expect("valid"));
    for (burst, refusal) in [(4, Some(4)), (5, None), (3, Some(3))] {
        limiter
            .set_quota(Instant::EPOCH, Quota::new(Rate::per_second(1), burst).expect("valid"))
            .expect("nobody else is at it");
        let refused = match limiter.try_acquire(Instant::EPOCH, 5) {
            Err(Refusal::Never { burst }) => Some(burst),
            Ok(()) | Err(Refusal::NotYet { .. }) => None,
        };
        assert_eq!(refused, refusal, "burst of {burst}");
    }
}

// C41, as a whole call: no sleep, no attempt, no token taken
#[test]
fn a_call_that_costs_too_much_ends_before_it_begins() {
    let policy = PolicyConfig::new(own_backoff()).build().expect("valid");
    for (cost, stop) in [(100, None), (101, Some(100)), (200, Some(100)), (u32::MAX, Some(100))] {
        let limiter = Limiter::new(Quota::new(Rate::per_minute(100), 100).expect("valid"));
        let clock = Cell::new(Instant::EPOCH);
        let result = drive::run_blocking(
            &clock,
            |_| panic!("nothing to wait for"),
            |now| Call::new(&policy, Safety::Idempotent, now).with_limiter(&limiter, cost),
            || panic!("nothing to draw"),
            Ok::<(), (Failure, ())>,
            |_| (),
        );
        let gave_up = result.err();
        let stopped = gave_up.map(|gave_up| (gave_up.stop, gave_up.attempts, gave_up.elapsed));
        let expected = stop.map(|burst| (Stop::CostTooHigh { burst }, 0, Duration::ZERO));
        assert_eq!(stopped, expected, "{cost}");
        let left = if stop.is_some() { 100 } else { 0 };
        assert_eq!(limiter.available(Instant::EPOCH), left, "{cost}");
    }
}
