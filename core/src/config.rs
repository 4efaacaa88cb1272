//! What can be wrong with a configuration, and how to refuse it at build time.

use core::error::Error;
use core::fmt;

/// A configuration that cannot work, found when it is built.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{BackoffConfig, ConfigError};
///
/// let upside_down = BackoffConfig::exponential(Duration::from_secs(10))
///     .with_max_delay(Duration::from_secs(1))
///     .build();
/// assert_eq!(upside_down, Err(ConfigError::BaseAboveMax));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigError {
    /// An attempt timeout of zero lets no attempt finish.
    AttemptTimeoutZero,
    /// The first delay is longer than the longest one.
    BaseAboveMax,
    /// A burst of zero admits nothing, ever.
    BurstZero,
    /// A factor below 1 makes delays shrink.
    FactorBelowOne,
    /// `max_attempts` counts the first call, so it is at least 1.
    MaxAttemptsZero,
    /// The shortest delay is longer than the longest one.
    MinAboveMax,
    /// A rate of no tokens, or of tokens per no time.
    RateZero,
    /// Refilling the whole burst takes longer than 2⁵⁵ ns (about 417 days).
    RefillTooLong,
}

impl ConfigError {
    /// What is wrong and what is allowed, in one line.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::AttemptTimeoutZero => "attempt timeout must not be zero",
            Self::BaseAboveMax => "base delay must not exceed the maximum delay",
            Self::BurstZero => "burst must be at least 1",
            Self::FactorBelowOne => "backoff factor must be at least 1",
            Self::MaxAttemptsZero => "max_attempts counts the first call and must be at least 1",
            Self::MinAboveMax => "minimum delay must not exceed the maximum delay",
            Self::RateZero => "rate must be at least one token in a time above zero",
            Self::RefillTooLong => "refilling the burst must take at most 2^55 ns (417 days)",
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl Error for ConfigError {}

/// Unwraps a configuration at compile time; a bad one does not compile.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Backoff, BackoffConfig, valid};
///
/// const BACKOFF: Backoff = valid!(
///     BackoffConfig::exponential(Duration::from_secs(1))
///         .with_max_delay(Duration::from_secs(30))
///         .build()
/// );
/// # let _ = BACKOFF;
/// ```
///
/// ```compile_fail
/// use core::time::Duration;
/// use holdoff::{BackoffConfig, valid};
///
/// let upside_down = valid!(
///     BackoffConfig::exponential(Duration::from_secs(10))
///         .with_max_delay(Duration::from_secs(1))
///         .build()
/// );
/// ```
#[macro_export]
macro_rules! valid {
    ($config:expr) => {
        const {
            match $config {
                ::core::result::Result::Ok(valid) => valid,
                ::core::result::Result::Err(error) => {
                    ::core::panic!("{}", $crate::ConfigError::message(error))
                }
            }
        }
    };
}
