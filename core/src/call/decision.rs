//! Whether there is another attempt after a failure, and when.

use core::time::Duration;

use super::event::Event;
use super::step::{DelaySource, Step, Stop};
use super::{Call, State, Stopped};
use crate::backoff::draw;
use crate::budget::BudgetEmpty;
use crate::outcome::{Class, Failure, Hint, Safety, Sent};
use crate::policy::{HintSpread, UnhintedThrottle};
use crate::time::{Instant, saturating_nanos};

impl<const BUCKETS: usize> Call<'_, BUCKETS> {
    #[cold]
    pub(super) fn decide(
        &mut self,
        now: Instant,
        failure: Failure,
        sample: impl FnOnce() -> u64,
    ) -> Step {
        let delayed = self.delay(now, failure, sample);
        match delayed.and_then(|delayed| self.charged(now, delayed)) {
            Ok((delay, source)) => {
                let until = now.saturating_add(delay);
                self.state = State::Ready { not_before: until, source };
                self.tell(now, Event::Backoff { failure, delay, source });
                Step::Backoff { until, source }
            }
            Err(stopped) => self.stop(now, stopped),
        }
    }

    /// Takes the retry that was decided out of the budget, unless nobody will admit it: a wait that
    /// can only end in a refusal is not begun.
    fn charged(
        &mut self,
        now: Instant,
        (delay, source): (Duration, DelaySource),
    ) -> Result<(Duration, DelaySource), Stopped> {
        let start = now.saturating_add(delay);
        if let Some(open) = self.parts.breaker.and_then(|breaker| breaker.refuses_at(start)) {
            return Err(Stopped::circuit_open(now, open));
        }
        if let Some(budget) = self.parts.budget {
            match budget.withdraw(now) {
                Ok(()) => self.is_charged = true,
                Err(BudgetEmpty) => return Err(Stopped::until(Stop::Budget, Some(delay))),
            }
        }
        Ok((delay, source))
    }

    /// How long to wait before the next attempt, or why there is none.
    fn delay(
        &mut self,
        now: Instant,
        failure: Failure,
        sample: impl FnOnce() -> u64,
    ) -> Result<(Duration, DelaySource), Stopped> {
        let hint = failure.hint.delay();
        if let Some(stop) = self.reason_to_stop(now, failure) {
            return Err(Stopped::until(stop, hint));
        }
        match hint {
            Some(delay) => self.hinted(now, failure.hint, delay, sample),
            None => self.scheduled(now, failure.class, sample),
        }
    }

    /// Why there is no further attempt, whatever its delay would be.
    fn reason_to_stop(&self, now: Instant, failure: Failure) -> Option<Stop> {
        match failure.class {
            Class::Permanent => Some(Stop::Permanent),
            Class::Quota => Some(Stop::Quota),
            Class::Throttled if self.stops_unhinted(failure) => Some(Stop::Quota),
            _ if self.safety == Safety::Once => Some(Stop::Committed),
            _ if self.safety == Safety::NonIdempotent && failure.sent == Sent::Maybe => {
                Some(Stop::NotIdempotent)
            }
            _ if self.is_nested => Some(Stop::Nested),
            _ if self.attempts >= self.policy.max_attempts().get() => Some(Stop::Attempts),
            _ if self.is_past_deadline(now) => Some(Stop::Deadline),
            Class::Throttled | Class::Transient => None,
        }
    }

    fn hinted(
        &self,
        now: Instant,
        hint: Hint,
        delay: Duration,
        sample: impl FnOnce() -> u64,
    ) -> Result<(Duration, DelaySource), Stopped> {
        let earliest = now.saturating_add(delay);
        if delay > self.policy.max_hint() || self.is_past_deadline(earliest) {
            return Err(Stopped::until(Stop::HintTooLong { hint: delay }, Some(delay)));
        }
        let envelope = self.policy.backoff().envelope(self.attempts);
        let width = match (self.policy.hint_spread(), hint) {
            (HintSpread::Envelope, _) => envelope,
            (HintSpread::EnvelopeOrGranularity, Hint::After { granularity, .. }) => {
                envelope.max(Duration::from_nanos(u64::from(granularity)))
            }
            (HintSpread::EnvelopeOrGranularity | HintSpread::None, _) => Duration::ZERO,
        };
        // The spread is cut rather than the retry given up: the last start is just before the end.
        let room = self.deadline.as_nanos() - earliest.as_nanos();
        let width = saturating_nanos(width).min(room.saturating_sub(1));
        let spread = Duration::from_nanos(draw(0, width, sample()));
        Ok((delay.saturating_add(spread), DelaySource::Hint))
    }

    fn scheduled(
        &mut self,
        now: Instant,
        class: Class,
        sample: impl FnOnce() -> u64,
    ) -> Result<(Duration, DelaySource), Stopped> {
        let backoff = match (class, self.policy.unhinted_throttle()) {
            (Class::Throttled, UnhintedThrottle::Backoff(backoff)) => backoff,
            _ => self.policy.backoff(),
        };
        let previous = Duration::from_nanos(self.previous);
        let delay = backoff.delay(self.attempts, previous, sample());
        self.previous = saturating_nanos(delay);
        if self.is_past_deadline(now.saturating_add(delay)) {
            return Err(Stopped::until(Stop::Deadline, Some(delay)));
        }
        Ok((delay, DelaySource::Schedule))
    }

    /// Nothing at all about when to come back may mean a spending limit; zero or garbage does not.
    fn stops_unhinted(&self, failure: Failure) -> bool {
        failure.hint == Hint::Absent && *self.policy.unhinted_throttle() == UnhintedThrottle::Stop
    }
}
