//! The right to make one call, and the duty to say how it ended.

use super::word::{Ending, Role};
use super::{BreakerChange, CircuitBreaker};
use crate::time::Instant;

/// The right to make one call; reports how it ended.
///
/// Dropping it without a report frees the place of a probe at once and counts as nothing: a
/// cancelled call is no evidence.
#[derive(Debug)]
#[must_use = "dropping a permit says that the call was not made"]
pub struct Permit<'a, const BUCKETS: usize = 0> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    ticket: Ticket,
}

/// What a breaker must hear again when the call ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(super) admitted_at: Instant,
    pub(super) generation: u16,
    pub(crate) role: Role,
}

impl<'a, const BUCKETS: usize> Permit<'a, BUCKETS> {
    #[inline]
    pub(super) const fn new(breaker: &'a CircuitBreaker<BUCKETS>, ticket: Ticket) -> Self {
        Self { breaker, ticket }
    }

    /// Whether this is the one call that finds out if the service is back.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        matches!(self.ticket.role, Role::Probe)
    }

    /// Whether the breaker, run in [`Mode::Shadow`](super::Mode::Shadow), would have refused.
    #[must_use]
    pub const fn would_be_refused(&self) -> bool {
        matches!(self.ticket.role, Role::Shadow)
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
        self.report(now, Ending::Success, sample)
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
        let Self { breaker, ticket } = self;
        core::mem::forget(self); // It reports once.
        if breaker.is_unmoved(now, ticket, ending) {
            return None;
        }
        let judged = breaker.judged(now, ticket, ending);
        breaker.report(now, ticket, judged, sample())
    }
}

impl<const BUCKETS: usize> Drop for Permit<'_, BUCKETS> {
    #[inline]
    fn drop(&mut self) {
        self.breaker.release(self.ticket);
    }
}
