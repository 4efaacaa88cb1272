//! Any schedule, any retry number, any previous delay, any sample.
//!
//! Delays stay within their bounds, bounds within the configuration, and the envelope within what
//! exact multiplication, rounded down and rounded up at each step, leaves open.

use std::time::Duration;

use arbitrary::Arbitrary;
use holdoff::{Backoff, BackoffConfig, ConfigError, Jitter, Ratio};

use crate::amount::{Length, Share};
use crate::input::decoded;

#[derive(Arbitrary, Debug)]
struct Input {
    config: Config,
    retry: Retry,
    previous: Length,
    samples: [u64; 2],
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Config {
    base: Length,
    factor: Option<Share>,
    jitter: JitterInput,
    max_delay: Option<Length>,
    min_delay: Option<Length>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Retry {
    Any(u32),
    Few(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum JitterInput {
    Additive(Share),
    Decorrelated,
    Equal,
    Full,
    None,
    Proportional(Share),
    Shortening(Share),
}

impl Config {
    const fn jitter(self) -> Jitter {
        match self.jitter {
            JitterInput::Additive(share) => Jitter::Additive(share.ratio()),
            JitterInput::Decorrelated => Jitter::Decorrelated,
            JitterInput::Equal => Jitter::Equal,
            JitterInput::Full => Jitter::Full,
            JitterInput::None => Jitter::None,
            JitterInput::Proportional(share) => Jitter::Proportional(share.ratio()),
            JitterInput::Shortening(share) => Jitter::Shortening(share.ratio()),
        }
    }

    fn factor(self) -> Ratio {
        self.factor.map_or(Ratio::percent(200), Share::ratio)
    }

    fn max(self) -> u64 {
        self.max_delay.map_or(u64::MAX, nanos_of)
    }

    fn min(self) -> u64 {
        self.min_delay.map_or(0, nanos_of)
    }

    /// The schedule, whose conditions are checked here once more.
    pub(crate) fn build(self) -> Option<Backoff> {
        let mut config = BackoffConfig::exponential(self.base.duration())
            .with_factor(self.factor())
            .with_jitter(self.jitter());
        if let Some(max_delay) = self.max_delay {
            config = config.with_max_delay(max_delay.duration());
        }
        if let Some(min_delay) = self.min_delay {
            config = config.with_min_delay(min_delay.duration());
        }
        let wrong = if self.factor() < Ratio::ONE {
            Some(ConfigError::FactorBelowOne)
        } else if nanos_of(self.base) > self.max() {
            Some(ConfigError::BaseAboveMax)
        } else if self.min() > self.max() {
            Some(ConfigError::MinAboveMax)
        } else {
            None
        };
        let built = config.build();
        assert_eq!(built.err(), wrong);
        built.ok()
    }
}

/// Asks one schedule for delays.
///
/// # Panics
/// If one is out of its bounds.
pub fn run(data: &[u8]) {
    let Some(Input { config, retry, previous, samples }) = decoded::<Input>(data) else { return };
    let Some(backoff) = config.build() else { return };
    let retry = match retry {
        Retry::Any(retry) => retry,
        Retry::Few(retry) => retry.into(),
    };
    let previous = previous.duration();
    check_envelope(config, &backoff, retry);
    check_bounds(config, &backoff, retry, previous);
    check_delays(&backoff, retry, previous, samples);
}

fn check_envelope(config: Config, backoff: &Backoff, retry: u32) {
    let envelope = nanos(backoff.envelope(retry));
    assert!(envelope <= config.max(), "above the maximum");
    assert!(envelope <= nanos(backoff.envelope(retry.saturating_add(1))), "shrinks");
    assert_eq!(backoff.envelope(0), backoff.envelope(1), "0 counts as 1");

    let cap = cap(config);
    let exponent = retry.saturating_sub(1);
    if exponent < 256 {
        let (low, high) = grown(nanos_of(config.base), config.factor(), exponent);
        // One part in 2^37 and a nanosecond; none if the power has at most 64 bits.
        let slack = |exact: u128| if is_short(config.factor(), exponent) { 0 } else { exact >> 37 };
        assert!(u128::from(envelope) + slack(low) >= low.min(cap), "{envelope} is below {low}");
        assert!(u128::from(envelope) <= (high + slack(high)).min(cap), "{envelope} above {high}");
    }
}

/// Whether the power of the factor, in binary, has at most 64 digits: whole and half factors.
fn is_short(factor: Ratio, exponent: u32) -> bool {
    let halves = u128::from(factor.as_ppm() / 500_000);
    factor.as_ppm().is_multiple_of(500_000)
        && halves.checked_pow(exponent).is_some_and(|power| power < 1 << 64)
}

/// `base · factor^exponent`: a bound below and one above, in whole nanoseconds (rounded up).
fn grown(base: u64, factor: Ratio, exponent: u32) -> (u128, u128) {
    // 20 binary places; stops where no schedule goes.
    let (mut low, mut high) = (u128::from(base) << 20, u128::from(base) << 20);
    let most = u128::from(u64::MAX) << 21;
    for _ in 0..exponent {
        let ppm = u128::from(factor.as_ppm());
        low = (low * ppm / 1_000_000).min(most);
        high = (high * ppm).div_ceil(1_000_000).min(most);
    }
    (low.div_ceil(1 << 20), high.div_ceil(1 << 20))
}

/// The largest envelope whose range fits below the maximum.
fn cap(config: Config) -> u128 {
    let upwards = match config.jitter() {
        Jitter::Additive(ratio) | Jitter::Proportional(ratio) => u128::from(ratio.as_ppm()),
        _ => 0,
    };
    u128::from(config.max()) * 1_000_000 / (1_000_000 + upwards)
}

fn check_bounds(config: Config, backoff: &Backoff, retry: u32, previous: Duration) {
    let w = u128::from(nanos(backoff.envelope(retry)));
    let part = |ratio: Ratio| w * u128::from(ratio.as_ppm()) / 1_000_000;
    let (max, min) = (u128::from(config.max()), u128::from(config.min()));
    let base = u128::from(nanos_of(config.base));
    let (low, high) = match config.jitter() {
        Jitter::Additive(ratio) => (w, w + part(ratio)),
        Jitter::Decorrelated => {
            let previous = previous.as_nanos().min(u64::MAX.into()).max(base);
            (base, (3 * previous).min(max))
        }
        Jitter::Equal => (w.div_ceil(2), w),
        Jitter::Full => (0, w),
        Jitter::Proportional(ratio) => (w.saturating_sub(part(ratio)), w + part(ratio)),
        Jitter::Shortening(ratio) => (w.saturating_sub(part(ratio)), w),
        _ => (w, w),
    };
    assert!(high <= max, "jitter exceeds the maximum");
    // Moved up to begin at the minimum, then cut.
    let up = min.saturating_sub(low);
    let expected = (low + up, (high + up).min(max));
    let (shortest, longest) = backoff.bounds(retry, previous);
    assert_eq!((shortest.as_nanos(), longest.as_nanos()), expected);
}

fn check_delays(backoff: &Backoff, retry: u32, previous: Duration, samples: [u64; 2]) {
    let (shortest, longest) = backoff.bounds(retry, previous);
    let delay = |sample| backoff.delay(retry, previous, sample);
    assert_eq!((delay(0), delay(u64::MAX)), (shortest, longest), "both ends are reached");
    let [low, high] = [samples[0].min(samples[1]), samples[0].max(samples[1])];
    assert!(shortest <= delay(low) && delay(low) <= delay(high) && delay(high) <= longest);

    let mut before = Duration::ZERO;
    for (delay, retry) in backoff.delays(|| samples[0]).take(8).zip(1..) {
        assert_eq!(delay, backoff.delay(retry, before, samples[0]), "retry {retry}");
        before = delay;
    }
}

/// Nanoseconds, at most what 64 bits hold.
fn nanos_of(length: Length) -> u64 {
    nanos(length.duration())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
