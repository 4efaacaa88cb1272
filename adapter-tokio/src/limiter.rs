//! A rate limiter at which tasks wait in line.

use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::drive::{AcquireError, GaveUp};
use holdoff::{Classify, Clock, Instant, Limiter, Policy, Quota, Refusal, Timer};

use crate::line::Line;
use crate::prepared::Prepared;
use crate::timer::TokioTimer;

/// A rate limiter at which tasks wait in line, first come, first served.
///
/// Only the head of the line sleeps and takes tokens, so a task that stops waiting leaves nothing
/// behind: no token, no place, no debt. A big cost is not overtaken by small ones. A pause or
/// another quota reaches everybody in line.
///
/// Usable through `&self` from any task or thread; share it in an `Arc` or a `static`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{FairLimiter, Quota, Rate, valid};
/// use tokio::time::Instant;
///
/// static LIMITER: FairLimiter = FairLimiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
///
/// let start = Instant::now();
/// for _ in 0..100 {
///     LIMITER.acquire(1).await.unwrap();
/// }
/// // 20 at once, 80 at 10 a second.
/// assert_eq!(start.elapsed().as_secs(), 8);
/// # }
/// ```
#[derive(Debug)]
pub struct FairLimiter {
    limiter: Limiter,
    line: Line,
}

impl FairLimiter {
    /// A limiter with a full bucket and nobody in line.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self { limiter: Limiter::new(quota), line: Line::new() }
    }

    /// The same limiter, at which at most `max_waiting` stand behind the head of the line at once;
    /// whoever would be one more is told so at once. Unbounded if not set.
    #[must_use]
    pub const fn with_max_waiting(mut self, max_waiting: NonZeroU32) -> Self {
        self.set_max_waiting(max_waiting);
        self
    }

    pub(crate) const fn set_max_waiting(&mut self, max_waiting: NonZeroU32) {
        self.line.set_max_waiting(max_waiting);
    }

    /// Waits in line for `cost` tokens and takes them. A cost of 0 is free and does not wait.
    ///
    /// # Errors
    /// [`AcquireError::CostTooHigh`] at once if `cost` is above the burst, or when the burst
    /// shrinks below it during the wait; [`AcquireError::QueueFull`] at once if too many are
    /// waiting. Nothing is taken.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
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
            match self.limiter.try_acquire(TokioTimer.now(), cost) {
                Ok(()) => return Ok(()),
                Err(Refusal::Never { burst }) => return Err(AcquireError::CostTooHigh { burst }),
                Err(Refusal::NotYet { until }) => self.sleep_until(until).await,
            }
        }
    }

    /// Takes `cost` tokens at once, or nothing. A cost of 0 is free.
    ///
    /// Nobody in line is overtaken: while somebody waits it is refused.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{FairLimiter, Quota, Rate, valid};
    ///
    /// let limiter = FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// assert!(limiter.try_acquire(5).is_ok());
    /// assert!(limiter.try_acquire(1).is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Refusal::NotYet`] with the earliest instant at which asking again can succeed, later than
    /// now: when `cost` tokens are there, and while somebody waits a token's time after that, as
    /// the head of the line takes one at least. If it takes more, or others wait behind it, asking
    /// again then says when; if it leaves, asking earlier can succeed. [`Refusal::Never`] if `cost`
    /// is above the burst.
    pub fn try_acquire(&self, cost: u32) -> Result<(), Refusal> {
        let now = TokioTimer.now();
        if cost == 0 || self.line.is_empty() {
            return self.limiter.try_acquire(now, cost);
        }
        Err(self.limiter.refusal_in_line(now, cost))
    }

    /// Settles what was only estimated when it was taken: gives back what was too much, or takes
    /// what was too little as a debt, which those in line wait for.
    pub fn settle(&self, estimated: u32, actual: u32) {
        self.limiter.settle(TokioTimer.now(), estimated, actual);
        self.line.wake();
    }

    /// [`retry`](crate::retry), each attempt of which first waits in line for one token.
    ///
    /// A failure that is throttled and carries a hint pauses the limiter for everybody. The
    /// policy's deadline also bounds the time in line.
    ///
    /// # Errors
    /// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no place, token or debt behind, but for the token of an attempt
    /// that had begun.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, FairLimiter, Policy, Quota, Rate, valid};
    ///
    /// static LIMITER: FairLimiter =
    ///     FairLimiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
    ///
    /// let answer = LIMITER.retry(&Policy::LLM, async || Ok::<_, Failure>("hello")).await;
    /// assert_eq!(answer, Ok("hello"));
    /// assert_eq!(LIMITER.available(), 19);
    /// # }
    /// ```
    pub async fn retry<T, E: Classify, F: Future<Output = Result<T, E>>>(
        &self,
        policy: &Policy,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, GaveUp<E>> {
        Prepared::new(policy).with_limiter(self, 1).run(|_| operation()).await
    }

    pub(crate) const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    pub(crate) const fn line(&self) -> &Line {
        &self.line
    }

    /// As the head of the line: until then, or until something changes.
    pub(crate) async fn sleep_until(&self, until: Instant) {
        tokio::select! {
            () = TokioTimer.sleep_until(until) => {}
            () = self.line.changed() => {}
        }
    }

    /// Tokens that can be taken now, 0 while paused.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.limiter.available(TokioTimer.now())
    }

    /// Admits nobody for `pause`, then resumes at the rate, with one token and not with a burst.
    ///
    /// Reaches everybody in line. A shorter pause than the one in force changes nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{FairLimiter, Quota, Rate, valid};
    /// use std::time::Duration;
    ///
    /// let limiter = FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// limiter.pause_for(Duration::from_secs(30));
    /// assert_eq!(limiter.available(), 0);
    /// tokio::time::sleep(Duration::from_secs(30)).await;
    /// assert_eq!(limiter.available(), 1);
    /// # }
    /// ```
    pub fn pause_for(&self, pause: Duration) {
        self.limiter.pause_until(TokioTimer.now().saturating_add(pause));
    }

    /// How many wait in line, the head included.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.line.waiting()
    }

    /// The quota in force.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.limiter.quota()
    }

    /// Changes rate and burst for everybody, also for those in line. Never grants a fresh burst.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{FairLimiter, Quota, Rate, valid};
    ///
    /// let limiter = FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// limiter.set_quota(valid!(Quota::new(Rate::per_second(10), 50)));
    /// assert_eq!((limiter.quota().burst(), limiter.available()), (50, 5));
    /// # }
    /// ```
    pub fn set_quota(&self, quota: Quota) {
        while self.limiter.set_quota(TokioTimer.now(), quota).is_err() {
            std::thread::yield_now(); // Another thread is a few instructions from being done.
        }
        self.line.wake();
    }
}
