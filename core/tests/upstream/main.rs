//! One service with everything attached: limiter, breaker, budget, counters, through whole calls.

#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod dropped;
mod order;
mod outcomes;
mod panics;
mod responses;
mod retries;
mod slow;
mod watched;

use std::sync::Mutex;

use holdoff::{
    Attempt, BackoffConfig, BreakerConfig, BudgetConfig, Call, CircuitBreaker, Event, Failure,
    Instant, Limiter, Observation, Observer, Outcome, Policy, PolicyConfig, Quota, Rate, Ratio,
    RetryBudget, Safety, Step, Upstream,
};

use common::{at, secs};

/// One second before each retry, four of them.
const POLICY: Policy = {
    const BACKOFF: holdoff::Backoff = holdoff::valid!(BackoffConfig::constant(secs(1)).build());
    holdoff::valid!(PolicyConfig::new(BACKOFF).build())
};

/// Trips after so many failures in a row, for 10 s.
fn breaker(failures: u32) -> CircuitBreaker {
    BreakerConfig::consecutive(failures).build().expect("valid")
}

/// So many retries and none to come.
fn budget(reserve: u32) -> RetryBudget {
    BudgetConfig::new(reserve, Ratio::ZERO).build().expect("valid")
}

/// One token every `seconds`.
fn limiter(seconds: u64, burst: u32) -> Limiter {
    Limiter::new(Quota::new(Rate::every(secs(seconds)), burst).expect("valid"))
}

/// Makes the breaker of `upstream` open for 10 s from `now` on.
fn trip(upstream: &Upstream, now: Instant) {
    let breaker = upstream.breaker().expect("it has one");
    while let Ok(permit) = breaker.try_acquire(now) {
        permit.failure(now, || 0);
    }
}

fn call<'a>(upstream: &'a Upstream, now: Instant) -> Call<'a> {
    upstream.call(&POLICY, Safety::Idempotent, now)
}

fn poll(call: &mut Call<'_>, now: Instant) -> Step {
    call.poll(now, || 0)
}

/// Polls a call that starts an attempt.
fn start(call: &mut Call<'_>, now: Instant) -> Attempt {
    match poll(call, now) {
        Step::Attempt(attempt) => attempt,
        step => panic!("{step:?} instead of an attempt at {now:?}"),
    }
}

fn fail(call: &mut Call<'_>, now: Instant) {
    call.record(now, Outcome::Failure(Failure::transient()), || 0);
}

fn succeed(call: &mut Call<'_>, now: Instant) {
    call.record(now, Outcome::Success, || 0);
}

fn level(upstream: &Upstream) -> u32 {
    upstream.budget().expect("it has one").level(at(secs(0)))
}

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Recorder {
    observations: Mutex<Vec<Observation>>,
}

impl Recorder {
    /// One that lives as long as an upstream wants it to.
    fn forever() -> &'static Self {
        Box::leak(Box::default())
    }

    /// What it was told since it was last asked.
    fn take(&self) -> Vec<Observation> {
        core::mem::take(&mut self.observations.lock().expect("nobody panics here"))
    }

    fn events(&self) -> Vec<Event> {
        self.take().iter().map(|observation| observation.event).collect()
    }
}

impl Observer for Recorder {
    fn on_event(&self, observation: &Observation) {
        self.observations.lock().expect("nobody panics here").push(*observation);
    }
}
