//! The machine with everything, statuses and `Retry-After` without dates.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::Outcome;
use holdoff::http::{Signals, Statuses};
use size::{guarded, headers, input};

size::no_panic!();

#[entry]
fn main() -> ! {
    guarded(outcome)
}

fn outcome() -> Outcome {
    let signals = Signals::from_headers(headers(), None);
    Statuses::HTTP.outcome(input(503), signals)
}
