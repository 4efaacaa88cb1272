//! The machine with a circuit breaker.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::{Failure, Hint, Outcome};
use size::{BREAKER, drive, input};

size::no_panic!();

#[entry]
fn main() -> ! {
    loop {
        drive(|call| call.with_breaker(&BREAKER), outcome);
    }
}

fn outcome() -> Outcome {
    input(Outcome::Failure(Failure::throttled().with_hint(Hint::Absent)))
}
