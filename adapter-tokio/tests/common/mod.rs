//! What several test files need.

#![allow(dead_code, reason = "no test file needs all of it")]

use core::future::{Future, poll_fn};
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

/// What `future` gives, if it does within `polls` polls; otherwise it is dropped in the last of
/// them, as the loser of a `select!` would be.
pub(crate) async fn within_polls<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut polled = 0;
    let output = poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polled >= polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    output.await
}
