//! `retry` under paused time: one clock, cancellation, timeouts, and what a closure may do.

mod common;

use core::future::{pending, ready};
use core::pin::pin;
use core::time::Duration;
use std::sync::Arc;

use common::{Failing, built, constant, drained, poll_once};
use holdoff_tokio::{Failure, Hint, Policy, Stop, retry, retry_when};
use tokio::time::{Instant, advance, sleep};

const MINUTE: Duration = Duration::from_secs(60);

// C68: hyperium/hyper#3950, tokio-rs/tokio#4522.
#[tokio::test(start_paused = true)]
async fn deadline_and_sleeps_are_of_one_clock() {
    let failing = Failing::default();
    let mut starts = Vec::new();
    let start = Instant::now();
    let policy = built(constant(u32::MAX, MINUTE).with_deadline(MINUTE * 5));
    let operation = || {
        starts.push(start.elapsed().as_secs());
        async { failing.call() }
    };
    let gave_up = retry(&policy, operation).await.expect_err("it always fails");
    // The start at exactly 300 s is not made, nor waited for.
    assert_eq!(starts, [0, 60, 120, 180, 240]);
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Deadline, 5));
    assert_eq!(start.elapsed().as_secs(), 240);
    assert_eq!(gave_up.elapsed.as_secs(), 240);
    assert_eq!(gave_up.retry_after, Some(MINUTE));
}

#[tokio::test(start_paused = true)]
async fn the_limiter_is_of_the_same_clock() {
    let limiter = drained(1).await;
    let failing = Failing::default();
    let start = Instant::now();
    let policy = built(constant(u32::MAX, Duration::ZERO).with_deadline(MINUTE));
    let gave_up = limiter.retry(&policy, async || failing.call()).await.expect_err("it fails");
    assert_eq!(gave_up.stop, Stop::Deadline);
    // A token each second; the one at exactly 60 s comes too late.
    assert_eq!((gave_up.attempts, failing.calls()), (59, 59));
    assert_eq!(start.elapsed().as_secs(), 59);
}

// C61: johanhaleby/occurrent#866, gojek/heimdall#145, electron-userland/electron-builder#10126.
#[tokio::test(start_paused = true)]
async fn dropped_while_waiting_it_sends_nothing_more() {
    let two_days = built(constant(5, MINUTE).with_max_hint(Duration::MAX));
    for (wait, hint) in
        [("backoff", Hint::Absent), ("hint", Hint::after(Duration::from_secs(277_403)))]
    {
        let mut calls = 0;
        let start = Instant::now();
        {
            let operation = || {
                calls += 1;
                async move { Err::<(), _>(Failure::throttled().with_hint(hint)) }
            };
            let mut waiting = pin!(retry(&two_days, operation));
            tokio::select! {
                _ = &mut waiting => panic!("{wait}: it still waits"),
                () = sleep(Duration::from_millis(10)) => {}
            }
        }
        assert_eq!(start.elapsed(), Duration::from_millis(10), "{wait}");
        advance(Duration::from_secs(300_000)).await;
        assert_eq!(calls, 1, "{wait}");
    }
}

#[tokio::test(start_paused = true)]
async fn aborted_in_line_it_sends_nothing_more() {
    let limiter = Arc::new(drained(1).await);
    let failing = Arc::new(Failing::default());
    let waiting = tokio::spawn({
        let (limiter, failing) = (Arc::clone(&limiter), Arc::clone(&failing));
        async move { limiter.retry(&Policy::STANDARD, async || failing.call()).await }
    });
    sleep(Duration::from_millis(10)).await;
    waiting.abort();
    sleep(MINUTE).await;
    assert_eq!(failing.calls(), 0);
    assert_eq!(limiter.available(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_is_cut_off_and_counts_as_a_failure() {
    let policy = built(constant(3, MINUTE).with_attempt_timeout(Duration::from_secs(2)));
    let mut attempts = 0;
    let start = Instant::now();
    let answer = retry(&policy, || {
        attempts += 1;
        let hangs = attempts < 3;
        async move { if hangs { pending().await } else { Ok::<_, Failure>("hello") } }
    });
    assert_eq!(answer.await, Ok("hello"));
    assert_eq!(start.elapsed().as_secs(), 2 + 60 + 2 + 60);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_an_attempt_off_and_the_last_error_survives() {
    let policy = built(constant(3, Duration::from_secs(1)).with_deadline(MINUTE));
    let mut attempts = 0;
    let start = Instant::now();
    let gave_up = retry_when(
        &policy,
        |_: &&str| Failure::transient(),
        || {
            attempts += 1;
            let hangs = attempts > 1;
            async move { if hangs { pending().await } else { Err::<(), _>("the first error") } }
        },
    )
    .await
    .expect_err("the second attempt hangs");
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Deadline, 2));
    assert_eq!(gave_up.last, Some("the first error"));
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn retries_of_many_calls_are_spread() {
    let mut waits = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        let mut calls = 0;
        let answer = retry(&Policy::STANDARD, || {
            calls += 1;
            ready(if calls == 1 { Err(Failure::transient()) } else { Ok(()) })
        });
        answer.await.expect("the second call succeeds");
        waits.push(start.elapsed().as_millis());
    }
    waits.sort_unstable();
    // Uniform over [0, 1] s: a tenth of the range holding nobody, or one instant holding many,
    // would take a chance below 1 in 10^4.
    assert!(*waits.last().expect("not empty") <= 1_001);
    assert!((0..10).all(|tenth| waits.iter().any(|wait| wait / 101 == tenth)), "{waits:?}");
    waits.dedup();
    assert!(waits.len() > 80);
}

#[tokio::test(start_paused = true)]
async fn the_future_can_be_spawned_and_the_closure_may_borrow() {
    let greeting = String::from("hello");
    let mut seen = Vec::new();
    // Borrows one value and changes another, across attempts.
    let answer = retry(&Policy::STANDARD, || {
        seen.push(greeting.as_str());
        let enough = seen.len() == 3;
        ready(if enough { Ok(greeting.len()) } else { Err(Failure::transient()) })
    });
    assert_eq!(answer.await, Ok(5));
    assert_eq!(seen, ["hello"; 3]);

    let spawned = tokio::spawn(async move {
        retry(&Policy::STANDARD, async || Ok::<_, Failure>(greeting.len())).await
    });
    assert_eq!(spawned.await.expect("no panic"), Ok(5));
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_the_first_poll_and_the_deadline_counts_from_it() {
    let policy = built(constant(2, MINUTE).with_deadline(MINUTE * 2));
    let failing = Failing::default();
    let future = retry(&policy, async || failing.call());
    advance(MINUTE * 10).await;
    assert_eq!(failing.calls(), 0);
    let gave_up = future.await.expect_err("it fails");
    assert_eq!((gave_up.stop, failing.calls()), (Stop::Attempts, 2));
}

#[tokio::test(start_paused = true)]
async fn a_success_at_the_first_try_is_ready_in_the_first_poll() {
    let mut answer = pin!(retry(&Policy::INTERACTIVE, async || Ok::<_, Failure>(1)));
    assert!(poll_once(answer.as_mut()).is_ready());
}
