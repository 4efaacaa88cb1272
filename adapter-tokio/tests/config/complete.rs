//! The example with every key, as it is in the documentation.

use holdoff_tokio::Policy;
use holdoff_tokio::config::{Preset, UpstreamConfig};

use super::read;

const COMPLETE: &str = include_str!("../../src/config/complete.toml");

#[test]
fn the_complete_example_has_the_defaults_it_names() {
    let complete = read(COMPLETE).expect("it is a valid example");
    let least = "limiter = { rate = '10/s', burst = 20 }\nbreaker = {}\nbudget = {}";
    let mut expected = read(least).and_then(|config| config.effective().map_err(|e| e.to_string()));
    if let Ok(retry) = expected.as_mut().map(|config| config.retry.get_or_insert_default()) {
        retry.preset = Some(Preset::Standard);
    }
    assert_eq!(Ok(complete), expected);
    assert_eq!(*complete.build().expect("it can be built").policy(), Policy::STANDARD);
}

#[test]
fn nothing_set_is_the_standard_policy_and_nothing_else() {
    for config in [
        UpstreamConfig::default(),
        read("").expect("an empty file is fine"),
        read("[retry]").expect("an empty table is fine"),
        serde_json::from_str("{}").expect("an empty object is fine"),
        serde_json::from_str(r#"{"retry": null, "limiter": null}"#).expect("null is absent"),
        serde_json::from_str(r#"{"retry": {"deadline": null}}"#).expect("null is absent"),
    ] {
        let upstream = config.build().expect("the defaults work");
        assert_eq!(*upstream.policy(), Policy::STANDARD);
        assert!(upstream.limiter().is_none());
        assert!(upstream.breaker().is_none());
        assert!(upstream.budget().is_none());
        assert!(upstream.counters().is_some());
    }
}

#[test]
fn a_preset_alone_is_the_preset() {
    for (name, policy) in [
        ("standard", Policy::STANDARD),
        ("interactive", Policy::INTERACTIVE),
        ("batch", Policy::BATCH),
        ("llm", Policy::LLM),
    ] {
        let config = read(&format!("retry.preset = '{name}'")).expect("a preset by name");
        assert_eq!(*config.build().expect("a preset works").policy(), policy);
        let effective = config.effective().expect("a preset works");
        assert_eq!(effective.retry.expect("set").preset, None);
        assert_eq!(*effective.build().expect("printed in full").policy(), policy);
    }
}

#[test]
fn overrides_change_what_they_name_and_nothing_else() {
    let config = read(
        "retry = { preset = 'interactive', max_attempts = 2, deadline = 'none', \
         attempt_timeout = '1.5s', unhinted_throttle = 'stop' }",
    );
    let policy = *config.expect("valid").build().expect("valid").policy();
    assert_eq!(policy.max_attempts().get(), 2);
    assert_eq!(policy.deadline(), None);
    assert_eq!(policy.attempt_timeout().map(|timeout| timeout.as_millis()), Some(1500));
    assert_eq!(policy.backoff(), Policy::INTERACTIVE.backoff());
    assert_eq!(policy.max_hint(), Policy::INTERACTIVE.max_hint());
}
