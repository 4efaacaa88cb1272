//! What a person reads when a call gave up.

use core::cell::Cell;
use core::error::Error;
use core::fmt;

use holdoff::drive::{self, GaveUp};
use holdoff::{
    BackoffConfig, Call, Classify, Failure, Hint, Instant, Limiter, Policy, PolicyConfig, Quota,
    Rate, Safety, Stop, classified,
};

use crate::common::secs;

/// The caller's own error.
#[derive(Debug, PartialEq)]
struct Unavailable(Failure);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unavailable")
    }
}

impl Error for Unavailable {}

impl Classify for Unavailable {
    fn classify(&self) -> Failure {
        self.0
    }
}

fn policy() -> Policy {
    let backoff = BackoffConfig::constant(secs(2)).build().expect("valid");
    PolicyConfig::new(backoff).with_max_attempts(3).build().expect("valid")
}

fn give_up(policy: &Policy, safety: Safety, failure: Failure) -> GaveUp<Unavailable> {
    let clock = Cell::new(Instant::EPOCH);
    let result = drive::run_blocking(
        &clock,
        |delay| clock.set(clock.get().saturating_add(delay)),
        |now| Call::new(policy, safety, now),
        || 0,
        classified,
        |_| Err::<(), _>(Unavailable(failure)),
    );
    result.expect_err("it always fails")
}

#[test]
fn a_call_that_gave_up_says_why_in_one_line() {
    let policy = policy();
    let hinted = |failure: Failure, hint| failure.with_hint(Hint::after(hint));
    for (failure, message) in [
        (Failure::transient(), "gave up after 3 attempts in 4s: no attempts left"),
        (
            hinted(Failure::throttled(), secs(1)),
            "gave up after 3 attempts in 2s: no attempts left; worth another try in 1s",
        ),
        (Failure::permanent(), "gave up after 1 attempt in 0ns: the failure is permanent"),
        (Failure::quota(), "gave up after 1 attempt in 0ns: a quota is used up"),
        (
            hinted(Failure::throttled(), secs(277_403)),
            "gave up after 1 attempt in 0ns: the server asks for a wait of 277403s, longer than \
             allowed; worth another try in 277403s",
        ),
        (
            hinted(Failure::throttled(), core::time::Duration::MAX),
            "gave up after 1 attempt in 0ns: the server asks for an endless wait",
        ),
    ] {
        let gave_up = give_up(&policy, Safety::Idempotent, failure);
        assert_eq!(gave_up.to_string(), message);
    }
    assert_eq!(
        give_up(&policy, Safety::NonIdempotent, Failure::transient()).to_string(),
        "gave up after 1 attempt in 0ns: the request may have been processed and is not safe to \
         repeat"
    );
    let deadline = policy.with_deadline(secs(3));
    assert_eq!(
        give_up(&deadline, Safety::Idempotent, Failure::transient()).to_string(),
        "gave up after 2 attempts in 2s: the deadline leaves no time for another attempt; worth \
         another try in 2s"
    );
}

#[test]
fn a_call_that_never_began_says_so() {
    let (clock, policy) = (Cell::new(Instant::EPOCH), policy());
    let limiter = Limiter::new(Quota::new(Rate::per_second(1), 100).expect("valid"));
    let gave_up = drive::run_blocking(
        &clock,
        |_| panic!("nothing to wait for"),
        |now| Call::new(&policy, Safety::Idempotent, now).with_limiter(&limiter, 101),
        || 0,
        classified,
        |_| Ok::<(), Unavailable>(()),
    );
    let gave_up = gave_up.expect_err("it costs too much");
    assert_eq!(gave_up.stop, Stop::CostTooHigh { burst: 100 });
    assert_eq!(
        gave_up.to_string(),
        "gave up after 0 attempts in 0ns: cost is above the limiter's burst of 100"
    );
    assert!(gave_up.source().is_none());
}

#[test]
fn the_source_is_the_callers_own_error() {
    let gave_up = give_up(&policy(), Safety::Idempotent, Failure::quota());
    let source = gave_up.source().expect("there was an attempt");
    assert_eq!(source.downcast_ref(), Some(&Unavailable(Failure::quota())));
}
