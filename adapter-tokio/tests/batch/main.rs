//! Batches under paused time: how many at once, in which order, and where every job ends up.

#[path = "../common/broken.rs"]
mod broken;
#[path = "../common/mod.rs"]
mod common;
mod dropped;
mod sinks;
mod stopped;

use core::cell::Cell;
use core::time::Duration;
use std::sync::Arc;

use broken::{Broken, at_once, attempted, three_attempts};
use futures_util::stream;
use holdoff_tokio::batch::{Batch, JobResult};
use holdoff_tokio::{Prepared, Stop, Upstream};
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn results_come_as_they_are_had_each_with_its_job() {
    let provider = Upstream::new(three_attempts());
    let start = Instant::now();
    let mut results = Batch::new([9, 2, 1, 3], at_once(4)).run(|_| provider.prepare(), attempted);
    let mut order = Vec::new();
    while let Some(result) = results.next().await {
        order.push(match result {
            JobResult::Done { job, value } => (start.elapsed().as_secs(), job, Ok(value)),
            JobResult::Dead(letter) => {
                assert_eq!((letter.attempts, letter.elapsed), (1, Duration::from_secs(1)));
                (start.elapsed().as_secs(), letter.job, Err((letter.stop, letter.last)))
            }
            JobResult::Undelivered { error, .. } => match error {},
        });
    }
    let poison = Err((Stop::Permanent, Some(Broken::Poison)));
    // The busy one: two attempts of two seconds, a second apart.
    assert_eq!(order, [(1, 1, poison), (3, 3, Ok(30)), (5, 2, Ok(20)), (9, 9, Ok(90))]);
}

#[tokio::test(start_paused = true)]
async fn no_more_jobs_are_in_flight_than_asked_for_and_no_fewer() {
    for limit in [1, 2, 7, 100] {
        let (now, most, taken) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let jobs = (0..50_u64).inspect(|_| taken.set(taken.get() + 1));
        let mut results = Batch::new(jobs, at_once(limit)).run(
            |_| Prepared::new(&three_attempts()),
            async |job, _| {
                now.set(now.get() + 1);
                most.set(most.get().max(now.get()));
                sleep(Duration::from_millis(1 + job * 7919 % 13)).await;
                now.set(now.get() - 1);
                Ok::<_, Broken>(())
            },
        );
        assert_eq!(taken.get(), 0);
        let mut had = 0;
        while results.next().await.is_some() {
            had += 1;
            // None is taken before there is room for it.
            assert!(taken.get() <= had + limit, "{} taken, {had} had", taken.get());
        }
        assert_eq!((had, most.get()), (50, limit.min(50)));
    }
}

#[tokio::test(start_paused = true)]
async fn jobs_may_come_over_time_while_others_are_in_flight() {
    let start = Instant::now();
    let slowly = Box::pin(stream::unfold(0, async |job| {
        sleep(Duration::from_secs(5)).await;
        (job < 9).then_some((job, job + 3))
    }));
    let mut results =
        Batch::from_stream(slowly, at_once(2)).run(|_| Prepared::new(&three_attempts()), attempted);
    let mut had = Vec::new();
    while let Some(result) = results.next().await {
        had.push((start.elapsed().as_secs(), result.into_value()));
    }
    assert_eq!(had, [(5, Some(0)), (13, Some(30)), (21, Some(60))]);
    assert!(results.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn it_runs_on_another_task_and_its_operation_borrows_the_job() {
    let provider = Arc::new(Upstream::new(three_attempts()));
    let batch = async move {
        let jobs = ["a", "b"].map(String::from);
        let mut results = Batch::new(jobs, at_once(2)).run(
            |_| provider.prepare(),
            async |job, _| {
                let borrowed = job.as_str();
                sleep(Duration::from_secs(1)).await;
                Ok::<_, Broken>(borrowed.len())
            },
        );
        let mut sum = 0;
        while let Some(result) = results.next().await {
            sum += result.into_value().unwrap_or_default();
        }
        sum
    };
    assert_eq!(tokio::spawn(batch).await.expect("it does not panic"), 2);
}

#[tokio::test(start_paused = true)]
async fn each_job_sets_up_its_own_call() {
    let provider = Upstream::new(three_attempts());
    let mut results = Batch::new([1, 2, 3], at_once(1)).run(
        |&job| provider.prepare().with_deadline(Duration::from_secs(job)),
        async |_, attempt| match attempt.timeout() {
            Some(timeout) if timeout >= Duration::from_secs(3) => Ok(timeout.as_secs()),
            _ => Err(Broken::Poison),
        },
    );
    let mut values = Vec::new();
    while let Some(result) = results.next().await {
        values.push(result.into_value());
    }
    assert_eq!(values, [None, None, Some(3)]);
}

#[tokio::test(start_paused = true)]
async fn progress_counts_every_job_once_and_is_seen_from_another_task() {
    let mut results =
        Batch::new(0..9, at_once(4)).run(|_| Prepared::new(&three_attempts()), attempted);
    let mut progress = results.progress();
    let watcher = tokio::spawn(async move {
        let (mut seen, mut most) = (0, 0);
        while let Some(now) = progress.changed().await {
            let over = now.done + now.dead + now.undelivered + now.cut_off;
            assert_eq!(now.started, over + now.in_flight());
            assert!(over >= seen, "{now:?}");
            (seen, most) = (over, most.max(now.in_flight()));
        }
        (seen, most, progress.snapshot())
    });
    while results.next().await.is_some() {}
    // It has ended, though the results are still there.
    let (seen, most, last) = watcher.await.expect("it does not panic");
    assert_eq!((seen, most), (9, 4));
    assert_eq!((last.started, last.done, last.dead, last.retries), (9, 6, 3, 3));
    assert_eq!(last, results.progress().snapshot());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_jobs_are_no_problem() {
    let mut results = Batch::new(0..10_000_u64, at_once(1000)).run(
        |_| Prepared::new(&three_attempts()),
        async |job, _| {
            sleep(Duration::from_millis(job % 10)).await;
            Ok::<_, Broken>(*job)
        },
    );
    let mut sum = 0;
    while let Some(result) = results.next().await {
        sum += result.into_value().expect("none fails");
    }
    assert_eq!(sum, 10_000 * 9_999 / 2);
}
