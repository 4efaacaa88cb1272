//! What happens in calls, counted by whatever recorder is installed.

use std::sync::OnceLock;

use holdoff::{AttemptKind, BreakerChange, BreakerState, Event, Instant, Observation, Stop};
use metrics::{
    Key, Label, Level, Metadata, Recorder, Unit, describe_counter, describe_gauge,
    describe_histogram, with_recorder,
};

/// Upper bounds of buckets for `holdoff.attempts_per_call`, as the alerts need them: one for each
/// number up to 10.
pub const ATTEMPTS_BUCKETS: [f64; 12] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0];

const CALLS: &str = "holdoff.calls";
const ATTEMPTS: &str = "holdoff.attempts";
const RETRIES: &str = "holdoff.retries";
const SUCCESSES: &str = "holdoff.successes";
const STOPS: &str = "holdoff.stops";
const DROPS: &str = "holdoff.drops";
const THROTTLES: &str = "holdoff.throttles";
const PROBES: &str = "holdoff.breaker.probes";
const SHADOW_REFUSALS: &str = "holdoff.breaker.shadow_refusals";
const OPENS: &str = "holdoff.breaker.opens";
const REOPENS: &str = "holdoff.breaker.reopens";
const ATTEMPTS_PER_CALL: &str = "holdoff.attempts_per_call";
const DELAY: &str = "holdoff.backoff.delay";
const TIME_OPEN: &str = "holdoff.breaker.time_open";
const STATE: &str = "holdoff.breaker.state";

static METADATA: Metadata<'_> =
    Metadata::new("holdoff", Level::INFO, Some("holdoff_tokio::observe"));

/// Tells the recorder that is installed what the [metrics](crate::observe#metrics) mean and in
/// which unit they are; some show it.
pub fn describe_metrics() {
    describe_counter!(CALLS, Unit::Count, "Calls that started an attempt or were stopped before");
    describe_counter!(ATTEMPTS, Unit::Count, "Attempts started");
    describe_counter!(RETRIES, Unit::Count, "Attempts beyond a call's first");
    describe_counter!(SUCCESSES, Unit::Count, "Calls that succeeded");
    describe_counter!(STOPS, Unit::Count, "Calls that stopped, by reason");
    describe_counter!(DROPS, Unit::Count, "Calls dropped after an attempt had started");
    describe_counter!(THROTTLES, Unit::Count, "Times a call was told to wait for the limiter");
    describe_counter!(PROBES, Unit::Count, "Probes of a half-open circuit breaker");
    describe_counter!(
        SHADOW_REFUSALS,
        Unit::Count,
        "Attempts that a circuit breaker in shadow mode would have refused"
    );
    describe_counter!(OPENS, Unit::Count, "Times the circuit breaker tripped");
    describe_counter!(REOPENS, Unit::Count, "Times a probe failed");
    describe_histogram!(ATTEMPTS_PER_CALL, Unit::Count, "Attempts of a call that ended");
    describe_histogram!(DELAY, Unit::Seconds, "Waits before a retry");
    describe_histogram!(TIME_OPEN, Unit::Seconds, "Open periods of the circuit breaker");
    describe_gauge!(STATE, Unit::Count, "Circuit breaker: 0 closed, 1 half-open, 2 open");
}

#[derive(Debug)]
pub(super) struct Meter {
    keys: &'static Keys,
}

impl Meter {
    pub(super) const IS_ON: bool = true;

    pub(super) fn start(upstream: &'static str) -> Self {
        Self { keys: Keys::of(upstream) }
    }

    pub(super) fn on_event(
        &self,
        observation: &Observation,
        breaker: impl FnOnce() -> Option<BreakerState>,
    ) {
        let &Observation { event, attempts, now, .. } = observation;
        with_recorder(|recorder| {
            let to = To { keys: self.keys, recorder };
            match event {
                Event::Attempt { kind } => {
                    to.attempt(attempts, kind);
                    to.state(breaker());
                }
                Event::Backoff { delay, .. } => to.record(&self.keys.delay, delay.as_secs_f64()),
                Event::Breaker(change) => {
                    to.change(change, now);
                    to.state(breaker());
                }
                Event::Stop(stop) => {
                    to.stop(stop, attempts);
                    to.state(breaker());
                }
                Event::Success => {
                    to.count(&self.keys.successes);
                    to.record(&self.keys.attempts_per_call, attempts.into());
                }
                Event::Throttled { .. } => to.count(&self.keys.throttles),
                // What there may be one day.
                _ => {}
            }
        });
    }

