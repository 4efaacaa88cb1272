//! Waiting in line at a limiter: what a line is, and what can go wrong in it.

use core::error::Error;
use core::fmt;
use core::future::{Future, pending};

use crate::time::Instant;

/// Where calls wait in line for a limiter.
///
/// The holder of the [`Place`](Self::Place) is at the head; only the head asks the limiter and
/// sleeps. For a line that is shared, implement it for a reference to the line, so that the place
/// can borrow from it. Dropping the place, or the future that waits for it, lets the next one in
/// and leaves no debt behind.
pub trait Queue {
    /// The head of the line; where there are several lines, of as many as are joined so far.
    type Place;

    /// Waits to become the head, or, holding a place, of the next line if there is one.
    ///
    /// # Errors
    /// [`QueueFull`] at once if too many are waiting already.
    fn join(
        &self,
        place: Option<Self::Place>,
    ) -> impl Future<Output = Result<Self::Place, QueueFull>>;

    /// When a limit will have what is needed that has to be waited for before the next line is
    /// joined. `None`, always where there is one line only: ask the call.
    fn missing(&self, _place: &Self::Place) -> Option<Instant> {
        None
    }

    /// The head is not admitted yet: what it keeps of its place while it waits.
    fn throttled(&self, place: Self::Place) -> Self::Place {
        place
    }

    /// Completes when a limiter changed so that the holder of `place` may be admitted earlier than
    /// it was told.
    fn changed(&self, _place: &Self::Place) -> impl Future<Output = ()> {
        pending()
    }
}

/// Too many are waiting in line already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QueueFull;

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many are waiting in line already")
    }
}

impl Error for QueueFull {}

/// No line: everybody asks, and whoever asks first after a token is there gets it.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoQueue;

impl Queue for NoQueue {
    type Place = ();

    async fn join(&self, _place: Option<()>) -> Result<(), QueueFull> {
        Ok(())
    }
}

/// Why a limiter with a line did not let somebody wait. Nothing was taken.
///
/// ```
/// use holdoff::drive::{AcquireError, QueueFull};
///
/// let error = AcquireError::CostTooHigh { burst: 5 };
/// assert_eq!(error.to_string(), "cost is above the limiter's burst of 5");
/// assert_eq!(AcquireError::from(QueueFull), AcquireError::QueueFull);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum AcquireError {
    /// The cost is above the burst: no wait is long enough.
    CostTooHigh {
        /// The largest cost that can be admitted.
        burst: u32,
    },
    /// Too many are waiting already.
    QueueFull,
}

impl From<QueueFull> for AcquireError {
    fn from(_: QueueFull) -> Self {
        Self::QueueFull
    }
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CostTooHigh { burst } => {
                write!(f, "cost is above the limiter's burst of {burst}")
            }
            Self::QueueFull => f.write_str("too many are waiting for the limiter"),
        }
    }
}

impl Error for AcquireError {}
