//! How many attempts there are, and when the last one may start.

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive;
use holdoff::{
    BackoffConfig, Call, ConfigError, Failure, Hint, HintSpread, Instant, Jitter, Limiter,
    PolicyConfig, Quota, Rate, Safety, Sent, Stop, UnhintedThrottle, classified,
};

use crate::common::{at, secs};
use crate::{Client, Response, own_backoff};

/// Every combination of options that has no say in the number of calls.
fn every_policy(max_attempts: u32) -> Vec<PolicyConfig> {
    let throttle = BackoffConfig::exponential(secs(5)).with_max_delay(secs(9)).build();
    let throttle = throttle.expect("valid");
    let mut policies = Vec::new();
    for deadline in [None, Some(secs(1_000_000))] {
        for timeout in [None, Some(secs(3))] {
            for spread in
                [HintSpread::Envelope, HintSpread::EnvelopeOrGranularity, HintSpread::None]
            {
                for unhinted in [UnhintedThrottle::Backoff(throttle), UnhintedThrottle::SameBackoff]
                {
                    for jitter in [Jitter::None, Jitter::Full, Jitter::Decorrelated] {
                        let backoff = BackoffConfig::exponential(secs(1)).with_jitter(jitter);
                        let policy = PolicyConfig::new(backoff.build().expect("valid"))
                            .with_max_attempts(max_attempts)
                            .with_hint_spread(spread)
                            .with_unhinted_throttle(unhinted);
                        let policy = deadline.map_or(policy, |limit| policy.with_deadline(limit));
                        policies.push(
                            timeout.map_or(policy, |limit| policy.with_attempt_timeout(limit)),
                        );
                    }
                }
            }
        }
    }
    policies
}

/// Every failure that is worth trying again.
fn every_failure() -> Vec<(Failure, Safety)> {
    let hints = [
        Hint::Absent,
        Hint::Malformed,
        Hint::after(Duration::ZERO),
        Hint::after(secs(1)),
        Hint::After { delay: secs(2), granularity: 1 },
    ];
    let mut failures = Vec::new();
    for hint in hints {
        for failure in [Failure::throttled(), Failure::transient()] {
            for sent in [Sent::Maybe, Sent::No, Sent::Refused] {
                let failure = failure.with_hint(hint).with_sent(sent);
                failures.push((failure, Safety::Idempotent));
                if sent != Sent::Maybe {
                    failures.push((failure, Safety::NonIdempotent));
                }
            }
        }
    }
    failures
}

// C20: failsafe-go/failsafe-go#22, apache/pekko#3233, restatedev/restate#3774
#[test]
fn no_option_changes_the_number_of_calls() {
    for max_attempts in [1, 2, 4, 7] {
        let failures = every_failure();
        for config in every_policy(max_attempts) {
            let policy = config.build().expect("valid");
            for &(failure, safety) in &failures {
                for limited in [false, true] {
                    let quota = Quota::new(Rate::per_second(1), 2).expect("valid");
                    let limiter = Limiter::new(quota);
                    let begin = |now| {
                        let call = Call::new(&policy, safety, now);
                        if limited { call.with_limiter(&limiter, 1) } else { call }
                    };
                    let clock = Cell::new(Instant::EPOCH);
                    let sleep = |delay| clock.set(clock.get().saturating_add(delay));

                    // With an error, and with a value that a predicate calls a failure.
                    let calls = Cell::new(0);
                    let with_error = drive::run_blocking(
                        &clock,
                        sleep,
                        begin,
                        || u64::MAX,
                        classified,
                        |_| {
                            calls.set(calls.get() + 1);
                            Err::<(), _>(failure)
                        },
                    );
                    let gave_up = with_error.expect_err("it always fails");
                    let what = (policy, failure, safety, limited);
                    assert_eq!(calls.get(), max_attempts, "{what:?}");
                    assert_eq!(gave_up.attempts, max_attempts, "{what:?}");
                    assert_eq!(gave_up.stop, Stop::Attempts, "{what:?}");
                    assert_eq!(gave_up.last, Some(failure), "{what:?}");

                    calls.set(0);
                    let with_value = drive::run_blocking(
                        &clock,
                        sleep,
                        begin,
                        || 0,
                        |number: u32| Err::<(), _>((failure, number)),
                        |attempt| {
                            calls.set(calls.get() + 1);
                            attempt.number
                        },
                    );
                    let gave_up = with_value.expect_err("it never suits");
                    assert_eq!(calls.get(), max_attempts, "{what:?}");
                    assert_eq!(gave_up.last, Some(max_attempts), "{what:?}");
                }
            }
        }
    }
}

