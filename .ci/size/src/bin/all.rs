//! The machine with everything, and all of HTTP but dates.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::Outcome;
use holdoff::http::{Signals, Statuses, rate_limit};
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
    let mut signals = Signals::from_headers(headers.iter().copied(), None);
    signals.hint = signals.hint.or_longer(rate_limit(headers.iter().copied(), None));
    Statuses::HTTP.outcome(input(503), signals)
}
