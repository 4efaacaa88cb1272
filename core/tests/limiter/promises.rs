//! What the documentation promises, one by one.

use core::time::Duration;

use holdoff::{ChangeUnderWay, Instant, Limiter, Quota, Rate, Refusal};

use crate::common::{at, millis, secs};

fn per_second(tokens: u32, burst: u32) -> Limiter {
    Limiter::new(Quota::new(Rate::per_second(tokens), burst).expect("valid"))
}

/// Takes what it can at `now`, one token at a time.
fn drain(limiter: &Limiter, now: Instant) -> u32 {
    let mut taken = 0;
    while limiter.try_acquire(now, 1).is_ok() {
        taken += 1;
    }
    taken
}

#[test]
fn a_limiter_is_small() {
    println!("a limiter takes {} bytes", size_of::<Limiter>());
    assert!(size_of::<Limiter>() <= 32);
}

#[test]
fn idling_never_grants_more_than_the_burst() {
    for idle in
        [secs(2), secs(3600), secs(1 << 31), Duration::from_nanos((1 << 62) - 3_000_000_000)]
    {
        let limiter = per_second(10, 20);
        assert_eq!(drain(&limiter, Instant::EPOCH), 20);
        assert_eq!(drain(&limiter, at(idle)), 20, "{idle:?}");
    }
}

#[test]
fn a_pause_ends_with_one_token_and_then_the_rate() {
    for level in [20, 1, 0] {
        let limiter = per_second(10, 20);
        limiter.try_acquire(Instant::EPOCH, 20 - level).expect("the bucket is full");
        limiter.pause_until(at(secs(60)));
        for now in [secs(0), secs(1), secs(60) - Duration::from_nanos(1)] {
            assert_eq!(limiter.available(at(now)), 0);
            let until = at(secs(60));
            assert_eq!(limiter.try_acquire(at(now), 1), Err(Refusal::NotYet { until }));
            // The second token comes a tenth of a second after the first.
            let until = at(millis(60_100));
            assert_eq!(limiter.try_acquire(at(now), 2), Err(Refusal::NotYet { until }));
        }
        let taken = [60_000, 60_099, 60_100, 60_350, 61_000, 70_000]
            .map(|now| drain(&limiter, at(millis(now))));
        assert_eq!(taken, [1, 0, 1, 2, 7, 20 - 1 + 1], "from a level of {level}");
    }
}

#[test]
fn who_asks_behind_a_line_is_told_to_come_a_token_later_and_takes_nothing() {
    // Tokens taken at 0, pause and when it asks (ms), for what, and the wait (ms).
    for (taken, pause, now, cost, told) in [
        (0, 0, 0, 0, Some(100)),
        (0, 0, 0, 5, Some(100)),
        (5, 0, 0, 1, Some(200)),
        (5, 0, 50, 5, Some(600)),
        (5, 0, 10_000, 5, Some(10_100)),
        (0, 3_000, 0, 1, Some(3_100)),
        (0, 0, 0, 6, None),
        (5, 3_000, 0, u32::MAX, None),
    ] {
        let limiter = per_second(10, 5);
        limiter.try_acquire(Instant::EPOCH, taken).expect("the bucket is full");
        limiter.pause_until(at(millis(pause)));
        let now = at(millis(now));
        let expected = match told {
            Some(then) => Refusal::NotYet { until: at(millis(then)) },
            None => Refusal::Never { burst: 5 },
        };
        let full_at = limiter.full_at();
        assert_eq!(limiter.refusal_in_line(now, cost), expected, "{cost} at {now:?}");
        assert_eq!(limiter.full_at(), full_at);
    }
    let end = Refusal::NotYet { until: Instant::MAX };
    assert_eq!(per_second(10, 5).refusal_in_line(Instant::MAX, 1), end);
}

#[test]
fn a_shorter_pause_a_refund_and_a_change_leave_a_pause_in_force() {
    let just_before = at(secs(60) - Duration::from_nanos(1));
    for refund in [0, 1, u32::MAX] {
        let limiter = per_second(10, 20);
        limiter.pause_until(at(secs(60)));
        limiter.pause_until(at(secs(30)));
        limiter.pause_until(Instant::EPOCH);
        limiter.refund(refund);
        for burst in [40, 5] {
            let quota = Quota::new(Rate::per_second(10), burst).expect("valid");
            limiter.set_quota(at(secs(1)), quota).expect("nobody else is at it");
            assert_eq!(drain(&limiter, just_before), 0);
        }
        // One, and what was given back.
        assert_eq!(drain(&limiter, at(secs(60))), refund.saturating_add(1).min(5));
        // A longer one does change it.
        limiter.pause_until(at(secs(90)));
        assert_eq!(drain(&limiter, at(secs(89))), 0);
        assert_eq!(drain(&limiter, at(secs(90))), 1);
    }
}

