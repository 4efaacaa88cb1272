//! Backoff arithmetic: overflow, infinities, caps and degenerate jitter.

use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::{Backoff, BackoffConfig, ConfigError, Jitter, PolicyConfig, Ratio};

use crate::common::{millis, secs};
use crate::{Client, Response};

const EXTREME_SAMPLES: [u64; 4] = [0, 1, 1 << 63, u64::MAX];

/// Jitter of every kind, up to four thousand times the delay.
fn every_jitter() -> impl Iterator<Item = Jitter> {
    let ratios = [0, 1, 100_000, 500_000, 1_000_000, 2_000_000, u32::MAX].map(Ratio::ppm);
    let plain = [Jitter::Decorrelated, Jitter::Equal, Jitter::Full, Jitter::None];
    let with_ratio = ratios
        .into_iter()
        .flat_map(|j| [Jitter::Additive(j), Jitter::Proportional(j), Jitter::Shortening(j)]);
    plain.into_iter().chain(with_ratio)
}

fn built(config: BackoffConfig) -> Backoff {
    config.build().expect("valid")
}

/// The delays before the first `retries` retries, each drawn with `sample`.
fn delays(backoff: Backoff, retries: usize, sample: u64) -> Vec<Duration> {
    backoff.delays(|| sample).take(retries).collect()
}

// C12: awslabs/aws-sdk-rust#1133, djc/tokio-retry#1
#[test]
fn the_cap_holds_however_many_retries_there_were() {
    let config = BackoffConfig::exponential(secs(1)).with_max_delay(secs(20));
    let plain = built(config.with_jitter(Jitter::None));
    let whole_secs: Vec<u64> = delays(plain, 7, 0).iter().map(Duration::as_secs).collect();
    assert_eq!(whole_secs, [1, 2, 4, 8, 16, 20, 20]);

    for factor in [1_000_000, 1_000_001, 1_100_000, 2_000_000, 3_000_000, u32::MAX] {
        for jitter in every_jitter() {
            let backoff = built(config.with_factor(Ratio::ppm(factor)).with_jitter(jitter));
            for sample in EXTREME_SAMPLES {
                for retry in (1..2000).chain([1 << 31, u32::MAX]) {
                    let delay = backoff.delay(retry, Duration::MAX, sample);
                    assert!(
                        delay <= secs(20),
                        "{factor} ppm, {jitter:?}, retry {retry}: {delay:?}"
                    );
                }
            }
        }
    }
}

// C12, as a whole call: awslabs/aws-sdk-rust#1133
#[test]
fn a_call_of_two_thousand_attempts_backs_off_to_the_end() {
    let backoff = BackoffConfig::exponential(secs(1)).with_max_delay(secs(20));
    let policy = PolicyConfig::new(built(backoff)).with_max_attempts(2000);
    let client = Client { sample: u64::MAX, ..Client::of(policy) };
    let trace = client.call(|_| Response::new(503));
    assert_eq!(trace.starts.len(), 2000);
    // 1 + 2 + 4 + 8 + 16, then 20 s each.
    assert_eq!(trace.end, secs(31 + 20 * (1999 - 5)));
}

// C13: scylladb/latte#208, mofa-org/mofa#1325, App-vNext/Polly#1866
#[test]
fn powers_past_the_type_give_the_cap_and_not_zero() {
    for (base, cap, factors) in [
        (millis(1000), millis(30_000), [2_000_000, 2_500_000, 10_000_000]),
        (secs(2), secs(300), [2_000_000, 3_000_000, u32::MAX]),
        (Duration::from_nanos(1), Duration::from_nanos(u64::MAX >> 11), [2_000_000; 3]),
    ] {
        for factor in factors {
            let config = BackoffConfig::exponential(base).with_factor(Ratio::ppm(factor));
            let backoff = built(config.with_max_delay(cap).with_jitter(Jitter::None));
            for exponent in [53, 54, 55, 61, 62, 63, 64, 65, 127, 128, 129, 999_999, u32::MAX - 1] {
                let delay = backoff.delay(exponent + 1, Duration::ZERO, 0);
                assert_eq!(delay, cap, "{base:?} at {factor} ppm to the power of {exponent}");
            }
        }
    }
    let backoff = BackoffConfig::exponential(secs(2)).with_max_delay(secs(300));
    let backoff = built(backoff.with_jitter(Jitter::None));
    assert_eq!([8, 9].map(|retry| backoff.envelope(retry)), [secs(256), secs(300)]);
}

