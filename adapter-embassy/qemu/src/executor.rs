//! embassy's executor, with a sleep of its own: what QEMU knows of `wfe`, which embassy sleeps by,
//! is not to wait.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};
use static_cell::StaticCell;

static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();
/// Whether a task wants to run.
static HAS_WORK: AtomicBool = AtomicBool::new(false);

/// Runs the tasks that `init` spawns, for ever.
pub fn run(init: impl FnOnce(Spawner)) -> ! {
    let executor = EXECUTOR.init(raw::Executor::new(ptr::null_mut()));
    init(executor.spawner());
    loop {
        // SAFETY: it is initialized, and polled here only, which the pender does not reach.
        unsafe { executor.poll() };
        // An interrupt after the look is pending then, and a pending one ends the sleep.
        critical_section::with(|_| {
            if !HAS_WORK.swap(false, Ordering::Relaxed) {
                cortex_m::asm::wfi();
            }
        });
    }
}

// SAFETY: nobody else defines it, and this is the signature that the executor asks for.
#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {
    HAS_WORK.store(true, Ordering::Relaxed);
}
