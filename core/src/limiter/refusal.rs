//! What a limiter says when it does not do as it is asked.

use core::error::Error;
use core::fmt;

use crate::time::Instant;

/// Why a limiter did not admit a request.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Instant, Limiter, Quota, Rate, Refusal};
///
/// let limiter = Limiter::new(Quota::new(Rate::per_second(1), 2)?);
/// let now = Instant::EPOCH;
/// assert_eq!(limiter.try_acquire(now, 3), Err(Refusal::Never { burst: 2 }));
/// assert_eq!(limiter.try_acquire(now, 2), Ok(()));
/// let until = now.saturating_add(Duration::from_secs(1));
/// assert_eq!(limiter.try_acquire(now, 1), Err(Refusal::NotYet { until }));
/// # Ok::<(), holdoff::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// The cost is above the burst: no wait is long enough. Nothing was taken.
    Never {
        /// The largest cost that can be admitted.
        burst: u32,
    },
    /// There are not enough tokens yet, or the limiter is paused. Nothing was taken.
    NotYet {
        /// The earliest instant at which asking again can succeed, if nobody else asks;
        /// [`Instant::MAX`], which is never, past the end of the limiter's time.
        until: Instant,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never { burst } => write!(f, "cost is above the burst of {burst}"),
            Self::NotYet { .. } => f.write_str("rate limit reached"),
        }
    }
}

impl Error for Refusal {}

/// Another change of a limiter's quota is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ChangeUnderWay;

impl fmt::Display for ChangeUnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another change of the quota is under way")
    }
}

impl Error for ChangeUnderWay {}
