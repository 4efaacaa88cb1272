//! Uses the core with no std, no allocator and no entry point of a runtime. Linking is the test:
//! anything that allocated would miss `#[global_allocator]`, and a panic that could be reached the
//! function that its handler calls.

#![no_std]
#![no_main]

use core::cell::Cell;
use core::hint::black_box;
use core::panic::PanicInfo;
use core::time::Duration;

use holdoff::http::{Signals, Statuses, rate_limit};
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
            let headers = black_box([("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]);
            let wall_now = black_box(Some(Duration::from_secs(784_111_657)));
            let mut signals = Signals::from_headers(headers, wall_now);
            signals.hint = signals.hint.or_longer(rate_limit(headers, wall_now));
            match Statuses::LLM.outcome(if attempt.number == 1 { 429 } else { 200 }, signals) {
                Outcome::Failure(failure) => Err(failure),
                Outcome::Success | Outcome::Ignored => Ok(attempt.number),
            }
        },
    );
    black_box::<Result<u32, drive::GaveUp<Failure>>>(answer).ok();
    loop {}
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn a_panic_is_reachable() -> !;
    }
    // SAFETY: there is no such function.
    unsafe { a_panic_is_reachable() }
}

/// Named by the precompiled `core`; with `panic = "abort"` nothing calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
