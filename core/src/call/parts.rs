//! What a call shares with others, each part with a table of what is asked of it: what no call of a
//! program is given, the program need not contain.
//!
//! A `match` on an option would name the code of every part in every program. Where a table is
//! asked only after a short look at the part itself, the look answers in the common case.

use core::fmt;
use core::time::Duration;

use super::event::Observer;
use super::limits::TollTable;
use crate::breaker::{BreakerChange, CircuitBreaker, CircuitOpen, Ending, Ticket};
use crate::budget::{BudgetEmpty, RetryBudget};
use crate::limiter::Limiter;
use crate::time::Instant;

/// Whether a short look inlined is worth its code.
const INLINES: bool = cfg!(target_pointer_width = "64");

#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a, const BUCKETS: usize> {
    pub(super) breaker: Option<Guard<'a, BUCKETS>>,
    pub(super) budget: Option<Purse<'a>>,
    pub(super) limiter: Option<&'a Limiter>,
    /// If there is a limiter, or limits.
    pub(super) tolls: Option<&'static TollTable>,
    pub(super) observer: Option<&'a dyn Observer>,
}

impl<'a, const BUCKETS: usize> Parts<'a, BUCKETS> {
    pub(crate) const NONE: Self =
        Self { breaker: None, budget: None, limiter: None, tolls: None, observer: None };

    pub(crate) const fn with_breaker(self, breaker: &'a CircuitBreaker<BUCKETS>) -> Self {
        Self { breaker: Some(Guard { breaker, table: Guard::<BUCKETS>::TABLE }), ..self }
    }

    pub(crate) const fn with_budget(self, budget: &'a RetryBudget) -> Self {
        Self { budget: Some(Purse { budget, table: &PURSE }), ..self }
    }

    pub(crate) const fn with_limiter(self, limiter: &'a Limiter) -> Self {
        let tolls = match self.tolls {
            Some(tolls) => tolls,
            None => &TollTable::OWN,
        };
        Self { limiter: Some(limiter), tolls: Some(tolls), ..self }
    }

    pub(crate) const fn with_observer(self, observer: &'a dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }
}

/// A circuit breaker.
#[derive(Clone, Copy)]
pub(super) struct Guard<'a, const BUCKETS: usize> {
    breaker: &'a CircuitBreaker<BUCKETS>,
    table: &'static GuardTable<BUCKETS>,
}

type Admitted = Result<Ticket, CircuitOpen>;

struct GuardTable<const BUCKETS: usize> {
    admit: fn(&CircuitBreaker<BUCKETS>, Instant, Option<Duration>) -> Admitted,
    is_unmoved: fn(&CircuitBreaker<BUCKETS>, Instant, Ticket, Ending) -> bool,
    peek: fn(&CircuitBreaker<BUCKETS>, Instant) -> Result<(), CircuitOpen>,
    refuses_at: fn(&CircuitBreaker<BUCKETS>, Instant) -> Option<CircuitOpen>,
    release: fn(&CircuitBreaker<BUCKETS>, Ticket),
    report: fn(&CircuitBreaker<BUCKETS>, Instant, Ticket, Ending, u64) -> Option<BreakerChange>,
}

impl<const BUCKETS: usize> Guard<'_, BUCKETS> {
    const TABLE: &'static GuardTable<BUCKETS> = &GuardTable {
        admit: CircuitBreaker::admit_within,
        is_unmoved: CircuitBreaker::is_unmoved,
        peek: CircuitBreaker::peek,
        refuses_at: CircuitBreaker::refuses_at,
        release: CircuitBreaker::release,
        report: CircuitBreaker::report_ending,
    };

    #[inline]
    pub(super) fn admit(self, now: Instant, timeout: Option<Duration>) -> Admitted {
        if INLINES && let Some(ticket) = self.breaker.ticket_if_healthy(now) {
            return Ok(ticket);
        }
        (self.table.admit)(self.breaker, now, timeout)
    }

    #[inline]
    pub(super) fn peek(self, now: Instant) -> Result<(), CircuitOpen> {
        if INLINES { self.breaker.peek(now) } else { (self.table.peek)(self.breaker, now) }
    }

    pub(super) fn refuses_at(self, then: Instant) -> Option<CircuitOpen> {
        (self.table.refuses_at)(self.breaker, then)
    }

    pub(super) fn release(self, ticket: Ticket) {
        (self.table.release)(self.breaker, ticket);
    }

    #[inline]
    pub(super) fn report(
        self,
        now: Instant,
        ticket: Ticket,
        ending: Ending,
        sample: impl FnOnce() -> u64,
    ) -> Option<BreakerChange> {
        let is_unmoved = if INLINES {
            self.breaker.is_unmoved(now, ticket, ending)
        } else {
            (self.table.is_unmoved)(self.breaker, now, ticket, ending)
        };
        if is_unmoved {
            return None;
        }
        (self.table.report)(self.breaker, now, ticket, ending, sample())
    }
}

impl<const BUCKETS: usize> fmt::Debug for Guard<'_, BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.breaker.fmt(f)
    }
}

/// A retry budget.
#[derive(Clone, Copy)]
pub(super) struct Purse<'a> {
    budget: &'a RetryBudget,
    table: &'static PurseTable,
}

struct PurseTable {
    deposit: fn(&RetryBudget),
    refund: fn(&RetryBudget),
    withdraw: fn(&RetryBudget, Instant) -> Result<(), BudgetEmpty>,
}

static PURSE: PurseTable = PurseTable {
    deposit: RetryBudget::deposit,
    refund: RetryBudget::refund,
    withdraw: RetryBudget::withdraw,
};

impl Purse<'_> {
    #[inline]
    pub(super) fn deposit(self) {
        if INLINES { self.budget.deposit() } else { (self.table.deposit)(self.budget) }
    }

    pub(super) fn refund(self) {
        (self.table.refund)(self.budget);
    }

    pub(super) fn withdraw(self, now: Instant) -> Result<(), BudgetEmpty> {
        (self.table.withdraw)(self.budget, now)
    }
}

impl fmt::Debug for Purse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.budget.fmt(f)
    }
}
