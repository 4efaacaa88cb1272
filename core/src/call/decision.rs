//! Whether there is another attempt after a failure, and when.

use super::machine::{Machine, State};
use super::sample::Sample;
use super::step::{DelaySource, Stop};
use crate::backoff::draw;
use crate::budget::BudgetEmpty;
use crate::outcome::{Class, Failure, Hint, Safety, Sent};
use crate::policy::{HintSpread, UnhintedThrottle};
use crate::time::{Instant, saturating_nanos};

/// Another attempt.
#[derive(Clone, Copy)]
pub(super) struct Retry {
    pub(super) at: Instant,
    pub(super) source: DelaySource,
}

impl Machine<'_> {
    /// When there is another attempt after the failure, were it for this machine alone; where there
    /// is none, it has stopped.
    #[inline(never)]
    pub(super) fn next_retry(&mut self, sample: &mut dyn Sample) -> Option<Retry> {
        let State::Failed { failure } = self.state else { return None };
        let hint = failure.hint.delay().map(saturating_nanos);
        if let Some(stop) = self.reason_to_stop(&failure) {
            self.stop_until(stop, hint);
            return None;
        }
        let (shortest, longest) = match hint {
            Some(hint) => self.hinted(&failure, hint)?,
            None => self.scheduled(failure.class),
        };
        let nanos = draw(shortest, longest, sample.draw());
        let at = self.now.later(nanos);
        if hint.is_some() {
            return Some(Retry { at, source: DelaySource::Hint });
        }
        self.previous = nanos;
        if self.is_past_deadline(at) {
            self.stop_until(Stop::Deadline, Some(nanos));
            return None;
        }
        Some(Retry { at, source: DelaySource::Schedule })
    }

    /// Why there is no further attempt, whatever its delay would be.
    fn reason_to_stop(&self, failure: &Failure) -> Option<Stop> {
        match failure.class {
            Class::Permanent => Some(Stop::Permanent),
            Class::Quota => Some(Stop::Quota),
            Class::Throttled if self.stops_unhinted(failure) => Some(Stop::Quota),
            _ if self.safety == Safety::Once => Some(Stop::Committed),
            _ if self.safety == Safety::NonIdempotent && failure.sent == Sent::Maybe => {
                Some(Stop::NotIdempotent)
            }
            _ if self.is_nested => Some(Stop::Nested),
            _ if self.attempts >= self.parts.policy.max_attempts().get() => Some(Stop::Attempts),
            _ if self.is_past_deadline(self.now) => Some(Stop::Deadline),
            Class::Throttled | Class::Transient => None,
        }
    }

    /// Nothing at all about when to come back may mean a spending limit; zero or garbage does not.
    const fn stops_unhinted(&self, failure: &Failure) -> bool {
        matches!(failure.hint, Hint::Absent)
            && matches!(self.parts.policy.unhinted_throttle(), UnhintedThrottle::Stop)
    }

    /// The delays (ns) from which one is drawn, both ends included, after a hint of `delay` (ns).
    /// If that is too long, it has stopped.
    fn hinted(&mut self, failure: &Failure, delay: u64) -> Option<(u64, u64)> {
        let Hint::After { delay: hint, granularity } = failure.hint else { return None };
        // A hint too long to represent ends at the end of time, which is past any deadline.
        let earliest = self.now.later(delay);
        if delay > self.parts.policy.max_hint_nanos() || self.is_past_deadline(earliest) {
            self.stop_until(Stop::HintTooLong { hint }, Some(delay));
            return None;
        }
        let envelope = self.parts.policy.backoff().window(self.attempts);
        let width = match self.parts.policy.hint_spread() {
            HintSpread::Envelope => envelope,
            HintSpread::EnvelopeOrGranularity => envelope.max(u64::from(granularity)),
            HintSpread::None => 0,
        };
        // The spread is cut rather than the retry given up: the last start is just before the end.
        let room = self.deadline.as_nanos() - earliest.as_nanos(); // OK: more than nothing.
        Some((delay, delay + width.min(room - 1))) // OK: before the deadline, a u64.
    }

    /// The same where there is no hint.
    fn scheduled(&self, class: Class) -> (u64, u64) {
        let backoff = match (class, self.parts.policy.unhinted_throttle()) {
            (Class::Throttled, UnhintedThrottle::Backoff(backoff)) => backoff,
            _ => self.parts.policy.backoff(),
        };
        backoff.delays_from_to(self.attempts, self.previous)
    }

    /// Takes the retry out of the budget, once it is known that it will be admitted: a wait that
    /// can only end in a refusal is not begun.
    pub(super) fn retry(&mut self, retry: Retry) {
        let Retry { at: not_before, source } = retry;
        if let Some(budget) = self.parts.budget {
            if let Err(BudgetEmpty) = budget.withdraw(self.now) {
                return self.stop_until(Stop::Budget, Some(self.wait_until(not_before)));
            }
            self.is_charged = true;
        }
        self.tell_backoff(retry);
        self.state = State::Ready { not_before, source };
    }
}
