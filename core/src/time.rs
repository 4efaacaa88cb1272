//! Time as the machine sees it, and the one seam through which it comes in.

use core::cell::Cell;
use core::future::Future;
use core::time::Duration;

/// A point in monotonic time: nanoseconds since an epoch that the clock picks.
///
/// Only differences mean anything, and only between readings of one clock. Arithmetic saturates:
/// a clock that steps back yields an elapsed time of zero, and [`Instant::MAX`] means "never".
///
/// ```
/// use core::time::Duration;
/// use holdoff::Instant;
///
/// let start = Instant::from_nanos(5_000_000_000);
/// assert_eq!(start.saturating_sub(Duration::from_secs(60)), Instant::EPOCH);
/// assert_eq!(start.saturating_add(Duration::MAX), Instant::MAX);
/// assert_eq!(Instant::EPOCH.saturating_duration_since(start), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The clock's epoch, the earliest instant.
    pub const EPOCH: Self = Self(0);
    /// The latest instant, about 584 years after the epoch: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant `duration` later, at most [`Instant::MAX`].
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }

    /// The instant `duration` earlier, at least [`Instant::EPOCH`].
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(duration)))
    }

    /// The instant `nanos` nanoseconds later, at most [`Instant::MAX`].
    pub(crate) const fn later(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// The time from `earlier` to `self`, zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        duration(self.0.saturating_sub(earlier.0))
    }
}

/// Nanoseconds since the epoch.
#[cfg(feature = "defmt")]
impl defmt::Format for Instant {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u64} ns", self.0);
    }
}

/// `duration` in nanoseconds, at most `u64::MAX` (584 years).
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn saturating_nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(SECOND).saturating_add(duration.subsec_nanos() as u64)
}

/// `nanos` nanoseconds.
#[cfg(target_pointer_width = "64")]
pub(crate) const fn duration(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// `nanos` nanoseconds.
#[cfg(not(target_pointer_width = "64"))]
#[inline(never)]
pub(crate) const fn duration(nanos: u64) -> Duration {
    let (seconds, rest) = crate::wide::divided::<1_000_000_000>(nanos);
    from_parts(seconds, rest)
}

/// `nanos` nanoseconds, where `u64::MAX` stands for no limit.
pub(crate) const fn duration_unless_max(nanos: u64) -> Option<Duration> {
    if nanos < u64::MAX { Some(duration(nanos)) } else { None }
}

/// The nanoseconds of a limit, `u64::MAX` if there is none.
pub(crate) const fn nanos_or_max(limit: Option<Duration>) -> u64 {
    match limit {
        Some(limit) => saturating_nanos(limit),
        None => u64::MAX,
    }
}

/// The sum, at most [`Duration::MAX`].
///
/// This and what follows do as `core` does, in a way in which the optimizer sees that nothing can
/// panic: nanoseconds that are checked last.
pub(crate) const fn plus(a: Duration, b: Duration) -> Duration {
    let nanos = a.subsec_nanos() + b.subsec_nanos(); // OK: below 2·10^9.
    let is_carried = nanos >= NANOS;
    let Some(seconds) = a.as_secs().checked_add(b.as_secs()) else { return Duration::MAX };
    let Some(seconds) = seconds.checked_add(is_carried as u64) else { return Duration::MAX };
    from_parts(seconds, if is_carried { nanos - NANOS } else { nanos })
}

/// The difference, at least zero.
pub(crate) const fn minus(a: Duration, b: Duration) -> Duration {
    let is_borrowed = a.subsec_nanos() < b.subsec_nanos();
    let nanos = a.subsec_nanos() + if is_borrowed { NANOS } else { 0 } - b.subsec_nanos();
    let Some(seconds) = a.as_secs().checked_sub(b.as_secs()) else { return Duration::ZERO };
    let Some(seconds) = seconds.checked_sub(is_borrowed as u64) else { return Duration::ZERO };
    from_parts(seconds, nanos)
}

/// `nanos` must be below 10^9.
const fn from_parts(seconds: u64, nanos: u32) -> Duration {
    Duration::new(seconds, if nanos < NANOS { nanos } else { 0 })
}

const NANOS: u32 = 1_000_000_000;
const SECOND: u64 = NANOS as u64;

/// A monotonic clock. Readings are rounded down.
///
/// It may stand still or step back: every decision saturates. A wall clock does not qualify; a
/// step forward of it would end deadlines at once.
///
/// A [`Cell`] holding an [`Instant`] is a clock that a test moves by hand:
///
/// ```
/// use core::cell::Cell;
/// use holdoff::{Clock, Instant};
///
/// let clock = Cell::new(Instant::EPOCH);
/// clock.set(Instant::from_nanos(7));
/// assert_eq!(clock.now().as_nanos(), 7);
/// ```
pub trait Clock {
    /// The present instant.
    fn now(&self) -> Instant;
}

/// A [`Clock`] that can also wait: the seam between the machine and a runtime.
///
/// Virtual time, in which a wait is over as soon as it is begun:
///
/// ```
/// use core::cell::Cell;
/// use holdoff::{Clock, Instant, Timer};
///
/// struct Virtual(Cell<Instant>);
///
/// impl Clock for Virtual {
///     fn now(&self) -> Instant {
///         self.0.get()
///     }
/// }
///
/// impl Timer for Virtual {
///     async fn sleep_until(&self, deadline: Instant) {
///         self.0.set(self.0.get().max(deadline));
///     }
/// }
/// ```
pub trait Timer: Clock {
    /// Waits until this clock reads `deadline` or later (deadlines are rounded up).
    ///
    /// A deadline in the past completes at once, [`Instant::MAX`] never does. Dropping the future
    /// ends the wait and frees whatever timer it held.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()>;
}

impl Clock for Cell<Instant> {
    fn now(&self) -> Instant {
        self.get()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

impl<T: Timer + ?Sized> Timer for &T {
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        (**self).sleep_until(deadline)
    }
}

/// The operating system's monotonic clock, for blocking callers (feature `std`).
///
/// Its epoch is its creation.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    epoch: std::time::Instant,
}

#[cfg(feature = "std")]
impl MonotonicClock {
    /// A clock that starts at [`Instant::EPOCH`].
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: std::time::Instant::now() }
    }
}

#[cfg(feature = "std")]
impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "std")]
impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::EPOCH.saturating_add(self.epoch.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_and_differences_are_those_of_core(
            a: Duration,
            b: Duration,
            near in 0..3_000_000_000_u64,
        ) {
            let near = Duration::from_nanos(near);
            for b in [b, near, a, Duration::MAX.saturating_sub(near)] {
                prop_assert_eq!(plus(a, b), a.saturating_add(b));
                prop_assert_eq!(minus(a, b), a.saturating_sub(b));
                prop_assert_eq!(minus(b, a), b.saturating_sub(a));
            }
        }
    }

    #[test]
    fn nanoseconds_saturate_instead_of_wrapping() {
        for (duration, nanos) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_nanos(u64::MAX), u64::MAX),
            (Duration::from_nanos(u64::MAX) + Duration::from_nanos(1), u64::MAX),
            (Duration::MAX, u64::MAX),
        ] {
            assert_eq!(saturating_nanos(duration), nanos, "{duration:?}");
        }
    }
}
