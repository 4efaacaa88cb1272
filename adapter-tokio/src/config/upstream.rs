//! The table of an upstream.

use holdoff::Counters;

use super::breaker::{BUCKETS, BreakerSection};
use super::error::SettingError;
use super::limiter::{BudgetSection, LimiterSection};
use super::retry::RetrySection;
use super::section::section;
use crate::upstream::Upstream;

section! {
    /// An [`Upstream`] as a file describes it. What has no table is not there: no limiter, no
    /// breaker, no budget.
    ///
    /// Reads from and writes to any self-describing format of serde; wherever it stands in the
    /// caller's own configuration, its errors name its keys from here on.
    ///
    /// ```
    /// use holdoff_tokio::Failure;
    /// use holdoff_tokio::config::UpstreamConfig;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Settings {
    ///     search: UpstreamConfig,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let settings: Settings = toml::from_str(
    ///     r#"
    ///     [search]
    ///     retry = { preset = "interactive", base_delay = "250ms" }
    ///     limiter = { rate = "10/s", burst = 20 }
    ///     breaker = { share = "50%", over = "30s" }
    ///     budget = {}
    ///     "#,
    /// )?;
    /// let search = settings.search.build().map_err(|error| error.within("search"))?;
    /// assert_eq!(search.call(async || Ok::<_, Failure>(7)).await, Ok(7));
    ///
    /// let typo = toml::from_str::<UpstreamConfig>("breaker = { open_time = '5s' }").unwrap_err();
    /// assert!(typo.to_string().contains("breaker.open_time: unknown, must be one of"));
    /// # Ok(())
    /// # }
    /// ```
    pub struct UpstreamConfig {
        /// How calls are tried again. [`Policy::STANDARD`](crate::Policy::STANDARD) if absent.
        retry: RetrySection = "a table",
        /// Its rate limiter.
        limiter: LimiterSection = "a table",
        /// Its circuit breaker.
        breaker: BreakerSection = "a table",
        /// Its retry budget.
        budget: BudgetSection = "a table",
    }
}

impl UpstreamConfig {
    /// The upstream, which counts its calls.
    ///
    /// # Errors
    /// The key, such as `breaker.open_period`, what it says and what is allowed.
    pub fn build(&self) -> Result<Upstream<BUCKETS>, SettingError> {
        let policy = self.retry.unwrap_or_default().build();
        let policy = policy.map_err(|error| error.within("retry"))?;
        let breaker = self.breaker.map(|breaker| breaker.build()).transpose();
        let breaker = breaker.map_err(|error| error.within("breaker"))?;
        let mut upstream =
            Upstream::new(policy).with_optional_breaker(breaker).with_counters(Counters::new());
        if let Some(limiter) = self.limiter {
            let within = |error: SettingError| error.within("limiter");
            upstream = upstream.with_limiter(limiter.quota().map_err(within)?);
            if let Some(most) = limiter.checked_max_waiting().map_err(within)? {
                upstream = upstream.with_max_waiting(most);
            }
        }
        if let Some(budget) = self.budget {
            let budget = budget.build().map_err(|error| error.within("budget"))?;
            upstream = upstream.with_budget(budget);
        }
        Ok(upstream)
    }

    /// The same upstream with every key set: for an operator to print.
    ///
    /// ```
    /// use holdoff_tokio::config::UpstreamConfig;
    ///
    /// let config: UpstreamConfig = toml::from_str("breaker = { consecutive = 5 }")?;
    /// let effective = config.effective().unwrap();
    /// let printed = toml::to_string(&effective)?;
    /// assert!(printed.contains("[breaker]\nconsecutive = 5\nopen_period = \"10s\""));
    ///
    /// // What is printed means the same.
    /// assert_eq!(toml::from_str::<UpstreamConfig>(&printed)?, effective);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn effective(&self) -> Result<Self, SettingError> {
        self.build()?;
        let retry = self.retry.unwrap_or_default().effective();
        Ok(Self {
            retry: Some(retry.map_err(|error| error.within("retry"))?),
            limiter: self.limiter.map(LimiterSection::effective),
            breaker: self.breaker.map(BreakerSection::effective),
            budget: self.budget.map(BudgetSection::effective),
        })
    }
}
