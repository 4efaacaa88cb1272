//! How far a batch is.

use tokio::sync::watch;

/// How far a batch is, each job being counted in exactly one of `done`, `dead`, `undelivered`,
/// `cut_off` and [`in_flight`](Self::in_flight).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use core::num::NonZeroUsize;
/// use holdoff_tokio::batch::Batch;
/// use holdoff_tokio::{Failure, Policy, Prepared};
///
/// let mut results = Batch::new(["a", "poison", "b"], NonZeroUsize::MIN).run(
///     |_| Prepared::new(&Policy::BATCH),
///     async |&job, _| if job == "poison" { Err(Failure::permanent()) } else { Ok(()) },
/// );
/// results.next().await;
/// results.next().await;
/// let now = results.progress().snapshot();
/// assert_eq!((now.started, now.done, now.dead, now.in_flight()), (2, 1, 1, 0));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ProgressSnapshot {
    /// Jobs taken.
    pub started: u64,
    /// Jobs that succeeded.
    pub done: u64,
    /// Jobs given up, whose letter the sink has.
    pub dead: u64,
    /// Jobs given up, whose letter the sink did not take and which came back with the results.
    pub undelivered: u64,
    /// Jobs in flight when the batch was dropped, or whose operation panicked.
    pub cut_off: u64,
    /// Attempts made beyond the first of each job.
    pub retries: u64,
}

impl ProgressSnapshot {
    /// Jobs started and not over yet: attempted, waiting for another attempt, or waiting for the
    /// sink to take their letter.
    #[must_use]
    pub const fn in_flight(&self) -> u64 {
        self.started
            .saturating_sub(self.done)
            .saturating_sub(self.dead)
            .saturating_sub(self.undelivered)
            .saturating_sub(self.cut_off)
    }
}

/// A view of how far a batch is, for any task or thread.
///
/// From [`Results::progress`](super::Results::progress); clone it as often as you like.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use core::num::NonZeroUsize;
/// use holdoff_tokio::batch::Batch;
/// use holdoff_tokio::{Failure, Policy, Prepared};
///
/// let mut results = Batch::new(0..100, NonZeroUsize::new(8).unwrap())
///     .run(|_| Prepared::new(&Policy::BATCH), async |_, _| Ok::<(), Failure>(()));
///
/// let mut progress = results.progress();
/// let watcher = tokio::spawn(async move {
///     while let Some(now) = progress.changed().await {
///         println!("{} done, {} in flight", now.done, now.in_flight());
///     }
///     progress.snapshot()
/// });
///
/// while results.next().await.is_some() {}
/// assert_eq!(watcher.await.unwrap().done, 100);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Progress {
    receiver: watch::Receiver<ProgressSnapshot>,
}

impl Progress {
    pub(super) const fn new(receiver: watch::Receiver<ProgressSnapshot>) -> Self {
        Self { receiver }
    }

    /// How far it is now.
    #[must_use]
    pub fn snapshot(&self) -> ProgressSnapshot {
        *self.receiver.borrow()
    }

    /// Waits until it is further than this handle has seen, and says how far; of changes that
    /// follow fast on each other only the last is seen. `None` once the batch has ended, or was
    /// dropped, and its last change was seen.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call sees the change.
    pub async fn changed(&mut self) -> Option<ProgressSnapshot> {
        self.receiver.changed().await.ok()?;
        Some(*self.receiver.borrow_and_update())
    }
}
