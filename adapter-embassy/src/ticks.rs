//! Nanoseconds and ticks of a clock, for every tick rate up to 18 GHz.

const SECOND: u64 = 1_000_000_000;

/// The instant (nanoseconds) at which tick number `ticks` begins, rounded down; at most
/// `u64::MAX`.
///
/// A whole number of nanoseconds per tick is one multiplication; the rest is two divisions of 64
/// bits and never one of 128.
pub(crate) const fn to_nanos(ticks: u64, per_second: u64) -> u64 {
    if SECOND.is_multiple_of(per_second) {
        return ticks.saturating_mul(SECOND / per_second);
    }
    let (seconds, rest) = (ticks / per_second, ticks % per_second);
    // Fits: `rest` is below `per_second`, which is below 2^64 / 10^9.
    seconds.saturating_mul(SECOND).saturating_add(rest * SECOND / per_second)
}

/// The first tick that begins at `nanos` or later; at most `u64::MAX`.
pub(crate) const fn from_nanos(nanos: u64, per_second: u64) -> u64 {
    if SECOND.is_multiple_of(per_second) {
        return nanos.div_ceil(SECOND / per_second);
    }
    let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
    // Fits: `rest` is below 10^9 and `per_second` below 2^64 / 10^9.
    seconds.saturating_mul(per_second).saturating_add((rest * per_second).div_ceil(SECOND))
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use proptest::prelude::*;

    /// Case C62: 10 us at a slow tick became 0, so the wait did not happen.
    #[test]
    fn a_wait_is_never_shorter_than_asked_and_never_0_ticks() {
        for (per_second, nanos, ticks) in [
            (32_768, 0, 0),
            (32_768, 10_000, 1),
            (32_768, 30_000, 1),
            (32_768, 31_000, 2),
            (32_768, 1_000_000, 33),
            (1_000, 500_000, 1),
            (1_000, 1_000_000, 1),
            (1_000, 1_000_001, 2),
            (100, 1_000_000, 1),
            (1, 1, 1),
            (1, u64::MAX, 18_446_744_074),
            (1_000_000, 1, 1),
            (1_000_000_000, 1, 1),
            (1_000_000_000, u64::MAX, u64::MAX),
            (5_242_880_000, 1, 6),
            (5_242_880_000, u64::MAX, u64::MAX),
        ] {
            assert_eq!(from_nanos(nanos, per_second), ticks, "{nanos} ns at {per_second} Hz");
        }
    }

    #[test]
    fn readings_are_rounded_down_and_saturate() {
        for (per_second, ticks, nanos) in [
            (32_768, 0, 0),
            (32_768, 1, 30_517),
            (32_768, 32_768, SECOND),
            (1_000, 7, 7_000_000),
            (1, u64::MAX, u64::MAX),
            (5_242_880_000, 5, 0),
            (5_242_880_000, 6, 1),
            (3, u64::MAX, u64::MAX),
        ] {
            assert_eq!(to_nanos(ticks, per_second), nanos, "{ticks} ticks at {per_second} Hz");
        }
    }

    /// Rates of embassy-time's features, and any other.
    fn rates() -> impl Strategy<Value = u64> {
        prop_oneof![
            prop::sample::select(vec![
                1,
                10,
                100,
                1_000,
                32_768,
                1_000_000,
                12_000_000,
                16_777_216,
                133_000_000,
                1_000_000_000,
                5_242_880_000
            ]),
            1_u64..=10_000_000_000,
        ]
    }

    fn instants() -> impl Strategy<Value = u64> {
        prop_oneof![0..=u64::MAX, 0..=10 * SECOND, (u64::MAX - 10 * SECOND)..=u64::MAX]
    }

    proptest! {
        #[test]
        fn both_are_the_exact_fraction_rounded(value in instants(), per_second in rates()) {
            let (wide, second) = (u128::from(value), u128::from(SECOND));
            let limit = u128::from(u64::MAX);
            let ticks = (wide * u128::from(per_second)).div_ceil(second).min(limit);
            prop_assert_eq!(u128::from(from_nanos(value, per_second)), ticks);
            let nanos = (wide * second / u128::from(per_second)).min(limit);
            prop_assert_eq!(u128::from(to_nanos(value, per_second)), nanos);
        }

        /// When the tick slept for has come, the clock reads the deadline or later.
        #[test]
        fn a_sleep_ends_at_the_deadline_or_later(deadline in instants(), per_second in rates()) {
            let tick = from_nanos(deadline, per_second);
            prop_assume!(tick < u64::MAX);
            prop_assert!(to_nanos(tick, per_second) >= deadline);
        }

        /// A deadline ahead of the reading lies at least one tick ahead.
        #[test]
        fn a_positive_wait_is_at_least_a_tick(
            tick in 0..=u64::MAX / 2,
            wait in 1..=SECOND,
            per_second in rates(),
        ) {
            let now = to_nanos(tick, per_second);
            prop_assume!(now <= u64::MAX - wait);
            prop_assert!(from_nanos(now + wait, per_second) > tick);
        }
    }
}
