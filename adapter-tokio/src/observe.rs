//! What can be seen of calls from outside: traces and metrics.
//!
//! With the features `tracing` and `metrics` every call is reported to whatever subscriber and
//! recorder the program has installed, under the name of its [upstream](crate::Upstream::named).
//! Nothing else changes, and where nobody listens a call that succeeds still allocates nothing.
//!
#![cfg_attr(all(feature = "metrics", feature = "tracing"), doc = "```")]
#![cfg_attr(not(all(feature = "metrics", feature = "tracing")), doc = "```ignore")]
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use holdoff_tokio::{Failure, Policy, Upstream, observe};
//! use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
//!
//! static PROVIDER: Upstream = Upstream::new(Policy::LLM).named("anthropic");
//!
//! tracing_subscriber::fmt().init();
//! let recorder = PrometheusBuilder::new()
//!     .with_recommended_naming(true)
//!     .set_buckets_for_metric(
//!         Matcher::Full("holdoff.attempts_per_call".into()),
//!         &observe::ATTEMPTS_BUCKETS,
//!     )?
//!     .build_recorder(); // or `install()`, which also serves the page
//! let page = recorder.handle();
//! metrics::set_global_recorder(recorder)?;
//! observe::describe_metrics();
//!
//! let answer = PROVIDER.call(async || Ok::<_, Failure>("hello")).await;
//! assert_eq!(answer, Ok("hello"));
//! assert!(page.render().contains(r#"holdoff_calls_total{upstream="anthropic"} 1"#));
//! # Ok(())
//! # }
//! ```
//!
//! # Traces
//! All of the target `holdoff`. Times are whole milliseconds, rounded down, the largest `u64` if
//! endless.
//!
//! | span | level | fields |
//! |---|---|---|
//! | `holdoff.call` | info | at the start `upstream`, `safety` |
//! | | | at the end `attempts`, `elapsed_ms`, `outcome`, `error.type`, `otel.status_code` |
//!
//! Attempts and their own spans are inside of it.
//!
//! | event | level | fields beside `upstream` |
//! |---|---|---|
//! | `holdoff.attempt`: one starts | debug | `attempt`, `kind` |
//! | `holdoff.backoff`: a wait begins | info | `attempt`, `class`, `delay_ms`, `source` |
//! | `holdoff.throttle`: the limiter has no token | debug | `attempt`, `delay_ms` |
//! | `holdoff.breaker`: it opened | warn | `change`, `open_ms` |
//! | `holdoff.breaker`: it closed | info | `change` |
//! | `holdoff.stop`: no further attempt | warn, info | `attempts`, `elapsed_ms`, `error.type` |
//!
//! | field | value |
//! |---|---|
//! | `attempt` | number of the attempt that starts, failed, or waits for the limiter, from 1 |
//! | `attempts` | attempts made |
//! | `change` | `opened`, `reopened`, `closed` |
//! | `class` | what the attempt came to: `throttled`, `transient` |
//! | `delay_ms`, `open_ms` | how long the wait, or the open period, is going to be |
//! | `elapsed_ms` | since the call started, waits included |
//! | `error.type` | why it stopped, by [`Stop::name`](crate::Stop::name); absent otherwise |
//! | `kind` | `ordinary`, `probe` (of a half-open breaker) or `shadow` (would have been refused) |
//! | `otel.status_code` | `ERROR` if it stopped, for bridges to OpenTelemetry |
//! | `outcome` | `success`, `stopped`; `dropped` if its future was dropped before |
//! | `safety` | `idempotent`, `non_idempotent`, `once` |
//! | `source` | of the delay: `hint` (the server's) or `schedule` (the policy's) |
//!
//! A stop is a warning if it says something about the service, the limits or the policy; it is none
//! if the failure is permanent, the caller cancelled, an outer call goes on, or the breaker is
//! open, of which there was a warning.
//!
//! # Metrics
//! All with the label `upstream`. Counters, with no unit:
//!
//! | name | counts |
//! |---|---|
//! | `holdoff.calls` | calls that started an attempt or were stopped before one |
//! | `holdoff.attempts` | attempts started |
//! | `holdoff.retries` | attempts beyond a call's first |
//! | `holdoff.successes` | calls that succeeded |
//! | `holdoff.stops` | calls that stopped; label `reason`: [`Stop::name`](crate::Stop::name) |
//! | `holdoff.drops` | calls whose future was dropped after an attempt had started |
//! | `holdoff.throttles` | times a call was told to wait for the limiter |
//! | `holdoff.breaker.probes` | probes of a half-open breaker |
//! | `holdoff.breaker.shadow_refusals` | attempts that a breaker in shadow would have refused |
//! | `holdoff.breaker.opens` | times the breaker tripped |
//! | `holdoff.breaker.reopens` | times a probe failed and the breaker stayed open |
//!
//! Every call that is counted is a success, a stop or a drop in the end.
//!
//! | name | kind | unit | what |
//! |---|---|---|---|
//! | `holdoff.attempts_per_call` | histogram | 1 | attempts of a call that ended |
//! | `holdoff.backoff.delay` | histogram | seconds | waits before a retry, when they begin |
//! | `holdoff.breaker.time_open` | histogram | seconds | open periods, when they begin |
//! | `holdoff.breaker.state` | gauge | 1 | 0 closed, 1 half-open, 2 open, when last called |
//!
//! The gauge is there for upstreams with a breaker, and follows calls: it stays at "open" if nobody
//! calls to find out.
//!
//! `prometheus/holdoff.rules.yml`, beside this crate's sources, has three alerts on them: too many
//! retries, too many attempts for a call, a breaker that stays open. They need the buckets of the
//! example above.

