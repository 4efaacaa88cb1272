//! A call about to be made: everything about it that can be set.

use core::fmt;
use core::future::{Future, Pending, pending};
use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::drive::{self, GaveUp};
use holdoff::{Attempt, Call, Classify, Failure, Observer, Policy, Safety, classified};

use crate::limiter::{FairLimiter, MaybeLine};
use crate::random::Random;
use crate::timer::EmbassyTimer;

/// What a call is made to that shares nothing with others.
static NOTHING: holdoff::Upstream = holdoff::Upstream::new();

/// A call about to be made: everything about it that can be set, for this call alone.
///
/// From [`Upstream::prepare`](crate::Upstream::prepare), or from a policy with
/// [`new`](Self::new). It starts, and its deadline begins, at the first poll of what
/// [`run`](Self::run) returns.
///
/// ```
/// use core::time::Duration;
/// use holdoff_embassy::{Failure, Policy, Random, Safety, Stop, Upstream};
///
/// static BROKER: Upstream<4> = Upstream::new(Policy::STANDARD);
///
/// # futures_executor::block_on(async {
/// let mut random = Random::from_device_id(b"sensor 7");
/// let gave_up = BROKER
///     .prepare(&mut random)
///     .with_safety(Safety::NonIdempotent)
///     .with_deadline(Duration::from_secs(5))
///     .run(async |attempt| {
///         assert_eq!(attempt.timeout(), Some(Duration::from_secs(5)));
///         Err::<(), _>(Failure::transient())
///     })
///     .await
///     .unwrap_err();
/// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::NotIdempotent, 1));
/// # });
/// ```
#[derive(Debug)]
#[must_use = "nothing is called until it is run"]
pub struct Prepared<'a, const WAITING: usize = 0, const BUCKETS: usize = 0, X = Pending<()>> {
    policy: Policy,
    upstream: &'a holdoff::Upstream<BUCKETS>,
    limiter: Option<&'a FairLimiter<WAITING>>,
    observer: Option<Watching<'a, BUCKETS>>,
    random: &'a mut Random,
    safety: Safety,
    cost: u32,
    is_nested: bool,
    cancelled: X,
}

impl<'a> Prepared<'a> {
    /// A call by `policy` that shares nothing with others.
    pub fn new(policy: &Policy, random: &'a mut Random) -> Self {
        Self::to(&NOTHING, None, policy, random)
    }

    /// The same call, each attempt of which first waits in line for `cost` tokens of `limiter`.
    pub const fn with_limiter<const WAITING: usize>(
        self,
        limiter: &'a FairLimiter<WAITING>,
        cost: u32,
    ) -> Prepared<'a, WAITING> {
        let Self { policy, upstream, observer, random, safety, is_nested, cancelled, .. } = self;
        let limiter = Some(limiter);
        Prepared { policy, upstream, limiter, observer, random, safety, cost, is_nested, cancelled }
    }
}

impl<'a, const WAITING: usize, const BUCKETS: usize> Prepared<'a, WAITING, BUCKETS> {
    pub(crate) fn to(
        upstream: &'a holdoff::Upstream<BUCKETS>,
        limiter: Option<&'a FairLimiter<WAITING>>,
        policy: &Policy,
        random: &'a mut Random,
    ) -> Self {
        Self {
            policy: *policy,
            upstream,
            limiter,
            observer: None,
            random,
            safety: Safety::Idempotent,
            cost: 1,
            is_nested: false,
            cancelled: pending(),
        }
    }

    /// The same call, which stops with [`Stop::Cancelled`](crate::Stop::Cancelled) in the very poll
    /// in which `cancelled` completes, whatever it waits for; nothing more is sent.
    ///
    /// Unlike dropping the future it says what is known, the last error included. embassy-sync's
    /// `Signal` or `Watch` makes a way to shut down.
    ///
    /// ```
    /// use embassy_sync::{blocking_mutex::raw::CriticalSectionRawMutex, signal::Signal};
    /// use holdoff_embassy::{Failure, Policy, Prepared, Random, Stop};
    ///
    /// static SHUTDOWN: Signal<CriticalSectionRawMutex, ()> = Signal::new();
    /// SHUTDOWN.signal(());
    ///
    /// # futures_executor::block_on(async {
    /// let mut random = Random::from_device_id(b"sensor 7");
    /// let call = Prepared::new(&Policy::BATCH, &mut random).cancel_when(SHUTDOWN.wait());
    /// let gave_up = call.run(async |_| Err::<(), _>(Failure::transient())).await.unwrap_err();
    /// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Cancelled, 0));
    /// # });
    /// ```
    pub const fn cancel_when<X: Future<Output = ()>>(
        self,
        cancelled: X,
    ) -> Prepared<'a, WAITING, BUCKETS, X> {
        let Self { policy, upstream, limiter, observer, random, safety, cost, is_nested, .. } =
            self;
        Prepared { policy, upstream, limiter, observer, random, safety, cost, is_nested, cancelled }
    }
}

