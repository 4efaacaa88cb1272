//! A token bucket that fills continuously, in 128 bits.

use holdoff::{Instant, Quota, Refusal};

/// The end of a limiter's time.
pub(crate) const TIME_MAX: i128 = (1 << 62) - 1;
const PAUSE_MAX: i128 = TIME_MAX - (1 << 56);

/// The bucket held `level` at `at`, and holds what it had filled to or would have been empty by at
/// any other time. Levels are in nanoseconds: a token is as long as it takes to fill.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    quota: Quota,
    level: i128,
    at: i128,
    paused_until: i128,
}

impl Bucket {
    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, level: full(quota), at: 0, paused_until: 0 }
    }

    pub(crate) const fn quota(&self) -> Quota {
        self.quota
    }

    pub(crate) fn is_paused(&self, now: Instant) -> bool {
        nanos(now) < self.paused_until
    }

    fn level(&self, now: i128) -> i128 {
        full(self.quota).min(self.level + (now - self.at))
    }

    fn set(&mut self, at: i128, level: i128) {
        (self.at, self.level) = (at, level);
    }

    /// The level once `cost` is taken, unless it never can.
    fn charged(&self, now: i128, cost: u32) -> Result<i128, Refusal> {
        if cost > self.quota.burst() {
            return Err(Refusal::Never { burst: self.quota.burst() });
        }
        let level = self.level(now) - tokens(self.quota, cost);
        // It would be full again only after the end of time.
        let is_late = now + (full(self.quota) - level) > TIME_MAX;
        if is_late { Err(Refusal::NotYet { until: Instant::MAX }) } else { Ok(level) }
    }

    pub(crate) fn try_acquire(&mut self, now: Instant, cost: u32) -> Result<(), Refusal> {
        if cost == 0 {
            return Ok(());
        }
        let now = nanos(now);
        let level = self.charged(now, cost)?;
        let ready_at = self.ready_at(now, level);
        if ready_at > now {
            return Err(Refusal::NotYet { until: instant(ready_at) });
        }
        self.set(now, level);
        Ok(())
    }

    /// When the reserved tokens are there.
    pub(crate) fn reserve(&mut self, now: Instant, cost: u32) -> Result<Instant, Refusal> {
        if cost == 0 {
            return Ok(now);
        }
        let now = nanos(now);
        let level = self.charged(now, cost)?;
        self.set(now, level);
        Ok(instant(self.ready_at(now, level)))
    }

    /// When a bucket charged down to `level` owes nothing any more, and is not paused.
    fn ready_at(&self, now: i128, level: i128) -> i128 {
        (now + (-level).max(0)).max(self.paused_until)
    }

    pub(crate) fn refund(&mut self, cost: u32) {
        self.level += tokens(self.quota, cost);
    }

    /// One token is there when the pause ends, or fewer.
    pub(crate) fn pause_until(&mut self, until: Instant) {
        let until = nanos(until).min(PAUSE_MAX);
        if until > self.paused_until {
            self.paused_until = until;
            let one = tokens(self.quota, 1);
            if self.level(until) >= one {
                self.set(until, one);
            }
        }
    }

    /// As many tokens as there were, rounded down, at most the new burst.
    pub(crate) fn set_quota(&mut self, now: Instant, quota: Quota) {
        let when = nanos(now).max(self.paused_until);
        let counted = self.level(when) * interval(quota);
        let level = counted.div_euclid(interval(self.quota)).min(full(quota));
        let at = when.min(TIME_MAX);
        // What is owed beyond the end of time is all the same.
        self.set(at, level.max(at + full(quota) - TIME_MAX));
        self.quota = quota;
    }

    pub(crate) fn available(&self, now: Instant) -> u32 {
        let now = nanos(now);
        if now < self.paused_until {
            return 0;
        }
        let level = self.level(now).max(0);
        // Nothing is taken that would be full again only after the end of time.
        let full_at = now + (full(self.quota) - level);
        let there = level.min((TIME_MAX - full_at).max(0)) / interval(self.quota);
        there.try_into().expect("at most the burst")
    }
}

pub(crate) fn nanos(instant: Instant) -> i128 {
    instant.as_nanos().into()
}

fn instant(nanos: i128) -> Instant {
    Instant::from_nanos(nanos.try_into().expect("within time"))
}

fn interval(quota: Quota) -> i128 {
    quota.interval().as_nanos().try_into().expect("at most 2^55")
}

pub(crate) fn tokens(quota: Quota, count: u32) -> i128 {
    interval(quota) * i128::from(count)
}

fn full(quota: Quota) -> i128 {
    tokens(quota, quota.burst())
}
