//! A rate limiter at which tasks wait in line.

use core::future::Future;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use holdoff::drive::{AcquireError, Queue, QueueFull};
use holdoff::{ChangeUnderWay, Clock, Instant, Limiter, Quota, Refusal, Timer};

use crate::line::{Head, Line};
use crate::timer::EmbassyTimer;

/// A rate limiter at which tasks wait in line, first come, first served; `WAITING` of them have
/// room behind the head.
///
/// Only the head of the line sleeps and takes tokens, so a task that stops waiting leaves nothing
/// behind: no token, no place, no debt. A big cost is not overtaken by small ones. A pause or
/// another quota reaches everybody in line.
///
/// Usable through `&self` from any task, and but for [`acquire`](Self::acquire) from any interrupt;
/// share it in a `static`.
///
/// ```
/// use holdoff_embassy::{FairLimiter, Quota, Rate, valid};
///
/// static LIMITER: FairLimiter<4> =
///     FairLimiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
///
/// futures_executor::block_on(LIMITER.acquire(15)).unwrap();
/// assert_eq!(LIMITER.available(), 5);
/// ```
#[derive(Debug)]
pub struct FairLimiter<const WAITING: usize> {
    limiter: Limiter,
    line: Line<WAITING>,
}

impl<const WAITING: usize> FairLimiter<WAITING> {
    /// A limiter with a full bucket and nobody in line.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self { limiter: Limiter::new(quota), line: Line::new() }
    }

    /// Waits in line for `cost` tokens and takes them. A cost of 0 is free and does not wait.
    ///
    /// # Errors
    /// [`AcquireError::CostTooHigh`] at once if `cost` is above the burst, or when the burst
    /// shrinks below it during the wait; [`AcquireError::QueueFull`] at once if `WAITING` are
    /// waiting behind the head. Nothing is taken.
    ///
    /// # Cancel safety
    /// Dropping the future at any point leaves nothing behind: tokens are taken in the very poll
    /// that completes it.
    pub async fn acquire(&self, cost: u32) -> Result<(), AcquireError> {
        // Whoever need not wait takes no place: nobody finds a line in which nobody waits.
        match self.try_acquire(cost) {
            Ok(()) => return Ok(()),
            Err(Refusal::Never { burst }) => return Err(AcquireError::CostTooHigh { burst }),
            Err(Refusal::NotYet { .. }) => {}
        }
        let _head = self.line.join().await?;
        loop {
            match self.limiter.try_acquire(EmbassyTimer.now(), cost) {
                Ok(()) => return Ok(()),
                Err(Refusal::Never { burst }) => return Err(AcquireError::CostTooHigh { burst }),
                Err(Refusal::NotYet { until }) => self.sleep_until(until).await,
            }
        }
    }

    /// As the head of the line: until then, or until something changes.
    async fn sleep_until(&self, until: Instant) {
        let mut changed = pin!(self.line.changed());
        let mut over = pin!(EmbassyTimer.sleep_until(until));
        core::future::poll_fn(|context| match changed.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => over.as_mut().poll(context),
        })
        .await;
    }

    /// Takes `cost` tokens at once, or nothing. A cost of 0 is free.
    ///
    /// Nobody in line is overtaken: while somebody waits it is refused.
    ///
    /// ```
    /// use holdoff_embassy::{FairLimiter, Quota, Rate, valid};
    ///
    /// let limiter: FairLimiter<4> =
    ///     FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// assert!(limiter.try_acquire(5).is_ok());
    /// assert!(limiter.try_acquire(1).is_err());
    /// ```
    ///
    /// # Errors
    /// [`Refusal::NotYet`] with the earliest instant at which asking again can succeed, later than
    /// now: when `cost` tokens are there, and while somebody waits a token's time after that, as
    /// the head of the line takes one at least. If it takes more, or others wait behind it, asking
    /// again then says when; if it leaves, asking earlier can succeed. [`Refusal::Never`] if `cost`
    /// is above the burst.
    pub fn try_acquire(&self, cost: u32) -> Result<(), Refusal> {
        let now = EmbassyTimer.now();
        if cost == 0 || self.line.is_empty() {
            return self.limiter.try_acquire(now, cost);
        }
        Err(self.limiter.refusal_in_line(now, cost))
    }

    /// Settles what was only estimated when it was taken: gives back what was too much, or takes
    /// what was too little as a debt, which those in line wait for.
    pub fn settle(&self, estimated: u32, actual: u32) {
        self.limiter.settle(EmbassyTimer.now(), estimated, actual);
        self.line.wake();
    }

    /// Tokens that can be taken now, 0 while paused.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.limiter.available(EmbassyTimer.now())
    }

    /// Admits nobody for `pause`, then resumes at the rate, with one token and not with a burst.
    ///
    /// Reaches everybody in line. A shorter pause than the one in force changes nothing.
    ///
    /// ```
    /// use core::time::Duration;
    /// use embassy_time::MockDriver;
    /// use holdoff_embassy::{FairLimiter, Quota, Rate, valid};
    ///
    /// let limiter: FairLimiter<4> =
    ///     FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// limiter.pause_for(Duration::from_secs(30));
    /// assert_eq!(limiter.available(), 0);
    /// MockDriver::get().advance(embassy_time::Duration::from_secs(30));
    /// assert_eq!(limiter.available(), 1);
    /// ```
    pub fn pause_for(&self, pause: Duration) {
        self.limiter.pause_until(EmbassyTimer.now().saturating_add(pause));
    }

    /// How many wait in line, the head included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.line.waiting()
    }

    /// The quota in force.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.limiter.quota()
    }

    /// Changes rate and burst for everybody, also for those in line. Never grants a fresh burst.
    ///
    /// # Errors
    /// [`ChangeUnderWay`] if this interrupted another change (in an interrupt, or on another core):
    /// nothing has changed, and waiting for the other one here could be for ever.
    ///
    /// ```
    /// use holdoff_embassy::{FairLimiter, Quota, Rate, valid};
    ///
    /// let limiter: FairLimiter<4> =
    ///     FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// limiter.set_quota(valid!(Quota::new(Rate::per_second(10), 50)))?;
    /// assert_eq!((limiter.quota().burst(), limiter.available()), (50, 5));
    /// # Ok::<(), holdoff_embassy::ChangeUnderWay>(())
    /// ```
    pub fn set_quota(&self, quota: Quota) -> Result<(), ChangeUnderWay> {
        self.limiter.set_quota(EmbassyTimer.now(), quota)?;
        self.line.wake();
        Ok(())
    }

    pub(crate) const fn limiter(&self) -> &Limiter {
        &self.limiter
    }
}

/// The line at a call's limiter; nobody waits where there is none.
#[derive(Debug)]
pub(crate) struct MaybeLine<'a, const WAITING: usize>(pub(crate) Option<&'a FairLimiter<WAITING>>);

impl<'a, const WAITING: usize> Queue for MaybeLine<'a, WAITING> {
    type Place = Option<Head<'a, WAITING>>;

    async fn join(&self, place: Option<Self::Place>) -> Result<Self::Place, QueueFull> {
        match (place, self.0) {
            (Some(place), _) => Ok(place),
            (None, Some(limiter)) => limiter.line.join().await.map(Some),
            (None, None) => Ok(None),
        }
    }

    async fn changed(&self, _place: &Self::Place) {
        match self.0 {
            Some(limiter) => limiter.line.changed().await,
            None => core::future::pending().await,
        }
    }
}
