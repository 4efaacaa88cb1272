//! A call's circuit breaker, behind a table of what is asked of it.

use core::fmt;
use core::time::Duration;

use super::event::{AttemptKind, Event};
use super::limits::Toll;
use super::parts::INLINES;
use super::step::{Step, Stop};
use super::{Call, State, Stopped};
use crate::breaker::{BreakerChange, CircuitBreaker, CircuitOpen, Ending, Ticket};
use crate::time::Instant;

/// A circuit breaker and what it does to a call.
#[derive(Clone, Copy)]
pub(super) struct Guard<'a, const BUCKETS: usize> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    table: &'static GuardTable<BUCKETS>,
}

/// With what is asked comes the breaker, which the call has, too.
type Asked<'t, const BUCKETS: usize> = (&'t CircuitBreaker<BUCKETS>, Instant);

struct GuardTable<const BUCKETS: usize> {
    admit: fn(&mut Call<'_, BUCKETS>, Asked<'_, BUCKETS>, Option<Duration>) -> Option<Step>,
    is_unmoved: fn(&Call<'_, BUCKETS>, Asked<'_, BUCKETS>, Ending) -> bool,
    kind: fn(Ticket) -> AttemptKind,
    peek: fn(&mut Call<'_, BUCKETS>, Asked<'_, BUCKETS>) -> Option<Step>,
    refuse: fn(&mut Call<'_, BUCKETS>, Asked<'_, BUCKETS>, Instant) -> Option<Step>,
    release: fn(&CircuitBreaker<BUCKETS>, Ticket),
    report: fn(&mut Call<'_, BUCKETS>, Asked<'_, BUCKETS>, Ending, u64),
    would_admit: fn(&CircuitBreaker<BUCKETS>, Instant) -> bool,
}

impl<'a, const BUCKETS: usize> Guard<'a, BUCKETS> {
    pub(super) const fn new(breaker: &'a CircuitBreaker<BUCKETS>) -> Self {
        Self { breaker, table: Self::TABLE }
    }

    const TABLE: &'static GuardTable<BUCKETS> = &GuardTable {
        admit: |call, (breaker, now), timeout| match breaker.admit_within(now, timeout) {
            Ok(ticket) => {
                call.state = State::InFlight { ticket: Some(ticket) };
                None
            }
            Err(open) => {
                call.toll().into_iter().for_each(Toll::refund);
                Some(call.stop_open(now, open))
            }
        },
        is_unmoved: |call, (breaker, now), ending| {
            call.ticket().is_none_or(|ticket| breaker.is_unmoved(now, ticket, ending))
        },
        kind: |ticket| {
            if ticket.is_probe() {
                AttemptKind::Probe
            } else if ticket.would_be_refused() {
                AttemptKind::Shadow
            } else {
                AttemptKind::Ordinary
            }
        },
        peek: |call, (breaker, now)| breaker.peek(now).err().map(|open| call.stop_open(now, open)),
        refuse: |call, (breaker, now), then| {
            breaker.refuses_at(then).map(|open| call.stop_open(now, open))
        },
        release: CircuitBreaker::release,
        report: |call, (breaker, now), ending, sample| {
            let Some(ticket) = call.ticket() else { return };
            if let Some(change) = breaker.report_ending(now, ticket, ending, sample) {
                call.tell_change(now, change);
            }
        },
        would_admit: |breaker, now| breaker.peek(now).is_ok(),
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
        (table.peek)(self, (breaker, now))
    }

    /// Takes a ticket for an attempt, if there is a breaker.
    #[inline]
    pub(super) fn take_ticket(&mut self, now: Instant, timeout: Option<Duration>) -> Option<Step> {
        let Guard { breaker, table } = self.parts.breaker?;
        if INLINES && let Some(ticket) = breaker.ticket_if_healthy(now) {
            self.state = State::InFlight { ticket: Some(ticket) };
            return None;
        }
        (table.admit)(self, (breaker, now), timeout)
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
        let is_unmoved = if INLINES {
            self.ticket().is_none_or(|ticket| breaker.is_unmoved(now, ticket, ending))
        } else {
            (table.is_unmoved)(self, (breaker, now), ending)
        };
        if !is_unmoved {
            (table.report)(self, (breaker, now), ending, sample());
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
        let Guard { breaker, table } = self.parts.breaker?;
        (table.refuse)(self, (breaker, now), then)
    }

    pub(super) fn breaker_would_admit(&self, now: Instant) -> bool {
        self.parts.breaker.is_none_or(|guard| (guard.table.would_admit)(guard.breaker, now))
    }

    /// What the breaker made of the attempt.
    pub(super) fn kind(&self) -> AttemptKind {
        match (self.parts.breaker, self.ticket()) {
            (Some(guard), Some(ticket)) => (guard.table.kind)(ticket),
            _ => AttemptKind::Ordinary,
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_change(&self, now: Instant, change: BreakerChange) {
        self.tell(now, Event::Breaker(change));
    }

    #[cold]
    fn stop_open(&mut self, now: Instant, open: CircuitOpen) -> Step {
        let CircuitOpen { retry_at, is_probing } = open;
        let known = retry_at.filter(|_| !is_probing);
        let retry_after = known.map(|at| at.saturating_duration_since(now));
        let stop = Stop::CircuitOpen { retry_at: retry_at.unwrap_or(Instant::MAX) };
        self.stop(now, Stopped { stop, retry_after })
    }
}

impl<const BUCKETS: usize> fmt::Debug for Guard<'_, BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.breaker.fmt(f)
    }
}
