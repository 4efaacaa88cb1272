//! The spans and events of calls, to the last field.

mod common;

use core::fmt::{Debug, Write as _};
use core::future::pending;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use common::{built, constant, poll_once};
use holdoff_tokio::{
    BreakerConfig, Class, Failure, Hint, HintSpread, Mode, Policy, Prepared, Quota, Rate, Safety,
    Sent, Stop, Upstream,
};
use tokio::time::{advance, timeout};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

const SECOND: Duration = Duration::from_secs(1);

/// Writes down what it is told, a line each.
#[derive(Clone, Default)]
struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").expect("a string takes everything");
    }
}

impl Recorder {
    /// Of everything on this thread up to `level`.
    fn install(level: Level) -> (Self, DefaultGuard) {
        let recorder = Self::default();
        let layer = recorder.clone().with_filter(LevelFilter::from_level(level));
        let guard = set_default(Registry::default().with(layer));
        (recorder, guard)
    }

    fn note(&self, line: String) {
        self.lines.lock().expect("no test panics while it writes").push(line);
    }

    fn taken(&self) -> Vec<String> {
        core::mem::take(&mut self.lines.lock().expect("no test panics while it writes"))
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        assert_eq!(metadata.target(), "holdoff");
        self.note(format!("{} {} begins:{}", metadata.level(), metadata.name(), fields.0));
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        self.note(format!("recorded:{}", fields.0));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let inside = context.event_span(event).map_or("nothing", |span| span.name());
        let name = match metadata.target() {
            "holdoff" => metadata.name(),
            target => target,
        };
        self.note(format!("{} {inside}/{name}:{}", metadata.level(), fields.0));
    }

    fn on_close(&self, _: Id, _: Context<'_, S>) {
        self.note("closed".into());
    }
}

