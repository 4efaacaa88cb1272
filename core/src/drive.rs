//! The one loop that runs a [`Call`], asynchronous and blocking.

mod gave_up;
mod queue;

use core::future::{Future, pending, poll_fn};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

pub use self::gave_up::GaveUp;
pub use self::queue::{AcquireError, NoQueue, Queue, QueueFull};
use crate::call::{Attempt, Call, Step, Stop};
use crate::outcome::{Failure, Outcome};
use crate::time::{Clock, Instant, Timer};

/// Runs a call to its end: attempts, waits and timeouts.
///
/// `begin` makes the [`Call`] at the instant of the first poll. `random` gives numbers uniform over
/// all of `u64` and is called once before each retry, never on success. `classify` tells a success
/// from a failure (for a `Result` of an error that implements [`Classify`](crate::Classify):
/// [`classified`](crate::classified)). One attempt is in flight at a time; one that reaches its
/// timeout is dropped. Dropping the future ends whatever it waits for, and nothing more is sent.
///
/// # Errors
/// [`GaveUp`] with the reason and the last error.
///
/// See [`run_blocking`] for an example; `holdoff-tokio` and `holdoff-embassy` bring the timers.
pub fn run<'a, const BUCKETS: usize, O, T, E, F: Future<Output = O>>(
    timer: &impl Timer,
    queue: &impl Queue,
    begin: impl FnOnce(Instant) -> Call<'a, BUCKETS>,
    random: impl FnMut() -> u64,
    classify: impl FnMut(O) -> Result<T, (Failure, E)>,
    operation: impl FnMut(Attempt) -> F,
) -> impl Future<Output = Result<T, GaveUp<E>>> {
    // Not a future around a future: what it gives would be on the stack twice.
    run_until(pending(), timer, queue, begin, random, classify, operation)
}

/// [`run`], until `cancelled` completes: then the call stops with [`Stop::Cancelled`] in the same
/// poll, whatever it was waiting for, and an attempt in flight is dropped.
///
/// Unlike a dropped future it returns what is known, the last error included.
///
/// # Errors
/// [`GaveUp`] with the reason and the last error.
pub async fn run_until<'a, const BUCKETS: usize, O, T, E, F: Future<Output = O>>(
    cancelled: impl Future<Output = ()>,
    timer: &impl Timer,
    queue: &impl Queue,
    begin: impl FnOnce(Instant) -> Call<'a, BUCKETS>,
    mut random: impl FnMut() -> u64,
    mut classify: impl FnMut(O) -> Result<T, (Failure, E)>,
    mut operation: impl FnMut(Attempt) -> F,
) -> Result<T, GaveUp<E>> {
    let mut cancelled = pin!(cancelled);
    let mut now = timer.now();
    let mut call = begun(begin, now);
    let (mut last, mut timed_out) = (None, false);
    let mut place = None;
    let stop = loop {
        // Before anything is sent; what is ready completes at once. `core`'s could panic.
        let ready = poll_fn(|_| Poll::Ready(()));
        if let First::Cancelled = first(cancelled.as_mut(), ready, pending()).await {
            break Stop::Cancelled;
        }
        if call.wants_permit(now) {
            let deadline = call.deadline().unwrap_or(Instant::MAX);
            let joined = {
                let joined = pin!(queue.join(place.take()));
                let late = pin!(timer.sleep_until(deadline));
                first(cancelled.as_mut(), joined, late).await
            };
            now = timer.now();
            match joined {
                First::Work(Ok(head)) => place = Some(head),
                First::Work(Err(QueueFull)) => break Stop::QueueFull,
                First::Limit => {} // The deadline has passed, as the call will say.
                First::Cancelled => break Stop::Cancelled,
            }
        }
        // What is refused or too late meanwhile is told so, and not to wait on.
        let held = place.as_ref().filter(|_| call.wants_permit(now));
        let step = match held.and_then(|place| queue.missing(place)) {
            Some(until) => call.throttled(now, until),
            None => call.poll(now, &mut random),
        };
        place = match step {
            Step::Throttled { .. } => place.map(|place| queue.throttled(place)),
            _ => None,
        };
        let is_cancelled = match step {
            Step::Attempt(attempt) => {
                let returned = {
                    let timeout = pin!(timer.sleep_until(attempt.ends_at(now)));
                    let work = pin!(watched(&mut call, timer, || operation(attempt)));
                    first(cancelled.as_mut(), running(&mut call, timer, work), timeout).await
                };
                now = timer.now();
                match returned {
                    First::Cancelled => true,
                    First::Work(_) | First::Limit => {
                        timed_out = matches!(returned, First::Limit);
                        let mut outcome = Outcome::Failure(Failure::transient());
                        let value = judged(returned, &mut classify, &mut outcome, &mut last);
                        call.record(now, outcome, &mut random);
                        if let Some(value) = value {
                            return Ok(value);
                        }
                        false
                    }
                }
            }
            Step::Backoff { until, .. } => {
                let timeout = pin!(timer.sleep_until(until));
                matches!(first(cancelled.as_mut(), timeout, pending()).await, First::Cancelled)
            }
            Step::Throttled { until } => {
                // Only who has a place hears of changes: nobody else is woken in its stead.
                let changed = pin!(async {
                    match &place {
                        Some(place) => queue.changed(place).await,
                        None => pending().await,
                    }
                });
                let timeout = pin!(timer.sleep_until(until));
                matches!(first(cancelled.as_mut(), changed, timeout).await, First::Cancelled)
            }
            // Only a call that was over before it began.
            Step::Done => break Stop::Attempts,
            Step::Stop(stop) => break stop,
        };
        now = timer.now();
        if is_cancelled {
            break Stop::Cancelled;
        }
    };
    call.give_up(now, stop); // Unless it has stopped by itself.
    Err(GaveUp::new(&call, now, stop, last, timed_out))
}

