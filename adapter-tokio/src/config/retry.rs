//! The table of a policy.

use core::time::Duration;

use holdoff::{ConfigError, HintSpread, Jitter, Policy, PolicyConfig, Ratio, UnhintedThrottle};

use super::error::SettingError;
use super::raw::Raw;
use super::schedule::ScheduleSection;
use super::section::{Node, section};
use super::value::{OrNone, Preset, Throttle};

section! {
    /// The keys of a [`Policy`]; each that is absent leaves the preset unchanged.
    ///
    /// ```
    /// use std::time::Duration;
    /// use holdoff_tokio::Policy;
    /// use holdoff_tokio::config::RetrySection;
    ///
    /// let retry: RetrySection = toml::from_str("preset = 'llm'\nmax_attempts = 3")?;
    /// let policy = retry.build().unwrap();
    /// assert_eq!(policy.max_attempts().get(), 3);
    /// assert_eq!(policy.backoff(), Policy::LLM.backoff());
    ///
    /// // Nothing set, nothing changed.
    /// assert_eq!(RetrySection::default().build().unwrap(), Policy::STANDARD);
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    pub struct RetrySection {
        /// The policy to start from.
        preset: Preset = r#""standard", "interactive", "batch" or "llm""#,
        /// Calls in total, the first included.
        max_attempts: u32 = "a whole number of 1 to 4294967295",
        /// The envelope before the first retry.
        base_delay: Duration = r#"a duration such as "250ms", at most max_delay"#,
        /// What the envelope is multiplied by from one retry to the next.
        factor: Ratio = "a number of 1 to 4294.967295",
        /// The longest delay, jitter included; being throttled has its own, in `throttled`.
        max_delay: OrNone<Duration> =
            r#"a duration such as "30s", at least base_delay and min_delay, or "none""#,
        /// The shortest delay, jitter included.
        min_delay: Duration = r#"a duration such as "100ms", at most max_delay"#,
        /// How delays are spread; a bare share is additive.
        jitter: Jitter = "\"full\", \"equal\", \"decorrelated\", \"none\", an additive share of 0 \
            to 1, or a kind (additive, proportional, shortening) and its share of 0 to 1",
        /// The longest one attempt may take.
        attempt_timeout: OrNone<Duration> =
            r#"a duration above zero such as "10s", or "none""#,
        /// The time for all attempts and waits together.
        deadline: OrNone<Duration> = r#"a duration above zero such as "20s", or "none""#,
        /// The longest hint that is obeyed, inclusive.
        max_hint: Duration = r#"a duration such as "5m""#,
        /// What is added to a hint.
        hint_spread: HintSpread = r#""envelope", "envelope_or_granularity" or "none""#,
        /// What a 429 without a usable delay means.
        unhinted_throttle: Throttle = r#""backoff", "same_backoff" or "stop""#,
        /// The schedule after such a 429, if that means `"backoff"`.
        throttled: ScheduleSection = "a table",
    }
}

impl RetrySection {
    /// Every key, as `policy` has it: what to print, or to override.
    ///
    /// ```
    /// use holdoff_tokio::Policy;
    /// use holdoff_tokio::config::RetrySection;
    ///
    /// let retry = RetrySection::of(&Policy::BATCH);
    /// assert_eq!(retry.max_attempts, Some(9));
    /// assert_eq!(retry.build().unwrap(), Policy::BATCH);
    /// ```
    #[must_use]
    pub fn of(policy: &Policy) -> Self {
        let schedule = ScheduleSection::of(policy.backoff());
        let (unhinted_throttle, throttled) = match policy.unhinted_throttle() {
            UnhintedThrottle::Backoff(backoff) => {
                (Throttle::Backoff, Some(ScheduleSection::of(backoff)))
            }
            UnhintedThrottle::Stop => (Throttle::Stop, None),
            _ => (Throttle::SameBackoff, None),
        };
        Self {
            preset: None,
            max_attempts: Some(policy.max_attempts().get()),
            base_delay: schedule.base_delay,
            factor: schedule.factor,
            max_delay: schedule.max_delay,
            min_delay: schedule.min_delay,
            jitter: schedule.jitter,
            attempt_timeout: Some(policy.attempt_timeout().into()),
            deadline: Some(policy.deadline().into()),
            max_hint: Some(policy.max_hint()),
            hint_spread: Some(policy.hint_spread()),
            unhinted_throttle: Some(unhinted_throttle),
            throttled,
        }
    }

