//! The presets, by what they do.

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive;
use holdoff::{
    Backoff, Call, Failure, Hint, Instant, Policy, PolicyConfig, Safety, Stop, UnhintedThrottle,
    classified,
};

use crate::common::{samples, secs};

/// Ranges of the first seven delays, in seconds.
fn ranges(backoff: &Backoff) -> Vec<(u64, u64)> {
    (1..=7)
        .map(|retry| backoff.bounds(retry, Duration::ZERO))
        .map(|(shortest, longest)| (shortest.as_secs(), longest.as_secs()))
        .collect()
}

/// A call that always fails, each delay drawn with `sample`: attempts, time and reason.
fn give_up(policy: &Policy, failure: Failure, sample: u64) -> (u32, Duration, Stop) {
    let clock = Cell::new(Instant::EPOCH);
    let gave_up = drive::run_blocking(
        &clock,
        |delay| clock.set(clock.get().saturating_add(delay)),
        |now| Call::new(policy, Safety::Idempotent, now),
        || sample,
        classified,
        |_| Err::<(), _>(failure),
    );
    let gave_up = gave_up.expect_err("it always fails");
    (gave_up.attempts, gave_up.elapsed, gave_up.stop)
}

#[test]
fn presets_have_the_published_limits() {
    let [standard, batch] = [30, 300].map(|max| {
        let (mut ceiling, mut ranges) = (1, Vec::new());
        for _ in 0..7 {
            ranges.push((0, ceiling));
            ceiling = (2 * ceiling).min(max);
        }
        ranges
    });
    let seconds = Some(secs(20));
    for (policy, expected, attempts, deadline) in [
        (Policy::STANDARD, &standard, 5, None),
        (Policy::INTERACTIVE, &standard, 4, seconds),
        (Policy::BATCH, &batch, 9, None),
        (Policy::LLM, &standard, 5, None),
        (Policy::default(), &standard, 5, None),
    ] {
        assert_eq!(&ranges(policy.backoff()), expected);
        assert_eq!(policy.max_attempts().get(), attempts);
        assert_eq!(policy.deadline(), deadline);
        assert_eq!(policy.attempt_timeout(), None);
        assert_eq!(policy.max_hint(), secs(300));
    }
    let built = [PolicyConfig::standard(), PolicyConfig::batch(), PolicyConfig::llm()];
    let built = built.map(|config| config.build().expect("valid"));
    assert_eq!(built, [Policy::STANDARD, Policy::BATCH, Policy::LLM]);
}

#[test]
fn presets_make_their_attempts_and_stop() {
    let transient = Failure::transient();
    for (policy, failure, sample, expected) in [
        // 1 + 2 + 4 + 8
        (Policy::STANDARD, transient, u64::MAX, (5, secs(15), Stop::Attempts)),
        (Policy::INTERACTIVE, transient, u64::MAX, (4, secs(7), Stop::Attempts)),
        // 1 + 2 + ... + 128
        (Policy::BATCH, transient, u64::MAX, (9, secs(255), Stop::Attempts)),
        (Policy::LLM, transient, u64::MAX, (5, secs(15), Stop::Attempts)),
        (Policy::STANDARD, transient, 0, (5, secs(0), Stop::Attempts)),
        // Throttled without a hint: 1 s and on top of it up to 5, 10, 20 and so on, at most 30 s.
        (Policy::STANDARD, Failure::throttled(), u64::MAX, (5, secs(68), Stop::Attempts)),
        (Policy::STANDARD, Failure::throttled(), 0, (5, secs(4), Stop::Attempts)),
        (Policy::INTERACTIVE, Failure::throttled(), u64::MAX, (3, secs(17), Stop::Deadline)),
        (Policy::BATCH, Failure::throttled(), 0, (9, secs(8), Stop::Attempts)),
        // Perhaps a spending limit.
        (Policy::LLM, Failure::throttled(), u64::MAX, (1, secs(0), Stop::Quota)),
        (Policy::LLM, Failure::quota(), u64::MAX, (1, secs(0), Stop::Quota)),
    ] {
        assert_eq!(give_up(&policy, failure, sample), expected, "{failure:?}");
    }
    let hinted = Failure::throttled().with_hint(Hint::after(secs(3)));
    assert_eq!(give_up(&Policy::LLM, hinted, 0), (5, secs(12), Stop::Attempts));
    assert_eq!(*Policy::LLM.unhinted_throttle(), UnhintedThrottle::Stop);
}

#[test]
fn three_retries_lift_a_coin_flip_to_ninety_four_percent() {
    const CALLS: u32 = 10_000;
    let mut random = samples(7);
    let succeeded = (0..CALLS)
        .filter(|_| {
            let (clock, mut coin) = (Cell::new(Instant::EPOCH), samples(random()));
            let result = drive::run_blocking(
                &clock,
                |delay| clock.set(clock.get().saturating_add(delay)),
                |now| Call::new(&Policy::INTERACTIVE, Safety::Idempotent, now),
                &mut random,
                classified,
                |_| if coin() >> 63 == 0 { Ok(()) } else { Err(Failure::transient()) },
            );
            result.is_ok()
        })
        .count();
    // 1 - 1/16 of them, within three deviations.
    assert!((9_303..=9_447).contains(&succeeded), "{succeeded} of {CALLS}");
}
