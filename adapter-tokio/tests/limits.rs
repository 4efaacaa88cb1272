//! Several limits on one call: all or nothing, each in its own line.

mod common;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use common::within_polls;
use holdoff_tokio::{
    Counters, Failure, FairLimiter, Limit, Policy, Prepared, Quota, Rate, Stop, Upstream,
};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

fn quota(rate: Rate, burst: u32) -> Quota {
    Quota::new(rate, burst).expect("the quota is valid")
}

async fn works() -> Result<(), Failure> {
    Ok(())
}

/// A call limited by all of `limiters`; when it is served, counted from `start`.
fn call<const N: usize>(
    start: Instant,
    limiters: [&Arc<FairLimiter>; N],
) -> tokio::task::JoinHandle<Duration> {
    let limiters = limiters.map(Arc::clone);
    tokio::spawn(async move {
        let limits = limiters.each_ref().map(|limiter| Limit::new(limiter, 1));
        let call = Prepared::new(&Policy::BATCH).with_limits(&limits);
        call.run(async |_| Ok::<_, Failure>(start.elapsed())).await.expect("it succeeds")
    })
}

#[tokio::test(start_paused = true)]
async fn a_limiter_named_twice_is_waited_for_once() {
    let upstream = Upstream::new(Policy::LLM).with_limiter(quota(Rate::per_second(1), 5));
    let limiter = upstream.limiter().expect("it has one");
    let limits = [Limit::new(limiter, 1), Limit::new(limiter, 2)];
    let call = async |cost| {
        let call = upstream.prepare().with_limits(&limits).with_cost(cost);
        call.run(|_| works()).await.map_err(|gave_up| gave_up.stop)
    };
    assert_eq!(call(2).await, Ok(()));
    assert_eq!(limiter.available(), 0);
    let start = Instant::now();
    assert_eq!(call(2).await, Ok(()));
    assert_eq!(start.elapsed(), 5 * SECOND);
    // All of it together is more than there can ever be.
    assert_eq!(call(3).await, Err(Stop::CostTooHigh { burst: 5 }));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_had_or_comes_too_late_is_not_waited_for() {
    let paused = FairLimiter::new(quota(Rate::per_second(1), 9));
    paused.pause_for(300 * SECOND);
    let own = Upstream::new(Policy::INTERACTIVE)
        .with_limiter(quota(Rate::per_second(1), 10))
        .with_counters(Counters::new());
    let limits = [Limit::new(&paused, 1)];
    let start = Instant::now();
    let call = async |cost| {
        let call = own.prepare().with_limits(&limits).with_cost(cost);
        call.run(|_| works()).await.expect_err("it is paused")
    };
    assert_eq!(call(11).await.stop, Stop::CostTooHigh { burst: 10 });
    let late = call(1).await;
    assert_eq!((late.stop, late.retry_after), (Stop::Deadline, Some(300 * SECOND)));
    assert_eq!(start.elapsed(), Duration::ZERO);
    // A wait at a narrow limit is one, for those who count.
    let patient = own.prepare().with_limits(&limits).with_deadline(600 * SECOND);
    patient.run(|_| works()).await.expect("in time");
    assert_eq!(own.counters().expect("it has some").snapshot().throttles, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_free_does_not_wait_behind_others() {
    let upstream = Upstream::new(Policy::BATCH).with_limiter(quota(Rate::per_second(1), 1));
    let upstream = Arc::new(upstream);
    for _ in 0..50 {
        let upstream = Arc::clone(&upstream);
        tokio::spawn(async move { upstream.call(works).await });
    }
    sleep(SECOND / 2).await;
    let tenant = FairLimiter::new(quota(Rate::per_second(1), 1));
    let limits = [Limit::new(&tenant, 1)];
    let start = Instant::now();
    let free = upstream.prepare().with_cost(0).with_limits(&limits);
    free.run(|_| works()).await.expect("it is free");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

// A tenant's backlog at one endpoint keeps neither its other calls nor another tenant waiting, if
// each pair has a limiter of its own before what is shared.
#[tokio::test(start_paused = true)]
async fn three_scopes_keep_apart_what_is_apart() {
    let limiter = |per_second| Arc::new(FairLimiter::new(quota(Rate::per_second(per_second), 1)));
    let [a_slow, a_fast, b_slow] = [1, 100, 1].map(limiter);
    let (slow, fast, global) = (limiter(2), limiter(100), limiter(100));
    let start = Instant::now();
    let backlog: Vec<_> = (0..30).map(|_| call(start, [&a_slow, &slow, &global])).collect();
    sleep(SECOND).await;
    let others = [call(start, [&a_fast, &fast, &global]), call(start, [&b_slow, &slow, &global])];
    for other in others {
        assert!(other.await.expect("no panic") < 2 * SECOND);
    }
    for call in backlog {
        call.await.expect("no panic");
    }
    assert!((29 * SECOND..31 * SECOND).contains(&start.elapsed()));
}

// The head of a narrow line waits; the others of it, and of other lines, are not woken in its
// stead.
#[tokio::test(start_paused = true)]
async fn a_faster_narrow_limit_is_heard_of_at_once() {
    let (narrow, wide) = (
        Arc::new(FairLimiter::new(quota(Rate::per_minute(1), 1))),
        Arc::new(FairLimiter::new(quota(Rate::per_second(100), 9))),
    );
    narrow.try_acquire(1).expect("full");
    let start = Instant::now();
    let waiting = [(); 3].map(|()| call(start, [&narrow, &wide]));
    sleep(SECOND).await;
    narrow.set_quota(quota(Rate::per_second(1), 1));
    let mut served = Vec::new();
    for waiting in waiting {
        served.push(waiting.await.expect("no panic").as_secs());
    }
    // One sixtieth of a token was there; the rest takes the better part of a second.
    assert_eq!(served, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_at_any_poll_keeps_its_tokens_exactly() {
    // Two limits, the second empty for a while: waiting takes nothing from the first.
    for polls in 0..12 {
        let (first, second) = (
            FairLimiter::new(quota(Rate::per_minute(1), 3)),
            FairLimiter::new(quota(Rate::per_minute(1), 3)),
        );
        second.try_acquire(3).expect("full");
        let limits = [Limit::new(&first, 2), Limit::new(&second, 2)];
        let sent = AtomicU32::new(0);
        let call = Prepared::new(&Policy::STANDARD).with_limits(&limits).run(|_| {
            sent.fetch_add(1, Ordering::Relaxed);
            works()
        });
        within_polls(polls, call).await;
        let taken = 2 * sent.load(Ordering::Relaxed);
        assert_eq!(first.available(), 3 - taken, "after {polls} polls");
        assert_eq!((first.waiting(), second.waiting()), (0, 0));
        sleep(600 * SECOND).await;
        assert_eq!((first.available(), second.available()), (3, 3), "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn one_tenants_backlog_keeps_nobody_else_waiting() {
    let global = Arc::new(FairLimiter::new(quota(Rate::per_second(10), 1)));
    let loud = Arc::new(FairLimiter::new(quota(Rate::per_second(5), 1)));
    let quiet = Arc::new(FairLimiter::new(quota(Rate::per_second(5), 1)));
    let start = Instant::now();
    let call = |tenant: &Arc<FairLimiter>| {
        let (tenant, global) = (Arc::clone(tenant), Arc::clone(&global));
        tokio::spawn(async move {
            let limits = [Limit::new(&tenant, 1), Limit::new(&global, 1)];
            let call = Prepared::new(&Policy::BATCH).with_limits(&limits);
            call.run(async |_| Ok::<_, Failure>(start.elapsed())).await.expect("it succeeds")
        })
    };
    let backlog: Vec<_> = (0..1000).map(|_| call(&loud)).collect();
    sleep(SECOND).await;
    let served = call(&quiet).await.expect("no panic");
    // At most the loud tenant's head was before it at the global limiter.
    assert!(served <= SECOND + SECOND / 5, "served after {served:?}");
    // The backlog itself keeps to its own rate.
    let mut last = Duration::ZERO;
    for call in backlog {
        last = last.max(call.await.expect("no panic"));
    }
    assert!((199 * SECOND..202 * SECOND).contains(&last), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_paused_tenant_holds_up_nobody_at_the_global_limiter() {
    let global = Arc::new(FairLimiter::new(quota(Rate::per_second(10), 1)));
    let paused = Arc::new(FairLimiter::new(quota(Rate::per_second(100), 9)));
    let other = Arc::new(FairLimiter::new(quota(Rate::per_second(100), 9)));
    let start = Instant::now();
    global.try_acquire(1).expect("full");
    let call = |tenant: &Arc<FairLimiter>| {
        let (tenant, global) = (Arc::clone(tenant), Arc::clone(&global));
        tokio::spawn(async move {
            let limits = [Limit::new(&tenant, 1), Limit::new(&global, 1)];
            let call = Prepared::new(&Policy::BATCH).with_limits(&limits);
            call.run(async |_| Ok::<_, Failure>(start.elapsed())).await.expect("it succeeds")
        })
    };
    // It is the head of the global line when its own tenant is paused.
    let first = call(&paused);
    sleep(SECOND / 100).await;
    paused.pause_for(30 * SECOND);
    let second = call(&other);
    assert!(second.await.expect("no panic") < SECOND);
    assert!(first.await.expect("no panic") >= 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn what_was_overestimated_wakes_the_head_and_what_was_not_is_owed() {
    let tokens = Arc::new(FairLimiter::new(quota(Rate::per_second(1), 100)));
    tokens.try_acquire(100).expect("full");
    let start = Instant::now();
    let waiting = tokio::spawn({
        let tokens = Arc::clone(&tokens);
        async move { tokens.acquire(50).await }
    });
    sleep(SECOND).await;
    tokens.settle(100, 20);
    waiting.await.expect("no panic").expect("it fits");
    assert_eq!(start.elapsed(), SECOND);
    tokens.settle(50, 90);
    // 100 - 100 + 1 + 80 - 50 - 40 = -9
    tokens.acquire(1).await.expect("one token fits");
    assert_eq!(start.elapsed(), 11 * SECOND);
}
