//! Stopping: no new jobs, or an end to those in flight.

use core::time::Duration;

use futures_util::StreamExt;
use holdoff_tokio::batch::{Batch, JobResult};
use holdoff_tokio::{Prepared, Stop};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::broken::{Broken, at_once, attempted, three_attempts};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn stopped_it_takes_no_job_and_finishes_those_in_flight() {
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        sleep(4 * SECOND).await;
        stop.cancel();
    });
    let mut results = Batch::new([3, 9, 6, 12, 15], at_once(2))
        .stop_when(token.cancelled())
        .run(|_| Prepared::new(&three_attempts()), attempted);
    let start = Instant::now();
    let mut had = Vec::new();
    while let Some(result) = results.next().await {
        had.push((start.elapsed().as_secs(), result.into_value()));
    }
    assert_eq!(had, [(3, Some(30)), (9, Some(90)), (9, Some(60))]);
    assert!(results.leftovers().take().is_empty());
    assert_eq!(results.progress().snapshot().started, 3);
    assert_eq!(results.into_unstarted().collect::<Vec<_>>().await, [12, 15]);
}

#[tokio::test(start_paused = true)]
async fn stopped_while_it_waits_for_jobs_it_ends_in_the_same_poll() {
    let token = CancellationToken::new();
    let mut results = Batch::from_stream(futures_util::stream::pending::<u64>(), at_once(2))
        .stop_when(token.clone().cancelled_owned())
        .run(|_| Prepared::new(&three_attempts()), attempted);
    let start = Instant::now();
    let stop = async {
        sleep(SECOND).await;
        token.cancel();
    };
    assert!(tokio::join!(results.next(), stop).0.is_none());
    assert_eq!(start.elapsed(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn stopped_before_it_starts_it_starts_nothing() {
    let mut results = Batch::new([3, 6], at_once(2))
        .stop_when(core::future::ready(()))
        .run(|_| Prepared::new(&three_attempts()), attempted);
    assert!(results.next().await.is_none());
    assert!(results.next().await.is_none());
    assert_eq!(results.into_unstarted().collect::<Vec<_>>().await, [3, 6]);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_stopped_by_hand_between_results() {
    let mut results =
        Batch::new([3, 6, 9], at_once(2)).run(|_| Prepared::new(&three_attempts()), attempted);
    assert_eq!(results.next().await.and_then(JobResult::into_value), Some(30));
    results.stop();
    assert_eq!(results.next().await.and_then(JobResult::into_value), Some(60));
    assert!(results.next().await.is_none());
    assert_eq!(results.into_unstarted().collect::<Vec<_>>().await, [9]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_end_at_once_as_letters_that_say_what_is_known() {
    let token = CancellationToken::new();
    let start = Instant::now();
    let mut results = Batch::new([2, 60], at_once(2))
        .stop_when(token.cancelled())
        .run(|_| Prepared::new(&three_attempts()).cancel_when(token.cancelled()), attempted);
    let cancel = async {
        // The first job backs off, the second is in its first attempt.
        sleep(Duration::from_millis(2500)).await;
        token.cancel();
    };
    let all = async {
        let mut letters = Vec::new();
        while let Some(result) = results.next().await {
            let letter = result.into_dead().expect("none succeeds");
            letters.push((letter.job, letter.stop, letter.attempts, letter.last));
        }
        letters
    };
    let mut letters = tokio::join!(all, cancel).0;
    letters.sort_by_key(|letter| letter.0);
    assert_eq!(
        letters,
        [(2, Stop::Cancelled, 1, Some(Broken::Busy)), (60, Stop::Cancelled, 1, None)]
    );
    assert_eq!(start.elapsed(), Duration::from_millis(2500));
}
