//! A letter as one line of JSON.
//!
//! ```json
//! {"v":1,"at":"2025-01-31T23:59:59.999Z","job":…,"stop":{"reason":"attempts"},
//!  "attempts":4,"elapsed_ms":1250,"retry_after_ms":500,
//!  "error":{"message":"busy","sources":["connection reset"]}}
//! ```

use core::error::Error;
use core::iter::successors;
use core::time::Duration;
use std::borrow::Cow;
use std::time::SystemTime;

use holdoff::{Clock, Instant, Stop};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{BadLineKind, DeadLetter};
use crate::timer::TokioTimer;

/// A dead letter as it was read from a file. See [`read`](super::read()) for an example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<J> {
    /// The job.
    pub job: J,
    /// When it was written, by the wall clock.
    pub at: SystemTime,
    /// Why there was no further attempt.
    pub stop: RecordedStop,
    /// Attempts made.
    pub attempts: u32,
    /// The time from the start of its call to the stop (milliseconds, rounded down).
    pub elapsed: Duration,
    /// How long from the stop until another attempt could make sense, where that is known and not
    /// never (milliseconds, rounded up).
    pub retry_after: Option<Duration>,
    /// The last error, if an attempt returned one.
    pub error: Option<RecordedError>,
}

/// Why a call stopped, as it was read from a file: a [`Stop`] by name, and its numbers.
///
/// [`Stop`]: crate::Stop
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedStop {
    /// The name of the [`Stop`](crate::Stop) in snake case: `attempts`, `circuit_open`, ...
    pub reason: String,
    /// For `circuit_open`, how long from [`Record::at`] until the circuit breaker can admit a call;
    /// `None` while it is forced open.
    pub retry_in: Option<Duration>,
    /// For `hint_too_long`, the wait that the server asked for; `None` if it was endless.
    pub hint: Option<Duration>,
    /// For `cost_too_high`, the largest cost that can be admitted.
    pub burst: Option<u32>,
}

/// An error as it was read from a file: texts only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedError {
    /// Its `Display`.
    pub message: String,
    /// The `Display` of its `source`, of that one's, and so on.
    pub sources: Vec<String>,
}

/// The line of `letter` between two line feeds, the first of which is for whoever finds the file
/// ending in the middle of another line.
pub(super) fn encode<J: Serialize, E: Error>(
    letter: &DeadLetter<J, E>,
) -> Result<Vec<u8>, serde_json::Error> {
    let line = Line {
        v: VERSION,
        at: Timestamp::now(),
        job: &letter.job,
        stop: StopFields::new(letter.stop, TokioTimer.now()),
        attempts: letter.attempts,
        elapsed_ms: whole_ms(letter.elapsed),
        retry_after_ms: letter.retry_after.and_then(wait_ms),
        error: letter.last.as_ref().map(recorded),
    };
    let mut text = vec![b'\n'];
    serde_json::to_writer(&mut text, &line)?;
    // A job that is JSON already may hold line feeds, in JSON always between two tokens.
    text.iter_mut().skip(1).filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    text.push(b'\n');
    Ok(text)
}

/// The record on `line`, or what it is instead.
pub(super) fn decode<J: DeserializeOwned>(line: &[u8]) -> Result<Record<J>, NoRecord> {
    if line.contains(&0) {
        // What a file system leaves where a block was allotted and never written.
        return Err((BadLineKind::Torn, "a zero byte, which JSON has nowhere".into()));
    }
    let text = str::from_utf8(line).map_err(|error| match error.error_len() {
        None => (BadLineKind::Torn, error.into()),
        Some(_) => (BadLineKind::Foreign, error.into()),
    })?;
    let line: Line<'_, &RawValue> = serde_json::from_str(text).map_err(|error| {
        let kind = if error.is_eof() { BadLineKind::Torn } else { BadLineKind::Foreign };
        (kind, error.into())
    })?;
    if line.v != VERSION {
        return Err((BadLineKind::Foreign, format!("a record of version {}", line.v).into()));
    }
    let job = serde_json::from_str(line.job.get())
        .map_err(|error| -> NoRecord { (BadLineKind::Job, error.into()) })?;
    let StopFields { reason, retry_in_ms, hint_ms, burst } = line.stop;
    Ok(Record {
        job,
        at: line
            .at
            .try_into()
            .map_err(|error: jiff::Error| -> NoRecord { (BadLineKind::Foreign, error.into()) })?,
        stop: RecordedStop {
            reason: reason.into_owned(),
            retry_in: retry_in_ms.map(Duration::from_millis),
            hint: hint_ms.map(Duration::from_millis),
            burst,
        },
        attempts: line.attempts,
        elapsed: Duration::from_millis(line.elapsed_ms),
        retry_after: line.retry_after_ms.map(Duration::from_millis),
        error: line.error,
    })
}

