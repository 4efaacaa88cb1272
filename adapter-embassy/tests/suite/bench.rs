//! Tasks and a clock in one thread: a task is polled only if it was woken, and time passes only
//! when nobody has anything to do.

use core::cell::RefCell;
use core::future::Future;
use core::time::Duration;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use embassy_time::MockDriver;
use futures_executor::LocalPool;
use futures_util::task::LocalSpawnExt;
use holdoff_embassy::{Clock, EmbassyTimer, Instant};

/// The mock clock is one for the whole process.
static CLOCK: Mutex<()> = Mutex::new(());

pub(crate) struct Bench {
    pool: LocalPool,
    _clock: MutexGuard<'static, ()>,
}

/// What a spawned task came to, and when.
pub(crate) type Slot<T> = Rc<RefCell<Option<(Instant, T)>>>;

impl Bench {
    /// At the clock's beginning, with no task.
    pub(crate) fn new() -> Self {
        let clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
        MockDriver::get().reset();
        Self { pool: LocalPool::new(), _clock: clock }
    }

    pub(crate) fn spawn<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> Slot<T> {
        let slot = Slot::default();
        let result = Rc::clone(&slot);
        let task = async move {
            let value = task.await;
            *result.borrow_mut() = Some((EmbassyTimer.now(), value));
        };
        self.pool.spawner().spawn_local(task).expect("the pool is there");
        self.pool.run_until_stalled();
        slot
    }

    /// Runs what is to be run now.
    pub(crate) fn settle(&mut self) {
        self.pool.run_until_stalled();
    }

    /// Lets so much time pass, a step after the other.
    pub(crate) fn advance(&mut self, time: Duration, step: Duration) {
        let end = EmbassyTimer.now().saturating_add(time);
        while EmbassyTimer.now() < end {
            let left = end.saturating_duration_since(EmbassyTimer.now());
            advance_clock(left.min(step));
            self.pool.run_until_stalled();
        }
    }

    /// Runs a task to its end, a millisecond after the other, for at most an hour.
    pub(crate) fn run<T: 'static>(&mut self, task: impl Future<Output = T> + 'static) -> T {
        let slot = self.spawn(task);
        self.until(&slot).1
    }

    /// Waits for a task, a millisecond after the other, for at most an hour.
    pub(crate) fn until<T>(&mut self, slot: &Slot<T>) -> (Instant, T) {
        for _ in 0..3_600_000 {
            if let Some(result) = slot.borrow_mut().take() {
                return result;
            }
            advance_clock(Duration::from_millis(1));
            self.pool.run_until_stalled();
        }
        panic!("nothing has come of it in an hour");
    }
}

pub(crate) fn advance_clock(time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap();
    MockDriver::get().advance(embassy_time::Duration::from_micros(micros));
}

/// Milliseconds since the clock's beginning.
pub(crate) fn millis() -> u64 {
    EmbassyTimer.now().as_nanos() / 1_000_000
}
