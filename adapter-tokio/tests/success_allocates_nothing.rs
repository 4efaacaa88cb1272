//! What works at once costs no allocation: a call to the first of several upstreams, and a look-up
//! of a key that is there.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::hint::black_box;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::alloc::System;

use holdoff_tokio::{
    BreakerConfig, BudgetConfig, Counters, Failover, Failure, FairLimiter, Keyed, Policy, Quota,
    Rate, Ratio, Upstream, failover, valid,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

async fn allocations(work: impl Future) -> u64 {
    let before = ALLOCATIONS.get();
    work.await;
    ALLOCATIONS.get() - before
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_first_candidate_serves() {
    static UPSTREAMS: [Upstream; 2] = [const {
        Upstream::new(Policy::INTERACTIVE)
            .with_limiter(valid!(Quota::new(Rate::per_second(10), 20)))
            .with_breaker(valid!(BreakerConfig::rate(20, Ratio::percent(50)).build()))
            .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
            .with_counters(Counters::new())
    }; 2];
    static SHARED: Failover<2> = Failover::new();
    let call = async || {
        let call = failover(&SHARED, UPSTREAMS.each_ref()).with_deadline(Duration::from_secs(20));
        let served = call.run(|candidate, _| async move {
            tokio::task::yield_now().await;
            Ok::<_, Failure>(candidate)
        });
        assert_eq!(served.await.unwrap().by, 0);
    };
    assert!(allocations(async { black_box(Box::new(1)) }).await > 0, "it counts");
    call().await; // What a thread does once.
    assert_eq!(allocations(call()).await, 0);
}

#[tokio::test]
async fn a_key_that_is_there() {
    let build = |_: &String| FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 1)));
    let table = Keyed::new(NonZeroUsize::new(10).unwrap(), build);
    table.get("tenant").unwrap();
    let count = allocations(async { table.get("tenant").unwrap().available() }).await;
    assert_eq!(count, 0);
}
