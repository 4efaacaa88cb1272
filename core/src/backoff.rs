//! How long to wait before a retry: a pure function of (retry number, previous delay, sample).

mod growth;
mod shape;

use core::time::Duration;

use self::growth::grow;
use self::shape::Shape;
use crate::config::ConfigError;
use crate::ratio::Ratio;
use crate::time::{duration, saturating_nanos};
use crate::wide::high_half;

/// How a delay is spread so that clients who failed together do not return together.
///
/// Each kind turns the schedule's envelope `w = min(base · factorⁿ, cap)` into a range from which
/// the delay is drawn uniformly, in whole nanoseconds, both ends included. The cap is chosen so
/// that the whole range stays at or below `max_delay`: jitter neither exceeds the maximum nor
/// vanishes at it.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{BackoffConfig, Jitter, Ratio};
///
/// let ten_percent = Jitter::Proportional(Ratio::percent(10));
/// let backoff = BackoffConfig::exponential(Duration::from_millis(500))
///     .with_jitter(ten_percent)
///     .build()?;
/// let (shortest, longest) = backoff.bounds(2, Duration::ZERO);
/// assert_eq!((shortest.as_millis(), longest.as_millis()), (900, 1100));
/// # Ok::<(), holdoff::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Jitter {
    /// `[w, w·(1+j)]`: the minimum is unchanged. With no maximum this is plain exponential backoff
    /// plus `U(0, w·j)`; `j = 0` is plain exponential exactly.
    Additive(Ratio),
    /// `[base, min(3·previous, max)]`: each delay starts from the one before, not from the retry
    /// number (Brooker, "Exponential Backoff And Jitter", 2015). `previous` starts at `base`.
    Decorrelated,
    /// `[w/2, w]` (Brooker 2015).
    Equal,
    /// `[0, w]`, the default: fewest calls and the widest spread (Brooker 2015). Its mean is w/2.
    #[default]
    Full,
    /// `[w, w]`: everybody returns at the same instant. For tests and for a single client.
    None,
    /// `[w·(1−j), w·(1+j)]`.
    Proportional(Ratio),
    /// `[w·(1−j), w]`: the rule of the official LLM SDKs with `j` = 25 %.
    Shortening(Ratio),
}

/// A backoff schedule under construction.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{BackoffConfig, Jitter, Ratio};
///
/// let backoff = BackoffConfig::exponential(Duration::from_millis(500))
///     .with_max_delay(Duration::from_secs(8))
///     .with_jitter(Jitter::Shortening(Ratio::percent(25)))
///     .build()?;
/// let (shortest, longest) = backoff.bounds(1, Duration::ZERO);
/// assert_eq!((shortest.as_millis(), longest.as_millis()), (375, 500));
/// # Ok::<(), holdoff::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a configuration does nothing until it is built"]
pub struct BackoffConfig {
    base: Duration,
    factor: Ratio,
    jitter: Jitter,
    max_delay: Duration,
    min_delay: Duration,
}

impl BackoffConfig {
    /// Delays that double from `base`, with full jitter, no minimum and no maximum.
    ///
    /// A `base` of zero means no wait at all.
    pub const fn exponential(base: Duration) -> Self {
        Self {
            base,
            factor: Ratio::ppm(2_000_000),
            jitter: Jitter::Full,
            max_delay: Duration::MAX,
            min_delay: Duration::ZERO,
        }
    }

    /// The same delay before every retry, without jitter.
    pub const fn constant(delay: Duration) -> Self {
        Self::exponential(delay).with_factor(Ratio::ONE).with_jitter(Jitter::None)
    }

    /// What the envelope is multiplied by from one retry to the next. Defaults to 2.
    ///
    /// Must be at least 1.
    pub const fn with_factor(self, factor: Ratio) -> Self {
        Self { factor, ..self }
    }

