//! A rate and a burst, and how they fit one word.

use core::time::Duration;

use crate::config::ConfigError;
use crate::time::saturating_nanos;

/// Where a word or a slot keeps the number of the quota it belongs to.
pub(super) const TAG_SHIFT: u32 = 62;
const SPLIT_SHIFT: u32 = 56;
const PAYLOAD_MASK: u64 = (1 << SPLIT_SHIFT) - 1;
/// The longest time to refill a whole burst; also what makes every quota fit its payload.
const REFILL_MAX: u64 = 1 << 55;

/// Tokens per time.
///
/// ```
/// use core::time::Duration;
/// use holdoff::Rate;
///
/// assert_eq!(Rate::per_second(10), Rate::new(10, Duration::from_secs(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rate {
    tokens: u32,
    per: Duration,
}

impl Rate {
    /// `tokens` every `per`.
    #[must_use]
    pub const fn new(tokens: u32, per: Duration) -> Self {
        Self { tokens, per }
    }

    /// One token every `interval`.
    #[must_use]
    pub const fn every(interval: Duration) -> Self {
        Self::new(1, interval)
    }

    /// `tokens` a minute.
    #[must_use]
    pub const fn per_minute(tokens: u32) -> Self {
        Self::new(tokens, Duration::from_secs(60))
    }

    /// `tokens` a second.
    #[must_use]
    pub const fn per_second(tokens: u32) -> Self {
        Self::new(tokens, Duration::from_secs(1))
    }

    /// How many tokens come in the time they are counted [`per`](Self::per).
    #[must_use]
    pub const fn tokens(self) -> u32 {
        self.tokens
    }

    /// The time in which its [`tokens`](Self::tokens) come.
    #[must_use]
    pub const fn per(self) -> Duration {
        self.per
    }
}

/// A rate and a burst: what a [`Limiter`](crate::Limiter) lets through.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{ConfigError, Quota, Rate};
///
/// let quota = Quota::new(Rate::per_second(10), 20)?;
/// assert_eq!(quota.interval(), Duration::from_millis(100));
/// assert_eq!(Quota::new(Rate::per_second(0), 20), Err(ConfigError::RateZero));
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Quota {
    /// Nanoseconds per token.
    pub(super) interval: u64,
    pub(super) burst: u32,
}

impl Quota {
    /// `rate` on average and `burst` at once, `burst` being the whole of it, not an extra.
    ///
    /// The time per token is rounded up to a nanosecond, so the rate is never exceeded.
    ///
    /// # Errors
    /// [`ConfigError::BurstZero`], [`ConfigError::RateZero`], or [`ConfigError::RefillTooLong`] if
    /// `burst` tokens take more than 2⁵⁵ ns (about 417 days).
    pub const fn new(rate: Rate, burst: u32) -> Result<Self, ConfigError> {
        let per = saturating_nanos(rate.per);
        if burst == 0 {
            return Err(ConfigError::BurstZero);
        }
        if rate.tokens == 0 || per == 0 {
            return Err(ConfigError::RateZero);
        }
        let interval = per.div_ceil(rate.tokens as u64);
        if interval.saturating_mul(burst as u64) > REFILL_MAX {
            return Err(ConfigError::RefillTooLong);
        }
        Ok(Self { interval, burst })
    }

    /// The time per token, rounded up to a nanosecond.
    #[must_use]
    pub const fn interval(self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// How many tokens can be taken at once.
    #[must_use]
    pub const fn burst(self) -> u32 {
        self.burst
    }

    /// The time in which an empty bucket fills.
    pub(super) const fn refill(self) -> u64 {
        self.interval * self.burst as u64 // OK: checked against REFILL_MAX.
    }

    pub(crate) const fn packed(self, tag: u64) -> u64 {
        // It fits: if `burst - 1` has s bits, burst > 2^(s-1), so the interval, being at most
        // 2^55 / burst, is below 2^(56-s).
        let burst = self.burst as u64 - 1;
        let split = u64::BITS - burst.leading_zeros();
        tag << TAG_SHIFT | (split as u64) << SPLIT_SHIFT | self.interval << split | burst
    }

    pub(crate) const fn unpacked(slot: u64) -> Self {
        let split = slot >> SPLIT_SHIFT & 0x3f;
        let payload = slot & PAYLOAD_MASK;
        let burst = payload & ((1 << split) - 1);
        Self { interval: payload >> split, burst: low_u32(burst) + 1 }
    }
}

/// The low 32 bits of a number that the caller has shown to have no others.
#[expect(clippy::cast_possible_truncation, reason = "each caller proves that it fits")]
pub(super) const fn low_u32(wide: u64) -> u32 {
    wide as u32
}
