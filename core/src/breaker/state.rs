//! What a breaker does, and says.

use core::error::Error;
use core::fmt;
use core::num::NonZeroU64;

use super::millis;
use super::word::{self, Mode, Phase};
use crate::time::Instant;

/// Whether a breaker admits calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls are admitted and their outcomes counted.
    Closed,
    /// Everything is admitted and nothing counted, by [`Mode::Disabled`].
    Disabled,
    /// Nothing is admitted, by [`Mode::ForcedOpen`].
    ForcedOpen,
    /// The open period is over: one probe at a time finds out whether the service is back.
    HalfOpen {
        /// Until when the probe under way holds the slot; `None` if it is free.
        probing_until: Option<Instant>,
    },
    /// Nothing is admitted before then.
    Open {
        /// The end of the open period.
        until: Instant,
    },
}

/// A report that changed what the breaker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BreakerChange {
    /// The last probe succeeded: the service is back.
    Closed,
    /// It tripped.
    Opened {
        /// The end of the open period.
        until: Instant,
    },
    /// A probe failed: it is open for another period.
    Reopened {
        /// The end of the open period.
        until: Instant,
    },
}

/// Why a breaker did not admit a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CircuitOpen {
    /// The end of the open period, or of the lease of the probe under way: asking again then can
    /// succeed. [`Instant::MAX`], which is never, past the end of its time; `None` while it is
    /// forced open.
    pub retry_at: Option<Instant>,
    /// Whether a probe is under way: it may be over, and well, at any time before.
    pub is_probing: bool,
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("circuit breaker is open")
    }
}

impl Error for CircuitOpen {}

/// Why a call is not admitted: the word at that time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal(NonZeroU64);

impl Refusal {
    /// By a breaker with this word. One that is 0 is healthy and refuses nobody.
    pub(super) const fn by(word: u64) -> Option<Self> {
        match NonZeroU64::new(word) {
            Some(word) => Some(Self(word)),
            None => None,
        }
    }

    /// Whether a probe is under way.
    pub(crate) const fn is_probing(self) -> bool {
        matches!(word::phase(self.0.get()), Phase::HalfOpen)
    }

    /// When asking again can succeed; `None` if only a change of mode can help.
    pub(crate) const fn retry_at(self) -> Option<Instant> {
        match word::mode(self.0.get()) {
            Mode::ForcedOpen => None,
            _ => Some(millis::instant(word::end(self.0.get()))),
        }
    }
}

impl From<Refusal> for CircuitOpen {
    fn from(refusal: Refusal) -> Self {
        Self { retry_at: refusal.retry_at(), is_probing: refusal.is_probing() }
    }
}
