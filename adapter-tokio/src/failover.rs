//! One call, several services that could serve it.

mod outcome;

use core::future::{Future, Pending, pending};
use core::pin::pin;
use core::time::Duration;

use holdoff::{Attempt, Classify, Clock, Failover, Failure, Instant, Observer, Safety, classified};

pub use self::outcome::{NoneServed, NotCalled, Served};
use crate::lines::Limit;
use crate::prepared::Prepared;
use crate::timer::TokioTimer;

/// A call about to be made to the first of `candidates` that will serve it, in order of preference;
/// `shared` remembers for all such calls who asked to be left alone, and until when.
///
/// The candidates are [`Upstream`](crate::Upstream)s, each with a policy and guards of its own, or
/// calls [`prepare`](crate::Upstream::prepare)d to them, each with settings of its own. Which
/// failures are handed on to the next one is said at [`Failover`]: those of a struggling service,
/// and never a permanent one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failover, Failure, Policy, Stop, Upstream, failover};
/// use std::time::Duration;
///
/// static BIG: Upstream = Upstream::new(Policy::LLM);
/// static SMALL: Upstream = Upstream::new(Policy::LLM);
/// static MODELS: Failover<2> = Failover::new();
///
/// async fn ask_big(prompt: &str) -> Result<String, Failure> {
///     Err(Failure::transient())
/// }
///
/// async fn ask_small(prompt: &str) -> Result<String, Failure> {
///     Ok(format!("short: {prompt}"))
/// }
///
/// let prompt = String::from("why?");
/// let prompt = prompt.as_str();
/// let served = failover(&MODELS, [&BIG, &SMALL])
///     .with_deadline(Duration::from_secs(20))
///     .run(|candidate, _attempt| async move {
///         match candidate {
///             0 => ask_big(prompt).await,
///             _ => ask_small(prompt).await,
///         }
///     })
///     .await
///     .unwrap();
/// assert_eq!((served.by, served.value.as_str()), (1, "short: why?"));
/// let (candidate, gave_up) = &served.failed[0];
/// assert_eq!(*candidate, 0);
/// assert!(matches!(gave_up.stop, Stop::Attempts | Stop::Deadline));
/// # }
/// ```
///
/// Candidates that cost or may do different things:
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// # use holdoff_tokio::{Failover, Failure, Policy, Upstream, failover};
/// # use core::num::NonZeroU32;
/// # static BIG: Upstream = Upstream::new(Policy::LLM);
/// # static SMALL: Upstream = Upstream::new(Policy::LLM);
/// # static MODELS: Failover<2> = Failover::new();
/// let big = BIG.prepare().with_cost(800).with_max_attempts(NonZeroU32::MIN);
/// let small = SMALL.prepare().with_cost(200);
/// let served = failover(&MODELS, [big, small]).run(async |_, _| Ok::<_, Failure>(7)).await;
/// assert_eq!(served.unwrap().value, 7);
/// # }
/// ```
///
/// With no candidate at all it does not compile.
///
/// ```compile_fail
/// # use holdoff_tokio::{Failover, Upstream, failover};
/// static NOBODY: Failover<0> = Failover::new();
/// let none: [&Upstream; 0] = [];
/// let call = failover(&NOBODY, none);
/// ```
pub fn failover<'a, const N: usize, const BUCKETS: usize>(
    shared: &'a Failover<N>,
    candidates: [impl Into<Prepared<'a, BUCKETS>>; N],
) -> PreparedFailover<'a, N, BUCKETS> {
    const { assert!(N > 0, "there must be a candidate to call") };
    let candidates = candidates.map(Into::into);
    PreparedFailover { shared, candidates, deadline: None, cancelled: pending() }
}

/// A call about to be made to the first candidate that will serve it; from [`failover`].
///
/// It starts, and its deadline begins, at the first poll of what [`run`](Self::run) returns. What
/// is set here is set for all candidates.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failover, Failure, Policy, Safety, Stop, Upstream, failover};
/// use std::time::Duration;
///
/// static BIG: Upstream = Upstream::new(Policy::LLM);
/// static SMALL: Upstream = Upstream::new(Policy::LLM);
/// static MODELS: Failover<2> = Failover::new();
///
/// // It may have been carried out: neither the same candidate nor another one is to do it again.
/// let none = failover(&MODELS, [&BIG, &SMALL])
///     .with_safety(Safety::NonIdempotent)
///     .with_deadline(Duration::from_secs(20))
///     .run(async |_, _| Err::<(), _>(Failure::transient()))
///     .await
///     .unwrap_err();
/// assert_eq!((none.stop(), none.failed.len()), (Some(Stop::NotIdempotent), 1));
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is called until it is run"]
pub struct PreparedFailover<'a, const N: usize, const BUCKETS: usize = 0, X = Pending<()>> {
    shared: &'a Failover<N>,
    candidates: [Prepared<'a, BUCKETS>; N],
    deadline: Option<Duration>,
    cancelled: X,
}

