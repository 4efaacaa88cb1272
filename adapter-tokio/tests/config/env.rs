//! Environment variables.

use core::time::Duration;
use std::ffi::OsString;

use holdoff_tokio::config::{OrNone, RetrySection, UpstreamConfig};
use holdoff_tokio::{Jitter, Policy, Quota, Rate, Ratio};

use super::{from_vars, read, vars};

#[test]
fn every_kind_of_setting_has_a_variable() {
    let config = from_vars(&[
        ("LLM_RETRY_PRESET", "interactive"),
        ("LLM_RETRY_MAX_ATTEMPTS", "7"),
        ("LLM_RETRY_BASE_DELAY", "250ms"),
        ("LLM_RETRY_FACTOR", "1.5"),
        ("LLM_RETRY_MAX_DELAY", " 1m \n"),
        ("LLM_RETRY_DEADLINE", "none"),
        ("LLM_RETRY_ATTEMPT_TIMEOUT", "10s"),
        ("LLM_RETRY_MAX_HINT", "2m"),
        ("LLM_RETRY_JITTER", "proportional 10%"),
        ("LLM_RETRY_THROTTLED_BASE_DELAY", "7s"),
        ("LLM_RATE", "60/min"),
        ("LLM_BURST", "5"),
        ("LLM_MAX_WAITING", "100"),
        ("LLM_BREAKER_CONSECUTIVE", "3"),
        ("LLM_BREAKER_OPEN_PERIOD", "30s"),
        ("LLM_BUDGET_RATIO", "20%"),
        ("LLMX_RETRY_NONSENSE", ""),
        ("HOME", "/"),
    ])
    .expect("all are valid");
    let retry = config.retry.expect("set");
    assert_eq!(retry.jitter, Some(Jitter::Proportional(Ratio::percent(10))));
    assert_eq!(retry.throttled.expect("set").base_delay, Some(Duration::from_secs(7)));
    assert_eq!(config.limiter.expect("set").max_waiting, Some(OrNone::Is(100)));
    assert_eq!(config.breaker.expect("set").consecutive, Some(3));
    assert_eq!(config.budget.expect("set").ratio, Some(Ratio::percent(20)));

    let upstream = config.build().expect("valid");
    let policy = upstream.policy();
    assert_eq!((policy.max_attempts().get(), policy.deadline()), (7, None));
    assert_eq!(policy.attempt_timeout(), Some(Duration::from_secs(10)));
    assert_eq!(policy.max_hint(), Duration::from_secs(120));
    assert_eq!(policy.backoff().base(), Duration::from_millis(250));
    assert_eq!(policy.backoff().factor(), Ratio::ppm(1_500_000));
    assert_eq!(policy.backoff().max_delay(), Duration::from_secs(60));
    let quota = Quota::new(Rate::per_minute(60), 5);
    assert_eq!(Ok(upstream.limiter().expect("set").quota()), quota);
}

