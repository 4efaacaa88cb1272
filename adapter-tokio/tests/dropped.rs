//! Dropped at any of its polls, a call to several upstreams leaves nothing behind.

mod common;

use core::future::ready;
use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Mutex;

use common::{built, constant, drained, within_polls};
use holdoff_tokio::{
    BreakerConfig, BreakerState, BudgetConfig, Clock, Counters, Failover, Failure, FairLimiter,
    Limit, Quota, Rate, Ratio, TokioTimer, Upstream, failover,
};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const RESERVE: u32 = 10;

/// Its breaker is half open and its only token taken; one comes each second.
async fn strained() -> Upstream {
    let breaker = BreakerConfig::consecutive(1).with_open_period(SECOND).build().unwrap();
    let upstream = Upstream::new(built(constant(2, SECOND)))
        .with_breaker(breaker)
        .with_budget(BudgetConfig::new(RESERVE, Ratio::percent(0)).build().unwrap())
        .with_limiter(Quota::new(Rate::per_second(1), 1).unwrap())
        .with_counters(Counters::new());
    let call = upstream.prepare().with_max_attempts(NonZeroU32::MIN);
    call.run(|_| ready(Err::<(), _>(Failure::transient()))).await.unwrap_err();
    sleep(SECOND * 10).await;
    assert!(!is_probing(&upstream));
    upstream.limiter().unwrap().acquire(1).await.unwrap();
    upstream
}

fn is_probing(upstream: &Upstream) -> bool {
    match upstream.breaker().unwrap().state(TokioTimer.now()) {
        BreakerState::HalfOpen { probing_until } => probing_until.is_some(),
        BreakerState::Closed | BreakerState::Open { .. } => false,
        state => panic!("it is run normally, and {state:?}"),
    }
}

/// Of a limiter with a burst of one: it owes nothing beyond the token that was taken last.
fn assert_no_debt(limiter: &FairLimiter, last_taken: Instant) {
    assert_eq!(limiter.waiting(), 0);
    assert_eq!(limiter.available(), u32::from(last_taken.elapsed() >= SECOND));
}

/// Waits in two lines, probes, waits to try again, fails, goes on to the next and is served there.
async fn is_served_within(polls: u32) -> bool {
    let (first, second) = tokio::join!(strained(), strained());
    let tenant = drained(1).await;
    let start = Instant::now();
    let (shared, limits) = (Failover::new(), [Limit::new(&tenant, 1)]);
    let attempts = Mutex::new(Vec::new());
    let call = failover(&shared, [&first, &second])
        .with_limits(&limits)
        .with_deadline(SECOND * 60)
        .run(|candidate, attempt| {
            attempts.lock().unwrap().push((candidate, Instant::now()));
            async move {
                sleep(SECOND / 10).await;
                yield_now().await;
                match (candidate, attempt.number) {
                    (0, 1) => Err(Failure::throttled()),
                    (0, _) => Err(Failure::transient()),
                    _ => Ok(()),
                }
            }
        });
    let answer = within_polls(polls, call).await;

    let attempts = attempts.into_inner().unwrap();
    let last_of = |wanted: usize| {
        let mut latest = attempts.iter().rev();
        latest.find(|(candidate, _)| *candidate == wanted).map_or(start, |(_, at)| *at)
    };
    assert_no_debt(&tenant, attempts.last().map_or(start, |(_, at)| *at));
    for (number, upstream) in [&first, &second].into_iter().enumerate() {
        assert_no_debt(upstream.limiter().unwrap(), last_of(number));
        assert!(!is_probing(upstream), "the permit is given back");
        let retries = upstream.counters().unwrap().snapshot().retries;
        let level = upstream.budget().unwrap().level(TokioTimer.now());
        assert_eq!(u64::from(RESERVE - level), retries, "only what was sent is paid for");
    }
    if let Some(answer) = &answer {
        assert_eq!(answer.as_ref().unwrap().by, 1);
        assert_eq!(attempts.iter().map(|(candidate, _)| *candidate).collect::<Vec<_>>(), [0, 0, 1]);
    }
    answer.is_some()
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_poll_it_leaves_no_permit_place_token_or_debt() {
    let mut polls = 1;
    while !is_served_within(polls).await {
        polls += 1;
    }
    // Two lines, a backoff, and two or three waits in each of three attempts.
    assert!(polls >= 10, "it waited for everything: {polls} polls");
}
