//! Reconnecting: edges, and properties over any series of sessions and any clock.

#![cfg(not(loom))]

mod common;

use core::time::Duration;

use common::{at, between, millis, secs};
use holdoff::{Backoff, BackoffConfig, Hint, HintTooLong, Instant, Jitter, Ratio, Reconnect};
use proptest::prelude::*;

const STABLE: Duration = secs(30);

fn backoff(jitter: Jitter) -> Backoff {
    BackoffConfig::exponential(secs(1))
        .with_max_delay(secs(60))
        .with_jitter(jitter)
        .build()
        .expect("valid")
}

/// A link that has been lost so often, without jitter.
fn lost(times: u32) -> Reconnect {
    let mut link = Reconnect::new(backoff(Jitter::None), STABLE);
    for _ in 0..times {
        let _ = link.lost(Instant::EPOCH, 0);
    }
    link
}

#[test]
fn a_session_counts_as_stable_from_exactly_the_stable_period_on() {
    let nanosecond = Duration::from_nanos(1);
    for (begin, end, delay) in [
        (secs(100), secs(100), secs(8)),
        (secs(100), secs(130) - nanosecond, secs(8)),
        (secs(100), secs(130), secs(1)),
        (secs(100), secs(130) + nanosecond, secs(1)),
        (secs(100), secs(1_000_000), secs(1)),
        // The clock steps back.
        (secs(100), secs(99), secs(8)),
        (secs(100), secs(0), secs(8)),
        (secs(0), secs(30), secs(1)),
    ] {
        let mut link = lost(3);
        link.connected(at(begin));
        assert_eq!(link.retries(), 3);
        assert_eq!(link.lost(at(end), 0), at(end + delay), "{begin:?} to {end:?}");
        assert_eq!(link.retries(), if delay == secs(1) { 1 } else { 4 });
    }
}

#[test]
fn a_session_ends_once_and_is_replaced_by_the_next() {
    let mut link = lost(3);
    link.connected(at(secs(0)));
    // Thrown out unnoticed, and in again.
    link.connected(at(secs(29)));
    assert_eq!(link.lost(at(secs(31)), 0), at(secs(31 + 8)));
    // Nothing is left of it: two failed connects, long after.
    assert_eq!(link.lost(at(secs(100)), 0), at(secs(100 + 16)));
    assert_eq!(link.lost(at(secs(200)), 0), at(secs(200 + 32)));
}

#[test]
fn extreme_periods_saturate() {
    for (stable_for, end, retries) in [
        (Duration::ZERO, Instant::EPOCH, 1),
        (Duration::from_nanos(u64::MAX), at(secs(1 << 33)), 2),
        (Duration::MAX, at(secs(1 << 33)), 2),
    ] {
        let mut link = Reconnect::new(backoff(Jitter::None), stable_for);
        let _ = link.lost(Instant::EPOCH, 0);
        link.connected(Instant::EPOCH);
        let _ = link.lost(end, 0);
        assert_eq!(link.retries(), retries, "{stable_for:?}");
    }
    let endless = BackoffConfig::exponential(secs(1)).with_jitter(Jitter::None).build();
    let mut link = Reconnect::new(endless.expect("valid"), STABLE);
    let times = (0..100).map(|_| link.lost(Instant::EPOCH, 0));
    assert!(times.collect::<Vec<_>>().is_sorted());
    assert_eq!(link.lost(Instant::EPOCH, 0), Instant::MAX);
    assert_eq!(link.lost(Instant::MAX, 0), Instant::MAX);
}

#[test]
fn a_hint_lengthens_and_never_shortens() {
    const MAX: u64 = u64::MAX;
    let hint = Hint::after;
    let exact = |delay| Hint::After { delay, granularity: 0 };
    for (losses, hint, sample, delay) in [
        (0, Hint::Absent, 0, secs(1)),
        (0, Hint::Malformed, 0, secs(1)),
        (0, hint(secs(0)), 0, secs(1)),
        // Spread over the envelope, and over the hint's own second at least.
        (0, hint(secs(10)), 0, secs(10)),
        (0, hint(secs(10)), MAX, secs(11)),
        (3, hint(secs(10)), MAX, secs(18)),
        (0, exact(millis(1500)), MAX, millis(2500)),
        (0, Hint::After { delay: secs(10), granularity: 4_000_000_000 }, MAX, secs(14)),
        // Shorter than the own delay.
        (6, hint(secs(10)), 0, secs(60)),
        (6, hint(secs(10)), MAX, secs(70)),
        (0, hint(secs(300)), 0, secs(300)),
    ] {
        let mut link = lost(losses);
        let now = at(secs(5));
        let until = link.lost_with(now, hint, sample);
        assert_eq!(until, Ok(now.saturating_add(delay)), "{losses}: {hint:?}, {sample}");
        assert_eq!(link.retries(), losses + 1);
    }
}

