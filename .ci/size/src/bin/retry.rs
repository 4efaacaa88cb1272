//! The machine that retries: attempts, deadline, backoff, hints.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::{Failure, Hint, Outcome};
use size::{drive, input};

size::no_panic!();

#[entry]
fn main() -> ! {
    loop {
        drive(|call| call, outcome);
    }
}

fn outcome() -> Outcome {
    input(Outcome::Failure(Failure::throttled().with_hint(Hint::Absent)))
}
