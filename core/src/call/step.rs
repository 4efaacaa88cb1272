//! What the machine says: do this, wait for that, or stop, and why.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::time::{Instant, duration_unless_max, nanos_or_max};

/// What a driver is to do next.
///
/// Exhaustive on purpose: a driver that did not know a step could not drive the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Step {
    /// Make attempt `number` now and report what it came to with
    /// [`Call::record`](crate::Call::record).
    Attempt(Attempt),
    /// Sleep until then and poll again; others may pass.
    Backoff {
        /// When the next attempt may start.
        until: Instant,
        /// Where the delay comes from.
        source: DelaySource,
    },
    /// The last attempt succeeded: return what it returned.
    Done,
    /// There will be no further attempt.
    Stop(Stop),
    /// The limiter has no token yet: keep the place in the queue, sleep until then, poll again.
    Throttled {
        /// The earliest instant at which polling again can succeed.
        until: Instant,
    },
}

/// One attempt to make.
///
/// ```
/// use core::time::Duration;
/// use holdoff::Attempt;
///
/// let attempt = Attempt::new(2, Some(Duration::from_secs(5)));
/// assert_eq!((attempt.number, attempt.timeout()), (2, Some(Duration::from_secs(5))));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// 1 for the first call.
    pub number: u32,
    /// In nanoseconds, as the machine has it: a `Duration` costs a division, for who asks.
    longest: u64,
}

impl Attempt {
    /// Attempt `number`, which may take `timeout`: without one, or with one of 584 years and more,
    /// as long as it likes. For drivers of their own; the machine makes its own.
    #[must_use]
    pub const fn new(number: u32, timeout: Option<Duration>) -> Self {
        Self { number, longest: nanos_or_max(timeout) }
    }

    pub(super) const fn within(number: u32, longest: u64) -> Self {
        Self { number, longest }
    }

    /// The longest it may take: the policy's attempt timeout or what is left until the deadline,
    /// whichever is less. `None` if there is neither.
    #[must_use]
    pub const fn timeout(self) -> Option<Duration> {
        duration_unless_max(self.longest)
    }

    /// When it must be over if it starts `now`; [`Instant::MAX`], which is never, if it has no
    /// timeout.
    #[must_use]
    pub const fn ends_at(self, now: Instant) -> Instant {
        now.later(self.longest)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, timeout) = (self.number, self.timeout());
        f.debug_struct("Attempt").field("number", &number).field("timeout", &timeout).finish()
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Attempt {
    fn format(&self, f: defmt::Formatter<'_>) {
        let (number, timeout) = (self.number, self.timeout());
        defmt::write!(f, "Attempt {{ number: {=u32}, timeout: {} }}", number, timeout);
    }
}

/// Where the delay before a retry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DelaySource {
    /// The server's hint, plus spread.
    Hint,
    /// The policy's own schedule.
    Schedule,
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Stop {
    /// `max_attempts` calls have been made.
    Attempts,
    /// The retry budget is used up: too many calls are being retried already.
    Budget,
    /// The driver was told to stop.
    Cancelled,
    /// The circuit breaker is open.
    CircuitOpen {
        /// The end of the open period, or of the lease of the probe under way, which may be over
        /// sooner. [`Instant::MAX`], which is never, while it is forced open.
        retry_at: Instant,
    },
    /// It would be tried again, but cannot be sent a second time: the body was a stream.
    Committed,
    /// One attempt costs more than the limiter's burst: it can never be admitted.
    CostTooHigh {
        /// The largest cost that can be admitted.
        burst: u32,
    },
    /// The deadline has passed or would pass before the next attempt could start. Without a
    /// deadline: the next attempt could never start, its time being [`Instant::MAX`].
    Deadline,
    /// The server asks for a longer wait than the policy or the deadline allows.
    HintTooLong {
        /// What it asks for; [`Duration::MAX`] if that was too long to represent.
        hint: Duration,
    },
    /// It would be tried again, but not by this call: it is made inside of another that tries
    /// again.
    Nested,
    /// The request may have been processed and repeating it could do harm.
    NotIdempotent,
    /// Trying again cannot help.
    Permanent,
    /// The line at the limiter is full: too many are waiting already.
    QueueFull,
    /// A quota is used up; a person must look at it.
    Quota,
}

impl Stop {
    /// Its name as logs and metrics give it: the variant's, in snake case, without what it holds.
    ///
    /// ```
    /// use holdoff::{Instant, Stop};
    ///
    /// assert_eq!(Stop::CircuitOpen { retry_at: Instant::MAX }.name(), "circuit_open");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::CircuitOpen { .. } => "circuit_open",
            Self::Committed => "committed",
            Self::CostTooHigh { .. } => "cost_too_high",
            Self::Deadline => "deadline",
            Self::HintTooLong { .. } => "hint_too_long",
            Self::Nested => "nested",
            Self::NotIdempotent => "not_idempotent",
            Self::Permanent => "permanent",
            Self::QueueFull => "queue_full",
            Self::Quota => "quota",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attempts => f.write_str("no attempts left"),
            Self::Budget => f.write_str("the retry budget is used up"),
            Self::Cancelled => f.write_str("the caller stopped it"),
            Self::CircuitOpen { .. } => f.write_str("the circuit breaker is open"),
            Self::Committed => f.write_str("it cannot be sent a second time"),
            Self::CostTooHigh { burst } => {
                write!(f, "cost is above the limiter's burst of {burst}")
            }
            Self::Deadline => f.write_str("the deadline leaves no time for another attempt"),
            Self::HintTooLong { hint: Duration::MAX } => {
                f.write_str("the server asks for an endless wait")
            }
            Self::HintTooLong { hint } => {
                write!(f, "the server asks for a wait of {hint:?}, longer than allowed")
            }
            Self::Nested => f.write_str("it is made inside of a call that tries again by itself"),
            Self::NotIdempotent => {
                f.write_str("the request may have been processed and is not safe to repeat")
            }
            Self::Permanent => f.write_str("the failure is permanent"),
            Self::QueueFull => f.write_str("too many are waiting for the limiter"),
            Self::Quota => f.write_str("a quota is used up"),
        }
    }
}

impl Error for Stop {}
