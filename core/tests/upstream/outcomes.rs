//! What an attempt came to, and what each layer makes of it.

use holdoff::http::{Signals, Statuses};
use holdoff::{
    BreakerConfig, BreakerState, Class, Failure, Hint, Instant, Outcome, Ratio, Sent, Step,
    Upstream,
};

use crate::common::{at, millis, secs};
use crate::{breaker, call, poll, start, succeed, trip};

const FREE: BreakerState = BreakerState::HalfOpen { probing_until: None };

fn response(status: u16) -> Outcome {
    Statuses::HTTP.outcome(status, Signals::default())
}

/// Makes an attempt that comes to `outcome`.
fn attempt(upstream: &Upstream, now: Instant, outcome: Outcome) {
    let mut call = call(upstream, now);
    start(&mut call, now);
    call.record(now, outcome, || 0);
}

fn state(upstream: &Upstream, now: Instant) -> BreakerState {
    upstream.breaker().expect("it has one").state(now)
}

/// What the breaker makes of an outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
enum View {
    Failure,
    Nothing,
    Success,
}

fn views() -> Vec<(Outcome, View)> {
    let mut views = vec![(Outcome::Success, View::Success), (Outcome::Ignored, View::Nothing)];
    for sent in [Sent::Maybe, Sent::No, Sent::Refused] {
        for hint in [Hint::Absent, Hint::Malformed, Hint::after(secs(5))] {
            for (class, view) in [
                (Class::Permanent, View::Nothing),
                (Class::Quota, View::Nothing),
                (Class::Throttled, View::Nothing),
                (Class::Transient, View::Failure),
            ] {
                let failure = Failure::new(class).with_hint(hint).with_sent(sent);
                views.push((Outcome::Failure(failure), view));
            }
        }
    }
    let transient = [408, 500, 502, 503, 504, 520, 522, 524, 529];
    views.extend((100..1_000).map(|status| {
        let view = match status {
            0..400 => View::Success,
            _ if transient.contains(&status) => View::Failure,
            _ => View::Nothing,
        };
        (response(status), view)
    }));
    views
}

// C28: App-vNext/Polly#1979, getnora-io/nora#585, github/gh-aw-mcpg#10686.
#[test]
fn a_probe_that_says_nothing_about_the_service_frees_the_slot() {
    for (outcome, view) in views() {
        let upstream = Upstream::new().with_breaker(breaker(3));
        trip(&upstream, at(secs(0)));
        attempt(&upstream, at(secs(10)), outcome);
        let expected = match view {
            View::Failure => BreakerState::Open { until: at(secs(30)) },
            View::Nothing => FREE,
            View::Success => BreakerState::Closed,
        };
        assert_eq!(state(&upstream, at(secs(10))), expected, "{outcome:?}");
        if view == View::Nothing {
            let mut next = call(&upstream, at(millis(10_001)));
            start(&mut next, at(millis(10_001)));
            let lease_end = at(millis(10_001 + 300_000 + 10_000));
            let held = BreakerState::HalfOpen { probing_until: Some(lease_end) };
            assert_eq!(state(&upstream, at(millis(10_001))), held, "{outcome:?}: as a probe");
            succeed(&mut next, at(millis(10_001)));
            assert_eq!(state(&upstream, at(millis(10_001))), BreakerState::Closed);
        }
    }
}

// C34: sgl-project/sglang#25811, vllm-project/router#60, smg-project/smg#2565.
#[test]
fn client_errors_are_neither_failures_nor_successes() {
    for (outcome, view) in views() {
        let upstream = Upstream::new().with_breaker(breaker(5));
        let nothing = view == View::Nothing;
        let times = if view == View::Failure { 4 } else { 10 };
        (0..times).for_each(|_| attempt(&upstream, at(secs(0)), outcome));
        assert_eq!(state(&upstream, at(secs(0))), BreakerState::Closed, "{outcome:?}");

        let upstream = Upstream::new().with_breaker(breaker(5));
        (0..4).for_each(|_| attempt(&upstream, at(secs(0)), response(500)));
        attempt(&upstream, at(secs(0)), outcome);
        let open = BreakerState::Open { until: at(secs(10)) };
        let is_open = state(&upstream, at(secs(0))) == open;
        assert_eq!(is_open, view == View::Failure, "{outcome:?}");
        if !is_open {
            attempt(&upstream, at(secs(0)), response(500));
            assert_eq!(state(&upstream, at(secs(0))) == open, nothing, "{outcome:?}");
        }
    }
}

#[test]
fn a_rate_counts_only_what_says_something() {
    for (outcome, view) in views() {
        let rule = BreakerConfig::rate(2, Ratio::percent(100)).build().expect("valid");
        let upstream = Upstream::new().with_breaker(rule);
        for outcome in [response(500), outcome, response(500)] {
            if state(&upstream, at(secs(0))) == BreakerState::Closed {
                attempt(&upstream, at(secs(0)), outcome);
            }
        }
        let is_closed = state(&upstream, at(secs(0))) == BreakerState::Closed;
        assert_eq!(is_closed, view == View::Success, "{outcome:?}");
    }
}

#[test]
fn a_report_without_an_attempt_changes_nothing() {
    for (outcome, _) in views() {
        let upstream = Upstream::new().with_breaker(breaker(1));
        let mut call = call(&upstream, at(secs(0)));
        call.record(at(secs(0)), outcome, || 0);
        start(&mut call, at(secs(0)));
        call.record(at(secs(0)), Outcome::Failure(Failure::throttled()), || 0);
        let waiting = poll(&mut call, at(secs(0)));
        // The attempt has been reported on; a second report is not another one.
        call.record(at(secs(0)), Outcome::Failure(Failure::transient()), || 0);
        call.record(at(secs(0)), outcome, || 0);
        assert_eq!(poll(&mut call, at(secs(0))), waiting, "{outcome:?}");
        assert!(matches!(waiting, Step::Backoff { .. }), "{outcome:?}");
        assert_eq!(state(&upstream, at(secs(0))), BreakerState::Closed, "{outcome:?}");
    }
}