/// One token a second; the breaker trips at the second failure in a row, for ten seconds.
fn upstream() -> Upstream {
    let policy = built(constant(4, SECOND / 2));
    let quota = Quota::new(Rate::per_second(1), 1).expect("the quota is valid");
    let breaker = BreakerConfig::consecutive(2).with_open_period(SECOND * 10);
    Upstream::new(policy)
        .named("anthropic")
        .with_limiter(quota)
        .with_breaker(breaker.build().expect("the breaker is valid"))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_waits_trips_the_breaker_and_stops() {
    let (recorder, _guard) = Recorder::install(Level::DEBUG);
    let upstream = upstream();
    let gave_up = upstream.call(async || Err::<(), _>(Failure::transient())).await;
    assert!(matches!(gave_up.expect_err("it fails").stop, Stop::CircuitOpen { .. }));
    let expected = [
        "INFO holdoff.call begins: upstream=\"anthropic\" safety=\"idempotent\"",
        "DEBUG holdoff.call/holdoff.attempt: message=an attempt starts upstream=\"anthropic\" \
         attempt=1 \
         kind=\"ordinary\"",
        "INFO holdoff.call/holdoff.backoff: message=it failed and will be tried again \
         upstream=\"anthropic\" \
         attempt=1 class=\"transient\" delay_ms=500 source=\"schedule\"",
        "DEBUG holdoff.call/holdoff.throttle: message=it waits for the limiter \
         upstream=\"anthropic\" \
         attempt=2 delay_ms=500",
        "DEBUG holdoff.call/holdoff.attempt: message=an attempt starts upstream=\"anthropic\" \
         attempt=2 \
         kind=\"ordinary\"",
        "WARN holdoff.call/holdoff.breaker: message=the circuit breaker opened \
         upstream=\"anthropic\" \
         change=\"opened\" open_ms=10000",
        "recorded: attempts=2",
        "recorded: elapsed_ms=1000",
        "recorded: outcome=\"stopped\"",
        "recorded: error.type=\"circuit_open\"",
        "recorded: otel.status_code=\"ERROR\"",
        "INFO holdoff.call/holdoff.stop: message=gave up: the circuit breaker is open \
         upstream=\"anthropic\" \
         attempts=2 elapsed_ms=1000 error.type=\"circuit_open\"",
        "closed",
    ];
    assert_eq!(recorder.taken(), expected);

    // The probe fails, the next one succeeds.
    advance(SECOND * 11).await;
    let _ = upstream.call(async || Err::<(), _>(Failure::transient())).await;
    advance(SECOND * 30).await;
    let _ = upstream.call(async || Ok::<_, Failure>(())).await;
    let lines = recorder.taken();
    let changes = lines.iter().filter(|line| line.contains("breaker:") || line.contains("probe"));
    let changes: Vec<_> = changes.collect();
    let attempt = "DEBUG holdoff.call/holdoff.attempt: message=an attempt starts \
    upstream=\"anthropic\" \
                   attempt=1 kind=\"probe\"";
    let expected = [
        attempt,
        "WARN holdoff.call/holdoff.breaker: message=the circuit breaker opened \
         upstream=\"anthropic\" \
         change=\"reopened\" open_ms=20000",
        attempt,
        "INFO holdoff.call/holdoff.breaker: message=the circuit breaker closed: the service is \
         back \
         upstream=\"anthropic\" change=\"closed\"",
    ];
    assert_eq!(changes, expected);
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_named_as_the_source_and_success_is_recorded_on_the_span() {
    let (recorder, _guard) = Recorder::install(Level::DEBUG);
    let throttled = Failure::throttled().with_hint(Hint::after(SECOND * 2));
    let mut answers = [Err(throttled), Ok(())].into_iter();
    let call = Prepared::new(&built(constant(2, SECOND).with_hint_spread(HintSpread::None)))
        .with_safety(Safety::NonIdempotent);
    let throttled = |failure: &Failure| failure.with_sent(Sent::Refused);
    let answer = call
        .run_when(throttled, |_| {
            let answer = answers.next().expect("there are two attempts");
            async move {
                tracing::debug!(target: "inside", "at work");
                answer
            }
        })
        .await;
    assert_eq!(answer, Ok(()));
    let at_work = "DEBUG holdoff.call/inside: message=at work".to_owned();
    let mut expected = vec![
        "INFO holdoff.call begins: upstream=\"default\" safety=\"non_idempotent\"".to_owned(),
        attempt(1),
        at_work.clone(),
        "INFO holdoff.call/holdoff.backoff: message=it failed and will be tried again \
         upstream=\"default\" \
         attempt=1 class=\"throttled\" delay_ms=2000 source=\"hint\""
            .to_owned(),
        attempt(2),
        at_work,
    ];
    expected.extend(ended(2, 2000, "success"));
    assert_eq!(recorder.taken(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_says_so() {
    let (recorder, _guard) = Recorder::install(Level::DEBUG);
    let call = Prepared::new(&Policy::STANDARD).named("slow");
    let call = call.run(|_| pending::<Result<(), Failure>>());
    assert!(timeout(SECOND * 3, call).await.is_err());
    let lines = recorder.taken();
    assert_eq!(lines[2..], ended(1, 3000, "dropped"));
    assert!(lines[0].contains("upstream=\"slow\""));
}

#[test]
fn a_call_may_be_dropped_where_there_is_no_runtime() {
    let (recorder, _guard) = Recorder::install(Level::INFO);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("there can be a runtime");
    let call = Prepared::new(&Policy::STANDARD);
    let mut call = Box::pin(call.run(|_| pending::<Result<(), Failure>>()));
    assert!(runtime.block_on(async { poll_once(call.as_mut()) }).is_pending());
    drop(runtime);
    drop(call);
    assert!(recorder.taken().contains(&"recorded: outcome=\"dropped\"".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_the_callers_own_doing_is_no_warning() {
    let (recorder, _guard) = Recorder::install(Level::INFO);
    let failing = async |policy: &Policy, failure: Failure| {
        let call = Prepared::new(policy).run(|_| async move { Err::<(), _>(failure) });
        call.await.expect_err("it fails").stop.name()
    };
    let once = built(constant(1, SECOND));
    let stops = [
        ("INFO", "permanent", failing(&once, Failure::permanent()).await),
        ("WARN", "quota", failing(&once, Failure::new(Class::Quota)).await),
        ("WARN", "attempts", failing(&once, Failure::transient()).await),
    ];
    let lines = recorder.taken();
    let lines: Vec<_> = lines.iter().filter(|line| line.contains("holdoff.stop")).collect();
    assert_eq!(lines.len(), stops.len());
    for (line, (level, name, stop)) in lines.into_iter().zip(stops) {
        assert_eq!(name, stop);
        assert!(line.starts_with(level), "{line}");
        assert!(line.contains(&format!("error.type=\"{name}\"")), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_told_without_the_span_if_only_warnings_are_wanted() {
    let (recorder, _guard) = Recorder::install(Level::WARN);
    let upstream = upstream();
    upstream.breaker().expect("it has one").set_mode(Mode::Shadow);
    let call = upstream.prepare().run(|_| async { Err::<(), _>(Failure::transient()) });
    assert_eq!(call.await.expect_err("it fails").stop, Stop::Attempts);
    let lines = recorder.taken();
    let names: Vec<_> = lines.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["WARN nothing/holdoff.breaker", "WARN nothing/holdoff.stop"]);
}

fn attempt(number: u32) -> String {
    format!(
        "DEBUG holdoff.call/holdoff.attempt: message=an attempt starts upstream=\"default\" \
         attempt={number} \
         kind=\"ordinary\""
    )
}

fn ended(attempts: u32, elapsed_ms: u32, outcome: &str) -> [String; 4] {
    [
        format!("recorded: attempts={attempts}"),
        format!("recorded: elapsed_ms={elapsed_ms}"),
        format!("recorded: outcome={outcome:?}"),
        "closed".to_owned(),
    ]
}
