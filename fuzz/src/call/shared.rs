//! What calls share, as naive models, and what an operator should have been told.

use holdoff::{CountersSnapshot, Instant};

use crate::model::breaker::{Breaker, Change, Ending, Role, Ticket};
use crate::model::budget::{Budget, RETRY, second};
use crate::model::limiter::Bucket;

pub(super) struct Shared {
    pub(super) breaker: Option<Breaker>,
    pub(super) budget: Option<Budget>,
    pub(super) limiter: Option<Bucket>,
    pub(super) counts: Counts,
}

/// Counted beside [`CountersSnapshot`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) attempts: u64,
    pub(super) successes: u64,
    pub(super) throttles: u64,
    pub(super) probes: u64,
    pub(super) opens: u64,
    pub(super) reopens: u64,
    pub(super) stops: u64,
}

impl Shared {
    pub(super) fn report(&mut self, now: Instant, ticket: Option<Ticket>, ending: Ending) {
        let Some((ticket, breaker)) = ticket.zip(self.breaker.as_mut()) else { return };
        let change = breaker.report(now, ticket, ending);
        self.counts.opens += u64::from(matches!(change, Some(Change::Opened(_))));
        self.counts.reopens += u64::from(matches!(change, Some(Change::Reopened(_))));
    }

    /// An attempt starts, a call's first or another.
    pub(super) fn count_attempt(&mut self, is_first: bool, ticket: Option<Ticket>) {
        self.counts.attempts += 1;
        self.counts.calls += u64::from(is_first);
        self.counts.probes += u64::from(ticket.is_some_and(|ticket| ticket.role == Role::Probe));
    }

    pub(super) const fn count_stop(&mut self, attempts: u32) {
        self.counts.stops += 1;
        if attempts == 0 {
            self.counts.calls += 1;
        }
    }

    /// Whether the models have left the range in which they promise to be exact.
    pub(super) fn is_out_of_range(&self, now: Instant) -> bool {
        self.budget.is_some_and(|budget| budget.is_too_far(now))
            || self.breaker.as_ref().is_some_and(|breaker| breaker.has_wrapped(now))
    }

    /// Retries sent are at most the reserve, the share of the calls, and what trickled in.
    pub(super) fn check_retries(&self, reserve: i128, firsts: u64, latest: Instant) {
        let Some(budget) = self.budget else { return };
        let retries = i128::from(self.counts.attempts - firsts);
        let calls = i128::from(firsts) * i128::from(budget.ratio_ppm);
        let trickled = second(latest) * i128::from(budget.trickle_ppm);
        assert!(retries * RETRY <= reserve * RETRY + calls + trickled, "budget overdrawn");
    }
}

impl From<CountersSnapshot> for Counts {
    fn from(snapshot: CountersSnapshot) -> Self {
        let stops = snapshot.stops;
        Self {
            calls: snapshot.calls,
            attempts: snapshot.attempts,
            successes: snapshot.successes,
            throttles: snapshot.throttles,
            probes: snapshot.probes,
            opens: snapshot.opens,
            reopens: snapshot.reopens,
            stops: stops.attempts
                + stops.budget
                + stops.circuit_open
                + stops.cost_too_high
                + stops.deadline
                + stops.hint_too_long
                + stops.not_idempotent
                + stops.permanent
                + stops.quota,
        }
    }
}
