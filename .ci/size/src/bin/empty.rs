//! Nothing: what the others are compared with.

#![no_main]
#![no_std]

use cortex_m_rt::entry;

size::no_panic!();

#[entry]
fn main() -> ! {
    loop {
        size::output((size::now(), size::sample()));
    }
}
