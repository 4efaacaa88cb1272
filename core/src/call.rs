//! The machine: one logical call in flight.
//!
//! ```text
//!            poll: attempt              record: success
//!  Ready ───────────────────▶ InFlight ────────────────▶ Done
//!    ▲  │                      │    │
//!    │  │ poll: deadline,      │    │ record: failure
//!    │  │ limiter      ignored │    ▼
//!    │  └────────▶ Stopped ◀───┴─ Failed
//!    │           poll: stop      │
//!    └───────────────────────────┘
//!        poll: backoff
//! ```

mod build;
mod decision;
mod event;
mod guard;
mod limits;
mod parts;
mod step;

use core::time::Duration;

pub use self::event::{AttemptKind, Event, Observation, Observer};
use self::limits::Toll;
pub use self::limits::{Limit, Limits};
pub(crate) use self::parts::Parts;
use self::parts::Purse;
pub use self::step::{Attempt, DelaySource, Step, Stop};
use crate::breaker::{Ending, Ticket};
use crate::limiter::Refusal;
use crate::outcome::{Class, Failure, Outcome, Safety};
use crate::policy::Policy;
use crate::time::{Instant, duration, saturating_nanos};

/// One logical call in flight: decides everything, does nothing.
///
/// A driver asks [`poll`](Self::poll) what to do, does it, and reports with
/// [`record`](Self::record). The driver owns the clock, the sleep, the random numbers and the wire.
/// Whatever the hints, the jitter and the options: no more than `max_attempts` attempts, none that
/// starts at or after the deadline, none earlier than a hint says.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Attempt, Call, Failure, Hint, Instant, Outcome, Policy, Safety, Step, Stop};
///
/// let policy = Policy::INTERACTIVE; // deadline 20 s
/// let now = Instant::EPOCH;
/// let mut call = Call::new(&policy, Safety::Idempotent, now);
///
/// let Step::Attempt(Attempt { number: 1, timeout }) = call.poll(now, || 0) else { panic!() };
/// assert_eq!(timeout, Some(Duration::from_secs(20)));
///
/// let hint = Hint::after(Duration::from_secs(5));
/// call.record(now, Outcome::Failure(Failure::throttled().with_hint(hint)), || 0);
/// let Step::Backoff { until, .. } = call.poll(now, || 0) else { panic!() };
/// assert_eq!(until, now.saturating_add(Duration::from_secs(5)));
///
/// let Step::Attempt(Attempt { number: 2, .. }) = call.poll(until, || 0) else { panic!() };
/// let hint = Duration::from_secs(60);
/// call.record(until, Outcome::Failure(Failure::throttled().with_hint(Hint::after(hint))), || 0);
/// assert_eq!(call.poll(until, || 0), Step::Stop(Stop::HintTooLong { hint }));
/// ```
#[derive(Debug)]
#[must_use = "a call does nothing until it is polled"]
pub struct Call<'a, const BUCKETS: usize = 0> {
    policy: &'a Policy,
    parts: Parts<'a, BUCKETS>,
    /// Beside the limiter of its own.
    limits: Option<&'a Limits<'a>>,
    safety: Safety,
    /// Whether another layer tries again, so that this one must not.
    is_nested: bool,
    started: Instant,
    /// The end of time if there is none.
    deadline: Instant,
    attempts: u32,
    /// What an attempt takes from the limiter.
    cost: u32,
    /// The last delay of the own schedule (ns).
    previous: u64,
    state: State,
    /// Whether a retry is taken out of the budget and not yet sent.
    is_charged: bool,
}

impl<const BUCKETS: usize> Drop for Call<'_, BUCKETS> {
    fn drop(&mut self) {
        self.give_charge_back();
        self.release_ticket();
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    Done,
    Failed { failure: Failure, at: Instant },
    InFlight { ticket: Option<Ticket> },
    Ready { not_before: Instant, source: DelaySource },
    Stopped { stop: Stop, retry_after: Option<Duration> },
}

/// A stop, and how long from then until another attempt could make sense.
#[derive(Clone, Copy)]
struct Stopped {
    stop: Stop,
    retry_after: Option<Duration>,
}

impl Stopped {
    const fn until(stop: Stop, retry_after: Option<Duration>) -> Self {
        Self { stop, retry_after }
    }
}

impl From<Stop> for Stopped {
    fn from(stop: Stop) -> Self {
        Self::until(stop, None)
    }
}

