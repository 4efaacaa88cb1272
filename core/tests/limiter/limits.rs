//! The first instants, the last ones, and those after the last.

use core::time::Duration;

use holdoff::{Instant, Limiter, Refusal};

use crate::model::{LAST, Model, quota, try_acquire};

const NS: Duration = Duration::from_nanos(1);
const NEVER: Result<(), Refusal> = Err(Refusal::NotYet { until: Instant::MAX });

#[test]
fn any_instant_and_any_quota_is_ordinary() {
    let quotas = [(1, 1), (1, u32::MAX), (1 << 55, 1), ((1 << 55) / 0xffff_ffff, u32::MAX)];
    for (interval, burst) in quotas {
        let quota = quota(interval, burst);
        let refill = interval * u64::from(burst);
        for nanos in [
            0,
            1,
            refill,
            LAST.as_nanos() - refill,
            LAST.as_nanos() - 1,
            LAST.as_nanos(),
            1 << 62,
            1 << 63,
            u64::MAX,
        ] {
            let now = Instant::from_nanos(nanos);
            let (limiter, mut model) = (Limiter::new(quota), Model::new(quota));
            for cost in [burst, 1, burst, u32::MAX] {
                let _ = try_acquire(&limiter, &mut model, now, cost);
                let reserved = limiter.reserve(now, cost).map(|reserved| reserved.ready_at());
                assert_eq!(reserved, model.reserve(now, cost), "{cost} at {nanos}");
                limiter.refund(cost);
                model.refund(cost);
                let _ = try_acquire(&limiter, &mut model, now, cost);
                for until in [now, LAST, Instant::MAX] {
                    limiter.pause_until(until);
                    model.pause_until(until);
                    let _ = try_acquire(&limiter, &mut model, now, 1);
                }
                limiter.set_quota(now, quota).expect("nobody else is at it");
                model.set_quota(now, quota);
                let _ = try_acquire(&limiter, &mut model, now, 1);
                assert_eq!(limiter.available(now), model.available(now), "at {nanos}");
            }
        }
    }
}

#[test]
fn nothing_is_admitted_after_the_last_instant() {
    let limiter = Limiter::new(quota(10, 5));
    for now in [LAST.saturating_add(NS), LAST.saturating_add(NS * 1000), Instant::MAX] {
        for cost in [1, 5] {
            assert_eq!(limiter.try_acquire(now, cost), NEVER, "{now:?}");
            assert_eq!(limiter.reserve(now, cost).map(drop), NEVER, "{now:?}");
        }
        assert_eq!(limiter.available(now), 0, "{now:?}");
        // What is free stays free.
        assert_eq!(limiter.try_acquire(now, 0), Ok(()));
    }
    // Back in time, everything is there.
    assert_eq!(limiter.available(Instant::EPOCH), 5);
}

#[test]
fn as_many_as_are_available_can_be_taken_up_to_the_last_instant() {
    for before in (0..=70).chain([1000]) {
        let now = LAST.saturating_sub(NS * before);
        let limiter = Limiter::new(quota(10, 5));
        let available = limiter.available(now);
        assert!(limiter.try_acquire(now, available + 1).is_err(), "{before} ns before the last");
        assert_eq!(limiter.try_acquire(now, available), Ok(()), "{before} ns before the last");
    }
}
