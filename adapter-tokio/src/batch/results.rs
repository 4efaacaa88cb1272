//! The stream of results.

use core::convert::Infallible;
use core::fmt;
use core::future::{Future, Pending};
use core::num::NonZeroUsize;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, Stream, StreamExt};
use tokio::sync::watch;

use super::leftovers::Leftovers;
use super::progress::{Progress, ProgressSnapshot};
use crate::dead_letter::DeadLetter;

/// What became of one job.
///
/// ```
/// use holdoff_tokio::Failure;
/// use holdoff_tokio::batch::JobResult;
///
/// let done: JobResult<&str, u32, Failure> = JobResult::Done { job: "a", value: 7 };
/// assert_eq!(done.clone().into_dead(), None);
/// assert_eq!(done.into_value(), Some(7));
/// ```
///
/// `R` is what the sink gives in return for a letter: with [`InResults`] and a file the letter,
/// with a channel nothing. `D` is why the sink did not take one.
///
/// [`InResults`]: crate::dead_letter::InResults
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobResult<J, T, E, R = DeadLetter<J, E>, D = Infallible> {
    /// It was given up, and the sink has its letter.
    Dead(R),
    /// It succeeded.
    Done {
        /// The job.
        job: J,
        /// What the operation returned.
        value: T,
    },
    /// It was given up, and the sink did not take its letter.
    Undelivered {
        /// The letter.
        letter: DeadLetter<J, E>,
        /// Why it was not taken.
        error: D,
    },
}

impl<J, T, E, R, D> JobResult<J, T, E, R, D> {
    /// What the operation returned, if it succeeded. Drops everything else.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Done { value, .. } => Some(value),
            Self::Dead(_) | Self::Undelivered { .. } => None,
        }
    }

    /// What the sink gave in return for the letter, if the job was given up and the sink has it.
    /// Drops everything else.
    #[must_use]
    pub fn into_dead(self) -> Option<R> {
        match self {
            Self::Dead(receipt) => Some(receipt),
            Self::Done { .. } | Self::Undelivered { .. } => None,
        }
    }
}

/// What a batch knows of its jobs.
#[derive(Debug)]
pub(super) struct Ledger<J, E> {
    pub(super) progress: watch::Sender<ProgressSnapshot>,
    pub(super) leftovers: Leftovers<J, E>,
}

/// The results of a [`Batch`](super::Batch), in the order in which they are had.
///
/// A stream, which also has a [`next`](Self::next) of its own. The jobs run inside of it, on the
/// task that polls it: whoever does not ask for the next result keeps all of them waiting. To do
/// long work on the results, spawn it, or run the batch on a task of its own and send them over a
/// channel. `W` and `F` are what all jobs share and what runs one, `E` is the error, and `X` what
/// stops it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use core::{num::NonZeroUsize, time::Duration};
/// use holdoff_tokio::batch::Batch;
/// use holdoff_tokio::{Failure, Policy, Prepared};
/// use tokio::time::sleep;
///
/// let mut results = Batch::new([3, 1, 2], NonZeroUsize::new(3).unwrap()).run(
///     |_| Prepared::new(&Policy::BATCH),
///     async |&job, _| {
///         sleep(Duration::from_secs(job)).await;
///         Ok::<_, Failure>(job)
///     },
/// );
/// let mut order = Vec::new();
/// while let Some(result) = results.next().await {
///     order.extend(result.into_value());
/// }
/// assert_eq!(order, [1, 2, 3]);
/// # }
/// ```
///
/// # Cancel safety
/// Dropping it ends what is in flight at once, as dropping [`Prepared::run`] does, and leaves the
/// jobs, or the letters of those given up already, in its [`Leftovers`]. What it has returned, and
/// what the sink has, is not touched.
///
/// [`Prepared::run`]: crate::Prepared::run
#[must_use = "no job is started until its results are asked for"]
pub struct Results<Jobs: Stream, W, F, E, X = Pending<()>> {
    jobs: Jobs,
    in_flight: FuturesUnordered<F>,
    concurrency: NonZeroUsize,
    /// `None` once no more jobs are taken.
    intake: Option<Intake<Jobs::Item, W, F, E, X>>,
    progress: watch::Receiver<ProgressSnapshot>,
    leftovers: Leftovers<Jobs::Item, E>,
}

/// What starts jobs, until it is stopped.
struct Intake<J, W, F, E, X> {
    stopped: Pin<Box<X>>,
    start: Start<W, J, E, F>,
    work: Arc<W>,
    ledger: Arc<Ledger<J, E>>,
}

