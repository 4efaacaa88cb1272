//! Many jobs, so many at once, results in the order in which they are had.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use core::num::NonZeroUsize;
//! use holdoff_tokio::batch::{Batch, JobResult};
//! use holdoff_tokio::{Failure, Policy, Upstream};
//!
//! static PROVIDER: Upstream = Upstream::new(Policy::BATCH);
//! const AT_ONCE: NonZeroUsize = NonZeroUsize::new(8).unwrap();
//!
//! // What the provider does with a job; `attempt` has its number and the time it may take.
//! async fn double(job: &u32) -> Result<u32, Failure> {
//!     if *job == 13 { Err(Failure::permanent()) } else { Ok(2 * job) }
//! }
//!
//! let mut results = Batch::new(0..20, AT_ONCE)
//!     .run(|_| PROVIDER.prepare(), async |job, _attempt| double(job).await);
//! let mut sum = 0;
//! while let Some(result) = results.next().await {
//!     match result {
//!         JobResult::Done { value, .. } => sum += value,
//!         JobResult::Dead(letter) => assert_eq!((letter.job, letter.attempts), (13, 1)),
//!         JobResult::Undelivered { error, .. } => match error {}, // A sink's.
//!     }
//! }
//! assert_eq!(sum, 2 * (190 - 13));
//! # }
//! ```
//!
//! A job that is given up becomes a [dead letter](crate::dead_letter): it comes with the results,
//! or goes into a channel or a file.
//!
//! # Stopping
//! | wanted | how |
//! |---|---|
//! | take no new jobs, finish those in flight | [`Batch::stop_when`] or [`Results::stop`] |
//! | the jobs never started | [`Results::into_unstarted`] |
//! | end those in flight, each with what is known of it | [`Prepared::cancel_when`] |
//! | end everything at once | drop [`Results`]; [`Leftovers`] has what was in flight |
//!
//! [`Prepared::cancel_when`]: crate::Prepared::cancel_when

mod job;
mod leftovers;
mod progress;
mod results;

use core::future::{Future, Pending, pending};
use core::num::NonZeroUsize;

use futures_util::stream::{self, Iter, Stream};
use holdoff::{Attempt, Classify, Failure};

use crate::dead_letter::{DeadLetterSink, InResults};
use crate::prepared::Prepared;

pub use leftovers::{Leftover, Leftovers};
pub use progress::{Progress, ProgressSnapshot};
pub use results::{JobResult, Results};

/// Jobs about to be run: how many at once, until when, and where those given up go.
///
/// See the [module](self) for an example.
#[derive(Debug)]
#[must_use = "no job is started until it is run and its results are asked for"]
pub struct Batch<Jobs, S = InResults, X = Pending<()>> {
    jobs: Jobs,
    concurrency: NonZeroUsize,
    sink: S,
    stopped: X,
}

impl<I: Iterator> Batch<Iter<I>> {
    /// `jobs`, at most `concurrency` of them in flight at once. Each is taken when there is room
    /// for it, not before, so the iterator may be endless.
    pub fn new(jobs: impl IntoIterator<IntoIter = I>, concurrency: NonZeroUsize) -> Self {
        Self::from_stream(stream::iter(jobs), concurrency)
    }
}

impl<Jobs: Stream + Unpin> Batch<Jobs> {
    /// [`new`](Batch::new) for jobs that come over time: a channel, a listing, lines of a file.
    /// Pin it first (`Box::pin`) if it is not `Unpin`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use core::num::NonZeroUsize;
    /// use holdoff_tokio::batch::Batch;
    /// use holdoff_tokio::{Failure, Policy, Prepared};
    ///
    /// let jobs = Box::pin(futures_util::stream::unfold(3, async |left| {
    ///     tokio::time::sleep(core::time::Duration::from_secs(1)).await;
    ///     (left > 0).then(|| (left, left - 1))
    /// }));
    /// let mut results = Batch::from_stream(jobs, NonZeroUsize::MIN)
    ///     .run(|_| Prepared::new(&Policy::BATCH), async |job, _| Ok::<i32, Failure>(-job));
    /// let mut values = Vec::new();
    /// while let Some(result) = results.next().await {
    ///     values.extend(result.into_value());
    /// }
    /// assert_eq!(values, [-3, -2, -1]);
    /// # }
    /// ```
    pub fn from_stream(jobs: Jobs, concurrency: NonZeroUsize) -> Self {
        Self { jobs, concurrency, sink: InResults, stopped: pending() }
    }
}

impl<Jobs: Stream + Unpin, S, X: Future<Output = ()>> Batch<Jobs, S, X> {
    /// The same batch, which takes no new job once `stopped` completes, and ends when those in
    /// flight are done. For a [`CancellationToken`], `token.cancelled_owned()`.
    ///
    /// It is looked at whenever the results are polled, before a job is taken.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use core::num::NonZeroUsize;
    /// use futures_util::StreamExt;
    /// use holdoff_tokio::batch::Batch;
    /// use holdoff_tokio::{Failure, Policy, Prepared};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// let mut results = Batch::new(["a", "b", "c"], NonZeroUsize::MIN)
    ///     .stop_when(token.cancelled())
    ///     .run(|_| Prepared::new(&Policy::BATCH), async |_, _| Ok::<(), Failure>(()));
    /// assert!(results.next().await.is_some());
    /// token.cancel();
    /// assert!(results.next().await.is_none());
    /// assert_eq!(results.into_unstarted().collect::<Vec<_>>().await, ["b", "c"]);
    /// # }
    /// ```
    ///
    /// [`CancellationToken`]: https://docs.rs/tokio-util/0.7/tokio_util/sync/
    pub fn stop_when<Y: Future<Output = ()>>(self, stopped: Y) -> Batch<Jobs, S, Y> {
        let Self { jobs, concurrency, sink, .. } = self;
        Batch { jobs, concurrency, sink, stopped }
    }

