//! A clock over a 32-bit tick counter that wraps, as most chips have one.
//!
//! ```text
//! word  63..32 how often the counter has been seen to wrap
//!       31..0  the counter when it was last read
//! ```

use core::fmt;
use core::num::NonZeroU32;

use crate::sync::{Next, Word};
use crate::time::{Clock, Instant};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A [`Clock`] over a 32-bit tick counter that wraps, such as a `millis()`, widened to 64 bits.
///
/// Usable through `&self` from any task, thread or interrupt; 16 bytes with a function pointer as
/// its source on a 32-bit target, and a `static`. It never steps back, also across a wrap, also
/// read for the first time after 2³¹ ticks and more.
///
/// It must be read at least once in 2³² ticks (49 days of milliseconds, 71 minutes of
/// microseconds). Wraps that nobody saw are lost: it then runs behind by a multiple of 2³² ticks,
/// and what waits on it ends that much later. A timer or an interrupt that reads it now and then
/// prevents that on a device that can sleep longer.
///
/// Its epoch is when the counter was last 0 before the first reading, so after boot usually the
/// boot.
///
/// ```
/// use core::cell::Cell;
/// use holdoff::{Clock, TickClock};
///
/// fn millis() -> u32 {
///     7 // a hardware register
/// }
///
/// static CLOCK: TickClock = TickClock::millis(millis);
/// assert_eq!(CLOCK.now().as_nanos(), 7_000_000);
///
/// let counter = Cell::new(u32::MAX);
/// let clock = TickClock::millis(|| counter.get());
/// let before = clock.now();
/// counter.set(1); // it has wrapped
/// assert_eq!(clock.now().saturating_duration_since(before).as_millis(), 2);
/// ```
pub struct TickClock<S = fn() -> u32> {
    source: S,
    ticks_per_second: NonZeroU32,
    latest: Word,
}

impl<S> TickClock<S> {
    /// A clock over `source`, which counts `ticks_per_second`.
    ///
    /// `source` reads the counter. It must use all 32 bits, must not step back (it would look like
    /// a whole wrap), and must count the same for every core and interrupt that reads this clock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(source: S, ticks_per_second: NonZeroU32) -> Self {
        Self { source, ticks_per_second, latest: Word::new(0) }
    }

    /// A clock over `source`, which counts `ticks_per_second`.
    #[cfg(loom)]
    #[must_use]
    pub fn new(source: S, ticks_per_second: NonZeroU32) -> Self {
        Self { source, ticks_per_second, latest: Word::new(0) }
    }

    /// A clock over `source`, which counts milliseconds; else as [`new`](Self::new).
    #[cfg(not(loom))]
    #[must_use]
    pub const fn millis(source: S) -> Self {
        Self::new(source, MILLIS_PER_SECOND)
    }

    /// How fast the counter counts.
    #[must_use]
    pub const fn ticks_per_second(&self) -> NonZeroU32 {
        self.ticks_per_second
    }
}

impl<S: Fn() -> u32> TickClock<S> {
    /// Ticks since the epoch, at most `u64::MAX`.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.latest.update(|latest| {
            // Read after the word and again for every word: a reading that is older than the word
            // would look like a whole wrap.
            let counter = (self.source)();
            let ticks = advanced(latest, counter);
            if ticks == latest { Next::Keep(ticks) } else { Next::Store(ticks, ticks) }
        })
    }
}

impl<S: Fn() -> u32> Clock for TickClock<S> {
    fn now(&self) -> Instant {
        Instant::from_nanos(nanos(self.ticks(), self.ticks_per_second))
    }
}

impl<S> fmt::Debug for TickClock<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TickClock")
            .field("ticks_per_second", &self.ticks_per_second)
            .field("latest", &self.latest)
            .finish_non_exhaustive()
    }
}

#[cfg(not(loom))]
const MILLIS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN.saturating_add(999);

/// The first number of ticks from `latest` on whose lower half is `counter`, at most `u64::MAX`.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what the counter showed")]
const fn advanced(latest: u64, counter: u32) -> u64 {
    latest.saturating_add(counter.wrapping_sub(latest as u32) as u64)
}

