//! The table of a backoff schedule.

use core::time::Duration;

use holdoff::{Backoff, BackoffConfig, ConfigError, Jitter, Ratio};

use super::error::SettingError;
use super::section::{Node, section};
use super::value::OrNone;

section! {
    /// The keys of a backoff schedule; each that is absent leaves what it is based on unchanged.
    ///
    /// ```
    /// use std::time::Duration;
    /// use holdoff_tokio::config::ScheduleSection;
    ///
    /// let keys = "base_delay = '500ms'\nmax_delay = '8s'\njitter = { shortening = '25%' }";
    /// let schedule: ScheduleSection = toml::from_str(keys)?;
    /// assert_eq!(schedule.base_delay, Some(Duration::from_millis(500)));
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub struct ScheduleSection {
        /// The envelope before the first retry.
        base_delay: Duration = r#"a duration such as "250ms", at most max_delay"#,
        /// What the envelope is multiplied by from one retry to the next.
        factor: Ratio = "a number of 1 to 4294.967295",
        /// The longest delay, jitter included.
        max_delay: OrNone<Duration> =
            r#"a duration such as "30s", at least base_delay and min_delay, or "none""#,
        /// The shortest delay, jitter included.
        min_delay: Duration = r#"a duration such as "100ms", at most max_delay"#,
        /// How delays are spread.
        jitter: Jitter = "\"full\", \"equal\", \"decorrelated\", \"none\", an additive share of 0 \
            to 1, or a kind (additive, proportional, shortening) and its share of 0 to 1",
    }
}

impl ScheduleSection {
    pub(super) fn of(backoff: &Backoff) -> Self {
        let max = Some(backoff.max_delay()).filter(|&max| max != NEVER);
        Self {
            base_delay: Some(backoff.base()),
            factor: Some(backoff.factor()),
            max_delay: Some(max.into()),
            min_delay: Some(backoff.min_delay()),
            jitter: Some(backoff.jitter()),
        }
    }

    /// `base` with what is set here instead.
    pub(super) fn over(&self, base: &Backoff) -> Result<Backoff, SettingError> {
        let base_delay = self.base_delay.unwrap_or(base.base());
        let factor = self.factor.unwrap_or(base.factor());
        let jitter = self.jitter.unwrap_or(base.jitter());
        let min_delay = self.min_delay.unwrap_or(base.min_delay());
        let max_delay = match self.max_delay {
            Some(max_delay) => max_delay.into_option().unwrap_or(NEVER),
            None => base.max_delay(),
        };
        if let Jitter::Additive(share) | Jitter::Proportional(share) | Jitter::Shortening(share) =
            jitter
            && share > Ratio::ONE
        {
            return Err(Self::refused("jitter", &jitter));
        }
        let built = BackoffConfig::exponential(base_delay)
            .with_factor(factor)
            .with_jitter(jitter)
            .with_max_delay(max_delay)
            .with_min_delay(min_delay)
            .build();
        let shown = |duration: Duration| duration.write().shown();
        built.map_err(|cause| {
            let error = SettingError::of(cause);
            match cause {
                ConfigError::BaseAboveMax => error
                    .at("base_delay")
                    .got_value(shown(base_delay))
                    .and("max_delay", shown(max_delay)),
                ConfigError::MinAboveMax => error
                    .at("min_delay")
                    .got_value(shown(min_delay))
                    .and("max_delay", shown(max_delay)),
                _ => error.at("factor").got_value(factor.write().shown()),
            }
        })
    }
}

/// What the core takes for no maximum.
const NEVER: Duration = Duration::from_nanos(u64::MAX);
