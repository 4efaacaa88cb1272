//! Who is next: tasks in the order in which they came.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

use holdoff::drive::QueueFull;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// One permit, handed on in the order in which tasks asked for it.
#[derive(Debug)]
pub(crate) struct Line {
    head: Semaphore,
    /// Wakes the head, the only one that sleeps; remembered if it is not asleep just now.
    changed: Notify,
    /// How many stand behind the head.
    waiting: AtomicU32,
    max_waiting: u32,
    /// On macOS and some others tokio's locks have a destructor, which no `const fn` can run. Here
    /// that would be seen only by who builds for them.
    #[cfg(test)]
    _destructor: Destructor,
}

#[cfg(test)]
#[derive(Debug)]
struct Destructor;

#[cfg(test)]
impl Drop for Destructor {
    fn drop(&mut self) {}
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self {
            head: Semaphore::const_new(1),
            changed: Notify::const_new(),
            waiting: AtomicU32::new(0),
            max_waiting: u32::MAX,
            #[cfg(test)]
            _destructor: Destructor,
        }
    }

    pub(crate) const fn set_max_waiting(&mut self, max_waiting: NonZeroU32) {
        self.max_waiting = max_waiting.get();
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// How many are in line, the head included.
    pub(crate) fn waiting(&self) -> u32 {
        let head = u32::from(self.head.available_permits() == 0);
        self.waiting.load(Ordering::Relaxed).saturating_add(head)
    }

    /// Whether nobody is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Waits to become the head.
    pub(crate) async fn join(&self) -> Result<Head<'_>, QueueFull> {
        // Who need not wait is not one more in line.
        if let Ok(permit) = self.head.try_acquire() {
            return Ok(Head { _permit: Some(permit) });
        }
        let _counted = self.counted()?;
        Ok(Head { _permit: self.head.acquire().await.ok() })
    }

    /// Completes when the head may be admitted earlier than it was told.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn counted(&self) -> Result<Counted<'_>, QueueFull> {
        // Relaxed: a count publishes nothing.
        let full = |waiting| (waiting < self.max_waiting).then(|| waiting + 1);
        match self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, full) {
            Ok(_) => Ok(Counted(&self.waiting)),
            Err(_) => Err(QueueFull),
        }
    }
}

/// One of those in line, until it is dropped.
#[derive(Debug)]
struct Counted<'a>(&'a AtomicU32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The head of a [`Line`].
#[derive(Debug)]
pub(crate) struct Head<'a> {
    /// `None` could only come of a closed semaphore, and nothing closes this one.
    _permit: Option<SemaphorePermit<'a>>,
}
