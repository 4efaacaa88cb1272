//! When a breaker trips, how long it stays open, and how it comes back: plain data.

use core::time::Duration;

use super::CircuitBreaker;
use super::word::Rule;
use crate::config::ConfigError;
use crate::ratio::Ratio;
use crate::time::saturating_nanos;
use crate::wide::{divided_up, high_half};

/// A [`CircuitBreaker`] under construction: when it trips, how long it stays open, how it comes
/// back.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{BreakerConfig, CircuitBreaker, Ratio, valid};
///
/// static BREAKER: CircuitBreaker = valid!(
///     BreakerConfig::rate(20, Ratio::percent(50))
///         .with_open_period(Duration::from_secs(10))
///         .with_slow_call(Duration::from_secs(5))
///         .build()
/// );
/// # let _ = &BREAKER;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a configuration does nothing until it is built"]
pub struct BreakerConfig {
    rule: Trip,
    lease: Option<Duration>,
    max_open_period: Duration,
    open_jitter: Ratio,
    open_period: Duration,
    probes: u8,
    slow_call: Option<Duration>,
    stable_period: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Trip {
    Consecutive { failures: u32 },
    OverTime { span: Duration, least: u16, threshold: Ratio },
    Rate { window: u8, least: u8, threshold: Ratio },
}

impl BreakerConfig {
    const fn new(rule: Trip) -> Self {
        Self {
            rule,
            lease: None,
            max_open_period: Duration::from_secs(300),
            open_jitter: Ratio::ZERO,
            open_period: Duration::from_secs(10),
            probes: 1,
            slow_call: None,
            stable_period: Duration::from_secs(60),
        }
    }

    /// Trips after `failures` failures in a row.
    ///
    /// Must not be zero.
    pub const fn consecutive(failures: u32) -> Self {
        Self::new(Trip::Consecutive { failures })
    }

    /// Trips when at least `threshold` of the last `window` outcomes are failures, as soon as the
    /// window is full. Successes and failures are judged alike: either can complete the window.
    ///
    /// `window` must be 1 to 32, `threshold` above 0 and at most 1.
    pub const fn rate(window: u8, threshold: Ratio) -> Self {
        Self::new(Trip::Rate { window, least: window, threshold })
    }

    /// Trips when more than `threshold` of the outcomes in the last `span` are failures, of which
    /// there must be at least [`min_calls`](Self::with_min_calls) (20 if not set).
    ///
    /// For a breaker with `BUCKETS` of at least 1: the span is covered by so many periods (whole
    /// milliseconds, rounded up), the oldest of which is dropped whole. `span` must be above zero,
    /// a period at most 49 days, `threshold` below 1.
    ///
    /// After 2³¹ periods without an outcome (204 years of 3 s, 24 days of 1 ms), or a leap of the
    /// clock that is as long, it takes old outcomes for new ones.
    ///
    /// ```
    /// use core::time::Duration;
    /// use holdoff::{BreakerConfig, CircuitBreaker, Ratio, valid};
    ///
    /// // More than 50 % for 30 s.
    /// static BREAKER: CircuitBreaker<10> = valid!(
    ///     BreakerConfig::rate_over(Duration::from_secs(30), Ratio::percent(50))
    ///         .build_with_buckets()
    /// );
    /// # let _ = &BREAKER;
    /// ```
    pub const fn rate_over(span: Duration, threshold: Ratio) -> Self {
        Self::new(Trip::OverTime { span, least: 20, threshold })
    }

    /// How many outcomes a rate needs before it is judged; without effect on consecutive failures.
    ///
    /// Must not be zero, and for a [`rate`](Self::rate) at most its window, which is the default.
    #[expect(clippy::cast_possible_truncation, reason = "the arm is for what fits")]
    pub const fn with_min_calls(self, least: u16) -> Self {
        let rule = match self.rule {
            Trip::Consecutive { .. } => self.rule,
            Trip::OverTime { span, threshold, .. } => Trip::OverTime { span, least, threshold },
            Trip::Rate { window, threshold, .. } if least <= window as u16 => {
                Trip::Rate { window, least: least as u8, threshold }
            }
            // Refused when built, as 0 is.
            Trip::Rate { window, threshold, .. } => Trip::Rate { window, least: 0, threshold },
        };
        Self { rule, ..self }
    }

    /// How long it stays open after the first trip (milliseconds, rounded up). Defaults to 10 s.
    ///
    /// Must not be zero. Doubles each time a probe fails, up to the maximum and 15 times at most.
    pub const fn with_open_period(self, open_period: Duration) -> Self {
        Self { open_period, ..self }
    }

    /// The longest open period, jitter included (milliseconds, rounded up). Defaults to 5 minutes.
    ///
    /// Must be at least the open period and at most 49 days.
    pub const fn with_max_open_period(self, max_open_period: Duration) -> Self {
        Self { max_open_period, ..self }
    }

    /// By how much of itself an open period is randomly lengthened (percent, rounded up), so that
    /// many clients do not probe together. Defaults to none.
    ///
    /// Must be at most 1.
    pub const fn with_open_jitter(self, open_jitter: Ratio) -> Self {
        Self { open_jitter, ..self }
    }

