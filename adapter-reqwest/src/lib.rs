//! TODO
#![forbid(unsafe_code)]

mod body;
mod classify;
mod codes;
mod engine;
mod error;
mod events;
mod guard;
mod guarded;
#[cfg(feature = "middleware")]
mod middleware;
mod nesting;
mod options;
#[cfg_attr(not(feature = "tracing"), path = "trace/untraced.rs")]
mod trace;
mod upstreams;

pub use classify::{classify_error, classify_response};
pub use codes::ErrorCode;
pub use error::{Error, TimedOut};
pub use events::{Event, Events, EventsError};
pub use guard::Guard;
pub use guarded::Guarded;
pub use holdoff::Outcome;
pub use holdoff_tokio::{
    Backoff, BackoffConfig, BreakerConfig, BudgetConfig, Class, Classify, Failure, GaveUp, Hint,
    HintSpread, Jitter, Keyed, Nesting, Policy, PolicyConfig, Quota, Rate, Ratio, Safety, Sent,
    Stop, UnhintedThrottle, Upstream, http, valid,
};
pub use nesting::nesting;
pub use options::{FinalFailure, RequestOptions};
pub use upstreams::Upstreams;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
