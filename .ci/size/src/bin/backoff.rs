//! A delay before a retry.

#![no_main]
#![no_std]

use core::time::Duration;

use cortex_m_rt::entry;
use holdoff::{Backoff, BackoffConfig, valid};
use size::{input, output, sample};

const BACKOFF: Backoff = valid!(
    BackoffConfig::exponential(Duration::from_secs(1))
        .with_max_delay(Duration::from_secs(30))
        .build()
);

size::no_panic!();

#[entry]
fn main() -> ! {
    loop {
        output(BACKOFF.delay(input(1), Duration::ZERO, sample()));
    }
}
