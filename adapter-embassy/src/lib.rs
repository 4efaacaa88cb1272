//! [holdoff] on [embassy](https://embassy.dev): its clock, its sleep, and a fair queue at the rate
//! limiter, on bare metal.
//!
//! ```
//! use holdoff_embassy::{Classify, Failure, Policy, Random, retry};
//!
//! #[derive(Debug)]
//! enum SendError {
//!     NoRoute,
//!     TooLong,
//! }
//!
//! // Name what is worth another try; everything else is permanent.
//! impl Classify for SendError {
//!     fn classify(&self) -> Failure {
//!         match self {
//!             Self::NoRoute => Failure::transient(),
//!             Self::TooLong => Failure::permanent(),
//!         }
//!     }
//! }
//!
//! # futures_executor::block_on(async {
//! let mut random = Random::from_device_id(b"sensor 7"); // or from the chip's generator
//! let send = async || Ok::<_, SendError>(());
//! assert!(retry(&Policy::STANDARD, &mut random, send).await.is_ok());
//! # });
//! # let _ = (SendError::NoRoute, SendError::TooLong);
//! ```
//!
//! - [`retry`] and [`retry_when`]: an operation, a policy, and nothing else.
//! - [`Upstream`]: a service and all that guards it; [`Prepared`]: a call to it, with settings of
//!   its own.
//! - [`FairLimiter`]: a rate limiter at which tasks wait in line, first come, first served.
//! - [`Reconnect`]: a link that is meant to stay, connected again with care.
//! - [`Random`]: random numbers from a seed that somebody has to name.
//! - [`EmbassyTimer`]: the clock and the sleep, for [`drive::run`](holdoff::drive::run) by hand.
//!
//! No allocation, no `unsafe`, everything `const` and fit for a `static`. The binary brings
//! embassy's time driver and a critical section, as for embassy itself.
//!
//! # Features
//! None is on by default, and none changes what a call does.
//! - `defmt`: `Log`, an observer that logs by defmt, and `defmt::Format` for events, stop reasons
//!   and errors.
//!
//! # What this crate does not do
//! It decides nothing: when to try again, how long to wait and when to stop is [`holdoff`]'s
//! business. It spawns no task and holds no global state. A task has no storage of its own here, so
//! a call inside another's attempt has to be [told](Prepared::nested) so.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod limiter;
mod line;
#[cfg(feature = "defmt")]
mod log;
mod prepared;
mod random;
mod reconnect;
mod retry;
mod ticks;
mod timer;
mod upstream;

pub use holdoff::drive::{AcquireError, GaveUp};
pub use holdoff::{
    Attempt, AttemptKind, Backoff, BackoffConfig, BreakerChange, BreakerConfig, BreakerState,
    BudgetConfig, ChangeUnderWay, CircuitBreaker, Class, Classify, Clock, ConfigError, Counters,
    CountersSnapshot, DelaySource, Event, Failure, Hint, HintSpread, HintTooLong, Instant, Jitter,
    Mode, Observation, Observer, Policy, PolicyConfig, Quota, Rate, Ratio, Refusal, RetryBudget,
    Safety, Sent, Stop, Timer, UnhintedThrottle, valid,
};
pub use limiter::FairLimiter;
#[cfg(feature = "defmt")]
pub use log::Log;
pub use prepared::Prepared;
pub use random::Random;
pub use reconnect::Reconnect;
pub use retry::{retry, retry_when};
pub use timer::EmbassyTimer;
pub use upstream::Upstream;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
