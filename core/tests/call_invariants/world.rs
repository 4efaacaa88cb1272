//! The calls under way, what they were told, and what became of what they share.

use core::time::Duration;
use std::sync::Mutex;

use holdoff::{
    Attempt, AttemptKind, BreakerState, Call, Class, DelaySource, Event, Failure, Hint, Instant,
    Observation, Observer, Outcome, Policy, Safety, Sent, Step, Stop, Upstream,
};

use crate::setups::{Budget, Rules, Service};

/// Whether the attempts that were started since it was last asked were probes.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<bool>>);

impl Recorder {
    pub(crate) fn take(&self) -> Vec<bool> {
        core::mem::take(&mut self.0.lock().expect("nobody panics here"))
    }
}

impl Observer for Recorder {
    fn on_event(&self, observation: &Observation) {
        if let Event::Attempt { kind } = observation.event {
            self.0.lock().expect("nobody panics here").push(kind == AttemptKind::Probe);
        }
    }
}

/// One call, and what a test knows of it.
#[derive(Debug)]
struct Tracked<'a> {
    call: Call<'a>,
    rules: Rules,
    deadline: Option<Instant>,
    attempts: u32,
    in_flight: bool,
    /// The end of the lease (ms), if the attempt in flight is a probe.
    probe: Option<u64>,
    last: Option<Outcome>,
    /// Whether the last outcome has been decided on.
    decided: bool,
    reported_at: Instant,
    /// The backoff that it was told.
    not_before: Option<Instant>,
    /// When it was told to poll again.
    wakes_at: Option<Instant>,
}

/// A service and those who call it.
#[derive(Debug)]
pub(crate) struct World<'a> {
    service: Service,
    upstream: &'a Upstream,
    recorder: &'static Recorder,
    policies: &'a [(Rules, Policy)],
    slots: Vec<Option<Tracked<'a>>>,
    pub(crate) now: Instant,
    earliest: Instant,
    pub(crate) latest: Instant,
    calls: u64,
    retries: u64,
    tokens: u64,
    /// What is left of the budget (millionths), if it does not trickle.
    level: u64,
}

