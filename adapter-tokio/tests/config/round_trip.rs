//! What is written reads back as what it was.

use core::time::Duration;

use holdoff_tokio::config::{
    BreakerSection, BudgetSection, LimiterSection, OrNone, Preset, RetrySection, ScheduleSection,
    Throttle, UpstreamConfig,
};
use holdoff_tokio::{
    Backoff, BackoffConfig, HintSpread, Jitter, Policy, PolicyConfig, Rate, Ratio, UnhintedThrottle,
};
use proptest::option;
use proptest::prelude::*;

fn duration() -> impl Strategy<Value = Duration> {
    let unit = prop::sample::select(vec![1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000]);
    prop_oneof![any::<u64>(), (0..1_000_u64, unit).prop_map(|(count, unit)| count * unit),]
        .prop_map(Duration::from_nanos)
}

fn or_none<T: core::fmt::Debug>(
    strategy: impl Strategy<Value = T>,
) -> impl Strategy<Value = OrNone<T>> {
    option::of(strategy).prop_map(OrNone::from)
}

fn ratio() -> impl Strategy<Value = Ratio> {
    any::<u32>().prop_map(Ratio::ppm)
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let share = (0..=1_000_000_u32).prop_map(Ratio::ppm);
    (0..7, share).prop_map(|(kind, share)| match kind {
        0 => Jitter::Additive(share),
        1 => Jitter::Decorrelated,
        2 => Jitter::Equal,
        3 => Jitter::Full,
        4 => Jitter::None,
        5 => Jitter::Proportional(share),
        _ => Jitter::Shortening(share),
    })
}

fn hint_spread() -> impl Strategy<Value = HintSpread> {
    prop::sample::select(vec![
        HintSpread::Envelope,
        HintSpread::EnvelopeOrGranularity,
        HintSpread::None,
    ])
}

fn schedule() -> impl Strategy<Value = ScheduleSection> {
    let keys = (
        option::of(duration()),
        option::of(ratio()),
        option::of(or_none(duration())),
        option::of(duration()),
        option::of(jitter()),
    );
    keys.prop_map(|(base_delay, factor, max_delay, min_delay, jitter)| {
        let mut section = ScheduleSection::default();
        section.base_delay = base_delay;
        section.factor = factor;
        section.max_delay = max_delay;
        section.min_delay = min_delay;
        section.jitter = jitter;
        section
    })
}

fn retry() -> impl Strategy<Value = RetrySection> {
    let preset = prop::sample::select(vec![
        Preset::Batch,
        Preset::Interactive,
        Preset::Llm,
        Preset::Standard,
    ]);
    let throttle =
        prop::sample::select(vec![Throttle::Backoff, Throttle::SameBackoff, Throttle::Stop]);
    let keys = (
        option::of(preset),
        option::of(any::<u32>()),
        schedule(),
        option::of(or_none(duration())),
        option::of(or_none(duration())),
        option::of(duration()),
        option::of(hint_spread()),
        option::of(throttle),
        option::of(schedule()),
    );
    keys.prop_map(|(preset, attempts, schedule, timeout, deadline, hint, spread, kind, other)| {
        let mut section = RetrySection::default();
        section.preset = preset;
        section.max_attempts = attempts;
        section.base_delay = schedule.base_delay;
        section.factor = schedule.factor;
        section.max_delay = schedule.max_delay;
        section.min_delay = schedule.min_delay;
        section.jitter = schedule.jitter;
        section.attempt_timeout = timeout;
        section.deadline = deadline;
        section.max_hint = hint;
        section.hint_spread = spread;
        section.unhinted_throttle = kind;
        section.throttled = other;
        section
    })
}

fn limiter() -> impl Strategy<Value = LimiterSection> {
    let rate = (any::<u32>(), duration()).prop_map(|(tokens, per)| Rate::new(tokens, per));
    let keys = (option::of(rate), option::of(any::<u32>()), option::of(or_none(any::<u32>())));
    keys.prop_map(|(rate, burst, max_waiting)| {
        let mut section = LimiterSection::default();
        section.rate = rate;
        section.burst = burst;
        section.max_waiting = max_waiting;
        section
    })
}

fn breaker() -> impl Strategy<Value = BreakerSection> {
    let rule = (
        option::of(any::<u32>()),
        option::of(ratio()),
        option::of(any::<u32>()),
        option::of(duration()),
        option::of(any::<u32>()),
    );
    let keys = (
        option::of(duration()),
        option::of(duration()),
        option::of(ratio()),
        option::of(any::<u32>()),
        option::of(duration()),
        option::of(or_none(duration())),
        option::of(duration()),
    );
    (rule, keys).prop_map(|(rule, keys)| {
        let mut section = BreakerSection::default();
        (section.consecutive, section.share, section.calls, section.over, section.min_calls) = rule;
        section.open_period = keys.0;
        section.max_open_period = keys.1;
        section.open_jitter = keys.2;
        section.probes = keys.3;
        section.lease = keys.4;
        section.slow_call = keys.5;
        section.stable_period = keys.6;
        section
    })
}

