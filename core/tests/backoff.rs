//! Delays: properties over every input, a naive model, and the published figures.

mod common;

use core::time::Duration;

use common::{millis, samples, secs};
use holdoff::{Backoff, BackoffConfig, ConfigError, Jitter, Ratio};
use proptest::prelude::*;

/// The longest time the schedule can tell from a longer one.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// What a schedule is built from, kept so that a model can read it.
#[derive(Clone, Copy, Debug)]
struct Setup {
    base: Duration,
    ppm: u32,
    min: Duration,
    max: Duration,
    jitter: Jitter,
}

impl Setup {
    const fn build(self) -> Result<Backoff, ConfigError> {
        BackoffConfig::exponential(self.base)
            .with_factor(Ratio::ppm(self.ppm))
            .with_min_delay(self.min)
            .with_max_delay(self.max)
            .with_jitter(self.jitter)
            .build()
    }

    /// The range as the definitions read, in nanoseconds, from an envelope without its cap.
    fn range(self, uncapped: u128, previous: Duration) -> (u128, u128) {
        let (base, max) = (nanos(self.base), nanos(self.max));
        let part = |ratio: Ratio, whole: u128| whole * u128::from(ratio.as_ppm()) / 1_000_000;
        let w = match self.jitter {
            Jitter::Additive(j) | Jitter::Proportional(j) => {
                uncapped.min(max * 1_000_000 / (1_000_000 + u128::from(j.as_ppm())))
            }
            _ => uncapped.min(max),
        };
        let (low, high) = match self.jitter {
            Jitter::Additive(j) => (w, w + part(j, w)),
            Jitter::Decorrelated => (base, (3 * nanos(previous).max(base)).min(max)),
            Jitter::Equal => (w - w / 2, w),
            Jitter::Full => (0, w),
            Jitter::Proportional(j) => (w.saturating_sub(part(j, w)), w + part(j, w)),
            Jitter::Shortening(j) => (w.saturating_sub(part(j, w)), w),
            _ => (w, w),
        };
        // A range that begins below the minimum is moved up, and cut at the maximum.
        let up = nanos(self.min).saturating_sub(low);
        (low + up, (high + up).min(max))
    }
}

fn nanos(duration: Duration) -> u128 {
    duration.as_nanos().min(LONGEST.as_nanos())
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (0..64_u32, any::<u64>()).prop_map(|(shift, n)| Duration::from_nanos(n >> shift)),
        1 => (0..100_000_u64).prop_map(Duration::from_millis),
        1 => (0..64_u32, any::<u64>()).prop_map(|(shift, n)| Duration::from_secs(n >> shift)),
        1 => prop_oneof![
            Just(Duration::ZERO),
            Just(Duration::from_nanos(1)),
            Just(LONGEST),
            Just(Duration::MAX)
        ],
    ]
}

fn any_ratio() -> impl Strategy<Value = Ratio> {
    prop_oneof![
        0..=2_000_000_u32,
        any::<u32>(),
        prop_oneof![Just(0), Just(1), Just(1_000_000), Just(u32::MAX)],
    ]
    .prop_map(Ratio::ppm)
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        any_ratio().prop_map(Jitter::Additive),
        Just(Jitter::Decorrelated),
        Just(Jitter::Equal),
        Just(Jitter::Full),
        Just(Jitter::None),
        any_ratio().prop_map(Jitter::Proportional),
        any_ratio().prop_map(Jitter::Shortening),
    ]
}

fn any_factor() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => 1_000_000..=u32::MAX,
        2 => prop_oneof![Just(1_000_000), Just(1_500_000), Just(2_000_000), Just(u32::MAX)],
        1 => 1_000_000..1_000_100_u32,
    ]
}

fn any_retry() -> impl Strategy<Value = u32> {
    prop_oneof![0..70_u32, any::<u32>(), Just(u32::MAX)]
}

