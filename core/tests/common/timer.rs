//! A timer moved by hand, and what runs a future on it.

use core::cell::Cell;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use holdoff::{Clock, Instant, Timer};

/// A clock that goes from one deadline to the next.
#[derive(Debug)]
pub(crate) struct ManualTimer {
    now: Cell<Instant>,
    /// The earliest deadline somebody waits for.
    next: Cell<Instant>,
    sleeping: Cell<u32>,
}

impl ManualTimer {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { now: Cell::new(now), next: Cell::new(Instant::MAX), sleeping: Cell::new(0) }
    }

    /// Says that whoever waits wants to be polled again at once.
    pub(crate) fn wake(&self) {
        self.next.set(self.now.get());
    }

    /// How many sleeps have been begun and not been dropped.
    pub(crate) const fn sleeping(&self) -> u32 {
        self.sleeping.get()
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now().saturating_add(time)).await;
    }

    /// Polls `future` once; if it waits, the clock goes on to when it wants to be woken.
    ///
    /// # Panics
    /// If it waits and nothing would wake it.
    pub(crate) fn poll<F: Future>(&self, future: Pin<&mut F>) -> Option<F::Output> {
        self.next.set(Instant::MAX);
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => {
                assert_ne!(self.next.get(), Instant::MAX, "it would wait for ever");
                self.now.set(self.next.get());
                None
            }
        }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Some(output) = self.poll(future.as_mut()) {
                return output;
            }
        }
    }
}

impl Clock for ManualTimer {
    fn now(&self) -> Instant {
        self.now.get()
    }
}

impl Timer for ManualTimer {
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        self.sleeping.set(self.sleeping.get() + 1);
        Sleep { timer: self, deadline }
    }
}

struct Sleep<'a> {
    timer: &'a ManualTimer,
    deadline: Instant,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let Self { timer, deadline } = *self;
        if deadline <= timer.now.get() && deadline != Instant::MAX {
            return Poll::Ready(());
        }
        timer.next.set(timer.next.get().min(deadline));
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.timer.sleeping.set(self.timer.sleeping.get() - 1);
    }
}
