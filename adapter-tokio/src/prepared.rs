//! A call about to be made: everything about it that can be set.

use core::future::{Future, Pending, pending};
use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::drive::{self, GaveUp};
use holdoff::{Attempt, Classify, Failure, Instant, Limits, Observer, Policy, Safety, classified};

use smallvec::SmallVec;

use crate::limiter::FairLimiter;
use crate::lines::{Limit, Lines};
use crate::nesting::{self, Nesting};
use crate::observe::Watch;
use crate::timer::TokioTimer;

/// What a call is made to that shares nothing with others.
static NOTHING: holdoff::Upstream = holdoff::Upstream::new();

/// What is observed under no name of its own.
pub(crate) const NAMELESS: &str = "default";

/// A call about to be made: everything about it that can be set, for this call alone.
///
/// From [`Upstream::prepare`](crate::Upstream::prepare), or from a policy with
/// [`new`](Self::new). It starts, and its deadline begins, at the first poll of what
/// [`run`](Self::run) returns.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failure, Policy, Safety, Stop, Upstream, valid};
/// use std::time::Duration;
///
/// static PROVIDER: Upstream = Upstream::new(Policy::LLM);
///
/// let gave_up = PROVIDER
///     .prepare()
///     .with_safety(Safety::NonIdempotent)
///     .with_deadline(Duration::from_secs(5))
///     .run(async |attempt| {
///         assert_eq!(attempt.timeout(), Some(Duration::from_secs(5)));
///         Err::<(), _>(Failure::transient())
///     })
///     .await
///     .unwrap_err();
/// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::NotIdempotent, 1));
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is called until it is run"]
pub struct Prepared<'a, const BUCKETS: usize = 0, X = Pending<()>> {
    policy: Policy,
    upstream: &'a holdoff::Upstream<BUCKETS>,
    limiter: Option<&'a FairLimiter>,
    limits: &'a [Limit<'a>],
    observer: Option<&'a dyn Observer>,
    name: &'static str,
    safety: Safety,
    cost: u32,
    nesting: nesting::Rule,
    /// Whether what is called may be called again by somebody other than its policy.
    calls_again: bool,
    cancelled: X,
}

impl<'a> Prepared<'a> {
    /// A call by `policy` that shares nothing with others.
    pub fn new(policy: &Policy) -> Self {
        Self::to(&NOTHING, None, policy)
    }

    /// The same call, each attempt of which first waits in line for `cost` tokens of `limiter`, in
    /// place of the limiter it had.
    pub const fn with_limiter(mut self, limiter: &'a FairLimiter, cost: u32) -> Self {
        (self.limiter, self.cost) = (Some(limiter), cost);
        self
    }
}

impl<'a, const BUCKETS: usize> Prepared<'a, BUCKETS> {
    pub(crate) fn to(
        upstream: &'a holdoff::Upstream<BUCKETS>,
        limiter: Option<&'a FairLimiter>,
        policy: &Policy,
    ) -> Self {
        Self {
            policy: *policy,
            upstream,
            limiter,
            limits: &[],
            observer: None,
            name: NAMELESS,
            safety: Safety::Idempotent,
            cost: 1,
            nesting: nesting::Rule::default(),
            calls_again: false,
            cancelled: pending(),
        }
    }

    /// The same call, which stops with [`Stop::Cancelled`](crate::Stop::Cancelled) in the very poll
    /// in which `cancelled` completes, whatever it waits for; nothing more is sent.
    ///
    /// Unlike dropping the future it says what is known, the last error included.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, Policy, Prepared, Stop};
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let token = CancellationToken::new();
    /// token.cancel();
    /// let call = Prepared::new(&Policy::BATCH).cancel_when(token.cancelled());
    /// let gave_up = call.run(async |_| Err::<(), _>(Failure::transient())).await.unwrap_err();
    /// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Cancelled, 0));
    /// # }
    /// ```
    pub fn cancel_when<X: Future<Output = ()>>(self, cancelled: X) -> Prepared<'a, BUCKETS, X> {
        let Self { policy, upstream, limiter, limits, observer, name, safety, cost, .. } = self;
        let Self { nesting, calls_again, .. } = self;
        Prepared {
            policy,
            upstream,
            limiter,
            limits,
            observer,
            name,
            safety,
            cost,
            nesting,
            calls_again,
            cancelled,
        }
    }
}

impl<'a, const BUCKETS: usize, X: Future<Output = ()>> Prepared<'a, BUCKETS, X> {
    /// The same call, [observed](crate::observe) as one to the upstream called `name`; the
    /// upstream's own name if not set, and `default` without one.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same call, each attempt of which costs `cost` tokens of its limiter, if it has one.
    /// Costs 1 if not set.
    pub fn with_cost(self, cost: u32) -> Self {
        Self { cost, ..self }
    }

