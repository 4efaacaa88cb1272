//! One service and all that is known of it.

use crate::breaker::CircuitBreaker;
use crate::budget::RetryBudget;
use crate::call::{Call, Observation, Observer, Parts};
use crate::counters::Counters;
use crate::limiter::{Limiter, Quota};
use crate::outcome::Safety;
use crate::policy::Policy;
use crate::time::Instant;

/// One service: its limiter, circuit breaker, retry budget and counters, each if it is wanted.
///
/// Usable through `&self` from any thread, task or interrupt, and as a `static`. What is not
/// configured costs a look at an empty option.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{
///     BreakerConfig, BudgetConfig, Counters, Instant, Limiter, Outcome, Policy, Quota, Rate,
///     Ratio, Safety, Upstream, valid,
/// };
///
/// static PROVIDER: Upstream = Upstream::new()
///     .with_limiter(Limiter::new(valid!(Quota::new(Rate::per_second(10), 20))))
///     .with_breaker(valid!(BreakerConfig::rate(20, Ratio::percent(50)).build()))
///     .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
///     .with_counters(Counters::new());
///
/// let now = Instant::EPOCH;
/// let mut call = PROVIDER.call(&Policy::LLM, Safety::Idempotent, now);
/// call.poll(now, || 0);
/// call.record(now, Outcome::Success, || 0);
/// assert_eq!(PROVIDER.counters().unwrap().snapshot().successes, 1);
/// ```
#[derive(Debug)]
pub struct Upstream<const BUCKETS: usize = 0> {
    breaker: Option<CircuitBreaker<BUCKETS>>,
    budget: Option<RetryBudget>,
    counters: Option<Counters>,
    limiter: Option<Limiter>,
    observer: Option<&'static dyn Observer>,
}

impl Upstream {
    /// A service of which nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self { breaker: None, budget: None, counters: None, limiter: None, observer: None }
    }

    /// The same service, each attempt being admitted by `breaker`.
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
    /// use holdoff::{BreakerConfig, Upstream};
    ///
    /// fn upstream(failures: Option<u32>) -> Upstream<10> {
    ///     let rule = failures.map(BreakerConfig::consecutive);
    ///     let breaker = rule.and_then(|rule| rule.build_with_buckets().ok());
    ///     Upstream::new().with_optional_breaker(breaker)
    /// }
    ///
    /// assert!(upstream(Some(5)).breaker().is_some());
    /// assert!(upstream(None).breaker().is_none());
    /// ```
    #[must_use]
    pub const fn with_optional_breaker<const BUCKETS: usize>(
        self,
        breaker: Option<CircuitBreaker<BUCKETS>>,
    ) -> Upstream<BUCKETS> {
        let Self { budget, counters, limiter, observer, .. } = self;
        Upstream { breaker, budget, counters, limiter, observer }
    }
}

impl<const BUCKETS: usize> Upstream<BUCKETS> {
    /// The same service, each retry being taken out of `budget`.
    #[must_use]
    pub const fn with_budget(self, budget: RetryBudget) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// The same service, its calls counted.
    #[must_use]
    pub const fn with_counters(self, counters: Counters) -> Self {
        Self { counters: Some(counters), ..self }
    }

    /// The same service, each attempt taking tokens from `limiter`.
    #[must_use]
    pub const fn with_limiter(self, limiter: Limiter) -> Self {
        Self { limiter: Some(limiter), ..self }
    }

    /// The same service, `observer` being told what its calls do.
    #[must_use]
    pub const fn with_observer(self, observer: &'static dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// A call that starts now, each attempt costing one token (see [`Call::with_cost`]).
    pub fn call<'a>(
        &'a self,
        policy: &'a Policy,
        safety: Safety,
        now: Instant,
    ) -> Call<'a, BUCKETS> {
        let mut parts = Parts::NONE;
        if let Some(breaker) = &self.breaker {
            parts = parts.with_breaker(breaker);
        }
        if let Some(budget) = &self.budget {
            parts = parts.with_budget(budget);
        }
        if let Some(limiter) = &self.limiter {
            parts = parts.with_limiter(limiter);
        }
        if self.counters.is_some() || self.observer.is_some() {
            parts = parts.with_observer(self);
        }
        Call::with_parts(policy, safety, now, parts)
    }

    /// When forgetting it gives nobody anything, if nobody calls it until then; [`Instant::MAX`],
    /// which is never, past the end of its time.
    ///
    /// Its limiter is full and not paused then, and its breaker has refused nobody for as long as
    /// its stable period. For tables of upstreams that have to forget some of them, as
    /// [`UpstreamTable`](crate::UpstreamTable) does.
    ///
    /// ```
    /// use holdoff::{Instant, Limiter, Quota, Rate, Upstream, valid};
    ///
    /// let quota = valid!(Quota::new(Rate::per_second(1), 5));
    /// let tenant = Upstream::new().with_limiter(Limiter::new(quota));
    /// tenant.limiter().unwrap().try_acquire(Instant::EPOCH, 3).unwrap();
    /// assert_eq!(tenant.idle_at(), Instant::from_nanos(3_000_000_000));
    /// ```
    #[must_use]
    pub fn idle_at(&self) -> Instant {
        let breaker = self.breaker.as_ref().map(CircuitBreaker::idle_at);
        let limiter = self.limiter.as_ref().map(Limiter::full_at);
        breaker.max(limiter).unwrap_or(Instant::EPOCH)
    }

    /// As it was built, the limiter with `quota`; only while nobody else uses it.
    pub(crate) fn renew(&self, now: Instant, quota: Option<Quota>) {
        if let Some(breaker) = &self.breaker {
            breaker.set_mode(breaker.mode());
        }
        if let Some(budget) = &self.budget {
            budget.renew();
        }
        if let Some(counters) = &self.counters {
            counters.clear();
        }
        if let (Some(limiter), Some(quota)) = (&self.limiter, quota) {
            limiter.renew(now, quota);
        }
    }

    /// Its circuit breaker.
    #[must_use]
    pub const fn breaker(&self) -> Option<&CircuitBreaker<BUCKETS>> {
        self.breaker.as_ref()
    }

    /// Its retry budget.
    #[must_use]
    pub const fn budget(&self) -> Option<&RetryBudget> {
        self.budget.as_ref()
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// Its limiter.
    #[must_use]
    pub const fn limiter(&self) -> Option<&Limiter> {
        self.limiter.as_ref()
    }
}

impl Default for Upstream {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BUCKETS: usize> Observer for Upstream<BUCKETS> {
    fn on_event(&self, observation: &Observation) {
        if let Some(counters) = &self.counters {
            counters.on_event(observation);
        }
        if let Some(observer) = self.observer {
            observer.on_event(observation);
        }
    }
}