#[test]
fn a_hint_that_is_too_long_changes_nothing() {
    let mut link = lost(3);
    link.connected(at(secs(0)));
    let before = link;
    for hint in [secs(300) + Duration::from_nanos(1), secs(86_400), Duration::MAX] {
        let refused = link.lost_with(at(secs(31)), Hint::after(hint), 0);
        assert_eq!(refused, Err(HintTooLong { hint }));
        assert_eq!(link, before);
    }
    let mut patient = link.with_max_hint(secs(86_400));
    let until = patient.lost_with(at(secs(31)), Hint::after(secs(86_400)), 0);
    assert_eq!(until, Ok(at(secs(31 + 86_400))));
    // The session before was stable all the same.
    assert_eq!(patient.retries(), 1);
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Connected { now: Instant },
    Lost { now: Instant, hint: Hint, sample: u64 },
}

fn instants() -> impl Strategy<Value = Instant> {
    prop_oneof![
        8 => between(secs(0), secs(200)).prop_map(at),
        1 => any::<u64>().prop_map(Instant::from_nanos),
        1 => Just(Instant::MAX),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let hints = prop_oneof![
        Just(Hint::Absent),
        Just(Hint::Malformed),
        between(secs(0), secs(400)).prop_map(Hint::after),
    ];
    let samples = prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)];
    let op = prop_oneof![
        instants().prop_map(|now| Op::Connected { now }),
        (instants(), hints, samples).prop_map(|(now, hint, sample)| Op::Lost { now, hint, sample }),
    ];
    prop::collection::vec(op, 1..60)
}

fn jitters() -> impl Strategy<Value = Jitter> {
    let ratios = (0..=1_000_000_u32).prop_map(Ratio::ppm);
    prop_oneof![
        ratios.clone().prop_map(Jitter::Additive),
        Just(Jitter::Decorrelated),
        Just(Jitter::Equal),
        Just(Jitter::Full),
        Just(Jitter::None),
        ratios.clone().prop_map(Jitter::Proportional),
        ratios.prop_map(Jitter::Shortening),
    ]
}

proptest! {
    #[test]
    fn delays_are_the_schedules_and_only_stable_sessions_begin_it_anew(
        jitter in jitters(),
        stable_for in between(secs(0), secs(100)),
        ops in ops(),
    ) {
        let backoff = backoff(jitter);
        let mut link = Reconnect::new(backoff, stable_for);
        // The model: the delays since the last stable session, and since when there is a session.
        let (mut delays, mut session) = (Vec::new(), None);
        for op in ops {
            let (now, hint, sample) = match op {
                Op::Connected { now } => {
                    link.connected(now);
                    session = Some(now);
                    continue;
                }
                Op::Lost { now, hint, sample } => (now, hint, sample),
            };
            let mut own = link;
            let own_until = own.lost(now, sample);
            let Ok(until) = link.lost_with(now, hint, sample) else {
                prop_assert!(hint.delay() > Some(secs(300)));
                continue;
            };
            prop_assert_eq!(link, own, "a hint leaves no trace");
            let stable = |since| now.saturating_duration_since(since) >= stable_for;
            if session.take().is_some_and(stable) {
                delays.clear();
            }
            let previous = delays.last().copied().unwrap_or(Duration::ZERO);
            let retry = u32::try_from(delays.len() + 1).expect("few");
            prop_assert_eq!(link.retries(), retry);
            let (shortest, longest) = backoff.bounds(retry, previous);
            prop_assert!(own_until >= now.saturating_add(shortest));
            prop_assert!(own_until <= now.saturating_add(longest));
            let delay = backoff.delay(retry, previous, sample);
            prop_assert_eq!(own_until, now.saturating_add(delay));
            delays.push(delay);
            prop_assert!(until >= own_until);
            prop_assert!(until >= now.saturating_add(hint.delay().unwrap_or_default()));
            if hint.delay().is_none() {
                prop_assert_eq!(until, own_until);
            }
        }
    }

    #[test]
    fn ceilings_grow_while_no_session_is_stable(
        jitter in jitters(),
        sessions in prop::collection::vec(
            prop::option::of(between(secs(0), STABLE - Duration::from_nanos(1))),
            1..40,
        ),
    ) {
        let mut link = Reconnect::new(backoff(jitter), STABLE);
        let mut now = Instant::EPOCH;
        let mut last = Duration::ZERO;
        for session in sessions {
            if let Some(session) = session {
                link.connected(now);
                now = now.saturating_add(session);
            }
            let next = link.lost(now, u64::MAX);
            let ceiling = next.saturating_duration_since(now);
            prop_assert!(ceiling >= last && ceiling <= secs(60), "{last:?}, then {ceiling:?}");
            (now, last) = (next, ceiling);
        }
    }
}