fn millis(duration: Duration) -> u64 {
    nanos(duration).div_ceil(1_000_000)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

const fn is_in_time(start: Instant, deadline: Option<Instant>) -> bool {
    match deadline {
        Some(deadline) => start.as_nanos() < deadline.as_nanos(),
        None => true,
    }
}

impl<'a> World<'a> {
    pub(crate) fn new(
        service: Service,
        upstream: &'a Upstream,
        recorder: &'static Recorder,
        policies: &'a [(Rules, Policy)],
        now: Instant,
    ) -> Self {
        let slots = policies.iter().map(|_| None).collect();
        let level = service.budget.map_or(0, |budget| u64::from(budget.reserve) * 1_000_000);
        Self {
            service,
            upstream,
            recorder,
            policies,
            slots,
            now,
            earliest: now,
            latest: now,
            calls: 0,
            retries: 0,
            tokens: 0,
            level,
        }
    }

    pub(crate) fn set_clock(&mut self, now: Instant) {
        self.now = now;
        self.earliest = self.earliest.min(now);
        self.latest = self.latest.max(now);
    }

    /// When the call in `slot` wants to be polled next, if it waits.
    pub(crate) fn wakes_at(&self, slot: usize) -> Option<Instant> {
        self.slots[slot].as_ref()?.wakes_at
    }

    /// Drops the call in `slot`, wherever it is.
    pub(crate) fn drop_call(&mut self, slot: usize) {
        if let Some(tracked) = self.slots[slot].take() {
            let charged = tracked.is_charged();
            drop(tracked);
            self.refund(charged);
        }
    }

    pub(crate) fn record(&mut self, slot: usize, outcome: Option<Outcome>, sample: u64) {
        let now = self.now;
        let Some(tracked) = &mut self.slots[slot] else { return };
        match outcome {
            Some(outcome) => tracked.call.record(now, outcome, || sample),
            None => tracked.call.record_timeout(now, || sample),
        }
        if tracked.in_flight {
            let timeout = Outcome::Failure(Failure::transient());
            tracked.last = Some(outcome.unwrap_or(timeout));
            (tracked.in_flight, tracked.decided, tracked.probe) = (false, false, None);
            tracked.reported_at = now;
        }
    }

    /// Polls the call in `slot`, a new one if there is none; a call that is over makes room.
    pub(crate) fn poll(&mut self, slot: usize, sample: u64) {
        let now = self.now;
        let mut tracked = self.slots[slot].take().unwrap_or_else(|| self.begin(slot));
        let refused = self.upstream.breaker().and_then(|breaker| breaker.peek(now).err());
        // Not before the failure, should the clock have stepped back since.
        let decided_at =
            if tracked.is_to_be_decided() { now.max(tracked.reported_at) } else { now };
        let level = self.upstream.budget().map(|budget| budget.level(decided_at));
        let was_charged = tracked.is_charged();
        let step = tracked.call.poll(now, || sample);
        match step {
            Step::Attempt(attempt) if tracked.in_flight => {
                assert_eq!(attempt.number, tracked.attempts, "the same attempt");
            }
            Step::Attempt(attempt) => {
                assert_eq!(refused, None, "the breaker was open");
                tracked.started(now, attempt);
                self.started(&mut tracked, attempt);
            }
            Step::Backoff { until, source } => {
                let breaker = self.upstream.breaker().filter(|_| tracked.is_to_be_decided());
                let state = breaker.map(|breaker| breaker.state(until));
                let waits_in_vain = matches!(state, Some(BreakerState::Open { .. }));
                assert!(!waits_in_vain, "waits in vain: {state:?}");
                tracked.waits(decided_at, until, source);
                if self.upstream.budget().is_some() && !was_charged {
                    self.level = self.level.saturating_sub(1_000_000);
                    let left = self.upstream.budget().map(|budget| budget.level(decided_at));
                    assert_eq!(left, level.map(|level| level - 1), "charged when decided");
                }
            }
            Step::Throttled { until } => {
                let limiter = self.upstream.limiter().expect("somebody throttles");
                assert!(limiter.available(now) < tracked.rules.cost);
                assert!(until > now && is_in_time(until, tracked.deadline));
                assert_eq!(refused, None, "the breaker goes first");
                tracked.wakes_at = Some(until);
            }
            Step::Done => assert_eq!(tracked.last, Some(Outcome::Success)),
            Step::Stop(stop) => {
                let open = refused.map(|open| open.retry_at.expect("not forced"));
                self.check_stop(&tracked, stop, decided_at, open, level);
                self.refund(was_charged);
            }
        }
        assert_eq!(tracked.call.attempts(), tracked.attempts);
        if !matches!(step, Step::Done | Step::Stop(_)) {
            self.slots[slot] = Some(tracked);
        }
    }

    fn begin(&self, slot: usize) -> Tracked<'a> {
        let (rules, policy) = &self.policies[slot];
        let now = self.now;
        Tracked {
            call: self.upstream.call(policy, rules.safety, now).with_cost(rules.cost),
            rules: *rules,
            // One too long to represent is none.
            deadline: policy.deadline().map(|deadline| now.saturating_add(deadline)),
            attempts: 0,
            in_flight: false,
            probe: None,
            last: None,
            decided: false,
            reported_at: now,
            not_before: None,
            wakes_at: None,
        }
    }

    /// An attempt was started: what it took out of what is shared.
    fn started(&mut self, tracked: &mut Tracked<'a>, attempt: Attempt) {
        let (number, timeout) = (attempt.number, attempt.timeout());
        let now = self.now;
        let [is_probe] = self.recorder.take()[..] else { panic!("told once") };
        if is_probe {
            let floor = now.as_nanos() / 1_000_000;
            let held = |other: &Tracked<'_>| other.probe.is_some_and(|end| floor < end);
            assert!(!self.slots.iter().flatten().any(held), "two probes at once");
            // Whoever had the slot has lost it, also should the clock step back.
            self.slots.iter_mut().flatten().for_each(|other| other.probe = None);
            let breaker = self.service.breaker.expect("a probe");
            // From when its attempt has to be over.
            let patience = timeout.unwrap_or(breaker.max);
            let lease = millis(patience) + millis(breaker.lease);
            tracked.probe = Some(now.as_nanos().div_ceil(1_000_000) + lease);
        }
        if let Some(bucket) = self.service.limiter {
            self.tokens += u64::from(tracked.rules.cost);
            let time = self.latest.saturating_duration_since(self.earliest);
            let earned = nanos(time) / nanos(bucket.interval);
            assert!(
                self.tokens <= u64::from(bucket.burst) + earned,
                "more than the limiter allows"
            );
        }
        let is_first = number == 1;
        self.calls += u64::from(is_first);
        self.retries += u64::from(!is_first);
        if let Some(budget) = self.service.budget {
            let full = u64::from(budget.capacity) * 1_000_000;
            if is_first {
                self.level = full.min(self.level + u64::from(budget.ratio));
            }
            let trickled = self.latest.as_nanos() / 1_000_000_000 * u64::from(budget.trickle);
            let earned = self.calls * u64::from(budget.ratio) + trickled;
            let most = u64::from(budget.reserve) * 1_000_000 + earned;
            assert!(self.retries * 1_000_000 <= most, "more than the budget allows");
        }
    }

    fn refund(&mut self, charged: bool) {
        if let (true, Some(budget)) = (charged, self.service.budget) {
            self.level = (self.level + 1_000_000).min(u64::from(budget.capacity) * 1_000_000);
        }
    }

    /// The facts that a stop claims.
    fn check_stop(
        &self,
        tracked: &Tracked<'_>,
        stop: Stop,
        now: Instant,
        open: Option<Instant>,
        level: Option<u32>,
    ) {
        let Tracked { rules, deadline, attempts, .. } = *tracked;
        let failure = match tracked.last {
            Some(Outcome::Failure(failure)) if tracked.is_to_be_decided() => Some(failure),
            _ => None,
        };
        let wait = tracked.call.retry_after().unwrap_or(Duration::ZERO);
        let is_true = match stop {
            Stop::Attempts => failure.is_some() && attempts == rules.max_attempts,
            Stop::Budget => failure.is_some() && attempts < rules.max_attempts && level == Some(0),
            Stop::CircuitOpen { retry_at } => {
                // A wait is not begun only if the breaker is open, not while a probe is under way.
                let breaker = self.upstream.breaker().expect("it has one");
                let is_open = breaker.state(now) == BreakerState::Open { until: retry_at };
                retry_at > now && if failure.is_some() { is_open } else { open == Some(retry_at) }
            }
            Stop::CostTooHigh { burst } => {
                self.service.limiter.is_some_and(|bucket| bucket.burst == burst)
                    && rules.cost > burst
            }
            Stop::Deadline => !is_in_time(now.saturating_add(wait), deadline),
            Stop::HintTooLong { hint } => {
                let start = now.saturating_add(hint);
                failure.is_some_and(|failure| failure.hint.delay() == Some(hint))
                    && (hint > rules.max_hint
                        || !is_in_time(start, deadline)
                        || start == Instant::MAX)
            }
            Stop::NotIdempotent => {
                rules.safety == Safety::NonIdempotent
                    && failure.is_some_and(|failure| failure.sent == Sent::Maybe)
            }
            Stop::Permanent => {
                tracked.last == Some(Outcome::Ignored)
                    || failure.is_some_and(|failure| failure.class == Class::Permanent)
            }
            Stop::Quota => failure.is_some_and(|failure| {
                failure.class == Class::Quota
                    || failure.class == Class::Throttled
                        && failure.hint == Hint::Absent
                        && rules.stops_unhinted
            }),
            _ => false,
        };
        assert!(is_true, "{stop:?} at {:?} of {tracked:?}", now);
    }

    /// What must hold after every step.
    pub(crate) fn check(&self) {
        assert!(self.recorder.take().is_empty(), "nobody else started an attempt");
        if let Some(breaker) = self.upstream.breaker()
            && let BreakerState::HalfOpen { probing_until: Some(end) } = breaker.state(self.now)
        {
            let end = end.as_nanos() / 1_000_000;
            let holds = |tracked: &Tracked<'_>| tracked.probe == Some(end);
            assert!(self.slots.iter().flatten().any(holds), "nobody holds the slot");
        }
        if let (Some(budget), Some(Budget { trickle: 0, .. })) =
            (self.upstream.budget(), self.service.budget)
        {
            assert_eq!(u64::from(budget.level(self.now)), self.level / 1_000_000);
        }
        let seen = self.upstream.counters().expect("it has some").snapshot();
        assert_eq!((seen.attempts, seen.retries), (self.calls + self.retries, self.retries));
    }

    /// With everybody gone and enough time passed, whoever comes is served.
    pub(crate) fn check_that_nothing_is_stuck(&mut self, policy: &'a Policy) {
        (0..self.slots.len()).for_each(|slot| self.drop_call(slot));
        self.check();
        let Some(breaker) = self.service.breaker else { return };
        let long = breaker.max + breaker.lease + Duration::from_millis(3);
        self.set_clock(self.latest.saturating_add(long));
        let mut next = self.upstream.call(policy, Safety::Idempotent, self.now).with_cost(0);
        let step = next.poll(self.now, || 0);
        assert!(matches!(step, Step::Attempt(Attempt { number: 1, .. })), "{step:?}");
        let state = self.upstream.breaker().expect("it has one").state(self.now);
        let [is_probe] = self.recorder.take()[..] else { panic!("told once") };
        assert_eq!(is_probe, state != BreakerState::Closed);
    }
}

