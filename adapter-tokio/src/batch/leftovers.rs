//! What a batch leaves behind that is dropped.

use core::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dead_letter::DeadLetter;

/// One job that was in flight when its batch was dropped, or when its operation panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leftover<J, E> {
    /// It was being tried: whether the service has carried it out is not known.
    Job(J),
    /// It had been given up, and the sink had not yet confirmed that it has the letter. A
    /// [channel](tokio::sync::mpsc) does not have it; a file may.
    Letter(DeadLetter<J, E>),
}

/// Where the jobs are found that were in flight when the batch was dropped.
///
/// From [`Results::leftovers`](super::Results::leftovers), before it is dropped. A batch that ends
/// by itself leaves nothing. Usable through `&self` from any task or thread.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use core::{future::pending, num::NonZeroUsize, time::Duration};
/// use holdoff_tokio::batch::{Batch, Leftover};
/// use holdoff_tokio::{Failure, Policy, Prepared};
///
/// let mut results = Batch::new(["a", "b"], NonZeroUsize::MIN).run(
///     |_| Prepared::new(&Policy::BATCH),
///     async |_, _| pending::<Result<(), Failure>>().await,
/// );
/// let leftovers = results.leftovers();
/// assert!(tokio::time::timeout(Duration::from_secs(1), results.next()).await.is_err());
/// drop(results);
/// assert_eq!(leftovers.take(), [Leftover::Job("a")]);
/// # }
/// ```
#[derive(Debug)]
pub struct Leftovers<J, E> {
    list: Arc<Mutex<Vec<Leftover<J, E>>>>,
}

impl<J, E> Leftovers<J, E> {
    pub(super) fn new() -> Self {
        Self { list: Arc::default() }
    }

    /// All there are, in no particular order; none the next time.
    #[must_use = "they are nowhere else"]
    pub fn take(&self) -> Vec<Leftover<J, E>> {
        take(&mut *self.lock())
    }

    pub(super) fn push(&self, leftover: Leftover<J, E>) {
        self.lock().push(leftover);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Leftover<J, E>>> {
        // A list is never left half changed.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J, E> Clone for Leftovers<J, E> {
    fn clone(&self) -> Self {
        Self { list: Arc::clone(&self.list) }
    }
}
