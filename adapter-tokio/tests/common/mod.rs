//! What several test files need.

#![allow(dead_code, reason = "each test file uses its part of this")]

use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use holdoff_tokio::{BackoffConfig, Failure, FairLimiter, Policy, PolicyConfig, Quota, Rate};

/// Polls once, as a runtime would.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A policy of `attempts` with the same delay before each retry.
pub(crate) fn constant(attempts: u32, delay: Duration) -> PolicyConfig {
    let backoff = BackoffConfig::constant(delay).build().expect("a constant delay is valid");
    PolicyConfig::new(backoff).with_max_attempts(attempts)
}

pub(crate) fn built(config: PolicyConfig) -> Policy {
    config.build().expect("the policy is valid")
}

/// One token a second with a burst of `burst`, all of it taken.
pub(crate) async fn drained(burst: u32) -> FairLimiter {
    let quota = Quota::new(Rate::per_second(1), burst).expect("the quota is valid");
    let limiter = FairLimiter::new(quota);
    limiter.acquire(burst).await.expect("the burst itself fits");
    limiter
}

/// An operation that always fails transiently and counts how often it was called.
#[derive(Default)]
pub(crate) struct Failing {
    calls: AtomicU32,
}

impl Failing {
    pub(crate) fn call(&self) -> Result<(), Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Err(Failure::transient())
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// A future that is dropped when it is to be polled once more than so often; `None` then.
pub(crate) struct DropAt<F> {
    future: Option<Pin<Box<F>>>,
    polls: u32,
}

impl<F: Future> DropAt<F> {
    pub(crate) fn new(future: F, polls: u32) -> Self {
        Self { future: Some(Box::pin(future)), polls }
    }
}

impl<F: Future> Future for DropAt<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match (self.polls.checked_sub(1), &mut self.future) {
            (Some(left), Some(future)) => {
                let answer = future.as_mut().poll(context);
                self.polls = left;
                answer.map(Some)
            }
            _ => {
                self.future = None;
                Poll::Ready(None)
            }
        }
    }
}
