//! A call as a span, and what happens in it as events.

use core::future::Future;
use core::time::Duration;

use holdoff::{
    AttemptKind, BreakerChange, Clock, DelaySource, Event, Instant, Observation, Safety, Stop,
};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span, event, info_span};

use crate::timer::TokioTimer;

const TARGET: &str = "holdoff";

#[derive(Debug)]
pub(super) struct Trace {
    upstream: &'static str,
    span: Span,
    /// `None` if nobody is interested in the span.
    started: Option<Instant>,
}

impl Trace {
    pub(super) const IS_ON: bool = true;

    pub(super) fn start(upstream: &'static str, safety: Safety) -> Self {
        let span = info_span!(
            target: TARGET,
            "holdoff.call",
            upstream,
            safety = safety_name(safety),
            attempts = Empty,
            elapsed_ms = Empty,
            outcome = Empty,
            error.type = Empty,
            otel.status_code = Empty,
        );
        let started = (!span.is_disabled()).then(|| TokioTimer.now());
        Self { upstream, span, started }
    }

    pub(super) fn around<F: Future>(&self, call: F) -> impl Future<Output = F::Output> {
        call.instrument(self.span.clone())
    }

    pub(super) fn on_event(&self, observation: &Observation) {
        let &Observation { event, attempts, elapsed, now, .. } = observation;
        let upstream = self.upstream;
        match event {
            Event::Attempt { kind } => event!(
                name: "holdoff.attempt", target: TARGET, Level::DEBUG,
                upstream, attempt = attempts, kind = kind_name(kind),
                "an attempt starts"
            ),
            Event::Backoff { failure, delay, source } => event!(
                name: "holdoff.backoff", target: TARGET, Level::INFO,
                upstream, attempt = attempts, class = failure.class.name(),
                delay_ms = millis(delay), source = source_name(source),
                "it failed and will be tried again"
            ),
            Event::Breaker(change) => self.on_breaker(change, now),
            Event::Stop(stop) => {
                self.end(attempts, elapsed, "stopped");
                self.span.record("error.type", stop.name());
                self.span.record("otel.status_code", "ERROR");
                self.on_stop(stop, attempts, elapsed);
            }
            Event::Success => self.end(attempts, elapsed, "success"),
            Event::Throttled { until } => event!(
                name: "holdoff.throttle", target: TARGET, Level::DEBUG,
                upstream, attempt = attempts.saturating_add(1),
                delay_ms = millis(until.saturating_duration_since(now)),
                "it waits for the limiter"
            ),
            // What there may be one day.
            _ => {}
        }
    }

    pub(super) fn on_drop(&self, attempts: u32) {
        if let Some(started) = self.started {
            let elapsed = TokioTimer.now().saturating_duration_since(started);
            self.end(attempts, elapsed, "dropped");
        }
    }

    fn on_breaker(&self, change: BreakerChange, now: Instant) {
        let upstream = self.upstream;
        let (change, until) = match change {
            BreakerChange::Closed => {
                event!(
                    name: "holdoff.breaker", target: TARGET, Level::INFO,
                    upstream, change = "closed",
                    "the circuit breaker closed: the service is back"
                );
                return;
            }
            BreakerChange::Opened { until } => ("opened", until),
            BreakerChange::Reopened { until } => ("reopened", until),
            // What there may be one day.
            _ => return,
        };
        event!(
            name: "holdoff.breaker", target: TARGET, Level::WARN,
            upstream, change, open_ms = millis(until.saturating_duration_since(now)),
            "the circuit breaker opened"
        );
    }

    fn on_stop(&self, stop: Stop, attempts: u32, elapsed: Duration) {
        let (upstream, elapsed_ms) = (self.upstream, millis(elapsed));
        if is_expected(stop) {
            event!(
                name: "holdoff.stop", target: TARGET, Level::INFO,
                upstream, attempts, elapsed_ms, error.type = stop.name(),
                "gave up: {stop}"
            );
        } else {
            event!(
                name: "holdoff.stop", target: TARGET, Level::WARN,
                upstream, attempts, elapsed_ms, error.type = stop.name(),
                "gave up: {stop}"
            );
        }
    }

    fn end(&self, attempts: u32, elapsed: Duration, outcome: &'static str) {
        self.span.record("attempts", attempts);
        self.span.record("elapsed_ms", millis(elapsed));
        self.span.record("outcome", outcome);
    }
}

/// Whether it is the caller's own doing, or was warned of before.
const fn is_expected(stop: Stop) -> bool {
    matches!(stop, Stop::Cancelled | Stop::CircuitOpen { .. } | Stop::Nested | Stop::Permanent)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const fn safety_name(safety: Safety) -> &'static str {
    match safety {
        Safety::Idempotent => "idempotent",
        Safety::NonIdempotent => "non_idempotent",
        Safety::Once => "once",
    }
}

const fn kind_name(kind: AttemptKind) -> &'static str {
    match kind {
        AttemptKind::Ordinary => "ordinary",
        AttemptKind::Probe => "probe",
        AttemptKind::Shadow => "shadow",
    }
}

const fn source_name(source: DelaySource) -> &'static str {
    match source {
        DelaySource::Hint => "hint",
        DelaySource::Schedule => "schedule",
    }
}
