//! A call's circuit breaker, behind a table of what is asked of it.

use core::fmt;

use super::Call;
use super::machine::{Machine, State};
use super::sample::Sample;
use super::step::Stop;
use crate::breaker::{CircuitBreaker, Ending, Refusal, Ticket};
use crate::time::Instant;
use crate::wide::INLINES;

/// A circuit breaker and what it does to a call.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'a, const BUCKETS: usize> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    table: &'static GuardTable<BUCKETS>,
}

struct GuardTable<const BUCKETS: usize> {
    admits: fn(&CircuitBreaker<BUCKETS>, &mut Machine<'_>, u64) -> bool,
    refuses: fn(&CircuitBreaker<BUCKETS>, &mut Machine<'_>) -> bool,
    refuses_at: fn(&CircuitBreaker<BUCKETS>, &mut Machine<'_>, Instant) -> bool,
    release: fn(&CircuitBreaker<BUCKETS>, &Machine<'_>),
    report: fn(&CircuitBreaker<BUCKETS>, &Machine<'_>, Ending, &mut dyn Sample),
    would_admit: fn(&CircuitBreaker<BUCKETS>, Instant) -> bool,
}

impl<'a, const BUCKETS: usize> Guard<'a, BUCKETS> {
    pub(crate) const fn new(breaker: &'a CircuitBreaker<BUCKETS>) -> Self {
        Self { breaker, table: Self::TABLE }
    }

    const TABLE: &'static GuardTable<BUCKETS> = &GuardTable {
        admits: |breaker, machine, timeout| match breaker.admit_within(machine.now, timeout) {
            Ok(ticket) => {
                machine.state = State::InFlight { ticket: Some(ticket) };
                true
            }
            Err(refusal) => {
                machine.parts.refund();
                !machine.is_stopped_by(Some(refusal))
            }
        },
        refuses: |breaker, machine| machine.is_stopped_by(breaker.look(machine.now)),
        refuses_at: |breaker, machine, then| machine.is_stopped_by(breaker.look_ahead(then)),
        release: |breaker, machine| {
            if let Some(ticket) = machine.state.ticket() {
                breaker.release(ticket);
            }
        },
        report: |breaker, machine, ending, sample| {
            let Some(ticket) = machine.state.ticket() else { return };
            let judged = breaker.judged(machine.now, ticket, ending);
            if !INLINES && breaker.is_at_rest(ticket, judged) {
                return;
            }
            if let Some(change) = breaker.report(machine.now, ticket, judged, sample.draw()) {
                machine.tell_change(change);
            }
        },
        would_admit: |breaker, now| breaker.look(now).is_none(),
    };
}

impl<const BUCKETS: usize> Call<'_, BUCKETS> {
    /// Fails fast, and without waiting in a line first; takes nothing.
    #[inline]
    pub(super) fn is_stopped_by_breaker(&mut self) -> bool {
        let Some(Guard { breaker, table }) = self.guard else { return false };
        !(INLINES && breaker.is_healthy()) && (table.refuses)(breaker, &mut self.machine)
    }

    /// Takes a ticket for an attempt, if there is a breaker. If there is none to have, the call has
    /// stopped.
    #[inline]
    pub(super) fn takes_ticket(&mut self, timeout: u64) -> bool {
        let Some(Guard { breaker, table }) = self.guard else { return true };
        if INLINES && let Some(ticket) = breaker.ticket_if_healthy(self.machine.now) {
            self.machine.state = State::InFlight { ticket: Some(ticket) };
            return true;
        }
        (table.admits)(breaker, &mut self.machine, timeout)
    }

    /// Tells the breaker how the attempt ended; the state must change after it.
    #[inline]
    pub(super) fn report_to_breaker(&self, ending: Ending, sample: &mut dyn Sample) {
        let Some(Guard { breaker, table }) = self.guard else { return };
        let (now, ticket) = (self.machine.now, self.machine.state.ticket());
        if INLINES && ticket.is_none_or(|ticket| breaker.is_unmoved(now, ticket, ending)) {
            return;
        }
        (table.report)(breaker, &self.machine, ending, sample);
    }

    /// Gives the ticket back, if there is one, without a report; the state must change after it.
    #[inline]
    pub(super) fn release_ticket(&self) {
        if let Some(Guard { breaker, table }) = self.guard
            && matches!(self.machine.state, State::InFlight { .. })
        {
            (table.release)(breaker, &self.machine);
        }
    }

    /// Whether it has stopped, as a wait until `then` could only end in a refusal.
    pub(super) fn is_refused_by_breaker(&mut self, then: Instant) -> bool {
        let Some(Guard { breaker, table }) = self.guard else { return false };
        (table.refuses_at)(breaker, &mut self.machine, then)
    }

    pub(super) fn breaker_would_admit(&self, now: Instant) -> bool {
        self.guard.is_none_or(|guard| (guard.table.would_admit)(guard.breaker, now))
    }
}

impl Machine<'_> {
    /// Whether it has stopped, a breaker refusing it.
    #[cold]
    #[inline(never)]
    fn is_stopped_by(&mut self, refusal: Option<Refusal>) -> bool {
        let Some(refusal) = refusal else { return false };
        let retry_at = refusal.retry_at();
        let stop = Stop::CircuitOpen { retry_at: retry_at.unwrap_or(Instant::MAX) };
        let known = retry_at.filter(|_| !refusal.is_probing());
        self.stop_until(stop, known.map(|at| self.wait_until(at)));
        true
    }
}

impl State {
    /// Of the attempt in flight.
    pub(super) const fn ticket(&self) -> Option<Ticket> {
        match *self {
            Self::InFlight { ticket } => ticket,
            _ => None,
        }
    }
}

impl<const BUCKETS: usize> fmt::Debug for Guard<'_, BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.breaker.fmt(f)
    }
}
