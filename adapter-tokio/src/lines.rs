//! Several limits at once, and the lines at each.

use holdoff::drive::{Queue, QueueFull};
use holdoff::{Clock, Refusal};

use crate::limiter::FairLimiter;
use crate::line::Head;
use crate::timer::TokioTimer;

/// A limiter and what each attempt takes from it.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    limiter: &'a FairLimiter,
    cost: u32,
}

impl<'a> Limit<'a> {
    /// `cost` tokens of `limiter`; 0 is free.
    #[must_use]
    pub const fn new(limiter: &'a FairLimiter, cost: u32) -> Self {
        Self { limiter, cost }
    }

    pub(crate) const fn toll(&self) -> holdoff::Limit<'a> {
        holdoff::Limit::new(self.limiter.limiter(), self.cost)
    }

    /// When its tokens are there, if they are not and can be.
    fn missing(&self) -> Option<holdoff::Instant> {
        match self.limiter.limiter().peek(TokioTimer.now(), self.cost) {
            Err(Refusal::NotYet { until }) => Some(until),
            Ok(()) | Err(Refusal::Never { .. }) => None,
        }
    }
}

/// The lines at a call's limits, the narrowest first, and at its own limiter.
///
/// Whoever waits for a narrow limit is in no line at a wider one: of each tenant only the head ever
/// stands in everybody's line.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    limits: &'a [Limit<'a>],
    own: Option<&'a FairLimiter>,
}

/// The head of each line.
#[derive(Debug)]
pub(crate) struct Heads<'a> {
    _heads: Vec<Head<'a>>,
    _own: Option<Head<'a>>,
}

impl<'a> Lines<'a> {
    pub(crate) const fn new(limits: &'a [Limit<'a>], own: Option<&'a FairLimiter>) -> Self {
        Self { limits, own }
    }

    /// All but the widest, at which the driver waits.
    const fn narrow(&self) -> &[Limit<'a>] {
        match (self.own, self.limits.split_last()) {
            (None, Some((_, narrow))) => narrow,
            _ => self.limits,
        }
    }

    fn widest(&self) -> Option<&'a FairLimiter> {
        self.own.or_else(|| self.limits.last().map(|limit| limit.limiter))
    }
}

impl<'a> Queue for Lines<'a> {
    type Place = Heads<'a>;

    async fn join(&self) -> Result<Heads<'a>, QueueFull> {
        let mut heads = Vec::new();
        for (number, limit) in self.limits.iter().enumerate() {
            if limit.cost == 0 {
                continue;
            }
            heads.push(limit.limiter.line().join().await?);
            if number < self.narrow().len() {
                while let Some(until) = limit.missing() {
                    limit.limiter.sleep_until(until).await;
                }
            }
        }
        let own = match self.own {
            Some(own) => Some(own.line().join().await?),
            None => None,
        };
        Ok(Heads { _heads: heads, _own: own })
    }

    async fn changed(&self) {
        match self.widest() {
            Some(limiter) => limiter.line().changed().await,
            None => core::future::pending().await,
        }
    }

    fn throttled(&self, heads: Heads<'a>) -> Option<Heads<'a>> {
        // Nobody is to wait behind it at the wide limit for a token of the narrow one.
        self.narrow().iter().all(|limit| limit.missing().is_none()).then_some(heads)
    }
}
