//! Metrics say what core's counters say, and the alerts are on names that are really exported.

mod common;

use core::future::pending;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use common::{built, constant};
use fastrand::Rng;
use holdoff_tokio::{
    BreakerConfig, BudgetConfig, Class, Counters, CountersSnapshot, Failure, Hint, Mode, Quota,
    Rate, Ratio, Safety, Upstream, observe,
};
use metrics::{set_default_local_recorder, with_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{advance, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// A value by name, or by name and reason.
type Metrics = BTreeMap<String, DebugValue>;

/// What has been recorded since it was asked last.
fn taken(snapshotter: &Snapshotter) -> Metrics {
    let entries = snapshotter.snapshot().into_vec().into_iter();
    let named = entries.map(|(key, _, _, value)| {
        let mut name = key.key().name().to_owned();
        for label in key.key().labels() {
            match label.key() {
                "upstream" => assert_eq!(label.value(), "provider"),
                "reason" => name = format!("{name} {}", label.value()),
                other => panic!("an unknown label: {other}"),
            }
        }
        (name, value)
    });
    named.collect()
}

fn counter(metrics: &Metrics, name: &str) -> u64 {
    match metrics.get(name) {
        None => 0,
        Some(&DebugValue::Counter(count)) => count,
        Some(other) => panic!("{name} is no counter but {other:?}"),
    }
}

fn histogram(metrics: &Metrics, name: &str) -> Vec<f64> {
    match metrics.get(name) {
        None => Vec::new(),
        Some(DebugValue::Histogram(values)) => values.iter().map(|value| value.0).collect(),
        Some(other) => panic!("{name} is no histogram but {other:?}"),
    }
}

fn upstream() -> Upstream {
    let policy = constant(3, SECOND).with_deadline(SECOND * 20).with_attempt_timeout(SECOND * 2);
    let quota = Quota::new(Rate::per_second(4), 2).expect("the quota is valid");
    let breaker = BreakerConfig::consecutive(3).with_open_period(SECOND * 5);
    let budget = BudgetConfig::new(5, Ratio::percent(20)).build();
    Upstream::new(built(policy))
        .named("provider")
        .with_limiter(quota)
        .with_max_waiting(core::num::NonZeroU32::new(8).expect("8 is not 0"))
        .with_breaker(breaker.build().expect("the breaker is valid"))
        .with_budget(budget.expect("the budget is valid"))
        .with_counters(Counters::new())
}

/// Something that may go wrong in every way there is.
async fn attempt(number: u8) -> Result<(), Failure> {
    match number {
        0..=9 => Ok(()),
        10..=14 => Err(Failure::transient()),
        15 => Err(Failure::throttled().with_hint(Hint::after(SECOND))),
        16 => Err(Failure::throttled().with_hint(Hint::after(SECOND * 60))),
        17 => Err(Failure::permanent()),
        18 => Err(Failure::new(Class::Quota)),
        _ => pending().await,
    }
}

/// One call that starts some time, may be cancelled, dropped, or too big.
async fn call(upstream: Arc<Upstream>, mut rng: Rng) {
    sleep(Duration::from_millis(rng.u64(..60_000))).await;
    let patience = Duration::from_millis(rng.u64(1..30_000));
    let safety = if rng.u8(..4) == 0 { Safety::NonIdempotent } else { Safety::Idempotent };
    let call = upstream
        .prepare()
        .with_safety(safety)
        .with_cost(if rng.u8(..20) == 0 { 3 } else { 1 })
        .cancel_when(sleep(Duration::from_millis(rng.u64(1..60_000))));
    let is_bad_time = rng.bool();
    let attempts = call.run(|_| attempt(if is_bad_time { rng.u8(10..20) } else { rng.u8(..20) }));
    let _ = timeout(patience, attempts).await;
}

fn compare(metrics: &Metrics, counters: &CountersSnapshot) {
    let count = |name: &str| counter(metrics, name);
    assert_eq!(count("holdoff.calls"), counters.calls);
    assert_eq!(count("holdoff.attempts"), counters.attempts);
    assert_eq!(count("holdoff.retries"), counters.retries);
    assert_eq!(count("holdoff.successes"), counters.successes);
    assert_eq!(count("holdoff.throttles"), counters.throttles);
    assert_eq!(count("holdoff.breaker.probes"), counters.probes);
    assert_eq!(count("holdoff.breaker.shadow_refusals"), counters.shadow_refusals);
    assert_eq!(count("holdoff.breaker.opens"), counters.opens);
    assert_eq!(count("holdoff.breaker.reopens"), counters.reopens);
    let stops = &counters.stops;
    let stops = [
        ("attempts", stops.attempts),
        ("budget", stops.budget),
        ("cancelled", stops.cancelled),
        ("circuit_open", stops.circuit_open),
        ("cost_too_high", stops.cost_too_high),
        ("deadline", stops.deadline),
        ("hint_too_long", stops.hint_too_long),
        ("nested", stops.nested),
        ("not_idempotent", stops.not_idempotent),
        ("permanent", stops.permanent),
        ("queue_full", stops.queue_full),
        ("quota", stops.quota),
    ];
    for (name, stopped) in stops {
        assert_eq!(count(&format!("holdoff.stops {name}")), stopped, "{name}");
    }
    let open = histogram(metrics, "holdoff.breaker.time_open");
    let sum = open.iter().map(|&seconds| Duration::from_secs_f64(seconds)).sum();
    assert!(counters.time_open.abs_diff(sum) < Duration::from_micros(1));

    // When all have ended.
    let stopped: u64 = stops.iter().map(|(_, stopped)| stopped).sum();
    let per_call = histogram(metrics, "holdoff.attempts_per_call");
    assert_eq!(counters.calls, counters.successes + stopped + count("holdoff.drops"));
    let ended = u64::try_from(per_call.len()).expect("there are few");
    assert_eq!(counters.calls, ended);
    let attempts = f64::from(u32::try_from(counters.attempts).expect("few"));
    assert_eq!(attempts, per_call.iter().sum::<f64>());
    assert!(histogram(metrics, "holdoff.backoff.delay").iter().all(|&delay| delay >= 1.0));
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_metrics_equal_the_counters() {
    let mut seen = BTreeMap::<String, u64>::new();
    for seed in 0..100 {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        let _guard = set_default_local_recorder(&recorder);
        let (upstream, mut rng) = (Arc::new(upstream()), Rng::with_seed(seed));
        if seed % 10 == 0 {
            upstream.breaker().expect("it has one").set_mode(Mode::Shadow);
        }
        // More at once than the line takes, sometimes.
        let calls = (0..rng.u32(1..120)).map(|_| call(upstream.clone(), rng.fork()));
        let calls: Vec<_> = calls.map(tokio::spawn).collect();
        for call in calls {
            call.await.expect("no call panics");
        }
        let metrics = taken(&snapshotter);
        compare(&metrics, &upstream.counters().expect("it has some").snapshot());
        for name in metrics.keys() {
            *seen.entry(name.clone()).or_default() += counter_or_one(&metrics[name]);
        }
    }
    // So that the comparison is of something.
    let unseen = ["holdoff.stops nested", "holdoff.stops deadline"];
    for name in observed_names().iter().filter(|name| !unseen.contains(&name.as_str())) {
        assert!(seen.get(name).is_some_and(|&count| count > 0), "{name} never happened: {seen:?}");
    }
}

const fn counter_or_one(value: &DebugValue) -> u64 {
    match value {
        DebugValue::Counter(count) => *count,
        _ => 1,
    }
}

/// All names in the tables of the documentation, the stops by reason.
fn observed_names() -> Vec<String> {
    let docs = include_str!("../src/observe.rs");
    let rows = docs.split("# Metrics").nth(1).expect("there is a section").lines();
    let names = rows.filter_map(|row| row.strip_prefix("//! | `")?.split('`').next());
    let names: Vec<_> = names.filter(|&name| name != "holdoff.stops").map(String::from).collect();
    assert_eq!(names.len(), 14);
    let stops = ["attempts", "budget", "cancelled", "circuit_open", "cost_too_high"]
        .into_iter()
        .chain(["hint_too_long", "not_idempotent", "permanent", "queue_full", "quota"]);
    names.into_iter().chain(stops.map(|stop| format!("holdoff.stops {stop}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn the_gauge_follows_the_breaker() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = set_default_local_recorder(&recorder);
    let state = || match taken(&snapshotter).remove("holdoff.breaker.state") {
        Some(DebugValue::Gauge(value)) => value.0,
        other => panic!("there is no gauge: {other:?}"),
    };
    let upstream = upstream();
    let fails = async || Err::<(), _>(Failure::transient());
    let succeeds = async || Ok::<_, Failure>(());

    upstream.call(succeeds).await.expect("all is well");
    assert_eq!(state(), 0.0);
    upstream.call(fails).await.expect_err("three failures trip it");
    assert_eq!(state(), 2.0);
    advance(SECOND * 6).await;
    upstream
        .call(async || {
            assert_eq!(state(), 1.0);
            Ok::<_, Failure>(())
        })
        .await
        .expect("the probe succeeds");
    assert_eq!(state(), 0.0);

    let breaker = upstream.breaker().expect("it has one");
    breaker.set_mode(Mode::ForcedOpen);
    upstream.call(succeeds).await.expect_err("it is forced open");
    assert_eq!(state(), 2.0);
    breaker.set_mode(Mode::Normal);
    upstream.call(succeeds).await.expect("all is well again");
    assert_eq!(state(), 0.0);
}

#[test]
fn metrics_are_described_with_units() {
    let recorder = PrometheusBuilder::new().with_recommended_naming(true).build_recorder();
    let page = with_local_recorder(&recorder, || {
        observe::describe_metrics();
        metrics::histogram!("holdoff.backoff.delay", "upstream" => "provider").record(1.5);
        recorder.handle().render()
    });
    assert!(page.contains("# HELP holdoff_backoff_delay_seconds Waits before a retry"), "{page}");
}

/// What Prometheus sees of an incident, counters named as recommended or as the exporter does by
/// default.
async fn exported(is_recommended: bool) -> String {
    let matcher = Matcher::Full("holdoff.attempts_per_call".into());
    let recorder = PrometheusBuilder::new()
        .with_recommended_naming(is_recommended)
        .set_buckets_for_metric(matcher, &observe::ATTEMPTS_BUCKETS)
        .expect("there are buckets")
        .build_recorder();
    let _guard = set_default_local_recorder(&recorder);
    observe::describe_metrics();
    upstream().call(async || Err::<(), _>(Failure::transient())).await.expect_err("it fails");
    recorder.handle().render()
}

#[tokio::test(start_paused = true)]
async fn the_alerts_are_on_what_the_exporter_exports() {
    let rules = include_str!("../prometheus/holdoff.rules.yml");
    let expressions = rules.split("expr:").skip(1).filter_map(|rest| rest.split("labels:").next());
    let expressions: String = expressions.collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = expressions.split(|c| !is_name(c)).filter(|word| word.starts_with("holdoff_"));
    let names: Vec<_> = names.collect();
    let expected = [
        "holdoff_retries",
        "holdoff_attempts",
        "holdoff_attempts_per_call_bucket",
        "holdoff_breaker_state",
    ];
    assert_eq!(names, expected);

    let recommended = exported(true).await;
    for line in [
        r#"holdoff_retries_total{upstream="provider"} 2"#,
        r#"holdoff_attempts_total{upstream="provider"} 3"#,
        r#"holdoff_attempts_per_call_bucket{upstream="provider",le="2"} 0"#,
        r#"holdoff_attempts_per_call_bucket{upstream="provider",le="3"} 1"#,
        r#"holdoff_breaker_state{upstream="provider"} 2"#,
        r#"holdoff_stops_total{upstream="provider",reason="attempts"} 1"#,
        r#"holdoff_breaker_time_open_seconds_count{upstream="provider"} 1"#,
    ] {
        assert!(recommended.lines().any(|exported| exported == line), "{line} in {recommended}");
    }
    let default = exported(false).await;
    for name in ["holdoff_retries{", "holdoff_attempts{", expected[2], expected[3]] {
        assert!(default.lines().any(|line| line.starts_with(name)), "{name} in {default}");
    }
}