impl<'a, const WAITING: usize, const BUCKETS: usize, X: Future<Output = ()>>
    Prepared<'a, WAITING, BUCKETS, X>
{
    /// The same call, each attempt of which costs `cost` tokens of its limiter, if it has one.
    /// Costs 1 if not set.
    pub fn with_cost(self, cost: u32) -> Self {
        Self { cost, ..self }
    }

    /// The same call, over `deadline` after it starts, waits and all attempts included.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { policy: self.policy.with_deadline(deadline), ..self }
    }

    /// The same call, of at most so many attempts, the first included.
    pub fn with_max_attempts(self, max_attempts: NonZeroU32) -> Self {
        Self { policy: self.policy.with_max_attempts(max_attempts), ..self }
    }

    /// The same call, `observer` being told what happens, beside the upstream's counters and its
    /// own observer.
    pub fn with_observer(self, observer: &'a dyn Observer) -> Self {
        let watching = Watching { observer, tell: |call, observers| call.with_observer(observers) };
        Self { observer: Some(watching), ..self }
    }

    /// The same call, by `policy` instead of the upstream's. Settings of single values, such as
    /// [`with_deadline`](Self::with_deadline), come after it.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The same call, repeated after a failure in which it may have been processed only if
    /// `safety` allows. Safe to repeat if not set.
    pub fn with_safety(self, safety: Safety) -> Self {
        Self { safety, ..self }
    }

    /// The same call, made inside an attempt of another that will repeat it: one attempt, then
    /// [`Stop::Nested`](crate::Stop::Nested).
    ///
    /// Layers that each try again multiply: three of three attempts make 27 requests. There is no
    /// storage of a task here that could tell by itself.
    pub fn nested(self) -> Self {
        Self { is_nested: true, ..self }
    }

    /// Calls `operation` until it succeeds or it is time to stop.
    ///
    /// # Errors
    /// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
    ///
    /// # Cancel safety
    /// Dropping the future ends an attempt or a wait at once; nothing more is sent, and no permit,
    /// place, token or debt is left behind, but for the tokens of an attempt that had begun.
    pub async fn run<T, E: Classify, F: Future<Output = Result<T, E>>>(
        self,
        operation: impl FnMut(Attempt) -> F,
    ) -> Result<T, GaveUp<E>> {
        self.run_with(classified, operation).await
    }

    /// [`run`](Self::run), `classify` saying what the errors mean: for types that are not yours.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn run_when<T, E, F: Future<Output = Result<T, E>>>(
        self,
        mut classify: impl FnMut(&E) -> Failure,
        operation: impl FnMut(Attempt) -> F,
    ) -> Result<T, GaveUp<E>> {
        let classify = |result: Result<T, E>| result.map_err(|error| (classify(&error), error));
        self.run_with(classify, operation).await
    }

    /// [`run`](Self::run), `classify` telling success from failure: for answers that are failures,
    /// such as a CoAP response of code 5.03.
    ///
    /// # Errors
    /// As for [`run`](Self::run); the answer that was not good enough is in `last`.
    pub async fn run_with<O, T, E, F: Future<Output = O>>(
        self,
        classify: impl FnMut(O) -> Result<T, (Failure, E)>,
        operation: impl FnMut(Attempt) -> F,
    ) -> Result<T, GaveUp<E>> {
        let Self { policy, upstream, limiter, observer, random, safety, cost, .. } = self;
        let observers = observer.map(|watching| ((upstream, watching.observer), watching.tell));
        let begin = |now| {
            let mut call = upstream.call(&policy, safety, now);
            if let Some(limiter) = limiter {
                call = call.with_limiter(limiter.limiter(), cost);
            }
            if let Some((observers, tell)) = &observers {
                call = tell(call, observers);
            }
            if self.is_nested { call.nested() } else { call }
        };
        let (line, random) = (MaybeLine(limiter), || random.next_u64());
        drive::run_until(self.cancelled, &EmbassyTimer, &line, begin, random, classify, operation)
            .await
    }
}

/// Who watches beside the upstream, and how a call is told of them: a program in which nobody is
/// set need not contain what tells them.
#[derive(Clone, Copy)]
struct Watching<'a, const BUCKETS: usize> {
    observer: &'a dyn Observer,
    tell: for<'c> fn(Call<'c, BUCKETS>, &'c Observers<'a, BUCKETS>) -> Call<'c, BUCKETS>,
}

type Observers<'a, const BUCKETS: usize> = (&'a holdoff::Upstream<BUCKETS>, &'a dyn Observer);

impl<const BUCKETS: usize> fmt::Debug for Watching<'_, BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.observer.fmt(f)
    }
}
