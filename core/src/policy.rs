//! What to retry, how often and how long: plain data.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::backoff::{Backoff, BackoffConfig};
use crate::config::ConfigError;
use crate::time::{duration, duration_unless_max, nanos_or_max, saturating_nanos};
use crate::valid;

/// How a server's hint is spread, so that those told the same second do not return together.
///
/// A retry after a hint is never earlier than the hint; the spread comes on top, drawn uniformly
/// from zero to its width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum HintSpread {
    /// As wide as the own schedule's envelope for that retry.
    Envelope,
    /// As wide as the envelope, but at least the hint's own granularity (1 s for whole seconds):
    /// the default.
    #[default]
    EnvelopeOrGranularity,
    /// Nothing on top: everybody told "1 s" returns at 1 s. For emulation.
    None,
}

/// What a throttled response (429) without a usable delay means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum UnhintedThrottle {
    /// Call less often: a backoff of its own, usually longer.
    Backoff(Backoff),
    /// The same backoff as any other failure: the default.
    #[default]
    SameBackoff,
    /// Without any hint it may be a spending limit that lasts until the quota resets: stop with
    /// [`Stop::Quota`](crate::Stop::Quota). After a hint of zero or one that cannot be read it is
    /// the same backoff.
    Stop,
}

/// A [`Policy`] under construction.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Policy, PolicyConfig, valid};
///
/// const POLICY: Policy = valid!(
///     PolicyConfig::standard()
///         .with_max_attempts(3)
///         .with_attempt_timeout(Duration::from_secs(5))
///         .with_deadline(Duration::from_secs(20))
///         .build()
/// );
/// assert_eq!(POLICY.max_attempts().get(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a configuration does nothing until it is built"]
pub struct PolicyConfig {
    max_attempts: u32,
    attempt_timeout: Option<Duration>,
    policy: Policy,
}

impl PolicyConfig {
    /// Five attempts on `backoff`, no deadline, no attempt timeout, hints up to 5 minutes obeyed.
    pub const fn new(backoff: Backoff) -> Self {
        Self {
            max_attempts: 5,
            attempt_timeout: None,
            policy: Policy {
                attempt_timeout: u64::MAX,
                backoff,
                deadline: u64::MAX,
                hint_spread: HintSpread::EnvelopeOrGranularity,
                max_attempts: NonZeroU32::MIN,
                max_hint: saturating_nanos(Duration::from_secs(300)),
                unhinted_throttle: UnhintedThrottle::SameBackoff,
            },
        }
    }

    /// What [`Policy::STANDARD`] is built from.
    pub const fn standard() -> Self {
        const BACKOFF: Backoff = valid!(full_jitter(Duration::from_secs(30)).build());
        const THROTTLED: Backoff = valid!(throttled(Duration::from_secs(30)).build());
        Self::new(BACKOFF).with_unhinted_throttle(UnhintedThrottle::Backoff(THROTTLED))
    }

    /// What [`Policy::INTERACTIVE`] is built from.
    pub const fn interactive() -> Self {
        Self::standard().with_max_attempts(4).with_deadline(Duration::from_secs(20))
    }

    /// What [`Policy::BATCH`] is built from.
    pub const fn batch() -> Self {
        const BACKOFF: Backoff = valid!(full_jitter(Duration::from_secs(300)).build());
        const THROTTLED: Backoff = valid!(throttled(Duration::from_secs(300)).build());
        Self::new(BACKOFF)
            .with_unhinted_throttle(UnhintedThrottle::Backoff(THROTTLED))
            .with_max_attempts(9)
    }

    /// What [`Policy::LLM`] is built from.
    pub const fn llm() -> Self {
        Self::standard().with_unhinted_throttle(UnhintedThrottle::Stop)
    }

    /// Calls in total, the first included. Defaults to 5.
    ///
    /// Must not be zero.
    pub const fn with_max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// The longest one attempt may take; an attempt cut off counts as a failure. Defaults to none.
    ///
    /// Must not be zero. One of 584 years (`u64::MAX` nanoseconds) or more is none.
    pub const fn with_attempt_timeout(self, timeout: Duration) -> Self {
        Self { attempt_timeout: Some(timeout), ..self }
    }

    /// The time for all attempts and waits together, from the start of the call. Defaults to none.
    ///
    /// See [`Policy::with_deadline`].
    pub const fn with_deadline(self, deadline: Duration) -> Self {
        Self { policy: self.policy.with_deadline(deadline), ..self }
    }

    /// The longest hint that is obeyed, inclusive. Defaults to 5 minutes.
    ///
    /// A longer one stops the call at once with [`Stop::HintTooLong`](crate::Stop::HintTooLong):
    /// coming earlier cannot succeed, and sleeping that long is not ours to decide.
    pub const fn with_max_hint(self, max_hint: Duration) -> Self {
        Self { policy: Policy { max_hint: saturating_nanos(max_hint), ..self.policy }, ..self }
    }

    /// What is added to a hint. Defaults to [`HintSpread::EnvelopeOrGranularity`].
    pub const fn with_hint_spread(self, hint_spread: HintSpread) -> Self {
        Self { policy: Policy { hint_spread, ..self.policy }, ..self }
    }

    /// What a 429 without a usable delay means. Defaults to [`UnhintedThrottle::SameBackoff`].
    pub const fn with_unhinted_throttle(self, unhinted_throttle: UnhintedThrottle) -> Self {
        Self { policy: Policy { unhinted_throttle, ..self.policy }, ..self }
    }

