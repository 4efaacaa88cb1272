//! What is known of a call that ended without success.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::call::{Call, Stop};
use crate::time::Instant;

/// A call that ended without success: why, and everything known about it.
///
/// `E` is the caller's error, or the response that was not good enough. Nothing handed in is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct GaveUp<E> {
    /// The error of the last attempt that returned one, untouched. `None` if there was no attempt
    /// or each one was cut off by its timeout.
    pub last: Option<E>,
    /// Why there was no further attempt.
    pub stop: Stop,
    /// Whether the last attempt was cut off by its timeout; `last` is of an earlier one, then.
    pub timed_out: bool,
    /// Attempts made.
    pub attempts: u32,
    /// The time since the call started.
    pub elapsed: Duration,
    /// How long from then until another attempt could make sense, where that is known.
    pub retry_after: Option<Duration>,
}

impl<E> GaveUp<E> {
    // Not on the stack while attempts are made.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(super) const fn new<const BUCKETS: usize>(
        call: &Call<'_, BUCKETS>,
        now: Instant,
        stop: Stop,
        last: Option<E>,
        timed_out: bool,
    ) -> Self {
        Self {
            last,
            stop,
            timed_out,
            attempts: call.attempts(),
            elapsed: call.elapsed(now),
            retry_after: call.retry_after(),
        }
    }
}

impl<E> fmt::Display for GaveUp<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        let (attempts, elapsed) = (self.attempts, rounded(self.elapsed));
        write!(f, "gave up after {attempts} attempt{plural} in {elapsed:?}: {}", self.stop)?;
        if self.timed_out {
            f.write_str("; the last attempt timed out")?;
        }
        match self.retry_after {
            Some(Duration::MAX) | None => Ok(()),
            Some(delay) => write!(f, "; worth another try in {:?}", rounded(delay)),
        }
    }
}

/// To the millisecond, if it is that long.
fn rounded(time: Duration) -> Duration {
    match Duration::new(time.as_secs(), time.subsec_millis() * 1_000_000) {
        Duration::ZERO => time,
        rounded => rounded,
    }
}

impl<E: Error + 'static> Error for GaveUp<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|last| last as _)
    }
}
