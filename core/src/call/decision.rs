//! Whether there is another attempt after a failure, and when.

use super::event::Event;
use super::step::{DelaySource, Step, Stop};
use super::{Call, State, Stopped};
use crate::backoff::draw;
use crate::budget::BudgetEmpty;
use crate::outcome::{Class, Failure, Hint, Safety, Sent};
use crate::policy::{HintSpread, UnhintedThrottle};
use crate::time::{Instant, duration, saturating_nanos};

/// The delays (ns) from which one is drawn, both ends included.
#[derive(Clone, Copy)]
struct Range {
    shortest: u64,
    longest: u64,
    source: DelaySource,
}

impl<const BUCKETS: usize> Call<'_, BUCKETS> {
    #[cold]
    pub(super) fn decide(
        &mut self,
        at: Instant,
        failure: &Failure,
        now: Instant,
        sample: impl FnOnce() -> u64,
    ) -> Step {
        // Not before the failure, should the clock have stepped back.
        let now = now.max(at);
        match self.range(now, failure) {
            Ok(range) => self.retry(now, failure, range, sample()),
            Err(stopped) => self.stop(now, stopped),
        }
    }

    /// How long to wait before the next attempt, or why there is none.
    #[inline(never)]
    fn range(&self, now: Instant, failure: &Failure) -> Result<Range, Stopped> {
        if let Some(stop) = self.reason_to_stop(now, failure) {
            return Err(Stopped::until(stop, failure.hint.delay()));
        }
        match failure.hint {
            Hint::After { delay, granularity } if !delay.is_zero() => {
                let range = self.hinted(now, saturating_nanos(delay), granularity);
                range.ok_or(Stopped::until(Stop::HintTooLong { hint: delay }, Some(delay)))
            }
            _ => Ok(self.scheduled(failure.class)),
        }
    }

    /// Why there is no further attempt, whatever its delay would be.
    fn reason_to_stop(&self, now: Instant, failure: &Failure) -> Option<Stop> {
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

    /// Nothing at all about when to come back may mean a spending limit; zero or garbage does not.
    const fn stops_unhinted(&self, failure: &Failure) -> bool {
        matches!(failure.hint, Hint::Absent)
            && matches!(self.policy.unhinted_throttle(), UnhintedThrottle::Stop)
    }

    /// After a hint of `delay` (ns); `None` if that is too long.
    fn hinted(&self, now: Instant, delay: u64, granularity: u32) -> Option<Range> {
        // A hint too long to represent ends at the end of time, which is past any deadline.
        let earliest = now.later(delay);
        if delay > saturating_nanos(self.policy.max_hint()) || self.is_past_deadline(earliest) {
            return None;
        }
        let envelope = self.policy.backoff().window(self.attempts);
        let width = match self.policy.hint_spread() {
            HintSpread::Envelope => envelope,
            HintSpread::EnvelopeOrGranularity => envelope.max(u64::from(granularity)),
            HintSpread::None => 0,
        };
        // The spread is cut rather than the retry given up: the last start is just before the end.
        let room = self.deadline.as_nanos() - earliest.as_nanos(); // OK: more than nothing.
        let longest = delay + width.min(room - 1); // OK: before the deadline, a u64.
        Some(Range { shortest: delay, longest, source: DelaySource::Hint })
    }

    fn scheduled(&self, class: Class) -> Range {
        let backoff = match (class, self.policy.unhinted_throttle()) {
            (Class::Throttled, UnhintedThrottle::Backoff(backoff)) => backoff,
            _ => self.policy.backoff(),
        };
        let (shortest, longest) = backoff.delays_from_to(self.attempts, self.previous);
        Range { shortest, longest, source: DelaySource::Schedule }
    }

    /// Takes the retry out of the budget, unless nobody will admit it: a wait that can only end in
    /// a refusal is not begun.
    #[inline(never)]
    fn retry(&mut self, now: Instant, failure: &Failure, range: Range, sample: u64) -> Step {
        let Range { shortest, longest, source } = range;
        let nanos = draw(shortest, longest, sample);
        let until = now.later(nanos);
        if source == DelaySource::Schedule {
            self.previous = nanos;
            if self.is_past_deadline(until) {
                return self.stop_until(now, Stop::Deadline, nanos);
            }
        }
        if let Some(stopped) = self.refused_by_breaker(now, until) {
            return stopped;
        }
        if let Some(budget) = self.parts.budget {
            match budget.withdraw(now) {
                Ok(()) => self.is_charged = true,
                Err(BudgetEmpty) => return self.stop_until(now, Stop::Budget, nanos),
            }
        }
        self.state = State::Ready { not_before: until, source };
        if self.parts.observer.is_some() {
            let delay = duration(nanos);
            self.notify(now, Event::Backoff { failure: *failure, delay, source });
        }
        Step::Backoff { until, source }
    }
}
