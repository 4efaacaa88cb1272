//! Whatever `holdoff-embassy` does: built only to see which panics are linked with it.

#![no_main]
#![no_std]

use core::cell::Cell;
use core::future::Future;
use core::panic::PanicInfo;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use cortex_m_rt::entry;
use critical_section::Mutex;
use embassy_time_driver::{Driver, time_driver_impl};
use holdoff_embassy::{
    Backoff, BackoffConfig, BreakerConfig, BudgetConfig, Counters, EmbassyTimer, Failure, Hint,
    Policy, Prepared, Quota, Random, Rate, Ratio, Reconnect, Timer, Upstream, retry, valid,
};
use size::{input, now, output};

/// One that is linked, with what calls it.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    cortex_m::asm::udf()
}

/// Time passes when somebody looks.
struct Clock(Mutex<Cell<u64>>);

time_driver_impl!(static CLOCK: Clock = Clock(Mutex::new(Cell::new(0))));

impl Driver for Clock {
    fn now(&self) -> u64 {
        critical_section::with(|section| {
            let ticks = self.0.borrow(section);
            ticks.set(ticks.get().wrapping_add(1));
            ticks.get()
        })
    }

    fn schedule_wake(&self, _: u64, _: &Waker) {}
}

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

/// Polls it a few times, at most to its end, and drops it where it is then.
fn poll(future: impl Future) {
    let mut future = pin!(future);
    for _ in 0..input(9) {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output(result);
        }
    }
}

async fn work() -> Result<u32, Failure> {
    if input(true) { Err(Failure::transient()) } else { Ok(input(4)) }
}
