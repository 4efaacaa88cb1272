//! What the images of `holdoff-embassy` share: a clock, a task's work, and a panic handler.

use core::cell::Cell;
use core::future::Future;
use core::panic::PanicInfo;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use critical_section::Mutex;
use embassy_time_driver::{Driver, time_driver_impl};
use holdoff_embassy::Failure;
use size::{input, output};

/// One that is linked, with what calls it.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::asm::udf()
}

/// Time passes when somebody looks.
struct Clock(Mutex<Cell<u64>>);

time_driver_impl!(static CLOCK: Clock = Clock(Mutex::new(Cell::new(0))));

impl Driver for Clock {
    fn now(&self) -> u64 {
        critical_section::with(|section| {
            let ticks = self.0.borrow(section);
            ticks.set(ticks.get().wrapping_add(1));
            ticks.get()
        })
    }

    fn schedule_wake(&self, _: u64, _: &Waker) {}
}

/// Polls it a few times, at most to its end, and drops it where it is then.
pub(crate) fn poll(future: impl Future) {
    let mut future = pin!(future);
    for _ in 0..input(9) {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output(result);
        }
    }
}

pub(crate) async fn work() -> Result<u32, Failure> {
    if input(true) { Err(Failure::transient()) } else { Ok(input(4)) }
}
