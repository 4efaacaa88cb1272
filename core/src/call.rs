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

mod step;

use core::time::Duration;

pub use self::step::{Attempt, DelaySource, Step, Stop};
use crate::backoff::draw;
use crate::limiter::{Limiter, Refusal};
use crate::outcome::{Class, Failure, Hint, Outcome, Safety, Sent};
use crate::policy::{HintSpread, Policy, UnhintedThrottle};
use crate::time::{Instant, saturating_nanos};

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
/// call.record(now, Outcome::Failure(Failure::throttled().with_hint(hint)));
/// let Step::Backoff { until, .. } = call.poll(now, || 0) else { panic!() };
/// assert_eq!(until, now.saturating_add(Duration::from_secs(5)));
///
/// let Step::Attempt(Attempt { number: 2, .. }) = call.poll(until, || 0) else { panic!() };
/// let hint = Duration::from_secs(60);
/// call.record(until, Outcome::Failure(Failure::throttled().with_hint(Hint::after(hint))));
/// assert_eq!(call.poll(until, || 0), Step::Stop(Stop::HintTooLong { hint }));
/// ```
#[derive(Debug)]
#[must_use = "a call does nothing until it is polled"]
pub struct Call<'a> {
    policy: &'a Policy,
    limiter: Option<(&'a Limiter, u32)>,
    safety: Safety,
    started: Instant,
    deadline: Option<Instant>,
    attempts: u32,
    previous: Duration,
    retry_after: Option<Duration>,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Done,
    Failed { failure: Failure, at: Instant },
    InFlight,
    Ready { not_before: Instant, source: DelaySource },
    Stopped(Stop),
}

impl<'a> Call<'a> {
    /// A call that starts now; its deadline counts from here.
    pub const fn new(policy: &'a Policy, safety: Safety, now: Instant) -> Self {
        let deadline = match policy.deadline() {
            Some(deadline) => Some(now.saturating_add(deadline)),
            None => None,
        };
        Self {
            policy,
            limiter: None,
            safety,
            started: now,
            deadline,
            attempts: 0,
            previous: Duration::ZERO,
            retry_after: None,
            // Ready whatever the clock says next: it may step back.
            state: State::Ready { not_before: Instant::EPOCH, source: DelaySource::Schedule },
        }
    }

    /// The same call, each attempt of which takes `cost` tokens from `limiter` first.
    pub const fn with_limiter(self, limiter: &'a Limiter, cost: u32) -> Self {
        Self { limiter: Some((limiter, cost)), ..self }
    }

    /// What to do next.
    ///
    /// `sample` is called at most once, only to spread the delay before a retry, and must give a
    /// number uniform over all of `u64`. Polling before the time that was named repeats the answer.
    /// While an attempt is in flight that attempt is named again: it is not another one to make.
    #[inline]
    pub fn poll(&mut self, now: Instant, sample: impl FnOnce() -> u64) -> Step {
        match self.state {
            State::Done => Step::Done,
            State::Failed { failure, at } => match self.delay(now.max(at), failure, sample) {
                Ok((delay, source)) => {
                    let until = now.max(at).saturating_add(delay);
                    self.state = State::Ready { not_before: until, source };
                    Step::Backoff { until, source }
                }
                Err(stop) => self.stop(stop),
            },
            State::InFlight => Step::Attempt(self.attempt(now)),
            State::Ready { not_before, source }
                if now < not_before && !self.is_past_deadline(now) =>
            {
                Step::Backoff { until: not_before, source }
            }
            State::Ready { .. } => self.start(now),
            State::Stopped(stop) => Step::Stop(stop),
        }
    }

    /// Reports what the attempt in flight came to. Ignored if there is none.
    ///
    /// A throttled failure with a hint also pauses the limiter for as long (at most `max_hint`), so
    /// that other callers do not find out one by one.
    #[inline]
    pub fn record(&mut self, now: Instant, outcome: Outcome) {
        if !matches!(self.state, State::InFlight) {
            return;
        }
        self.state = match outcome {
            Outcome::Ignored => State::Stopped(Stop::Permanent),
            Outcome::Success => State::Done,
            Outcome::Failure(failure) => {
                self.pause_others(now, failure);
                State::Failed { failure, at: now }
            }
        };
    }

    /// Reports that the attempt in flight was cut off by its timeout: a transient failure of a
    /// request that may have been processed.
    pub fn record_timeout(&mut self, now: Instant) {
        self.record(now, Outcome::Failure(Failure::transient()));
    }

    /// Attempts started so far.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When the call must be over.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The time since the call started.
    #[must_use]
    pub const fn elapsed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// After a stop: how long from then until another attempt could make sense, where that is
    /// known.
    ///
    /// The server's hint, the wait that did not fit before the deadline, or the limiter's. Counted
    /// from the stop, and `None` if the wait was over by then.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the next poll at `now` may have to wait for the limiter: a driver with a queue takes
    /// its place in it first, and keeps the place until a poll answers with anything but
    /// [`Step::Throttled`].
    #[must_use]
    pub fn wants_permit(&self, now: Instant) -> bool {
        match (self.state, self.limiter) {
            (State::Ready { not_before, .. }, Some((limiter, cost))) if not_before <= now => {
                // What is free, too late or can never be admitted does not stand in line to hear
                // it.
                cost > 0 && !self.is_past_deadline(now) && cost <= limiter.quota().burst()
            }
            _ => false,
        }
    }

