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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConfigError {
    /// An attempt timeout of zero lets no attempt finish.
    AttemptTimeoutZero,
    /// The first delay is longer than the longest one.
    BaseAboveMax,
    /// A rule over time needs a breaker with buckets:
    /// [`build_with_buckets`](crate::BreakerConfig::build_with_buckets).
    BreakerBuckets,
    /// A breaker's rule can never trip it, or always does.
    BreakerRule,
    /// A budget must hold at least its reserve and 1 retry, and at most 68,719.
    BudgetCapacity,
    /// A burst of zero admits nothing, ever.
    BurstZero,
    /// A factor below 1 makes delays shrink.
    FactorBelowOne,
    /// A probe that holds its slot for no time does not hold it.
    LeaseZero,
    /// `max_attempts` counts the first call, so it is at least 1.
    MaxAttemptsZero,
    /// The shortest delay is longer than the longest one.
    MinAboveMax,
    /// A breaker must stay open for some time, and for no longer than its maximum, at most 49 days.
    OpenPeriod,
    /// The number of probes that close a breaker is out of range.
    Probes,
    /// A rate of no tokens, or of tokens per no time.
    RateZero,
    /// A share of something cannot be more than all of it.
    RatioAboveOne,
    /// Refilling the whole burst takes longer than 2⁵⁵ ns (about 417 days).
    RefillTooLong,
    /// If every call is slow, every success is a failure.
    SlowCallZero,
}

impl ConfigError {
    /// What is wrong and what is allowed, in one line.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::AttemptTimeoutZero => "attempt timeout must not be zero",
            Self::BaseAboveMax => "base delay must not exceed the maximum delay",
            Self::BreakerBuckets => {
                "a rate over time needs a breaker with buckets: build_with_buckets::<10>()"
            }
            Self::BreakerRule => {
                "breaker must trip on at least 1 failure in a row, on a share above 0 and at most \
                 1 of at least 1 of at most 32 outcomes, or on a share below 1 of at least 1 call \
                 in a span whose periods are 1 ms to 49 days"
            }
            Self::BudgetCapacity => {
                "budget capacity must be 1 to 68719 retries and at least the reserve"
            }
            Self::BurstZero => "burst must be at least 1",
            Self::FactorBelowOne => "backoff factor must be at least 1",
            Self::LeaseZero => "probe lease must not be zero",
            Self::MaxAttemptsZero => "max_attempts counts the first call and must be at least 1",
            Self::MinAboveMax => "minimum delay must not exceed the maximum delay",
            Self::OpenPeriod => {
                "open period must be above zero and at most the maximum open period, which must \
                 be at most 49 days"
            }
            Self::Probes => "number of probes must be 1 to 15",
            Self::RateZero => "rate must be at least one token in a time above zero",
            Self::RatioAboveOne => "ratio must be at most 1",
            Self::SlowCallZero => "slow call must be above zero",
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
