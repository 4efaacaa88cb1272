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
mod machine;
mod parts;
mod sample;
mod step;
mod watch;

use core::mem;
use core::time::Duration;

pub use self::event::{AttemptKind, Event, Observation, Observer};
pub(crate) use self::guard::Guard;
pub use self::limits::{Limit, Limits};
use self::machine::{Machine, State};
pub(crate) use self::parts::Parts;
use self::sample::Sample;
pub use self::step::{Attempt, DelaySource, Step, Stop};
use crate::breaker::Ending;
use crate::limiter::Refusal;
use crate::outcome::{Class, Failure, Outcome};
use crate::time::{Instant, duration};

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
/// let Step::Attempt(attempt) = call.poll(now, || 0) else { panic!() };
/// assert_eq!(attempt.timeout(), Some(Duration::from_secs(20)));
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
    guard: Option<Guard<'a, BUCKETS>>,
    machine: Machine<'a>,
}

impl<const BUCKETS: usize> Drop for Call<'_, BUCKETS> {
    fn drop(&mut self) {
        self.machine.give_charge_back();
        self.release_ticket();
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
        self.step(now, &mut Some(sample))
    }

    /// Reports what the attempt in flight came to. Ignored if there is none.
    ///
    /// A throttled failure with a hint also pauses the limiter for as long (at most `max_hint`), so
    /// that other callers do not find out one by one. `sample` as for [`poll`](Self::poll), to
    /// spread the open period of a breaker that trips.
    #[inline]
    pub fn record(&mut self, now: Instant, outcome: Outcome, sample: impl FnOnce() -> u64) {
        if matches!(self.machine.state, State::InFlight { .. }) {
            self.machine.now = now;
            self.settle(&outcome, &mut Some(sample));
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
        let before = mem::replace(&mut self.machine.now, now);
        let step = match self.machine.state {
            State::Failed { .. } | State::Ready { .. } => {
                self.machine.refused(Refusal::NotYet { until })
            }
            _ => self.machine.named(),
        };
        self.machine.now = before; // A failure was when it was.
        step
    }

    /// Ends the call for a reason of the driver's own, such as [`Stop::Cancelled`] or
    /// [`Stop::QueueFull`]. Ignored if it is over.
    ///
    /// An attempt in flight is dropped without counting as anything; the tokens it took are spent.
    pub fn give_up(&mut self, now: Instant, stop: Stop) {
        if !matches!(self.machine.state, State::Done | State::Stopped { .. }) {
            self.machine.now = now;
            self.release_ticket();
            self.machine.stop(stop);
        }
    }

    /// Attempts started so far.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.machine.attempts
    }

    /// When the call must be over.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.machine.has_deadline().then_some(self.machine.deadline)
    }

    /// The time since the call started.
    #[must_use]
    pub const fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.machine.started)
    }

    /// After a stop: how long from then until another attempt could make sense, where that is
    /// known.
    ///
    /// The server's hint; the delay that did not fit before the deadline or for which there was no
    /// budget; the wait at the limiter; the rest of the breaker's open period, but not behind a
    /// probe, which may be over at any time. Counted from the stop; [`Duration::MAX`] if it was too
    /// long to represent.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.machine.state {
            State::Stopped { stop: Stop::HintTooLong { hint }, retry_after: Some(_) } => Some(hint),
            State::Stopped { retry_after: Some(u64::MAX), .. } => Some(Duration::MAX),
            State::Stopped { retry_after: Some(nanos), .. } => Some(duration(nanos)),
            _ => None,
        }
    }

    /// Whether the next poll at `now` may have to wait for the limiter: a driver with a queue takes
    /// its place in it first, and keeps the place until a poll answers with anything but
    /// [`Step::Throttled`].
    #[must_use]
    pub fn wants_permit(&self, now: Instant) -> bool {
        match self.machine.state {
            State::Ready { not_before, .. } if not_before <= now => {
                // What is free, too late or refused anyhow does not stand in line to hear it.
                self.machine.parts.is_worth_a_wait()
                    && !self.machine.is_past_deadline(now)
                    && self.breaker_would_admit(now)
            }
            _ => false,
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn step(&mut self, now: Instant, sample: &mut dyn Sample) -> Step {
        self.machine.set_now(now);
        match self.machine.state {
            // What every call begins with.
            State::Ready { not_before, .. } if not_before <= now => self.start(),
            State::Failed { .. } => self.decide(sample),
            _ => self.machine.named(),
        }
    }

    #[inline]
    fn start(&mut self) -> Step {
        // Too late to start, as the machine says.
        if self.machine.is_past_deadline(self.machine.now) || self.is_stopped_by_breaker() {
            return self.machine.named();
        }
        if let Some(refused) = self.machine.take() {
            return refused;
        }
        // Only now, so that no probe waits at the limiter.
        let timeout = self.machine.timeout();
        self.machine.state = State::InFlight { ticket: None };
        if !self.takes_ticket(timeout) {
            return self.machine.named();
        }
        let number = self.machine.count_attempt();
        Step::Attempt(Attempt::within(number, timeout))
    }

    /// What comes after a failure.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, sample: &mut dyn Sample) -> Step {
        if let Some(retry) = self.machine.next_retry(sample)
            && !self.is_refused_by_breaker(retry.at)
        {
            self.machine.retry(retry);
        }
        self.machine.named()
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn settle(&mut self, outcome: &Outcome, sample: &mut dyn Sample) {
        let ending = match outcome {
            Outcome::Success => Some(Ending::Success),
            Outcome::Failure(Failure { class: Class::Transient, .. }) => Some(Ending::Failure),
            // The caller's own mistakes and limits say nothing about the service's health.
            Outcome::Failure(_) | Outcome::Ignored => None,
        };
        match ending {
            Some(ending) => self.report_to_breaker(ending, sample),
            None => self.release_ticket(),
        }
        self.machine.settle(outcome);
    }
}
