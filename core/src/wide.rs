//! Whole numbers wider than a register, in few instructions where a register has 32 bits: there a
//! division of 64 bits by a constant is a call of half a kilobyte of software, and products are
//! worth sharing.

/// The high 64 bits of `a · b`.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn high_half(a: u64, b: u64) -> u64 {
    low_half((a as u128 * b as u128) >> 64)
}

/// The low 64 bits of a number that the caller has shown to have no others.
#[expect(clippy::cast_possible_truncation, reason = "each caller proves that it fits")]
pub(crate) const fn low_half(wide: u128) -> u64 {
    wide as u64
}

/// `number / D` and its remainder. `D` must be at least 2, and is no power of 2.
#[cfg(target_pointer_width = "64")]
#[expect(clippy::cast_possible_truncation, reason = "a remainder is below `D`, a u32")]
pub(crate) const fn divided<const D: u32>(number: u64) -> (u64, u32) {
    (number / D as u64, (number % D as u64) as u32)
}

/// `number / D` and its remainder. `D` must be at least 2, and is no power of 2.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) const fn divided<const D: u32>(number: u64) -> (u64, u32) {
    by_reciprocal(number, D, const { u64::MAX / D as u64 })
}

/// `number / D`, rounded up.
pub(crate) const fn divided_up<const D: u32>(number: u64) -> u64 {
    let (whole, rest) = divided::<D>(number);
    whole + (rest > 0) as u64 // OK: with a divisor of 2 or more there is room.
}

/// `number / divisor` and its remainder, given `reciprocal = ⌊2⁶⁴ / divisor⌋`.
#[cfg(any(not(target_pointer_width = "64"), test))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
#[expect(clippy::cast_possible_truncation, reason = "remainders below a u32, times two")]
const fn by_reciprocal(number: u64, divisor: u32, reciprocal: u64) -> (u64, u32) {
    // What the reciprocal lacks is below 1, so the quotient lacks less than `number / 2⁶⁴`: it is
    // right or one too small.
    let quotient = high_half(number, reciprocal);
    let rest = number.wrapping_sub(quotient.wrapping_mul(divisor as u64));
    if rest < divisor as u64 {
        (quotient, rest as u32)
    } else {
        (quotient + 1, (rest - divisor as u64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn both<const D: u32>(number: u64) -> [(u64, u32); 2] {
        [divided::<D>(number), by_reciprocal(number, D, u64::MAX / u64::from(D))]
    }

    proptest! {
        #[test]
        fn a_reciprocal_divides_as_division_does(number: u64, near in 0..1_000_u64) {
            let quotients = [number, u64::MAX - near, near, number / 1_000_000_000 * 1_000_000_000];
            for number in quotients.into_iter().flat_map(|n| [n, n.wrapping_sub(1)]) {
                let [divided, by_reciprocal] = both::<1_000_000_000>(number);
                prop_assert_eq!(divided, by_reciprocal);
                let [divided, by_reciprocal] = both::<1_000_000>(number);
                prop_assert_eq!(divided, by_reciprocal);
                let [divided, by_reciprocal] = both::<3>(number);
                prop_assert_eq!(divided, by_reciprocal);
                prop_assert_eq!(divided_up::<3>(number), number.div_ceil(3));
            }
        }

        #[test]
        fn the_halves_make_the_product(a: u64, b: u64) {
            let product = u128::from(high_half(a, b)) << 64 | u128::from(a.wrapping_mul(b));
            prop_assert_eq!(product, u128::from(a) * u128::from(b));
        }
    }
}
