//! Several limits at once, and the lines at each.

use core::future::pending;
use core::ptr;

use holdoff::drive::{Queue, QueueFull};
use holdoff::{Clock, Instant, Refusal};
use smallvec::SmallVec;

use crate::limiter::FairLimiter;
use crate::line::Head;
use crate::timer::TokioTimer;

/// A limiter and what each attempt takes from it.
///
/// ```
/// use holdoff_tokio::{FairLimiter, Limit, Quota, Rate, valid};
///
/// static TOKENS: FairLimiter =
///     FairLimiter::new(valid!(Quota::new(Rate::per_minute(30_000), 1_000)));
/// let estimate = Limit::new(&TOKENS, 800);
/// # let _ = estimate;
/// ```
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
    fn missing(&self) -> Option<Instant> {
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
    own: Option<Limit<'a>>,
}

/// The head of each line that is joined so far; `None` where there is none to join.
#[derive(Debug, Default)]
pub(crate) struct Heads<'a>(SmallVec<[Option<Head<'a>>; 4]>);

impl<'a> Lines<'a> {
    pub(crate) const fn new(limits: &'a [Limit<'a>], own: Option<Limit<'a>>) -> Self {
        Self { limits, own }
    }

    fn all(&self) -> impl Iterator<Item = Limit<'a>> {
        self.limits.iter().copied().chain(self.own)
    }

    fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether a limiter is named before the `number`th, too: its line is joined once.
    fn is_joined_before(&self, number: usize, limit: Limit<'a>) -> bool {
        self.all().take(number).any(|other| ptr::eq(other.limiter, limit.limiter))
    }
}

impl<'a> Queue for Lines<'a> {
    type Place = Heads<'a>;

    async fn join(&self, heads: Option<Heads<'a>>) -> Result<Heads<'a>, QueueFull> {
        let mut heads = heads.unwrap_or_default();
        for (number, limit) in self.all().enumerate().skip(heads.0.len()) {
            let is_free = limit.cost == 0 || self.is_joined_before(number, limit);
            heads.0.push(if is_free { None } else { Some(limit.limiter.line().join().await?) });
            if self.missing(&heads).is_some() {
                break; // Nobody is to wait behind it at a wider limit meanwhile.
            }
        }
        Ok(heads)
    }

    fn missing(&self, heads: &Heads<'a>) -> Option<Instant> {
        // Who has joined all lines asks the call.
        let last = self.all().nth(heads.0.len().checked_sub(1)?)?;
        if heads.0.len() < self.len() { last.missing() } else { None }
    }

    fn throttled(&self, mut heads: Heads<'a>) -> Heads<'a> {
        let short = self.all().take(heads.0.len()).position(|limit| limit.missing().is_some());
        if let Some(short) = short {
            heads.0.truncate(short + 1);
        }
        heads
    }

    async fn changed(&self, heads: &Heads<'a>) {
        let last = heads.0.len().checked_sub(1).and_then(|last| self.all().nth(last));
        match last {
            Some(last) => last.limiter.line().changed().await,
            None => pending().await,
        }
    }
}
