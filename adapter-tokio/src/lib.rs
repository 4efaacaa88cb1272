//! [holdoff] on tokio: its clock, its sleep, and a fair queue at the rate limiter.
//!
//! ```
//! use holdoff_tokio::{Classify, Failure, Policy, retry};
//!
//! #[derive(Debug)]
//! enum FetchError {
//!     Busy,
//!     BadRequest,
//! }
//!
//! // Name what is worth another try; everything else is permanent.
//! impl Classify for FetchError {
//!     fn classify(&self) -> Failure {
//!         match self {
//!             Self::Busy => Failure::transient(),
//!             Self::BadRequest => Failure::permanent(),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let mut answers = [Err(FetchError::Busy), Err(FetchError::Busy), Ok("hello")].into_iter();
//! let fetch = || {
//!     let answer = answers.next().unwrap();
//!     async move { answer }
//! };
//! let answer = retry(&Policy::INTERACTIVE, fetch).await;
//! assert_eq!(answer.unwrap(), "hello");
//! # let _ = FetchError::BadRequest;
//! # }
//! ```
//!
//! - [`retry`] and [`retry_when`]: an operation, a policy, and nothing else.
//! - [`FairLimiter`]: a rate limiter at which tasks wait in line, first come, first served.
//! - [`Upstream`]: one service with limiter, circuit breaker, retry budget and counters.
//! - `config` (a feature): policies and upstreams from files, by serde, and from environment
//!   variables.
//! - [`TokioTimer`]: the clock and the sleep, for [`drive::run`](holdoff::drive::run) by hand.
//!
//! Everything reads one clock, tokio's: under `tokio::time::pause` deadlines, backoff and limiter
//! move together and a test of a five-minute policy takes no time.
//!
//! # What this crate does not do
//! It decides nothing: when to try again, how long to wait and when to stop is [`holdoff`]'s
//! business. It spawns no task and keeps no global state but an epoch.

#![forbid(unsafe_code)]

#[cfg(feature = "config")]
pub mod config;
mod limiter;
mod line;
mod lines;
mod nesting;
mod prepared;
mod retry;
mod timer;
mod upstream;

pub use holdoff::drive::GaveUp;
pub use holdoff::{
    Attempt, Backoff, BackoffConfig, BreakerChange, BreakerConfig, BreakerState, BudgetConfig,
    CircuitBreaker, Class, Classify, ConfigError, Counters, CountersSnapshot, DelaySource, Event,
    Failure, Hint, HintSpread, Jitter, Mode, Observation, Observer, Policy, PolicyConfig, Quota,
    Rate, Ratio, Refusal, RetryBudget, Safety, Sent, Stop, UnhintedThrottle, http, valid,
};
pub use limiter::{AcquireError, FairLimiter};
pub use lines::Limit;
pub use nesting::Nesting;
pub use prepared::Prepared;
pub use retry::{Retry, retry, retry_when};
pub use timer::TokioTimer;
pub use upstream::Upstream;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;