fn budget() -> impl Strategy<Value = BudgetSection> {
    let keys = (
        option::of(any::<u32>()),
        option::of(ratio()),
        option::of(any::<u32>()),
        option::of(ratio()),
    );
    keys.prop_map(|(reserve, ratio, capacity, trickle)| {
        let mut section = BudgetSection::default();
        section.reserve = reserve;
        section.ratio = ratio;
        section.capacity = capacity;
        section.trickle = trickle;
        section
    })
}

/// Any configuration that can be written down, whether it works or not.
fn upstream() -> impl Strategy<Value = UpstreamConfig> {
    let tables =
        (option::of(retry()), option::of(limiter()), option::of(breaker()), option::of(budget()));
    tables.prop_map(|(retry, limiter, breaker, budget)| {
        let mut config = UpstreamConfig::default();
        config.retry = retry;
        config.limiter = limiter;
        config.breaker = breaker;
        config.budget = budget;
        config
    })
}

fn backoff() -> impl Strategy<Value = Backoff> {
    let factor = (1_000_000..=u32::MAX).prop_map(Ratio::ppm);
    (duration(), factor, duration(), duration(), jitter()).prop_map(
        |(base, factor, min, max, jitter)| {
            BackoffConfig::exponential(base)
                .with_factor(factor)
                .with_jitter(jitter)
                .with_min_delay(min)
                .with_max_delay(max.max(base).max(min))
                .build()
                .expect("in order")
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let throttle = prop_oneof![
        backoff().prop_map(UnhintedThrottle::Backoff),
        Just(UnhintedThrottle::SameBackoff),
        Just(UnhintedThrottle::Stop),
    ];
    let parts = (
        backoff(),
        1..=u32::MAX,
        option::of(duration()),
        option::of(duration()),
        duration(),
        hint_spread(),
        throttle,
    );
    parts.prop_map(|(backoff, attempts, timeout, deadline, hint, spread, throttle)| {
        let mut config = PolicyConfig::new(backoff)
            .with_max_attempts(attempts)
            .with_max_hint(hint)
            .with_hint_spread(spread)
            .with_unhinted_throttle(throttle);
        if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero()) {
            config = config.with_attempt_timeout(timeout);
        }
        if let Some(deadline) = deadline.filter(|deadline| !deadline.is_zero()) {
            config = config.with_deadline(deadline);
        }
        config.build().expect("valid")
    })
}

proptest! {
    #[test]
    fn a_configuration_reads_back_as_it_was(config in upstream()) {
        let written = toml::to_string(&config).expect("it can be written");
        prop_assert_eq!(toml::from_str(&written), Ok(config), "{}", written);
        let written = serde_json::to_string(&config).expect("it can be written");
        let read: UpstreamConfig = serde_json::from_str(&written).expect("it can be read");
        prop_assert_eq!(read, config, "{}", written);
    }

    #[test]
    fn any_policy_can_be_written_and_read(policy in policy()) {
        let written = toml::to_string(&RetrySection::of(&policy)).expect("it can be written");
        let read: RetrySection = toml::from_str(&written).expect("it can be read");
        prop_assert_eq!(read.build(), Ok(policy), "{}", written);
    }

    #[test]
    fn what_is_effective_works_whenever_what_was_written_does(config in upstream()) {
        match config.build() {
            Ok(upstream) => {
                let effective = config.effective().expect("it works");
                let again = effective.build().expect("it works");
                prop_assert_eq!(upstream.policy(), again.policy());
                prop_assert_eq!(effective.effective(), Ok(effective));
            }
            Err(error) => {
                prop_assert_eq!(config.effective(), Err(error.clone()));
                prop_assert!(!error.key().is_empty() && !error.reason().is_empty());
            }
        }
    }

    #[test]
    fn no_text_whatever_panics(text in "\\PC{0,20}", key in 0..8_usize) {
        let key = [
            "retry.base_delay", "retry.jitter", "retry.factor", "retry.max_attempts",
            "limiter.rate", "limiter.max_waiting", "breaker.share", "budget.ratio",
        ][key];
        let (table, name) = key.split_once('.').expect("two parts");
        let json = serde_json::json!({ table: { name: text } });
        if let Err(error) = serde_json::from_value::<UpstreamConfig>(json) {
            prop_assert!(error.to_string().starts_with(key), "{}", error);
        }
    }
}

#[test]
fn a_short_float_is_what_was_written() {
    use serde::Deserialize;
    use serde::de::value::{Error, MapDeserializer};

    for (float, ppm) in [(0.1_f32, 100_000), (0.6, 600_000), (0.125, 125_000)] {
        let map = MapDeserializer::<_, Error>::new([("ratio", float)].into_iter());
        let budget = BudgetSection::deserialize(map).expect("a share");
        assert_eq!(budget.ratio, Some(Ratio::ppm(ppm)));
    }
}
