//! A call by `holdoff-embassy` to a service that has a limiter and nothing else: built only to see
//! that what it is not given is not linked with it.

#![no_main]
#![no_std]

#[path = "../task.rs"]
mod task;

use cortex_m_rt::entry;
use holdoff_embassy::{Policy, Quota, Random, Rate, Upstream, valid};
use size::input;
use task::{poll, work};

static UPLINK: Upstream<4> =
    Upstream::new(Policy::STANDARD).with_limiter(valid!(Quota::new(Rate::per_second(2), 5)));

#[entry]
fn main() -> ! {
    let mut random = Random::from_device_id(input(b"7"));
    loop {
        poll(UPLINK.call(&mut random, work));
    }
}
