//! Clocks that jump, stand still, step back or have only just started.

use core::time::Duration;

use holdoff::{
    Call, Failure, Hint, Instant, Limiter, Outcome, PolicyConfig, Quota, Rate, Refusal, Safety,
    Step, Stop,
};

use crate::common::{at, millis, secs};
use crate::{Client, OWN, Response, own_backoff};

const HOUR: u64 = 3600;

// C25: CrossPaste/crosspaste-desktop#4547, sethvargo/go-limiter#41, juju/ratelimit#22
#[test]
fn the_wall_clock_is_read_for_dates_and_for_nothing_else() {
    let noon = 784_123_200; // Sun, 06 Nov 1994 12:00:00 GMT
    let policy = PolicyConfig::new(own_backoff()).with_deadline(secs(10));
    let client = Client::of(policy);
    for headers in [&[][..], &[("Retry-After", "1")], &[("retry-after-ms", "300")]] {
        let response = |_| {
            headers
                .iter()
                .fold(Response::new(429), |response, &(name, value)| response.with(name, value))
        };
        let steady = client.call(response);
        for wall in [0, noon - HOUR, noon, noon + HOUR] {
            assert_eq!(client.at_unix_time(wall).call(response), steady, "{wall}: {headers:?}");
        }
    }
    // A date is turned into a delay once; what the wall clock does during the wait is no matter.
    let response = Response::new(503).with("Retry-After", "Sun, 06 Nov 1994 12:00:05 GMT");
    for (wall, expected) in [(noon, secs(5)), (noon - 2, secs(7)), (noon + HOUR, OWN)] {
        assert_eq!(client.at_unix_time(wall).delay_after(&response), Some(expected), "{wall}");
    }
    // An hour behind, the same date is too far away to wait for.
    let gave_up = client.at_unix_time(noon - HOUR).call(|_| response.clone()).gave_up();
    assert_eq!(gave_up.stop, Stop::HintTooLong { hint: secs(HOUR + 5) });
}

// C26: openabdev/openab#1459, graphprotocol/graph-node#1805
#[test]
fn right_after_boot_nothing_is_subtracted_below_zero() {
    let quota = Quota::new(Rate::per_minute(1), 60).expect("valid"); // an hour to fill
    let policy = PolicyConfig::new(own_backoff()).with_deadline(secs(HOUR)).build();
    let policy = policy.expect("valid");
    for now in [Instant::EPOCH, at(Duration::from_nanos(1)), at(secs(5))] {
        let limiter = Limiter::new(quota);
        assert_eq!(limiter.available(now), 60);
        limiter.refund(u32::MAX);
        assert_eq!(limiter.available(now), 60);
        assert_eq!(limiter.try_acquire(now, 60), Ok(()));
        assert_eq!(limiter.available(now), 0);

        let mut call = Call::new(&policy, Safety::Idempotent, now);
        assert_eq!(call.elapsed(Instant::EPOCH), Duration::ZERO);
        assert!(matches!(call.poll(now, || 0), Step::Attempt(_)));
        call.record(now, Outcome::Failure(Failure::transient()), || 0);
        let until = now.saturating_add(OWN);
        assert!(matches!(call.poll(now, || 0), Step::Backoff { until: told, .. } if told == until));
    }
}

// C26, later before earlier: importcjj/mobc#25
#[test]
fn a_clock_that_steps_back_makes_a_limiter_stricter() {
    let limiter = Limiter::new(Quota::new(Rate::per_second(1), 5).expect("valid"));
    assert_eq!(limiter.try_acquire(at(secs(100)), 2), Ok(()));
    for (now, available) in [
        (millis(99_999), 2),
        (secs(98), 1),
        (secs(97), 0),
        (secs(0), 0),
        (secs(100), 3),
        (secs(102), 5),
        (secs(1_000_000), 5),
    ] {
        assert_eq!(limiter.available(at(now)), available, "{now:?}");
    }
    let until = at(secs(98));
    assert_eq!(limiter.try_acquire(at(secs(0)), 1), Err(Refusal::NotYet { until }));
    assert_eq!(limiter.try_acquire(at(secs(98)), 1), Ok(()));
}

// C26, for a call: importcjj/mobc#25
#[test]
fn a_clock_that_steps_back_ends_no_call_and_hurries_none() {
    let policy = PolicyConfig::new(own_backoff()).with_deadline(secs(10)).build().expect("valid");
    let mut call = Call::new(&policy, Safety::Idempotent, at(secs(100)));
    assert!(matches!(call.poll(at(secs(100)), || 0), Step::Attempt(_)));

    // The attempt ends before it began.
    let (before, until) = (at(millis(99_999)), at(millis(101_999)));
    call.record(before, Outcome::Failure(Failure::transient()), || 0);
    assert_eq!(call.elapsed(before), Duration::ZERO);
    let told = |step| matches!(step, Step::Backoff { until: told, .. } if told == until);
    assert!(told(call.poll(before, || 0)));
    for now in [secs(0), secs(50), millis(101_998)] {
        assert!(told(call.poll(at(now), || 0)), "{now:?}");
    }
    let Step::Attempt(attempt) = call.poll(until, || 0) else { panic!("it is time") };
    // What is left until the deadline at 110 s.
    assert_eq!(attempt.timeout(), Some(millis(8001)));

    // A leap ends it.
    call.record(until, Outcome::Failure(Failure::transient()), || 0);
    assert!(matches!(call.poll(until, || 0), Step::Backoff { .. }));
    assert_eq!(call.poll(at(secs(HOUR)), || 0), Step::Stop(Stop::Deadline));
}

// C26, the clock steps back between an attempt's end and the next decision: importcjj/mobc#25
#[test]
fn a_hint_counts_from_when_the_attempt_failed() {
    let policy = PolicyConfig::new(own_backoff()).build().expect("valid");
    let failed = at(secs(100));
    for now in [secs(0), millis(99_999), secs(100)] {
        let mut call = Call::new(&policy, Safety::Idempotent, Instant::EPOCH);
        assert!(matches!(call.poll(Instant::EPOCH, || 0), Step::Attempt(_)));
        let failure = Failure::throttled().with_hint(Hint::after(secs(5)));
        call.record(failed, Outcome::Failure(failure), || 0);
        let Step::Backoff { until, .. } = call.poll(at(now), || 0) else { panic!("a retry") };
        assert!(until >= failed.saturating_add(secs(5)), "polled at {now:?}: {until:?}");
    }
}
