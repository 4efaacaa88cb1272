//! A call's circuit breaker, behind a table of what is asked of it.

use core::fmt;
use core::time::Duration;

use super::event::{AttemptKind, Event};
use super::limits::Toll;
use super::parts::INLINES;
use super::step::{Step, Stop};
use super::{Call, State, Stopped};
use crate::breaker::{BreakerChange, CircuitBreaker, Ending, Refusal, Role, Ticket};
use crate::time::{Instant, duration};

/// A circuit breaker and what it does to a call.
#[derive(Clone, Copy)]
pub(super) struct Guard<'a, const BUCKETS: usize> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    table: &'static GuardTable<BUCKETS>,
}

struct GuardTable<const BUCKETS: usize> {
    admit: fn(&mut Call<'_, BUCKETS>, Instant, Option<Duration>) -> Option<Step>,
    look: fn(&mut Call<'_, BUCKETS>, Instant) -> Option<Step>,
    look_ahead: fn(&mut Call<'_, BUCKETS>, Instant, Instant) -> Option<Step>,
    release: fn(&CircuitBreaker<BUCKETS>, Ticket),
    /// Whether it needs a sample and has none.
    report: fn(&mut Call<'_, BUCKETS>, Instant, Ending, Option<u64>) -> bool,
    would_admit: fn(&CircuitBreaker<BUCKETS>, Instant) -> bool,
}

impl<'a, const BUCKETS: usize> Guard<'a, BUCKETS> {
    pub(super) const fn new(breaker: &'a CircuitBreaker<BUCKETS>) -> Self {
        Self { breaker, table: Self::TABLE }
    }

    const TABLE: &'static GuardTable<BUCKETS> = &GuardTable {
        admit,
        look: |call, now| {
            let Guard { breaker, .. } = call.parts.breaker?;
            call.stopped_by(now, breaker.look(now))
        },
        look_ahead: |call, now, then| {
            let Guard { breaker, .. } = call.parts.breaker?;
            call.stopped_by(now, breaker.look_ahead(then))
        },
        release: CircuitBreaker::release,
        report,
        would_admit: |breaker, now| breaker.look(now).is_none(),
    };
}

impl<const BUCKETS: usize> Call<'_, BUCKETS> {
    /// Fails fast, and without waiting in a line first; takes nothing.
    #[inline]
    pub(super) fn stopped_by_breaker(&mut self, now: Instant) -> Option<Step> {
        let Guard { breaker, table } = self.parts.breaker?;
        if INLINES && breaker.is_healthy() {
            return None;
        }
        (table.look)(self, now)
    }

    /// Takes a ticket for an attempt, if there is a breaker.
    #[inline]
    pub(super) fn take_ticket(&mut self, now: Instant, timeout: Option<Duration>) -> Option<Step> {
        let Guard { breaker, table } = self.parts.breaker?;
        if INLINES && let Some(ticket) = breaker.ticket_if_healthy(now) {
            self.state = State::InFlight { ticket: Some(ticket) };
            return None;
        }
        (table.admit)(self, now, timeout)
    }

    /// Of the attempt in flight.
    const fn ticket(&self) -> Option<Ticket> {
        match self.state {
            State::InFlight { ticket } => ticket,
            _ => None,
        }
    }

    /// Tells the breaker how the attempt ended; the state must change after it.
    #[inline]
    pub(super) fn report_to_breaker(
        &mut self,
        now: Instant,
        ending: Ending,
        sample: impl FnOnce() -> u64,
    ) {
        let Some(Guard { breaker, table }) = self.parts.breaker else { return };
        let needs_sample = if INLINES {
            let is_unmoved = |ticket| breaker.is_unmoved(now, ticket, ending);
            !self.ticket().is_none_or(is_unmoved)
        } else {
            (table.report)(self, now, ending, None)
        };
        if needs_sample {
            (table.report)(self, now, ending, Some(sample()));
        }
    }

    /// Gives the ticket back, if there is one, without a report; the state must change after it.
    #[inline]
    pub(super) fn release_ticket(&mut self) {
        if let Some(Guard { breaker, table }) = self.parts.breaker
            && let Some(ticket) = self.ticket()
        {
            (table.release)(breaker, ticket);
        }
    }

    /// A wait until `then` that can only end in a refusal is not begun.
    pub(super) fn refused_by_breaker(&mut self, now: Instant, then: Instant) -> Option<Step> {
        let Guard { table, .. } = self.parts.breaker?;
        (table.look_ahead)(self, now, then)
    }

    pub(super) fn breaker_would_admit(&self, now: Instant) -> bool {
        self.parts.breaker.is_none_or(|guard| (guard.table.would_admit)(guard.breaker, now))
    }

    /// What the breaker made of the attempt.
    pub(super) fn kind(&self) -> AttemptKind {
        self.ticket().map_or(AttemptKind::Ordinary, |ticket| match ticket.role {
            Role::Call => AttemptKind::Ordinary,
            Role::Probe => AttemptKind::Probe,
            Role::Shadow => AttemptKind::Shadow,
        })
    }

    #[cold]
    #[inline(never)]
    fn tell_change(&self, now: Instant, change: BreakerChange) {
        self.tell(now, Event::Breaker(change));
    }

    /// The end of a call that a breaker refuses.
    #[cold]
    #[inline(never)]
    fn stopped_by(&mut self, now: Instant, refusal: Option<Refusal>) -> Option<Step> {
        let refusal = refusal?;
        let retry_at = refusal.retry_at();
        let stop = Stop::CircuitOpen { retry_at: retry_at.unwrap_or(Instant::MAX) };
        let known = retry_at.filter(|_| !refusal.is_probing());
        // OK: it is refused now, or from now on, until then.
        let retry_after = known.map(|at| duration(at.as_nanos() - now.as_nanos()));
        Some(self.stop(now, Stopped::until(stop, retry_after)))
    }
}

/// Takes a ticket, or gives back what was taken before.
fn admit<const BUCKETS: usize>(
    call: &mut Call<'_, BUCKETS>,
    now: Instant,
    timeout: Option<Duration>,
) -> Option<Step> {
    let Guard { breaker, .. } = call.parts.breaker?;
    match breaker.admit_within(now, timeout) {
        Ok(ticket) => {
            call.state = State::InFlight { ticket: Some(ticket) };
            None
        }
        Err(refusal) => {
            call.toll().into_iter().for_each(Toll::refund);
            call.stopped_by(now, Some(refusal))
        }
    }
}

/// Whether it needs a sample and has none; with one it is done.
fn report<const BUCKETS: usize>(
    call: &mut Call<'_, BUCKETS>,
    now: Instant,
    ending: Ending,
    sample: Option<u64>,
) -> bool {
    let (Some(Guard { breaker, .. }), Some(ticket)) = (call.parts.breaker, call.ticket()) else {
        return false;
    };
    let judged = breaker.judged(now, ticket, ending);
    let Some(sample) = sample else { return !breaker.is_at_rest(ticket, judged) };
    if let Some(change) = breaker.report(now, ticket, judged, sample) {
        call.tell_change(now, change);
    }
    false
}

impl<const BUCKETS: usize> fmt::Debug for Guard<'_, BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.breaker.fmt(f)
    }
}