use core::future::Future;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use holdoff::{Event, Observation, Observer, Safety, Upstream};

#[cfg_attr(not(feature = "metrics"), path = "observe/unmetered.rs")]
mod meter;
#[cfg_attr(not(feature = "tracing"), path = "observe/untraced.rs")]
mod trace;

use self::meter::Meter;
#[cfg(feature = "metrics")]
pub use self::meter::{ATTEMPTS_BUCKETS, describe_metrics};
use self::trace::Trace;

/// Watches one call from its first poll until it ends or is dropped.
#[derive(Debug)]
pub(crate) struct Watch<'a, const BUCKETS: usize> {
    upstream: &'a Upstream<BUCKETS>,
    observer: Option<&'a dyn Observer>,
    meter: Meter,
    trace: Trace,
    attempts: AtomicU32,
    has_ended: AtomicBool,
}

impl<'a, const BUCKETS: usize> Watch<'a, BUCKETS> {
    pub(crate) fn start(
        name: &'static str,
        safety: Safety,
        upstream: &'a Upstream<BUCKETS>,
        observer: Option<&'a dyn Observer>,
    ) -> Self {
        let (meter, trace) = (Meter::start(name), Trace::start(name, safety));
        let (attempts, has_ended) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { upstream, observer, meter, trace, attempts, has_ended }
    }

    /// Whether anybody is to be told beside the upstream.
    pub(crate) const fn is_needed(&self) -> bool {
        self.observer.is_some() || Meter::IS_ON || Trace::IS_ON
    }

    /// `call`, each poll of it inside of the call's span.
    pub(crate) fn around<F: Future>(&self, call: F) -> impl Future<Output = F::Output> {
        self.trace.around(call)
    }
}

impl<const BUCKETS: usize> Observer for Watch<'_, BUCKETS> {
    fn on_event(&self, observation: &Observation) {
        self.upstream.on_event(observation);
        if let Some(observer) = self.observer {
            observer.on_event(observation);
        }
        // Relaxed: only the task that runs the call writes and reads.
        self.attempts.store(observation.attempts, Ordering::Relaxed);
        if matches!(observation.event, Event::Stop(_) | Event::Success) {
            self.has_ended.store(true, Ordering::Relaxed);
        }
        self.trace.on_event(observation);
        let breaker = || Some(self.upstream.breaker()?.state(observation.now));
        self.meter.on_event(observation, breaker);
    }
}

impl<const BUCKETS: usize> Drop for Watch<'_, BUCKETS> {
    fn drop(&mut self) {
        if !*self.has_ended.get_mut() {
            self.trace.on_drop(*self.attempts.get_mut());
            self.meter.on_drop(*self.attempts.get_mut());
        }
    }
}