impl<'a, const N: usize, const BUCKETS: usize> PreparedFailover<'a, N, BUCKETS> {
    /// The same call, which stops with [`Stop::Cancelled`](crate::Stop::Cancelled) in the very poll
    /// in which `cancelled` completes, whatever it waits for; nothing more is sent, to nobody.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failover, Failure, Policy, Stop, Upstream, failover};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// static MODEL: Upstream = Upstream::new(Policy::LLM);
    /// static MODELS: Failover<1> = Failover::new();
    ///
    /// let token = CancellationToken::new();
    /// token.cancel();
    /// let call = failover(&MODELS, [&MODEL]).cancel_when(token.cancelled());
    /// let none = call.run(async |_, _| Err::<(), _>(Failure::transient())).await.unwrap_err();
    /// assert_eq!(none.stop(), Some(Stop::Cancelled));
    /// # }
    /// ```
    pub const fn cancel_when<X: Future<Output = ()>>(
        self,
        cancelled: X,
    ) -> PreparedFailover<'a, N, BUCKETS, X> {
        let Self { shared, candidates, deadline, .. } = self;
        PreparedFailover { shared, candidates, deadline, cancelled }
    }
}

impl<'a, const N: usize, const BUCKETS: usize, X: Future<Output = ()>>
    PreparedFailover<'a, N, BUCKETS, X>
{
    /// The same call, each attempt of which costs `cost` tokens of the limiter of whoever is
    /// called, if it has one. What was prepared if not set.
    pub fn with_cost(self, cost: u32) -> Self {
        self.map(|candidate| candidate.with_cost(cost))
    }

    /// The same call, over `deadline` after it starts, with all candidates, attempts and waits.
    ///
    /// Each candidate has what is left of it, or its own deadline if that is less: a candidate that
    /// reaches its own has used up its share, and the next one is called. If not set, each has its
    /// own deadline and no more.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failover, Failure, Policy, Upstream, failover};
    /// use std::time::Duration;
    ///
    /// static MODELS: Failover<2> = Failover::new();
    /// // The big model has 12 of the 20 seconds, the small one the rest.
    /// static BIG: Upstream = Upstream::new(Policy::LLM.with_deadline(Duration::from_secs(12)));
    /// static SMALL: Upstream = Upstream::new(Policy::LLM);
    ///
    /// let served = failover(&MODELS, [&BIG, &SMALL])
    ///     .with_deadline(Duration::from_secs(20))
    ///     .run(async |candidate, attempt| match candidate {
    ///         0 => std::future::pending().await,
    ///         _ => Ok::<_, Failure>(attempt.timeout().unwrap().as_secs()),
    ///     })
    ///     .await
    ///     .unwrap();
    /// assert_eq!((served.by, served.value), (1, 8));
    /// # }
    /// ```
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The same call, each attempt of which also takes from all of `limits`, whoever is called; see
    /// [`Prepared::with_limits`]. Each candidate waits for them anew, and one that runs out of time
    /// there hands on.
    pub fn with_limits(self, limits: &'a [Limit<'a>]) -> Self {
        self.map(|candidate| candidate.with_limits(limits))
    }

    /// The same call, `observer` being told what happens at whoever is called.
    pub fn with_observer(self, observer: &'a dyn Observer) -> Self {
        self.map(|candidate| candidate.with_observer(observer))
    }

    /// The same call, repeated, by the same candidate or another, after a failure in which it may
    /// have been processed only if `safety` allows. Safe to repeat if not set.
    pub fn with_safety(self, safety: Safety) -> Self {
        self.map(|candidate| candidate.with_safety(safety))
    }

    /// The same call, which tries again and tries others even if it is made inside of another call
    /// that does; see [`Prepared::retry_although_nested`].
    pub fn retry_although_nested(self) -> Self {
        self.map(Prepared::retry_although_nested)
    }

    fn map(self, set: impl FnMut(Prepared<'a, BUCKETS>) -> Prepared<'a, BUCKETS>) -> Self {
        Self { candidates: self.candidates.map(set), ..self }
    }

    /// Calls `operation` with the number of a candidate, counted from 0, and the attempt at it,
    /// until one serves the call or it is time to stop.
    ///
    /// The closure may borrow; the future is `Send` if closure and results are, is not boxed, and
    /// allocates nothing if the first candidate that is called serves (but a list for
    /// [`with_limits`](Self::with_limits)).
    ///
    /// # Errors
    /// [`NoneServed`]: why each candidate gave up, with its last error untouched, why others were
    /// not called, and when to come back. A permanent failure of any candidate is the last.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
    ///
    /// # Cancel safety
    /// Dropping the future ends an attempt or a wait at once; nothing more is sent, and no permit,
    /// place, token or debt is left behind, but for the tokens of an attempt that had begun.
    /// Candidates that asked to be left alone are left alone by others, too.
    pub async fn run<T, E: Classify, F: Future<Output = Result<T, E>>>(
        self,
        operation: impl FnMut(usize, Attempt) -> F,
    ) -> Result<Served<T, E>, NoneServed<E>> {
        self.run_with(classified, operation).await
    }

    /// [`run`](Self::run), `classify` saying what the errors mean: for types that are not yours.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    ///
    /// # Panics
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub async fn run_when<T, E, F: Future<Output = Result<T, E>>>(
        self,
        mut classify: impl FnMut(&E) -> Failure,
        operation: impl FnMut(usize, Attempt) -> F,
    ) -> Result<Served<T, E>, NoneServed<E>> {
        let classify = |result: Result<T, E>| result.map_err(|error| (classify(&error), error));
        self.run_with(classify, operation).await
    }

    /// [`run`](Self::run), `classify` telling success from failure: for answers that are failures,
    /// such as a response of status 503.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failover, Failure, Policy, Upstream, failover};
    ///
    /// static HOSTS: [Upstream; 2] = [const { Upstream::new(Policy::STANDARD) }; 2];
    /// static SHARED: Failover<2> = Failover::new();
    ///
    /// let served = failover(&SHARED, HOSTS.each_ref())
    ///     .run_with(
    ///         |status| match status {
    ///             500.. => Err((Failure::transient(), status)),
    ///             _ => Ok(status),
    ///         },
    ///         |host, _| core::future::ready([503, 200][host]),
    ///     )
    ///     .await
    ///     .unwrap();
    /// assert_eq!((served.value, served.failed[0].1.last), (200, Some(503)));
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run); an answer that was not good enough is in its candidate's `last`.
    ///
    /// # Panics
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub async fn run_with<O, T, E, F: Future<Output = O>>(
        self,
        mut classify: impl FnMut(O) -> Result<T, (Failure, E)>,
        mut operation: impl FnMut(usize, Attempt) -> F,
    ) -> Result<Served<T, E>, NoneServed<E>> {
        let started = TokioTimer.now();
        let Self { shared, candidates, deadline, cancelled } = self;
        let deadline = deadline.map(|deadline| started.saturating_add(deadline));
        let mut route = shared.route();
        if let Some(deadline) = deadline {
            route = route.with_deadline(deadline);
        }
        let mut cancelled = pin!(cancelled);
        let mut failed = Vec::new();
        let mut now = started;
        let retry_after = loop {
            let candidate = match route.next(now) {
                Ok(candidate) => candidate,
                Err(none) => break none.retry_at.map(|at| at.saturating_duration_since(now)),
            };
            let call = candidates[candidate]
                .clone()
                .one_of(N)
                .within(deadline.map(|deadline| deadline.saturating_duration_since(now)))
                .cancel_when(cancelled.as_mut());
            let called = call.run_with(&mut classify, |attempt| operation(candidate, attempt));
            let gave_up = match called.await {
                Ok(value) => return Ok(Served { value, by: candidate, failed }),
                Err(gave_up) => gave_up,
            };
            now = TokioTimer.now();
            let (stop, retry_after) = (gave_up.stop, gave_up.retry_after);
            failed.push((candidate, gave_up));
            if !route.failed(now, stop, retry_after) {
                break retry_after;
            }
        };
        let elapsed = now.saturating_duration_since(started);
        let not_called = not_called(shared, now, &failed);
        Err(NoneServed { failed, not_called, elapsed, retry_after })
    }
}

/// Why those who have not failed were not called.
fn not_called<const N: usize, E>(
    shared: &Failover<N>,
    now: Instant,
    failed: &[(usize, E)],
) -> Vec<(usize, NotCalled)> {
    (0..N)
        .filter(|candidate| failed.iter().all(|(other, _)| other != candidate))
        .map(|candidate| {
            let until = shared.cooled_until(candidate);
            match until.saturating_duration_since(now) {
                Duration::ZERO => (candidate, NotCalled::CallOver),
                retry_after => (candidate, NotCalled::CoolingDown { retry_after }),
            }
        })
        .collect()
}
