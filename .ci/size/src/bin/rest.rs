//! What no other image uses of the core: built only to see that no panic can be reached in it.

#![no_main]
#![no_std]

use core::num::NonZeroU32;
use core::time::Duration;

use cortex_m_rt::entry;
use holdoff::{
    Backoff, BackoffConfig, BreakerConfig, CircuitBreaker, Clock, Counters, Failover, Hint,
    Instant, Jitter, Limit, Limits, Mode, Quota, Rate, Ratio, Reconnect, RetryBudget, Stop,
    TickClock, Upstream, UpstreamTable, valid,
};
use size::{BREAKER, BUDGET, LIMITER, drive, input, now, output, sample};

size::no_panic!();

const BACKOFF: Backoff = valid!(BackoffConfig::exponential(Duration::from_secs(1)).build());

static OVER_TIME: CircuitBreaker<6> = valid!(
    BreakerConfig::rate_over(Duration::from_secs(60), Ratio::percent(50)).build_with_buckets()
);
static ROUTES: Failover<3> = Failover::new();
static TABLE: UpstreamTable<2> = UpstreamTable::new([const { Upstream::new() }; 2]);
static UPSTREAM: Upstream = Upstream::new().with_counters(Counters::new());

#[entry]
fn main() -> ! {
    loop {
        limiter();
        breaker(&BREAKER);
        breaker(&OVER_TIME);
        budget(&BUDGET);
        schedules();
        upstreams();
        clocks();
    }
}

fn limiter() {
    let cost = input(1);
    output(LIMITER.try_acquire(now(), cost));
    output(LIMITER.peek(now(), cost));
    LIMITER.settle(now(), cost, input(2));
    if let Ok(reservation) = LIMITER.reserve(now(), cost) {
        output(reservation.ready_at());
        LIMITER.cancel(reservation);
    }
    LIMITER.refund(cost);
    LIMITER.pause_until(now());
    if let Ok(quota) = Quota::new(Rate::new(input(1), input(Duration::ZERO)), input(5)) {
        output(LIMITER.set_quota(now(), quota));
    }
    output((LIMITER.quota(), LIMITER.available(now()), LIMITER.full_at()));
    let limits = [Limit::new(&LIMITER, cost), Limit::new(&LIMITER, input(2))];
    let limits = Limits::new(&limits);
    let mut call = UPSTREAM.call(&holdoff::Policy::LLM, holdoff::Safety::Once, now());
    call = call.with_limits(&limits);
    output(call.poll(now(), sample));
    output(call.throttled(now(), now()));
    call.give_up(now(), Stop::Cancelled);
    output((call.elapsed(now()), call.retry_after(), call.wants_permit(now())));
}

fn breaker<const BUCKETS: usize>(breaker: &CircuitBreaker<BUCKETS>) {
    match breaker.try_acquire(now()) {
        Ok(permit) if input(true) => output(permit.failure(now(), sample)),
        Ok(permit) => output(permit.success(now(), sample)),
        Err(open) => output(open),
    }
    output(breaker.peek(now()));
    output(breaker.state(now()));
    breaker.set_mode(input(Mode::Shadow));
    output(breaker.mode());
}

fn budget(budget: &RetryBudget) {
    budget.deposit();
    output(budget.withdraw(now()));
    budget.refund();
    output(budget.level(now()));
}

fn schedules() {
    let config = BackoffConfig::exponential(input(Duration::ZERO))
        .with_factor(input(Ratio::ONE))
        .with_jitter(input(Jitter::Decorrelated))
        .with_max_delay(input(Duration::MAX))
        .with_min_delay(input(Duration::ZERO));
    if let Ok(backoff) = config.build() {
        output(backoff.delay(input(1), input(Duration::ZERO), sample()));
        output(backoff.bounds(input(1), input(Duration::ZERO)));
        output(backoff.envelope(input(1)));
        backoff.delays(sample).take(input(3)).for_each(output);
    }
    let mut link = Reconnect::new(input(BACKOFF), input(Duration::ZERO));
    output(link.lost(now(), sample()));
    link.connected(now());
    output(link.lost_with(now(), input(Hint::Absent), sample()));
}

fn upstreams() {
    drive(|call| call.with_observer(&UPSTREAM), || input(holdoff::Outcome::Success));
    output(UPSTREAM.counters().map(Counters::snapshot));
    output(UPSTREAM.idle_at());
    if let Ok(entry) = TABLE.get(now(), input(7)) {
        output(entry.key());
    }
    output(TABLE.find(now(), input(7)).is_some());
    let mut route = ROUTES.route();
    output(route.next(now()));
    output(route.failed(now(), input(Stop::Attempts), input(None)));
    ROUTES.cool_until(input(1), now());
    output(ROUTES.cooled_until(input(1)));
}

fn clocks() {
    static CLOCK: TickClock = TickClock::millis(counter);
    output(CLOCK.now());
    if let Some(rate) = NonZeroU32::new(input(32_768)) {
        output(TickClock::new(counter, rate).now());
    }
    output(Instant::from_nanos(input(1)).saturating_add(input(Duration::MAX)));
}

fn counter() -> u32 {
    input(9)
}