// C20, none at all: apache/pekko#3233
#[test]
fn no_attempts_do_not_build() {
    for config in every_policy(0) {
        assert_eq!(config.build(), Err(ConfigError::MaxAttemptsZero));
    }
}

// C20, the other way: success at any attempt ends the call there.
#[test]
fn a_success_is_the_last_call() {
    for success in 1..=5 {
        let trace = Client::new().call(|n| Response::new(if n == success { 200 } else { 503 }));
        assert_eq!(trace.starts.len(), usize::try_from(success).expect("small"));
        assert_eq!(trace.result, Ok(Response::new(200)));
    }
}

// C21: ihrwein/backoff#42, jd/tenacity#423
#[test]
fn no_attempt_starts_at_the_deadline_or_after_it() {
    let ns = Duration::from_nanos;
    for (max_delay, deadline, starts) in [
        (secs(4), secs(5), &[0, 1, 3][..]), // 1, 2, 4: the next would start at 7
        (secs(2), secs(5), &[0, 1, 3]),     // 1, 2, 2: exactly at 5
        (secs(2), secs(5) + ns(1), &[0, 1, 3, 5]), // one nanosecond later
        (secs(2), secs(1), &[0]),           // exactly at 1
        (secs(2), ns(1), &[0]),
        (secs(2), Duration::ZERO, &[]),
        (secs(2), Duration::MAX, &[0, 1, 3, 5, 7, 9]),
    ] {
        let backoff = BackoffConfig::exponential(secs(1)).with_max_delay(max_delay);
        let backoff = backoff.with_jitter(Jitter::None).build().expect("valid");
        let policy = PolicyConfig::new(backoff).with_max_attempts(6).with_deadline(deadline);
        for client in [Client::of(policy), Client { sample: u64::MAX, ..Client::of(policy) }] {
            let trace = client.call(|_| Response::new(503));
            let expected: Vec<Duration> = starts.iter().copied().map(secs).collect();
            assert_eq!(trace.starts, expected, "{max_delay:?}, {deadline:?}");
            // Given up without sleeping first.
            assert_eq!(trace.end, expected.last().copied().unwrap_or_default(), "{deadline:?}");
            if starts.len() < 6 {
                assert_eq!(trace.gave_up().stop, Stop::Deadline, "{deadline:?}");
            }
        }
    }
}

// C21, time that calls, the limiter or an overlong sleep take: jd/tenacity#423
#[test]
fn time_spent_elsewhere_counts_against_the_deadline() {
    let policy = PolicyConfig::new(own_backoff()).with_deadline(secs(5)).build().expect("valid");
    let empty = Limiter::new(Quota::new(Rate::new(1, secs(3)), 1).expect("valid"));
    assert_eq!(empty.try_acquire(Instant::EPOCH, 1), Ok(()));
    // Time that a call takes, time that a sleep takes beyond what was asked, starts of attempts.
    for (takes, oversleeps, limited, starts) in [
        (secs(1), secs(0), false, &[0, 3][..]), // the next would start at 6
        (secs(3), secs(0), false, &[0]),        // exactly at 5
        (secs(9), secs(0), false, &[0]),
        (secs(0), secs(3), false, &[0]), // woken at 5
        (secs(0), secs(9), false, &[0]),
        (secs(0), secs(0), true, &[3]), // the next token comes at 6
    ] {
        let clock = Cell::new(Instant::EPOCH);
        let pass = |time| clock.set(clock.get().saturating_add(time));
        let started = Cell::new(Vec::new());
        let begin = |now| {
            let call = Call::new(&policy, Safety::Idempotent, now);
            if limited { call.with_limiter(&empty, 1) } else { call }
        };
        let result = drive::run_blocking(
            &clock,
            |delay| pass(delay + oversleeps),
            begin,
            || 0,
            classified,
            |_| {
                let mut starts = started.take();
                starts.push(clock.get());
                started.set(starts);
                pass(takes);
                Err::<(), _>(Failure::transient())
            },
        );
        assert_eq!(result.expect_err("it always fails").stop, Stop::Deadline);
        let expected: Vec<Instant> = starts.iter().map(|&start| at(secs(start))).collect();
        assert_eq!(started.take(), expected, "{takes:?}, {oversleeps:?}, {limited}");
    }
}
