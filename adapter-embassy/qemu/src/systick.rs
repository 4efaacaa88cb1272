//! Time: SysTick counts milliseconds, and embassy's ticks are computed from them.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::task::Waker;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, TICK_HZ, time_driver_impl};
use embassy_time_queue_utils::Queue;

/// What the core of this machine runs at (Hz).
pub const CORE_HZ: u32 = 12_000_000;
/// Cycles of the core in a millisecond. In a tick of 32,768 Hz their number is not whole.
const CYCLES: u32 = CORE_HZ / 1_000;

time_driver_impl!(static DRIVER: SysTick = SysTick {
    millis: Mutex::new(Cell::new(0)),
    step: Mutex::new(Cell::new(0)),
    alarm: Mutex::new(Cell::new(u64::MAX)),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

/// Starts to count from 0, in steps of `step` ms (1 to 1,000): with longer ones there is less to
/// do, and timers end later. The program's handler of SysTick must call [`on_tick`].
pub fn start(mut timer: SYST, step: u16) {
    let step = step.clamp(1, 1_000);
    critical_section::with(|section| DRIVER.step.borrow(section).set(step.into()));
    timer.set_reload(u32::from(step) * CYCLES - 1); // OK: below 2^24.
    timer.clear_current();
    timer.set_clock_source(SystClkSource::Core);
    timer.enable_interrupt();
    timer.enable_counter();
}

/// A step has passed.
pub fn on_tick() {
    critical_section::with(|section| DRIVER.advance(section));
}

/// Milliseconds since the start, rounded down.
#[must_use]
pub fn now() -> u64 {
    critical_section::with(|section| DRIVER.millis.borrow(section).get())
}

/// Sleeps until `at` (ms), with the core halted.
pub fn sleep_until(at: u64) {
    while now() < at {
        // A tick after the look is pending then, and a pending one ends the sleep.
        critical_section::with(|section| {
            if DRIVER.millis.borrow(section).get() < at {
                cortex_m::asm::wfi();
            }
        });
    }
}

struct SysTick {
    millis: Mutex<Cell<u64>>,
    step: Mutex<Cell<u64>>,
    /// When the earliest timer ends (ticks).
    alarm: Mutex<Cell<u64>>,
    queue: Mutex<RefCell<Queue>>,
}

impl SysTick {
    fn advance(&self, section: CriticalSection<'_>) {
        let millis = self.millis.borrow(section).get() + self.step.borrow(section).get();
        self.millis.borrow(section).set(millis);
        let now = self.ticks(section);
        if now >= self.alarm.borrow(section).get() {
            self.wake(section, now);
        }
    }

    /// Ticks since the start, rounded down.
    fn ticks(&self, section: CriticalSection<'_>) -> u64 {
        let millis = self.millis.borrow(section).get();
        millis * TICK_HZ / 1_000 // OK: no run lasts a thousand years.
    }

    fn wake(&self, section: CriticalSection<'_>, now: u64) {
        let next = self.queue.borrow_ref_mut(section).next_expiration(now);
        self.alarm.borrow(section).set(next);
    }
}

impl Driver for SysTick {
    fn now(&self) -> u64 {
        critical_section::with(|section| self.ticks(section))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            if self.queue.borrow_ref_mut(section).schedule_wake(at, waker) {
                self.wake(section, self.ticks(section));
            }
        });
    }
}

impl fmt::Debug for SysTick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SysTick").field("now", &self.now()).finish_non_exhaustive()
    }
}
