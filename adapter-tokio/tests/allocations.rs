//! A call that succeeds allocates nothing, whatever features are on, where nobody listens.

use core::future::{Future, poll_fn};
use core::num::NonZeroUsize;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use allocation_counter::measure;
use holdoff_tokio::{
    BreakerConfig, BudgetConfig, Counters, Failover, Failure, FairLimiter, Keyed, Limit, Policy,
    Prepared, Quota, Rate, Ratio, Upstream, failover, retry, valid,
};

static LIMITER: FairLimiter = FairLimiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
static TOKENS: FairLimiter = FairLimiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
static MODELS: Failover<2> = Failover::new();
static PROVIDER: Upstream = Upstream::new(Policy::INTERACTIVE)
    .named("provider")
    .with_limiter(valid!(Quota::new(Rate::per_second(10), 20)))
    .with_breaker(valid!(BreakerConfig::rate(20, Ratio::percent(50)).build()))
    .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
    .with_counters(Counters::new());

/// How often memory was allocated while `future` was polled, or dropped.
async fn allocations(future: impl Future<Output = Result<u32, impl Sized>>) -> u64 {
    let mut allocations = 0;
    {
        let mut future = pin!(future);
        poll_fn(|context| {
            let mut polled = Poll::Pending;
            let info = measure(|| polled = future.as_mut().poll(context));
            allocations += info.count_total;
            polled
        })
        .await
        .unwrap_or_else(|_| panic!("the operation succeeds"));
    }
    allocations
}

/// Succeeds in its second poll, so that deadline and timeout are armed.
async fn answer() -> Result<u32, Failure> {
    let mut is_first = true;
    poll_fn(|context| {
        if !core::mem::take(&mut is_first) {
            return Poll::Ready(Ok(7));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

async fn nothing_is_allocated() {
    if cfg!(feature = "metrics") {
        // The keys of each upstream are made once.
        let _ = retry(&Policy::STANDARD, answer).await;
        let _ = PROVIDER.call(answer).await;
    }
    let prepared = Prepared::new(&Policy::INTERACTIVE).with_limiter(&LIMITER, 2);
    assert_eq!(allocations(async { Box::pin(answer()).await }).await, 1, "it is counted");
    assert_eq!(allocations(retry(&Policy::STANDARD, answer)).await, 0);
    assert_eq!(allocations(retry(&Policy::INTERACTIVE, answer)).await, 0);
    assert_eq!(allocations(LIMITER.retry(&Policy::LLM, answer)).await, 0);
    assert_eq!(allocations(prepared.run(|_| answer())).await, 0);
    assert_eq!(allocations(PROVIDER.call(answer)).await, 0);
    let limits = [Limit::new(&LIMITER, 1), Limit::new(&TOKENS, 3)];
    let limited = PROVIDER.prepare().with_limits(&limits);
    assert_eq!(allocations(limited.run(|_| answer())).await, 0);
    // The first of several that could serve it does.
    let served = failover(&MODELS, [&PROVIDER, &PROVIDER]).with_deadline(Duration::from_secs(20));
    let served = async { served.run(|_, _| answer()).await.map(|served| served.value) };
    assert_eq!(allocations(served).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_there_is_found_without_an_allocation() {
    let build = |_: &String| FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 1)));
    let table = Keyed::new(NonZeroUsize::MIN, build);
    table.get("tenant").expect("there is room");
    let found = async { table.get("tenant").map(|tenant| tenant.available()) };
    assert_eq!(allocations(found).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_allocates_nothing() {
    nothing_is_allocated().await;
    assert!(PROVIDER.counters().is_some_and(|counters| counters.snapshot().successes > 0));
}

#[cfg(feature = "tracing")]
#[tokio::test(start_paused = true)]
async fn nor_does_it_where_a_subscriber_has_no_interest() {
    use tracing_subscriber::fmt;

    let errors = fmt().with_max_level(tracing::Level::ERROR).finish();
    let _guard = tracing::subscriber::set_default(errors);
    nothing_is_allocated().await;
}
