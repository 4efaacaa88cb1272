//! Policies and upstreams from files and from environment variables (feature `config`).
//!
//! [`UpstreamConfig`] reads from any self-describing format of serde, and writes to it again.
//! Nothing is silently ignored or rounded: a key that is unknown, given twice or without effect is
//! an error, which names the key, what it says and what is allowed.
//!
//! ```
//! use holdoff_tokio::config::UpstreamConfig;
//!
//! let config: UpstreamConfig = toml::from_str("retry = { preset = 'llm', max_attempts = 3 }")?;
//! let upstream = config.overridden_by_env("LLM")?.build()?;
//! assert_eq!(upstream.policy().max_attempts().get(), 3);
//!
//! let wrong = "retry = { base_delay = '-5s' }";
//! let error = toml::from_str::<UpstreamConfig>(wrong).unwrap_err();
//! assert!(error.to_string().contains(
//!     "retry.base_delay: negative: must be a duration such as \"250ms\", at most max_delay, \
//!      got \"-5s\""
//! ));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keys
//! ```toml
#![doc = include_str!("config/complete.toml")]
//! ```
//!
//! Numbers may be quoted. A key that is null, where a format has that, is absent.
//! A key that is absent leaves its default, or what the preset has, unchanged: one key changes one
//! thing.
//!
//! # Variables
//! Each key has a variable: the prefix, and the path in capitals, without the word of the limiter.
//! With the prefix `LLM`:
//!
//! | key | variable |
//! |---|---|
//! | `retry.max_attempts` | `LLM_RETRY_MAX_ATTEMPTS` |
//! | `retry.throttled.base_delay` | `LLM_RETRY_THROTTLED_BASE_DELAY` |
//! | `limiter.rate`, `.burst`, `.max_waiting` | `LLM_RATE`, `LLM_BURST`, `LLM_MAX_WAITING` |
//! | `breaker.open_period` | `LLM_BREAKER_OPEN_PERIOD` |
//! | `budget.ratio` | `LLM_BUDGET_RATIO` |
//!
//! They hold what the file would, without its quotation marks, blanks around it allowed. So
//! `LLM_RETRY_JITTER` is a share j of 0 to 1 that makes waits of w last w to w·(1+j), 0 being plain
//! exponential backoff exactly; or a kind, such as `full` or `proportional 10%`.
//!
//! Unset means unchanged. An empty variable is an error, not a way to unset: whoever meant a value
//! and lost it would not learn otherwise. Any other variable that begins with `LLM_RETRY_`,
//! `LLM_LIMITER_`, `LLM_BREAKER_` or `LLM_BUDGET_` is an error, too, as it is likely a typo.

mod breaker;
mod env;
mod error;
mod limiter;
mod raw;
mod retry;
mod schedule;
mod section;
mod text;
mod upstream;
mod value;

pub use breaker::{BUCKETS, BreakerSection};
pub use error::SettingError;
pub use limiter::{BudgetSection, LimiterSection};
pub use retry::RetrySection;
pub use schedule::ScheduleSection;
pub use upstream::UpstreamConfig;
pub use value::{OrNone, Preset, Throttle};