    #[inline]
    fn start(&mut self, now: Instant) -> Step {
        self.retry_after = None; // Whatever was to be waited for is over.
        if self.is_past_deadline(now) {
            return self.stop(Stop::Deadline);
        }
        if let Some((limiter, cost)) = self.limiter {
            match limiter.try_acquire(now, cost) {
                Ok(()) => {}
                Err(Refusal::Never { burst }) => return self.stop(Stop::CostTooHigh { burst }),
                Err(Refusal::NotYet { until }) if self.is_past_deadline(until) => {
                    self.retry_after = Some(until.saturating_duration_since(now));
                    return self.stop(Stop::Deadline);
                }
                Err(Refusal::NotYet { until }) => return Step::Throttled { until },
            }
        }
        self.state = State::InFlight;
        self.attempts += 1; // OK: at most `max_attempts`, a u32.
        Step::Attempt(self.attempt(now))
    }

    fn attempt(&self, now: Instant) -> Attempt {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
        let timeout = match (self.policy.attempt_timeout(), left) {
            (Some(timeout), Some(left)) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left),
        };
        Attempt { number: self.attempts, timeout }
    }

    /// How long to wait before the next attempt, or why there is none.
    #[cold]
    fn delay(
        &mut self,
        now: Instant,
        failure: Failure,
        sample: impl FnOnce() -> u64,
    ) -> Result<(Duration, DelaySource), Stop> {
        let hint = failure.hint.delay();
        self.retry_after = hint;
        match failure.class {
            Class::Permanent => return Err(Stop::Permanent),
            Class::Quota => return Err(Stop::Quota),
            Class::Throttled if self.stops_unhinted(failure) => return Err(Stop::Quota),
            Class::Throttled | Class::Transient => {}
        }
        if self.safety == Safety::NonIdempotent && failure.sent == Sent::Maybe {
            return Err(Stop::NotIdempotent);
        }
        if self.attempts >= self.policy.max_attempts().get() {
            return Err(Stop::Attempts);
        }
        if self.is_past_deadline(now) {
            return Err(Stop::Deadline);
        }
        match hint {
            Some(delay) => self.hinted(now, failure.hint, delay, sample),
            None => self.scheduled(now, failure.class, sample),
        }
    }

    fn hinted(
        &self,
        now: Instant,
        hint: Hint,
        delay: Duration,
        sample: impl FnOnce() -> u64,
    ) -> Result<(Duration, DelaySource), Stop> {
        let earliest = now.saturating_add(delay);
        if delay > self.policy.max_hint() || self.is_past_deadline(earliest) {
            return Err(Stop::HintTooLong { hint: delay });
        }
        let envelope = self.policy.backoff().envelope(self.attempts);
        let width = match (self.policy.hint_spread(), hint) {
            (HintSpread::Envelope, _) => envelope,
            (HintSpread::EnvelopeOrGranularity, Hint::After { granularity, .. }) => {
                envelope.max(granularity)
            }
            (HintSpread::EnvelopeOrGranularity | HintSpread::None, _) => Duration::ZERO,
        };
        // The spread is cut rather than the retry given up: the last start is just before the end.
        let room = self.deadline.unwrap_or(Instant::MAX).as_nanos() - earliest.as_nanos();
        let width = saturating_nanos(width).min(room.saturating_sub(1));
        let spread = Duration::from_nanos(draw(0, width, sample()));
        Ok((delay.saturating_add(spread), DelaySource::Hint))
    }

    fn scheduled(
        &mut self,
        now: Instant,
        class: Class,
        sample: impl FnOnce() -> u64,
    ) -> Result<(Duration, DelaySource), Stop> {
        let backoff = match (class, self.policy.unhinted_throttle()) {
            (Class::Throttled, UnhintedThrottle::Backoff(backoff)) => backoff,
            _ => self.policy.backoff(),
        };
        let delay = backoff.delay(self.attempts, self.previous, sample());
        self.previous = delay;
        if self.is_past_deadline(now.saturating_add(delay)) {
            self.retry_after = Some(delay);
            return Err(Stop::Deadline);
        }
        Ok((delay, DelaySource::Schedule))
    }

    /// Nothing at all about when to come back may mean a spending limit; zero or garbage does not.
    fn stops_unhinted(&self, failure: Failure) -> bool {
        failure.hint == Hint::Absent && *self.policy.unhinted_throttle() == UnhintedThrottle::Stop
    }

    fn pause_others(&self, now: Instant, failure: Failure) {
        match (failure.class, failure.hint.delay(), self.limiter) {
            // An endless hint is no time to come back, and must not stop everybody for ever.
            (Class::Throttled, Some(delay), Some((limiter, _))) if delay < Duration::MAX => {
                limiter.pause_until(now.saturating_add(delay.min(self.policy.max_hint())));
            }
            _ => {}
        }
    }

    /// Whether `start` is too late: at or after the deadline, or at the end of time, which is
    /// never.
    fn is_past_deadline(&self, start: Instant) -> bool {
        self.deadline.unwrap_or(Instant::MAX) <= start
    }

    const fn stop(&mut self, stop: Stop) -> Step {
        self.state = State::Stopped(stop);
        Step::Stop(stop)
    }
}