/// Setups that build.
fn valid_setup() -> impl Strategy<Value = Setup> {
    ([any_duration(), any_duration()], any_duration(), any_factor(), any_jitter()).prop_map(
        |(mut ends, min, ppm, jitter)| {
            ends.sort();
            let [base, max] = ends;
            Setup { base, ppm, min: min.min(max), max, jitter }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_a_schedule_says_of_itself_builds_it_again(setup in valid_setup()) {
        let backoff = setup.build().expect("valid");
        let again = BackoffConfig::exponential(backoff.base())
            .with_factor(backoff.factor())
            .with_jitter(backoff.jitter())
            .with_max_delay(backoff.max_delay())
            .with_min_delay(backoff.min_delay())
            .build();
        prop_assert_eq!(again, Ok(backoff));
    }

    #[test]
    fn a_delay_stays_in_its_bounds_and_reaches_both_ends(
        setup in valid_setup(),
        retry in any_retry(),
        previous in any_duration(),
        mut drawn: [u64; 2],
    ) {
        let backoff = setup.build().expect("valid");
        let (shortest, longest) = backoff.bounds(retry, previous);
        prop_assert!(setup.min.min(LONGEST) <= shortest);
        prop_assert!(shortest <= longest);
        prop_assert!(longest <= setup.max);

        let delay = |sample| backoff.delay(retry, previous, sample);
        drawn.sort_unstable();
        prop_assert_eq!(delay(0), shortest);
        prop_assert_eq!(delay(u64::MAX), longest);
        prop_assert!(shortest <= delay(drawn[0]));
        prop_assert!(delay(drawn[0]) <= delay(drawn[1]));
        prop_assert!(delay(drawn[1]) <= longest);
    }

    #[test]
    fn ceilings_never_fall_from_one_retry_to_the_next(
        setup in valid_setup(),
        mut retries in [any_retry(), any_retry()],
        retry in any_retry(),
        previous in any_duration(),
    ) {
        let backoff = setup.build().expect("valid");
        let ceiling = |retry| (backoff.envelope(retry), backoff.bounds(retry, previous).1);
        retries.sort_unstable();
        for [earlier, later] in [retries, [retry, retry.saturating_add(1)]] {
            prop_assert!(ceiling(earlier).0 <= ceiling(later).0, "{earlier} to {later}");
            prop_assert!(ceiling(earlier).1 <= ceiling(later).1, "{earlier} to {later}");
        }
        prop_assert_eq!(ceiling(0), ceiling(1));
    }

    #[test]
    fn the_spread_does_not_vanish_at_the_cap(
        max in 1_000_000_000..=u64::MAX,
        base_share in 1..=1_000_000_u32,
        ppm in 1_000_001..=u32::MAX,
        min_share in 0..=400_000_u32,
        j in 1..=u32::MAX,
        previous in any_duration(),
    ) {
        let j = Ratio::ppm(j);
        for jitter in [
            Jitter::Additive(j),
            Jitter::Decorrelated,
            Jitter::Equal,
            Jitter::Full,
            Jitter::Proportional(j),
            Jitter::Shortening(j),
        ] {
            // Decorrelated jitter starts from the base: at the maximum it has nowhere to go.
            let base = Ratio::ppm(base_share).of(max / 10 * 9);
            let setup = Setup {
                base: Duration::from_nanos(base.max(1)),
                ppm,
                min: Duration::ZERO,
                max: Duration::from_nanos(max),
                jitter,
            };
            let backoff = setup.build().expect("valid");
            let (shortest, longest) = backoff.bounds(u32::MAX, previous);
            prop_assert!(shortest < longest, "{jitter:?}");
            if jitter != Jitter::Decorrelated {
                // At the cap the longest delay is the maximum, up to the rounding of the room.
                let slack = setup.max - longest;
                let grain = u64::from(j.as_ppm()) / 1_000_000 + 2;
                prop_assert!(slack <= Duration::from_nanos(grain), "{jitter:?}: {slack:?}");
            }

            // Nor does a minimum make it vanish, neither there nor before.
            let min = Duration::from_nanos(Ratio::ppm(min_share).of(max));
            let raised = Setup { min, ..setup }.build().expect("valid");
            for retry in [1, u32::MAX] {
                let width = |(shortest, longest): (Duration, Duration)| longest - shortest;
                let free = backoff.bounds(retry, previous);
                let raised = raised.bounds(retry, previous);
                prop_assert_eq!(raised.0, free.0.max(min), "{:?}", jitter);
                let room = width(free).min(setup.max - raised.0);
                prop_assert_eq!(width(raised), room, "{:?}", jitter);
            }
        }
    }

    #[test]
    fn ranges_are_what_a_naive_model_says(
        setup in valid_setup(),
        retry in 1..=4_u32,
        base in 0..1_u64 << 30,
        previous in any_duration(),
    ) {
        // Powers of up to 2^96 and a base of 30 bits leave room in the model's 128.
        let base = Duration::from_nanos(base);
        let setup = Setup { base, max: setup.max.max(base), ..setup };
        let backoff = setup.build().expect("valid");

        let power = u128::from(setup.ppm).pow(retry - 1);
        let exact = (nanos(base) * power).div_ceil(1_000_000_u128.pow(retry - 1));
        let envelope = backoff.envelope(retry).as_nanos();
        // Rounded up, but for a power that needs more than 64 bits.
        let rounding = if retry < 3 { 0 } else { (exact >> 50) + 1 };
        let uncapped = (exact.saturating_sub(rounding)..=exact + rounding)
            .find(|&w| setup.range(w, previous) == {
                let (shortest, longest) = backoff.bounds(retry, previous);
                (shortest.as_nanos(), longest.as_nanos())
            });
        prop_assert!(uncapped.is_some(), "envelope {envelope}, exactly {exact}");
    }

    #[test]
    fn doubling_is_exact(base in any_duration(), retry in any_retry()) {
        let backoff = BackoffConfig::exponential(base).build().expect("valid");
        let retries = retry.saturating_sub(1);
        let exact = match 1_u128.checked_shl(retries) {
            _ if base.is_zero() => 0,
            Some(power) if retries < 64 => nanos(base) * power,
            _ => u128::MAX,
        };
        prop_assert_eq!(backoff.envelope(retry).as_nanos(), exact.min(LONGEST.as_nanos()));
    }

    #[test]
    fn building_refuses_exactly_what_cannot_work(
        base in any_duration(),
        min in any_duration(),
        max in any_duration(),
        ppm in prop_oneof![any::<u32>(), 999_990..1_000_010_u32],
        jitter in any_jitter(),
    ) {
        let refused = Setup { base, ppm, min, max, jitter }.build().err();
        let wrong = [
            (ppm < 1_000_000, ConfigError::FactorBelowOne),
            (nanos(base) > nanos(max), ConfigError::BaseAboveMax),
            (nanos(min) > nanos(max), ConfigError::MinAboveMax),
        ];
        match refused {
            Some(error) => prop_assert!(wrong.contains(&(true, error)), "{error}"),
            None => prop_assert!(wrong.iter().all(|(wrong, _)| !wrong)),
        }
    }

    #[test]
    fn the_iterator_gives_the_same_delays(setup in valid_setup(), seed: u64) {
        let backoff = setup.build().expect("valid");
        prop_assert_eq!(backoff.delays(samples(seed)).size_hint(), (usize::MAX, None));
        let (mut random, mut previous) = (samples(seed), Duration::ZERO);
        for (retry, delay) in (1..=70).zip(backoff.delays(samples(seed))) {
            previous = backoff.delay(retry, previous, random());
            prop_assert_eq!(delay, previous, "retry {}", retry);
        }
    }
}

/// Ranges in milliseconds of the first retries, each after the longest delay before it.
fn first_ranges(backoff: &Backoff, retries: u32) -> Vec<(u128, u128)> {
    let mut previous = Duration::ZERO;
    (1..=retries)
        .map(|retry| {
            let (shortest, longest) = backoff.bounds(retry, previous);
            previous = longest;
            (shortest.as_millis(), longest.as_millis())
        })
        .collect()
}

#[test]
fn published_schedules_have_their_published_ranges() {
    let exponential = BackoffConfig::exponential;
    for (what, config, ranges) in [
        (
            "the worked example: 1 s base, 30 s cap",
            exponential(secs(1)).with_max_delay(secs(30)),
            vec![(0, 1000), (0, 2000), (0, 4000), (0, 8000), (0, 16_000), (0, 30_000), (0, 30_000)],
        ),
        (
            "the official LLM SDKs: min(0.5 * 2^n, 8) s * (1 - 0.25 U)",
            exponential(millis(500))
                .with_max_delay(secs(8))
                .with_jitter(Jitter::Shortening(Ratio::percent(25))),
            vec![(375, 500), (750, 1000), (1500, 2000), (3000, 4000), (6000, 8000), (6000, 8000)],
        ),
        (
            "llm-retry: 0.5 s * 2^n * U(0.9, 1.1)",
            exponential(millis(500)).with_jitter(Jitter::Proportional(Ratio::percent(10))),
            vec![(450, 550), (900, 1100), (1800, 2200), (3600, 4400)],
        ),
        (
            "Brooker's decorrelated jitter: U(base, 3 * previous) up to the cap",
            exponential(millis(10)).with_max_delay(millis(2000)).with_jitter(Jitter::Decorrelated),
            vec![(10, 30), (10, 90), (10, 270), (10, 810), (10, 2000), (10, 2000)],
        ),
        (
            "Brooker's equal jitter: v/2 + U(0, v/2)",
            exponential(millis(10)).with_max_delay(millis(2000)).with_jitter(Jitter::Equal),
            vec![(5, 10), (10, 20), (20, 40), (40, 80)],
        ),
        ("constant", BackoffConfig::constant(secs(2)), vec![(2000, 2000); 3]),
    ] {
        let backoff = config.build().expect("valid");
        let retries = u32::try_from(ranges.len()).expect("few");
        assert_eq!(first_ranges(&backoff, retries), ranges, "{what}");
    }
}

#[test]
fn additive_jitter_reproduces_the_published_table() {
    // 1,000 first retries at 1 s; ppm of jitter, then min, max, mean and deviation in ms.
    for (ppm, published) in [
        (0, [1000, 1000, 1000, 0]),
        (125_000, [1000, 1125, 1064, 36]),
        (250_000, [1001, 1250, 1125, 71]),
        (500_000, [1000, 1500, 1251, 147]),
        (1_000_000, [1000, 1999, 1500, 283]),
    ] {
        let jitter = Jitter::Additive(Ratio::ppm(ppm));
        let backoff = BackoffConfig::exponential(secs(1)).with_jitter(jitter).build();
        let backoff = backoff.expect("valid");
        let mut random = samples(1);
        let mut waits: Vec<u128> =
            (0..1000).map(|_| backoff.delay(1, Duration::ZERO, random()).as_micros()).collect();
        waits.sort_unstable();
        let mean = waits.iter().sum::<u128>() / 1000;
        let variance = waits.iter().map(|wait| wait.abs_diff(mean).pow(2)).sum::<u128>() / 1000;
        let measured = [waits[0], waits[999], mean, variance.isqrt()];
        for (measured, published) in measured.into_iter().zip(published) {
            // Three deviations of the difference of two such means, and the table's last digit.
            let noise = ppm / 25 + 500;
            let off = measured.abs_diff(published * 1000);
            assert!(off <= u128::from(noise), "{ppm} ppm: {measured} us, published {published} ms");
        }
        let (shortest, longest) = backoff.bounds(1, Duration::ZERO);
        assert_eq!(shortest, secs(1));
        assert_eq!(longest, Duration::from_micros(1_000_000 + u64::from(ppm)));
    }
}

#[test]
fn draws_are_even_so_the_mean_is_the_middle_of_the_range() {
    const STRATA: u64 = 1 << 12;
    for jitter in [
        Jitter::Additive(Ratio::percent(50)),
        Jitter::Decorrelated,
        Jitter::Equal,
        Jitter::Full, // so its mean is half its ceiling
        Jitter::Proportional(Ratio::percent(20)),
        Jitter::Shortening(Ratio::percent(25)),
    ] {
        let config = BackoffConfig::exponential(secs(1)).with_max_delay(secs(30));
        let backoff = config.with_jitter(jitter).build().expect("valid");
        for retry in [1, 3, 10] {
            let (shortest, longest) = backoff.bounds(retry, secs(5));
            // One sample in the middle of each stratum.
            let middle = |stratum| stratum * (u64::MAX / STRATA + 1) + u64::MAX / STRATA / 2;
            let total: Duration =
                (0..STRATA).map(|stratum| backoff.delay(retry, secs(5), middle(stratum))).sum();
            let mean = total / u32::try_from(STRATA).expect("small");
            let off = mean.abs_diff((shortest + longest) / 2);
            assert!(off <= Duration::from_nanos(2), "{jitter:?}, retry {retry}: off by {off:?}");
        }
    }
}
