//! What a call is made of.

use super::event::Observer;
use super::limits::TollTable;
use super::step::DelaySource;
use super::{Call, Limits, Parts, State};
use crate::breaker::CircuitBreaker;
use crate::budget::RetryBudget;
use crate::limiter::Limiter;
use crate::outcome::Safety;
use crate::policy::Policy;
use crate::time::Instant;

impl<'a> Call<'a> {
    /// A call that starts now; its deadline counts from here.
    pub const fn new(policy: &'a Policy, safety: Safety, now: Instant) -> Self {
        Self::with_parts(policy, safety, now, Parts::NONE)
    }

    /// The same call, each attempt of which `breaker` must admit.
    pub fn with_breaker<const BUCKETS: usize>(
        self,
        breaker: &'a CircuitBreaker<BUCKETS>,
    ) -> Call<'a, BUCKETS> {
        let Parts { budget, limiter, tolls, observer, .. } = self.parts;
        let parts = Parts { breaker: None, budget, limiter, tolls, observer };
        let parts = parts.with_breaker(breaker);
        let mut call = Call::with_parts(self.policy, self.safety, self.started, parts);
        (call.limits, call.cost, call.is_nested) = (self.limits, self.cost, self.is_nested);
        call
    }
}

impl<'a, const BUCKETS: usize> Call<'a, BUCKETS> {
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) const fn with_parts(
        policy: &'a Policy,
        safety: Safety,
        now: Instant,
        parts: Parts<'a, BUCKETS>,
    ) -> Self {
        let deadline = match policy.deadline() {
            Some(deadline) => now.saturating_add(deadline),
            None => Instant::MAX,
        };
        Self {
            policy,
            parts,
            limits: None,
            safety,
            is_nested: false,
            started: now,
            deadline,
            attempts: 0,
            cost: 1,
            previous: 0,
            // Ready whatever the clock says next: it may step back.
            state: State::Ready { not_before: Instant::EPOCH, source: DelaySource::Schedule },
            is_charged: false,
        }
    }

    /// The same call, each retry of which is taken out of `budget`.
    pub const fn with_budget(mut self, budget: &'a RetryBudget) -> Self {
        self.parts = self.parts.with_budget(budget);
        self
    }

    /// The same call, each attempt of which costs `cost` tokens of its limiter, if it has one.
    /// Costs 1 if not set.
    pub const fn with_cost(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// The same call, each attempt of which takes `cost` tokens from `limiter` first.
    pub const fn with_limiter(mut self, limiter: &'a Limiter, cost: u32) -> Self {
        self.parts = self.parts.with_limiter(limiter);
        self.with_cost(cost)
    }

    /// The same call, each attempt of which also takes from `limits`, all or nothing: from them in
    /// their order, then from its limiter, if it has one.
    pub const fn with_limits(mut self, limits: &'a Limits<'a>) -> Self {
        self.limits = Some(limits);
        self.parts.tolls = Some(&TollTable::ALL);
        self
    }

    /// The same call, made inside of another that tries again: one attempt, and then
    /// [`Stop::Nested`](super::Stop::Nested). Layers that each try again multiply.
    pub const fn nested(mut self) -> Self {
        self.is_nested = true;
        self
    }

    /// The same call, `observer` being told what happens, and nobody else: for both it and the
    /// counters of an [`Upstream`](crate::Upstream), `with_observer(&(&upstream, &observer))`.
    pub fn with_observer(mut self, observer: &'a dyn Observer) -> Self {
        self.parts = self.parts.with_observer(observer);
        self
    }
}
