//! Policies and outcomes of any kind.

use std::time::Duration;

use arbitrary::Arbitrary;
use holdoff::{
    Backoff, Class, ConfigError, Failure, Hint, HintSpread, Outcome, Policy, PolicyConfig, Safety,
    Sent, UnhintedThrottle,
};

use crate::amount::Length;
use crate::backoff;

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) struct PolicyInput {
    attempt_timeout: Option<Length>,
    backoff: BackoffInput,
    deadline: Option<Length>,
    hint_spread: HintSpreadInput,
    max_attempts: u8,
    max_hint: Option<Length>,
    unhinted: UnhintedInput,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum BackoffInput {
    Any(backoff::Config),
    Preset,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum HintSpreadInput {
    Envelope,
    EnvelopeOrGranularity,
    None,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum UnhintedInput {
    Backoff(BackoffInput),
    Same,
    Stop,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum OutcomeInput {
    Failure { class: ClassInput, hint: HintInput, sent: SentInput },
    Ignored,
    Success,
    Timeout,
    Transient,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum ClassInput {
    Permanent,
    Quota,
    Throttled,
    Transient,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum HintInput {
    Absent,
    After(Length, u32),
    Endless,
    Malformed,
    Zero,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum SentInput {
    Maybe,
    No,
    Refused,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum SafetyInput {
    Idempotent,
    NonIdempotent,
}

impl BackoffInput {
    fn build(self) -> Option<Backoff> {
        match self {
            Self::Any(config) => config.build(),
            Self::Preset => Some(*Policy::STANDARD.backoff()),
        }
    }
}

impl PolicyInput {
    /// The policy, or a preset if it was rightly refused.
    pub(super) fn build_or_preset(self) -> Policy {
        self.build().unwrap_or(Policy::INTERACTIVE)
    }

    fn build(self) -> Option<Policy> {
        let mut config = PolicyConfig::new(self.backoff.build()?)
            .with_max_attempts(self.max_attempts.into())
            .with_hint_spread(match self.hint_spread {
                HintSpreadInput::Envelope => HintSpread::Envelope,
                HintSpreadInput::EnvelopeOrGranularity => HintSpread::EnvelopeOrGranularity,
                HintSpreadInput::None => HintSpread::None,
            })
            .with_unhinted_throttle(match self.unhinted {
                UnhintedInput::Backoff(backoff) => UnhintedThrottle::Backoff(backoff.build()?),
                UnhintedInput::Same => UnhintedThrottle::SameBackoff,
                UnhintedInput::Stop => UnhintedThrottle::Stop,
            });
        if let Some(timeout) = self.attempt_timeout {
            config = config.with_attempt_timeout(timeout.duration());
        }
        if let Some(deadline) = self.deadline {
            config = config.with_deadline(deadline.duration());
        }
        if let Some(max_hint) = self.max_hint {
            config = config.with_max_hint(max_hint.duration());
        }
        let built = config.build();
        let is_zero = self.attempt_timeout.is_some_and(|timeout| timeout.duration().is_zero());
        match built {
            Ok(policy) => {
                assert!(self.max_attempts > 0 && !is_zero);
                Some(policy)
            }
            Err(ConfigError::MaxAttemptsZero) => {
                assert_eq!(self.max_attempts, 0);
                None
            }
            Err(error) => {
                assert!(is_zero && error == ConfigError::AttemptTimeoutZero, "{error:?}");
                None
            }
        }
    }
}

impl OutcomeInput {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Failure { class, hint, sent } => {
                let failure = Failure::new(match class {
                    ClassInput::Permanent => Class::Permanent,
                    ClassInput::Quota => Class::Quota,
                    ClassInput::Throttled => Class::Throttled,
                    ClassInput::Transient => Class::Transient,
                });
                let sent = match sent {
                    SentInput::Maybe => Sent::Maybe,
                    SentInput::No => Sent::No,
                    SentInput::Refused => Sent::Refused,
                };
                Outcome::Failure(failure.with_hint(hint.hint()).with_sent(sent))
            }
            Self::Ignored => Outcome::Ignored,
            Self::Success => Outcome::Success,
            Self::Timeout | Self::Transient => Outcome::Failure(Failure::transient()),
        }
    }
}

impl HintInput {
    fn hint(self) -> Hint {
        match self {
            Self::Absent => Hint::Absent,
            Self::After(length, granularity) => {
                Hint::After { delay: length.duration(), granularity }
            }
            Self::Endless => Hint::after(Duration::MAX),
            Self::Malformed => Hint::Malformed,
            Self::Zero => Hint::after(Duration::ZERO),
        }
    }
}

impl SafetyInput {
    pub(super) const fn safety(self) -> Safety {
        match self {
            Self::Idempotent => Safety::Idempotent,
            Self::NonIdempotent => Safety::NonIdempotent,
        }
    }
}