    pub(super) fn on_drop(&self, attempts: u32) {
        // As long as nothing was sent it is no call to those who count.
        if attempts > 0 {
            with_recorder(|recorder| {
                let to = To { keys: self.keys, recorder };
                to.count(&self.keys.drops);
                to.record(&self.keys.attempts_per_call, attempts.into());
            });
        }
    }
}

/// One recorder, to which one upstream's numbers go.
///
/// Asked for anew at each event, as the macros of `metrics` do: a recorder may be installed late.
struct To<'a> {
    keys: &'static Keys,
    recorder: &'a dyn Recorder,
}

impl To<'_> {
    fn attempt(&self, attempts: u32, kind: AttemptKind) {
        self.count(&self.keys.attempts);
        self.count(if attempts == 1 { &self.keys.calls } else { &self.keys.retries });
        match kind {
            AttemptKind::Ordinary => {}
            AttemptKind::Probe => self.count(&self.keys.probes),
            AttemptKind::Shadow => self.count(&self.keys.shadow_refusals),
        }
    }

    fn change(&self, change: BreakerChange, now: Instant) {
        let (counter, until) = match change {
            BreakerChange::Opened { until } => (&self.keys.opens, until),
            BreakerChange::Reopened { until } => (&self.keys.reopens, until),
            _ => return,
        };
        self.count(counter);
        self.record(&self.keys.time_open, until.saturating_duration_since(now).as_secs_f64());
    }

    fn stop(&self, stop: Stop, attempts: u32) {
        if attempts == 0 {
            self.count(&self.keys.calls);
        }
        let labels = vec![upstream_label(self.keys.upstream), reason_label(stop)];
        self.count(&Key::from_parts(STOPS, labels));
        self.record(&self.keys.attempts_per_call, attempts.into());
    }

    fn state(&self, state: Option<BreakerState>) {
        let value = match state {
            None => return,
            Some(BreakerState::ForcedOpen | BreakerState::Open { .. }) => 2.0,
            Some(BreakerState::HalfOpen { .. }) => 1.0,
            Some(_) => 0.0,
        };
        self.recorder.register_gauge(&self.keys.state, &METADATA).set(value);
    }

    fn count(&self, key: &Key) {
        self.recorder.register_counter(key, &METADATA).increment(1);
    }

    fn record(&self, key: &Key, value: f64) {
        self.recorder.register_histogram(key, &METADATA).record(value);
    }
}

/// Everything that is known of one upstream but the stops.
///
/// A key with a label of its own must be allocated; so each upstream's are made once and kept, and
/// a call that succeeds allocates none.
#[derive(Debug)]
struct Keys {
    upstream: &'static str,
    calls: Key,
    attempts: Key,
    retries: Key,
    successes: Key,
    drops: Key,
    throttles: Key,
    probes: Key,
    shadow_refusals: Key,
    opens: Key,
    reopens: Key,
    attempts_per_call: Key,
    delay: Key,
    time_open: Key,
    state: Key,
    /// Of another upstream.
    next: OnceLock<Box<Self>>,
}

impl Keys {
    /// Those of `upstream`. A list without a lock, because there are few and it only grows.
    fn of(upstream: &'static str) -> &'static Self {
        static FIRST: OnceLock<Box<Keys>> = OnceLock::new();
        let mut slot = &FIRST;
        loop {
            let keys = slot.get_or_init(|| Box::new(Self::new(upstream)));
            if keys.upstream == upstream {
                return keys;
            }
            slot = &keys.next;
        }
    }

    fn new(upstream: &'static str) -> Self {
        let key = |name: &'static str| Key::from_parts(name, vec![upstream_label(upstream)]);
        Self {
            upstream,
            calls: key(CALLS),
            attempts: key(ATTEMPTS),
            retries: key(RETRIES),
            successes: key(SUCCESSES),
            drops: key(DROPS),
            throttles: key(THROTTLES),
            probes: key(PROBES),
            shadow_refusals: key(SHADOW_REFUSALS),
            opens: key(OPENS),
            reopens: key(REOPENS),
            attempts_per_call: key(ATTEMPTS_PER_CALL),
            delay: key(DELAY),
            time_open: key(TIME_OPEN),
            state: key(STATE),
            next: OnceLock::new(),
        }
    }
}

const fn upstream_label(upstream: &'static str) -> Label {
    Label::from_static_parts("upstream", upstream)
}

const fn reason_label(stop: Stop) -> Label {
    Label::from_static_parts("reason", stop.name())
}
