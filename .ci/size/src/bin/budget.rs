//! The machine with circuit breaker, limiter and budget.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::{Failure, Hint, Outcome};
use size::{guarded, input};

size::no_panic!();

#[entry]
fn main() -> ! {
    guarded(outcome)
}

fn outcome() -> Outcome {
    input(Outcome::Failure(Failure::throttled().with_hint(Hint::Absent)))
}
