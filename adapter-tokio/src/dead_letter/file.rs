//! Dead letters in a file that survives a crash.

use core::error::Error;
use core::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::Mutex;
use tokio::task::{JoinError, spawn_blocking};

use super::record::encode;
use super::{DeadLetter, DeadLetterSink};

/// A file of dead letters, each a line of JSON, which survives a crash of the process or the
/// machine.
///
/// Each record is appended by one `write` and forced to the disk (`fdatasync`) before the result of
/// its job is had, on the pool for blocking work. That takes some milliseconds and bounds a batch
/// to some hundred dead letters a second: many more of them are a failed batch, not dead letters.
///
/// Any number of handles and processes may append to one file, on a file system that honours
/// `O_APPEND` (NFS does not). A line that a crash has left torn stays torn: the next record starts
/// on a line of its own, and [`read`](super::read()) says which line it was.
///
/// On each line:
/// - `v`: 1;
/// - `at`: when it was written (RFC 3339, UTC, milliseconds);
/// - `job`: the job, as serde writes it;
/// - `stop`: `reason` in snake case, and `retry_in_ms` for `circuit_open`, `hint_ms` for
///   `hint_too_long`, each rounded up and absent if endless, `burst` for `cost_too_high`;
/// - `attempts`;
/// - `elapsed_ms`: rounded down;
/// - `retry_after_ms`: rounded up, null if not known or endless;
/// - `error`: `message` and `sources`, null if no attempt returned one.
///
/// A job is written as it is: let serde skip what is secret.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use core::num::NonZeroUsize;
/// use holdoff_tokio::batch::{Batch, JobResult};
/// use holdoff_tokio::dead_letter::{DeadLetterFile, read};
/// use holdoff_tokio::{Failure, Policy, Prepared};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("dead.jsonl");
/// let file = DeadLetterFile::open(&path).await?;
/// let mut results = Batch::new(["7", "seven"], NonZeroUsize::MIN)
///     .with_dead_letters(file)
///     .run_when(
///         |_| Prepared::new(&Policy::BATCH),
///         |_: &core::num::ParseIntError| Failure::permanent(),
///         async |job, _| job.parse::<u32>(),
///     );
/// while let Some(result) = results.next().await {
///     if let JobResult::Undelivered { letter, error } = result {
///         eprintln!("{error}: {}: {letter}", letter.job); // On no disk: say so.
///     }
/// }
///
/// let (records, _) = read::<String>(&path).await?;
/// assert_eq!((&*records[0].job, &*records[0].stop.reason), ("seven", "permanent"));
/// assert_eq!(records[0].error.as_ref().unwrap().message, "invalid digit found in string");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DeadLetterFile {
    file: Arc<Mutex<File>>,
}

impl DeadLetterFile {
    /// The file at `path`, which is created if there is none. What is in it stays.
    ///
    /// # Errors
    /// Those of opening it for reading and appending, and on Unix of forcing the directory's new
    /// entry to the disk.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropping the future may leave an empty file behind.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let opened = spawn_blocking(move || {
            // Reading is for what the last line ends with.
            let file = File::options().read(true).append(true).create(true).open(&path)?;
            sync_directory_of(&path)?;
            Ok(Self { file: Arc::new(Mutex::new(file)) })
        });
        opened.await.unwrap_or_else(|error| Err(io::Error::other(stopped(error))))
    }
}

impl<J: Serialize, E: Error> DeadLetterSink<J, E> for DeadLetterFile {
    type Permit = ();
    /// The letter, which is on disk.
    type Receipt = DeadLetter<J, E>;
    type Error = FileError;

    /// Writes the record. Dropped while it waits for other records to be written, it writes
    /// nothing; after that the record is written all the same.
    async fn reserve(&self, letter: &DeadLetter<J, E>) -> Result<(), FileError> {
        let record = encode(letter).map_err(FileError::Encode)?;
        let mut file = Arc::clone(&self.file).lock_owned().await;
        let appended = spawn_blocking(move || append(&mut file, &record));
        appended.await.unwrap_or_else(|error| Err(stopped(error)))
    }

    fn hand_over(&self, (): (), letter: DeadLetter<J, E>) -> DeadLetter<J, E> {
        letter
    }
}

/// Why a letter is not in the file.
///
/// ```
/// use core::error::Error;
/// use holdoff_tokio::dead_letter::FileError;
/// use std::io::{self, ErrorKind};
///
/// let full = FileError::Write(io::Error::from(ErrorKind::StorageFull));
/// assert_eq!(full.to_string(), "cannot write the dead letter");
/// assert_eq!(full.source().unwrap().to_string(), "no storage space");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// serde cannot write the job as JSON. Nothing was written.
    Encode(serde_json::Error),
    /// The runtime is shutting down. Nothing was written.
    Shutdown,
    /// The record was written, but may not be on the disk: it may be in the file or not.
    Sync(io::Error),
    /// The record was not written, or only the beginning of it, which is a torn line.
    Write(io::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encode(_) => "cannot write the job as JSON",
            Self::Shutdown => "the runtime is shutting down",
            Self::Sync(_) => "cannot force the dead letter to the disk",
            Self::Write(_) => "cannot write the dead letter",
        })
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Encode(error) => Some(error),
            Self::Shutdown => None,
            Self::Sync(error) | Self::Write(error) => Some(error),
        }
    }
}

/// Appends `record`, without its leading line feed unless it is needed.
fn append(file: &mut File, record: &[u8]) -> Result<(), FileError> {
    // From the look at the end to the write no other process of ours is to write; the lock goes
    // with a process that crashes.
    let is_locked = loop {
        match file.lock() {
            Ok(()) => break true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Where there are no locks it is as good as it can be.
            Err(error) if error.kind() == ErrorKind::Unsupported => break false,
            Err(error) => return Err(FileError::Write(error)),
        }
    };
    let appended = append_alone(file, record);
    if is_locked {
        // What is written is written; the lock goes with the file at the latest.
        let _ = file.unlock();
    }
    appended
}

fn append_alone(file: &mut File, record: &[u8]) -> Result<(), FileError> {
    // Each time, for another process may have crashed in the meantime.
    let from = if ends_within_a_line(file).map_err(FileError::Write)? { 0 } else { 1 };
    let record = record.get(from..).unwrap_or_default();
    let written = loop {
        match file.write(record) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            written => break written.map_err(FileError::Write)?,
        }
    };
    if written < record.len() {
        // A second write for the rest could land behind a record of another process.
        let error = io::Error::new(ErrorKind::WriteZero, "only the beginning could be written");
        return Err(FileError::Write(error));
    }
    file.sync_data().map_err(FileError::Sync)
}

/// Whether the file ends in the middle of a line.
fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [b'\n'];
    file.read_exact(&mut last)?;
    Ok(last != [b'\n'])
}

/// Of a new file the name, too, must be on the disk.
#[cfg(unix)]
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Other systems cannot open a directory, and do so by themselves.
#[cfg(not(unix))]
const fn sync_directory_of(_: &Path) -> io::Result<()> {
    Ok(())
}

fn stopped(error: JoinError) -> FileError {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => FileError::Shutdown,
    }
}
