//! The table of a circuit breaker.

use core::time::Duration;

use holdoff::{BreakerConfig, CircuitBreaker, ConfigError, Ratio};

use super::error::SettingError;
use super::raw::Raw;
use super::section::{Node, section};
use super::value::OrNone;

/// How many periods the time of a breaker's [`over`](BreakerSection::over) is divided into.
///
/// Fixed, for it is part of the type of an upstream: enough that at most a tenth of the time is
/// forgotten at once, at 80 bytes a breaker.
///
/// ```
/// use holdoff_tokio::Upstream;
/// use holdoff_tokio::config::{BUCKETS, UpstreamConfig};
///
/// let upstream: Upstream<BUCKETS> = UpstreamConfig::default().build().unwrap();
/// assert!(upstream.breaker().is_none());
/// ```
pub const BUCKETS: usize = 10;

section! {
    /// The keys of a circuit breaker. Its rule is one of: `consecutive`; `share` of the last
    /// `calls`, the default; `share` of the calls `over` a time.
    ///
    /// ```
    /// use holdoff_tokio::Ratio;
    /// use holdoff_tokio::config::BreakerSection;
    ///
    /// let breaker: BreakerSection = toml::from_str("share = '60%'\nover = '30s'")?;
    /// assert!(breaker.build().is_ok());
    ///
    /// // What an empty table means.
    /// let breaker = BreakerSection::default().effective();
    /// assert_eq!((breaker.share, breaker.calls), (Some(Ratio::percent(50)), Some(20)));
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub struct BreakerSection {
        /// Trips after so many failures in a row.
        consecutive: u32 = "a whole number of 1 to 4294967295",
        /// Trips when at least this share of the last `calls` are failures, or more than this of
        /// those `over` a time. 50 % if absent.
        share: Ratio = "a share above 0 and at most 1, or below 1 over a time",
        /// How many calls the share is of. 20 if absent.
        calls: u32 = "a whole number of 1 to 32",
        /// How long the share is counted (milliseconds, rounded up), in [`BUCKETS`] periods.
        over: Duration = r#"a duration above zero and at most "497d""#,
        /// How many calls are needed for a share. `calls` if absent, or 20 over a time.
        min_calls: u32 = "a whole number of 1 to 65535, at most calls",
        /// How long it stays open after the first trip (milliseconds, rounded up). 10 s if absent.
        open_period: Duration = r#"a duration above zero and at most max_open_period"#,
        /// The longest open period, jitter included (milliseconds, rounded up). 5 m if absent.
        max_open_period: Duration = r#"a duration of at least open_period and at most "49d""#,
        /// By how much of itself an open period is randomly lengthened. 0 if absent.
        open_jitter: Ratio = "whole percents of 0 to 1",
        /// How many probes must succeed, one after another, to close it. 1 if absent.
        probes: u32 = "a whole number of 1 to 15",
        /// How long a probe may stay silent (milliseconds, rounded up). The open period if absent.
        lease: Duration = r#"a duration above zero and at most "49d""#,
        /// A success that took longer counts as a failure (milliseconds, rounded up). `"none"` is
        /// the default.
        slow_call: OrNone<Duration> = r#"a duration of at most "49d", or "none""#,
        /// How long it must have been closed for open periods to start from their base (seconds,
        /// rounded up). 60 s if absent.
        stable_period: Duration = r#"a duration of at most "18h""#,
    }
}

impl BreakerSection {
    /// The breaker: closed, nothing counted.
    ///
    /// # Errors
    /// The key, what it says and what is allowed.
    pub fn build(&self) -> Result<CircuitBreaker<BUCKETS>, SettingError> {
        self.core()?.build_with_buckets().map_err(|cause| {
            let full = self.effective();
            let shown = |duration: Option<Duration>| duration.unwrap_or_default().write().shown();
            let error = SettingError::of(cause);
            match cause {
                ConfigError::LeaseZero => error.at("lease").got_value(shown(full.lease)),
                ConfigError::OpenPeriod => {
                    let error = error.at("open_period").got_value(shown(full.open_period));
                    error.and("max_open_period", shown(full.max_open_period))
                }
                ConfigError::Probes => {
                    error.at("probes").got_value(full.probes.unwrap_or_default().to_string())
                }
                _ => error.at("share"),
            }
        })
    }

    /// The same breaker with every key of its rule set.
    #[must_use]
    pub fn effective(mut self) -> Self {
        match (self.consecutive, self.over) {
            (Some(_), _) => {}
            (None, Some(_)) => {
                self.share.get_or_insert(SHARE);
                self.min_calls.get_or_insert(CALLS);
            }
            (None, None) => {
                self.share.get_or_insert(SHARE);
                let calls = *self.calls.get_or_insert(CALLS);
                self.min_calls.get_or_insert(calls);
            }
        }
        let open_period = *self.open_period.get_or_insert(Duration::from_secs(10));
        self.max_open_period.get_or_insert(Duration::from_secs(300));
        self.open_jitter.get_or_insert(Ratio::ZERO);
        self.probes.get_or_insert(1);
        self.lease.get_or_insert(open_period);
        self.slow_call.get_or_insert(OrNone::None);
        self.stable_period.get_or_insert(Duration::from_secs(60));
        self
    }

