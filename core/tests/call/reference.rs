//! The rules of a call, written down naively: whole-number time, one rule after the other.

use core::time::Duration;

use holdoff::{
    Attempt, Class, DelaySource, Failure, Hint, HintSpread, Instant, Limiter, Outcome, Refusal,
    Safety, Sent, Step, Stop, UnhintedThrottle,
};

use crate::rules::Rules;

/// A call as the rules say it goes. It has a limiter of its own, the twin of the call's.
pub(crate) struct Reference<'a> {
    rules: &'a Rules,
    limiter: Option<(&'a Limiter, u32)>,
    deadline: Option<u128>,
    attempts: u32,
    /// The delay before the previous retry that was drawn from a schedule.
    previous: Duration,
    phase: Phase,
    /// When to come back, where the last stop says so.
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Clone, Copy)]
enum Phase {
    /// What it came to, and when.
    Failed(Failure, u128),
    Over(Step),
    Running,
    Waiting(u128, DelaySource),
}

const END: u128 = u64::MAX as u128;

fn nanos(instant: Instant) -> u128 {
    instant.as_nanos().into()
}

/// As much as the machine can represent, and more is for ever.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// A wait as it is told.
fn told(wait: Duration) -> Duration {
    if wait < LONGEST { wait } else { Duration::MAX }
}

fn instant(nanos: u128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl<'a> Reference<'a> {
    pub(crate) fn new(rules: &'a Rules, limiter: Option<(&'a Limiter, u32)>, now: Instant) -> Self {
        let after = |deadline: Duration| (nanos(now) + deadline.as_nanos()).min(END);
        Self {
            rules,
            limiter,
            // One too long to represent is none.
            deadline: rules.deadline.filter(|deadline| *deadline < LONGEST).map(after),
            attempts: 0,
            previous: Duration::ZERO,
            phase: Phase::Waiting(0, DelaySource::Schedule),
            retry_after: None,
        }
    }

    /// Whether an attempt at `start` would be made, as far as the deadline and the clock's end are
    /// concerned.
    pub(crate) fn is_in_time(&self, start: u128) -> bool {
        start < self.deadline.unwrap_or(END)
    }

    pub(crate) fn poll(&mut self, now: Instant, sample: u64) -> Step {
        let now = nanos(now);
        let step = match self.phase {
            Phase::Over(step) => step,
            Phase::Running => self.attempt(now),
            Phase::Failed(failure, at) => match self.next_start(now.max(at), failure, sample) {
                Ok((start, source)) => {
                    self.phase = Phase::Waiting(start, source);
                    Step::Backoff { until: instant(start), source }
                }
                Err(stop) => Step::Stop(stop),
            },
            Phase::Waiting(start, source) if now < start && self.is_in_time(now) => {
                Step::Backoff { until: instant(start), source }
            }
            Phase::Waiting(..) => self.start(now),
        };
        if let Step::Stop(_) = step {
            self.phase = Phase::Over(step);
        }
        step
    }

    pub(crate) fn record(&mut self, now: Instant, outcome: Outcome) {
        self.phase = match outcome {
            Outcome::Success => Phase::Over(Step::Done),
            Outcome::Ignored => Phase::Over(Step::Stop(Stop::Permanent)),
            Outcome::Failure(failure) => {
                // Being told when to come back goes for everybody who shares the limiter.
                if let (Class::Throttled, Some(delay), Some((limiter, _))) =
                    (failure.class, failure.hint.delay(), self.limiter)
                    && delay < Duration::MAX
                {
                    let pause = delay.min(self.rules.max_hint);
                    limiter.pause_until(now.saturating_add(pause));
                }
                Phase::Failed(failure, nanos(now))
            }
        };
    }

    fn start(&mut self, now: u128) -> Step {
        self.retry_after = None;
        if !self.is_in_time(now) {
            return Step::Stop(Stop::Deadline);
        }
        if let Some((limiter, cost)) = self.limiter {
            match limiter.try_acquire(instant(now), cost) {
                Ok(()) => {}
                Err(Refusal::Never { burst }) => return Step::Stop(Stop::CostTooHigh { burst }),
                Err(Refusal::NotYet { until }) if self.is_in_time(nanos(until)) => {
                    return Step::Throttled { until };
                }
                Err(Refusal::NotYet { until }) => {
                    self.retry_after = Some(told(until.saturating_duration_since(instant(now))));
                    return Step::Stop(Stop::Deadline);
                }
            }
        }
        self.attempts += 1;
        self.phase = Phase::Running;
        self.attempt(now)
    }

    fn attempt(&self, now: u128) -> Step {
        let left = self.deadline.map(|deadline| {
            Duration::from_nanos(u64::try_from(deadline.saturating_sub(now)).expect("in range"))
        });
        let timeout = [self.rules.attempt_timeout, left].into_iter().flatten().min();
        Step::Attempt(Attempt::new(self.attempts, timeout))
    }

    fn next_start(
        &mut self,
        now: u128,
        failure: Failure,
        sample: u64,
    ) -> Result<(u128, DelaySource), Stop> {
        let rules = self.rules;
        let hint = failure.hint.delay();
        self.retry_after = hint.map(told);
        let says_nothing = failure.hint == Hint::Absent;
        match failure.class {
            Class::Transient => {}
            Class::Throttled if says_nothing && rules.unhinted == UnhintedThrottle::Stop => {
                return Err(Stop::Quota);
            }
            Class::Throttled => {}
            Class::Quota => return Err(Stop::Quota),
            _ => return Err(Stop::Permanent),
        }
        if rules.safety == Safety::NonIdempotent && failure.sent == Sent::Maybe {
            return Err(Stop::NotIdempotent);
        }
        if self.attempts == rules.max_attempts {
            return Err(Stop::Attempts);
        }
        if !self.is_in_time(now) {
            return Err(Stop::Deadline);
        }
        if let (Some(delay), Hint::After { granularity, .. }) = (hint, failure.hint) {
            let start = now + delay.as_nanos();
            if delay > rules.max_hint || !self.is_in_time(start) {
                self.retry_after = hint;
                return Err(Stop::HintTooLong { hint: delay });
            }
            let envelope = rules.schedule.backoff.envelope(self.attempts).as_nanos();
            let width = match rules.spread {
                HintSpread::Envelope => envelope,
                HintSpread::EnvelopeOrGranularity => envelope.max(granularity.into()),
                _ => 0,
            };
            // Up to the last instant at which a start is in time.
            let last = self.deadline.unwrap_or(END) - 1;
            let width = width.min(last - start);
            let spread = ((width + 1) * u128::from(sample)) >> 64;
            return Ok((start + spread, DelaySource::Hint));
        }
        let backoff = match (failure.class, rules.unhinted) {
            (Class::Throttled, UnhintedThrottle::Backoff(throttled)) => throttled,
            _ => rules.schedule.backoff,
        };
        let delay = backoff.delay(self.attempts, self.previous, sample);
        self.previous = delay;
        let start = (now + delay.as_nanos()).min(END);
        if !self.is_in_time(start) {
            self.retry_after = Some(told(delay));
            return Err(Stop::Deadline);
        }
        Ok((start, DelaySource::Schedule))
    }
}
