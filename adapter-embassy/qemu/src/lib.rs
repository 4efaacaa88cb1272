//! What the examples stand on: a Cortex-M3 under QEMU.
//!
//! - [`systick`]: milliseconds, and embassy's time driver.
//! - [`executor`]: embassy's executor, asleep while there is nothing to do.
//! - [`succeed`]: the end of an example. A failed assertion is the other one: its message is
//!   printed, and the exit code is not 0.

#![no_std]

pub mod executor;
pub mod systick;

use cortex_m_rt::{ExceptionFrame, exception};
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hprintln;
use panic_semihosting as _;

/// Ends the program with exit code 0.
pub fn succeed() -> ! {
    exit(EXIT_SUCCESS);
    loop {
        cortex_m::asm::wfi();
    }
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    hprintln!("hard fault: {:?}", frame);
    exit(EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}
