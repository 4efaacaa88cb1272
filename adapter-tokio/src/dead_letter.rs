//! Jobs given up, and where they go.
//!
//! | sink | [`Dead`] carries | if it fails |
//! |---|---|---|
//! | [`InResults`], the default | the letter | it cannot |
//! | [`mpsc::Sender`] of letters | nothing: the letter is in the channel | the receiver is gone |
//! | `DeadLetterFile` (`dead-letters`) | the letter, which is on disk too | its `FileError` |
//! | yours | what you say | what you say |
//!
//! Whatever fails, no letter is lost: it comes back as [`Undelivered`], with the error.
//!
//! [`Dead`]: crate::batch::JobResult::Dead
//! [`Undelivered`]: crate::batch::JobResult::Undelivered

use core::convert::Infallible;
use core::error::Error;
use core::fmt;
use core::future::Future;
use core::time::Duration;

use holdoff::Stop;
use holdoff::drive::GaveUp;
use tokio::sync::mpsc::{self, OwnedPermit, error::SendError};

#[cfg(feature = "dead-letters")]
mod file;
#[cfg(feature = "dead-letters")]
mod reader;
#[cfg(feature = "dead-letters")]
mod record;

#[cfg(feature = "dead-letters")]
pub use file::{DeadLetterFile, FileError};
#[cfg(feature = "dead-letters")]
pub use reader::{BadLine, BadLineKind, ReadError, Records, read};
#[cfg(feature = "dead-letters")]
pub use record::{Record, RecordedError, RecordedStop};

/// A job that was given up, and everything known about it. As an error, its source is the last
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter<J, E> {
    /// The job.
    pub job: J,
    /// Why there was no further attempt.
    pub stop: Stop,
    /// Attempts made.
    pub attempts: u32,
    /// The time from the start of its call to the stop.
    pub elapsed: Duration,
    /// How long from the stop until another attempt could make sense, where that is known.
    pub retry_after: Option<Duration>,
    /// The error of the last attempt that returned one, untouched. `None` if there was no attempt
    /// or each one was cut off by its timeout.
    pub last: Option<E>,
}

impl<J, E> DeadLetter<J, E> {
    /// The letter of a `job`, given how its call ended.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, Policy, dead_letter::DeadLetter, retry};
    ///
    /// let poison = async || Err::<(), _>(Failure::permanent());
    /// let gave_up = retry(&Policy::BATCH, poison).await.unwrap_err();
    /// let letter = DeadLetter::new("poison", gave_up);
    /// assert_eq!(letter.to_string(), "gave up after 1 attempt in 0ns: the failure is permanent");
    /// # }
    /// ```
    pub fn new(job: J, gave_up: GaveUp<E>) -> Self {
        let GaveUp { last, stop, attempts, elapsed, retry_after, .. } = gave_up;
        Self { job, stop, attempts, elapsed, retry_after, last }
    }
}

/// As [`GaveUp`]; the job is not named.
impl<J, E> fmt::Display for DeadLetter<J, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        let (attempts, elapsed) = (self.attempts, self.elapsed);
        write!(f, "gave up after {attempts} attempt{plural} in {elapsed:?}: {}", self.stop)?;
        match self.retry_after {
            Some(Duration::MAX) | None => Ok(()),
            Some(delay) => write!(f, "; worth another try in {delay:?}"),
        }
    }
}

impl<J: fmt::Debug, E: Error + 'static> Error for DeadLetter<J, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|last| last as _)
    }
}

