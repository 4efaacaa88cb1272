//! A rate limiter at which tasks wait in line.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use holdoff::drive::{self, GaveUp, Queue};
use holdoff::{Call, Classify, Clock, Limiter, Policy, Quota, Refusal, Safety, Timer, classified};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::retry::random;
use crate::timer::TokioTimer;

/// The cost is above the limiter's burst: no wait is long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CostTooHigh {
    /// The largest cost that can be admitted.
    pub burst: u32,
}

impl fmt::Display for CostTooHigh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cost is above the limiter's burst of {}", self.burst)
    }
}

impl Error for CostTooHigh {}

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
        let line = Line { head: Semaphore::const_new(1), changed: Notify::const_new() };
        Self { limiter: Limiter::new(quota), line }
    }

    /// Waits in line for `cost` tokens and takes them. A cost of 0 is free and does not wait.
    ///
    /// # Errors
    /// [`CostTooHigh`] at once if `cost` is above the burst; nothing is taken. A burst that shrinks
    /// below `cost` during the wait ends it likewise.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled, once it has to wait.
    ///
    /// # Cancel safety
    /// Dropping the future at any point leaves nothing behind: tokens are taken in the very poll
    /// that completes it.
    pub async fn acquire(&self, cost: u32) -> Result<(), CostTooHigh> {
        let burst = self.limiter.quota().burst();
        if cost == 0 {
            return Ok(());
        }
        if cost > burst {
            return Err(CostTooHigh { burst });
        }
        let _place = self.line.join().await;
        loop {
            match self.limiter.try_acquire(TokioTimer.now(), cost) {
                Ok(()) => return Ok(()),
                Err(Refusal::Never { burst }) => return Err(CostTooHigh { burst }),
                Err(Refusal::NotYet { until }) => {
                    tokio::select! {
                        () = TokioTimer.sleep_until(until) => {}
                        () = self.line.changed() => {}
                    }
                }
            }
        }
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
        drive::run(
            &TokioTimer,
            &self.line,
            |now| Call::new(policy, Safety::Idempotent, now).with_limiter(&self.limiter, 1),
            random(),
            classified,
            |_| operation(),
        )
        .await
    }

    /// Tokens that can be taken now, 0 while paused.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.limiter.available(TokioTimer.now())
    }

    /// Admits nobody for `pause`, then resumes at the rate, with one token and not with a burst.
    ///
    /// Reaches everybody in line. A shorter pause than the one in force changes nothing.
    pub fn pause_for(&self, pause: Duration) {
        self.limiter.pause_until(TokioTimer.now().saturating_add(pause));
    }

    /// The quota in force.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.limiter.quota()
    }

    /// Changes rate and burst for everybody, also for those in line. Never grants a fresh burst.
    pub fn set_quota(&self, quota: Quota) {
        while self.limiter.set_quota(TokioTimer.now(), quota).is_err() {
            std::thread::yield_now(); // Another thread is a few instructions from being done.
        }
        self.line.changed.notify_one();
    }
}

/// Who is next: one permit, handed on in the order in which tasks asked for it.
#[derive(Debug)]
struct Line {
    head: Semaphore,
    /// Wakes the head, the only one that sleeps; remembered if it is not asleep just now.
    changed: Notify,
}

impl Queue for Line {
    /// `None` could only come of a closed semaphore, and nothing closes this one.
    type Place<'a> = Option<SemaphorePermit<'a>>;

    async fn join(&self) -> Self::Place<'_> {
        self.head.acquire().await.ok()
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}