    /// The finished policy.
    ///
    /// # Errors
    /// [`ConfigError::AttemptTimeoutZero`], [`ConfigError::MaxAttemptsZero`].
    pub const fn build(self) -> Result<Policy, ConfigError> {
        let Some(max_attempts) = NonZeroU32::new(self.max_attempts) else {
            return Err(ConfigError::MaxAttemptsZero);
        };
        if let Some(Duration::ZERO) = self.attempt_timeout {
            return Err(ConfigError::AttemptTimeoutZero);
        }
        let attempt_timeout = nanos_or_max(self.attempt_timeout);
        Ok(Policy { attempt_timeout, max_attempts, ..self.policy })
    }
}

/// What to retry, how often and how long: validated plain data, shared by any number of calls.
///
/// | preset | base | `max_delay` | attempts | deadline | 429 without hint |
/// |---|---|---|---|---|---|
/// | [`STANDARD`](Self::STANDARD) | 1 s | 30 s | 5 | none | base 5 s, at least 1 s |
/// | [`INTERACTIVE`](Self::INTERACTIVE) | 1 s | 30 s | 4 | 20 s | base 5 s, at least 1 s |
/// | [`BATCH`](Self::BATCH) | 1 s | 5 min | 9 | none | base 5 s, at least 1 s |
/// | [`LLM`](Self::LLM) | 1 s | 30 s | 5 | none | stop: may be a spending limit |
///
/// All have full jitter, factor 2, and obey hints of up to 5 minutes.
///
/// ```
/// use core::time::Duration;
/// use holdoff::Policy;
///
/// // What is left of the caller's own time.
/// let policy = Policy::INTERACTIVE.with_deadline(Duration::from_secs(7));
/// assert_eq!(policy.deadline(), Some(Duration::from_secs(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Policy {
    /// In nanoseconds, as all durations here: `u64::MAX` if there is none.
    attempt_timeout: u64,
    backoff: Backoff,
    /// `u64::MAX` if there is none.
    deadline: u64,
    hint_spread: HintSpread,
    max_attempts: NonZeroU32,
    max_hint: u64,
    unhinted_throttle: UnhintedThrottle,
}

impl Policy {
    /// For a service that calls another: the caller brings the deadline.
    pub const STANDARD: Self = valid!(PolicyConfig::standard().build());
    /// For a person who waits; after that, fall back to something smaller.
    pub const INTERACTIVE: Self = valid!(PolicyConfig::interactive().build());
    /// For jobs with hours of slack; after that, set the job aside.
    pub const BATCH: Self = valid!(PolicyConfig::batch().build());
    /// For LLM providers, where a 429 without a hint may be a spending limit. Goes with
    /// [`Statuses::LLM`](crate::http::Statuses::LLM).
    pub const LLM: Self = valid!(PolicyConfig::llm().build());

    /// The same policy with another deadline: the time for all attempts and waits together.
    ///
    /// An attempt that would start exactly at the deadline or later is not made, and the wait for
    /// it not either. A deadline of zero makes no attempt at all, and one of 584 years (`u64::MAX`
    /// nanoseconds) or more is none.
    #[must_use]
    pub const fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline: saturating_nanos(deadline), ..self }
    }

    /// The same policy with another number of calls in total, the first included.
    #[must_use]
    pub const fn with_max_attempts(self, max_attempts: NonZeroU32) -> Self {
        Self { max_attempts, ..self }
    }

    /// The longest one attempt may take.
    #[must_use]
    pub const fn attempt_timeout(&self) -> Option<Duration> {
        duration_unless_max(self.attempt_timeout)
    }

    /// The schedule of delays where no hint holds.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The time for all attempts and waits together.
    #[must_use]
    pub const fn deadline(&self) -> Option<Duration> {
        duration_unless_max(self.deadline)
    }

    /// What is added to a hint.
    #[must_use]
    pub const fn hint_spread(&self) -> HintSpread {
        self.hint_spread
    }

    /// Calls in total, the first included.
    #[must_use]
    pub const fn max_attempts(&self) -> NonZeroU32 {
        self.max_attempts
    }

    /// The longest hint that is obeyed, inclusive; at most 584 years (`u64::MAX` nanoseconds).
    #[must_use]
    pub const fn max_hint(&self) -> Duration {
        duration(self.max_hint)
    }

    pub(crate) const fn attempt_timeout_nanos(&self) -> u64 {
        self.attempt_timeout
    }

    pub(crate) const fn deadline_nanos(&self) -> u64 {
        self.deadline
    }

    pub(crate) const fn max_hint_nanos(&self) -> u64 {
        self.max_hint
    }

    /// What a 429 without a usable delay means.
    #[must_use]
    pub const fn unhinted_throttle(&self) -> &UnhintedThrottle {
        &self.unhinted_throttle
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("attempt_timeout", &self.attempt_timeout())
            .field("backoff", &self.backoff)
            .field("deadline", &self.deadline())
            .field("hint_spread", &self.hint_spread)
            .field("max_attempts", &self.max_attempts)
            .field("max_hint", &self.max_hint())
            .field("unhinted_throttle", &self.unhinted_throttle)
            .finish()
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Policy {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(
            f,
            "Policy {{ attempt_timeout: {}, backoff: {}, deadline: {}, hint_spread: {}, \
             max_attempts: {=u32}, max_hint: {}, unhinted_throttle: {} }}",
            self.attempt_timeout(),
            self.backoff,
            self.deadline(),
            self.hint_spread,
            self.max_attempts.get(),
            self.max_hint(),
            self.unhinted_throttle,
        );
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::STANDARD
    }
}

const fn full_jitter(max_delay: Duration) -> BackoffConfig {
    BackoffConfig::exponential(Duration::from_secs(1)).with_max_delay(max_delay)
}

/// Being throttled without a hint: start slower, and never come straight back.
const fn throttled(max_delay: Duration) -> BackoffConfig {
    BackoffConfig::exponential(Duration::from_secs(5))
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(max_delay)
}
