//! Exponential growth in whole numbers: `base · factorⁿ` without a loop over n.

use crate::ratio::Ratio;
use crate::wide::{product, shifted};

/// `base · factorᵉˣᵖᵒⁿᵉⁿᵗ`, rounded up, at most `u64::MAX`.
#[inline]
pub(super) const fn grow(base: u64, factor: Ratio, exponent: u32) -> u64 {
    const DOUBLE: u32 = 2 * Ratio::ONE.as_ppm();
    const SAME: u32 = Ratio::ONE.as_ppm();
    if base == 0 {
        return 0;
    }
    match factor.as_ppm() {
        SAME => base,
        DOUBLE if exponent <= base.leading_zeros() => base << exponent,
        DOUBLE => u64::MAX,
        _ => grow_by_any(base, factor, exponent),
    }
}

#[inline(never)]
const fn grow_by_any(base: u64, factor: Ratio, exponent: u32) -> u64 {
    Power::of(factor, exponent).times(base)
}

/// A number of at least 1 as `mantissa · 2^exponent`, the mantissa's top bit set.
#[derive(Clone, Copy)]
struct Power {
    mantissa: u64,
    exponent: i32,
}

impl Power {
    const ONE: Self = Self { mantissa: 1 << 63, exponent: -63 };

    /// `factor^exponent` by repeated squaring, each product rounded down; some number of at least
    /// 2^64 if it is at least that.
    const fn of(factor: Ratio, mut exponent: u32) -> Self {
        let (mut square, mut power) = (Self::from_ratio(factor), Self::ONE);
        loop {
            if exponent & 1 == 1 {
                power = power.product(square);
            }
            exponent >>= 1;
            // Past the range the exponent would grow without bound; `square` is a factor still.
            if exponent == 0 || power.exponent > 0 {
                return power;
            }
            if square.exponent > 0 {
                return square;
            }
            square = square.product(square);
        }
    }

    /// `factor`, which is at least 1.
    const fn from_ratio(factor: Ratio) -> Self {
        let (whole, places) = factor.to_fixed_point();
        // The whole part has 1 to 13 bits, so the places move down by as many.
        let size = u32::BITS - whole.leading_zeros();
        let ((_, mantissa), _) = shifted((whole as u64, places), size);
        Self { mantissa, exponent: size.cast_signed() - 64 }
    }

    const fn product(self, other: Self) -> Self {
        let (high, low) = product(self.mantissa, other.mantissa);
        // OK because both are at most 64: beyond it nothing is multiplied.
        let exponent = self.exponent + other.exponent + 64;
        if high >> 63 == 1 {
            return Self { mantissa: high, exponent };
        }
        // With two top bits set the product lacks one at most.
        Self { mantissa: high << 1 | low >> 63, exponent: exponent - 1 }
    }

    /// The product with `base`, rounded up: what was lost in rounding down comes back.
    const fn times(self, base: u64) -> u64 {
        // base >= 1 and the mantissa is at least 2^63, so from exponent 1 on it does not fit.
        if self.exponent > 0 {
            return u64::MAX;
        }
        // self >= 1, so the exponent is at least -63 and the shift below 64.
        let places = self.exponent.unsigned_abs();
        let ((high, low), is_cut) = shifted(product(self.mantissa, base), places);
        if high > 0 { u64::MAX } else { low.saturating_add(is_cut as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_simple_factors_are_exact() {
        for (ppm, exponent, base, expected) in [
            (1_500_000, 0, 1_000, 1_000),
            (1_500_000, 1, 1_000, 1_500),
            (1_500_000, 3, 1_000, 3_375),
            (1_500_000, 40, 1 << 40, 3_u64.pow(40)),
            (3_000_000, 40, 1, 3_u64.pow(40)),
            (3_000_000, 41, 1, u64::MAX),
            (10_000_000, 19, 1, 10_u64.pow(19)),
            (1_000_001, 1, 1_000_000, 1_000_001),
            (4_294_967_295, u32::MAX, 1, u64::MAX),
            (4_294_967_295, u32::MAX, u64::MAX, u64::MAX),
            (1_000_001, u32::MAX, 1, u64::MAX),
        ] {
            let grown = grow(base, Ratio::ppm(ppm), exponent);
            let close = expected.abs_diff(grown) <= expected >> 50;
            assert!(close, "{base} * {ppm} ppm ^ {exponent} = {grown}, not {expected}");
        }
    }

    proptest! {
        #[test]
        fn growth_follows_exact_stepping(
            base in 0..=u64::MAX,
            ppm in 1_000_000..=u32::MAX,
            exponent in 0..64_u32,
        ) {
            // A naive model in 64 fractional bits, stepping and stopping at the range's end.
            let mut exact = u128::from(base) << 32;
            for _ in 0..exponent {
                exact = exact / 1_000_000 * u128::from(ppm)
                    + exact % 1_000_000 * u128::from(ppm) / 1_000_000;
                if exact >> 32 > u128::from(u64::MAX) {
                    exact = u128::from(u64::MAX) << 32;
                    break;
                }
            }
            let expected = u64::try_from(exact >> 32).expect("stopped at the end");
            let grown = grow(base, Ratio::ppm(ppm), exponent);
            let tolerance = (expected >> 24).max(2);
            prop_assert!(grown.abs_diff(expected) <= tolerance, "{grown} is not {expected}");
        }
    }
}
