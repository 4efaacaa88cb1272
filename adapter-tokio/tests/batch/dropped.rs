//! Dropped at any point, no job is lost without a trace.

use core::future::poll_fn;
use core::panic::AssertUnwindSafe;
use core::task::Poll;
use core::time::Duration;
use std::panic::catch_unwind;

use futures_util::{StreamExt, stream};
use holdoff_tokio::batch::{Batch, JobResult, Leftover};
use holdoff_tokio::{Prepared, Quota, Rate, Stop, Upstream};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::broken::{Broken, at_once, attempted, polled, three_attempts};

#[tokio::test(start_paused = true)]
async fn dropped_at_any_poll_every_job_is_somewhere() {
    let quota = Quota::new(Rate::per_second(1), 2).expect("the quota is valid");
    let mut has_seen = [false; 3];
    for polls in 0.. {
        let provider = Upstream::new(three_attempts()).with_limiter(quota);
        let (sender, mut receiver) = mpsc::channel(1);
        let mut unstarted = stream::iter(0..12);
        let mut results = Batch::from_stream(&mut unstarted, at_once(3))
            .with_dead_letters(sender)
            .run(|_| provider.prepare(), attempted);
        let (leftovers, progress) = (results.leftovers(), results.progress());
        let mut jobs = Vec::new();
        let mut dead = Vec::new();
        let work = async {
            let results = async {
                while let Some(result) = results.next().await {
                    match result {
                        JobResult::Done { job, .. } => jobs.push(job),
                        JobResult::Dead(()) => {} // In the channel.
                        JobResult::Undelivered { .. } => panic!("the receiver is there"),
                    }
                }
            };
            let slow_reader = async {
                while let Some(letter) = receiver.recv().await {
                    dead.push(letter.job);
                    sleep(Duration::from_secs(40)).await;
                }
            };
            tokio::join!(results, slow_reader);
        };
        let has_ended = polled(polls, work).await.is_some();
        drop(results);
        while let Ok(letter) = receiver.try_recv() {
            dead.push(letter.job);
        }
        let counts = progress.snapshot();
        assert_eq!(counts.in_flight(), 0, "after {polls} polls: {counts:?}");
        assert_eq!(counts.done, jobs.len() as u64);
        assert_eq!(counts.dead, dead.len() as u64);
        let left = leftovers.take();
        assert_eq!(counts.cut_off, left.len() as u64);
        for leftover in left {
            match leftover {
                Leftover::Job(job) => {
                    has_seen[0] = true;
                    jobs.push(job);
                }
                Leftover::Letter(letter) => {
                    has_seen[1] = true;
                    assert_eq!((letter.stop, letter.last), (Stop::Permanent, Some(Broken::Poison)));
                    jobs.push(letter.job);
                }
                other => panic!("{other:?}"),
            }
        }
        jobs.extend(dead);
        has_seen[2] |= !jobs.is_empty() && jobs.len() < 12;
        jobs.extend(unstarted.collect::<Vec<_>>().await);
        jobs.sort_unstable();
        assert_eq!(jobs, (0..12).collect::<Vec<_>>(), "after {polls} polls");
        assert_eq!(provider.limiter().expect("it has one").waiting(), 0);
        if has_ended {
            assert!(polls > 20);
            break;
        }
    }
    assert_eq!(has_seen, [true; 3]);
}

#[tokio::test(start_paused = true)]
async fn the_job_of_a_panic_is_left_and_the_others_go_on() {
    let mut results = Batch::new([1, 2, 3], at_once(3)).run(
        |_| Prepared::new(&three_attempts()),
        async |&job, _| {
            assert_ne!(job, 2, "of all numbers");
            Ok::<i32, Broken>(job)
        },
    );
    let mut had = Vec::new();
    let mut panics = 0;
    loop {
        let next = poll_fn(|context| {
            match catch_unwind(AssertUnwindSafe(|| results.poll_next_unpin(context))) {
                Ok(next) => next.map(Ok),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        });
        match next.await {
            Ok(Some(result)) => had.extend(result.into_value()),
            Ok(None) => break,
            Err(_) => panics += 1,
        }
    }
    assert_eq!((had, panics), (vec![1, 3], 1));
    assert_eq!(results.leftovers().take(), [Leftover::Job(2)]);
    assert_eq!(results.progress().snapshot().cut_off, 1);
}
