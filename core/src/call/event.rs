//! What those who watch a call are told.

use core::fmt;
use core::time::Duration;

use super::step::{DelaySource, Stop};
use crate::breaker::BreakerChange;
use crate::outcome::Failure;
use crate::time::Instant;

/// Something that happened in a call, told when it happens: a wait before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Event {
    /// An attempt starts.
    Attempt {
        /// What the circuit breaker made of it.
        kind: AttemptKind,
    },
    /// It will be tried again after `delay`.
    Backoff {
        /// What the last attempt came to.
        failure: Failure,
        /// How long the wait is.
        delay: Duration,
        /// Where the delay comes from.
        source: DelaySource,
    },
    /// The circuit breaker opened or closed.
    Breaker(BreakerChange),
    /// There is no further attempt.
    Stop(Stop),
    /// The call succeeded.
    Success,
    /// The limiter has no token before `until`.
    Throttled {
        /// The earliest instant at which there can be one.
        until: Instant,
    },
}

/// What a circuit breaker made of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AttemptKind {
    /// One like any other.
    Ordinary,
    /// The one that finds out whether the service is back.
    Probe,
    /// The breaker, in [`Mode::Shadow`](crate::Mode::Shadow), would have refused it.
    Shadow,
}

/// An [`Event`] and where the call stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Observation {
    /// What happened.
    pub event: Event,
    /// Attempts started so far, an [`Event::Attempt`] included.
    pub attempts: u32,
    /// The time since the call started.
    pub elapsed: Duration,
    /// When it happened.
    pub now: Instant,
}

/// Somebody who watches calls: a logger, a meter, [`Counters`](crate::Counters).
///
/// Called in the middle of a decision, possibly in an interrupt: it should be quick and must not
/// wait.
///
/// On a device that logs by `defmt` (feature `defmt`):
///
#[cfg_attr(feature = "defmt", doc = "```no_run")]
#[cfg_attr(not(feature = "defmt"), doc = "```ignore")]
/// use holdoff::{Event, Observation, Observer, Upstream};
///
/// #[derive(Debug)]
/// struct Log;
///
/// impl Observer for Log {
///     fn on_event(&self, observation: &Observation) {
///         match observation.event {
///             Event::Stop(stop) => defmt::warn!("{} after {}", stop, observation.attempts),
///             event => defmt::debug!("{}", event),
///         }
///     }
/// }
///
/// static BROKER: Upstream = Upstream::new().with_observer(&Log);
/// # let _ = &BROKER;
/// ```
pub trait Observer: Sync {
    /// Something happened.
    fn on_event(&self, observation: &Observation);
}

/// No more than that it is one: an observer that had to be `Debug` would link its text into every
/// image.
impl fmt::Debug for dyn Observer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl<O: Observer + ?Sized> Observer for &O {
    fn on_event(&self, observation: &Observation) {
        (**self).on_event(observation);
    }
}

/// Both are told, in this order.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_event(&self, observation: &Observation) {
        self.0.on_event(observation);
        self.1.on_event(observation);
    }
}
