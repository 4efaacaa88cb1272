//! A service with nothing but a limiter: built only to see that no more is linked.

#![no_main]
#![no_std]

use cortex_m_rt::entry;
use holdoff::{Failure, Outcome, Policy, Safety, Upstream};
use size::{input, now, output, sample};

size::no_panic!();

#[entry]
fn main() -> ! {
    static POLICY: Policy = Policy::STANDARD;
    static UPLINK: Upstream = Upstream::new().with_limiter(size::limiter());
    loop {
        let mut call = UPLINK.call(&POLICY, Safety::Idempotent, now());
        output(call.poll(now(), sample));
        call.record(now(), input(Outcome::Failure(Failure::transient())), sample);
    }
}
