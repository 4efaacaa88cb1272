//! What a breaker does, and says.

use core::error::Error;
use core::fmt;

use crate::time::Instant;

/// Whether a breaker admits calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls are admitted and their outcomes counted.
    Closed,
    /// Everything is admitted and nothing counted, by [`Mode::Disabled`](super::Mode::Disabled).
    Disabled,
    /// Nothing is admitted, by [`Mode::ForcedOpen`](super::Mode::ForcedOpen).
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
