//! The two drivers: the same calls, and attempt timeouts.

use core::cell::{Cell, RefCell};
use core::time::Duration;

use holdoff::drive::{self, GaveUp, NoQueue};
use holdoff::{
    Attempt, BackoffConfig, Call, Clock, Failure, Hint, Instant, Jitter, Limiter, Policy,
    PolicyConfig, Quota, Rate, Safety, Sent, Stop, classified,
};
use proptest::prelude::*;

use crate::common::timer::ManualTimer;
use crate::common::{at, between, millis, samples, secs};
use crate::rules::{Rules, any_failure, any_rules};

/// The error of an attempt: its number and what it came to.
type Failed = (u32, Failure);

/// How long an attempt takes, and what comes of it.
type Answer = (Duration, Result<(), Failure>);

/// What a driver did: when each attempt started and how long it might take, and how it ended.
#[derive(Debug, PartialEq)]
struct Trace {
    attempts: Vec<(Instant, Attempt)>,
    end: Instant,
    result: Result<(), GaveUp<Failed>>,
}

fn answer(answers: &[Answer], attempt: Attempt) -> (Duration, Result<(), Failed>) {
    let place = usize::try_from(attempt.number).expect("few") - 1;
    let (takes, result) = answers[place % answers.len()];
    (takes, result.map_err(|failure| (attempt.number, failure)))
}

fn with_failure(result: Result<(), Failed>) -> Result<(), (Failure, Failed)> {
    result.map_err(|failed| (failed.1, failed))
}

fn run_async(rules: &Rules, quota: Option<Quota>, seed: u64, answers: &[Answer]) -> Trace {
    let (policy, timer, limiter) =
        (rules.policy(), ManualTimer::new(Instant::EPOCH), quota.map(Limiter::new));
    let attempts = RefCell::new(Vec::new());
    let result = timer.run(drive::run(
        &timer,
        &NoQueue,
        |now| begin(&policy, rules, limiter.as_ref(), now),
        samples(seed),
        with_failure,
        async |attempt| {
            attempts.borrow_mut().push((timer.now(), attempt));
            let (takes, result) = answer(answers, attempt);
            timer.sleep(takes).await;
            result
        },
    ));
    assert_eq!(timer.sleeping(), 0);
    Trace { attempts: attempts.into_inner(), end: timer.now(), result }
}

fn run_blocking(rules: &Rules, quota: Option<Quota>, seed: u64, answers: &[Answer]) -> Trace {
    let (policy, clock, limiter) =
        (rules.policy(), Cell::new(Instant::EPOCH), quota.map(Limiter::new));
    let pass = |time| clock.set(clock.get().saturating_add(time));
    let mut attempts = Vec::new();
    let result = drive::run_blocking(
        &clock,
        pass,
        |now| begin(&policy, rules, limiter.as_ref(), now),
        samples(seed),
        with_failure,
        |attempt| {
            attempts.push((clock.get(), attempt));
            let (takes, result) = answer(answers, attempt);
            pass(takes);
            result
        },
    );
    Trace { attempts, end: clock.get(), result }
}

const fn begin<'a>(
    policy: &'a Policy,
    rules: &Rules,
    limiter: Option<&'a Limiter>,
    now: Instant,
) -> Call<'a> {
    let call = Call::new(policy, rules.safety, now);
    match limiter {
        Some(limiter) => call.with_limiter(limiter, 2),
        None => call,
    }
}