// C13, without a cap: App-vNext/Polly#1866
#[test]
fn uncapped_delays_grow_until_the_type_ends_and_stay_there() {
    for factor in [1_000_001, 1_500_000, 2_000_000, 9_999_999, u32::MAX] {
        for jitter in every_jitter().filter(|jitter| *jitter != Jitter::Decorrelated) {
            let config = BackoffConfig::exponential(secs(1)).with_factor(Ratio::ppm(factor));
            let backoff = built(config.with_jitter(jitter));
            let ceiling = |retry| backoff.bounds(retry, Duration::ZERO).1;
            let retries = (1..200).chain((8..32).map(|shift| 1 << shift)).chain([u32::MAX]);
            let ceilings: Vec<Duration> = retries.map(ceiling).collect();
            assert!(ceilings.is_sorted(), "{factor} ppm, {jitter:?}");
            // The end, but for the rounding of the room that the jitter needs.
            let end = Duration::from_nanos(u64::MAX - 5000);
            assert!(ceilings.last() > Some(&end), "{factor} ppm, {jitter:?}");
        }
    }
}

// C14: App-vNext/Polly#2163
#[test]
fn jitter_stays_finite_and_positive_where_floats_overflow() {
    let config = BackoffConfig::exponential(secs(2)).with_max_delay(secs(30));
    for jitter in every_jitter() {
        let backoff = built(config.with_jitter(jitter));
        for retry in (1023..=1030).chain([5000]) {
            for previous in [Duration::ZERO, secs(30), Duration::MAX] {
                let delay = backoff.delay(retry, previous, u64::MAX);
                assert!(secs(2) <= delay && delay <= secs(30), "{jitter:?}, {retry}: {delay:?}");
            }
        }
    }
}

// C14, zero times infinity: jd/tenacity#710
#[test]
fn nothing_times_any_power_is_nothing() {
    for factor in [1_000_000, 1_500_000, 2_000_000, u32::MAX] {
        for jitter in every_jitter() {
            let config = BackoffConfig::exponential(Duration::ZERO).with_max_delay(secs(60));
            let backoff = built(config.with_factor(Ratio::ppm(factor)).with_jitter(jitter));
            let all = (1..=2000).chain([u32::MAX]);
            let sum: Duration =
                all.map(|retry| backoff.delay(retry, Duration::ZERO, u64::MAX)).sum();
            assert_eq!(sum, Duration::ZERO, "{factor} ppm, {jitter:?}");
            assert_eq!(delays(backoff, 3, u64::MAX), [Duration::ZERO; 3], "{jitter:?}");
        }
    }
}

// C15: langchain-ai/langgraph#7715, agenda/agenda#1748
#[test]
fn jitter_fits_under_the_maximum_and_does_not_vanish_there() {
    let config = BackoffConfig::exponential(millis(100)).with_max_delay(millis(500));
    let half = Ratio::percent(50);
    for (jitter, shortest) in [
        (Jitter::Additive(half), 333),
        (Jitter::Proportional(half), 166),
        (Jitter::Shortening(half), 250),
        (Jitter::Equal, 250),
        (Jitter::Full, 0),
        (Jitter::Decorrelated, 100),
    ] {
        let backoff = built(config.with_jitter(jitter));
        for retry in [5, 6, 100, u32::MAX] {
            let (low, high) = backoff.bounds(retry, millis(500));
            assert_eq!(low.as_millis(), shortest, "{jitter:?}");
            assert!(high <= millis(500), "{jitter:?}: {high:?}");
            assert!(high >= millis(500) - Duration::from_nanos(2), "{jitter:?}: {high:?}");
        }
    }
}

// C15, a series that is not doubled: Xuanwo/backon#231
#[test]
fn series_of_any_factor_end_at_the_maximum() {
    // The golden ratio, which a Fibonacci series grows by.
    let factor = Ratio::ppm(1_618_034);
    let config = BackoffConfig::exponential(secs(1)).with_factor(factor).with_max_delay(secs(4));
    let backoff = built(config.with_jitter(Jitter::None));
    let millis: Vec<u128> = delays(backoff, 6, 0).iter().map(Duration::as_millis).collect();
    assert_eq!(millis, [1000, 1618, 2618, 4000, 4000, 4000]);
}

