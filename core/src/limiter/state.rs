//! What a limiter's words mean together, and what becomes of it.

use super::{Quota, Refusal, TIME_MAX};
use crate::time::Instant;
use crate::wide::low_half;

/// What calls do to a limiter.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Looks whether tokens could be taken.
    None,
    /// Makes the bucket hold no more than one token at a time to come.
    Pause,
    /// Gives tokens back.
    Refund,
    /// Takes tokens, if they are there.
    Take,
}

/// One consistent view of a limiter.
pub(super) struct State {
    pub(super) tat: u64,
    pub(super) quota: Quota,
    pub(super) paused_until: u64,
}

pub(super) struct Charged {
    pub(super) tat: u64,
    pub(super) ready_at: u64,
}

impl State {
    /// The TAT once `cost` is taken, if it is there.
    #[inline]
    pub(super) fn admit(&self, now: u64, cost: u32) -> Result<u64, Refusal> {
        let charged = self.charge(now, cost)?;
        if charged.ready_at <= now {
            Ok(charged.tat)
        } else {
            Err(Refusal::NotYet { until: Instant::from_nanos(charged.ready_at) })
        }
    }

    #[inline]
    pub(super) const fn charge(&self, now: u64, cost: u32) -> Result<Charged, Refusal> {
        if cost > self.quota.burst {
            return Err(Refusal::Never { burst: self.quota.burst });
        }
        let price = self.quota.interval * cost as u64; // OK: at most `refill`, 2^55.
        let start = if self.tat > now { self.tat } else { now };
        // A sum that wraps has a start past the end, too.
        let tat = start.wrapping_add(price);
        if start | tat > TIME_MAX {
            return Err(Refusal::NotYet { until: Instant::MAX });
        }
        // With a sign: a bucket that was full before the epoch is no special case.
        let ready_at = tat.cast_signed() - self.quota.refill().cast_signed();
        let paused_until = self.paused_until.cast_signed();
        let ready_at = if ready_at > paused_until { ready_at } else { paused_until };
        Ok(Charged { tat, ready_at: ready_at.cast_unsigned() })
    }
}

/// The TAT that in `to` says what `tat` says in `from`: as many tokens in the bucket at `now`, at
/// most the new burst. Rounded so that nothing is gained.
pub(super) fn recounted(now: u64, tat: u64, from: Quota, to: Quota) -> u64 {
    // Everything in nanoseconds of the new quota, relative to `now`: the tokens missing, and the
    // room that a larger burst adds (or a smaller one takes away).
    let missing = u128::from(tat.saturating_sub(now)) * u128::from(to.interval);
    let missing = missing.div_ceil(u128::from(from.interval.max(1))); // OK: it is not less.
    let room = u128::from(to.interval) * u128::from(to.burst.saturating_sub(from.burst));
    let cut = u128::from(to.interval) * u128::from(from.burst.saturating_sub(to.burst));
    let ahead = (missing + room).saturating_sub(cut);
    let tat = u128::from(now.min(TIME_MAX)) + ahead;
    low_half(tat.min(u128::from(TIME_MAX)))
}