fn any_quota() -> impl Strategy<Value = Option<Quota>> {
    let quota = (1..=4_u32, between(millis(1), secs(4)));
    let quota = quota.prop_map(|(burst, per)| Quota::new(Rate::new(1, per), burst));
    prop::option::of(quota.prop_map(|quota| quota.expect("valid")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn both_drivers_make_the_same_attempts_and_lose_nothing(
        rules in any_rules(),
        quota in any_quota(),
        seed: u64,
        answers in prop::collection::vec(
            (
                between(Duration::ZERO, secs(2)),
                prop::result::maybe_ok_weighted(0.2, Just(()), any_failure()),
            ),
            1..8,
        ),
    ) {
        // An attempt that is never cut off.
        let rules = Rules { attempt_timeout: None, ..rules };
        let answers: Vec<Answer> = match rules.deadline {
            None => answers,
            Some(_) => answers.into_iter().map(|(_, result)| (Duration::ZERO, result)).collect(),
        };
        let driven = run_async(&rules, quota, seed, &answers);
        prop_assert_eq!(&driven, &run_blocking(&rules, quota, seed, &answers));

        let made = u32::try_from(driven.attempts.len()).expect("few");
        match driven.result {
            Ok(()) => prop_assert!(made > 0),
            Err(GaveUp { last, attempts, elapsed, .. }) => {
                prop_assert_eq!(attempts, made);
                prop_assert_eq!(Instant::EPOCH.saturating_add(elapsed), driven.end);
                // The last error comes back, unless there was no attempt.
                prop_assert_eq!(last.map(|(number, _)| number), (made > 0).then_some(made));
            }
        }
    }

    #[test]
    fn an_attempt_that_reaches_its_timeout_is_cut_off(
        rules in any_rules(),
        quota in any_quota(),
        seed: u64,
        answers in prop::collection::vec(
            (
                between(Duration::ZERO, secs(9)),
                prop::result::maybe_ok_weighted(0.1, Just(()), any_failure()),
            ),
            1..8,
        ),
    ) {
        let driven = run_async(&rules, quota, seed, &answers);
        // What came of each attempt that was not cut off; the timeout itself still counts.
        let returned: Vec<u32> = driven
            .attempts
            .iter()
            .filter(|(_, attempt)| {
                let (takes, _) = answer(&answers, *attempt);
                attempt.timeout().is_none_or(|timeout| takes <= timeout)
            })
            .map(|(_, attempt)| attempt.number)
            .collect();
        for pair in driven.attempts.windows(2) {
            let [(start, attempt), (next, _)] = pair else { unreachable!() };
            let (takes, _) = answer(&answers, *attempt);
            let took = attempt.timeout().map_or(takes, |timeout| takes.min(timeout));
            prop_assert!(*next >= start.saturating_add(took));
        }
        if let Some(deadline) = rules.deadline {
            prop_assert!(driven.end <= at(deadline), "over at {:?}", driven.end);
        }
        let made = driven.attempts.last().map(|(_, attempt)| attempt.number);
        match driven.result {
            Ok(()) => prop_assert_eq!(returned.last().copied(), made),
            Err(GaveUp { last, .. }) => {
                prop_assert_eq!(last.map(|(number, _)| number), returned.last().copied());
            }
        }
    }
}

/// Two seconds between attempts.
fn constant() -> PolicyConfig {
    PolicyConfig::new(BackoffConfig::constant(secs(2)).build().expect("valid"))
}

#[test]
fn a_timeout_is_a_transient_failure_of_a_request_that_may_have_been_processed() {
    let policy = constant().with_attempt_timeout(millis(50)).with_max_attempts(3);
    let policy = policy.build().expect("valid");
    for (safety, starts, stop) in [
        (Safety::Idempotent, &[0, 2050, 4100][..], Stop::Attempts),
        (Safety::NonIdempotent, &[0], Stop::NotIdempotent),
        (Safety::Once, &[0], Stop::Committed),
    ] {
        let timer = ManualTimer::new(Instant::EPOCH);
        let started = RefCell::new(Vec::new());
        let gave_up = timer.run(drive::run(
            &timer,
            &NoQueue,
            |now| Call::new(&policy, safety, now),
            || 0,
            classified,
            async |_| {
                started.borrow_mut().push(timer.now());
                timer.sleep(millis(200)).await; // and counts nevertheless
                Ok::<(), Failure>(())
            },
        ));
        let gave_up = gave_up.expect_err("always too slow");
        assert_eq!((gave_up.stop, gave_up.last), (stop, None), "{safety:?}");
        let expected: Vec<Instant> = starts.iter().map(|&start| at(millis(start))).collect();
        assert_eq!(*started.borrow(), expected, "{safety:?}");
    }
}

#[test]
fn the_last_error_outlives_attempts_that_were_cut_off_after_it() {
    let policy = constant().with_attempt_timeout(secs(1)).with_max_attempts(3);
    let policy = policy.build().expect("valid");
    let timer = ManualTimer::new(Instant::EPOCH);
    let gave_up = timer.run(drive::run(
        &timer,
        &NoQueue,
        |now| Call::new(&policy, Safety::Idempotent, now),
        || 0,
        |result: Result<(), Failed>| with_failure(result),
        async |attempt| {
            if attempt.number > 1 {
                timer.sleep(secs(5)).await;
            }
            Err((attempt.number, Failure::transient()))
        },
    ));
    let gave_up = gave_up.expect_err("it always fails");
    assert_eq!(gave_up.last, Some((1, Failure::transient())));
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Attempts, 3));
    assert_eq!(gave_up.elapsed, secs(2 * 2 + 2)); // two delays, two timeouts
}

