//! A call but for its circuit breaker: where it stands, and what follows from that alone.

use super::parts::{Parts, Purse};
use super::step::{Attempt, DelaySource, Step, Stop};
use crate::breaker::Ticket;
use crate::limiter::Refusal;
use crate::outcome::{Failure, Outcome, Safety};
use crate::policy::Policy;
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) parts: Parts<'a>,
    pub(super) safety: Safety,
    /// Whether another layer tries again, so that this one must not.
    pub(super) is_nested: bool,
    pub(super) started: Instant,
    /// The end of time if there is none.
    pub(super) deadline: Instant,
    pub(super) attempts: u32,
    /// The last delay of the own schedule (ns).
    pub(super) previous: u64,
    pub(super) state: State,
    /// What the clock said last, but not before the last failure.
    pub(super) now: Instant,
    /// Whether a retry is taken out of the budget and not yet sent.
    pub(super) is_charged: bool,
}

/// Its tag is a field of its own: one hidden in the payload makes every copy of it a byte-wise one.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum State {
    Done,
    Failed {
        failure: Failure,
    },
    InFlight {
        ticket: Option<Ticket>,
    },
    Ready {
        not_before: Instant,
        source: DelaySource,
    },
    /// With the time (ns) from then until another attempt could make sense.
    Stopped {
        stop: Stop,
        retry_after: Option<u64>,
    },
}

impl<'a> Machine<'a> {
    #[inline]
    pub(super) const fn new(policy: &'a Policy, safety: Safety, now: Instant) -> Self {
        Self {
            parts: Parts::new(policy),
            safety,
            is_nested: false,
            started: now,
            deadline: now.later(policy.deadline_nanos()),
            attempts: 0,
            previous: 0,
            // Ready whatever the clock says next: it may step back.
            state: State::Ready { not_before: Instant::EPOCH, source: DelaySource::Schedule },
            now,
            is_charged: false,
        }
    }

    /// After a failure it is not before that, should the clock have stepped back.
    #[inline]
    pub(super) fn set_now(&mut self, now: Instant) {
        self.now = match self.state {
            State::Failed { .. } => self.now.max(now),
            _ => now,
        };
    }

    /// What to do, which is not to be decided now.
    #[cold]
    #[inline(never)]
    pub(super) fn named(&mut self) -> Step {
        if matches!(self.state, State::Ready { .. }) && self.is_past_deadline(self.now) {
            self.stop(Stop::Deadline);
        }
        match self.state {
            State::Done => Step::Done,
            State::InFlight { .. } => Step::Attempt(Attempt::within(self.attempts, self.timeout())),
            State::Ready { not_before: until, source } => Step::Backoff { until, source },
            State::Stopped { stop, .. } => Step::Stop(stop),
            // Decided before it comes here.
            State::Failed { .. } => {
                Step::Backoff { until: self.now, source: DelaySource::Schedule }
            }
        }
    }

    /// Notes what the attempt came to, the breaker having been told.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(super) fn settle(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Ignored => self.stop(Stop::Permanent),
            Outcome::Success => {
                self.state = State::Done;
                self.tell_end();
            }
            Outcome::Failure(failure) => {
                self.state = State::Failed { failure: *failure };
                self.parts.throttle(self.now, failure);
            }
        }
    }

    /// An attempt starts: its number.
    pub(super) fn count_attempt(&mut self) -> u32 {
        if !core::mem::take(&mut self.is_charged) {
            self.parts.budget.into_iter().for_each(Purse::deposit);
        }
        self.attempts += 1; // OK: at most `max_attempts`, a u32.
        self.tell_attempt();
        self.attempts
    }

    pub(super) fn give_charge_back(&mut self) {
        if core::mem::take(&mut self.is_charged) {
            self.parts.budget.into_iter().for_each(Purse::refund);
        }
    }

    #[cold]
    pub(super) fn refused(&mut self, refusal: Refusal) -> Step {
        match refusal {
            Refusal::Never { burst } => self.stop(Stop::CostTooHigh { burst }),
            Refusal::NotYet { until } if self.is_past_deadline(until) => {
                self.stop_until(Stop::Deadline, Some(self.wait_until(until)));
            }
            Refusal::NotYet { until } => {
                self.tell_throttled(until);
                return Step::Throttled { until };
            }
        }
        self.named()
    }

    /// The time (ns) from now until `then`.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(super) const fn wait_until(&self, then: Instant) -> u64 {
        then.as_nanos().saturating_sub(self.now.as_nanos())
    }

    /// The longest (ns) that an attempt which starts now may take, `u64::MAX` if that is for ever.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(super) fn timeout(&self) -> u64 {
        let mut timeout = self.parts.policy.attempt_timeout_nanos();
        if self.has_deadline() {
            timeout = timeout.min(self.wait_until(self.deadline));
        }
        timeout
    }

    pub(super) const fn has_deadline(&self) -> bool {
        self.parts.policy.deadline_nanos() < u64::MAX
    }

    /// Whether `start` is too late: at or after the deadline, or at the end of time, which is
    /// never.
    pub(super) fn is_past_deadline(&self, start: Instant) -> bool {
        self.deadline <= start
    }

    #[cold]
    #[inline(never)]
    pub(super) fn stop(&mut self, stop: Stop) {
        self.stop_until(stop, None);
    }

    /// Another attempt could make sense `retry_after` nanoseconds from now, if that is known.
    #[cold]
    #[inline(never)]
    pub(super) fn stop_until(&mut self, stop: Stop, retry_after: Option<u64>) {
        self.state = State::Stopped { stop, retry_after };
        self.give_charge_back();
        self.tell_end();
    }
}