#[test]
fn the_kinds_of_jitter_go_by_their_names() {
    let ratio = Ratio::ppm(125_000);
    for (text, jitter) in [
        ("full", Jitter::Full),
        ("equal", Jitter::Equal),
        ("none", Jitter::None),
        ("decorrelated", Jitter::Decorrelated),
        ("0", Jitter::Additive(Ratio::ZERO)),
        ("1", Jitter::Additive(Ratio::ONE)),
        ("0.6", Jitter::Additive(Ratio::percent(60))),
        (".125", Jitter::Additive(ratio)),
        ("12.5%", Jitter::Additive(ratio)),
        ("additive 0.125", Jitter::Additive(ratio)),
        ("proportional 12.5%", Jitter::Proportional(ratio)),
        ("shortening 12.5 %", Jitter::Shortening(ratio)),
    ] {
        let set = vars(&[("LLM_RETRY_JITTER", text)]);
        let retry = RetrySection::default().overridden_by("LLM", set).expect(text);
        assert_eq!(retry.jitter, Some(jitter), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_of_the_variable() {
    const JITTER: &str = "must be \"full\", \"equal\", \"decorrelated\", \"none\", an additive \
        share of 0 to 1, or a kind (additive, proportional, shortening) and its share of 0 to 1";
    for (variable, value, error) in [
        ("LLM_RETRY_JITTER", "1.1", format!("{JITTER}, got \"1.1\"")),
        ("LLM_RETRY_JITTER", "-0.1", format!("{JITTER}, got \"-0.1\"")),
        ("LLM_RETRY_JITTER", "nan", format!("{JITTER}, got \"nan\"")),
        ("LLM_RETRY_JITTER", "half", format!("{JITTER}, got \"half\"")),
        (
            "LLM_RETRY_JITTER",
            "0.1234567",
            format!("finer than a millionth: {JITTER}, got \"0.1234567\""),
        ),
        ("LLM_RETRY_JITTER", "", format!("empty, unset it for the default: {JITTER}, got \"\"")),
        (
            "LLM_RETRY_MAX_ATTEMPTS",
            "0",
            "max_attempts counts the first call and must be at least 1, got \"0\"".into(),
        ),
        (
            "LLM_RETRY_MAX_ATTEMPTS",
            "many",
            "must be a whole number of 1 to 4294967295, got \"many\"".into(),
        ),
        (
            "LLM_RETRY_BASE_DELAY",
            "5",
            "its unit is missing: must be a duration such as \"250ms\", at most max_delay, \
             got \"5\""
                .into(),
        ),
        (
            "LLM_RETRY_BASE_DELAY",
            "31s",
            "base delay must not exceed the maximum delay, got \"31s\" \
             (retry.max_delay: \"30s\")"
                .into(),
        ),
        (
            "LLM_RETRY_DEADLINE",
            "-5s",
            "negative: must be a duration above zero such as \"20s\", or \"none\", got \"-5s\""
                .into(),
        ),
        ("LLM_BURST", "0", "burst must be at least 1, got \"0\"".into()),
        ("LLM_BREAKER_PROBES", "16", "number of probes must be 1 to 15, got \"16\"".into()),
        ("LLM_BUDGET_RATIO", "101%", "ratio must be at most 1, got \"101%\"".into()),
    ] {
        let set = [("LLM_RATE", "1/s"), (variable, value)];
        let set = if variable == "LLM_BURST" { &set[..] } else { &set[1..] };
        let found = from_vars(set).expect_err(variable);
        assert_eq!(found.to_string(), format!("{variable}: {error}"));
        assert_eq!(found.key(), variable);
        assert_eq!(found.got(), Some(format!("{value:?}").as_str()));
    }
}

#[test]
fn a_maximum_that_the_file_exceeds_names_both() {
    let file = read("retry.base_delay = '20s'").expect("valid");
    let error = file.overridden_by("LLM", vars(&[("LLM_RETRY_MAX_DELAY", "10s")]));
    assert_eq!(
        error.expect_err("below the base").to_string(),
        "retry.base_delay: base delay must not exceed the maximum delay, got \"20s\" \
         (LLM_RETRY_MAX_DELAY: \"10s\")"
    );
}

#[test]
fn a_rule_beside_that_of_the_file_names_both() {
    let file = read("breaker.consecutive = 5").expect("valid");
    let error = file.overridden_by("LLM", vars(&[("LLM_BREAKER_SHARE", "50%")]));
    assert_eq!(
        error.expect_err("two rules").to_string(),
        "breaker.consecutive: must not be given together with share, got 5 \
         (LLM_BREAKER_SHARE: \"50%\")"
    );
}

#[test]
fn a_variable_is_not_within_a_table_of_the_file() {
    for (variable, value) in
        [("LLM_RETRY_JITER", "1"), ("LLM_RETRY_JITTER", "x"), ("LLM_RETRY_FACTOR", "0")]
    {
        let error = from_vars(&[(variable, value)]).expect_err(variable).within("search");
        assert_eq!(error.key(), variable);
    }
}

#[test]
fn a_typo_is_not_ignored() {
    for name in [
        "LLM_RETRY_JITER",
        "LLM_RETRY_",
        "LLM_RETRY_jitter",
        "LLM_RETRY_THROTTLED",
        "LLM_LIMITER_RATE",
        "LLM_BREAKER_OPEN",
        "LLM_BUDGET_CAP",
    ] {
        let error = from_vars(&[(name, "1")]).expect_err(name);
        let start = format!("{name}: unknown, must be one of LLM_RETRY_PRESET, LLM_RETRY_MAX_");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
    // They are another reader's business.
    let others = vars(&[("LLM_BREAKER_OPEN", "1"), ("LLM_RATE", "1/s"), ("LLM_MODEL", "big")]);
    assert!(RetrySection::default().overridden_by("LLM", others).is_ok());
}

#[test]
fn a_limiter_needs_both_its_variables() {
    let error = from_vars(&[("LLM_RATE", "10/s")]).expect_err("no burst");
    assert_eq!(error.to_string(), "limiter.burst: missing, a limiter needs both rate and burst");
    assert_eq!(error.got(), None);
}

#[test]
fn a_prefix_may_end_in_its_underscore_or_be_empty() {
    for (prefix, name) in [("LLM_", "LLM_RETRY_JITTER"), ("", "RETRY_JITTER")] {
        let set = vars(&[(name, "0.5")]);
        let retry = RetrySection::default().overridden_by(prefix, set).expect("valid");
        assert_eq!(retry.jitter, Some(Jitter::Additive(Ratio::percent(50))), "{prefix:?}");
    }
}

#[test]
fn nothing_set_changes_nothing() {
    for policy in [Policy::STANDARD, Policy::INTERACTIVE, Policy::BATCH, Policy::LLM] {
        let retry = RetrySection::of(&policy).overridden_by("LLM", vars(&[])).expect("unset");
        assert_eq!(retry.build(), Ok(policy));
    }
    assert_eq!(from_vars(&[]), Ok(UpstreamConfig::default()));
}

#[cfg(unix)]
#[test]
fn what_is_not_unicode_is_refused_where_it_concerns_us() {
    use std::os::unix::ffi::OsStringExt;

    let broken = |start: &str| {
        let mut bytes = start.as_bytes().to_vec();
        bytes.push(0xff);
        OsString::from_vec(bytes)
    };
    let value = vec![("LLM_RETRY_BASE_DELAY".into(), broken("5s"))];
    let error = UpstreamConfig::default().overridden_by("LLM", value).expect_err("not Unicode");
    assert_eq!(
        error.to_string(),
        "LLM_RETRY_BASE_DELAY: not Unicode: must be a duration such as \"250ms\", at most \
         max_delay, got \"5s\u{fffd}\""
    );
    let name = vec![(broken("LLM_RETRY_"), "5s".into())];
    let error = UpstreamConfig::default().overridden_by("LLM", name).expect_err("not Unicode");
    assert!(error.to_string().starts_with("LLM_RETRY_\u{fffd}: unknown, must be one of"));
    let others = vec![(broken("PATH"), broken("/"))];
    assert!(UpstreamConfig::default().overridden_by("LLM", others).is_ok());
}
