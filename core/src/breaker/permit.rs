//! The right to make one call, and the duty to say how it ended.

use super::word::Ending;
use super::{BreakerChange, CircuitBreaker, NANOS};
use crate::time::Instant;

/// The right to make one call; reports how it ended.
///
/// Dropping it without a report frees the place of a probe at once and counts as nothing: a
/// cancelled call is no evidence.
#[derive(Debug)]
#[must_use = "dropping a permit says that the call was not made"]
pub struct Permit<'a, const BUCKETS: usize = 0> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    admitted_at: Instant,
    generation: u16,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Call,
    Probe,
    /// Admitted although the verdict was no: reports nothing.
    Shadow,
}

impl<'a, const BUCKETS: usize> Permit<'a, BUCKETS> {
    #[inline]
    pub(super) const fn new(
        breaker: &'a CircuitBreaker<BUCKETS>,
        now: Instant,
        generation: u16,
        role: Role,
    ) -> Self {
        Self { breaker, admitted_at: now, generation, role }
    }

    /// Whether this is the one call that finds out if the service is back.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        matches!(self.role, Role::Probe)
    }

    /// Whether the breaker, run in [`Mode::Shadow`](super::Mode::Shadow), would have refused.
    #[must_use]
    pub const fn would_be_refused(&self) -> bool {
        matches!(self.role, Role::Shadow)
    }

    /// The call failed in a way that speaks against the service.
    ///
    /// `sample` is called at most once, to lengthen an open period by its jitter, and must give a
    /// number uniform over all of `u64`.
    #[inline]
    pub fn failure(self, now: Instant, sample: impl FnOnce() -> u64) -> Option<BreakerChange> {
        self.report(now, Ending::Failure, sample)
    }

    /// The call succeeded; counts as a failure if it took longer than a slow call may.
    ///
    /// `sample` as for [`failure`](Self::failure).
    #[inline]
    pub fn success(self, now: Instant, sample: impl FnOnce() -> u64) -> Option<BreakerChange> {
        let slow = self.breaker.terms.slow;
        let taken = now.as_nanos().saturating_sub(self.admitted_at.as_nanos());
        let is_slow = slow < u32::MAX && taken > u64::from(slow) * u64::from(NANOS); // OK: below 2^52.
        self.report(now, if is_slow { Ending::Failure } else { Ending::Success }, sample)
    }

    /// The call says nothing about the service (a client error, a refusal by another layer); the
    /// same as dropping the permit.
    pub fn neutral(self) {
        drop(self);
    }

    #[inline]
    fn report(
        self,
        now: Instant,
        ending: Ending,
        sample: impl FnOnce() -> u64,
    ) -> Option<BreakerChange> {
        let Self { breaker, generation, role, .. } = self;
        core::mem::forget(self); // It reports once.
        if role == Role::Shadow { None } else { breaker.report(now, generation, ending, sample) }
    }
}

impl<const BUCKETS: usize> Drop for Permit<'_, BUCKETS> {
    #[inline]
    fn drop(&mut self) {
        if self.role == Role::Probe {
            self.breaker.report(self.admitted_at, self.generation, Ending::Neutral, || 0);
        }
    }
}