/// Makes the future of one job.
type Start<W, J, E, F> = fn(Arc<W>, Arc<Ledger<J, E>>, J) -> F;

impl<Jobs: Stream, W, F, E, X> Results<Jobs, W, F, E, X> {
    pub(super) fn new(
        jobs: Jobs,
        concurrency: NonZeroUsize,
        stopped: X,
        work: W,
        start: Start<W, Jobs::Item, E, F>,
    ) -> Self {
        let (sender, progress) = watch::channel(ProgressSnapshot::default());
        let leftovers = Leftovers::new();
        let ledger = Arc::new(Ledger { progress: sender, leftovers: leftovers.clone() });
        let (stopped, work) = (Box::pin(stopped), Arc::new(work));
        let intake = Some(Intake { stopped, start, work, ledger });
        let in_flight = FuturesUnordered::new();
        Self { jobs, in_flight, concurrency, intake, progress, leftovers }
    }

    /// A view of how far it is, for other tasks. See [`Progress`] for an example.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::new(self.progress.clone())
    }

    /// Where the jobs are found that are in flight when it is dropped. See [`Leftovers`] for an
    /// example.
    #[must_use]
    pub fn leftovers(&self) -> Leftovers<Jobs::Item, E> {
        self.leftovers.clone()
    }

    /// Takes no more jobs; the results of those in flight still come.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use core::num::NonZeroUsize;
    /// use holdoff_tokio::batch::Batch;
    /// use holdoff_tokio::{Failure, Policy, Prepared};
    ///
    /// let mut results = Batch::new(1.., NonZeroUsize::MIN)
    ///     .run(|_| Prepared::new(&Policy::BATCH), async |&job, _| Ok::<i32, Failure>(job));
    /// let mut sum = 0;
    /// while let Some(result) = results.next().await {
    ///     sum += result.into_value().unwrap_or(0);
    ///     if sum >= 10 {
    ///         results.stop();
    ///     }
    /// }
    /// assert_eq!(sum, 1 + 2 + 3 + 4);
    /// # }
    /// ```
    pub fn stop(&mut self) {
        self.intake = None;
    }

    /// The jobs that were never started. Those in flight are dropped, as with the whole. See
    /// [`Batch::stop_when`](super::Batch::stop_when) for an example.
    pub fn into_unstarted(self) -> Jobs {
        self.jobs
    }
}

impl<Jobs, W, F, E, X> Results<Jobs, W, F, E, X>
where
    Jobs: Stream + Unpin,
    F: Future,
    X: Future<Output = ()>,
{
    /// The next result; `None` once no more jobs are taken and all results were had.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; the jobs stand still until it is called again.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once a job has to wait, and when an operation
    /// panics; the others can go on.
    pub async fn next(&mut self) -> Option<F::Output> {
        StreamExt::next(self).await
    }

    /// Starts jobs while there is room for them.
    fn start(&mut self, context: &mut Context<'_>) {
        while let Some(intake) = &mut self.intake {
            if intake.stopped.as_mut().poll(context).is_ready() {
                return self.stop();
            }
            if self.in_flight.len() >= self.concurrency.get() {
                return;
            }
            match self.jobs.poll_next_unpin(context) {
                Poll::Pending => return,
                Poll::Ready(None) => return self.stop(),
                Poll::Ready(Some(job)) => {
                    intake.ledger.started();
                    let (work, ledger) = (Arc::clone(&intake.work), Arc::clone(&intake.ledger));
                    self.in_flight.push((intake.start)(work, ledger, job));
                }
            }
        }
    }
}

impl<Jobs, W, F, E, X> Stream for Results<Jobs, W, F, E, X>
where
    Jobs: Stream + Unpin,
    F: Future,
    X: Future<Output = ()>,
{
    type Item = F::Output;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        self.start(context);
        match ready!(self.in_flight.poll_next_unpin(context)) {
            None if self.intake.is_some() => Poll::Pending,
            result => Poll::Ready(result),
        }
    }
}

// Nothing in it is pinned but what is boxed.
impl<Jobs: Stream + Unpin, W, F, E, X> Unpin for Results<Jobs, W, F, E, X> {}

impl<Jobs: Stream, W, F, E, X> fmt::Debug for Results<Jobs, W, F, E, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results")
            .field("concurrency", &self.concurrency)
            .field("takes_jobs", &self.intake.is_some())
            .field("progress", &*self.progress.borrow())
            .finish_non_exhaustive()
    }
}
