//! What an attempt takes from limiters before it starts: all of it or nothing.

use core::ptr;
use core::time::Duration;

use super::Step;
use super::machine::Machine;
use super::parts::Parts;
use crate::limiter::{Limiter, Refusal};
use crate::outcome::{Class, Failure, Hint};
use crate::time::{Instant, saturating_nanos};

/// A limiter and what each attempt takes from it.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    limiter: &'a Limiter,
    cost: u32,
}

impl<'a> Limit<'a> {
    /// `cost` tokens of `limiter`; 0 is free.
    #[must_use]
    pub const fn new(limiter: &'a Limiter, cost: u32) -> Self {
        Self { limiter, cost }
    }

    /// Whose tokens they are.
    #[must_use]
    pub const fn limiter(&self) -> &'a Limiter {
        self.limiter
    }

    /// How many there are.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    fn refund(&self) {
        self.limiter.refund(self.cost);
    }

    fn is_worth_a_wait(&self) -> bool {
        // The time does not matter to what can never be had.
        let seen = self.limiter.peek(Instant::EPOCH, self.cost);
        self.cost > 0 && !matches!(seen, Err(Refusal::Never { .. }))
    }
}

/// Limits that hold at once: dimensions, such as requests and tokens, or scopes, such as a tenant
/// and all tenants together, the narrowest first.
///
/// ```
/// use holdoff::{
///     Call, Instant, Limit, Limiter, Limits, Policy, Quota, Rate, Safety, Step, valid,
/// };
///
/// static REQUESTS: Limiter = Limiter::new(valid!(Quota::new(Rate::per_minute(60), 5)));
/// static TOKENS: Limiter = Limiter::new(valid!(Quota::new(Rate::per_minute(60_000), 1_000)));
///
/// let both = [Limit::new(&REQUESTS, 1), Limit::new(&TOKENS, 800)];
/// let (both, now) = (Limits::new(&both), Instant::EPOCH);
/// let mut call = Call::new(&Policy::LLM, Safety::Idempotent, now).with_limits(&both);
/// assert!(matches!(call.poll(now, || 0), Step::Attempt(_)));
///
/// // There are requests left for the next one, but no tokens: it takes neither.
/// let mut next = Call::new(&Policy::LLM, Safety::Idempotent, now).with_limits(&both);
/// assert!(matches!(next.poll(now, || 0), Step::Throttled { .. }));
/// assert_eq!((REQUESTS.available(now), TOKENS.available(now)), (4, 200));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a>(&'a [Limit<'a>]);

impl<'a> Limits<'a> {
    /// All of `limits`, in this order.
    #[must_use]
    pub const fn new(limits: &'a [Limit<'a>]) -> Self {
        Self(limits)
    }
}

/// What an attempt takes: there is one for calls with limits, and one for those without.
#[derive(Debug)]
pub(super) struct TollTable {
    is_worth_a_wait: fn(&Parts<'_>) -> bool,
    pause: fn(&Parts<'_>, Instant, &Failure),
    refund: fn(&Parts<'_>),
    take: fn(&mut Machine<'_>) -> Option<Step>,
}

impl TollTable {
    /// From the limiter of the call's own.
    pub(super) const OWN: Self = Self {
        is_worth_a_wait: |parts| parts.own().is_some_and(|own| own.is_worth_a_wait()),
        pause: |parts, now, failure| {
            parts.limiter.into_iter().for_each(|own| parts.pause(own, now, failure));
        },
        refund: |parts| parts.own().into_iter().for_each(|own| own.refund()),
        take: |machine| {
            let own = machine.parts.own()?;
            let refusal = own.limiter.try_acquire(machine.now, own.cost).err()?;
            Some(machine.refused(refusal))
        },
    };

    /// From limits, and that limiter.
    pub(super) const ALL: Self = Self {
        is_worth_a_wait: |parts| {
            parts.all().any(|limit| limit.cost > 0) && parts.impossible().is_none()
        },
        pause: |parts, now, failure| {
            // What a server says is about the call's own limiter, or the widest limit.
            parts.all().last().into_iter().for_each(|all| parts.pause(all.limiter, now, failure));
        },
        refund: |parts| parts.all().for_each(|limit| limit.refund()),
        take: |machine| {
            let refusal = machine.parts.take_all(machine.now).err()?;
            Some(machine.refused(refusal))
        },
    };
}

impl Machine<'_> {
    /// Takes from all or from none: what to do where that is refused.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Step> {
        (self.parts.tolls?.take)(self)
    }
}

impl<'a> Parts<'a> {
    fn own(&self) -> Option<Limit<'a>> {
        self.limiter.map(|limiter| Limit::new(limiter, self.cost))
    }

    /// Everything that an attempt takes: from the limits, then from the limiter of the call's own.
    fn all(&self) -> impl Iterator<Item = Limit<'a>> {
        let limits = self.limits.map_or(&[][..], |limits| limits.0);
        limits.iter().copied().chain(self.own())
    }

    fn take_all(&self, now: Instant) -> Result<(), Refusal> {
        if let Some(burst) = self.impossible() {
            return Err(Refusal::Never { burst }); // Before a wait for another.
        }
        for (number, limit) in self.all().enumerate() {
            if let Err(refusal) = limit.limiter.try_acquire(now, limit.cost) {
                self.all().take(number).for_each(|limit| limit.refund());
                return Err(refusal);
            }
        }
        Ok(())
    }

    pub(super) fn refund(&self) {
        if let Some(table) = self.tolls {
            (table.refund)(self);
        }
    }

    /// Whether it may have to be waited for, and can be had.
    pub(super) fn is_worth_a_wait(&self) -> bool {
        self.tolls.is_some_and(|table| (table.is_worth_a_wait)(self))
    }

    /// Others need not find out one by one that a server throttles: they wait for its hint, or for
    /// the longest that is obeyed.
    pub(super) fn throttle(&self, now: Instant, failure: &Failure) {
        if let Some(table) = self.tolls {
            (table.pause)(self, now, failure);
        }
    }

    fn pause(&self, limiter: &Limiter, now: Instant, failure: &Failure) {
        let (Class::Throttled, Hint::After { delay, .. }) = (failure.class, failure.hint) else {
            return;
        };
        // An endless hint is no time to come back, and must not stop everybody for ever.
        if !delay.is_zero() && delay != Duration::MAX {
            let most = self.policy.max_hint_nanos();
            limiter.pause_until(now.later(saturating_nanos(delay).min(most)));
        }
    }

    /// A burst below what is taken from its limiter, which may be named more than once.
    fn impossible(&self) -> Option<u32> {
        self.all().find_map(|limit| {
            let same = self.all().filter(|other| ptr::eq(limit.limiter, other.limiter));
            let cost = same.fold(0_u32, |sum, other| sum.saturating_add(other.cost));
            let burst = limit.limiter.quota().burst();
            (cost > burst).then_some(burst)
        })
    }
}
