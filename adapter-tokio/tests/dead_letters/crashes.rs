//! What crashes leave behind.

use core::time::Duration;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use holdoff_tokio::Prepared;
use holdoff_tokio::batch::{Batch, JobResult, Leftover};
use holdoff_tokio::dead_letter::{BadLineKind, DeadLetterFile, read};
use tokio::time::timeout;

use crate::broken::{at_once, attempted, polled, three_attempts};
use crate::{append, fresh, opened};

/// Cuts `bytes` off the end, as a crash does whose last block never reached the disk.
fn tear(path: &PathBuf, bytes: u64) {
    let file = OpenOptions::new().write(true).open(path).expect("it is writable");
    let length = file.metadata().expect("it is there").len();
    file.set_len(length - bytes).expect("it can be cut");
}

/// The jobs, and the numbers and kinds of the lines that are none.
async fn contents(path: &PathBuf) -> (Vec<u64>, Vec<(u64, BadLineKind)>) {
    let (records, bad_lines) = read(path).await.expect("it is readable");
    let jobs = records.into_iter().map(|record| record.job).collect();
    (jobs, bad_lines.iter().map(|line| (line.number, line.kind)).collect())
}

#[tokio::test(start_paused = true)]
async fn a_torn_line_spoils_no_other_wherever_it_is_torn() {
    let (_directory, path) = fresh();
    append(&opened(&path).await, &[1_u64]).await;
    let line = fs::metadata(&path).expect("it is there").len();
    for torn in 1..line {
        fs::remove_file(&path).expect("it is there");
        append(&opened(&path).await, &[1_u64]).await;
        tear(&path, torn);
        append(&opened(&path).await, &[2_u64]).await;
        // Without its last byte, the line feed, it is whole.
        let expected =
            if torn == 1 { (vec![1, 2], vec![]) } else { (vec![2], vec![(1, BadLineKind::Torn)]) };
        assert_eq!(contents(&path).await, expected, "{torn} bytes torn off");
    }
}

#[tokio::test(start_paused = true)]
async fn a_whole_line_without_its_line_feed_counts() {
    let (_directory, path) = fresh();
    append(&opened(&path).await, &[1_u64, 2]).await;
    tear(&path, 1);
    assert_eq!(contents(&path).await, (vec![1, 2], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_line_torn_by_another_process_while_the_file_is_open_spoils_no_other() {
    let (_directory, path) = fresh();
    let file = opened(&path).await;
    append(&file, &[1_u64]).await;
    let mut other = OpenOptions::new().append(true).open(&path).expect("it is writable");
    other.write_all(br#"{"v":1,"at":"2025-01-"#).expect("it is writable");
    append(&file, &[2_u64]).await;
    assert_eq!(contents(&path).await, (vec![1, 2], vec![(2, BadLineKind::Torn)]));
}

#[tokio::test(start_paused = true)]
async fn blocks_of_zeros_are_a_torn_line() {
    let (_directory, path) = fresh();
    append(&opened(&path).await, &[1_u64]).await;
    let mut other = OpenOptions::new().append(true).open(&path).expect("it is writable");
    other.write_all(&[0; 4096]).expect("it is writable");
    append(&opened(&path).await, &[2_u64]).await;
    assert_eq!(contents(&path).await, (vec![1, 2], vec![(2, BadLineKind::Torn)]));
}

#[tokio::test(start_paused = true)]
async fn a_file_emptied_or_moved_away_while_it_is_open_is_no_problem() {
    let (directory, path) = fresh();
    let file = opened(&path).await;
    append(&file, &[1_u64]).await;
    fs::write(&path, "").expect("it is writable");
    append(&file, &[2_u64]).await;
    let away = directory.path().join("away.jsonl");
    fs::rename(&path, &away).expect("it can be moved");
    append(&file, &[3_u64]).await;
    assert_eq!(contents(&away).await, (vec![2, 3], vec![]));
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_poll_every_letter_is_in_the_file_or_left() {
    let mut has_left_a_letter = false;
    for polls in 0.. {
        let (_directory, path) = fresh();
        let file = opened(&path).await;
        let mut results = Batch::new([1, 1, 4, 4], at_once(3))
            .with_dead_letters(file.clone())
            .run(|_| Prepared::new(&three_attempts()), attempted);
        let (leftovers, progress) = (results.leftovers(), results.progress());
        let mut dead = Vec::new();
        let work = async {
            while let Some(result) = results.next().await {
                dead.push(result.into_dead().expect("all are poison").job);
            }
        };
        let has_ended = polled(polls, work).await.is_some();
        drop(results);
        // Behind what is being written just now.
        append(&file, &[99_u64]).await;
        let (jobs, bad_lines) = contents(&path).await;
        assert!(bad_lines.is_empty(), "{bad_lines:?} after {polls} polls");
        let in_file = |job| jobs.iter().filter(|other| **other == job).count();
        let mut left = Vec::new();
        for leftover in leftovers.take() {
            match leftover {
                Leftover::Letter(letter) => {
                    has_left_a_letter = true;
                    left.push(letter.job);
                }
                Leftover::Job(job) => left.push(job),
                other => panic!("{other:?}"),
            }
        }
        for job in [1, 4] {
            let told = dead.iter().filter(|other| **other == job).count();
            let left = left.iter().filter(|other| **other == job).count();
            assert!(in_file(job) >= told && in_file(job) <= told + left, "after {polls} polls");
        }
        let counts = progress.snapshot();
        assert_eq!(counts.started, (dead.len() + left.len()) as u64);
        if has_ended {
            break;
        }
    }
    assert!(has_left_a_letter);
}

#[tokio::test(start_paused = true)]
async fn results_not_asked_for_in_time_are_not_lost() {
    let (_directory, path) = fresh();
    let mut results = Batch::new([1; 3], at_once(1))
        .with_dead_letters(DeadLetterFile::open(&path).await.expect("it is writable"))
        .run(|_| Prepared::new(&three_attempts()), attempted);
    let mut dead = 0;
    loop {
        match timeout(Duration::from_millis(300), results.next()).await {
            Ok(Some(JobResult::Dead(_))) => dead += 1,
            Ok(Some(other)) => panic!("{other:?}"),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!((dead, contents(&path).await.0), (3, vec![1, 1, 1]));
}