/// `ticks` in nanoseconds, rounded down, at most `u64::MAX`.
const fn nanos(ticks: u64, ticks_per_second: NonZeroU32) -> u64 {
    let rate = ticks_per_second.get() as u64;
    let (seconds, rest) = (ticks / rate, ticks % rate);
    // rest < 2^32, so its product stays below 2^62.
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(rest * NANOS_PER_SECOND / rate)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use proptest::prelude::*;
    use std::thread_local;
    use std::vec::Vec;

    use super::*;

    const WRAP: u64 = 1 << 32;

    const fn rate(ticks_per_second: u32) -> NonZeroU32 {
        NonZeroU32::new(ticks_per_second).expect("not zero")
    }

    #[test]
    fn a_counter_is_widened_across_wraps() {
        for (latest, counter, ticks) in [
            (0, 0, 0),
            (0, 5_000, 5_000),
            (0, u32::MAX, WRAP - 1),
            (WRAP - 1, u32::MAX, WRAP - 1),
            (WRAP - 1, 0, WRAP),
            (10, 9, WRAP + 9),
            (10, 10 + (1 << 31), 10 + (1 << 31)),
            (WRAP - 1, (1 << 31) + 7, WRAP + (1 << 31) + 7),
            (7 * WRAP, u32::MAX, 8 * WRAP - 1),
            (u64::MAX - 1, u32::MAX, u64::MAX),
            (u64::MAX - 1, 3, u64::MAX),
            (u64::MAX, u32::MAX, u64::MAX),
            (u64::MAX, 0, u64::MAX),
        ] {
            assert_eq!(advanced(latest, counter), ticks, "{latest} then {counter}");
        }
    }

    #[test]
    fn ticks_become_nanoseconds_rounded_down_and_saturated() {
        for (ticks, ticks_per_second, expected) in [
            (0, 1, 0),
            (1, 1, 1_000_000_000),
            (1, 1_000, 1_000_000),
            (WRAP, 1_000, 4_294_967_296_000_000),
            (1, 32_768, 30_517),
            (2, 32_768, 61_035),
            (32_768, 32_768, 1_000_000_000),
            (1, 3, 333_333_333),
            (2, 3, 666_666_666),
            (1, u32::MAX, 0),
            (5, u32::MAX, 1),
            (u64::MAX / 1_000_000, 1_000, 18_446_744_073_709_000_000),
            (u64::MAX / 1_000_000 + 1, 1_000, u64::MAX),
            (u64::MAX, 1_000_000_000, u64::MAX),
            (u64::MAX, 1, u64::MAX),
        ] {
            assert_eq!(nanos(ticks, rate(ticks_per_second)), expected, "{ticks}");
        }
    }

    thread_local! {
        static COUNTER: Cell<u32> = const { Cell::new(0) };
        /// Interrupts to come before, and after, the counter is read.
        static PENDING: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    }
    static CLOCK: TickClock = TickClock::millis(interrupted);

    fn interrupted() -> u32 {
        let (before, after) = PENDING.take();
        let interrupt = || {
            COUNTER.set(COUNTER.get().wrapping_add(1));
            let _ = CLOCK.ticks();
        };
        (0..before).for_each(|_| interrupt());
        let counter = COUNTER.get();
        (0..after).for_each(|_| interrupt());
        counter
    }

    #[test]
    fn a_reading_overtaken_by_an_interrupt_is_no_wrap() {
        let mut passed = WRAP - 2;
        COUNTER.set(u32::MAX - 1);
        assert_eq!(CLOCK.ticks(), passed);
        for pending in [(1, 0), (0, 1), (2, 3), (0, 2)] {
            PENDING.set(pending);
            let before = passed;
            passed += u64::from(pending.0 + pending.1);
            // Of the present or of when it was asked for, and nothing else.
            assert!((before..=passed).contains(&CLOCK.ticks()), "{pending:?}");
            assert_eq!(CLOCK.ticks(), passed, "{pending:?}");
        }
    }

    proptest! {
        #[test]
        fn any_series_of_readings_follows_a_counter_that_never_wraps(
            start in any::<u32>(),
            ticks_per_second in 1..=u32::MAX,
            steps in prop::collection::vec(
                prop_oneof![0..4_u32, any::<u32>(), (u32::MAX - 3)..=u32::MAX, Just(1 << 31)],
                0..50,
            ),
        ) {
            let mut passed = u64::from(start);
            let counter = Cell::new(start);
            let clock = TickClock::new(|| counter.get(), rate(ticks_per_second));
            let mut readings = Vec::new();
            for step in [0].into_iter().chain(steps) {
                passed += u64::from(step);
                counter.set(counter.get().wrapping_add(step));
                let exact = u128::from(passed) * 1_000_000_000 / u128::from(ticks_per_second);
                let expected = u64::try_from(exact).unwrap_or(u64::MAX);
                prop_assert_eq!(clock.now().as_nanos(), expected);
                prop_assert_eq!(clock.ticks(), passed);
                readings.push(clock.now());
            }
            prop_assert!(readings.is_sorted());
        }

        #[test]
        fn unseen_wraps_are_lost_and_nothing_goes_back(
            steps in prop::collection::vec(0..4 * WRAP, 1..50),
        ) {
            let mut passed = 0_u64;
            let counter = Cell::new(0);
            let clock = TickClock::millis(|| counter.get());
            let mut expected = 0;
            for step in steps {
                passed += step;
                counter.set(u32::try_from(passed % WRAP).expect("below a wrap"));
                expected += step % WRAP;
                prop_assert_eq!(clock.ticks(), expected);
            }
        }

        #[test]
        fn any_ticks_at_any_rate_are_what_wide_arithmetic_says(
            ticks in any::<u64>(),
            ticks_per_second in 1..=u32::MAX,
        ) {
            let exact = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second);
            let expected = u64::try_from(exact).unwrap_or(u64::MAX);
            prop_assert_eq!(nanos(ticks, rate(ticks_per_second)), expected);
        }
    }
}
