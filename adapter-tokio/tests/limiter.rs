//! Waiting in line at a limiter: order, cancellation, pause and change.

mod common;

use core::future::pending;
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;

use common::{Failing, built, constant, drained, poll_once};
use holdoff_tokio::{AcquireError, Failure, FairLimiter, Hint, Quota, Rate, Stop};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, advance, sleep, sleep_until, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn quota(rate: Rate, burst: u32) -> Quota {
    Quota::new(rate, burst).expect("the quota is valid")
}

// C43: world-federation-of-advertisers/cross-media-measurement#4444, dotnet/runtime#64078.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_gives_its_turn_to_the_next() {
    let limiter = Arc::new(drained(1).await);
    let start = Instant::now();
    let (sender, mut admitted) = unbounded_channel();
    let enter = |name: &'static str| {
        let (limiter, sender) = (Arc::clone(&limiter), sender.clone());
        tokio::spawn(async move {
            limiter.acquire(1).await.expect("one token fits");
            sender.send((name, start.elapsed().as_millis() / 100)).expect("the test listens");
        })
    };
    let a = enter("a");
    enter("b");
    sleep(SECOND / 2).await;
    a.abort();
    sleep(SECOND / 10).await;
    enter("c");

    assert_eq!(admitted.recv().await, Some(("b", 10)));
    assert_eq!(admitted.recv().await, Some(("c", 20)));
}

