//! Every quota that can be had is kept exactly, and every other one is refused.

use core::time::Duration;

use holdoff::{ConfigError, Instant, Limiter, Quota, Rate};
use proptest::prelude::*;

use crate::model::{any_quota, quota};

/// The longest time in which a burst may be earned, in nanoseconds.
const LONGEST: u128 = 1 << 55;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_limiter_keeps_any_quota_exactly(
        first in any_quota(),
        changes in prop::collection::vec(any_quota(), 1..10),
    ) {
        let limiter = Limiter::new(first);
        prop_assert_eq!(limiter.quota(), first);
        for quota in changes {
            limiter.set_quota(Instant::EPOCH, quota).expect("nobody else is at it");
            prop_assert_eq!(limiter.quota(), quota);
            // Once more the same is the same.
            limiter.set_quota(Instant::EPOCH, quota).expect("nobody else is at it");
            prop_assert_eq!(limiter.quota(), quota);
        }
    }

    #[test]
    fn a_quota_is_refused_exactly_if_it_cannot_be_kept(
        tokens in prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>()],
        per in prop_oneof![
            Just(Duration::ZERO),
            Just(Duration::MAX),
            (0..64_u32, any::<u64>()).prop_map(|(shift, n)| Duration::from_nanos(n >> shift)),
            (0..64_u32, any::<u64>()).prop_map(|(shift, n)| Duration::from_secs(n >> shift)),
        ],
        burst in prop_oneof![
            Just(0),
            Just(u32::MAX),
            (0..32_u32, any::<u32>()).prop_map(|(shift, n)| n >> shift),
        ],
    ) {
        let per_nanos = per.as_nanos().min(u64::MAX.into());
        let expected = if burst == 0 {
            Err(ConfigError::BurstZero)
        } else if tokens == 0 || per.is_zero() {
            Err(ConfigError::RateZero)
        } else {
            // Rounded up, so that the rate is never exceeded.
            let interval = per_nanos.div_ceil(tokens.into());
            let refill = interval * u128::from(burst);
            if refill > LONGEST { Err(ConfigError::RefillTooLong) } else { Ok((interval, burst)) }
        };
        let built = Quota::new(Rate::new(tokens, per), burst);
        let built = built.map(|quota| (quota.interval().as_nanos(), quota.burst()));
        prop_assert_eq!(built, expected);
    }
}

#[test]
fn quotas_at_the_limits_fit() {
    let limiter = Limiter::new(quota(1, 1));
    for bits in 0..32 {
        for burst in [1_u32 << bits, (1_u32 << bits) | 1, u32::MAX >> bits] {
            let longest = (1 << 55) / u64::from(burst);
            for interval in [1, 2, longest / 2, longest - 1, longest].map(|n: u64| n.max(1)) {
                let quota = quota(interval, burst);
                assert_eq!(Limiter::new(quota).quota(), quota);
                assert_eq!(Limiter::new(quota).available(Instant::EPOCH), burst);
                limiter.set_quota(Instant::EPOCH, quota).expect("nobody else is at it");
                assert_eq!(limiter.quota(), quota);
            }
            let too_long = Rate::new(1, Duration::from_nanos(longest + 1));
            assert_eq!(Quota::new(too_long, burst), Err(ConfigError::RefillTooLong));
        }
    }
}