    /// The same batch, whose dead letters go to `sink`. If not set, they come with the results.
    ///
    /// A job keeps its place among those in flight until the sink has its letter: a sink that is
    /// slow or full slows the batch down.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use core::num::NonZeroUsize;
    /// use holdoff_tokio::batch::Batch;
    /// use holdoff_tokio::{Failure, Policy, Prepared};
    /// use tokio::sync::mpsc;
    ///
    /// let (sender, mut dead) = mpsc::channel(16);
    /// let mut results = Batch::new(["poison"], NonZeroUsize::MIN)
    ///     .with_dead_letters(sender)
    ///     .run(|_| Prepared::new(&Policy::BATCH), async |_, _| {
    ///         Err::<(), _>(Failure::permanent())
    ///     });
    /// while results.next().await.is_some() {}
    /// assert_eq!(dead.recv().await.unwrap().job, "poison");
    /// # }
    /// ```
    pub fn with_dead_letters<Z>(self, sink: Z) -> Batch<Jobs, Z, X> {
        let Self { jobs, concurrency, stopped, .. } = self;
        Batch { jobs, concurrency, sink, stopped }
    }

    /// Runs each job through the call that `prepare` sets up for it, `operation` being what is done
    /// in each attempt.
    ///
    /// Nothing happens until the [`Results`] are polled. They are `Send` if jobs, closures, what
    /// they return, and the sink are; the closures may borrow, from the job too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use core::num::NonZeroUsize;
    /// use holdoff_tokio::batch::Batch;
    /// use holdoff_tokio::{Failure, Policy, Quota, Rate, Upstream, valid};
    ///
    /// // Tokens of a language model: each job costs what it is long.
    /// static MODEL: Upstream = Upstream::new(Policy::LLM)
    ///     .with_limiter(valid!(Quota::new(Rate::per_minute(600), 100)));
    ///
    /// let mut results = Batch::new(["a prompt", "another prompt"], NonZeroUsize::MIN).run(
    ///     |prompt| MODEL.prepare().with_cost(prompt.len() as u32),
    ///     async |prompt, _| Ok::<_, Failure>(prompt.to_uppercase()),
    /// );
    /// while results.next().await.is_some() {}
    /// assert_eq!(MODEL.limiter().unwrap().available(), 100 - 8 - 14);
    /// # }
    /// ```
    pub fn run<'a, const BUCKETS: usize, T, E, P, O, Y>(
        self,
        prepare: P,
        operation: O,
    ) -> Results<Jobs, impl Sized, impl Future<Output = ResultOf<Jobs, T, E, S>>, E, X>
    where
        E: Classify,
        S: DeadLetterSink<Jobs::Item, E>,
        P: Fn(&Jobs::Item) -> Prepared<'a, BUCKETS, Y>,
        Y: Future<Output = ()>,
        O: AsyncFn(&Jobs::Item, Attempt) -> Result<T, E>,
    {
        self.run_when(prepare, E::classify, operation)
    }

    /// [`run`](Self::run), `classify` saying what the errors mean: for types that are not yours.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use core::num::NonZeroUsize;
    /// use holdoff_tokio::batch::Batch;
    /// use holdoff_tokio::{Failure, Policy, Prepared, Stop};
    ///
    /// let mut results = Batch::new(["7", "seven"], NonZeroUsize::MIN).run_when(
    ///     |_| Prepared::new(&Policy::BATCH),
    ///     |_: &core::num::ParseIntError| Failure::permanent(),
    ///     async |job, _| job.parse::<u32>(),
    /// );
    /// assert_eq!(results.next().await.unwrap().into_value(), Some(7));
    /// assert_eq!(results.next().await.unwrap().into_dead().unwrap().stop, Stop::Permanent);
    /// # }
    /// ```
    pub fn run_when<'a, const BUCKETS: usize, T, E, P, K, O, Y>(
        self,
        prepare: P,
        classify: K,
        operation: O,
    ) -> Results<Jobs, impl Sized, impl Future<Output = ResultOf<Jobs, T, E, S>>, E, X>
    where
        S: DeadLetterSink<Jobs::Item, E>,
        P: Fn(&Jobs::Item) -> Prepared<'a, BUCKETS, Y>,
        Y: Future<Output = ()>,
        K: Fn(&E) -> Failure,
        O: AsyncFn(&Jobs::Item, Attempt) -> Result<T, E>,
    {
        let Self { jobs, concurrency, sink, stopped } = self;
        let work = job::Work { prepare, classify, operation, sink };
        Results::new(jobs, concurrency, stopped, work, job::run)
    }
}

/// What a batch of `Jobs` gives, `S` being its sink.
type ResultOf<Jobs, T, E, S> = JobResult<
    <Jobs as Stream>::Item,
    T,
    E,
    <S as DeadLetterSink<<Jobs as Stream>::Item, E>>::Receipt,
    <S as DeadLetterSink<<Jobs as Stream>::Item, E>>::Error,
>;