#[tokio::test(start_paused = true)]
async fn leaving_at_any_poll_leaves_no_debt() {
    // A lone waiter, one behind another, and one behind a pause; each dropped after k polls.
    for polls in 0..4 {
        let limiter = drained(1).await;
        for _ in 0..100 {
            let mut ahead = pin!(limiter.acquire(1));
            assert!(poll_once(ahead.as_mut()).is_pending());
            let mut waiting = pin!(limiter.acquire(1));
            for _ in 0..polls {
                assert!(poll_once(waiting.as_mut()).is_pending());
            }
        }
        sleep(SECOND).await;
        assert_eq!(limiter.available(), 1, "after {polls} polls");
        let mut next = pin!(limiter.acquire(1));
        assert!(poll_once(next.as_mut()).is_ready(), "after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_at_the_very_instant_of_the_grant_loses_no_token() {
    const ROUNDS: u32 = 10_000;
    let limiter = drained(2 * ROUNDS).await;
    let start = Instant::now();
    let mut used = 0;
    for _ in 0..ROUNDS {
        // Both are due at once; which branch is looked at first is random.
        tokio::select! {
            granted = limiter.acquire(1) => {
                granted.expect("one token fits");
                used += 1;
            }
            () = sleep(SECOND) => {}
        }
    }
    let issued = start.elapsed().as_secs();
    assert!((1..ROUNDS).contains(&used), "both outcomes occur");
    assert_eq!(u64::from(used + limiter.available()), issued);
}

// C45: joshrotenberg/tower-resilience#363.
#[tokio::test(start_paused = true)]
async fn of_those_who_slept_only_one_a_token_is_let_in() {
    let limiter = Arc::new(drained(1).await);
    let half = SECOND / 2;
    let start = Instant::now();
    let (sender, mut answers) = unbounded_channel();
    for waiter in 0..100 {
        let (limiter, sender) = (Arc::clone(&limiter), sender.clone());
        tokio::spawn(async move {
            let granted = timeout(SECOND * 50 + half, limiter.acquire(1)).await.is_ok();
            sender.send((waiter, granted)).expect("the test listens");
        });
    }
    let mut answered = 0;
    for seconds in [1, 10, 49] {
        sleep_until(start + SECOND * seconds + half / 2).await;
        while let Ok(answer) = answers.try_recv() {
            assert_eq!(answer, (answered, true), "first come, first served");
            answered += 1;
        }
        assert_eq!(answered, seconds);
    }
    // The time in line counts: whoever still waits then gives up, and nobody is admitted later.
    sleep_until(start + SECOND * 200).await;
    let mut last = Vec::new();
    while let Ok((_, granted)) = answers.try_recv() {
        last.push(granted);
    }
    last.sort_unstable();
    assert_eq!(last, [vec![false; 50], vec![true; 1]].concat());
}

// C41: run-llama/llama_index#23202, ax-llm/ax#631.
#[tokio::test(start_paused = true)]
async fn what_can_never_fit_is_refused_at_once_even_behind_a_line() {
    let limiter = drained(100).await;
    let mut ahead = pin!(limiter.acquire(100));
    assert!(poll_once(ahead.as_mut()).is_pending());
    for cost in [101, 200, u32::MAX] {
        let start = Instant::now();
        assert_eq!(
            limiter.acquire(cost).await,
            Err(AcquireError::CostTooHigh { burst: 100 }),
            "{cost}"
        );
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
    assert_eq!(limiter.acquire(0).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_big_cost_is_not_starved_by_small_ones() {
    let limiter = Arc::new(drained(10).await);
    let start = Instant::now();
    let (sender, mut admitted) = unbounded_channel();
    for cost in [10, 1, 1] {
        let (limiter, sender) = (Arc::clone(&limiter), sender.clone());
        tokio::spawn(async move {
            limiter.acquire(cost).await.expect("the cost fits");
            sender.send((cost, start.elapsed().as_secs())).expect("the test listens");
        });
    }
    for expected in [(10, 10), (1, 11), (1, 12)] {
        assert_eq!(admitted.recv().await, Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_up_everybody_in_line_and_ends_without_a_burst() {
    let limiter = Arc::new(FairLimiter::new(quota(Rate::per_second(1), 5)));
    limiter.pause_for(SECOND * 10);
    limiter.pause_for(SECOND * 3); // shorter: changes nothing
    let start = Instant::now();
    for expected in [10, 11, 12] {
        limiter.acquire(1).await.expect("one token fits");
        assert_eq!(start.elapsed().as_secs(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn another_quota_reaches_the_one_who_already_sleeps() {
    let limiter = Arc::new(FairLimiter::new(quota(Rate::per_minute(1), 1)));
    limiter.acquire(1).await.expect("one token fits");
    let start = Instant::now();
    let waiting = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move {
            limiter.acquire(1).await.expect("one token fits");
            limiter.acquire(3).await
        }
    });
    sleep(SECOND * 30).await;
    // Half a token is there; at one a second the other half takes half a second.
    limiter.set_quota(quota(Rate::per_second(1), 3));
    sleep(SECOND).await;
    assert_eq!(limiter.available(), 0);
    // A burst below what it waits for: it hears that at once.
    advance(Duration::from_millis(100)).await;
    limiter.set_quota(quota(Rate::per_second(1), 2));
    assert_eq!(waiting.await.expect("no panic"), Err(AcquireError::CostTooHigh { burst: 2 }));
    assert!(start.elapsed() < SECOND * 32);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_takes_a_token() {
    let limiter = drained(1).await;
    let failing = Failing::default();
    let start = Instant::now();
    let policy = built(constant(3, Duration::from_millis(1)));
    let gave_up = limiter.retry(&policy, async || failing.call()).await.expect_err("it fails");
    assert_eq!((gave_up.stop, gave_up.attempts, failing.calls()), (Stop::Attempts, 3, 3));
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_also_counts_in_line() {
    let limiter = drained(1).await;
    let mut ahead = pin!(limiter.acquire(1));
    assert!(poll_once(ahead.as_mut()).is_pending());
    let policy = built(constant(3, SECOND).with_deadline(SECOND * 5));
    let start = Instant::now();
    // The head never moves, so the place is never reached.
    let gave_up = limiter.retry(&policy, async || Ok::<_, Failure>(())).await;
    let gave_up = gave_up.expect_err("no place within the deadline");
    assert_eq!((gave_up.stop, gave_up.attempts, gave_up.last), (Stop::Deadline, 0, None));
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_token_beyond_the_deadline_is_not_begun() {
    let limiter = FairLimiter::new(quota(Rate::per_minute(1), 1));
    limiter.acquire(1).await.expect("one token fits");
    let policy = built(constant(3, SECOND).with_deadline(SECOND * 5));
    let start = Instant::now();
    let gave_up = limiter.retry(&policy, async || Ok::<_, Failure>(())).await;
    let gave_up = gave_up.expect_err("no token within the deadline");
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Deadline, 0));
    assert_eq!(gave_up.retry_after.map(|wait| wait.as_secs()), Some(60));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn one_throttled_call_pauses_all_others() {
    let limiter = FairLimiter::new(quota(Rate::per_second(10), 20));
    let hint = Hint::after(SECOND * 7);
    let policy = built(constant(1, SECOND));
    let throttled = async || Err::<(), _>(Failure::throttled().with_hint(hint));
    let gave_up = limiter.retry(&policy, throttled).await.expect_err("throttled");
    assert_eq!(gave_up.retry_after, Some(SECOND * 7));

    let start = Instant::now();
    limiter.acquire(1).await.expect("one token fits");
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_line_or_under_way_frees_the_line() {
    let limiter = drained(1).await;
    let policy = built(constant(3, SECOND));
    // In line.
    {
        let mut waiting = pin!(limiter.retry(&policy, async || Ok::<_, Failure>(())));
        assert!(poll_once(waiting.as_mut()).is_pending());
    }
    sleep(SECOND).await;
    // Under way: its token is spent, the line is free.
    {
        let operation = async || pending::<Result<(), Failure>>().await;
        let mut under_way = pin!(limiter.retry(&policy, operation));
        assert!(poll_once(under_way.as_mut()).is_pending());
    }
    assert_eq!(limiter.available(), 0);
    let start = Instant::now();
    limiter.acquire(1).await.expect("one token fits");
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_tasks_on_several_threads_get_the_burst_and_no_more() {
    // A rate that adds nothing while the test runs.
    let hour = Duration::from_secs(3600);
    let limiter = Arc::new(FairLimiter::new(quota(Rate::new(1, hour), 100)));
    let (sender, mut admitted) = unbounded_channel();
    let tasks: Vec<_> = (0..10_000)
        .map(|_| {
            let (limiter, sender) = (Arc::clone(&limiter), sender.clone());
            tokio::spawn(async move {
                limiter.acquire(1).await.expect("one token fits");
                sender.send(()).expect("the test listens");
            })
        })
        .collect();
    for _ in 0..100 {
        admitted.recv().await.expect("the burst is admitted");
    }
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        let _ = task.await;
    }
    assert!(admitted.try_recv().is_err(), "nobody beyond the burst");
    assert_eq!(limiter.available(), 0);
}