    /// How delays are spread. Defaults to [`Jitter::Full`].
    pub const fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// The longest delay, jitter included: a hard bound. Defaults to none.
    ///
    /// Must be at least the base and at least the minimum.
    pub const fn with_max_delay(self, max_delay: Duration) -> Self {
        Self { max_delay, ..self }
    }

    /// The shortest delay, jitter included. Defaults to zero.
    ///
    /// A range that begins below it is moved up to begin there, so that delays stay spread, and is
    /// then cut at the maximum. Must not exceed the maximum.
    pub const fn with_min_delay(self, min_delay: Duration) -> Self {
        Self { min_delay, ..self }
    }

    /// The finished schedule.
    ///
    /// # Errors
    /// [`ConfigError::BaseAboveMax`], [`ConfigError::FactorBelowOne`],
    /// [`ConfigError::MinAboveMax`].
    pub const fn build(self) -> Result<Backoff, ConfigError> {
        let base = saturating_nanos(self.base);
        let max = saturating_nanos(self.max_delay);
        let min = saturating_nanos(self.min_delay);
        if self.factor.as_ppm() < Ratio::ONE.as_ppm() {
            return Err(ConfigError::FactorBelowOne);
        }
        if base > max {
            return Err(ConfigError::BaseAboveMax);
        }
        if min > max {
            return Err(ConfigError::MinAboveMax);
        }
        let cap = match self.jitter {
            Jitter::Additive(ratio) | Jitter::Proportional(ratio) => ratio.leaving_room_in(max),
            _ => max,
        };
        let Self { factor, jitter, .. } = self;
        Ok(Backoff { base, cap, factor, jitter, max, min, shape: Shape::of(factor, jitter) })
    }
}

/// A validated backoff schedule: plain data, evaluated without state, clock or random generator.
///
/// Every input is ordinary: retry `u32::MAX`, [`Duration::MAX`] and any sample give a delay within
/// the bounds. The envelope is exact where the power of the factor has at most 64 significant bits
/// (always for 1 and 2); elsewhere it is rounded up to a nanosecond, give or take one part in 2³⁷.
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
/// // Full jitter: the sample picks the place in [0, ceiling].
/// assert_eq!(BACKOFF.delay(3, Duration::ZERO, 0), Duration::ZERO);
/// assert_eq!(BACKOFF.delay(3, Duration::ZERO, u64::MAX), Duration::from_secs(4));
/// assert_eq!(BACKOFF.delay(u32::MAX, Duration::ZERO, u64::MAX), Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Backoff {
    base: u64,
    /// The envelope's bound: `max` less the room that upward jitter needs.
    cap: u64,
    factor: Ratio,
    jitter: Jitter,
    max: u64,
    min: u64,
    shape: Shape,
}

impl Backoff {
    /// The delay before retry number `retry` (1 is the first; 0 counts as 1).
    ///
    /// `previous` is the delay drawn before the previous retry, [`Duration::ZERO`] before the
    /// first; only [`Jitter::Decorrelated`] reads it. `sample` must be uniform over all of `u64`.
    #[must_use]
    pub const fn delay(&self, retry: u32, previous: Duration, sample: u64) -> Duration {
        let (shortest, longest) = self.range(retry, saturating_nanos(previous));
        duration(draw(shortest, longest, sample))
    }

    /// The envelope before the first retry.
    #[must_use]
    pub const fn base(&self) -> Duration {
        duration(self.base)
    }

    /// What the envelope is multiplied by from one retry to the next.
    #[must_use]
    pub const fn factor(&self) -> Ratio {
        self.factor
    }

    /// How delays are spread.
    #[must_use]
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// The longest delay, jitter included; `u64::MAX` nanoseconds if there is none.
    #[must_use]
    pub const fn max_delay(&self) -> Duration {
        duration(self.max)
    }

    /// The shortest delay, jitter included.
    #[must_use]
    pub const fn min_delay(&self) -> Duration {
        duration(self.min)
    }

    /// The shortest and the longest delay before retry number `retry`, both reachable.
    #[must_use]
    pub const fn bounds(&self, retry: u32, previous: Duration) -> (Duration, Duration) {
        let (shortest, longest) = self.range(retry, saturating_nanos(previous));
        (duration(shortest), duration(longest))
    }

