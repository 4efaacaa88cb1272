//! Waiting in line at the limiter.

use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;

use holdoff_embassy::{
    AcquireError, Failure, FairLimiter, Policy, Quota, Random, Rate, Stop, Upstream, valid,
};

use crate::bench::{Bench, millis};

const TENTH: Quota = valid!(Quota::new(Rate::per_second(10), 2));

#[test]
fn whoever_came_first_goes_first_at_the_rate() {
    static LIMITER: FairLimiter<32> = FairLimiter::new(TENTH);
    let mut bench = Bench::new();
    let order = Rc::new(RefCell::new(Vec::new()));
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let order = Rc::clone(&order);
            bench.spawn(async move {
                LIMITER.acquire(1).await.unwrap();
                order.borrow_mut().push((number, millis()));
            })
        })
        .collect();
    assert_eq!(LIMITER.waiting(), 18);
    for task in &tasks {
        bench.until(task);
    }
    let expected: Vec<_> =
        (0..20).map(|number: u64| (number, number.saturating_sub(1) * 100)).collect();
    assert_eq!(*order.borrow(), expected);
    assert_eq!(LIMITER.waiting(), 0);
}

#[test]
fn one_more_than_there_is_room_for_is_told_at_once() {
    static LIMITER: FairLimiter<2> = FairLimiter::new(TENTH);
    static UPLINK: Upstream<1> = Upstream::new(Policy::STANDARD).with_limiter(TENTH);
    let mut bench = Bench::new();
    let acquired: Vec<_> = (0..6).map(|_| bench.spawn(LIMITER.acquire(1))).collect();
    // Two have their tokens, one is the head, two wait behind it.
    let told = acquired.iter().filter_map(|task| task.borrow().map(|(_, told)| told));
    assert_eq!(told.collect::<Vec<_>>(), [Ok(()), Ok(()), Err(AcquireError::QueueFull)]);

    let calls: Vec<_> = (0..5)
        .map(|seed| {
            bench.spawn(async move {
                let mut random = Random::from_entropy(seed);
                UPLINK.call(&mut random, async || Ok::<_, Failure>(())).await
            })
        })
        .collect();
    let stop = calls[4].borrow_mut().take().unwrap().1.unwrap_err().stop;
    assert_eq!(stop, Stop::QueueFull);
    assert!(calls[..4].iter().all(|call| bench.until(call).1.is_ok()));
}

/// embassy-sync 0.8's fair semaphore fails this: it tells nobody of a waiter that was woken and
/// then dropped.
#[test]
fn a_waiter_dropped_after_it_was_woken_hands_its_turn_on() {
    static LIMITER: FairLimiter<4> = FairLimiter::new(TENTH);
    let mut bench = Bench::new();
    LIMITER.try_acquire(2).unwrap();
    let mut head = Box::pin(LIMITER.acquire(1));
    let mut second = Box::pin(LIMITER.acquire(1));
    for waiter in [&mut head, &mut second] {
        assert!(futures_util::FutureExt::now_or_never(waiter).is_none());
    }
    let third = bench.spawn(LIMITER.acquire(1));
    assert_eq!(LIMITER.waiting(), 3);
    drop(head); // Wakes the second, which is never polled again.
    drop(second);
    let (at, acquired) = bench.until(&third);
    assert_eq!((at.as_nanos(), acquired), (100_000_000, Ok(())));
}

#[test]
fn whoever_leaves_frees_its_room_wherever_it_stood() {
    for left in 0..4 {
        let limiter: &'static FairLimiter<3> = Box::leak(Box::new(FairLimiter::new(TENTH)));
        let mut bench = Bench::new();
        limiter.try_acquire(2).unwrap();
        let mut waiting: Vec<_> = (0..4).map(|_| Box::pin(limiter.acquire(1))).collect();
        for waiter in &mut waiting {
            assert!(futures_util::FutureExt::now_or_never(waiter).is_none());
        }
        drop(waiting.remove(left));
        assert_eq!(limiter.waiting(), 3);
        let joined = bench.spawn(limiter.acquire(1));
        assert!(joined.borrow().is_none(), "waits, and is not refused");
        drop(waiting);
        assert_eq!(bench.until(&joined).1, Ok(()));
        assert_eq!(limiter.waiting(), 0);
    }
}

#[test]
fn a_pause_and_another_quota_reach_those_in_line() {
    static LIMITER: FairLimiter<4> = FairLimiter::new(TENTH);
    let mut bench = Bench::new();
    LIMITER.try_acquire(2).unwrap();
    LIMITER.pause_for(Duration::from_secs(60));
    let first = bench.spawn(LIMITER.acquire(1));
    let second = bench.spawn(LIMITER.acquire(2));
    LIMITER.pause_for(Duration::from_secs(90));
    assert_eq!(bench.until(&first).0.as_nanos() / 1_000_000_000, 90);
    LIMITER.set_quota(valid!(Quota::new(Rate::per_second(10), 1))).unwrap();
    bench.settle();
    let told = second.borrow_mut().take().expect("told at once");
    assert_eq!(told.1, Err(AcquireError::CostTooHigh { burst: 1 }));
}

#[test]
fn nobody_in_line_is_overtaken() {
    static LIMITER: FairLimiter<4> = FairLimiter::new(valid!(Quota::new(Rate::per_second(10), 5)));
    let mut bench = Bench::new();
    LIMITER.try_acquire(5).unwrap();
    let big = bench.spawn(LIMITER.acquire(5));
    bench.advance(Duration::from_millis(300), Duration::from_millis(1));
    assert!(LIMITER.available() >= 3);
    assert!(LIMITER.try_acquire(1).is_err());
    LIMITER.settle(0, 0);
    assert_eq!(bench.until(&big).0.as_nanos() / 1_000_000, 500);
}