// C15, upside down: Xuanwo/backon#240
#[test]
fn bounds_that_are_upside_down_do_not_build() {
    let config = |base| BackoffConfig::exponential(base).with_max_delay(secs(1));
    let just_above = secs(1) + Duration::from_nanos(1);
    for (config, error) in [
        (config(secs(1)).with_min_delay(secs(10)), ConfigError::MinAboveMax),
        (config(secs(1)).with_min_delay(just_above), ConfigError::MinAboveMax),
        (config(just_above), ConfigError::BaseAboveMax),
        (BackoffConfig::constant(secs(2)).with_max_delay(secs(1)), ConfigError::BaseAboveMax),
        (config(secs(1)).with_factor(Ratio::ppm(999_999)), ConfigError::FactorBelowOne),
        (config(secs(1)).with_factor(Ratio::ZERO), ConfigError::FactorBelowOne),
    ] {
        assert_eq!(config.build(), Err(error), "{config:?}");
    }
    assert_eq!(delays(built(config(secs(1)).with_min_delay(secs(1))), 2, 0), [secs(1); 2]);
}

// C17: failsafe-lib/failsafe#115, langchain4j/langchain4j#5721, michaelbull/kotlin-retry#10,
// aws/aws-sdk-java-v2#4724
#[test]
fn jitter_that_is_wider_than_the_delay_or_empty_is_ordinary() {
    let ns = Duration::from_nanos;
    for (base, jitter, lowest, highest) in [
        (millis(100), Jitter::Proportional(Ratio::percent(200)), ns(0), millis(300)),
        (millis(100), Jitter::Shortening(Ratio::percent(200)), ns(0), millis(100)),
        (millis(100), Jitter::Additive(Ratio::percent(200)), millis(100), millis(300)),
        (millis(100), Jitter::Proportional(Ratio::ZERO), millis(100), millis(100)),
        (millis(100), Jitter::Shortening(Ratio::ZERO), millis(100), millis(100)),
        (millis(100), Jitter::Additive(Ratio::ZERO), millis(100), millis(100)),
        (ns(0), Jitter::Proportional(Ratio::percent(20)), ns(0), ns(0)),
        (ns(0), Jitter::Full, ns(0), ns(0)),
        (ns(1), Jitter::Proportional(Ratio::percent(20)), ns(1), ns(1)),
        (ns(1), Jitter::Additive(Ratio::percent(20)), ns(1), ns(1)),
        (ns(1), Jitter::Equal, ns(1), ns(1)),
        (ns(1), Jitter::Full, ns(0), ns(1)),
        (ns(1), Jitter::Decorrelated, ns(1), ns(3)),
    ] {
        let backoff = built(BackoffConfig::exponential(base).with_jitter(jitter));
        let drawn = [0, u64::MAX].map(|sample| backoff.delay(1, Duration::ZERO, sample));
        assert_eq!(drawn, [lowest, highest], "{base:?}, {jitter:?}");

        // The same through a call: the error comes back, not a panic.
        let policy = PolicyConfig::new(backoff).build().expect("valid");
        let policy = policy.with_max_attempts(NonZeroU32::new(2).expect("2"));
        let client = Client { policy, ..Client::new() };
        let trace = client.call(|_| Response::new(500));
        assert_eq!(trace.end, lowest, "{base:?}, {jitter:?}");
        assert_eq!(trace.gave_up().last, Some(Response::new(500)));
    }
}

// C17, storms of no delay at all: vellum-ai/vellum-assistant#3405
#[test]
fn the_shortest_delay_is_a_floor_under_every_jitter() {
    for jitter in every_jitter() {
        let config = BackoffConfig::exponential(millis(100)).with_max_delay(secs(10));
        let backoff = built(config.with_min_delay(millis(100)).with_jitter(jitter));
        for delay in delays(backoff, 5, 0) {
            assert!(delay >= millis(100), "{jitter:?}: {delay:?}");
        }
    }
}

// C17, everybody at the floor at once: vellum-ai/vellum-assistant#3405
#[test]
fn a_floor_above_the_whole_range_does_not_gather_everybody_on_it() {
    for jitter in [Jitter::Decorrelated, Jitter::Equal, Jitter::Full] {
        let config = BackoffConfig::exponential(millis(10)).with_max_delay(secs(10));
        let backoff = built(config.with_min_delay(secs(1)).with_jitter(jitter));
        let (shortest, longest) = backoff.bounds(1, Duration::ZERO);
        assert_eq!(shortest, secs(1), "{jitter:?}");
        assert!(longest >= secs(1) + millis(5), "{jitter:?}: {longest:?}");
    }
}