impl Tracked<'_> {
    /// Whether the last attempt failed and nothing has been said about another.
    const fn is_to_be_decided(&self) -> bool {
        matches!(self.last, Some(Outcome::Failure(_))) && !self.decided && !self.in_flight
    }

    /// Whether a retry is decided and not sent.
    const fn is_charged(&self) -> bool {
        self.decided && !self.in_flight
    }

    fn started(&mut self, now: Instant, attempt: Attempt) {
        self.attempts += 1;
        assert_eq!(attempt.number, self.attempts);
        assert!(self.attempts <= self.rules.max_attempts, "too many attempts");
        assert!(is_in_time(now, self.deadline), "started too late");
        assert!(self.attempts == 1 || self.decided, "nothing was decided");
        assert!(self.not_before.is_none_or(|until| until <= now), "started too early");
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now));
        let timeout = [left, self.rules.attempt_timeout].into_iter().flatten().min();
        assert_eq!(attempt.timeout(), timeout);
        (self.in_flight, self.decided) = (true, false);
        (self.not_before, self.wakes_at) = (None, None);
    }

    fn waits(&mut self, now: Instant, until: Instant, source: DelaySource) {
        assert!(is_in_time(until, self.deadline));
        if self.decided {
            assert_eq!(self.not_before, Some(until), "the answer is repeated");
            return;
        }
        let Some(Outcome::Failure(failure)) = self.last else { panic!("nothing failed") };
        assert!(self.attempts < self.rules.max_attempts);
        assert_eq!(source == DelaySource::Hint, failure.hint.delay().is_some());
        if let Some(hint) = failure.hint.delay() {
            assert!(hint <= self.rules.max_hint && until >= now.saturating_add(hint));
        }
        self.decided = true;
        (self.not_before, self.wakes_at) = (Some(until), Some(until));
    }
}