impl<const BUCKETS: usize> Call<'_, BUCKETS> {
    /// What to do next.
    ///
    /// `sample` is called at most once, only to spread the delay before a retry, and must give a
    /// number uniform over all of `u64`. Polling before the time that was named repeats the answer.
    /// While an attempt is in flight that attempt is named again: it is not another one to make.
    #[inline]
    pub fn poll(&mut self, now: Instant, sample: impl FnOnce() -> u64) -> Step {
        match self.state {
            // What every call begins with.
            State::Ready { not_before, .. } if not_before <= now => self.start(now),
            State::Failed { failure, at } => self.decide(at, &failure, now, sample),
            _ => self.named(now),
        }
    }

    /// What to do, which is not to be decided now.
    #[cold]
    fn named(&mut self, now: Instant) -> Step {
        match self.state {
            State::Done => Step::Done,
            State::InFlight { .. } => {
                Step::Attempt(Attempt { number: self.attempts, timeout: self.timeout(now) })
            }
            State::Ready { .. } if self.is_past_deadline(now) => {
                self.stop(now, Stop::Deadline.into())
            }
            State::Ready { not_before: until, source } => Step::Backoff { until, source },
            State::Stopped { stop, .. } => Step::Stop(stop),
            // Decided before it comes here.
            State::Failed { at, .. } => Step::Backoff { until: at, source: DelaySource::Schedule },
        }
    }

    /// Reports what the attempt in flight came to. Ignored if there is none.
    ///
    /// A throttled failure with a hint also pauses the limiter for as long (at most `max_hint`), so
    /// that other callers do not find out one by one. `sample` as for [`poll`](Self::poll), to
    /// spread the open period of a breaker that trips.
    #[inline]
    pub fn record(&mut self, now: Instant, outcome: Outcome, sample: impl FnOnce() -> u64) {
        if !matches!(self.state, State::InFlight { .. }) {
            return;
        }
        self.tell_breaker(now, &outcome, sample);
        self.settle(now, &outcome);
    }

    /// Notes what the attempt came to, the breaker having been told.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn settle(&mut self, now: Instant, outcome: &Outcome) {
        match *outcome {
            Outcome::Ignored => {
                self.stop(now, Stop::Permanent.into());
            }
            Outcome::Success => {
                self.state = State::Done;
                self.tell(now, Event::Success);
            }
            Outcome::Failure(failure) => {
                if let Some(toll) = self.toll() {
                    toll.pause(now, &failure, self.policy.max_hint());
                }
                self.state = State::Failed { failure, at: now };
            }
        }
    }

    /// Reports that the attempt in flight was cut off by its timeout: a transient failure of a
    /// request that may have been processed.
    pub fn record_timeout(&mut self, now: Instant, sample: impl FnOnce() -> u64) {
        self.record(now, Outcome::Failure(Failure::transient()), sample);
    }

    /// What to do when the driver's queue says that a limit has no token before `until`: as if
    /// [`poll`](Self::poll) had found out.
    pub fn throttled(&mut self, now: Instant, until: Instant) -> Step {
        match self.state {
            State::Done => Step::Done,
            State::InFlight { .. } => {
                Step::Attempt(Attempt { number: self.attempts, timeout: self.timeout(now) })
            }
            State::Stopped { stop, .. } => Step::Stop(stop),
            State::Failed { .. } | State::Ready { .. } => {
                self.refused(now, Refusal::NotYet { until })
            }
        }
    }

    /// Ends the call for a reason of the driver's own, such as [`Stop::Cancelled`] or
    /// [`Stop::QueueFull`]. Ignored if it is over.
    ///
    /// An attempt in flight is dropped without counting as anything; the tokens it took are spent.
    pub fn give_up(&mut self, now: Instant, stop: Stop) {
        if !matches!(self.state, State::Done | State::Stopped { .. }) {
            self.release_ticket();
            self.stop(now, stop.into());
        }
    }

    /// Attempts started so far.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When the call must be over.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.policy.deadline().map(|_| self.deadline)
    }

    /// The time since the call started.
    #[must_use]
    pub const fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// After a stop: how long from then until another attempt could make sense, where that is
    /// known.
    ///
    /// The server's hint; the delay that did not fit before the deadline or for which there was no
    /// budget; the wait at the limiter; the rest of the breaker's open period, but not behind a
    /// probe, which may be over at any time. Counted from the stop.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.state {
            State::Stopped { retry_after, .. } => retry_after,
            _ => None,
        }
    }

    /// Whether the next poll at `now` may have to wait for the limiter: a driver with a queue takes
    /// its place in it first, and keeps the place until a poll answers with anything but
    /// [`Step::Throttled`].
    #[must_use]
    pub fn wants_permit(&self, now: Instant) -> bool {
        match self.state {
            State::Ready { not_before, .. } if not_before <= now => {
                // What is free, too late or refused anyhow does not stand in line to hear it.
                self.toll().is_some_and(Toll::is_worth_a_wait)
                    && !self.is_past_deadline(now)
                    && self.breaker_would_admit(now)
            }
            _ => false,
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn start(&mut self, now: Instant) -> Step {
        if self.is_past_deadline(now) {
            return self.stop(now, Stop::Deadline.into());
        }
        if let Some(stopped) = self.stopped_by_breaker(now) {
            return stopped;
        }
        if let Some(Err(refusal)) = self.toll().map(|toll| toll.take(now)) {
            return self.refused(now, refusal);
        }
        // Only now, so that no probe waits at the limiter.
        let timeout = self.timeout(now);
        self.state = State::InFlight { ticket: None };
        if let Some(stopped) = self.take_ticket(now, timeout) {
            return stopped;
        }
        if !core::mem::take(&mut self.is_charged) {
            self.parts.budget.into_iter().for_each(Purse::deposit);
        }
        self.attempts += 1; // OK: at most `max_attempts`, a u32.
        if self.parts.observer.is_some() {
            self.tell_attempt(now);
        }
        Step::Attempt(Attempt { number: self.attempts, timeout })
    }

    fn toll(&self) -> Option<Toll<'_>> {
        let table = self.parts.tolls?;
        let own = self.parts.limiter.map(|limiter| Limit::new(limiter, self.cost));
        Some(Toll { limits: self.limits, own, table })
    }

    fn give_charge_back(&mut self) {
        if core::mem::take(&mut self.is_charged) {
            self.parts.budget.into_iter().for_each(Purse::refund);
        }
    }

    #[cold]
    fn refused(&mut self, now: Instant, refusal: Refusal) -> Step {
        match refusal {
            Refusal::Never { burst } => self.stop(now, Stop::CostTooHigh { burst }.into()),
            Refusal::NotYet { until } if self.is_past_deadline(until) => {
                let wait = until.as_nanos().saturating_sub(now.as_nanos());
                self.stop_until(now, Stop::Deadline, wait)
            }
            Refusal::NotYet { until } => {
                self.tell(now, Event::Throttled { until });
                Step::Throttled { until }
            }
        }
    }

    /// The longest an attempt that starts now may take.
    fn timeout(&self, now: Instant) -> Option<Duration> {
        let timeout = self.policy.attempt_timeout();
        let Some(deadline) = self.deadline() else { return timeout };
        let left = deadline.as_nanos().saturating_sub(now.as_nanos());
        Some(duration(timeout.map_or(left, |timeout| saturating_nanos(timeout).min(left))))
    }

    /// Whether `start` is too late: at or after the deadline, or at the end of time, which is
    /// never.
    fn is_past_deadline(&self, start: Instant) -> bool {
        self.deadline <= start
    }

    fn tell_breaker(&mut self, now: Instant, outcome: &Outcome, sample: impl FnOnce() -> u64) {
        let ending = match outcome {
            Outcome::Success => Ending::Success,
            Outcome::Failure(Failure { class: Class::Transient, .. }) => Ending::Failure,
            // The caller's own mistakes and limits say nothing about the service's health.
            Outcome::Failure(_) | Outcome::Ignored => return self.release_ticket(),
        };
        self.report_to_breaker(now, ending, sample);
    }

    #[cold]
    fn tell_attempt(&self, now: Instant) {
        self.notify(now, Event::Attempt { kind: self.kind() });
    }

    #[inline]
    fn tell(&self, now: Instant, event: Event) {
        if self.parts.observer.is_some() {
            self.notify(now, event);
        }
    }

    #[inline(never)]
    fn notify(&self, now: Instant, event: Event) {
        if let Some(observer) = self.parts.observer {
            let (attempts, elapsed) = (self.attempts, self.elapsed(now));
            observer.on_event(&Observation { event, attempts, elapsed, now });
        }
    }

    /// Another attempt could make sense `wait` nanoseconds from now.
    #[cold]
    fn stop_until(&mut self, now: Instant, stop: Stop, wait: u64) -> Step {
        self.stop(now, Stopped::until(stop, Some(duration(wait))))
    }

    #[cold]
    fn stop(&mut self, now: Instant, stopped: Stopped) -> Step {
        let Stopped { stop, retry_after } = stopped;
        self.state = State::Stopped { stop, retry_after };
        self.give_charge_back();
        self.tell(now, Event::Stop(stop));
        Step::Stop(stop)
    }
}
