//! Breakers of every kind, kept as plain values that a reference can read.

use core::time::Duration;

use holdoff::{BreakerConfig, Ratio};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) rule: Rule,
    pub(crate) probes: u8,
    pub(crate) open: Duration,
    pub(crate) max: Duration,
    pub(crate) jitter: Ratio,
    pub(crate) lease: Option<Duration>,
    pub(crate) slow: Option<Duration>,
    pub(crate) stable: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    Consecutive { failures: u32 },
    Rate { window: usize, least: usize, threshold: Ratio },
    OverTime { span: Duration, least: usize, threshold: Ratio },
}

impl Setup {
    pub(crate) fn config(&self) -> BreakerConfig {
        let narrow = |n: usize| u16::try_from(n).expect("small");
        let config = match self.rule {
            Rule::Consecutive { failures } => BreakerConfig::consecutive(failures),
            Rule::Rate { window, least, threshold } => {
                let window = u8::try_from(window).expect("at most 32");
                BreakerConfig::rate(window, threshold).with_min_calls(narrow(least))
            }
            Rule::OverTime { span, least, threshold } => {
                BreakerConfig::rate_over(span, threshold).with_min_calls(narrow(least))
            }
        };
        let config = config
            .with_probes(self.probes)
            .with_open_period(self.open)
            .with_max_open_period(self.max)
            .with_open_jitter(self.jitter)
            .with_stable_period(self.stable);
        let config = match self.lease {
            Some(lease) => config.with_lease(lease),
            None => config,
        };
        match self.slow {
            Some(slow) => config.with_slow_call(slow),
            None => config,
        }
    }
}

/// Setups that count in the word.
pub(crate) fn counting() -> impl Strategy<Value = Setup> {
    let rate = (1..=32_usize, any_threshold()).prop_flat_map(|(window, threshold)| {
        (1..=window).prop_map(move |least| Rule::Rate { window, least, threshold })
    });
    let consecutive = prop_oneof![
        8 => 1..=4_u32,
        1 => Just(u32::MAX),
    ];
    any_setup(prop_oneof![consecutive.prop_map(|failures| Rule::Consecutive { failures }), rate,])
}

/// Setups that count in buckets.
pub(crate) fn over_time() -> impl Strategy<Value = Setup> {
    let rule = (nanos(100_000_000..=40_000_000_000), 1..=6_usize, any_threshold());
    any_setup(rule.prop_map(|(span, least, threshold)| {
        let threshold = threshold.min(Ratio::ppm(999_999));
        Rule::OverTime { span, least, threshold }
    }))
}

fn any_setup(rule: impl Strategy<Value = Rule>) -> impl Strategy<Value = Setup> {
    let open = prop_oneof![
        Just(Duration::from_secs(10)),
        nanos(1..=20_000_000_000),
        Just(Duration::from_nanos(1)),
    ];
    let longer = prop_oneof![Just(Duration::ZERO), nanos(0..=300_000_000_000)];
    let jitter = prop_oneof![Just(Ratio::ZERO), (0..=1_000_000_u32).prop_map(Ratio::ppm)];
    let lease = prop::option::of(nanos(1..=20_000_000_000));
    let slow = prop::option::of(prop_oneof![
        4 => nanos(0..=3_000_000_000),
        1 => Just(Duration::MAX),
    ]);
    let stable = prop_oneof![nanos(0..=60_000_000_000), Just(Duration::MAX)];
    let probes = prop_oneof![2 => Just(1_u8), 2 => 2..=4_u8, 1 => Just(15_u8)];
    (rule, probes, (open, longer), jitter, lease, slow, stable).prop_map(
        |(rule, probes, (open, longer), jitter, lease, slow, stable)| {
            let max = open + longer;
            Setup { rule, probes, open, max, jitter, lease, slow, stable }
        },
    )
}

fn any_threshold() -> impl Strategy<Value = Ratio> {
    prop_oneof![
        Just(Ratio::percent(50)),
        Just(Ratio::ONE),
        Just(Ratio::ppm(1)),
        (1..=1_000_000_u32).prop_map(Ratio::ppm),
    ]
}

pub(crate) fn nanos(
    range: core::ops::RangeInclusive<u64>,
) -> impl Strategy<Value = Duration> + Clone {
    range.prop_map(Duration::from_nanos)
}