#[test]
fn a_result_in_the_same_instant_as_the_timeout_counts() {
    let policy = constant().with_attempt_timeout(secs(1)).build().expect("valid");
    for (takes, made) in [(secs(1), 1), (secs(1) + Duration::from_nanos(1), 5)] {
        let timer = ManualTimer::new(Instant::EPOCH);
        let made_now = Cell::new(0);
        let _ = timer.run(drive::run(
            &timer,
            &NoQueue,
            |now| Call::new(&policy, Safety::Idempotent, now),
            || 0,
            classified,
            async |attempt| {
                made_now.set(attempt.number);
                timer.sleep(takes).await;
                Ok::<(), Failure>(())
            },
        ));
        assert_eq!(made_now.get(), made, "{takes:?}");
    }
}

#[test]
fn random_numbers_are_drawn_for_retries_only() {
    let backoff = BackoffConfig::exponential(secs(1)).with_jitter(Jitter::Full).build();
    let policy = PolicyConfig::new(backoff.expect("valid")).build().expect("valid");
    let refused = Failure::transient().with_sent(Sent::Refused);
    for successful in 1..=6 {
        let draws = Cell::new(0);
        let clock = Cell::new(Instant::EPOCH);
        let _ = drive::run_blocking(
            &clock,
            |delay| clock.set(clock.get().saturating_add(delay)),
            |now| Call::new(&policy, Safety::NonIdempotent, now),
            || {
                draws.set(draws.get() + 1);
                1 << 63
            },
            classified,
            |attempt| if attempt.number == successful { Ok(()) } else { Err(refused) },
        );
        assert_eq!(draws.get(), (successful - 1).min(4), "success at attempt {successful}");
    }
}

#[test]
fn what_cannot_be_sent_twice_is_not_even_if_it_surely_was_not_processed() {
    let policy = constant().build().expect("valid");
    for (failure, stop) in [
        (Failure::transient().with_sent(Sent::No), Stop::Committed),
        (Failure::throttled().with_hint(Hint::after(secs(5))), Stop::Committed),
        (Failure::permanent(), Stop::Permanent),
        (Failure::quota(), Stop::Quota),
    ] {
        let timer = ManualTimer::new(Instant::EPOCH);
        let gave_up = timer.run(drive::run(
            &timer,
            &NoQueue,
            |now| Call::new(&policy, Safety::Once, now),
            || 0,
            classified,
            async |_| Err::<(), _>(failure),
        ));
        let gave_up = gave_up.expect_err("it always fails");
        assert_eq!((gave_up.stop, gave_up.attempts), (stop, 1), "{failure:?}");
        assert_eq!(gave_up.retry_after, failure.hint.delay());
    }
}