/// Runs a call to its end, blocking: the twin of [`run`].
///
/// `sleep` blocks for at least the time it is given. An attempt cannot be cut off from outside, so
/// `operation` must keep to [`Attempt::timeout`] itself (a socket's read timeout, say).
///
/// # Errors
/// [`GaveUp`] with the reason and the last error.
///
/// ```
/// use core::cell::Cell;
/// use core::time::Duration;
/// use holdoff::{Call, Failure, Instant, Policy, Safety, classified, drive};
///
/// let clock = Cell::new(Instant::EPOCH);
/// let answer = drive::run_blocking(
///     &clock,
///     |delay| clock.set(clock.get().saturating_add(delay)), // `std::thread::sleep`
///     |now| Call::new(&Policy::STANDARD, Safety::Idempotent, now),
///     || u64::MAX, // a random generator
///     classified,
///     |attempt| if attempt.number < 3 { Err(Failure::transient()) } else { Ok(attempt.number) },
/// );
/// assert_eq!(answer, Ok(3));
/// // The longest delays of full jitter from 1 s: 1 s and 2 s.
/// assert_eq!(clock.get(), Instant::EPOCH.saturating_add(Duration::from_secs(3)));
/// ```
pub fn run_blocking<'a, const BUCKETS: usize, O, T, E>(
    clock: &impl Clock,
    mut sleep: impl FnMut(Duration),
    begin: impl FnOnce(Instant) -> Call<'a, BUCKETS>,
    mut random: impl FnMut() -> u64,
    mut classify: impl FnMut(O) -> Result<T, (Failure, E)>,
    mut operation: impl FnMut(Attempt) -> O,
) -> Result<T, GaveUp<E>> {
    let mut now = clock.now();
    let mut call = begin(now);
    let mut last = None;
    loop {
        match call.poll(now, &mut random) {
            Step::Attempt(attempt) => {
                let returned = watched(&mut call, clock, || operation(attempt));
                now = clock.now();
                match classify(returned) {
                    Ok(value) => {
                        call.record(now, Outcome::Success, &mut random);
                        return Ok(value);
                    }
                    Err((failure, error)) => {
                        call.record(now, Outcome::Failure(failure), &mut random);
                        last = Some(error);
                    }
                }
            }
            Step::Backoff { until, .. } | Step::Throttled { until } => {
                sleep(until.saturating_duration_since(now));
                now = clock.now();
            }
            // Only a call that was over before it began.
            Step::Done => return Err(GaveUp::new(&call, now, Stop::Attempts, last, false)),
            Step::Stop(stop) => return Err(GaveUp::new(&call, now, stop, last, false)),
        }
    }
}

