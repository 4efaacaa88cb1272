//! One call, and what it may answer.

use std::time::Duration;

use holdoff::{
    Attempt, Call, Class, DelaySource, Failure, Hint, HintSpread, Instant, Outcome, Policy,
    Refusal, Safety, Sent, Step, Stop, UnhintedThrottle,
};

use super::shared::Shared;
use crate::model::breaker::{Ending, Ticket};

pub(super) struct Tracked<'a, const BUCKETS: usize> {
    pub(super) call: Call<'a, BUCKETS>,
    pub(super) policy: &'a Policy,
    pub(super) safety: Safety,
    pub(super) cost: u32,
    /// The end of time if there is none.
    pub(super) deadline: Instant,
    pub(super) attempts: u32,
    /// The last delay of its own schedule.
    pub(super) previous: Duration,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Done,
    Failed { failure: Failure, at: Instant },
    InFlight(Option<Ticket>),
    Ready(Ready),
    Stopped(Stop),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) not_before: Instant,
    pub(super) source: DelaySource,
    /// What a hint asked for.
    pub(super) hinted: Instant,
    pub(super) is_charged: bool,
}

impl<const BUCKETS: usize> Tracked<'_, BUCKETS> {
    pub(super) fn poll(&mut self, shared: &mut Shared, now: Instant, sample: u64) -> Step {
        let may_wait = self.call.wants_permit(now);
        let mut draws = 0;
        let step = self.call.poll(now, || {
            draws += 1;
            sample
        });
        assert!(draws <= 1, "drawn twice");
        match self.phase {
            Phase::Done => assert_eq!(step, Step::Done),
            Phase::Stopped(stop) => assert_eq!(step, Step::Stop(stop)),
            Phase::InFlight(_) => assert_eq!(step, Step::Attempt(self.attempt(now))),
            Phase::Failed { failure, at } => self.check_decision(shared, now, (failure, at), step),
            Phase::Ready(Ready { not_before: until, source, .. })
                if now < until && now < self.deadline =>
            {
                assert_eq!(step, Step::Backoff { until, source });
            }
            Phase::Ready(ready) => {
                assert_eq!(step, self.start(shared, now, ready), "at {now:?}");
            }
        }
        assert!(may_wait || !matches!(step, Step::Throttled { .. }), "waits without a place");
        assert_eq!(self.call.attempts(), self.attempts);
        assert!(self.attempts <= self.policy.max_attempts().get(), "too many attempts");
        step
    }

    fn attempt(&self, now: Instant) -> Attempt {
        let left = self.policy.deadline().map(|_| self.deadline.saturating_duration_since(now));
        let timeout = [self.policy.attempt_timeout(), left].into_iter().flatten().min();
        Attempt::new(self.attempts, timeout)
    }

    /// What asking to start comes to, in the order deadline, breaker, limiter.
    fn start(&mut self, shared: &mut Shared, now: Instant, ready: Ready) -> Step {
        if now >= self.deadline {
            return self.stopped(shared, Stop::Deadline);
        }
        if let Some(Err(retry_at)) = shared.breaker.as_ref().map(|breaker| breaker.peek(now)) {
            let stop = Stop::CircuitOpen { retry_at: retry_at.unwrap_or(Instant::MAX) };
            return self.stopped(shared, stop);
        }
        let answer = shared.limiter.as_mut().map(|limiter| limiter.try_acquire(now, self.cost));
        match answer {
            None | Some(Ok(())) => {}
            Some(Err(Refusal::Never { burst })) => {
                return self.stopped(shared, Stop::CostTooHigh { burst });
            }
            Some(Err(Refusal::NotYet { until })) if until >= self.deadline => {
                let wait = until.saturating_duration_since(now);
                assert_eq!(self.call.retry_after(), Some(wait), "the wait that does not fit");
                return self.stopped(shared, Stop::Deadline);
            }
            Some(Err(Refusal::NotYet { until })) => {
                shared.counts.throttles += 1;
                return Step::Throttled { until };
            }
        }
        let timeout = self.attempt(now).timeout();
        let breaker = shared.breaker.as_mut();
        let ticket = breaker.map(|breaker| breaker.try_acquire_within(now, timeout));
        let ticket = ticket.map(|ticket| ticket.expect("peeked"));
        match &mut shared.budget {
            Some(budget) if !ready.is_charged => budget.deposit(),
            _ => {}
        }
        assert!(now >= ready.hinted, "earlier than the hint");
        assert!(now < self.deadline, "at or after the deadline");
        shared.count_attempt(self.attempts == 0, ticket);
        self.attempts += 1;
        self.phase = Phase::InFlight(ticket);
        Step::Attempt(self.attempt(now))
    }

    /// Gives back what it holds.
    fn stopped(&mut self, shared: &mut Shared, stop: Stop) -> Step {
        self.free(shared);
        shared.count_stop(self.attempts);
        self.phase = Phase::Stopped(stop);
        Step::Stop(stop)
    }

    /// After a failure: another attempt or a true reason why there is none.
    fn check_decision(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        (failure, at): (Failure, Instant),
        step: Step,
    ) {
        // A clock that stepped back since it was recorded does not count.
        let now = now.max(at);
        let reasons = self.reasons(now, failure);
        let refused_at =
            |then| shared.breaker.as_ref().and_then(|breaker| breaker.refuses_at(then));
        match step {
            Step::Stop(stop) if reasons.contains(&stop) => {}
            Step::Stop(Stop::CircuitOpen { retry_at }) => {
                assert!(reasons.is_empty(), "{reasons:?} come first");
                let (soonest, _) = self.bounds(failure);
                assert_eq!(refused_at(now.saturating_add(soonest)), Some(retry_at));
            }
            Step::Stop(Stop::Budget) => {
                assert!(reasons.is_empty(), "{reasons:?} come first");
                let (_, latest) = self.bounds(failure);
                assert_eq!(refused_at(now.saturating_add(latest)), None, "comes first");
                let budget = shared.budget.as_mut().expect("there is a budget");
                assert!(!budget.withdraw(now), "the budget is not used up");
            }
            Step::Stop(Stop::Deadline) => {
                assert!(reasons.is_empty() && failure.hint.delay().is_none(), "{reasons:?}");
                let delay = self.call.retry_after().expect("the wait that does not fit");
                // The longest that there is is told as for ever.
                let delay = delay.min(Duration::from_nanos(u64::MAX));
                self.check_delay(failure, delay, DelaySource::Schedule);
                assert!(now.saturating_add(delay) >= self.deadline, "it would have fit");
            }
            Step::Backoff { until, source } => {
                assert!(reasons.is_empty(), "goes on in spite of {reasons:?}");
                assert!(until < self.deadline, "would start at or after the deadline");
                assert_eq!(refused_at(until), None, "waits in vain");
                let delay = until.saturating_duration_since(now);
                self.check_delay(failure, delay, source);
                let is_charged = match &mut shared.budget {
                    Some(budget) => {
                        assert!(budget.withdraw(now), "overdrawn");
                        true
                    }
                    None => false,
                };
                let hint = failure.hint.delay().unwrap_or_default();
                let hinted = now.saturating_add(hint);
                self.phase = Phase::Ready(Ready { not_before: until, source, hinted, is_charged });
            }
            step => panic!("{step:?} after a failure, with {reasons:?}"),
        }
        if let Step::Stop(stop) = step {
            self.stopped(shared, stop);
        }
    }

    /// Why it may stop, whatever its own delay would be.
    fn reasons(&self, now: Instant, failure: Failure) -> Vec<Stop> {
        let hint = failure.hint.delay();
        let is_unhinted = failure.class == Class::Throttled && failure.hint == Hint::Absent;
        let stops_unhinted = *self.policy.unhinted_throttle() == UnhintedThrottle::Stop;
        let is_unsafe = self.safety == Safety::NonIdempotent && failure.sent == Sent::Maybe;
        let mut reasons = Vec::new();
        let mut add = |is_true: bool, stop| {
            if is_true {
                reasons.push(stop);
            }
        };
        add(failure.class == Class::Permanent, Stop::Permanent);
        add(failure.class == Class::Quota || is_unhinted && stops_unhinted, Stop::Quota);
        add(is_unsafe, Stop::NotIdempotent);
        add(self.attempts >= self.policy.max_attempts().get(), Stop::Attempts);
        add(now >= self.deadline, Stop::Deadline);
        if let Some(hint) = hint {
            let is_late = now.saturating_add(hint) >= self.deadline;
            add(hint > self.policy.max_hint() || is_late, Stop::HintTooLong { hint });
        }
        reasons
    }

    fn check_delay(&mut self, failure: Failure, delay: Duration, source: DelaySource) {
        let bounds = self.bounds(failure);
        let expected = failure.hint.delay().map_or(DelaySource::Schedule, |_| DelaySource::Hint);
        assert_eq!(source, expected);
        if source == DelaySource::Schedule {
            self.previous = delay;
        }
        assert!(bounds.0 <= delay && delay <= bounds.1, "{delay:?} is not within {bounds:?}");
    }

    /// The shortest and the longest delay after a failure.
    fn bounds(&self, failure: Failure) -> (Duration, Duration) {
        if let Some(hint) = failure.hint.delay() {
            let envelope = self.policy.backoff().envelope(self.attempts);
            let width = match (self.policy.hint_spread(), failure.hint) {
                (HintSpread::Envelope, _) => envelope,
                (HintSpread::EnvelopeOrGranularity, Hint::After { granularity, .. }) => {
                    envelope.max(Duration::from_nanos(granularity.into()))
                }
                _ => Duration::ZERO,
            };
            (hint, hint.saturating_add(width))
        } else {
            let backoff = match (failure.class, self.policy.unhinted_throttle()) {
                (Class::Throttled, UnhintedThrottle::Backoff(backoff)) => backoff,
                _ => self.policy.backoff(),
            };
            backoff.bounds(self.attempts, self.previous)
        }
    }

    /// Reports how the attempt in flight ended, if there is one.
    pub(super) fn record(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        (outcome, is_timeout): (Outcome, bool),
    ) {
        if is_timeout {
            self.call.record_timeout(now, || 0);
        } else {
            self.call.record(now, outcome, || 0);
        }
        let Phase::InFlight(ticket) = self.phase else { return };
        match outcome {
            Outcome::Success => {
                shared.report(now, ticket, Ending::Success);
                shared.counts.successes += 1;
                self.phase = Phase::Done;
            }
            Outcome::Ignored => {
                shared.report(now, ticket, Ending::Neutral);
                self.phase = Phase::Ready(Ready {
                    not_before: now,
                    source: DelaySource::Schedule,
                    hinted: now,
                    is_charged: false,
                });
                self.stopped(shared, Stop::Permanent);
            }
            Outcome::Failure(failure) => {
                let is_transient = failure.class == Class::Transient;
                let ending = if is_transient { Ending::Failure } else { Ending::Neutral };
                shared.report(now, ticket, ending);
                let hint = failure.hint.delay().filter(|&hint| hint < Duration::MAX);
                if let (Class::Throttled, Some(hint), Some(limiter)) =
                    (failure.class, hint, &mut shared.limiter)
                {
                    let hint = hint.min(self.policy.max_hint());
                    limiter.pause_until(now.saturating_add(hint));
                }
                self.phase = Phase::Failed { failure, at: now };
            }
        }
    }

    /// What it holds goes back: a permit without a report, a retry that is not sent.
    pub(super) fn free(&self, shared: &mut Shared) {
        match self.phase {
            Phase::InFlight(ticket) => shared.report(Instant::EPOCH, ticket, Ending::Neutral),
            Phase::Ready(Ready { is_charged: true, .. }) => {
                shared.budget.iter_mut().for_each(|budget| budget.refund());
            }
            _ => {}
        }
    }
}
