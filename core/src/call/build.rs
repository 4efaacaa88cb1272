//! What a call is made of.

use super::event::Observer;
use super::guard::Guard;
use super::machine::Machine;
use super::{Call, Limits, Parts};
use crate::breaker::CircuitBreaker;
use crate::budget::RetryBudget;
use crate::limiter::Limiter;
use crate::outcome::Safety;
use crate::policy::Policy;
use crate::time::Instant;

impl<'a> Call<'a> {
    /// A call that starts now; its deadline counts from here.
    pub const fn new(policy: &'a Policy, safety: Safety, now: Instant) -> Self {
        Self::guarded(policy, safety, now, None)
    }

    /// The same call, each attempt of which `breaker` must admit.
    pub fn with_breaker<const BUCKETS: usize>(
        self,
        breaker: &'a CircuitBreaker<BUCKETS>,
    ) -> Call<'a, BUCKETS> {
        let Machine { parts, safety, started, is_nested, .. } = self.machine;
        let mut call = Call::guarded(parts.policy, safety, started, Some(Guard::new(breaker)));
        call.machine.parts = parts;
        call.machine.is_nested = is_nested;
        call
    }
}

impl<'a, const BUCKETS: usize> Call<'a, BUCKETS> {
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) const fn guarded(
        policy: &'a Policy,
        safety: Safety,
        now: Instant,
        guard: Option<Guard<'a, BUCKETS>>,
    ) -> Self {
        Self { guard, machine: Machine::new(policy, safety, now) }
    }

    pub(crate) const fn parts_mut(&mut self) -> &mut Parts<'a> {
        &mut self.machine.parts
    }

    /// The same call, each retry of which is taken out of `budget`.
    pub const fn with_budget(mut self, budget: &'a RetryBudget) -> Self {
        self.machine.parts = self.machine.parts.with_budget(budget);
        self
    }

    /// The same call, each attempt of which costs `cost` tokens of its limiter, if it has one.
    /// Costs 1 if not set.
    pub const fn with_cost(mut self, cost: u32) -> Self {
        self.machine.parts.cost = cost;
        self
    }

    /// The same call, each attempt of which takes `cost` tokens from `limiter` first.
    pub const fn with_limiter(mut self, limiter: &'a Limiter, cost: u32) -> Self {
        self.machine.parts = self.machine.parts.with_limiter(limiter);
        self.machine.parts.cost = cost;
        self
    }

    /// The same call, each attempt of which also takes from `limits`, all or nothing: from them in
    /// their order, then from its limiter, if it has one.
    pub const fn with_limits(mut self, limits: &'a Limits<'a>) -> Self {
        self.machine.parts = self.machine.parts.with_limits(limits);
        self
    }

    /// The same call, made inside of another that tries again: one attempt, and then
    /// [`Stop::Nested`](super::Stop::Nested). Layers that each try again multiply.
    pub const fn nested(mut self) -> Self {
        self.machine.is_nested = true;
        self
    }

    /// The same call, `observer` being told what happens, and nobody else: for both it and the
    /// counters of an [`Upstream`](crate::Upstream), `with_observer(&(&upstream, &observer))`.
    pub fn with_observer(mut self, observer: &'a dyn Observer) -> Self {
        self.machine.parts = self.machine.parts.with_observer(observer);
        self
    }
}
