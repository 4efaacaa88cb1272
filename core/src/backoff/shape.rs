//! How the machine evaluates a schedule: as far as a schedule that is a constant needs, so that a
//! program contains the code of the jitters and factors that it uses.

use core::fmt;
use core::hash::{Hash, Hasher};

use super::{Backoff, Jitter, Ratio, min};

/// Follows from the other fields of its schedule: all shapes are equal.
#[derive(Clone, Copy)]
pub(super) struct Shape(&'static Evaluation);

struct Evaluation {
    envelope: fn(&Backoff, u32) -> u64,
    range: fn(&Backoff, u32, u64) -> (u64, u64),
}

static PLAIN: Evaluation = Evaluation { envelope: plain_envelope, range: plain_range };
static ANY: Evaluation = Evaluation { envelope: Backoff::envelope_nanos, range: Backoff::range };

const DOUBLE: Ratio = Ratio::ppm(2 * Ratio::ONE.as_ppm());

impl Shape {
    pub(super) const fn of(factor: Ratio, jitter: Jitter) -> Self {
        let is_plain_jitter = matches!(jitter, Jitter::Equal | Jitter::Full | Jitter::None);
        let is_plain = is_plain_jitter && factor.as_ppm() == DOUBLE.as_ppm();
        Self(if is_plain { &PLAIN } else { &ANY })
    }
}

impl Backoff {
    /// What [`Backoff::envelope_nanos`] says.
    pub(crate) fn window(&self, retry: u32) -> u64 {
        (self.shape.0.envelope)(self, retry)
    }

    /// What [`Backoff::range`] says.
    pub(crate) fn delays_from_to(&self, retry: u32, previous: u64) -> (u64, u64) {
        (self.shape.0.range)(self, retry, previous)
    }
}

/// Of a schedule that doubles.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn plain_envelope(backoff: &Backoff, retry: u32) -> u64 {
    let doublings = retry.saturating_sub(1);
    // It fits if the bits that are left do: an envelope of zero stays there.
    if doublings > backoff.base.leading_zeros() {
        return if backoff.base == 0 { 0 } else { backoff.cap };
    }
    min(backoff.base.checked_shl(doublings).unwrap_or(0), backoff.cap)
}

/// Of a schedule that doubles and is spread without a ratio.
fn plain_range(backoff: &Backoff, retry: u32, _previous: u64) -> (u64, u64) {
    let window = plain_envelope(backoff, retry);
    let low = match backoff.jitter {
        Jitter::Equal => window - window / 2,
        Jitter::Full => 0,
        _ => window,
    };
    backoff.lifted(low, window)
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Shape {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "_");
    }
}

impl PartialEq for Shape {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::BackoffConfig;
    use core::time::Duration;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_shape_says_what_the_schedule_says(
            base: u64,
            max: u64,
            min: u64,
            retry: u32,
            few in 0..70_u32,
            previous: u64,
            kind in 0..4_usize,
            ppm in prop_oneof![Just(1_000_000_u32), Just(2_000_000), Just(1_500_000)],
        ) {
            let jitter = [Jitter::Equal, Jitter::Full, Jitter::None, Jitter::Decorrelated];
            for shift in [0, 20, 40, 60] {
                let (base, min) = ((base >> shift).min(max), (min >> shift).min(max));
                let backoff = BackoffConfig::exponential(Duration::from_nanos(base))
                    .with_factor(Ratio::ppm(ppm))
                    .with_max_delay(Duration::from_nanos(max))
                    .with_min_delay(Duration::from_nanos(min))
                    .with_jitter(jitter[kind])
                    .build()
                    .expect("within the maximum");
                for retry in [retry, few] {
                    prop_assert_eq!(backoff.window(retry), backoff.envelope_nanos(retry));
                    let range = backoff.range(retry, previous);
                    prop_assert_eq!(backoff.delays_from_to(retry, previous), range);
                }
            }
        }
    }
}