#[test]
fn a_change_keeps_the_tokens_and_the_debt_and_grants_no_fresh_burst() {
    // The tokens there, per second and burst before and after, tokens after.
    for (there, before, after, expected) in [
        (20, (10, 20), (1, 20), 20),
        (5, (10, 20), (1, 20), 5),
        (5, (10, 20), (1000, 20), 5),
        (5, (10, 20), (10, 100), 5),
        (20, (10, 20), (10, 100), 20), // full was 20
        (5, (10, 20), (10, 3), 3),
        (0, (10, 20), (1000, 100), 0),
    ] {
        let limiter = per_second(before.0, before.1);
        limiter.try_acquire(Instant::EPOCH, before.1 - there).expect("the bucket is full");
        limiter
            .set_quota(
                Instant::EPOCH,
                Quota::new(Rate::per_second(after.0), after.1).expect("valid"),
            )
            .expect("nobody else is at it");
        let what = format!("{there} of {before:?}, then {after:?}");
        assert_eq!(limiter.available(Instant::EPOCH), expected, "{what}");
        // From here on the new rate counts.
        let second_later = (expected + after.0).min(after.1);
        assert_eq!(limiter.available(at(secs(1))), second_later, "{what}");
    }

    // Ten tokens are owed; at one a second they take ten seconds.
    let limiter = per_second(10, 20);
    limiter.try_acquire(Instant::EPOCH, 20).expect("the bucket is full");
    let reservation = limiter.reserve(Instant::EPOCH, 10).expect("within the burst");
    assert_eq!(reservation.ready_at(), at(secs(1)));
    limiter
        .set_quota(Instant::EPOCH, Quota::new(Rate::per_second(1), 20).expect("valid"))
        .expect("nobody else is at it");
    assert_eq!(limiter.available(at(secs(10))), 0);
    assert_eq!(limiter.available(at(secs(11))), 1);
    // Given back in tokens, not in what they cost when they were taken.
    limiter.cancel(reservation);
    assert_eq!(limiter.available(at(secs(11))), 11);
}

#[test]
fn a_change_after_a_pause_keeps_what_there_is_by_then() {
    let pause = at(secs(60));
    // Seconds after the pause, per second and burst before and after, tokens before and after.
    for (since, before, after, [there, expected]) in [
        (1, (1, 100), (1000, 100), [2, 2]), // not a fresh burst
        (0, (1, 100), (1000, 100), [1, 1]),
        (5, (10, 20), (1000, 40), [20, 20]),
        (9, (1, 10), (1, 5), [10, 5]),
        (3600, (10, 20), (10, 20), [20, 20]),
    ] {
        let limiter = per_second(before.0, before.1);
        limiter.pause_until(pause);
        let now = pause.saturating_add(secs(since));
        assert_eq!(limiter.available(now), there);
        let quota = Quota::new(Rate::per_second(after.0), after.1).expect("valid");
        limiter.set_quota(now, quota).expect("nobody else is at it");
        let what = format!("{since} s after, {before:?}, then {after:?}");
        assert_eq!(limiter.available(now), expected, "{what}");
    }

    // Nor are tokens lost where the new rate is slower.
    let limiter = per_second(1, 2);
    limiter.pause_until(pause);
    let now = pause.saturating_add(secs(2));
    assert_eq!(limiter.available(now), 2);
    limiter
        .set_quota(now, Quota::new(Rate::per_minute(1), 2).expect("valid"))
        .expect("nobody else is at it");
    assert_eq!(drain(&limiter, now), 2);
}

#[test]
fn there_and_back_again_is_no_way_to_a_fresh_burst() {
    let limiter = per_second(10, 20);
    assert_eq!(drain(&limiter, Instant::EPOCH), 20);
    for tokens in [1, 1000, 3, 7, 10, 1_000_000, 10] {
        let quota = Quota::new(Rate::per_second(tokens), 20).expect("valid");
        limiter.set_quota(Instant::EPOCH, quota).expect("nobody else is at it");
        assert_eq!(limiter.quota(), quota);
        assert_eq!(drain(&limiter, Instant::EPOCH), 0, "at {tokens} a second");
    }
    assert_eq!(drain(&limiter, at(secs(1))), 10);
}

#[test]
fn what_is_given_back_can_be_taken_again_and_never_more_than_the_burst() {
    let limiter = per_second(1, 5);
    assert_eq!(limiter.try_acquire(Instant::EPOCH, 5), Ok(()));
    limiter.refund(2);
    assert_eq!(drain(&limiter, Instant::EPOCH), 2);
    for cost in [5, 6, 1000, u32::MAX] {
        limiter.refund(cost);
        assert_eq!(drain(&limiter, Instant::EPOCH), 5, "{cost} given back");
    }
    limiter.refund(0);
    assert_eq!(drain(&limiter, Instant::EPOCH), 0);
}

#[test]
fn reservations_are_served_in_the_order_they_are_made() {
    let limiter = per_second(1, 2);
    let ready = [1, 1, 1, 2, 1]
        .map(|cost| limiter.reserve(Instant::EPOCH, cost).expect("within the burst").ready_at());
    assert_eq!(ready, [0, 0, 1, 3, 4].map(|ready| at(secs(ready))));
    // Whoever cannot wait is told when all of them are served.
    let until = at(secs(5));
    assert_eq!(limiter.try_acquire(Instant::EPOCH, 1), Err(Refusal::NotYet { until }));
    // One made later is not ready before it was made.
    let late = limiter.reserve(at(secs(60)), 1).expect("within the burst");
    assert_eq!(late.ready_at(), at(secs(60)));
}

#[test]
fn refusals_say_why() {
    let limiter = per_second(1, 2);
    let never = limiter.try_acquire(Instant::EPOCH, 3).expect_err("above the burst");
    assert_eq!(never.to_string(), "cost is above the burst of 2");
    limiter.try_acquire(Instant::EPOCH, 2).expect("the bucket is full");
    let not_yet = limiter.try_acquire(Instant::EPOCH, 1).expect_err("empty");
    assert_eq!(not_yet.to_string(), "rate limit reached");
    assert_eq!(ChangeUnderWay.to_string(), "another change of the quota is under way");
}
