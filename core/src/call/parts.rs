//! What a call shares with others, each part with a table of what is asked of it: what no call of a
//! program is given, the program need not contain.
//!
//! A `match` on an option would name the code of every part in every program. Where a table is
//! asked only after a short look at the part itself, the look answers in the common case.

use core::fmt;

use super::event::Observer;
use super::limits::{Limits, TollTable};
use super::watch::Watcher;
use crate::budget::{BudgetEmpty, RetryBudget};
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::time::Instant;
use crate::wide::INLINES;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(super) policy: &'a Policy,
    pub(super) budget: Option<Purse<'a>>,
    pub(super) limiter: Option<&'a Limiter>,
    /// If there is a limiter, or limits.
    pub(super) tolls: Option<&'static TollTable>,
    /// What an attempt takes from the limiter.
    pub(super) cost: u32,
    pub(super) watcher: Option<Watcher<'a>>,
    /// Beside the limiter of its own.
    pub(super) limits: Option<&'a Limits<'a>>,
}

impl<'a> Parts<'a> {
    pub(crate) const fn new(policy: &'a Policy) -> Self {
        Self {
            policy,
            budget: None,
            limiter: None,
            tolls: None,
            cost: 1,
            watcher: None,
            limits: None,
        }
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

    pub(crate) const fn with_limits(self, limits: &'a Limits<'a>) -> Self {
        Self { limits: Some(limits), tolls: Some(&TollTable::ALL), ..self }
    }

    pub(crate) const fn with_observer(self, observer: &'a dyn Observer) -> Self {
        Self { watcher: Some(Watcher::new(observer)), ..self }
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
