//! Times as a breaker's word holds them: milliseconds, rounded so that it never opens early.

use crate::time::Instant;
use crate::wide::{divided, divided_up};

/// The latest time that a word can hold: 139 years after the epoch. What ends then never ends.
pub(super) const TIME_MAX: u64 = (1 << 42) - 1;

/// How many nanoseconds a millisecond has.
pub(super) const NANOS: u32 = 1_000_000;

/// `nanos` nanoseconds in milliseconds, rounded up, and `more` of these: at most the latest time,
/// which `more` may not be past.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) const fn up(nanos: u64, more: u64) -> u64 {
    let millis = divided_up::<NANOS>(nanos) + more; // OK: below 2^45 and 2^42.
    if millis < TIME_MAX { millis } else { TIME_MAX }
}

/// `instant` in milliseconds, rounded down; stands still just before the latest time.
pub(super) const fn down(instant: Instant) -> u64 {
    let millis = divided::<NANOS>(instant.as_nanos()).0;
    if millis < TIME_MAX { millis } else { TIME_MAX - 1 }
}

/// When it is `millis`; what is as late as the latest time, or later, never is.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) const fn instant(millis: u64) -> Instant {
    if millis < TIME_MAX { Instant::from_nanos(millis * NANOS as u64) } else { Instant::MAX }
}

/// Whether it is not yet `millis`, as it never is if that is the latest time or later.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) fn is_before(now: Instant, millis: u64) -> bool {
    let then = instant(millis);
    now < then || then == Instant::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rounded_up_ends_at_the_latest_time() {
        for (nanos, more, millis) in [
            (0, 0, 0),
            (1, 0, 1),
            (1_000_000, 0, 1),
            (1_000_001, 5, 7),
            (TIME_MAX * 1_000_000 - 1, 0, TIME_MAX),
            (0, TIME_MAX, TIME_MAX),
            (1, TIME_MAX, TIME_MAX),
            (u64::MAX, TIME_MAX, TIME_MAX),
        ] {
            assert_eq!(up(nanos, more), millis, "{nanos} ns and {more} ms");
        }
    }

    #[test]
    fn it_is_never_the_latest_time() {
        for (nanos, millis, expected) in [
            (0, 0, false),
            (4_999_999, 5, true),
            (5_000_000, 5, false),
            ((TIME_MAX - 1) * 1_000_000, TIME_MAX - 1, false),
            (u64::MAX, TIME_MAX - 1, false),
            (u64::MAX, TIME_MAX, true),
            (u64::MAX, TIME_MAX + 1, true),
        ] {
            let now = Instant::from_nanos(nanos);
            assert_eq!(is_before(now, millis), expected, "{nanos} ns, {millis} ms");
        }
    }
}
