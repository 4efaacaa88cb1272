//! A token bucket as one would explain it: a level, and when it was that high.

use core::time::Duration;

use holdoff::{Instant, Limiter, Quota, Rate, Refusal};
use proptest::prelude::*;

/// The last instant that a limiter serves.
pub(crate) const LAST: Instant = Instant::from_nanos((1 << 62) - 1);
/// The last end of a pause.
const LAST_PAUSE: Instant = Instant::from_nanos(LAST.as_nanos() - (1 << 56));

pub(crate) fn quota(interval: u64, burst: u32) -> Quota {
    Quota::new(Rate::new(1, Duration::from_nanos(interval)), burst).expect("valid")
}

/// Nanoseconds per token.
pub(crate) fn interval(quota: Quota) -> i128 {
    i128::try_from(quota.interval().as_nanos()).expect("below 2^55")
}

/// Quotas of any size, the longest refill included.
pub(crate) fn any_quota() -> impl Strategy<Value = Quota> {
    let burst = prop_oneof![
        3 => 1..=10_u32,
        2 => (0..32_u32, 1..=u32::MAX).prop_map(|(shift, n)| (n >> shift).max(1)),
        1 => Just(u32::MAX),
    ];
    let interval = prop_oneof![
        3 => (1..100_u64).prop_map(|n| n * 1_000_000),
        2 => (9..64_u32, any::<u64>()).prop_map(|(shift, n)| n >> shift),
        1 => Just(u64::MAX),
    ];
    (interval, burst).prop_map(|(interval, burst)| {
        let longest = (1 << 55) / u64::from(burst);
        quota(interval.clamp(1, longest), burst)
    })
}

/// The level is in nanoseconds: a token is worth as many as it takes to earn.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    interval: i128,
    burst: i128,
    level: i128,
    at: i128,
    /// Zero for never.
    paused_until: i128,
}

impl Model {
    pub(crate) fn new(quota: Quota) -> Self {
        let (interval, burst) = (interval(quota), i128::from(quota.burst()));
        Self { interval, burst, level: interval * burst, at: 0, paused_until: 0 }
    }

    /// Earned with time up to the burst.
    fn level(&self, now: i128) -> i128 {
        (self.level + now - self.at).min(self.interval * self.burst)
    }

    /// The level that is left when `cost` is taken, negative if it is owed.
    fn charge(&self, now: i128, cost: u32) -> Result<i128, Refusal> {
        let cost = i128::from(cost);
        if cost > self.burst {
            return Err(Refusal::Never { burst: u32::try_from(self.burst).expect("a burst") });
        }
        let left = self.level(now) - cost * self.interval;
        let full_at = now + self.interval * self.burst - left;
        if full_at > nanos(LAST) {
            return Err(Refusal::NotYet { until: Instant::MAX });
        }
        Ok(left)
    }

    pub(crate) fn try_acquire(&mut self, now: Instant, cost: u32) -> Result<(), Refusal> {
        if cost == 0 {
            return Ok(());
        }
        let now = nanos(now);
        let left = self.charge(now, cost)?;
        let ready_at = self.paused_until.max(now - left.min(0));
        if ready_at > now {
            return Err(Refusal::NotYet { until: instant(ready_at) });
        }
        (self.level, self.at) = (left, now);
        Ok(())
    }

    /// When what is taken may be used.
    pub(crate) fn reserve(&mut self, now: Instant, cost: u32) -> Result<Instant, Refusal> {
        if cost == 0 {
            return Ok(now);
        }
        let now = nanos(now);
        let left = self.charge(now, cost)?;
        (self.level, self.at) = (left, now);
        Ok(instant(self.paused_until.max(now - left.min(0))))
    }

    pub(crate) fn refund(&mut self, cost: u32) {
        self.level += i128::from(cost) * self.interval;
        // A bucket that has been full since the epoch cannot be fuller.
        self.level = self.level.min(self.interval * self.burst + self.at);
    }

    /// Shut until then, and with at most one token at the end.
    pub(crate) fn pause_until(&mut self, until: Instant) {
        let until = nanos(until.min(LAST_PAUSE));
        if until > self.paused_until {
            self.paused_until = until;
            if self.level(until) >= self.interval {
                (self.level, self.at) = (self.interval, until);
            }
        }
    }

    /// As many tokens as before (those owed included), rounded down, at most the new burst.
    pub(crate) fn set_quota(&mut self, now: Instant, quota: Quota) {
        // While paused nothing is taken: what counts is the level at the end of the pause.
        let now = nanos(now).max(self.paused_until);
        let (level, old, new) = (self.level(now), self.interval, interval(quota));
        (self.interval, self.burst) = (new, i128::from(quota.burst()));
        self.level = (level * new).div_euclid(old).min(new * self.burst);
        self.at = now.min(nanos(LAST));
        // No later than the last instant is the bucket full.
        self.level = self.level.max(self.at + new * self.burst - nanos(LAST));
    }

    /// Whole tokens that can be taken.
    pub(crate) fn available(&self, now: Instant) -> u32 {
        let now = nanos(now);
        if now < self.paused_until {
            return 0;
        }
        let level = self.level(now);
        let full_at = now + self.interval * self.burst - level;
        let until_the_end = (nanos(LAST) - full_at).div_euclid(self.interval);
        let tokens = level.div_euclid(self.interval).min(until_the_end);
        u32::try_from(tokens.max(0)).expect("at most the burst")
    }

    /// Whether a burst that is earned from `now` on may be cut short by the last instant.
    pub(crate) fn ends_after(&self, now: Instant) -> bool {
        nanos(now).max(self.paused_until) + 2 * self.interval * self.burst > nanos(LAST)
    }
}

fn nanos(instant: Instant) -> i128 {
    instant.as_nanos().into()
}

fn instant(nanos: i128) -> Instant {
    Instant::from_nanos(u64::try_from(nanos).expect("a time"))
}

/// Asks `limiter` and the model, and the limiter again just before it says that it will admit.
pub(crate) fn try_acquire(
    limiter: &Limiter,
    model: &mut Model,
    now: Instant,
    cost: u32,
) -> Result<(), Refusal> {
    let answer = limiter.try_acquire(now, cost);
    assert_eq!(answer, model.try_acquire(now, cost), "{cost} at {now:?} of {model:?}");
    if let Err(Refusal::NotYet { until }) = answer {
        assert!(until > now || until == Instant::MAX);
        let early = until.saturating_sub(Duration::from_nanos(1));
        assert_eq!(limiter.try_acquire(early, cost), answer, "{cost} at {early:?}");
    }
    answer
}
