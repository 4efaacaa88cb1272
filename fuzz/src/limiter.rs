//! Operation sequences on a limiter, against a naive token bucket.
//!
//! Every answer is compared, the times in refusals are checked for truth, and what was granted is
//! held against the bound that needs no model: a burst and what the rate gives in the time that
//! passed.

use arbitrary::Arbitrary;
use holdoff::{ConfigError, Instant, Limiter, Quota, Rate, Refusal, Reservation};

use crate::amount::Length;
use crate::clock::{TestClock, Tick};
use crate::input::decoded;
use crate::model::limiter::{Bucket, TIME_MAX, nanos, tokens};

#[derive(Arbitrary, Debug)]
struct Input {
    quota: QuotaInput,
    ops: Vec<(Tick, Op)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct QuotaInput {
    tokens: Count,
    per: Length,
    burst: Count,
}

/// A number of tokens, small ones being likely.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Count {
    Any(u32),
    Burst,
    BurstAndOne,
    Few(u8),
}

#[derive(Arbitrary, Debug)]
enum Op {
    Acquire(Count),
    Cancel(u8),
    PauseUntil(Tick),
    Refund(Count),
    Reserve(Count),
    SetQuota(QuotaInput),
}

impl Count {
    pub(crate) fn of(self, burst: u32) -> u32 {
        match self {
            Self::Any(count) => count,
            Self::Burst => burst,
            Self::BurstAndOne => burst.saturating_add(1),
            Self::Few(count) => count.into(),
        }
    }
}

impl QuotaInput {
    /// The quota, or a plain one if it was rightly refused.
    pub(crate) fn build_or_preset(self) -> Quota {
        self.build().unwrap_or_else(|| {
            Quota::new(Rate::per_second(10), 20).expect("nothing is wrong with it")
        })
    }

    /// The quota, whose conditions are checked here once more.
    fn build(self) -> Option<Quota> {
        let (tokens, burst, per) = (self.tokens.of(1), self.burst.of(10), self.per.duration());
        let quota = Quota::new(Rate::new(tokens, per), burst);
        let per = per.as_nanos().min(u64::MAX.into());
        if burst == 0 {
            assert_eq!(quota, Err(ConfigError::BurstZero));
        } else if tokens == 0 || per == 0 {
            assert_eq!(quota, Err(ConfigError::RateZero));
        } else if per.div_ceil(tokens.into()) * u128::from(burst) > 1 << 55 {
            assert_eq!(quota, Err(ConfigError::RefillTooLong));
        } else {
            let quota = quota.expect("nothing is wrong with it");
            assert_eq!(quota.interval().as_nanos(), per.div_ceil(tokens.into()));
            assert_eq!(quota.burst(), burst);
        }
        quota.ok()
    }
}

/// What was granted since the last change of quota or refund.
#[derive(Debug, Default)]
struct Granted(Vec<(i128, u32)>);

/// Runs a sequence of operations.
///
/// # Panics
/// If an answer is not the naive bucket's, or not true.
pub fn run(data: &[u8]) {
    let Some(Input { quota, ops }) = decoded::<Input>(data) else { return };
    let quota = quota.build_or_preset();
    let (limiter, mut bucket) = (Limiter::new(quota), Bucket::new(quota));
    let mut clock = TestClock::default();
    let mut granted = Granted::default();
    let (mut reservations, mut costs) = (Vec::<Reservation>::new(), Vec::new());

    for (tick, op) in ops.into_iter().take(256) {
        clock.tick(tick);
        let now = clock.now();
        let burst = bucket.quota().burst();
        match op {
            Op::Acquire(cost) => {
                let cost = cost.of(burst);
                let there = limiter.available(now);
                let answer = limiter.try_acquire(now, cost);
                assert_eq!(answer.is_ok(), cost <= there || cost == 0, "{cost} of {there}");
                assert_eq!(answer, bucket.try_acquire(now, cost), "acquire {cost} at {now:?}");
                match answer {
                    Ok(()) => granted.add(now, cost, bucket.quota()),
                    Err(refusal) => check_refusal(&limiter, &mut clock, cost, refusal),
                }
            }
            Op::Reserve(cost) => {
                let cost = cost.of(burst);
                let answer = limiter.reserve(now, cost);
                let ready_at = answer.as_ref().map(Reservation::ready_at).map_err(|&error| error);
                assert_eq!(ready_at, bucket.reserve(now, cost), "reserve {cost} at {now:?}");
                if let Ok(reservation) = answer {
                    assert!(reservation.ready_at() >= now, "not before it was made");
                    clock.name(reservation.ready_at());
                    if bucket.is_paused(now) {
                        granted = Granted::default(); // Refunds may have filled the time paused.
                    } else {
                        granted.add(reservation.ready_at(), cost, bucket.quota());
                    }
                    reservations.push(reservation);
                    costs.push(cost);
                }
            }
            Op::Cancel(place) if !reservations.is_empty() => {
                let place = usize::from(place) % reservations.len();
                limiter.cancel(reservations.swap_remove(place));
                bucket.refund(costs.swap_remove(place));
                granted = Granted::default();
            }
            Op::Cancel(_) => {}
            Op::Refund(cost) => {
                limiter.refund(cost.of(burst));
                bucket.refund(cost.of(burst));
                granted = Granted::default();
            }
            Op::PauseUntil(tick) => {
                let mut later = clock;
                later.tick(tick);
                limiter.pause_until(later.now());
                bucket.pause_until(later.now());
            }
            Op::SetQuota(quota) => {
                let Some(quota) = quota.build() else { continue };
                limiter.set_quota(now, quota).expect("nobody else changes it");
                bucket.set_quota(now, quota);
                granted = Granted::default();
            }
        }
        assert_eq!(limiter.quota(), bucket.quota());
        assert_eq!(limiter.available(now), bucket.available(now), "at {now:?}");
        assert!(limiter.available(now) <= bucket.quota().burst());
    }
}

/// A refusal is true: nothing was taken, and then is when to come back.
fn check_refusal(limiter: &Limiter, clock: &mut TestClock, cost: u32, refusal: Refusal) {
    match refusal {
        Refusal::Never { burst } => assert!(cost > burst && burst == limiter.quota().burst()),
        Refusal::NotYet { until: Instant::MAX } => {}
        Refusal::NotYet { until } => {
            assert!(until > clock.now(), "time to come back has passed");
            assert!(limiter.available(until) >= cost, "too early to come back");
            let before = Instant::from_nanos(until.as_nanos() - 1);
            assert!(limiter.available(before) < cost, "could have come back earlier");
            clock.name(until);
        }
    }
}

impl Granted {
    /// No stretch of grants is more than a burst and what its time gives.
    fn add(&mut self, at: Instant, cost: u32, quota: Quota) {
        self.0.push((nanos(at), cost));
        let (mut first, mut last, mut sum) = (TIME_MAX * 4, 0, 0);
        for &(at, cost) in self.0.iter().rev() {
            (first, last) = (at.min(first), at.max(last));
            sum += tokens(quota, cost);
            assert!(sum <= tokens(quota, quota.burst()) + (last - first), "more than the rate");
        }
    }
}
