//! A timer moved by hand, and what runs a future on it.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};

use holdoff::{Clock, Instant, Timer};

/// A clock that goes from one deadline to the next.
#[derive(Debug)]
pub(crate) struct ManualTimer {
    now: Cell<Instant>,
    /// The earliest deadline somebody waits for.
    next: Cell<Instant>,
}

impl ManualTimer {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { now: Cell::new(now), next: Cell::new(Instant::MAX) }
    }

    /// Says that whoever waits wants to be polled again at once.
    pub(crate) fn wake(&self) {
        self.next.set(self.now.get());
    }

    /// Polls `future` once; if it waits, the clock goes on to when it wants to be woken.
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
        poll_fn(move |_| {
            if deadline <= self.now.get() && deadline != Instant::MAX {
                return Poll::Ready(());
            }
            self.next.set(self.next.get().min(deadline));
            Poll::Pending
        })
    }
}
