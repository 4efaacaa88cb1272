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
//! - [`Upstream`]: a service and all that guards it; [`Prepared`]: a call to it, with settings of
//!   its own.
//! - [`failover`]: a call to the first of several upstreams that will serve it.
//! - [`FairLimiter`]: a rate limiter at which tasks wait in line, first come, first served.
//! - [`Keyed`]: a limiter or an upstream for each tenant, in bounded memory.
//! - `batch`: many jobs, so many at once, and dead letters for those given up.
//! - `config`: policies and upstreams from files, by serde, and from environment variables.
//! - [`TokioTimer`]: the clock and the sleep, for [`drive::run`](holdoff::drive::run) by hand.
//! - [`observe`]: what logs, traces and metrics show of it.
//!
//! Everything reads one clock, tokio's: under `tokio::time::pause` deadlines, backoff and limiter
//! move together and a test of a five-minute policy takes no time.
//!
//! # Features
//! None is on by default, and none changes what a call does.
//! - `batch`: the modules `batch` and `dead_letter`.
//! - `config`: the module `config`.
//! - `dead-letters`: dead letters into a file of JSON lines that survives a crash, and out again.
//! - `metrics`: counters, histograms and a gauge, through the `metrics` facade.
//! - `tracing`: a span of each call, and events of what happens in it.
//!
//! # What this crate does not do
//! It decides nothing: when to try again, how long to wait and when to stop is [`holdoff`]'s
//! business. It spawns no task, though a file of dead letters is written to on the pool for
//! blocking work, and keeps no global state but an epoch (and, with `metrics`, the names of
//! upstreams).

#![forbid(unsafe_code)]

#[cfg(feature = "batch")]
pub mod batch;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "batch")]
pub mod dead_letter;
mod failover;
mod keyed;
mod limiter;
mod line;
mod lines;
mod nesting;
pub mod observe;
mod prepared;
mod retry;
mod timer;
mod upstream;

pub use failover::{NoneServed, NotCalled, PreparedFailover, Served, failover};
pub use holdoff::drive::{AcquireError, GaveUp};
pub use holdoff::{
    Attempt, AttemptKind, Backoff, BackoffConfig, BreakerChange, BreakerConfig, BreakerState,
    BudgetConfig, CircuitBreaker, Class, Classify, Clock, ConfigError, Counters, CountersSnapshot,
    DelaySource, Event, Failover, Failure, Hint, HintSpread, Instant, Jitter, Mode, Observation,
    Observer, Policy, PolicyConfig, Quota, Rate, Ratio, Refusal, RetryBudget, Safety, Sent, Stop,
    UnhintedThrottle, http, valid,
};
pub use keyed::{Idle, Keyed, TableFull};
pub use limiter::FairLimiter;
pub use lines::Limit;
pub use nesting::Nesting;
pub use prepared::Prepared;
pub use retry::{Retry, retry, retry_when};
pub use timer::TokioTimer;
pub use upstream::Upstream;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
