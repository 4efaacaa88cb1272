//! The clock and the sleep.

use core::time::Duration;

use holdoff_embassy::{EmbassyTimer, Instant, Timer};

use crate::bench::Bench;

#[test]
fn a_sleep_ends_on_the_first_tick_at_or_after_its_deadline() {
    // A tick of the mock clock is a microsecond.
    for (nanos, micros) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (5_999_999, 6_000)] {
        let mut bench = Bench::new();
        let slot = bench.spawn(EmbassyTimer.sleep_until(Instant::from_nanos(nanos)));
        bench.advance(Duration::from_micros(micros - 1), Duration::from_micros(1));
        assert!(slot.borrow().is_none(), "{nanos} ns: too early");
        bench.advance(Duration::from_micros(1), Duration::from_micros(1));
        assert!(slot.borrow().is_some(), "{nanos} ns: too late");
    }
}

#[test]
fn the_past_and_the_present_are_over_at_once() {
    let mut bench = Bench::new();
    bench.advance(Duration::from_secs(1), Duration::from_secs(1));
    for nanos in [0, 1, 1_000_000_000] {
        assert!(bench.spawn(EmbassyTimer.sleep_until(Instant::from_nanos(nanos))).take().is_some());
    }
}

#[test]
fn never_is_never_and_a_wait_of_centuries_panics_nowhere() {
    let mut bench = Bench::new();
    let waits = [u64::MAX, u64::MAX - 1, u64::MAX / 2]
        .map(|nanos| bench.spawn(EmbassyTimer.sleep_until(Instant::from_nanos(nanos))));
    let century = Duration::from_secs(100 * 365 * 86_400);
    bench.advance(century, century / 100);
    assert!(waits.iter().all(|wait| wait.borrow().is_none()));
}

/// Longer than the 2^31 ticks (36 minutes here) that the time driver is asked for at once.
#[test]
fn a_wait_beyond_the_timers_range_is_split_and_still_exact() {
    let mut bench = Bench::new();
    let three_days = Duration::from_secs(3 * 86_400);
    let slot = bench.spawn(EmbassyTimer.sleep_until(Instant::EPOCH.saturating_add(three_days)));
    bench.advance(three_days - Duration::from_micros(1), Duration::from_secs(1_000));
    assert!(slot.borrow().is_none());
    bench.advance(Duration::from_micros(1), Duration::from_micros(1));
    assert!(slot.borrow().is_some());
}
