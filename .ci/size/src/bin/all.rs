//! The machine with everything, and all of HTTP but dates.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::Outcome;
use holdoff::http::{Signals, Statuses, rate_limit};
use size::{guarded, headers, input};

size::no_panic!();

#[entry]
fn main() -> ! {
    guarded(outcome)
}

fn outcome() -> Outcome {
    let mut signals = Signals::from_headers(headers(), None);
    signals.hint = signals.hint.or_longer(rate_limit(headers(), None));
    Statuses::HTTP.outcome(input(503), signals)
}
