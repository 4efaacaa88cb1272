//! The clock over a counter that wraps: nobody's reading is ahead of the counter, or behind it.

use core::num::NonZeroU32;

use holdoff::TickClock;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::explore;

/// The counter when a model begins: the next tick wraps.
const START: u64 = u32::MAX as u64;

/// A register: a read-modify-write, because only that sees the present value and nothing older.
fn register(counter: &AtomicU32) -> u32 {
    counter.fetch_add(0, Ordering::AcqRel)
}

// Mutants: counter-before-word, counter-once
#[test]
fn a_reading_that_another_overtook_is_no_wrap() {
    explore(|| {
        let counter = Arc::new(AtomicU32::new(u32::MAX));
        let source = {
            let counter = Arc::clone(&counter);
            move || register(&counter)
        };
        let clock = Arc::new(TickClock::new(source, NonZeroU32::MIN));
        assert_eq!(clock.ticks(), START);
        // An interrupt of the timer that also reads the clock.
        let other = {
            let (clock, counter) = (Arc::clone(&clock), Arc::clone(&counter));
            thread::spawn(move || {
                for passed in 1..=2 {
                    counter.fetch_add(1, Ordering::AcqRel);
                    assert_eq!(clock.ticks(), START + passed);
                }
            })
        };
        let first = clock.ticks();
        let second = clock.ticks();
        assert!(START <= first && first <= second && second <= START + 2, "{first}, {second}");
        other.join().expect("no panic");
        assert_eq!(clock.ticks(), START + 2);
    });
}
