//! The published figures of additive jitter, by way of the environment variable.

use core::time::Duration;

use holdoff_tokio::config::RetrySection;
use holdoff_tokio::{Backoff, Policy};

use super::vars;

const SECOND: Duration = Duration::from_secs(1);

fn backoff(jitter: &str) -> Backoff {
    let retry = RetrySection::of(&Policy::LLM);
    let retry = retry.overridden_by("LLM", vars(&[("LLM_RETRY_JITTER", jitter)]));
    *retry.expect("a share").build().expect("valid").backoff()
}

/// `SplitMix64` from a fixed seed.
fn samples() -> impl FnMut() -> u64 {
    let mut state = 5_u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[test]
fn the_variable_reproduces_the_published_table() {
    // Share; then minimum, maximum, mean and deviation of 1,000 first retries at 1 s, in ms.
    for (jitter, published) in [
        ("0", [1000, 1000, 1000, 0]),
        ("0.125", [1000, 1125, 1064, 36]),
        ("0.25", [1001, 1250, 1125, 71]),
        ("0.5", [1000, 1500, 1251, 147]),
        ("1.0", [1000, 1999, 1500, 283]),
    ] {
        let backoff = backoff(jitter);
        let mut random = samples();
        let waits: Vec<u128> =
            (0..1000).map(|_| backoff.delay(1, Duration::ZERO, random()).as_micros()).collect();
        let mean = waits.iter().sum::<u128>() / 1000;
        let variance = waits.iter().map(|wait| wait.abs_diff(mean).pow(2)).sum::<u128>() / 1000;
        let shortest = waits.iter().min().expect("1,000");
        let longest = waits.iter().max().expect("1,000");
        let measured = [*shortest, *longest, mean, variance.isqrt()];
        for (measured, published) in measured.into_iter().zip(published) {
            let off = measured.abs_diff(published * 1000);
            assert!(off <= 10_000, "{jitter}: {measured} us, {published} ms were published");
        }
    }
}

#[test]
fn the_bounds_are_exact() {
    for (jitter, ppm) in
        [("0", 0), ("0.125", 125_000), ("0.25", 250_000), ("0.5", 500_000), ("1.0", 1_000_000)]
    {
        let backoff = backoff(jitter);
        for retry in 1..=4 {
            let least = SECOND * 2_u32.pow(retry - 1);
            let most = least + least * ppm / 1_000_000;
            assert_eq!(backoff.bounds(retry, Duration::ZERO), (least, most), "{jitter} {retry}");
            let ends = [0, u64::MAX].map(|sample| backoff.delay(retry, Duration::ZERO, sample));
            assert_eq!(ends, [least, most]);
        }
    }
}

#[test]
fn no_variable_means_no_change_and_zero_plain_exponential() {
    let unset = RetrySection::of(&Policy::LLM).overridden_by("LLM", vars(&[])).expect("nothing");
    assert_eq!(unset.build().expect("valid"), Policy::LLM);

    let delays = backoff("0").delays(samples()).map(|delay| delay.as_nanos());
    let plain = [1_u128, 2, 4, 8, 16].map(|seconds| seconds * 1_000_000_000);
    assert_eq!(delays.take(5).collect::<Vec<_>>(), plain);
}