    pub(super) fn core(&self) -> Result<BreakerConfig, SettingError> {
        let mut config = self.rule()?;
        if let Some(open_period) = self.open_period {
            config = config.with_open_period(open_period);
        }
        if let Some(max_open_period) = self.max_open_period {
            config = config.with_max_open_period(max_open_period);
        }
        if let Some(open_jitter) = self.open_jitter {
            // The breaker would round it.
            if open_jitter > Ratio::ONE || open_jitter.as_ppm() % 10_000 > 0 {
                return Err(Self::refused("open_jitter", &open_jitter));
            }
            config = config.with_open_jitter(open_jitter);
        }
        if let Some(probes) = self.probes {
            config = config.with_probes(u8::try_from(probes).unwrap_or(u8::MAX));
        }
        if let Some(lease) = at_most(DAYS_49, "lease", self.lease)? {
            config = config.with_lease(lease);
        }
        let slow_call = self.slow_call.and_then(OrNone::into_option);
        if let Some(slow_call) = at_most(DAYS_49, "slow_call", slow_call)? {
            config = config.with_slow_call(slow_call);
        }
        if let Some(stable) = at_most(HOURS_18, "stable_period", self.stable_period)? {
            config = config.with_stable_period(stable);
        }
        Ok(config)
    }

    fn rule(&self) -> Result<BreakerConfig, SettingError> {
        if let Some((one, other)) = self.excluding() {
            let error = SettingError::new(format!("must not be given together with {other}"));
            return Err(error.at(one).got_value(self.shown(one)).and(other, self.shown(other)));
        }
        let share = self.share.unwrap_or(SHARE);
        let refused = |key, got: u32| Err(Self::refused(key, &got));
        match (self.consecutive, self.over) {
            (Some(0), _) => refused("consecutive", 0),
            (Some(failures), _) => Ok(BreakerConfig::consecutive(failures)),
            (None, Some(over)) => {
                let min_calls = self.min_calls.unwrap_or(CALLS);
                if over.is_zero() || over > DAYS_497 {
                    return Err(Self::refused("over", &over));
                }
                if share >= Ratio::ONE || share == Ratio::ZERO {
                    return Err(Self::refused("share", &share));
                }
                match u16::try_from(min_calls) {
                    Ok(least @ 1..) => {
                        Ok(BreakerConfig::rate_over(over, share).with_min_calls(least))
                    }
                    _ => refused("min_calls", min_calls),
                }
            }
            (None, None) => {
                let calls = self.calls.unwrap_or(CALLS);
                let min_calls = self.min_calls.unwrap_or(calls);
                if share > Ratio::ONE || share == Ratio::ZERO {
                    return Err(Self::refused("share", &share));
                }
                match (u8::try_from(calls), u16::try_from(min_calls)) {
                    (Ok(window @ 1..=32), Ok(least)) if (1..=calls).contains(&min_calls) => {
                        Ok(BreakerConfig::rate(window, share).with_min_calls(least))
                    }
                    (Ok(1..=32), _) => {
                        let error = Self::refused("min_calls", &min_calls);
                        Err(error.and("calls", calls.to_string()))
                    }
                    _ => refused("calls", calls),
                }
            }
        }
    }

    /// What `key` says, if it is set.
    fn shown(&self, key: &str) -> String {
        let Raw::Table(entries) = self.write() else { return String::new() };
        let value = entries.iter().find(|(name, _)| name == key);
        value.map_or_else(String::new, |(_, value)| value.shown())
    }

    /// Two keys of different rules, if there are.
    const fn excluding(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self { consecutive: Some(_), share: Some(_), .. } => Some(("consecutive", "share")),
            Self { consecutive: Some(_), calls: Some(_), .. } => Some(("consecutive", "calls")),
            Self { consecutive: Some(_), over: Some(_), .. } => Some(("consecutive", "over")),
            Self { consecutive: Some(_), min_calls: Some(_), .. } => {
                Some(("consecutive", "min_calls"))
            }
            Self { calls: Some(_), over: Some(_), .. } => Some(("calls", "over")),
            _ => None,
        }
    }
}

fn at_most(
    most: Duration,
    key: &'static str,
    duration: Option<Duration>,
) -> Result<Option<Duration>, SettingError> {
    match duration {
        Some(duration) if duration > most => Err(BreakerSection::refused(key, &duration)),
        within => Ok(within),
    }
}

const SHARE: Ratio = Ratio::percent(50);
const CALLS: u32 = 20;
/// The longest period a breaker can count, less the odd hours.
const DAYS_49: Duration = Duration::from_secs(49 * 86_400);
/// So many of them, less the odd hours.
const DAYS_497: Duration = Duration::from_secs(497 * 86_400);
const HOURS_18: Duration = Duration::from_secs(18 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_defaults_is_what_the_core_does() {
        let rules = [
            BreakerSection::default(),
            BreakerSection { consecutive: Some(5), ..BreakerSection::default() },
            BreakerSection { over: Some(Duration::from_secs(30)), ..BreakerSection::default() },
        ];
        for section in rules {
            let said = section.effective().core().expect("valid");
            // Silent, the core takes the open period.
            let done = section.core().expect("valid").with_lease(Duration::from_secs(10));
            assert_eq!(said, done);
        }
    }
}