    /// How many probes must succeed, one after another, to close it. Defaults to 1.
    ///
    /// Must be 1 to 15.
    pub const fn with_probes(self, probes: u8) -> Self {
        Self { probes, ..self }
    }

    /// How long a probe may stay silent before another takes its place (milliseconds, rounded up).
    /// Defaults to the open period.
    ///
    /// Must not be zero; at most 49 days. The lease of a [`Call`](crate::Call) begins when its
    /// attempt's timeout is over, or the longest open period if it has none: a service that answers
    /// slowly can still close the breaker. Whoever asks for permits by hand sets a lease that is
    /// longer than the slowest answer.
    pub const fn with_lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Counts a success that took longer than this as a failure (milliseconds, rounded up).
    /// Defaults to never.
    ///
    /// Must not be zero.
    pub const fn with_slow_call(self, slow_call: Duration) -> Self {
        Self { slow_call: Some(slow_call), ..self }
    }

    /// How long it must have been closed for the next open period to start from its base again
    /// (seconds, rounded up, at most 18 hours). Defaults to 60 s.
    pub const fn with_stable_period(self, stable_period: Duration) -> Self {
        Self { stable_period, ..self }
    }

    /// The finished breaker: closed, nothing counted. For a [`rate_over`](Self::rate_over) it is
    /// [`build_with_buckets`](Self::build_with_buckets).
    ///
    /// ```
    /// use core::time::Duration;
    /// use holdoff::{BreakerConfig, ConfigError, Ratio};
    ///
    /// let ten = Duration::from_secs(10);
    /// for (config, error) in [
    ///     (BreakerConfig::rate(0, Ratio::percent(50)), ConfigError::BreakerRule),
    ///     (BreakerConfig::consecutive(5).with_lease(Duration::ZERO), ConfigError::LeaseZero),
    ///     (
    ///         BreakerConfig::consecutive(5).with_open_period(ten).with_max_open_period(ten / 2),
    ///         ConfigError::OpenPeriod,
    ///     ),
    /// ] {
    ///     assert_eq!(config.build().unwrap_err(), error);
    /// }
    /// ```
    ///
    /// In a constant none of them compiles:
    ///
    /// ```compile_fail
    /// use core::time::Duration;
    /// use holdoff::{BreakerConfig, CircuitBreaker, valid};
    ///
    /// static BREAKER: CircuitBreaker =
    ///     valid!(BreakerConfig::consecutive(5).with_lease(Duration::ZERO).build());
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::BreakerBuckets`], [`ConfigError::BreakerRule`], [`ConfigError::LeaseZero`],
    /// [`ConfigError::OpenPeriod`], [`ConfigError::Probes`], [`ConfigError::RatioAboveOne`],
    /// [`ConfigError::SlowCallZero`].
    #[cfg(not(loom))]
    pub const fn build(self) -> Result<CircuitBreaker, ConfigError> {
        self.build_with_buckets()
    }

    /// The finished breaker.
    ///
    /// # Errors
    /// As outside of models.
    #[cfg(loom)]
    pub fn build(self) -> Result<CircuitBreaker, ConfigError> {
        self.build_with_buckets()
    }

    /// The finished breaker, with `BUCKETS` periods to count in. A [`rate_over`](Self::rate_over)
    /// needs at least 1; the other rules leave them unused.
    ///
    /// ```
    /// use core::time::Duration;
    /// use holdoff::{BreakerConfig, ConfigError, Ratio};
    ///
    /// let config = BreakerConfig::rate_over(Duration::from_secs(30), Ratio::percent(50));
    /// assert!(config.build_with_buckets::<10>().is_ok());
    /// assert_eq!(config.build().unwrap_err(), ConfigError::BreakerBuckets);
    /// ```
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    #[cfg(not(loom))]
    pub const fn build_with_buckets<const BUCKETS: usize>(
        self,
    ) -> Result<CircuitBreaker<BUCKETS>, ConfigError> {
        match self.terms(BUCKETS) {
            Ok(terms) => Ok(CircuitBreaker::new(terms)),
            Err(error) => Err(error),
        }
    }

    /// The finished breaker.
    ///
    /// # Errors
    /// As outside of models.
    #[cfg(loom)]
    pub fn build_with_buckets<const BUCKETS: usize>(
        self,
    ) -> Result<CircuitBreaker<BUCKETS>, ConfigError> {
        self.terms(BUCKETS).map(CircuitBreaker::new)
    }

