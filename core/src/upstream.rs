//! One service and all that is known of it.

use core::fmt;

use crate::breaker::CircuitBreaker;
use crate::budget::RetryBudget;
use crate::call::{Call, Guard, Observation, Observer, Parts};
use crate::counters::Counters;
use crate::limiter::{Limiter, Quota};
use crate::outcome::Safety;
use crate::policy::Policy;
use crate::time::Instant;
use crate::wide::INLINES;

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
pub struct Upstream<const BUCKETS: usize = 0> {
    breaker: Option<CircuitBreaker<BUCKETS>>,
    budget: Option<RetryBudget>,
    counters: Option<Counters>,
    limiter: Option<Limiter>,
    observer: Option<&'static dyn Observer>,
    gives: Gives<BUCKETS>,
}

/// How a call is given the parts: what an upstream was not given, the program need not contain.
#[derive(Clone, Copy)]
struct Gives<const BUCKETS: usize> {
    breaker: for<'a> fn(&'a Upstream<BUCKETS>) -> Option<Guard<'a, BUCKETS>>,
    budget: for<'a> fn(&'a Upstream<BUCKETS>, &mut Parts<'a>),
    limiter: for<'a> fn(&'a Upstream<BUCKETS>, &mut Parts<'a>),
    observer: for<'a> fn(&'a Upstream<BUCKETS>, &mut Parts<'a>),
}

impl<const BUCKETS: usize> Gives<BUCKETS> {
    const NOTHING: Self =
        Self { breaker: |_| None, budget: |_, _| {}, limiter: |_, _| {}, observer: |_, _| {} };

    const EVERYTHING: Self = Self {
        breaker: |upstream| upstream.breaker.as_ref().map(Guard::new),
        budget: |upstream, parts| {
            if let Some(budget) = &upstream.budget {
                *parts = parts.with_budget(budget);
            }
        },
        limiter: |upstream, parts| {
            if let Some(limiter) = &upstream.limiter {
                *parts = parts.with_limiter(limiter);
            }
        },
        observer: |upstream, parts| {
            if upstream.counters.is_some() || upstream.observer.is_some() {
                *parts = parts.with_observer(upstream);
            }
        },
    };
}

impl Upstream {
    /// A service of which nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            breaker: None,
            budget: None,
            counters: None,
            limiter: None,
            observer: None,
            gives: Gives::NOTHING,
        }
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
        let gives = Gives::NOTHING;
        Upstream { breaker, budget, counters, limiter, observer, gives }.given()
    }
}

impl<const BUCKETS: usize> Upstream<BUCKETS> {
    /// The same service, each retry being taken out of `budget`.
    #[must_use]
    pub const fn with_budget(self, budget: RetryBudget) -> Self {
        Self { budget: Some(budget), ..self }.given()
    }

    /// The same service, its calls counted.
    #[must_use]
    pub const fn with_counters(self, counters: Counters) -> Self {
        Self { counters: Some(counters), ..self }.given()
    }

    /// The same service, each attempt taking tokens from `limiter`.
    #[must_use]
    pub const fn with_limiter(self, limiter: Limiter) -> Self {
        Self { limiter: Some(limiter), ..self }.given()
    }

    /// The same service, `observer` being told what its calls do.
    #[must_use]
    pub const fn with_observer(self, observer: &'static dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }.given()
    }

    /// A call that starts now, each attempt costing one token (see [`Call::with_cost`]).
    pub fn call<'a>(
        &'a self,
        policy: &'a Policy,
        safety: Safety,
        now: Instant,
    ) -> Call<'a, BUCKETS> {
        let Gives { breaker, budget, limiter, observer } =
            if INLINES { Gives::EVERYTHING } else { self.gives };
        let mut call = Call::guarded(policy, safety, now, breaker(self));
        budget(self, call.parts_mut());
        limiter(self, call.parts_mut());
        observer(self, call.parts_mut());
        call
    }

    /// The same service, which gives what it has.
    const fn given(mut self) -> Self {
        let (nothing, everything) = (Gives::NOTHING, Gives::EVERYTHING);
        let is_watched = self.counters.is_some() || self.observer.is_some();
        self.gives = Gives {
            breaker: if self.breaker.is_some() { everything } else { nothing }.breaker,
            budget: if self.budget.is_some() { everything } else { nothing }.budget,
            limiter: if self.limiter.is_some() { everything } else { nothing }.limiter,
            observer: if is_watched { everything } else { nothing }.observer,
        };
        self
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

impl<const BUCKETS: usize> fmt::Debug for Upstream<BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("breaker", &self.breaker)
            .field("budget", &self.budget)
            .field("counters", &self.counters)
            .field("limiter", &self.limiter)
            .field("observer", &self.observer)
            .finish()
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
