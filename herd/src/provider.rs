//! The provider: a token bucket that answers 429 when it is empty.

use core::num::NonZeroU32;

use holdoff::Instant;

use crate::setup::Setup;

/// A millionth of a token per second is 10⁻¹⁵ of a token per nanosecond: in units of that size the
/// level is a whole number at every nanosecond, and 0.1 s at 10 a second is one token exactly.
const TOKEN: u128 = 1_000_000_000_000_000;

/// A token bucket that starts full and refills continuously; a request takes one token.
///
/// It shares no code with [`holdoff::Limiter`]: it is the world the clients meet.
///
/// ```
/// use holdoff::Instant;
/// use holdoff_herd::provider::{Provider, Verdict};
/// use holdoff_herd::setup::Setup;
///
/// let mut provider = Provider::new(&Setup::PUBLISHED);
/// let now = Instant::EPOCH;
/// assert!((0..20).all(|_| provider.request(now) == Verdict::Accepted));
/// let Verdict::Rejected { retry_after } = provider.request(now) else { panic!() };
/// assert_eq!(retry_after.get(), 1);
/// ```
#[derive(Debug)]
pub struct Provider {
    /// In units of 10⁻¹⁵ tokens, as the capacity.
    level: u128,
    capacity: u128,
    /// Units that come in each nanosecond.
    per_nano: u64,
    /// When the level was that.
    at: Instant,
}

/// What the provider says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 200.
    Accepted,
    /// 429.
    Rejected {
        /// Whole seconds until one token is there, rounded up: 1 to 10⁶.
        retry_after: NonZeroU32,
    },
}

impl Provider {
    /// A provider with a full bucket at [`Instant::EPOCH`].
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        let capacity = u128::from(setup.burst()) * TOKEN;
        Self { level: capacity, capacity, per_nano: setup.rate().micros(), at: Instant::EPOCH }
    }

    /// Answers a request that arrives at `now`, not before the one before.
    pub fn request(&mut self, now: Instant) -> Verdict {
        let elapsed = now.as_nanos().saturating_sub(self.at.as_nanos());
        self.at = now;
        // OK: 64 bits times 40 bits, and the capacity is below 2^82.
        let refilled = self.level + u128::from(elapsed) * u128::from(self.per_nano);
        self.level = refilled.min(self.capacity);
        match self.level.checked_sub(TOKEN) {
            Some(left) => {
                self.level = left;
                Verdict::Accepted
            }
            None => Verdict::Rejected { retry_after: self.seconds_to_token() },
        }
    }

    fn seconds_to_token(&self) -> NonZeroU32 {
        let missing = TOKEN.saturating_sub(self.level);
        let seconds = missing.div_ceil(u128::from(self.per_nano) * 1_000_000_000);
        // OK: the slowest rate makes a token in 10^6 s; and an empty bucket misses something.
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        NonZeroU32::new(seconds).unwrap_or(NonZeroU32::MIN)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn provider(burst: u32, rate: &str) -> Provider {
        let burst = NonZeroU32::new(burst).expect("not zero");
        let rate = rate.parse().expect("a rate");
        let setup = Setup::new(NonZeroU32::MIN, burst, rate, Duration::ZERO).expect("a set-up");
        Provider::new(&setup)
    }

    /// How many requests at `nanos` are accepted.
    fn accepted(provider: &mut Provider, nanos: u64) -> usize {
        let now = Instant::from_nanos(nanos);
        (0..100).take_while(|_| provider.request(now) == Verdict::Accepted).count()
    }

    #[test]
    fn a_token_is_there_at_its_very_nanosecond() {
        for (burst, rate, nanos, tokens) in [
            (20, "10", 99_999_999, 0),
            (20, "10", 100_000_000, 1),
            (20, "10", 199_999_999, 1),
            (20, "10", 200_000_000, 2),
            (20, "10", 2_000_000_000, 20),
            (20, "10", 3_600_000_000_000, 20),
            (1, "3", 333_333_333, 0),
            (1, "3", 333_333_334, 1),
            (5, "3", 999_999_999, 2),
            (5, "3", 1_000_000_000, 3),
            (5, "2.5", 400_000_000, 1),
            (5, "2.5", 2_000_000_000, 5),
            (1, "0.000001", 999_999_999_999_999, 0),
            (1, "0.000001", 1_000_000_000_000_000, 1),
            (50, "1000000", 1_000, 1),
            (50, "1000000", 49_999, 49),
            (50, "999999.999999", 1_000, 0),
            (50, "999999.999999", 1_001, 1),
        ] {
            let mut provider = provider(burst, rate);
            assert_eq!(accepted(&mut provider, 0), burst as usize, "burst {burst} at once");
            assert_eq!(
                accepted(&mut provider, nanos),
                tokens,
                "burst {burst}, {rate}/s, {nanos} ns"
            );
        }
    }

    #[test]
    fn asking_in_between_loses_nothing() {
        let mut provider = provider(1, "3");
        let accepted = (0..=3_000_000_u64)
            .filter(|micros| {
                provider.request(Instant::from_nanos(micros * 1_000)) == Verdict::Accepted
            })
            .count();
        assert_eq!(accepted, 1 + 8, "one at once and one at each whole third but the last");
    }

    #[test]
    fn retry_after_is_whole_seconds_rounded_up() {
        for (rate, nanos, seconds) in [
            ("10", 0, 1),
            ("10", 99_999_999, 1),
            ("1000000", 0, 1),
            ("1", 0, 1),
            ("0.5", 0, 2),
            ("0.5", 1, 2),
            ("0.5", 999_999_999, 2),
            ("0.5", 1_000_000_000, 1),
            ("0.999999", 0, 2),
            ("0.000001", 0, 1_000_000),
            ("0.000001", 1_000_000_000, 999_999),
        ] {
            let mut provider = provider(1, rate);
            assert_eq!(provider.request(Instant::EPOCH), Verdict::Accepted);
            let retry_after = NonZeroU32::new(seconds).expect("not zero");
            assert_eq!(
                provider.request(Instant::from_nanos(nanos)),
                Verdict::Rejected { retry_after },
                "{rate}/s at {nanos} ns"
            );
        }
    }
}
