//! A service that is slower than a probe's lease, or that the breaker only watches.

use core::time::Duration;

use holdoff::{
    BreakerConfig, BreakerState, Call, Counters, CountersSnapshot, Failover, Mode, Outcome, Policy,
    Safety, Step, Stop, Upstream,
};

use crate::common::{at, secs};
use crate::{POLICY, breaker, call, fail, poll, start, trip};

/// What one caller a second makes of a service whose breaker has tripped: its calls take `takes`
/// and succeed, or time out if there is no such time. Until it is closed, or for an hour.
fn an_hour(policy: &Policy, takes: Option<Duration>) -> (CountersSnapshot, Option<u64>) {
    let upstream = Upstream::new().with_breaker(breaker(1)).with_counters(Counters::new());
    trip(&upstream, at(secs(0)));
    let mut running: Vec<(u64, Call<'_>)> = Vec::new();
    for second in 0..3_600 {
        let now = at(secs(second));
        running.retain_mut(|(ends, call)| {
            let goes_on = *ends > second;
            if !goes_on {
                match takes {
                    Some(_) => call.record(now, Outcome::Success, || 0),
                    None => call.record_timeout(now, || 0),
                }
            }
            goes_on
        });
        if upstream.breaker().expect("it has one").state(now) == BreakerState::Closed {
            return (upstream.counters().expect("it has some").snapshot(), Some(second));
        }
        let mut next = upstream.call(policy, Safety::Idempotent, now);
        if let Step::Attempt(attempt) = next.poll(now, || 0) {
            let lasts = takes.or(attempt.timeout()).expect("it ends");
            running.push((second + lasts.as_secs(), next));
        }
        assert!(running.len() <= 1, "a second probe beside the first");
    }
    (upstream.counters().expect("it has some").snapshot(), None)
}

#[test]
fn a_slow_answer_closes_the_breaker() {
    for (policy, takes) in [
        (Policy::INTERACTIVE, 1),
        (Policy::INTERACTIVE, 12),
        (Policy::INTERACTIVE, 19),
        (Policy::LLM, 45),
        (Policy::LLM, 299),
        (Policy::STANDARD, 120),
    ] {
        let (counted, closed_at) = an_hour(&policy, Some(secs(takes)));
        assert_eq!((counted.probes, closed_at), (1, Some(10 + takes)), "{takes} s");
    }
}

#[test]
fn a_service_that_hangs_is_asked_ever_less() {
    let (counted, closed_at) = an_hour(&Policy::INTERACTIVE, None);
    assert_eq!(closed_at, None);
    // The probes at 10 s, 50 s (20 s of timeout, 20 s open), 110 s and so on, up to every 320 s;
    // the last is under way.
    assert_eq!((counted.probes, counted.reopens), (15, 14));
}

#[test]
fn what_shadow_would_have_refused_is_counted() {
    let upstream = Upstream::new().with_breaker(breaker(1)).with_counters(Counters::new());
    upstream.breaker().expect("it has one").set_mode(Mode::Shadow);
    for _ in 0..10 {
        let mut call = call(&upstream, at(secs(0)));
        start(&mut call, at(secs(0)));
        fail(&mut call, at(secs(0)));
    }
    let counted = upstream.counters().expect("it has some").snapshot();
    assert_eq!((counted.attempts, counted.opens, counted.shadow_refusals), (10, 1, 9));
    assert_eq!(counted.stops.circuit_open, 0);
}

// It may be over at any time: nobody is told to stay away until its lease ends.
#[test]
fn behind_a_probe_it_is_not_known_when_to_come_back() {
    let config = BreakerConfig::consecutive(1).with_lease(secs(120));
    let upstream = Upstream::new().with_breaker(config.build().expect("valid"));
    trip(&upstream, at(secs(0)));
    for (now, probes, retry_after) in [(4, false, Some(secs(6))), (10, true, None)] {
        let mut probe = call(&upstream, at(secs(now)));
        if probes {
            start(&mut probe, at(secs(now)));
        }
        let mut other = call(&upstream, at(secs(now)));
        let Step::Stop(stop @ Stop::CircuitOpen { retry_at }) = poll(&mut other, at(secs(now)))
        else {
            panic!("admitted")
        };
        assert!(retry_at > at(secs(now)));
        assert_eq!(other.retry_after(), retry_after);
        let open = upstream.breaker().expect("it has one").peek(at(secs(now)));
        assert_eq!(open.map_err(|open| open.is_probing), Err(probes));

        let failover = Failover::<2>::new();
        let mut route = failover.route();
        route.next(at(secs(now))).expect("nobody is left alone");
        assert!(route.failed(at(secs(now)), stop, other.retry_after()));
        let cooled = retry_after.map_or(at(secs(0)), |delay| at(secs(now) + delay));
        assert_eq!(failover.cooled_until(0), cooled);
    }
}

// Whatever was set before the breaker stays set.
#[test]
fn the_order_in_which_a_call_is_built_does_not_matter() {
    let limiter = crate::limiter(1, 9);
    let breaker = breaker(1);
    let now = at(secs(0));
    for number in 0..3 {
        let call = Call::new(&POLICY, Safety::Idempotent, now);
        let mut call = match number {
            0 => call.with_breaker(&breaker).with_limiter(&limiter, 3),
            1 => call.with_limiter(&limiter, 3).with_breaker(&breaker),
            _ => call.with_cost(3).with_breaker(&breaker).with_limiter(&limiter, 3),
        };
        start(&mut call, now);
        assert_eq!(limiter.available(now), 9 - 3 * (number + 1));
    }
}
