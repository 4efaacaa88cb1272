//! Short names and repeatable samples for the integration tests.

#![allow(dead_code, reason = "each test file uses its part of this")]

pub(crate) mod timer;

use core::time::Duration;

use holdoff::Instant;
use proptest::strategy::Strategy;

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The instant `since` after the clock's epoch.
pub(crate) const fn at(since: Duration) -> Instant {
    Instant::EPOCH.saturating_add(since)
}

/// Samples uniform over all of `u64`, the same on every run (SplitMix64).
pub(crate) fn samples(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = seed;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Any time from `shortest` to `longest`, both included.
pub(crate) fn between(
    shortest: Duration,
    longest: Duration,
) -> impl Strategy<Value = Duration> + Clone {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).expect("under 584 years");
    (nanos(shortest)..=nanos(longest)).prop_map(Duration::from_nanos)
}
