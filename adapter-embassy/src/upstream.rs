//! One service and everything that guards it.

use core::future::Future;

use holdoff::drive::GaveUp;
use holdoff::{CircuitBreaker, Classify, Counters, Failure, Observer, Policy, Quota, RetryBudget};

use crate::limiter::FairLimiter;
use crate::prepared::Prepared;
use crate::random::Random;

/// One service: how calls to it are tried again, and its limiter, circuit breaker, retry budget and
/// counters, each if it is wanted. `WAITING` tasks have room in line behind the head at its limiter
/// (12 bytes each on a 32-bit core).
///
/// Usable through `&self` from any task; share it in a `static`.
///
/// ```
/// use holdoff_embassy::{
///     BreakerConfig, BudgetConfig, Counters, Failure, Policy, Quota, Random, Rate, Ratio,
///     Upstream, valid,
/// };
///
/// static UPLINK: Upstream<4> = Upstream::new(Policy::STANDARD)
///     .with_limiter(valid!(Quota::new(Rate::per_second(10), 20)))
///     .with_breaker(valid!(BreakerConfig::consecutive(5).build()))
///     .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
///     .with_counters(Counters::new());
///
/// # futures_executor::block_on(async {
/// let mut random = Random::from_device_id(b"sensor 7");
/// let answer = UPLINK.call(&mut random, async || Ok::<_, Failure>("hello")).await;
/// assert_eq!(answer, Ok("hello"));
/// assert_eq!(UPLINK.counters().unwrap().snapshot().successes, 1);
/// # });
/// ```
#[derive(Debug)]
pub struct Upstream<const WAITING: usize, const BUCKETS: usize = 0> {
    /// But for the limiter, which has a line here.
    parts: holdoff::Upstream<BUCKETS>,
    limiter: Option<FairLimiter<WAITING>>,
    policy: Policy,
}

impl<const WAITING: usize> Upstream<WAITING> {
    /// A service of which nothing is known, calls to which are tried again by `policy`.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self { parts: holdoff::Upstream::new(), limiter: None, policy }
    }

    /// The same service, each attempt being admitted by `breaker`.
    #[must_use]
    pub const fn with_breaker<const BUCKETS: usize>(
        self,
        breaker: CircuitBreaker<BUCKETS>,
    ) -> Upstream<WAITING, BUCKETS> {
        let Self { parts, limiter, policy } = self;
        Upstream { parts: parts.with_breaker(breaker), limiter, policy }
    }
}

impl<const WAITING: usize, const BUCKETS: usize> Upstream<WAITING, BUCKETS> {
    /// The same service, each retry being taken out of `budget`.
    #[must_use]
    pub const fn with_budget(self, budget: RetryBudget) -> Self {
        Self { parts: self.parts.with_budget(budget), ..self }
    }

    /// The same service, its calls counted.
    #[must_use]
    pub const fn with_counters(self, counters: Counters) -> Self {
        Self { parts: self.parts.with_counters(counters), ..self }
    }

    /// The same service, each attempt waiting in line for tokens of `quota`; whoever finds
    /// `WAITING` behind the head stops with [`Stop::QueueFull`](crate::Stop::QueueFull).
    #[must_use]
    pub const fn with_limiter(self, quota: Quota) -> Self {
        Self { limiter: Some(FairLimiter::new(quota)), ..self }
    }

    /// The same service, `observer` being told what its calls do.
    #[must_use]
    pub const fn with_observer(self, observer: &'static dyn Observer) -> Self {
        Self { parts: self.parts.with_observer(observer), ..self }
    }

    /// A call about to be made, of which anything can still be set.
    pub fn prepare<'a>(&'a self, random: &'a mut Random) -> Prepared<'a, WAITING, BUCKETS> {
        Prepared::to(&self.parts, self.limiter.as_ref(), &self.policy, random)
    }

    /// Calls `operation` until it succeeds or it is time to stop.
    ///
    /// Only for what is safe to repeat, at a cost of one token; [`prepare`](Self::prepare) for
    /// everything else.
    ///
    /// # Errors
    /// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
    ///
    /// # Cancel safety
    /// As [`Prepared::run`].
    pub async fn call<T, E: Classify, F: Future<Output = Result<T, E>>>(
        &self,
        random: &mut Random,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, GaveUp<E>> {
        self.prepare(random).run(|_| operation()).await
    }

    /// [`call`](Self::call), `classify` saying what the errors mean: for types that are not yours.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub async fn call_when<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        random: &mut Random,
        classify: impl FnMut(&E) -> Failure,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, GaveUp<E>> {
        self.prepare(random).run_when(classify, |_| operation()).await
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
    pub const fn limiter(&self) -> Option<&FairLimiter<WAITING>> {
        self.limiter.as_ref()
    }

    /// How calls to it are tried again.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }
}
