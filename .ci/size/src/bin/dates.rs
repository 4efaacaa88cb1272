//! The machine with everything, and all of HTTP.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::Outcome;
use holdoff::http::{Signals, Statuses, rate_limit};
use size::{guarded, headers, input, wall_now};

size::no_panic!();

#[entry]
fn main() -> ! {
    guarded(outcome)
}

fn outcome() -> Outcome {
    let mut signals = Signals::from_headers(headers(), wall_now());
    signals.hint = signals.hint.or_longer(rate_limit(headers(), wall_now()));
    Statuses::HTTP.outcome(input(503), signals)
}
