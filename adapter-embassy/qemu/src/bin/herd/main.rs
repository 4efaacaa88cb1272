//! The experiment of `herd run` on a chip: a hundred clients, a provider that answers 20 at once
//! and then 10 a second, and the figures that come of it.
//!
//! Each client is a [`holdoff::Call`]. Time is SysTick's: an event is handled in the very
//! millisecond in which it is due, or the run has failed. Order of events and random numbers are
//! those of `herd run --runs 1 --seed 1`, so the rows are, too, but for the milliseconds that times
//! are rounded up to.

#![no_std]
#![no_main]

mod provider;
mod queue;
mod sim;
mod strategy;
mod table;

use cortex_m::Peripherals;
use cortex_m_rt::{entry, exception};
use holdoff_embassy_qemu::{succeed, systick};

use self::strategy::Strategy;
use self::table::Row;

/// How many call.
const CLIENTS: usize = 100;

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else { panic!("nobody has taken them before") };
    systick::start(peripherals.SYST, 1);
    let rows = Strategy::ALL.map(|strategy| Row::new(strategy, &sim::run(strategy.rules())));
    table::print(&rows);
    for row in &rows {
        check(row);
    }
    succeed()
}

#[exception]
fn SysTick() {
    systick::on_tick();
}

/// Where chance does not decide, the figures of `herd run`; where it does, the lowest and the
/// highest ones of 10,000 runs. Times to a tenth of a second, but the limiter's to the millisecond.
fn check(row: &Row) {
    let &Row { strategy, ok, requests, rejected, last, p95 } = row;
    let within = |figure: u32, least, most| {
        let id = strategy.id();
        assert!((least..=most).contains(&figure), "{id}: {figure} is not in {least}..={most}");
    };
    let bands: [(u32, u32); 4] = match strategy {
        Strategy::None => [(20, 20), (100, 100), (0, 0), (0, 0)],
        Strategy::LlmRetry3 => [(36, 36), (255, 255), (1_550, 1_650), (1_450, 1_650)],
        Strategy::LlmRetry8 => [(100, 100), (372, 380), (15_750, 16_950), (15_150, 16_650)],
        Strategy::FullJitter => [(99, 100), (395, 431), (9_450, 37_650), (7_850, 18_350)],
        Strategy::RetryAfter => [(100, 100), (310, 322), (8_550, 20_950), (7_550, 12_050)],
        Strategy::Limiter => [(100, 100), (100, 100), (8_000, 8_000), (7_550, 7_600)],
        Strategy::Holdoff => [(100, 100), (272, 286), (7_950, 23_550), (7_550, 12_850)],
    };
    for (figure, (least, most)) in [ok, requests, last, p95].into_iter().zip(bands) {
        within(figure, least, most);
    }
    assert_eq!(requests - rejected, ok, "who is not rejected is done");
}