    /// The policy.
    ///
    /// # Errors
    /// The key, what it says and what is allowed.
    pub fn build(&self) -> Result<Policy, SettingError> {
        let base = self.preset.unwrap_or_default().policy();
        let backoff = self.schedule().over(base.backoff())?;
        let max_attempts = self.max_attempts.unwrap_or(base.max_attempts().get());
        let mut config = PolicyConfig::new(backoff)
            .with_max_attempts(max_attempts)
            .with_max_hint(self.max_hint.unwrap_or(base.max_hint()))
            .with_hint_spread(self.hint_spread.unwrap_or(base.hint_spread()))
            .with_unhinted_throttle(self.throttle(&base)?);
        let timeout = self.attempt_timeout.unwrap_or(base.attempt_timeout().into());
        if let OrNone::Is(timeout) = timeout {
            config = config.with_attempt_timeout(timeout);
        }
        if let OrNone::Is(deadline) = self.deadline.unwrap_or(base.deadline().into()) {
            // It would make no attempt; whoever writes it means none, or too much.
            if deadline.is_zero() {
                return Err(Self::refused("deadline", &deadline));
            }
            config = config.with_deadline(deadline);
        }
        config.build().map_err(|cause| match cause {
            ConfigError::AttemptTimeoutZero => {
                SettingError::of(cause).at("attempt_timeout").got_value(timeout.write().shown())
            }
            _ => SettingError::of(cause).at("max_attempts").got_value(max_attempts.to_string()),
        })
    }

    /// The same policy with every key set, none of them left to a preset.
    ///
    /// ```
    /// use holdoff_tokio::config::RetrySection;
    ///
    /// let effective = RetrySection::default().effective().unwrap();
    /// let printed = toml::to_string(&effective)?;
    /// assert!(printed.contains("max_delay = \"30s\""));
    /// # Ok::<(), toml::ser::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn effective(&self) -> Result<Self, SettingError> {
        Ok(Self::of(&self.build()?))
    }

    const fn schedule(&self) -> ScheduleSection {
        let &Self { base_delay, factor, max_delay, min_delay, jitter, .. } = self;
        ScheduleSection { base_delay, factor, max_delay, min_delay, jitter }
    }

    fn throttle(&self, base: &Policy) -> Result<UnhintedThrottle, SettingError> {
        let standard = Policy::STANDARD;
        let (kind, schedule) = match (base.unhinted_throttle(), standard.unhinted_throttle()) {
            (UnhintedThrottle::Backoff(backoff), _) => (Throttle::Backoff, backoff),
            (UnhintedThrottle::Stop, UnhintedThrottle::Backoff(backoff)) => {
                (Throttle::Stop, backoff)
            }
            (_, UnhintedThrottle::Backoff(backoff)) => (Throttle::SameBackoff, backoff),
            _ => (Throttle::SameBackoff, base.backoff()),
        };
        let throttled = self.throttled.unwrap_or_default();
        match self.unhinted_throttle.unwrap_or(kind) {
            Throttle::Backoff => throttled
                .over(schedule)
                .map(UnhintedThrottle::Backoff)
                .map_err(|error| error.within("throttled")),
            kind => match &throttled.write() {
                Raw::Table(entries) if let Some((key, value)) = entries.first() => {
                    let reason = "has no effect unless unhinted_throttle is \"backoff\"";
                    let error = SettingError::new(reason).at(key).got_value(value.shown());
                    Err(error.within("throttled").and("unhinted_throttle", kind.write().shown()))
                }
                _ if kind == Throttle::Stop => Ok(UnhintedThrottle::Stop),
                _ => Ok(UnhintedThrottle::SameBackoff),
            },
        }
    }
}
