//! Dead letters in a file: on disk before anybody hears of it, whole lines, and out again.

#[path = "../common/broken.rs"]
mod broken;
#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod errors;
mod lines;

use core::time::Duration;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use broken::{Broken, at_once, attempted, three_attempts};
use holdoff_tokio::batch::{Batch, JobResult};
use holdoff_tokio::dead_letter::{DeadLetterFile, read};
use holdoff_tokio::{
    BreakerConfig, CircuitBreaker, Failure, Hint, Policy, Prepared, Upstream, valid,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// A directory that goes with the test, and a path in it at which nothing is yet.
fn fresh() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let path = directory.path().join("dead.jsonl");
    (directory, path)
}

async fn opened(path: &PathBuf) -> DeadLetterFile {
    DeadLetterFile::open(path).await.expect("the directory is writable")
}

/// Appends a letter for each of `jobs`, all of them poison.
async fn append<J: Serialize + Clone>(file: &DeadLetterFile, jobs: &[J]) {
    let mut results = Batch::new(jobs.to_vec(), at_once(2))
        .with_dead_letters(file)
        .run(|_| Prepared::new(&three_attempts()), async |_, _| Err::<(), _>(Broken::Poison));
    while let Some(result) = results.next().await {
        assert!(matches!(result, JobResult::Dead(_)));
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Prompt {
    text: String,
    tokens: u64,
}

#[tokio::test(start_paused = true)]
async fn everything_known_is_there_when_it_is_read_again() {
    let (_directory, path) = fresh();
    let job = Prompt { text: "two\nlines \"and\" é\u{2028}".into(), tokens: u64::MAX };
    let mut results =
        Batch::new([job.clone()], at_once(1)).with_dead_letters(opened(&path).await).run_when(
            |_| Prepared::new(&Policy::STANDARD),
            |_| {
                Failure::throttled().with_hint(Hint::after(Duration::from_nanos(7_200_000_001_000)))
            },
            async |_, _| Err::<(), _>(Broken::Poison),
        );
    let before = SystemTime::now() - Duration::from_millis(1);
    let letter = results.next().await.and_then(JobResult::into_dead).expect("it is given up");
    assert_eq!(letter.job, job);
    let (records, bad_lines) = read::<Prompt>(&path).await.expect("it is readable");
    assert!(bad_lines.is_empty());
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.job, job);
    assert!(before <= record.at && record.at <= SystemTime::now(), "{:?}", record.at);
    assert_eq!(record.stop.reason, "hint_too_long");
    // Rounded up: a wait never ends early.
    assert_eq!(record.stop.hint, Some(Duration::from_millis(7_200_001)));
    assert_eq!(record.retry_after, Some(Duration::from_millis(7_200_001)));
    assert_eq!((record.stop.retry_in, record.stop.burst), (None, None));
    assert_eq!((record.attempts, record.elapsed), (1, Duration::ZERO));
    let error = record.error.as_ref().expect("an attempt returned one");
    assert_eq!(error.message, "the job\nis poison");
    assert_eq!(error.sources, ["the provider is \"busy\""]);
}

#[tokio::test(start_paused = true)]
async fn a_line_has_the_fields_that_are_documented() {
    let (_directory, path) = fresh();
    let breaker: CircuitBreaker = valid!(BreakerConfig::consecutive(1).build());
    let provider = Upstream::new(three_attempts()).with_breaker(breaker);
    let mut results = Batch::new([2, 3], at_once(1))
        .with_dead_letters(opened(&path).await)
        .run(|_| provider.prepare(), async |_, _| Err::<(), _>(Broken::Busy));
    while results.next().await.is_some() {}
    let text = fs::read_to_string(&path).expect("it is UTF-8");
    let lines: Vec<_> = text.lines().collect();
    let stamp = r#"{"v":1,"at":"20"#;
    let (known, at) = lines[1].split_at(stamp.len());
    assert_eq!(known, stamp);
    let (at, rest) = at.split_once('"').expect("it is a string");
    assert_eq!((at.len(), at.ends_with('Z')), ("YY-MM-DDThh:mm:ss.mmmZ".len(), true), "{at}");
    // The second job met an open circuit breaker; no attempt was made.
    let reason = rest.split_once("retry_in_ms\":").expect("it says when");
    assert_eq!(reason.0, r#","job":3,"stop":{"reason":"circuit_open",""#);
    let tail = reason.1.trim_start_matches(|digit: char| digit.is_ascii_digit());
    assert!(tail.starts_with(r#"},"attempts":0,"elapsed_ms":0,"retry_after_ms":"#), "{tail}");
    assert!(tail.ends_with(r#","error":null}"#), "{tail}");
}

#[tokio::test(start_paused = true)]
async fn it_is_on_disk_before_its_result_is_had() {
    let (_directory, path) = fresh();
    let mut results = Batch::new(0..30, at_once(5))
        .with_dead_letters(opened(&path).await)
        .run(|_| Prepared::new(&three_attempts()), attempted);
    let mut dead = Vec::new();
    while let Some(result) = results.next().await {
        if let Some(letter) = result.into_dead() {
            dead.push(letter.job);
            let (records, _) = read::<u64>(&path).await.expect("it is readable");
            let jobs: Vec<_> = records.iter().map(|record| record.job).collect();
            assert!(dead.iter().all(|job| jobs.contains(job)), "{dead:?} of {jobs:?}");
        }
    }
    assert_eq!(dead.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_second_run_appends() {
    let (_directory, path) = fresh();
    append(&opened(&path).await, &["a"]).await;
    append(&opened(&path).await, &["b"]).await;
    let (records, bad_lines) = read::<String>(&path).await.expect("it is readable");
    let jobs: Vec<_> = records.into_iter().map(|record| record.job).collect();
    assert_eq!((jobs, bad_lines.len()), (vec!["a".to_owned(), "b".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_at_the_same_time_write_whole_lines() {
    let (_directory, path) = fresh();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4_u64 {
        // A handle each, as processes would have.
        let file = opened(&path).await;
        writers.spawn(async move {
            let jobs: Vec<_> = (0..12_u64)
                .map(|tokens| Prompt { text: "x".repeat(20_000), tokens: 100 * writer + tokens })
                .collect();
            append(&file, &jobs).await;
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.expect("no writer panics");
    }
    let (records, bad_lines) = read::<Prompt>(&path).await.expect("it is readable");
    assert!(bad_lines.is_empty(), "{bad_lines:?}");
    let mut tokens: Vec<_> = records.iter().map(|record| record.job.tokens).collect();
    tokens.sort_unstable();
    let expected: Vec<_> =
        (0..4).flat_map(|writer| (0..12).map(move |job| 100 * writer + job)).collect();
    assert_eq!(tokens, expected);
}