    /// The envelope before jitter: `min(base · factor^(retry−1), cap)`.
    #[must_use]
    pub const fn envelope(&self, retry: u32) -> Duration {
        duration(self.envelope_nanos(retry))
    }

    /// The schedule as an endless iterator, drawing one sample a delay.
    ///
    /// ```
    /// use core::time::Duration;
    /// use holdoff::BackoffConfig;
    ///
    /// let backoff = BackoffConfig::exponential(Duration::from_secs(1)).build()?;
    /// let longest: Vec<u64> = backoff.delays(|| u64::MAX).take(5).map(|d| d.as_secs()).collect();
    /// assert_eq!(longest, [1, 2, 4, 8, 16]);
    /// # Ok::<(), holdoff::ConfigError>(())
    /// ```
    pub const fn delays<R: FnMut() -> u64>(self, random: R) -> Delays<R> {
        Delays { backoff: self, retry: 0, previous: Duration::ZERO, random }
    }

    const fn range(&self, retry: u32, previous: u64) -> (u64, u64) {
        let (low, high) = match self.jitter {
            Jitter::Decorrelated => {
                let from = if previous > self.base { previous } else { self.base };
                (self.base, min(from.saturating_mul(3), self.max))
            }
            jitter => {
                let w = self.envelope_nanos(retry);
                let j = match jitter {
                    Jitter::Additive(ratio)
                    | Jitter::Proportional(ratio)
                    | Jitter::Shortening(ratio) => ratio.of(w),
                    Jitter::Equal => w / 2,
                    Jitter::Full => w,
                    Jitter::None | Jitter::Decorrelated => 0,
                };
                // w + j <= max, because w <= cap.
                match jitter {
                    Jitter::Additive(_) => (w, w.saturating_add(j)),
                    Jitter::Proportional(_) => (w.saturating_sub(j), w.saturating_add(j)),
                    _ => (w.saturating_sub(j), w),
                }
            }
        };
        self.lifted(low, high)
    }

    const fn lifted(&self, low: u64, high: u64) -> (u64, u64) {
        if low >= self.min {
            return (low, high); // At most `max` by the cap.
        }
        (self.min, min(high.saturating_add(self.min - low), self.max))
    }

    const fn envelope_nanos(&self, retry: u32) -> u64 {
        min(grow(self.base, self.factor, retry.saturating_sub(1)), self.cap)
    }
}

/// The delays of a [`Backoff`], one after another, without end.
///
/// It is `None` never; how many retries to make is the caller's business (`take`). Retry number
/// `u32::MAX` repeats.
#[derive(Clone, Debug)]
#[must_use = "iterators are lazy"]
pub struct Delays<R> {
    backoff: Backoff,
    retry: u32,
    previous: Duration,
    random: R,
}

impl<R: FnMut() -> u64> Iterator for Delays<R> {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.retry = self.retry.saturating_add(1);
        self.previous = self.backoff.delay(self.retry, self.previous, (self.random)());
        Some(self.previous)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// A value of `low..=high`, picked by a uniform `sample`.
///
/// Multiply-and-shift instead of a remainder: no division, and each value is hit by within one
/// part in 2⁶⁴ as many samples as any other.
pub(crate) const fn draw(low: u64, high: u64, sample: u64) -> u64 {
    match high.saturating_sub(low).checked_add(1) {
        // sample < 2^64, so the product's high half is below the count.
        Some(count) => low + high_half(count, sample),
        None => sample, // Anything goes.
    }
}

const fn min(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_reaches_both_ends_and_never_wraps() {
        for (low, high) in [(0, 0), (5, 5), (0, u64::MAX), (u64::MAX, u64::MAX), (7, 9)] {
            assert_eq!(draw(low, high, 0), low);
            assert_eq!(draw(low, high, u64::MAX), high);
        }
    }
}