    /// The same call, over `deadline` after it starts, waits and all attempts included.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { policy: self.policy.with_deadline(deadline), ..self }
    }

    /// The same call, each attempt of which also takes from all of `limits`, or from none; then
    /// from its own limiter. The narrowest first: a tenant's before everybody's.
    ///
    /// Whoever waits for a narrow limit holds no place in the line of a wider one: one tenant's
    /// backlog keeps nobody else waiting. So what belongs to one tenant comes before everything
    /// that tenants share; for endpoints of each tenant give each pair a limiter of its own. All
    /// calls must name shared limits in the same order, or two can wait for each other. A second
    /// call of this method replaces the first's.
    ///
    /// A 429 with a hint pauses the widest of them, which is everybody's. What a failed attempt has
    /// taken stays taken: [`settle`](FairLimiter::settle) is for the one whose use is known.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, FairLimiter, Limit, Policy, Prepared, Quota, Rate, valid};
    ///
    /// static REQUESTS: FairLimiter =
    ///     FairLimiter::new(valid!(Quota::new(Rate::per_minute(50), 5)));
    /// static TOKENS: FairLimiter =
    ///     FairLimiter::new(valid!(Quota::new(Rate::per_minute(30_000), 1_000)));
    ///
    /// // 800 is an estimate; the answer says what it was.
    /// let both = [Limit::new(&REQUESTS, 1), Limit::new(&TOKENS, 800)];
    /// let call = Prepared::new(&Policy::LLM).with_limits(&both);
    /// let used = call.run(async |_| Ok::<_, Failure>(350)).await.unwrap();
    /// TOKENS.settle(800, used);
    /// assert_eq!((REQUESTS.available(), TOKENS.available()), (4, 650));
    /// # }
    /// ```
    pub fn with_limits(self, limits: &'a [Limit<'a>]) -> Self {
        Self { limits, ..self }
    }

    /// The same call, of at most so many attempts, the first included.
    pub fn with_max_attempts(self, max_attempts: NonZeroU32) -> Self {
        Self { policy: self.policy.with_max_attempts(max_attempts), ..self }
    }

    /// The same call, `observer` being told what happens, beside the upstream's counters and its
    /// own observer.
    pub fn with_observer(self, observer: &'a dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same call, by `policy` instead of the upstream's. Settings of single values, such as
    /// [`with_deadline`](Self::with_deadline), come after it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, Policy, Upstream};
    ///
    /// static PROVIDER: Upstream = Upstream::new(Policy::INTERACTIVE);
    ///
    /// let call = PROVIDER.prepare().with_policy(Policy::BATCH);
    /// let gave_up = call.run(async |_| Err::<(), _>(Failure::transient())).await.unwrap_err();
    /// assert_eq!(gave_up.attempts, 9);
    /// # }
    /// ```
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The same call, repeated after a failure in which it may have been processed only if
    /// `safety` allows. Safe to repeat if not set.
    pub fn with_safety(self, safety: Safety) -> Self {
        Self { safety, ..self }
    }

    /// The same call, one of several: another may be made if this one fails.
    pub(crate) fn one_of(self, several: usize) -> Self {
        Self { calls_again: several > 1, ..self }
    }

    /// The same call, over when the first of its own deadline and `left` has passed.
    pub(crate) fn within(self, left: Option<Duration>) -> Self {
        match (left, self.policy.deadline()) {
            (Some(left), Some(own)) => self.with_deadline(left.min(own)),
            (Some(left), None) => self.with_deadline(left),
            (None, _) => self,
        }
    }

    /// The same call, which tries again even if it is made inside of another that does.
    ///
    /// Layers that each try again multiply: three of three attempts make 27 requests. So a call
    /// made inside an attempt of another makes one attempt and says
    /// [`Stop::Nested`](crate::Stop::Nested), unless this is said.
    pub fn retry_although_nested(self) -> Self {
        Self { nesting: nesting::Rule::Retry, ..self }
    }

    /// Calls `operation` until it succeeds or it is time to stop.
    ///
    /// The closure may borrow; the future is `Send` if closure and results are, is not boxed, and
    /// on success allocates nothing (with more than four limits: two short lists).
    ///
    /// # Errors
    /// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
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
    ///
    /// # Panics
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
    /// such as a response of status 503.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, Policy, Prepared};
    ///
    /// let mut answers = [503, 200].into_iter();
    /// let status = Prepared::new(&Policy::STANDARD)
    ///     .run_with(
    ///         |status| match status {
    ///             500.. => Err((Failure::transient(), status)),
    ///             _ => Ok(status),
    ///         },
    ///         |_| core::future::ready(answers.next().unwrap()),
    ///     )
    ///     .await;
    /// assert_eq!(status, Ok(200));
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run); the answer that was not good enough is in `last`.
    ///
    /// # Panics
    /// As for [`run`](Self::run).
    pub async fn run_with<O, T, E, F: Future<Output = O>>(
        self,
        classify: impl FnMut(O) -> Result<T, (Failure, E)>,
        mut operation: impl FnMut(Attempt) -> F,
    ) -> Result<T, GaveUp<E>> {
        let Self { policy, upstream, limiter, limits, observer, safety, cost, .. } = self;
        let tolls: SmallVec<[_; 4]> = limits.iter().map(Limit::toll).collect();
        let tolls = Limits::new(&tolls);
        let watch = Watch::start(self.name, safety, upstream, observer);
        let is_nested = self.nesting.applies();
        let begin = |now: Instant| {
            let mut call = upstream.call(&policy, safety, now).with_limits(&tolls);
            if let Some(limiter) = limiter {
                call = call.with_limiter(limiter.limiter(), cost);
            }
            if watch.is_needed() {
                call = call.with_observer(&watch);
            }
            if is_nested { call.nested() } else { call }
        };
        let lines = Lines::new(limits, limiter.map(|limiter| Limit::new(limiter, cost)));
        // A layer that does not try again leaves it to those inside.
        let calls_again = self.calls_again || policy.max_attempts().get() > 1;
        let inside = Nesting::of_layer(calls_again);
        // The closure itself may spawn a task, before there is a future.
        let operation = |attempt| inside.scope(inside.enter(|| operation(attempt)));
        let (cancelled, random) = (self.cancelled, random());
        let call =
            drive::run_until(cancelled, &TokioTimer, &lines, begin, random, classify, operation);
        watch.around(call).await
    }
}

/// Random numbers of a stream of its own, set up when the first is drawn: never on success.
fn random() -> impl FnMut() -> u64 {
    let mut generator = None;
    move || generator.get_or_insert_with(fastrand::Rng::new).u64(..)
}
