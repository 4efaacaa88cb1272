//! Policies and answers of every kind, kept as plain values that a reference can read.

use core::time::Duration;

use holdoff::{
    Backoff, BackoffConfig, Class, Failure, Hint, HintSpread, Jitter, Outcome, Policy,
    PolicyConfig, Ratio, Safety, Sent, UnhintedThrottle,
};
use proptest::prelude::*;

use crate::common::{between, secs};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) max_attempts: u32,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_hint: Duration,
    pub(crate) spread: HintSpread,
    pub(crate) unhinted: UnhintedThrottle,
    pub(crate) schedule: Schedule,
    pub(crate) safety: Safety,
}

/// A backoff and the bounds it was built from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) backoff: Backoff,
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Rules {
    pub(crate) fn policy(&self) -> Policy {
        let policy = PolicyConfig::new(self.schedule.backoff)
            .with_max_attempts(self.max_attempts)
            .with_max_hint(self.max_hint)
            .with_hint_spread(self.spread)
            .with_unhinted_throttle(self.unhinted);
        let policy = match self.deadline {
            Some(deadline) => policy.with_deadline(deadline),
            None => policy,
        };
        let policy = match self.attempt_timeout {
            Some(timeout) => policy.with_attempt_timeout(timeout),
            None => policy,
        };
        policy.build().expect("valid")
    }
}

pub(crate) fn any_rules() -> impl Strategy<Value = Rules> {
    let spread = vec![HintSpread::Envelope, HintSpread::EnvelopeOrGranularity, HintSpread::None];
    let unhinted = prop_oneof![
        any_schedule().prop_map(|throttled| UnhintedThrottle::Backoff(throttled.backoff)),
        Just(UnhintedThrottle::SameBackoff),
        Just(UnhintedThrottle::Stop),
    ];
    let max_hint = vec![Duration::ZERO, secs(1), secs(10), secs(300), Duration::MAX];
    let limits = (
        1..=6_u32,
        prop::option::of(between(Duration::from_nanos(1), secs(5))),
        prop::option::of(
            prop_oneof![4 => between(Duration::ZERO, secs(40)), 1 => Just(Duration::MAX)],
        ),
    );
    let hints = (prop::sample::select(max_hint), prop::sample::select(spread), unhinted);
    (limits, hints, any_schedule(), any_safety()).prop_map(|(limits, hints, schedule, safety)| {
        let (max_attempts, attempt_timeout, deadline) = limits;
        let (max_hint, spread, unhinted) = hints;
        Rules {
            max_attempts,
            attempt_timeout,
            deadline,
            max_hint,
            spread,
            unhinted,
            schedule,
            safety,
        }
    })
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let jitter = prop_oneof![
        (0..=2_000_000_u32).prop_map(|j| Jitter::Additive(Ratio::ppm(j))),
        Just(Jitter::Decorrelated),
        Just(Jitter::Equal),
        Just(Jitter::Full),
        Just(Jitter::None),
        (0..=2_000_000_u32).prop_map(|j| Jitter::Proportional(Ratio::ppm(j))),
        (0..=2_000_000_u32).prop_map(|j| Jitter::Shortening(Ratio::ppm(j))),
    ];
    let base = prop_oneof![4 => between(Duration::ZERO, secs(3)), 1 => Just(Duration::ZERO)];
    (
        base,
        1_000_000..=4_000_000_u32,
        between(Duration::ZERO, secs(30)),
        between(Duration::ZERO, secs(2)),
        jitter,
    )
        .prop_map(|(base, factor, max, min, jitter)| {
            let max = max.max(base);
            let min = min.min(max);
            let backoff = BackoffConfig::exponential(base)
                .with_factor(Ratio::ppm(factor))
                .with_max_delay(max)
                .with_min_delay(min)
                .with_jitter(jitter)
                .build();
            Schedule { backoff: backoff.expect("valid"), min, max }
        })
}

fn any_safety() -> impl Strategy<Value = Safety> {
    prop_oneof![3 => Just(Safety::Idempotent), 1 => Just(Safety::NonIdempotent)]
}

pub(crate) fn any_hint() -> impl Strategy<Value = Hint> {
    let granularity = prop_oneof![
        2 => Just(1_000_000_000),
        1 => Just(1_000_000),
        1 => Just(0),
        1 => Just(u32::MAX),
    ];
    let delay = prop_oneof![
        4 => between(Duration::ZERO, secs(12)),
        1 => between(Duration::ZERO, secs(400)),
        1 => (0..=12_u64).prop_map(secs),
        1 => Just(Duration::ZERO),
        1 => Just(secs(300)),
        1 => Just(Duration::from_nanos(1)),
        1 => Just(secs(1_000_000)),
        1 => Just(Duration::MAX),
    ];
    prop_oneof![
        2 => Just(Hint::Absent),
        1 => Just(Hint::Malformed),
        3 => (delay, granularity)
            .prop_map(|(delay, granularity)| Hint::After { delay, granularity }),
    ]
}

pub(crate) fn any_failure() -> impl Strategy<Value = Failure> {
    let class = prop_oneof![
        1 => Just(Class::Permanent),
        1 => Just(Class::Quota),
        8 => Just(Class::Throttled),
        8 => Just(Class::Transient),
    ];
    let sent = prop::sample::select(vec![Sent::Maybe, Sent::No, Sent::Refused]);
    (class, any_hint(), sent)
        .prop_map(|(class, hint, sent)| Failure::new(class).with_hint(hint).with_sent(sent))
}

pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        1 => Just(Outcome::Ignored),
        2 => Just(Outcome::Success),
        17 => any_failure().prop_map(Outcome::Failure),
    ]
}
