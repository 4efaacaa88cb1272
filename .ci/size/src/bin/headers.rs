//! The machine with everything, statuses and `Retry-After` without dates.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::Outcome;
use holdoff::http::{Signals, Statuses};
use size::{BREAKER, BUDGET, LIMITER, drive, input};

size::no_panic!();

#[entry]
fn main() -> ! {
    loop {
        drive(
            |call| call.with_breaker(&BREAKER).with_limiter(&LIMITER, 1).with_budget(&BUDGET),
            outcome,
        );
    }
}

fn outcome() -> Outcome {
    let headers: &[(&str, &[u8])] = input(&[("retry-after", b"1")]);
    let signals = Signals::from_headers(headers.iter().copied(), None);
    Statuses::HTTP.outcome(input(503), signals)
}
