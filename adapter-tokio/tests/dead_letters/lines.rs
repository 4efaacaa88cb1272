//! Lines that are no records, and jobs that are JSON already.

use core::error::Error;
use std::fs;
use std::io::{self, BufReader, Read};

use holdoff_tokio::dead_letter::{BadLineKind, ReadError, Records, read};
use serde_json::value::RawValue;

use crate::{append, fresh, opened};

const GOOD: &str = concat!(
    r#"{"v":1,"at":"2025-01-31T23:59:59.999Z","job":7,"stop":{"reason":"attempts"},"#,
    r#""attempts":4,"elapsed_ms":1250,"retry_after_ms":null,"error":null}"#,
);

/// What `line` is, by a reader of numbers.
fn kind_of(line: &[u8]) -> Result<u64, BadLineKind> {
    match Records::<_, u64>::new(line).next().expect("there is a line") {
        Ok(record) => Ok(record.job),
        Err(ReadError::Line(line)) => Err(line.kind),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn each_line_is_told_apart() {
    let good = |from: &str, to: &str| kind_of(GOOD.replacen(from, to, 1).as_bytes());
    assert_eq!(kind_of(GOOD.as_bytes()), Ok(7));
    assert_eq!(kind_of(format!(" {GOOD} \r\n").as_bytes()), Ok(7));
    // A later writer says more, and knows other reasons.
    assert_eq!(good("\"v\":1", "\"v\":1,\"host\":\"a\""), Ok(7));
    assert_eq!(good("attempts", "out_of_\\u0070atience"), Ok(7));
    assert_eq!(good(":7,", ":\"7\","), Err(BadLineKind::Job));
    assert_eq!(good(":7,", ":-7,"), Err(BadLineKind::Job));
    assert_eq!(good("\"v\":1", "\"v\":2"), Err(BadLineKind::Foreign));
    assert_eq!(good("\"job\":7,", ""), Err(BadLineKind::Foreign));
    assert_eq!(good("2025-01-31", "2025-02-31"), Err(BadLineKind::Foreign));
    for foreign in ["INFO started", "{}", "[1]", "7", "\u{feff}"] {
        assert_eq!(kind_of(foreign.as_bytes()), Err(BadLineKind::Foreign), "{foreign}");
    }
    assert_eq!(kind_of(b"\xff\xfe"), Err(BadLineKind::Foreign));
    // Cut off in the middle of a character.
    assert_eq!(kind_of(b"{\"v\":1,\"job\":\"\xc3"), Err(BadLineKind::Torn));
    for end in 1..GOOD.len() {
        assert_eq!(kind_of(&GOOD.as_bytes()[..end]), Err(BadLineKind::Torn), "at {end}");
    }
}

#[test]
fn numbers_count_every_line_and_empty_ones_are_passed_over() {
    let text = format!("\n{GOOD}\n\n \r\nnonsense\n{GOOD}");
    let mut records = Records::<_, u64>::new(text.as_bytes());
    assert!(records.next().is_some_and(|record| record.is_ok()));
    let Some(Err(error)) = records.next() else { panic!("it is nonsense") };
    assert_eq!(error.to_string(), "line 5 is not a dead letter");
    assert!(error.source().is_some());
    assert!(records.next().is_some_and(|record| record.is_ok()));
    assert!(records.next().is_none());
}

#[test]
fn after_an_error_of_reading_there_is_no_more() {
    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }

    let mut records = Records::<_, u64>::new(BufReader::new(Broken));
    assert!(matches!(records.next(), Some(Err(ReadError::Io(_)))));
    assert!(records.next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_json_already_stays_on_one_line() {
    let (_directory, path) = fresh();
    let pretty = "{\n  \"text\": \"a\\nb\"\n}";
    let job = RawValue::from_string(pretty.to_owned()).expect("it is JSON");
    append(&opened(&path).await, &[job.clone(), job]).await;
    let text = fs::read_to_string(&path).expect("it is UTF-8");
    assert_eq!(text.lines().count(), 2);
    let (records, bad_lines) = read::<serde_json::Value>(&path).await.expect("it is readable");
    assert!(bad_lines.is_empty(), "{bad_lines:?}");
    assert_eq!(records[1].job["text"], "a\nb");
}
