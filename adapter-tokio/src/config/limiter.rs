//! The tables of a rate limiter and of a retry budget.

use core::num::NonZeroU32;

use holdoff::{BudgetConfig, ConfigError, Quota, Rate, Ratio, RetryBudget};

use super::error::SettingError;
use super::section::{Node, section};
use super::value::OrNone;

section! {
    /// The keys of a rate limiter.
    ///
    /// ```
    /// use holdoff_tokio::{Quota, Rate};
    /// use holdoff_tokio::config::LimiterSection;
    ///
    /// let limiter: LimiterSection = toml::from_str("rate = '1 per 5s'\nburst = 3")?;
    /// let every = Rate::every(std::time::Duration::from_secs(5));
    /// assert_eq!(limiter.quota().unwrap(), Quota::new(every, 3)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct LimiterSection {
        /// Tokens per time.
        rate: Rate = r#"a rate of at least 1 per time such as "10/s", "60/min" or "1 per 5s""#,
        /// Tokens at once, the whole of them and not an extra.
        burst: u32 = "a whole number of 1 to 4294967295",
        /// How many may wait in line at once; `"none"` is the default.
        max_waiting: OrNone<u32> = r#"a whole number of 1 to 4294967295, or "none""#,
    }
}

impl LimiterSection {
    /// The rate and the burst.
    ///
    /// # Errors
    /// The key, what it says and what is allowed. Neither has a default.
    pub fn quota(&self) -> Result<Quota, SettingError> {
        let missing =
            |key| SettingError::new("missing, a limiter needs both rate and burst").at(key);
        let rate = self.rate.ok_or_else(|| missing("rate"))?;
        let burst = self.burst.ok_or_else(|| missing("burst"))?;
        let shown = rate.write().shown();
        Quota::new(rate, burst).map_err(|cause| match cause {
            ConfigError::BurstZero => {
                SettingError::of(cause).at("burst").got_value(burst.to_string())
            }
            ConfigError::RateZero => SettingError::of(cause).at("rate").got_value(shown),
            _ => {
                let error = SettingError::of(cause).at("rate").got_value(shown);
                error.and("burst", burst.to_string())
            }
        })
    }

    pub(super) fn checked_max_waiting(&self) -> Result<Option<NonZeroU32>, SettingError> {
        match self.max_waiting {
            Some(OrNone::Is(most)) => {
                NonZeroU32::new(most).map(Some).ok_or_else(|| Self::refused("max_waiting", &most))
            }
            Some(OrNone::None) | None => Ok(None),
        }
    }

    pub(super) fn effective(mut self) -> Self {
        self.max_waiting.get_or_insert(OrNone::None);
        self
    }
}

section! {
    /// The keys of a retry budget.
    ///
    /// ```
    /// use holdoff_tokio::config::BudgetSection;
    ///
    /// let budget: BudgetSection = toml::from_str("ratio = '20%'")?;
    /// assert_eq!(budget.effective().reserve, Some(10));
    /// assert!(budget.build().is_ok());
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub struct BudgetSection {
        /// Retries to begin with. 10 if absent.
        reserve: u32 = "a whole number of 0 to 68719, at most the capacity",
        /// Retries per call. 10 % if absent.
        ratio: Ratio = "a share of 0 to 1",
        /// Retries that can be saved up. 100 if absent, or the reserve if that is more.
        capacity: u32 = "a whole number of 1 to 68719, at least the reserve",
        /// Retries per second besides. 0 if absent.
        trickle: Ratio = "a share of 0 to 1",
    }
}

impl BudgetSection {
    /// The budget, its reserve in it.
    ///
    /// # Errors
    /// The key, what it says and what is allowed.
    pub fn build(&self) -> Result<RetryBudget, SettingError> {
        self.core().build().map_err(|cause| {
            let Self { reserve, ratio, capacity, trickle } = self.effective();
            let (reserve, capacity) = (reserve.unwrap_or(0), capacity.unwrap_or(0));
            let error = SettingError::of(cause);
            match (cause, ratio, trickle) {
                (ConfigError::RatioAboveOne, Some(ratio), _) if ratio > Ratio::ONE => {
                    error.at("ratio").got_value(ratio.write().shown())
                }
                (ConfigError::RatioAboveOne, _, Some(trickle)) => {
                    error.at("trickle").got_value(trickle.write().shown())
                }
                _ => {
                    let error = error.at("capacity").got_value(capacity.to_string());
                    error.and("reserve", reserve.to_string())
                }
            }
        })
    }

    /// The same budget with every key set.
    #[must_use]
    pub fn effective(mut self) -> Self {
        let reserve = *self.reserve.get_or_insert(RESERVE);
        self.ratio.get_or_insert(RATIO);
        self.capacity.get_or_insert(reserve.max(100));
        self.trickle.get_or_insert(Ratio::ZERO);
        self
    }

    pub(super) fn core(&self) -> BudgetConfig {
        let reserve = self.reserve.unwrap_or(RESERVE);
        let mut config = BudgetConfig::new(reserve, self.ratio.unwrap_or(RATIO));
        if let Some(capacity) = self.capacity {
            config = config.with_capacity(capacity);
        }
        if let Some(trickle) = self.trickle {
            config = config.with_trickle(trickle);
        }
        config
    }
}

const RESERVE: u32 = 10;
/// Google, "Site Reliability Engineering", chapter 21: the load then grows to 1.1 times.
const RATIO: Ratio = Ratio::percent(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_defaults_is_what_the_core_does() {
        for reserve in [None, Some(0), Some(99), Some(500)] {
            let section = BudgetSection { reserve, ..BudgetSection::default() };
            let (said, done) = (section.effective(), section);
            let capacity = reserve.unwrap_or(10).max(100);
            assert_eq!(said.core(), done.core().with_capacity(capacity).with_trickle(Ratio::ZERO));
            // The core fills up to the same.
            let full = |section: BudgetSection| {
                let budget = section.build().expect("valid");
                (0..10_000).for_each(|_| budget.refund());
                budget.level(holdoff::Instant::EPOCH)
            };
            assert_eq!((full(said), full(done)), (capacity, capacity));
        }
    }
}
