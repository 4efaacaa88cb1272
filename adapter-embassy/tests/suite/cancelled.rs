//! A call dropped, or cancelled, wherever it is.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::rc::Rc;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::signal::Signal;
use holdoff_embassy::{
    BreakerConfig, BreakerState, BudgetConfig, Clock, Counters, EmbassyTimer, Failure, GaveUp,
    Quota, Random, Rate, Ratio, Stop, Upstream, valid,
};

use crate::bench::{Bench, advance_clock};
use crate::calls::strict;

const fn upstream() -> Upstream<2> {
    Upstream::new(valid!(strict().with_attempt_timeout(Duration::from_secs(1)).build()))
        .with_limiter(valid!(Quota::new(Rate::per_second(1), 1)))
        .with_breaker(valid!(BreakerConfig::consecutive(1).build()))
        .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
        .with_counters(Counters::new())
}

/// Fails twice, the second time after a pause, and then succeeds after one.
async fn call(upstream: &Upstream<2>, random: &mut Random) -> Result<u32, GaveUp<Failure>> {
    let mut number = 0;
    let operation = move || {
        number += 1;
        let number = number;
        async move {
            embassy_time::Timer::after_millis(20).await;
            if number < 3 { Err(Failure::throttled()) } else { Ok(number) }
        }
    };
    upstream.call(random, operation).await
}

/// Dropped after `polls` polls; whether it had ended by itself.
fn dropped_after(polls: u32, upstream: &Upstream<2>) -> bool {
    let mut random = Random::from_entropy(1);
    let mut call = pin!(call(upstream, &mut random));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(result) = call.as_mut().poll(&mut context) {
            assert_eq!(result, Ok(3));
            return true;
        }
        advance_clock(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_call_dropped_at_any_poll_leaves_nothing_behind() {
    let mut bench = Bench::new();
    let mut polls = 0;
    loop {
        let upstream = Rc::new(upstream());
        let has_ended = dropped_after(polls, &upstream);
        let limiter = upstream.limiter().unwrap();
        assert_eq!(limiter.waiting(), 0, "after {polls} polls");
        let sent = upstream.counters().unwrap().snapshot().attempts;
        let retries = sent.saturating_sub(1);
        let budget = upstream.budget().unwrap().level(EmbassyTimer.now());
        // Ten, a tenth for the call, and one fewer for each retry that was sent; a retry decided
        // but not sent is given back.
        assert_eq!(u64::from(budget), 10 - retries, "after {polls} polls");
        let state = upstream.breaker().unwrap().state(EmbassyTimer.now());
        assert_eq!(state, BreakerState::Closed, "after {polls} polls");
        let other = Rc::clone(&upstream);
        let next = bench.run(async move {
            let mut random = Random::from_entropy(2);
            other.call(&mut random, async || Ok::<_, Failure>(())).await
        });
        assert_eq!(next, Ok(()), "after {polls} polls");
        if has_ended {
            break;
        }
        polls += 1;
    }
    assert!(polls > 100, "only {polls} polls: not every wait was met");
}

/// Case C61: in the attempt, in the backoff, in the line, in the limiter's wait.
#[test]
fn a_cancelled_call_ends_in_the_same_poll_and_says_what_it_knows() {
    for after in [0, 10, 500, 1_500, 2_010, 4_000] {
        let stop: &'static Signal<CriticalSectionRawMutex, ()> = Box::leak(Box::default());
        let mut bench = Bench::new();
        let call = bench.spawn(async move {
            let upstream = upstream();
            let mut random = Random::from_entropy(1);
            let operation = async |_| {
                embassy_time::Timer::after_millis(20).await;
                Err::<(), _>(Failure::throttled())
            };
            upstream.prepare(&mut random).cancel_when(stop.wait()).run(operation).await
        });
        bench.advance(Duration::from_millis(after), Duration::from_millis(1));
        assert!(call.borrow().is_none(), "{after} ms");
        stop.signal(());
        bench.settle();
        let (_, result) = call.borrow_mut().take().expect("at once");
        let gave_up = result.unwrap_err();
        assert_eq!(gave_up.stop, Stop::Cancelled, "{after} ms");
        assert_eq!(gave_up.last.is_some(), after > 20, "{after} ms");
    }
}