/// Where dead letters go.
///
/// Two steps, so that a letter is never on its way: while the first one waits the letter lies
/// with the batch, and the second neither waits nor fails. A sink that keeps a copy makes it in
/// the first; one that keeps the letter itself makes room in the first.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use core::{convert::Infallible, num::NonZeroUsize};
/// use holdoff_tokio::batch::Batch;
/// use holdoff_tokio::dead_letter::{DeadLetter, DeadLetterSink};
/// use holdoff_tokio::{Failure, Policy, Prepared};
///
/// /// Prints them.
/// struct Printer;
///
/// impl<E> DeadLetterSink<&str, E> for Printer {
///     type Permit = ();
///     type Receipt = String;
///     type Error = Infallible;
///
///     async fn reserve(&self, _: &DeadLetter<&str, E>) -> Result<(), Infallible> {
///         Ok(())
///     }
///
///     fn hand_over(&self, (): (), letter: DeadLetter<&str, E>) -> String {
///         format!("{}: {letter}", letter.job)
///     }
/// }
///
/// let mut results = Batch::new(["a"], NonZeroUsize::MIN).with_dead_letters(Printer).run(
///     |_| Prepared::new(&Policy::BATCH),
///     async |_, _| Err::<(), _>(Failure::permanent()),
/// );
/// let printed = results.next().await.unwrap().into_dead().unwrap();
/// assert_eq!(printed, "a: gave up after 1 attempt in 0ns: the failure is permanent");
/// # }
/// ```
pub trait DeadLetterSink<J, E> {
    /// The right to hand one letter over.
    type Permit;
    /// What is given in return for a letter.
    type Receipt;
    /// Why a letter is not taken.
    type Error;

    /// Waits until `letter` can be handed over, or is kept.
    ///
    /// # Errors
    /// Why it cannot. The letter comes back as [`Undelivered`].
    ///
    /// # Cancel safety
    /// Dropping the future must leave no permit behind. The letter is not handed over.
    ///
    /// [`Undelivered`]: crate::batch::JobResult::Undelivered
    fn reserve(
        &self,
        letter: &DeadLetter<J, E>,
    ) -> impl Future<Output = Result<Self::Permit, Self::Error>>;

    /// Takes the letter that the permit is for.
    fn hand_over(&self, permit: Self::Permit, letter: DeadLetter<J, E>) -> Self::Receipt;
}

/// A reference to a sink is one, too.
impl<J, E, S: DeadLetterSink<J, E>> DeadLetterSink<J, E> for &S {
    type Permit = S::Permit;
    type Receipt = S::Receipt;
    type Error = S::Error;

    fn reserve(
        &self,
        letter: &DeadLetter<J, E>,
    ) -> impl Future<Output = Result<S::Permit, S::Error>> {
        S::reserve(self, letter)
    }

    fn hand_over(&self, permit: S::Permit, letter: DeadLetter<J, E>) -> S::Receipt {
        S::hand_over(self, permit, letter)
    }
}

/// No sink: letters come with the results.
#[derive(Clone, Copy, Debug, Default)]
pub struct InResults;

impl<J, E> DeadLetterSink<J, E> for InResults {
    type Permit = ();
    type Receipt = DeadLetter<J, E>;
    type Error = Infallible;

    async fn reserve(&self, _: &DeadLetter<J, E>) -> Result<(), Infallible> {
        Ok(())
    }

    fn hand_over(&self, (): (), letter: DeadLetter<J, E>) -> DeadLetter<J, E> {
        letter
    }
}

/// Letters go into the channel, and wait for a place in it: a receiver that does not keep up slows
/// the batch down. Fails if the receiver is gone.
///
/// A letter in the channel is its receiver's, which should `close` it and drain it before it is
/// dropped. Do not wait in one task for the results before the channel is drained: with more dead
/// letters than places neither would end.
impl<J, E> DeadLetterSink<J, E> for mpsc::Sender<DeadLetter<J, E>> {
    type Permit = OwnedPermit<DeadLetter<J, E>>;
    type Receipt = ();
    type Error = SendError<()>;

    async fn reserve(&self, _: &DeadLetter<J, E>) -> Result<Self::Permit, SendError<()>> {
        self.clone().reserve_owned().await
    }

    fn hand_over(&self, permit: Self::Permit, letter: DeadLetter<J, E>) {
        permit.send(letter);
    }
}
