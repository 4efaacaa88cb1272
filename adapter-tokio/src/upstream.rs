//! One service and everything that guards it.

use core::mem::{self, ManuallyDrop};
use core::num::NonZeroU32;

use holdoff::drive::GaveUp;
use holdoff::{CircuitBreaker, Classify, Counters, Failure, Observer, Policy, Quota, RetryBudget};

use crate::limiter::FairLimiter;
use crate::prepared::{NAMELESS, Prepared};

/// One service: how calls to it are tried again, and its limiter, circuit breaker, retry budget and
/// counters, each if it is wanted.
///
/// Usable through `&self` from any task or thread; share it in a `static` or an `Arc`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{
///     BreakerConfig, BudgetConfig, Counters, Failure, Policy, Quota, Rate, Ratio, Upstream, valid,
/// };
///
/// static PROVIDER: Upstream = Upstream::new(Policy::LLM)
///     .with_limiter(valid!(Quota::new(Rate::per_second(10), 20)))
///     .with_breaker(valid!(BreakerConfig::rate(20, Ratio::percent(50)).build()))
///     .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
///     .with_counters(Counters::new());
///
/// let answer = PROVIDER.call(async || Ok::<_, Failure>("hello")).await;
/// assert_eq!(answer, Ok("hello"));
/// assert_eq!(PROVIDER.counters().unwrap().snapshot().successes, 1);
/// # }
/// ```
#[derive(Debug)]
pub struct Upstream<const BUCKETS: usize = 0> {
    /// But for the limiter, which has a line here.
    parts: holdoff::Upstream<BUCKETS>,
    limiter: Option<FairLimiter>,
    policy: Policy,
    name: &'static str,
}

impl Upstream {
    /// A service of which nothing is known, calls to which are tried again by `policy`.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self { parts: holdoff::Upstream::new(), limiter: None, policy, name: NAMELESS }
    }

    /// The same service, each attempt being admitted by `breaker`.
    ///
    /// ```
    /// use holdoff_tokio::{BreakerConfig, Policy, Upstream};
    ///
    /// let breaker = BreakerConfig::consecutive(5).build()?;
    /// let upstream = Upstream::new(Policy::LLM).with_breaker(breaker);
    /// assert!(upstream.breaker().is_some());
    /// # Ok::<(), holdoff_tokio::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn with_breaker<const BUCKETS: usize>(
        self,
        breaker: CircuitBreaker<BUCKETS>,
    ) -> Upstream<BUCKETS> {
        self.with_optional_breaker(Some(breaker))
    }

    /// The same service, each attempt being admitted by `breaker` if there is one: for whom only
    /// finds out at run time.
    ///
    /// ```
    /// use holdoff_tokio::{BreakerConfig, Policy, Upstream};
    ///
    /// fn upstream(failures: Option<u32>) -> Upstream<10> {
    ///     let rule = failures.map(BreakerConfig::consecutive);
    ///     let breaker = rule.and_then(|rule| rule.build_with_buckets().ok());
    ///     Upstream::new(Policy::STANDARD).with_optional_breaker(breaker)
    /// }
    ///
    /// assert!(upstream(Some(5)).breaker().is_some());
    /// assert!(upstream(None).breaker().is_none());
    /// ```
    #[must_use]
    pub const fn with_optional_breaker<const BUCKETS: usize>(
        mut self,
        breaker: Option<CircuitBreaker<BUCKETS>>,
    ) -> Upstream<BUCKETS> {
        let parts = mem::replace(&mut self.parts, holdoff::Upstream::new());
        let parts = parts.with_optional_breaker(breaker);
        let limiter = self.limiter.take();
        let (policy, name) = (self.policy, self.name);
        let _nothing = ManuallyDrop::new(self); // There is nothing left in it to be dropped.
        Upstream { parts, limiter, policy, name }
    }
}

impl<const BUCKETS: usize> Upstream<BUCKETS> {
    /// The same service, called `name` in what can be [observed](crate::observe) of it. `default`
    /// if not set.
    ///
    /// Names are for the few services that somebody watches, not for each of many keys; two circuit
    /// breakers of one name cannot be told apart.
    #[must_use]
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// The same service, each retry being taken out of `budget`.
    #[must_use]
    pub const fn with_budget(mut self, budget: RetryBudget) -> Self {
        self.parts = self.parts.with_budget(budget);
        self
    }

    /// The same service, its calls counted.
    #[must_use]
    pub const fn with_counters(mut self, counters: Counters) -> Self {
        self.parts = self.parts.with_counters(counters);
        self
    }

    /// The same service, each attempt waiting in line for tokens of `quota`.
    #[must_use]
    pub const fn with_limiter(mut self, quota: Quota) -> Self {
        // Another one that was to be used holds nothing yet, and no `const fn` can drop it.
        let _unused = ManuallyDrop::new(self.limiter.replace(FairLimiter::new(quota)));
        self
    }

    /// The same service, at whose limiter at most `max_waiting` attempts stand behind the head of
    /// the line at once; whoever would be one more stops with
    /// [`Stop::QueueFull`](crate::Stop::QueueFull). Unbounded if not set; nothing without a
    /// limiter.
    #[must_use]
    pub const fn with_max_waiting(mut self, max_waiting: NonZeroU32) -> Self {
        if let Some(limiter) = &mut self.limiter {
            limiter.set_max_waiting(max_waiting);
        }
        self
    }

    /// The same service, `observer` being told what its calls do.
    #[must_use]
    pub const fn with_observer(mut self, observer: &'static dyn Observer) -> Self {
        self.parts = self.parts.with_observer(observer);
        self
    }

    /// A call about to be made, of which anything can still be set.
    pub fn prepare(&self) -> Prepared<'_, BUCKETS> {
        Prepared::to(&self.parts, self.limiter.as_ref(), &self.policy).named(self.name)
    }

    /// Calls `operation` until it succeeds or it is time to stop.
    ///
    /// Only for what is safe to repeat, at a cost of one token; [`prepare`](Self::prepare) for
    /// everything else.
    ///
    /// # Errors
    /// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
    ///
    /// # Cancel safety
    /// As [`Prepared::run`].
    pub async fn call<T, E: Classify, F: Future<Output = Result<T, E>>>(
        &self,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, GaveUp<E>> {
        self.prepare().run(|_| operation()).await
    }

    /// [`call`](Self::call), `classify` saying what the errors mean: for types that are not yours.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    ///
    /// # Panics
    /// As for [`call`](Self::call).
    pub async fn call_when<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        classify: impl FnMut(&E) -> Failure,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, GaveUp<E>> {
        self.prepare().run_when(classify, |_| operation()).await
    }

    pub(crate) const fn parts(&self) -> &holdoff::Upstream<BUCKETS> {
        &self.parts
    }

    /// Its circuit breaker.
    #[must_use]
    pub const fn breaker(&self) -> Option<&CircuitBreaker<BUCKETS>> {
        self.parts.breaker()
    }

    /// Its retry budget.
    #[must_use]
    pub const fn budget(&self) -> Option<&RetryBudget> {
        self.parts.budget()
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> Option<&Counters> {
        self.parts.counters()
    }

    /// Its limiter.
    #[must_use]
    pub const fn limiter(&self) -> Option<&FairLimiter> {
        self.limiter.as_ref()
    }

    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How calls to it are tried again.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl<'a, const BUCKETS: usize> From<&'a Upstream<BUCKETS>> for Prepared<'a, BUCKETS> {
    fn from(upstream: &'a Upstream<BUCKETS>) -> Self {
        upstream.prepare()
    }
}