/// The call. It is made of several, each moved into the next: not on the stack of attempts.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn begun<'a, const BUCKETS: usize>(
    begin: impl FnOnce(Instant) -> Call<'a, BUCKETS>,
    now: Instant,
) -> Call<'a, BUCKETS> {
    begin(now)
}

/// The value of an attempt, if it has one; else its error in `last`. What it came to is in
/// `outcome`, unless it has not returned. None of this is on the stack while that is recorded.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn judged<O, T, E>(
    returned: First<O>,
    classify: impl FnOnce(O) -> Result<T, (Failure, E)>,
    outcome: &mut Outcome,
    last: &mut Option<E>,
) -> Option<T> {
    let First::Work(returned) = returned else { return None };
    match classify(returned) {
        Ok(value) => {
            *outcome = Outcome::Success;
            Some(value)
        }
        Err((failure, error)) => {
            *outcome = Outcome::Failure(failure);
            *last = Some(error);
            None
        }
    }
}

/// What `work` gives. Should it panic, the attempt has failed when it does: a panic speaks against
/// the service as an error does, unlike being cancelled.
fn watched<'c, 'a, C: Clock, T, const BUCKETS: usize>(
    call: &'c mut Call<'a, BUCKETS>,
    clock: &'c C,
    work: impl FnOnce() -> T,
) -> T {
    struct Watch<'c, 'a, C: Clock, const BUCKETS: usize> {
        call: &'c mut Call<'a, BUCKETS>,
        clock: &'c C,
        has_returned: bool,
    }

    impl<C: Clock, const BUCKETS: usize> Drop for Watch<'_, '_, C, BUCKETS> {
        fn drop(&mut self) {
            if !self.has_returned {
                self.call.record_timeout(self.clock.now(), || 0);
            }
        }
    }

    let mut watch = Watch { call, clock, has_returned: false };
    let returned = work();
    watch.has_returned = true;
    returned
}

/// What `work` gives, each poll of it [`watched`].
fn running<T, const BUCKETS: usize>(
    call: &mut Call<'_, BUCKETS>,
    clock: &impl Clock,
    mut work: impl Future<Output = T> + Unpin,
) -> impl Future<Output = T> + Unpin {
    poll_fn(move |context| watched(call, clock, || pin!(&mut work).poll(context)))
}

/// Which of three futures completed first.
enum First<T> {
    Cancelled,
    Work(T),
    Limit,
}

/// Waits for one of them; of those that complete in the same poll it is the first named. All are
/// pinned by the caller: a future that is handed from one `async fn` to another is kept in each.
fn first<T>(
    mut cancelled: impl Future<Output = ()> + Unpin,
    mut work: impl Future<Output = T> + Unpin,
    mut limit: impl Future<Output = ()> + Unpin,
) -> impl Future<Output = First<T>> {
    poll_fn(move |context| {
        if pin!(&mut cancelled).poll(context).is_ready() {
            return Poll::Ready(First::Cancelled);
        }
        if let Poll::Ready(value) = pin!(&mut work).poll(context) {
            return Poll::Ready(First::Work(value));
        }
        pin!(&mut limit).poll(context).map(|()| First::Limit)
    })
}
