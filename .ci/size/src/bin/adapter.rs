//! Whatever `holdoff-embassy` does: built only to see which panics are linked with it.

#![no_main]
#![no_std]

#[path = "../task.rs"]
mod task;

use core::time::Duration;

use cortex_m_rt::entry;
use holdoff_embassy::{
    Backoff, BackoffConfig, BreakerConfig, BudgetConfig, Counters, EmbassyTimer, Hint, Policy,
    Prepared, Quota, Random, Rate, Ratio, Reconnect, Timer, Upstream, retry, valid,
};
use size::{input, now, output};
use task::{poll, work};

static UPLINK: Upstream<4> = Upstream::new(Policy::STANDARD)
    .with_limiter(valid!(Quota::new(Rate::per_second(2), 5)))
    .with_breaker(valid!(BreakerConfig::consecutive(5).build()))
    .with_budget(valid!(BudgetConfig::new(3, Ratio::percent(10)).build()))
    .with_counters(Counters::new());
const BACKOFF: Backoff = valid!(BackoffConfig::exponential(Duration::from_secs(1)).build());

#[entry]
fn main() -> ! {
    let mut random = Random::from_device_id(input(b"7"));
    let mut other = random.fork();
    loop {
        poll(UPLINK.call(&mut random, work));
        poll(retry(&Policy::LLM, &mut random, work));
        poll(Prepared::new(&Policy::BATCH, &mut random).nested().run(|_| work()));
        poll(EmbassyTimer.sleep_until(now()));
        limiter();
        let mut link = Reconnect::new(BACKOFF, input(Duration::ZERO), &mut other);
        poll(link.ready());
        link.connected();
        output(link.lost_with(input(Hint::Absent)));
        output((link.lost(), link.retries()));
    }
}

fn limiter() {
    let Some(limiter) = UPLINK.limiter() else { return };
    poll(limiter.acquire(input(3)));
    output(limiter.try_acquire(input(2)));
    limiter.settle(input(1), input(2));
    limiter.pause_for(input(Duration::ZERO));
    if let Ok(quota) = Quota::new(Rate::per_second(input(9)), input(5)) {
        output(limiter.set_quota(quota));
    }
    output((limiter.waiting(), limiter.available()));
}
