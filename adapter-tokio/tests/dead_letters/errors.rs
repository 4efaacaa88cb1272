//! What the file cannot do comes back with the letter.

use core::error::Error;
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;

use holdoff_tokio::Prepared;
use holdoff_tokio::batch::{Batch, JobResult};
use holdoff_tokio::dead_letter::{DeadLetterFile, FileError, read};

use crate::broken::{Broken, at_once, three_attempts};
use crate::{append, fresh, opened};

#[tokio::test(start_paused = true)]
async fn what_cannot_be_opened_says_so() {
    let (directory, path) = fresh();
    let missing = DeadLetterFile::open(path.join("nowhere")).await.expect_err("nothing is there");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    DeadLetterFile::open(directory.path()).await.expect_err("it is a directory");
    let unread = read::<u64>(&path).await.expect_err("nothing is there");
    assert_eq!(unread.kind(), ErrorKind::NotFound);
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_full_disk_gives_the_letter_back_and_the_batch_goes_on() {
    let file = DeadLetterFile::open("/dev/full").await.expect("it can be opened");
    let mut results = Batch::new([1, 2, 3], at_once(2)).with_dead_letters(file).run(
        |_| Prepared::new(&three_attempts()),
        async |&job, _| if job == 2 { Ok(job) } else { Err(Broken::Poison) },
    );
    let mut letters = Vec::new();
    while let Some(result) = results.next().await {
        match result {
            JobResult::Done { job: 2, value: 2 } => {}
            JobResult::Undelivered { letter, error: FileError::Write(error) } => {
                assert_eq!(error.kind(), ErrorKind::StorageFull);
                assert_eq!(letter.last, Some(Broken::Poison));
                letters.push(letter.job);
            }
            other => panic!("{other:?}"),
        }
    }
    letters.sort_unstable();
    assert_eq!(letters, [1, 3]);
    assert_eq!(results.progress().snapshot().undelivered, 2);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_no_json_comes_back_and_nothing_is_written() {
    let (_directory, path) = fresh();
    let job = HashMap::from([((1, 2), 3)]);
    let mut results = Batch::new([job.clone()], at_once(1))
        .with_dead_letters(opened(&path).await)
        .run(|_| Prepared::new(&three_attempts()), async |_, _| Err::<(), _>(Broken::Poison));
    let Some(JobResult::Undelivered { letter, error }) = results.next().await else {
        panic!("its keys are no strings")
    };
    assert_eq!(letter.job, job);
    assert!(matches!(error, FileError::Encode(_)));
    assert_eq!(error.to_string(), "cannot write the job as JSON");
    assert_eq!(error.source().expect("serde says why").to_string(), "key must be a string");
    assert_eq!(fs::read(&path).expect("it is there"), b"");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_works_again_is_written_to_again() {
    let (_directory, path) = fresh();
    let file = opened(&path).await;
    let keyed = [HashMap::from([((1, 2), 3)])];
    let mut results = Batch::new(keyed, at_once(1))
        .with_dead_letters(&file)
        .run(|_| Prepared::new(&three_attempts()), async |_, _| Err::<(), _>(Broken::Poison));
    assert!(matches!(results.next().await, Some(JobResult::Undelivered { .. })));
    append(&file, &[7_u64]).await;
    assert_eq!(read::<u64>(&path).await.expect("it is readable").0[0].job, 7);
}

#[test]
fn a_letter_at_the_end_of_the_runtime_comes_back() {
    let (_directory, path) = fresh();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it is valid");
    let file = runtime.block_on(opened(&path));
    let handle = runtime.handle().clone();
    drop(runtime);
    let mut results = Batch::new([1], at_once(1))
        .with_dead_letters(file)
        .run(|_| Prepared::new(&three_attempts()), async |_, _| Err::<(), _>(Broken::Poison));
    let Some(JobResult::Undelivered { letter, error }) = handle.block_on(results.next()) else {
        panic!("nobody is there to write it")
    };
    assert!(matches!(error, FileError::Shutdown));
    assert_eq!(letter.job, 1);
}
