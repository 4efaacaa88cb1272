//! Where dead letters go, and when nobody takes them.

use core::time::Duration;

use holdoff_tokio::batch::{Batch, JobResult};
use holdoff_tokio::dead_letter::{DeadLetter, DeadLetterSink};
use holdoff_tokio::{Prepared, Stop};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::broken::{Broken, at_once, attempted, three_attempts};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_full_channel_slows_the_batch_down() {
    let start = Instant::now();
    let (sender, mut receiver) = mpsc::channel(1);
    let mut results = Batch::new([1; 20], at_once(2))
        .with_dead_letters(sender)
        .run(|_| Prepared::new(&three_attempts()), attempted);
    let progress = results.progress();
    let reader = tokio::spawn(async move {
        let mut letters = Vec::new();
        while let Some(letter) = receiver.recv().await {
            letters.push(letter);
            // One is in the channel, two wait for it.
            assert!(progress.snapshot().started <= letters.len() as u64 + 3);
            sleep(10 * SECOND).await;
        }
        letters
    });
    let mut dead = 0;
    while let Some(result) = results.next().await {
        assert_eq!(result, JobResult::Dead(()));
        dead += 1;
    }
    let letters = reader.await.expect("it does not panic");
    assert_eq!((dead, letters.len()), (20, 20));
    assert!(letters.iter().all(|letter| letter.stop == Stop::Permanent && letter.job == 1));
    assert_eq!(start.elapsed(), 201 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_nobody_receives_comes_back() {
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let mut results = Batch::new([3, 4], at_once(1))
        .with_dead_letters(sender)
        .run(|_| Prepared::new(&three_attempts()), attempted);
    assert_eq!(results.next().await, Some(JobResult::Done { job: 3, value: 30 }));
    let Some(JobResult::Undelivered { letter, error }) = results.next().await else {
        panic!("there is nobody to take it")
    };
    assert_eq!((letter.job, letter.last), (4, Some(Broken::Poison)));
    assert_eq!(error.to_string(), "channel closed");
    assert_eq!(results.progress().snapshot().undelivered, 1);
}

#[tokio::test(start_paused = true)]
async fn a_letter_that_waits_comes_back_when_the_receiver_goes() {
    let (sender, mut receiver) = mpsc::channel(1);
    let mut results = Batch::new([1, 1, 1], at_once(3))
        .with_dead_letters(sender)
        .run(|_| Prepared::new(&three_attempts()), attempted);
    let reader = tokio::spawn(async move {
        sleep(5 * SECOND).await;
        receiver.close();
        let mut received = 0;
        while receiver.recv().await.is_some() {
            received += 1;
        }
        received
    });
    let (mut dead, mut undelivered) = (0, 0);
    while let Some(result) = results.next().await {
        match result {
            JobResult::Dead(()) => dead += 1,
            JobResult::Undelivered { .. } => undelivered += 1,
            JobResult::Done { .. } => panic!("all are poison"),
        }
    }
    assert_eq!((dead, undelivered, reader.await.expect("it does not panic")), (1, 2, 1));
}

/// A sink that takes every second letter, slowly.
#[derive(Default)]
struct Picky {
    asked: core::sync::atomic::AtomicU32,
}

impl<J, E> DeadLetterSink<J, E> for Picky {
    type Permit = u32;
    type Receipt = (u32, J);
    type Error = &'static str;

    async fn reserve(&self, _: &DeadLetter<J, E>) -> Result<u32, &'static str> {
        let number = self.asked.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        sleep(SECOND).await;
        if number.is_multiple_of(2) { Ok(number) } else { Err("not this one") }
    }

    fn hand_over(&self, number: u32, letter: DeadLetter<J, E>) -> (u32, J) {
        (number, letter.job)
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_of_ones_own_says_what_comes_back() {
    let picky = Picky::default();
    let mut results = Batch::new([1, 4, 7], at_once(1))
        .with_dead_letters(&picky)
        .run(|_| Prepared::new(&three_attempts()), attempted);
    assert_eq!(results.next().await, Some(JobResult::Dead((0, 1))));
    match results.next().await {
        Some(JobResult::Undelivered { letter, error: "not this one" }) => {
            assert_eq!(letter.job, 4);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(results.next().await, Some(JobResult::Dead((2, 7))));
}

#[tokio::test(start_paused = true)]
async fn without_a_sink_the_letter_is_the_result() {
    let mut results =
        Batch::new([1], at_once(1)).run(|_| Prepared::new(&three_attempts()), attempted);
    let result: Option<JobResult<u64, u64, Broken>> = results.next().await;
    let letter = result.and_then(JobResult::into_dead).expect("it is poison");
    assert_eq!(letter.to_string(), "gave up after 1 attempt in 1s: the failure is permanent");
    let source = core::error::Error::source(&letter).expect("an attempt returned one");
    assert_eq!(source.to_string(), Broken::Poison.to_string());
}
