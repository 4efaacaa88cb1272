//! Breakers of any configuration, and what is wrong with those that are refused.

use std::time::Duration;

use arbitrary::Arbitrary;
use holdoff::{BreakerConfig, CircuitBreaker, ConfigError, Ratio};

use crate::amount::{Length, Share, Unit};
use crate::model::breaker::{Rule, Terms};

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) rule: RuleInput,
    lease: Option<Length>,
    max_open: Option<Length>,
    open: Length,
    open_jitter: Option<Share>,
    probes: Option<u8>,
    slow: Option<Length>,
    stable: Length,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum RuleInput {
    Consecutive { failures: u8 },
    OverTime { buckets: Buckets, min_calls: Option<u8>, span: Length, threshold: Share },
    Rate { window: u8, min_calls: Option<u8>, threshold: Share },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Buckets {
    Four,
    One,
}

impl Config {
    pub(crate) fn without_jitter(self) -> Self {
        Self { open_jitter: None, ..self }
    }

    /// The breaker and the terms in which its model counts, or plain ones of the same kind if they
    /// were rightly refused.
    pub(crate) fn build_or_preset<const BUCKETS: usize>(self) -> (CircuitBreaker<BUCKETS>, Terms) {
        let second = Length::Round { count: 1, unit: Unit::Second };
        let (min_calls, threshold) = (Some(2), Share::Percent(50));
        let rule = match self.rule {
            RuleInput::Consecutive { .. } => RuleInput::Consecutive { failures: 2 },
            RuleInput::OverTime { buckets, .. } => {
                let span = Length::Round { count: 10, unit: Unit::Second };
                RuleInput::OverTime { buckets, min_calls, span, threshold }
            }
            RuleInput::Rate { .. } => RuleInput::Rate { window: 4, min_calls, threshold },
        };
        let preset = Self {
            rule: self.rule,
            lease: None,
            max_open: None,
            open: second,
            open_jitter: None,
            probes: None,
            slow: None,
            stable: Length::Round { count: 5, unit: Unit::Second },
        };
        let built = self.build().or_else(|| preset.build());
        built
            .or_else(|| Self { rule, ..self }.build())
            .or_else(|| Self { rule, ..preset }.build())
            .expect("nothing is wrong with it")
    }

    fn build<const BUCKETS: usize>(self) -> Option<(CircuitBreaker<BUCKETS>, Terms)> {
        let config = match self.rule {
            RuleInput::Consecutive { failures } => BreakerConfig::consecutive(failures.into()),
            RuleInput::OverTime { span, threshold, .. } => {
                BreakerConfig::rate_over(span.duration(), threshold.ratio())
            }
            RuleInput::Rate { window, threshold, .. } => {
                BreakerConfig::rate(window, threshold.ratio())
            }
        };
        let default_max = Duration::from_secs(300);
        let open = self.open.duration();
        let max_open = self.max_open.map_or(default_max, Length::duration);
        let jitter = self.open_jitter.map_or(Ratio::ZERO, Share::ratio);
        let probes = self.probes.unwrap_or(1);
        let mut config = config
            .with_open_period(open)
            .with_max_open_period(max_open)
            .with_open_jitter(jitter)
            .with_probes(probes)
            .with_stable_period(self.stable.duration());
        if let Some(min_calls) = self.min_calls() {
            config = config.with_min_calls(min_calls.into());
        }
        if let Some(lease) = self.lease {
            config = config.with_lease(lease.duration());
        }
        if let Some(slow) = self.slow {
            config = config.with_slow_call(slow.duration());
        }

        let built = config.build_with_buckets::<BUCKETS>();
        let rule = self.rule(BUCKETS);
        let lease = self.lease.map_or(open, Length::duration);
        let wrong = if rule.is_none() {
            Some(ConfigError::BreakerRule)
        } else if probes == 0 || probes > 15 {
            Some(ConfigError::Probes)
        } else if jitter > Ratio::ONE {
            Some(ConfigError::RatioAboveOne)
        } else if open.is_zero() || millis(open) > millis(max_open) || is_too_long(max_open) {
            Some(ConfigError::OpenPeriod)
        } else if lease.is_zero() {
            Some(ConfigError::LeaseZero)
        } else if self.slow.is_some_and(|slow| slow.duration().is_zero()) {
            Some(ConfigError::SlowCallZero)
        } else {
            None
        };
        if wrong.is_some() {
            assert_eq!(built.err(), wrong);
            return None;
        }
        let terms = Terms {
            rule: rule?,
            lease: millis(lease),
            max_open: millis(max_open),
            open: millis(open),
            open_jitter_percent: jitter.as_ppm().div_ceil(10_000).into(),
            probes: probes.into(),
            // 49 days and more is never.
            slow: self.slow.map(|slow| millis(slow.duration())).filter(|&slow| slow < LONGEST),
            stable: millis(self.stable.duration()).div_ceil(1_000).min(u16::MAX.into()) * 1_000,
        };
        Some((built.expect("nothing is wrong with it"), terms))
    }

    const fn min_calls(self) -> Option<u8> {
        match self.rule {
            RuleInput::Consecutive { .. } => None,
            RuleInput::OverTime { min_calls, .. } | RuleInput::Rate { min_calls, .. } => min_calls,
        }
    }

    /// The rule, if it can trip and does not always.
    fn rule(self, buckets: usize) -> Option<Rule> {
        let ppm = |threshold: Share| threshold.ratio().as_ppm() as usize;
        match self.rule {
            RuleInput::Consecutive { failures } => {
                (failures > 0).then_some(Rule::Consecutive { failures: failures.into() })
            }
            RuleInput::Rate { window, min_calls, threshold } => {
                let (window, ppm) = (usize::from(window), ppm(threshold));
                let least = min_calls.map_or(window, usize::from);
                let works = (1..=32).contains(&window)
                    && (1..=window).contains(&least)
                    && (1..=1_000_000).contains(&ppm);
                works.then_some(Rule::Rate { window, least, ppm })
            }
            RuleInput::OverTime { min_calls, span, threshold, .. } => {
                let (periods, ppm) = (buckets as u64, ppm(threshold));
                let least = min_calls.map_or(20, usize::from);
                let span = span.duration().as_nanos().min(u64::MAX.into());
                let nanos = span.div_ceil(periods.into());
                let period = nanos.div_ceil(1_000_000);
                let works = span > 0
                    && least > 0
                    && ppm < 1_000_000
                    && nanos <= u128::from(LONGEST) * 1_000_000;
                let period = works.then(|| period.try_into().expect("at most 49 days"))?;
                Some(Rule::OverTime { least, period, periods, ppm })
            }
        }
    }
}

/// The longest time there is in a configuration (ms): 49 days.
const LONGEST: u64 = u32::MAX as u64;

fn is_too_long(length: Duration) -> bool {
    length > Duration::from_millis(LONGEST)
}

/// Milliseconds, rounded up, 49 days at most.
fn millis(length: Duration) -> u64 {
    let millis = length.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).map_or(LONGEST, |millis| millis.min(LONGEST))
}
