//! Services and policies of every kind, kept as plain values that a test can read.

use core::time::Duration;

use holdoff::{
    BackoffConfig, BreakerConfig, BudgetConfig, Class, Counters, Failure, Hint, HintSpread,
    Limiter, Outcome, Policy, PolicyConfig, Quota, Rate, Ratio, Safety, Sent, UnhintedThrottle,
    Upstream,
};
use proptest::prelude::*;

use crate::common::{between, millis, secs};
use crate::world::Recorder;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    pub(crate) breaker: Option<Breaker>,
    pub(crate) budget: Option<Budget>,
    pub(crate) limiter: Option<Bucket>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaker {
    failures: u32,
    rate: Option<u32>,
    open: Duration,
    pub(crate) max: Duration,
    jitter: u32,
    pub(crate) lease: Duration,
    probes: u8,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) reserve: u32,
    pub(crate) capacity: u32,
    pub(crate) ratio: u32,
    pub(crate) trickle: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    pub(crate) interval: Duration,
    pub(crate) burst: u32,
}

impl Service {
    pub(crate) fn upstream(&self, recorder: &'static Recorder) -> Upstream {
        let upstream = Upstream::new().with_observer(recorder).with_counters(Counters::new());
        let upstream = match self.breaker {
            None => upstream,
            Some(breaker) => {
                let config = match breaker.rate {
                    None => BreakerConfig::consecutive(breaker.failures),
                    Some(ppm) => BreakerConfig::rate(6, Ratio::ppm(ppm)).with_min_calls(3),
                };
                let config = config
                    .with_open_period(breaker.open)
                    .with_max_open_period(breaker.max)
                    .with_open_jitter(Ratio::ppm(breaker.jitter))
                    .with_lease(breaker.lease)
                    .with_probes(breaker.probes);
                upstream.with_breaker(config.build().expect("valid"))
            }
        };
        let upstream = match self.budget {
            None => upstream,
            Some(Budget { reserve, capacity, ratio, trickle }) => {
                let config = BudgetConfig::new(reserve, Ratio::ppm(ratio))
                    .with_capacity(capacity)
                    .with_trickle(Ratio::ppm(trickle));
                upstream.with_budget(config.build().expect("valid"))
            }
        };
        match self.limiter {
            None => upstream,
            Some(Bucket { interval, burst }) => upstream.with_limiter(Limiter::new(
                Quota::new(Rate::every(interval), burst).expect("valid"),
            )),
        }
    }
}

/// What one call is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) max_attempts: u32,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_hint: Duration,
    pub(crate) stops_unhinted: bool,
    pub(crate) safety: Safety,
    pub(crate) cost: u32,
    base: Duration,
    spread: HintSpread,
}

impl Rules {
    pub(crate) fn policy(&self) -> Policy {
        let backoff = BackoffConfig::exponential(self.base).with_max_delay(secs(20)).build();
        let unhinted = if self.stops_unhinted {
            UnhintedThrottle::Stop
        } else {
            UnhintedThrottle::SameBackoff
        };
        let config = PolicyConfig::new(backoff.expect("valid"))
            .with_max_attempts(self.max_attempts)
            .with_max_hint(self.max_hint)
            .with_hint_spread(self.spread)
            .with_unhinted_throttle(unhinted);
        let config = match self.deadline {
            Some(deadline) => config.with_deadline(deadline),
            None => config,
        };
        let config = match self.attempt_timeout {
            Some(timeout) => config.with_attempt_timeout(timeout),
            None => config,
        };
        config.build().expect("valid")
    }
}

pub(crate) fn any_service() -> impl Strategy<Value = Service> {
    let breaker = (
        (1..=6_u32, prop::option::of(500_000..=1_000_000_u32)),
        (between(millis(1), secs(10)), between(secs(0), secs(30)), 0..=500_000_u32),
        (between(millis(1), secs(10)), 1..=3_u8),
    )
        .prop_map(|((failures, rate), (open, longer, jitter), (lease, probes))| {
            let max = open + longer;
            Breaker { failures, rate, open, max, jitter, lease, probes }
        });
    let trickle = prop_oneof![2 => Just(0), 1 => 0..=1_000_000_u32];
    let budget = (0..4_u32, 0..20_u32, 0..=1_000_000_u32, trickle).prop_map(
        |(reserve, spare, ratio, trickle)| {
            let capacity = (reserve + spare).max(1);
            Budget { reserve, capacity, ratio, trickle }
        },
    );
    let limiter = (between(millis(10), secs(3)), 1..=4_u32)
        .prop_map(|(interval, burst)| Bucket { interval, burst });
    let often = |part: f64| prop::option::weighted(part, Just(()));
    (breaker, budget, limiter, often(0.8), often(0.8), often(0.7)).prop_map(
        |(breaker, budget, limiter, some_breaker, some_budget, some_limiter)| Service {
            breaker: some_breaker.map(|()| breaker),
            budget: some_budget.map(|()| budget),
            limiter: some_limiter.map(|()| limiter),
        },
    )
}

pub(crate) fn any_rules() -> impl Strategy<Value = Rules> {
    let spread = vec![HintSpread::Envelope, HintSpread::EnvelopeOrGranularity, HintSpread::None];
    let times = (
        prop::option::of(between(millis(1), secs(5))),
        prop::option::weighted(0.6, between(secs(0), secs(40))),
        prop_oneof![Just(secs(300)), Just(secs(5)), Just(Duration::MAX)],
        prop_oneof![3 => between(secs(0), secs(3)), 1 => Just(secs(0))],
    );
    let safety = prop_oneof![4 => Just(Safety::Idempotent), 1 => Just(Safety::NonIdempotent)];
    let cost = prop_oneof![20 => Just(1_u32), 8 => 0..=3_u32, 1 => Just(5)];
    (1..=5_u32, times, any::<bool>(), safety, cost, prop::sample::select(spread)).prop_map(
        |(max_attempts, times, stops_unhinted, safety, cost, spread)| {
            let (attempt_timeout, deadline, max_hint, base) = times;
            Rules {
                max_attempts,
                attempt_timeout,
                deadline,
                max_hint,
                stops_unhinted,
                safety,
                cost,
                base,
                spread,
            }
        },
    )
}

pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
    let class = prop_oneof![
        1 => Just(Class::Permanent),
        1 => Just(Class::Quota),
        5 => Just(Class::Throttled),
        14 => Just(Class::Transient),
    ];
    let delay = prop_oneof![
        6 => between(secs(0), secs(8)),
        1 => between(secs(0), secs(400)),
        1 => Just(secs(0)),
        1 => Just(Duration::MAX),
    ];
    let hint = prop_oneof![
        4 => Just(Hint::Absent),
        1 => Just(Hint::Malformed),
        3 => delay.prop_map(Hint::after),
    ];
    let sent = prop::sample::select(vec![Sent::Maybe, Sent::No, Sent::Refused]);
    let failure = (class, hint, sent)
        .prop_map(|(class, hint, sent)| Failure::new(class).with_hint(hint).with_sent(sent));
    prop_oneof![
        1 => Just(Outcome::Ignored),
        4 => Just(Outcome::Success),
        16 => failure.prop_map(Outcome::Failure),
    ]
}