/// What a line is that holds no record, and how that shows.
pub(super) type NoRecord = (BadLineKind, Box<dyn Error + Send + Sync>);

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Line<'a, J> {
    v: u32,
    #[serde(serialize_with = "to_the_millisecond")]
    at: Timestamp,
    job: J,
    #[serde(borrow)]
    stop: StopFields<'a>,
    attempts: u32,
    elapsed_ms: u64,
    retry_after_ms: Option<u64>,
    error: Option<RecordedError>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StopFields<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_in_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u32>,
}

impl StopFields<'static> {
    fn new(stop: Stop, now: Instant) -> Self {
        let mut fields = Self { reason: stop.name().into(), ..Self::default() };
        match stop {
            // An instant of this process means nothing to the reader.
            Stop::CircuitOpen { retry_at } if retry_at < Instant::MAX => {
                fields.retry_in_ms = wait_ms(retry_at.saturating_duration_since(now));
            }
            Stop::CostTooHigh { burst } => fields.burst = Some(burst),
            Stop::HintTooLong { hint } => fields.hint_ms = wait_ms(hint),
            _ => {}
        }
        fields
    }
}

fn recorded(error: &impl Error) -> RecordedError {
    let sources = successors(error.source(), |&error| error.source());
    RecordedError {
        message: error.to_string(),
        sources: sources.map(|source| source.to_string()).collect(),
    }
}

/// Always with three decimals, so that stamps sort as text.
fn to_the_millisecond<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.3}"))
}

/// A time gone by, rounded down.
fn whole_ms(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// A time to wait, rounded up; `None` if it never ends.
fn wait_ms(wait: Duration) -> Option<u64> {
    (wait < Duration::MAX)
        .then(|| u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_stable_and_numbers_are_waits_rounded_up() {
        let now = Instant::EPOCH.saturating_add(Duration::from_secs(60));
        let json = |stop| serde_json::to_string(&StopFields::new(stop, now)).expect("plain data");
        let retry_at = now.saturating_add(Duration::from_nanos(1_500_000_001));
        let hint = Duration::from_secs(3600);
        for (stop, expected) in [
            (Stop::Attempts, r#"{"reason":"attempts"}"#),
            (Stop::Budget, r#"{"reason":"budget"}"#),
            (Stop::Cancelled, r#"{"reason":"cancelled"}"#),
            (Stop::CircuitOpen { retry_at }, r#"{"reason":"circuit_open","retry_in_ms":1501}"#),
            (
                Stop::CircuitOpen { retry_at: Instant::EPOCH },
                r#"{"reason":"circuit_open","retry_in_ms":0}"#,
            ),
            (Stop::CircuitOpen { retry_at: Instant::MAX }, r#"{"reason":"circuit_open"}"#),
            (Stop::CostTooHigh { burst: 20 }, r#"{"reason":"cost_too_high","burst":20}"#),
            (Stop::Deadline, r#"{"reason":"deadline"}"#),
            (Stop::HintTooLong { hint }, r#"{"reason":"hint_too_long","hint_ms":3600000}"#),
            (Stop::HintTooLong { hint: Duration::MAX }, r#"{"reason":"hint_too_long"}"#),
            (Stop::Nested, r#"{"reason":"nested"}"#),
            (Stop::NotIdempotent, r#"{"reason":"not_idempotent"}"#),
            (Stop::Permanent, r#"{"reason":"permanent"}"#),
            (Stop::QueueFull, r#"{"reason":"queue_full"}"#),
            (Stop::Quota, r#"{"reason":"quota"}"#),
        ] {
            assert_eq!(json(stop), expected);
        }
    }
}
