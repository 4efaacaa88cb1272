//! What may be written, and what is said of the rest.

use core::time::Duration;

use holdoff_tokio::config::{OrNone, UpstreamConfig};
use holdoff_tokio::{Jitter, Rate, Ratio};

use super::{read, wrong};

#[test]
fn durations_are_what_people_type() {
    for (text, nanos) in [
        ("250ms", 250_000_000),
        ("1.5s", 1_500_000_000),
        ("0.1s", 100_000_000),
        ("5m", 300_000_000_000),
        ("5 min", 300_000_000_000),
        ("90 seconds", 90_000_000_000),
        ("1h 30m", 5_400_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("2d", 172_800_000_000_000),
        ("100us", 100_000),
        ("100µs", 100_000),
        ("7ns", 7),
        ("0s", 0),
        (" 1s ", 1_000_000_000),
        ("18446744073709551615ns", u64::MAX),
    ] {
        let expected = Some(Duration::from_nanos(nanos));
        let config = read(&format!("retry.max_hint = '{text}'")).expect(text);
        assert_eq!(config.retry.expect("set").max_hint, expected, "{text}");
        let json = format!(r#"{{"retry": {{"max_hint": "{text}"}}}}"#);
        let config: UpstreamConfig = serde_json::from_str(&json).expect(text);
        assert_eq!(config.retry.expect("set").max_hint, expected, "{text}");
    }
}

#[test]
fn other_durations_are_refused() {
    for (value, complaint, got) in [
        ("'-5s'", "negative: ", "\"-5s\""),
        ("5", "its unit is missing: ", "5"),
        ("0", "its unit is missing: ", "0"),
        ("1.5", "its unit is missing: ", "1.5"),
        ("'5'", "its unit is missing: ", "\"5\""),
        ("''", "", "\"\""),
        ("'soon'", "", "\"soon\""),
        ("'5 S'", "", "\"5 S\""),
        ("'1,5s'", "", "\"1,5s\""),
        ("'1e3s'", "", "\"1e3s\""),
        ("'5m 30'", "", "\"5m 30\""),
        ("'5 parsecs'", "", "\"5 parsecs\""),
        ("'5M'", "months and years vary in length: ", "\"5M\""),
        ("'1 month'", "months and years vary in length: ", "\"1 month\""),
        ("'2y'", "months and years vary in length: ", "\"2y\""),
        ("'0.5ns'", "finer than a nanosecond or longer than 584 years: ", "\"0.5ns\""),
        ("'300000d'", "finer than a nanosecond or longer than 584 years: ", "\"300000d\""),
        (
            "'99999999999999999999999s'",
            "finer than a nanosecond or longer than 584 years: ",
            "\"99999999999999999999999s\"",
        ),
        ("true", "", "true"),
        ("['5s']", "", "a list"),
        ("{ seconds = 5 }", "", "a table"),
        ("'none'", "", "\"none\""),
        ("inf", "", "inf"),
    ] {
        assert_eq!(
            wrong(&format!("retry.max_hint = {value}")),
            format!("retry.max_hint: {complaint}must be a duration such as \"5m\", got {got}")
        );
    }
}

#[test]
fn shares_are_exact() {
    for (value, ppm) in [
        ("0.6", 600_000),
        ("0.7", 700_000),
        ("0.3", 300_000),
        ("0.1", 100_000),
        ("'0.1'", 100_000),
        ("'10%'", 100_000),
        ("'12.5 %'", 125_000),
        ("'0.0001%'", 1),
        ("0.000001", 1),
        ("1e-6", 1),
        ("1.0", 1_000_000),
        ("1", 1_000_000),
        ("0", 0),
        ("'100%'", 1_000_000),
        ("'0.1000000000'", 100_000),
        ("0.999999", 999_999),
    ] {
        let config = read(&format!("budget.ratio = {value}")).expect(value);
        assert_eq!(config.budget.expect("set").ratio, Some(Ratio::ppm(ppm)), "{value}");
        if !value.contains(['\'', '%']) {
            let json = format!(r#"{{"budget": {{"ratio": {value}}}}}"#);
            let config: UpstreamConfig = serde_json::from_str(&json).expect(value);
            assert_eq!(config.budget.expect("set").ratio, Some(Ratio::ppm(ppm)), "{value}");
        }
    }
    // Each millionth comes back as itself, by way of a float.
    for ppm in (0..=1_000_000).step_by(7) {
        let toml = format!("budget.ratio = {}.{:06}", ppm / 1_000_000, ppm % 1_000_000);
        let ratio = read(&toml).expect(&toml).budget.expect("set").ratio;
        assert_eq!(ratio, Some(Ratio::ppm(ppm)), "{toml}");
    }
}

#[test]
fn other_shares_are_refused() {
    for (value, error) in [
        ("0.0000001", "finer than a millionth: must be a share of 0 to 1, got 0.0000001"),
        ("'0.00001%'", "finer than a millionth: must be a share of 0 to 1, got \"0.00001%\""),
        ("1.1", "ratio must be at most 1, got 1.1"),
        ("'110%'", "ratio must be at most 1, got 1.1"),
        ("-0.1", "must be a share of 0 to 1, got -0.1"),
        ("nan", "must be a share of 0 to 1, got NaN"),
        ("'%'", "must be a share of 0 to 1, got \"%\""),
        ("'1.'", "must be a share of 0 to 1, got \"1.\""),
        ("'.'", "must be a share of 0 to 1, got \".\""),
        ("'1e-1'", "must be a share of 0 to 1, got \"1e-1\""),
        ("'1/10'", "must be a share of 0 to 1, got \"1/10\""),
        ("5000", "too large: must be a share of 0 to 1, got 5000"),
    ] {
        assert_eq!(wrong(&format!("budget.ratio = {value}")), format!("budget.ratio: {error}"));
    }
}

#[test]
fn rates_are_tokens_per_time() {
    let second = Duration::from_secs(1);
    for (text, rate) in [
        ("10/s", Rate::per_second(10)),
        ("10 / s", Rate::per_second(10)),
        ("10/sec", Rate::per_second(10)),
        ("10 per second", Rate::per_second(10)),
        ("60/min", Rate::per_minute(60)),
        ("60/m", Rate::per_minute(60)),
        ("1000/h", Rate::new(1000, second * 3600)),
        ("1000/day", Rate::new(1000, second * 86_400)),
        ("1 per 5s", Rate::every(second * 5)),
        ("3/100ms", Rate::new(3, second / 10)),
        ("2 per 1.5s", Rate::new(2, second * 3 / 2)),
    ] {
        let config = read(&format!("limiter = {{ rate = '{text}', burst = 1 }}")).expect(text);
        assert_eq!(config.limiter.expect("set").rate, Some(rate), "{text}");
        assert!(config.build().is_ok());
    }
    const EXPECTED: &str =
        "must be a rate of at least 1 per time such as \"10/s\", \"60/min\" or \"1 per 5s\"";
    for (value, complaint, got) in [
        ("10", "its time is missing: ", "10"),
        ("'10'", "its time is missing: ", "\"10\""),
        ("'/s'", "", "\"/s\""),
        ("'1.5/s'", "", "\"1.5/s\""),
        ("'+1/s'", "", "\"+1/s\""),
        ("'-1/s'", "", "\"-1/s\""),
        ("'5000000000/s'", "", "\"5000000000/s\""),
        ("'10/'", "its unit is missing: ", "\"10/\""),
        ("'10/5'", "its unit is missing: ", "\"10/5\""),
        ("'10/M'", "months and years vary in length: ", "\"10/M\""),
        ("'10/fortnight'", "", "\"10/fortnight\""),
    ] {
        assert_eq!(
            wrong(&format!("limiter = {{ rate = {value}, burst = 1 }}")),
            format!("limiter.rate: {complaint}{EXPECTED}, got {got}")
        );
    }
}

#[test]
fn jitter_is_named_or_a_table() {
    let ratio = Ratio::percent(10);
    for (value, jitter) in [
        ("'full'", Jitter::Full),
        ("'equal'", Jitter::Equal),
        ("'none'", Jitter::None),
        ("'decorrelated'", Jitter::Decorrelated),
        ("{ proportional = '10%' }", Jitter::Proportional(ratio)),
        ("{ additive = 0.1 }", Jitter::Additive(ratio)),
        ("{ shortening = '0.1' }", Jitter::Shortening(ratio)),
        ("'shortening 10%'", Jitter::Shortening(ratio)),
        ("0.1", Jitter::Additive(ratio)),
    ] {
        let config = read(&format!("retry.jitter = {value}")).expect(value);
        assert_eq!(config.retry.expect("set").jitter, Some(jitter), "{value}");
    }
    for (value, complaint, got) in [
        ("'Full'", "", "\"Full\""),
        ("'proportional'", "its share is missing: ", "\"proportional\""),
        ("{ proportional = '110%' }", "", "\"proportional 1.1\""),
        ("{ proportional = '10%', additive = 1 }", "", "a table"),
        ("{ wide = '10%' }", "", "a table"),
        ("{}", "", "a table"),
        ("2", "", "\"additive 2\""),
    ] {
        let error = wrong(&format!("retry.jitter = {value}"));
        let start = format!("retry.jitter: {complaint}must be \"full\", \"equal\",");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.ends_with(&format!("of 0 to 1, got {got}")), "{error}");
    }
}

#[test]
fn whatever_does_not_work_names_its_key() {
    for (toml, error) in [
        (
            "retry.max_attempts = 0",
            "retry.max_attempts: max_attempts counts the first call and must be at least 1, got 0",
        ),
        (
            "retry.max_attempts = -1",
            "retry.max_attempts: must be a whole number of 1 to 4294967295, got -1",
        ),
        (
            "retry.max_attempts = 2.5",
            "retry.max_attempts: must be a whole number of 1 to 4294967295, got 2.5",
        ),
        (
            "retry.attempt_timeout = '0s'",
            "retry.attempt_timeout: attempt timeout must not be zero, got \"0s\"",
        ),
        (
            "retry.deadline = '0s'",
            "retry.deadline: must be a duration above zero such as \"20s\", or \"none\", \
             got \"0s\"",
        ),
        ("retry.factor = 0.5", "retry.factor: backoff factor must be at least 1, got 0.5"),
        (
            "retry.base_delay = '1m'",
            "retry.base_delay: base delay must not exceed the maximum delay, got \"1m\" \
             (retry.max_delay: \"30s\")",
        ),
        (
            "retry.min_delay = '1m'",
            "retry.min_delay: minimum delay must not exceed the maximum delay, got \"1m\" \
             (retry.max_delay: \"30s\")",
        ),
        (
            "retry.throttled.base_delay = '1m'",
            "retry.throttled.base_delay: base delay must not exceed the maximum delay, got \"1m\" \
             (retry.throttled.max_delay: \"30s\")",
        ),
        (
            "retry = { preset = 'llm', throttled = { factor = 3 } }",
            "retry.throttled.factor: has no effect unless unhinted_throttle is \"backoff\", got 3 \
             (retry.unhinted_throttle: \"stop\")",
        ),
        (
            "retry.preset = 'fast'",
            "retry.preset: must be \"standard\", \"interactive\", \"batch\" or \"llm\", \
             got \"fast\"",
        ),
        (
            "retry.hint_spread = 'wide'",
            "retry.hint_spread: must be \"envelope\", \"envelope_or_granularity\" or \"none\", \
             got \"wide\"",
        ),
        ("retry = 5", "retry: must be a table, got 5"),
        ("retry.throttled = 'stop'", "retry.throttled: must be a table, got \"stop\""),
        ("limits = {}", "limits: unknown, must be one of retry, limiter, breaker, budget"),
        (
            "limiter.rates = '1/s'",
            "limiter.rates: unknown, must be one of rate, burst, max_waiting",
        ),
        ("limiter = {}", "limiter.rate: missing, a limiter needs both rate and burst"),
        (
            "limiter = { rate = '0/s', burst = 1 }",
            "limiter.rate: rate must be at least one token in a time above zero, got \"0/s\"",
        ),
        (
            "limiter = { rate = '1/0s', burst = 1 }",
            "limiter.rate: rate must be at least one token in a time above zero, got \"1 per 0s\"",
        ),
        (
            "limiter = { rate = '1/day', burst = 1000 }",
            "limiter.rate: refilling the burst must take at most 2^55 ns (417 days), got \"1/d\" \
             (limiter.burst: 1000)",
        ),
        (
            "limiter = { rate = '1/s', burst = 1, max_waiting = 0 }",
            "limiter.max_waiting: must be a whole number of 1 to 4294967295, or \"none\", got 0",
        ),
        (
            "budget = { reserve = 10, capacity = 5 }",
            "budget.capacity: budget capacity must be 1 to 68719 retries and at least the \
             reserve, got 5 (budget.reserve: 10)",
        ),
        (
            "budget.reserve = 70000",
            "budget.capacity: budget capacity must be 1 to 68719 retries and at least the \
             reserve, got 70000 (budget.reserve: 70000)",
        ),
        ("budget.trickle = 2", "budget.trickle: ratio must be at most 1, got 2"),
    ] {
        assert_eq!(wrong(toml), error);
    }
}

#[test]
fn whatever_does_not_work_in_a_breaker_names_its_key() {
    for (keys, error) in [
        ("consecutive = 0", "consecutive: must be a whole number of 1 to 4294967295, got 0"),
        ("calls = 33", "calls: must be a whole number of 1 to 32, got 33"),
        ("calls = 0", "calls: must be a whole number of 1 to 32, got 0"),
        (
            "min_calls = 21",
            "min_calls: must be a whole number of 1 to 65535, at most calls, got 21 \
             (breaker.calls: 20)",
        ),
        (
            "share = 0",
            "share: must be a share above 0 and at most 1, or below 1 over a time, got 0",
        ),
        (
            "share = 1\nbreaker.over = '30s'",
            "share: must be a share above 0 and at most 1, or below 1 over a time, got 1",
        ),
        ("over = '0s'", "over: must be a duration above zero and at most \"497d\", got \"0s\""),
        ("over = '498d'", "over: must be a duration above zero and at most \"497d\", got \"498d\""),
        (
            "over = '1m'\nbreaker.min_calls = 70000",
            "min_calls: must be a whole number of 1 to 65535, at most calls, got 70000",
        ),
        (
            "consecutive = 5\nbreaker.share = 1",
            "consecutive: must not be given together with share, got 5 (breaker.share: 1)",
        ),
        (
            "calls = 5\nbreaker.over = '1m'",
            "calls: must not be given together with over, got 5 (breaker.over: \"1m\")",
        ),
        (
            "open_period = '6m'",
            "open_period: open period must be above zero and at most the maximum open period, \
             which must be at most 49 days, got \"6m\" (breaker.max_open_period: \"5m\")",
        ),
        (
            "max_open_period = '50d'",
            "open_period: open period must be above zero and at most the maximum open period, \
             which must be at most 49 days, got \"10s\" (breaker.max_open_period: \"50d\")",
        ),
        ("open_jitter = '12.5%'", "open_jitter: must be whole percents of 0 to 1, got 0.125"),
        ("open_jitter = 2", "open_jitter: must be whole percents of 0 to 1, got 2"),
        ("probes = 0", "probes: number of probes must be 1 to 15, got 0"),
        ("probes = 271", "probes: number of probes must be 1 to 15, got 271"),
        ("lease = '0s'", "lease: probe lease must not be zero, got \"0s\""),
        ("lease = '50d'", "lease: must be a duration above zero and at most \"49d\", got \"50d\""),
        (
            "slow_call = '50d'",
            "slow_call: must be a duration of at most \"49d\", or \"none\", got \"50d\"",
        ),
        (
            "stable_period = '1d'",
            "stable_period: must be a duration of at most \"18h\", got \"1d\"",
        ),
    ] {
        assert_eq!(wrong(&format!("breaker.{keys}")), format!("breaker.{error}"));
    }
}

#[test]
fn formats_without_order_or_uniqueness_are_checked_too() {
    let twice = r#"{"limiter": {"rate": "1/s", "burst": 1, "burst": 2}}"#;
    let error = serde_json::from_str::<UpstreamConfig>(twice).expect_err("twice");
    assert!(error.to_string().starts_with("limiter.burst: must not be given twice"), "{error}");
    let null = r#"{"limiter": {"rate": "1/s", "burst": 1, "max_waiting": "none"}}"#;
    let config: UpstreamConfig = serde_json::from_str(null).expect("valid");
    assert_eq!(config.limiter.expect("set").max_waiting, Some(OrNone::None));
    let unknown = serde_json::from_str::<UpstreamConfig>(r#"{"limiter": {"rte": null}}"#);
    let error = unknown.expect_err("a typo, null or not").to_string();
    assert!(error.starts_with("limiter.rte: unknown, must be one of rate, burst"), "{error}");
}

#[test]
fn a_long_value_is_not_shown_whole() {
    let error = wrong(&format!("retry.max_hint = '{}'", "x".repeat(100_000)));
    assert!(error.len() < 200 && error.ends_with("xxx\" and more"), "{error}");
}