    const fn terms(self, buckets: usize) -> Result<Terms, ConfigError> {
        let Some(rule) = self.rule.checked(buckets) else {
            return Err(match (self.rule, buckets) {
                (Trip::OverTime { .. }, 0) => ConfigError::BreakerBuckets,
                _ => ConfigError::BreakerRule,
            });
        };
        if self.probes == 0 || self.probes > 15 {
            return Err(ConfigError::Probes);
        }
        if self.open_jitter.as_ppm() > Ratio::ONE.as_ppm() {
            return Err(ConfigError::RatioAboveOne);
        }
        let (open, max) = (millis(self.open_period), millis(self.max_open_period));
        if open == 0 || open > max || saturating_nanos(self.max_open_period) > MILLIS_MAX {
            return Err(ConfigError::OpenPeriod);
        }
        let lease = match self.lease {
            Some(lease) => millis(lease),
            None => open,
        };
        if lease == 0 {
            return Err(ConfigError::LeaseZero);
        }
        let slow = match self.slow_call {
            Some(Duration::ZERO) => return Err(ConfigError::SlowCallZero),
            Some(slow_call) => millis(slow_call),
            None => u32::MAX,
        };
        let jitter = percent(self.open_jitter);
        let stable = seconds(self.stable_period);
        Ok(Terms { rule, lease, max, open, slow, stable, jitter, probes: self.probes })
    }
}

impl Trip {
    /// The rule in the breaker's own units, if it can trip at all and does not always.
    const fn checked(self, buckets: usize) -> Option<Rule> {
        const ALL: u32 = Ratio::ONE.as_ppm();
        match self {
            Self::Consecutive { failures } if failures > 0 => Some(Rule::Consecutive { failures }),
            Self::Rate { window, least, threshold } => {
                let ppm = threshold.as_ppm();
                let works = 1 <= least && least <= window && window <= 32 && 0 < ppm && ppm <= ALL;
                if works { Some(Rule::Rate { window, least, ppm }) } else { None }
            }
            Self::OverTime { span, least, threshold } if buckets > 0 => {
                let span = saturating_nanos(span).div_ceil(buckets as u64);
                let (period, ppm) = (millis(Duration::from_nanos(span)), threshold.as_ppm());
                let works = period > 0 && span <= MILLIS_MAX && least > 0 && ppm < ALL;
                if works { Some(Rule::OverTime { least, period, ppm }) } else { None }
            }
            Self::Consecutive { .. } | Self::OverTime { .. } => None,
        }
    }
}

/// A validated configuration in the breaker's own units, 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) rule: Rule,
    // Milliseconds.
    pub(super) lease: u32,
    max: u32,
    open: u32,
    pub(super) slow: u32,
    /// Seconds.
    stable: u16,
    /// Percent.
    jitter: u8,
    pub(super) probes: u8,
}

impl Terms {
    /// The longest open period (ms).
    pub(super) const fn max_open_period(&self) -> u64 {
        self.max as u64
    }

    /// The length (ms) of an open period that has grown `step` times.
    pub(super) const fn open_period(&self, step: u8, sample: u64) -> u64 {
        let jitter = self.jitter as u32;
        // Capped where the jitter still fits above it, as a backoff is, but never below its base.
        let cap = max(scaled(self.max, 100, 100 + jitter), self.open);
        // OK: step is at most 15, and what is shifted out of `open` is looked at before.
        let period = if self.open > cap >> step { cap } else { self.open << step };
        let longest = min(period.saturating_add(scaled(period, jitter, 100)), self.max);
        // As `backoff::draw` does. OK: `longest` is not below `period`.
        let count = (longest - period) as u64 + 1;
        period as u64 + high_half(count, sample)
    }

    /// The time (ms) it must have been closed for.
    pub(super) const fn stable_period(&self) -> u64 {
        self.stable as u64 * 1_000
    }
}

/// `number · over / under`, rounded down: `over` is at most `under`, and `under` at most 200.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
const fn scaled(number: u32, over: u32, under: u32) -> u32 {
    // Nothing overflows: the quotient is at most `number`, the remainder below `under`.
    let Some(whole) = number.checked_div(under) else { return 0 };
    let rest = number - whole * under;
    let Some(part) = (rest * over).checked_div(under) else { return 0 };
    whole * over + part
}

const fn min(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

const fn max(a: u32, b: u32) -> u32 {
    if a > b { a } else { b }
}

/// Milliseconds are what a policy counts in: 49 days at most.
const MILLIS_MAX: u64 = u32::MAX as u64 * 1_000_000;

/// `duration` in milliseconds, rounded up, at most `u32::MAX`.
#[expect(clippy::cast_possible_truncation, reason = "the cases before leave at most u32::MAX")]
const fn millis(duration: Duration) -> u32 {
    let nanos = saturating_nanos(duration);
    if nanos > MILLIS_MAX { u32::MAX } else { divided_up::<1_000_000>(nanos) as u32 }
}

/// `duration` in seconds, rounded up, at most `u16::MAX`.
#[expect(clippy::cast_possible_truncation, reason = "the arm is for what fits")]
const fn seconds(duration: Duration) -> u16 {
    match millis(duration).div_ceil(1_000) {
        seconds if seconds <= u16::MAX as u32 => seconds as u16,
        _ => u16::MAX,
    }
}

/// `ratio`, at most 1, in percent, rounded up.
#[expect(clippy::cast_possible_truncation, reason = "at most 100")]
const fn percent(ratio: Ratio) -> u8 {
    ratio.as_ppm().div_ceil(10_000) as u8
}
