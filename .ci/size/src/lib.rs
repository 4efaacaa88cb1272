//! What the images share: inputs that the optimizer cannot foresee, calls, and a panic handler that
//! does not link.

#![no_std]

use core::time::Duration;

use cortex_m as _; // The critical section.
use holdoff::{
    BreakerConfig, BudgetConfig, Call, CircuitBreaker, Instant, Limiter, Outcome, Policy, Quota,
    Rate, Ratio, RetryBudget, Safety, Step, valid,
};

/// What a user would write down: constants.
pub static LIMITER: Limiter = Limiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
pub static BREAKER: CircuitBreaker = valid!(BreakerConfig::rate(20, Ratio::percent(50)).build());
pub static BUDGET: RetryBudget = valid!(BudgetConfig::new(10, Ratio::percent(10)).build());

/// A value that only the machine knows.
#[inline(always)]
pub fn input<T>(value: T) -> T {
    core::hint::black_box(value)
}

/// A value that somebody wants.
#[inline(always)]
pub fn output<T>(value: T) {
    core::hint::black_box(value);
}

/// A call from the application: its clock, its random numbers, its wire.
#[inline(always)]
pub fn drive(with_parts: impl FnOnce(Call<'static>) -> Call<'static>, outcome: fn() -> Outcome) {
    static POLICY: Policy = Policy::STANDARD;
    let mut call = with_parts(Call::new(&POLICY, Safety::Idempotent, now()));
    loop {
        match call.poll(now(), sample) {
            Step::Attempt(attempt) => {
                output(attempt);
                call.record(now(), outcome(), sample);
            }
            Step::Backoff { until, .. } | Step::Throttled { until } => output(until),
            Step::Done => break,
            Step::Stop(stop) => {
                output(stop);
                break;
            }
        }
    }
}

/// Calls from the application to a service with everything that guards it.
#[inline(always)]
pub fn guarded(outcome: fn() -> Outcome) -> ! {
    loop {
        drive(
            |call| call.with_breaker(&BREAKER).with_limiter(&LIMITER, 1).with_budget(&BUDGET),
            outcome,
        );
    }
}

/// The headers of an answer.
#[inline(always)]
pub fn headers() -> impl Iterator<Item = (&'static str, &'static [u8])> + Clone {
    let headers: &'static [(&str, &[u8])] = input(&[("retry-after", b"1")]);
    headers.iter().copied()
}

pub fn now() -> Instant {
    Instant::from_nanos(input(1))
}

pub fn sample() -> u64 {
    input(2)
}

pub fn wall_now() -> Option<Duration> {
    Some(Duration::from_secs(input(3)))
}

/// A panic handler that does not link: an image in which a panic can happen is none.
#[macro_export]
macro_rules! no_panic {
    () => {
        #[panic_handler]
        fn panic(_: &::core::panic::PanicInfo<'_>) -> ! {
            unsafe extern "C" {
                fn a_panic_is_reachable() -> !;
            }
            // SAFETY: there is no such function.
            unsafe { a_panic_is_reachable() }
        }
    };
}
