//! Uses the core with no std, no allocator and no entry point of a runtime. Linking is the test:
//! anything that allocated would miss `#[global_allocator]`.

#![no_std]
#![no_main]

use core::cell::Cell;
use core::panic::PanicInfo;

use holdoff::http::{Signals, Statuses};
use holdoff::{
    Call, Failure, Instant, Limiter, Outcome, Policy, Quota, Rate, Safety, classified, drive, valid,
};

static LIMITER: Limiter = Limiter::new(valid!(Quota::new(Rate::per_second(10), 20)));

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let clock = Cell::new(Instant::EPOCH);
    let answer = drive::run_blocking(
        &clock,
        |delay| clock.set(clock.get().saturating_add(delay)),
        |now| Call::new(&Policy::LLM, Safety::Idempotent, now).with_limiter(&LIMITER, 1),
        || 0,
        classified,
        |attempt| {
            let signals = Signals::from_headers([("retry-after", "1")], None);
            match Statuses::LLM.outcome(if attempt.number == 1 { 429 } else { 200 }, signals) {
                Outcome::Failure(failure) => Err(failure),
                Outcome::Success | Outcome::Ignored => Ok(attempt.number),
            }
        },
    );
    core::hint::black_box::<Result<u32, drive::GaveUp<Failure>>>(answer).ok();
    loop {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Named by the precompiled `core`; with `panic = "abort"` nothing calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
