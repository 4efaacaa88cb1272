//! Whole numbers wider than a register, in few instructions where a register has 32 bits: there a
//! division of 64 bits by a constant is a call of half a kilobyte of software, and products are
//! worth sharing.

/// Whether a short look inlined, or a direct call, is worth its code.
pub(crate) const INLINES: bool = cfg!(target_pointer_width = "64");

/// The high 64 bits of `a · b`.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn high_half(a: u64, b: u64) -> u64 {
    low_half((a as u128 * b as u128) >> 64)
}

/// The high and the low 64 bits of `a · b`.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn product(a: u64, b: u64) -> (u64, u64) {
    (high_half(a, b), a.wrapping_mul(b))
}

/// `high · 2⁶⁴ + low` without its last `places` (0 to 63), and whether that cut anything off.
#[cfg(target_pointer_width = "64")]
pub(crate) const fn shifted((high, low): (u64, u64), places: u32) -> ((u64, u64), bool) {
    let whole = (high as u128) << 64 | low as u128;
    let rest = low & ((1 << places) - 1);
    ((high >> places, low_half(whole >> places)), rest > 0)
}

/// `high · 2⁶⁴ + low` without its last `places` (0 to 63), and whether that cut anything off.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) const fn shifted(whole: (u64, u64), places: u32) -> ((u64, u64), bool) {
    bit_by_bit(whole, places)
}

#[cfg(any(not(target_pointer_width = "64"), test))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
const fn bit_by_bit((mut high, mut low): (u64, u64), mut places: u32) -> ((u64, u64), bool) {
    let mut is_cut = false;
    while places > 0 {
        is_cut |= low & 1 == 1;
        low = high << 63 | low >> 1;
        high >>= 1;
        places -= 1;
    }
    ((high, low), is_cut)
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
#[inline(never)]
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
        fn the_halves_make_the_product(a: u64, b: u64, places in 0..64_u32) {
            let (high, low) = product(a, b);
            let whole = u128::from(a) * u128::from(b);
            prop_assert_eq!(u128::from(high) << 64 | u128::from(low), whole);

            let ((high, low), is_cut) = shifted((high, low), places);
            prop_assert_eq!(((high, low), is_cut), bit_by_bit(product(a, b), places));
            let expected = whole >> places;
            prop_assert_eq!(u128::from(high) << 64 | u128::from(low), expected);
            prop_assert_eq!(is_cut, expected << places != whole);
        }
    }
}
