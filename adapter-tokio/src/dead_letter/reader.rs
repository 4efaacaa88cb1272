//! The jobs back out of a file.

use core::error::Error;
use core::fmt;
use core::marker::PhantomData;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::panic::resume_unwind;
use std::path::Path;

use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use super::record::{Record, decode};

/// What the file at `path` holds: its records in order, and the lines that are none. Reads it on
/// the pool for blocking work; [`Records`] to read it piece by piece.
///
/// To run the jobs again, first move the file away, so that letters of the second try go into
/// another, and delete it when its jobs are done.
///
/// # Errors
/// Those of opening and reading it. Lines that are not records are no error.
///
/// # Cancel safety
/// Dropping the future changes nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use core::num::NonZeroUsize;
/// use holdoff_tokio::batch::Batch;
/// use holdoff_tokio::dead_letter::read;
/// use holdoff_tokio::{Failure, Policy, Prepared};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("dead.jsonl");
/// let torn = r#"{"v":1,"at":"2025-01-31T23:59:59.999Z","job":7,"sto"#;
/// let line = concat!(
///     r#"{"v":1,"at":"2025-01-31T23:59:59.999Z","job":8,"stop":{"reason":"attempts"},"#,
///     r#""attempts":4,"elapsed_ms":1250,"retry_after_ms":null,"error":null}"#,
/// );
/// std::fs::write(&path, format!("{torn}\n{line}\n"))?;
/// let (records, bad_lines) = read::<u32>(&path).await?;
/// assert_eq!((bad_lines[0].number, bad_lines.len()), (1, 1)); // Torn by a crash.
///
/// let mut results = Batch::new(records.into_iter().map(|record| record.job), NonZeroUsize::MIN)
///     .run(|_| Prepared::new(&Policy::BATCH), async |&job, _| Ok::<_, Failure>(job + 1));
/// assert_eq!(results.next().await.unwrap().into_value(), Some(9));
/// # Ok(())
/// # }
/// ```
pub async fn read<J: DeserializeOwned + Send + 'static>(
    path: impl AsRef<Path>,
) -> io::Result<(Vec<Record<J>>, Vec<BadLine>)> {
    let path = path.as_ref().to_owned();
    let all = spawn_blocking(move || {
        let (mut records, mut bad_lines) = (Vec::new(), Vec::new());
        for record in Records::open(path)? {
            match record {
                Ok(record) => records.push(record),
                Err(ReadError::Line(line)) => bad_lines.push(line),
                Err(ReadError::Io(error)) => return Err(error),
            }
        }
        Ok((records, bad_lines))
    });
    match all.await {
        Ok(all) => all,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Err(io::Error::other(error)),
        },
    }
}

/// The records of a file, one by one, and what is found instead. Blocking.
///
/// Empty lines are passed over. Ends after an error of reading.
///
/// ```
/// use holdoff_tokio::dead_letter::{BadLineKind, ReadError, Records};
///
/// let file = concat!(
///     r#"{"v":1,"at":"2025-01-31T23:59:59.999Z","job":7,"sto"#,
///     "\n",
///     r#"{"v":1,"at":"2025-01-31T23:59:59.999Z","job":8,"stop":{"reason":"deadline"},"#,
///     r#""attempts":4,"elapsed_ms":1250,"retry_after_ms":500,"error":null}"#,
/// );
/// let mut records = Records::<_, u32>::new(file.as_bytes());
/// let Some(Err(ReadError::Line(torn))) = records.next() else { panic!() };
/// assert_eq!((torn.number, torn.kind), (1, BadLineKind::Torn));
/// let record = records.next().unwrap().unwrap();
/// assert_eq!((record.job, &*record.stop.reason), (8, "deadline"));
/// assert!(records.next().is_none());
/// ```
#[derive(Debug)]
pub struct Records<R, J> {
    reader: Option<R>,
    line: Vec<u8>,
    number: u64,
    job: PhantomData<fn() -> J>,
}

impl<J: DeserializeOwned> Records<BufReader<File>, J> {
    /// Those of the file at `path`.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self::new(BufReader::new(File::open(path)?)))
    }
}

impl<R: BufRead, J: DeserializeOwned> Records<R, J> {
    /// Those that `reader` gives.
    pub const fn new(reader: R) -> Self {
        Self { reader: Some(reader), line: Vec::new(), number: 0, job: PhantomData }
    }

    /// The next line that is not empty, without its line feed.
    fn line(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        loop {
            self.line.clear();
            if reader.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            self.number = self.number.saturating_add(1);
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(self.line.trim_ascii()));
            }
        }
    }
}

impl<R: BufRead, J: DeserializeOwned> Iterator for Records<R, J> {
    type Item = Result<Record<J>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let decoded = match self.line() {
            Ok(line) => line.map(decode),
            Err(error) => {
                self.reader = None;
                return Some(Err(ReadError::Io(error)));
            }
        };
        let number = self.number;
        decoded.map(|decoded| {
            decoded.map_err(|(kind, source)| ReadError::Line(BadLine { number, kind, source }))
        })
    }
}

/// What is found instead of a record. See [`Records`] for an example.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read; there will be no more.
    Io(io::Error),
    /// The line is not a record; the next one may be.
    Line(BadLine),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("cannot read dead letters"),
            Self::Line(line) => line.fmt(f),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Line(line) => line.source(),
        }
    }
}

/// A line that is not a record. As an error, its source says what is wrong with it.
#[derive(Debug)]
#[non_exhaustive]
pub struct BadLine {
    /// Its number in the file, from 1.
    pub number: u64,
    /// What it is instead.
    pub kind: BadLineKind,
    source: Box<dyn Error + Send + Sync>,
}

/// What a line is that is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BadLineKind {
    /// Something else than a record of a version this reader knows.
    Foreign,
    /// A record whose job is of another type.
    Job,
    /// The beginning of a record, cut off by a crash or a full disk. Its writer was never told that
    /// it was kept.
    Torn,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            BadLineKind::Foreign => "is not a dead letter",
            BadLineKind::Job => "is a dead letter of another kind of job",
            BadLineKind::Torn => "is torn",
        };
        write!(f, "line {} {what}", self.number)
    }
}

impl Error for BadLine {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
