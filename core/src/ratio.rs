//! Exact fractions, so that 0.6 is 0.6.

use crate::wide::{divided, low_half};

const PPM: u32 = 1_000_000;

/// A non-negative fraction in parts per million, exact: 0 to 4294.967295.
///
/// ```
/// use holdoff::Ratio;
///
/// assert_eq!(Ratio::percent(60).of(10), 6);
/// assert_eq!(Ratio::ppm(1_500_000).of(2), 3);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ratio {
    ppm: u32,
}

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self::ppm(0);
    /// The whole.
    pub const ONE: Self = Self::ppm(PPM);

    /// `ppm` millionths.
    #[must_use]
    pub const fn ppm(ppm: u32) -> Self {
        Self { ppm }
    }

    /// `percent` hundredths; above 429,496 % it saturates.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        Self::ppm(percent.saturating_mul(PPM / 100))
    }

    /// The fraction in parts per million.
    #[must_use]
    pub const fn as_ppm(self) -> u32 {
        self.ppm
    }

    /// This fraction of `whole`, rounded down; saturates at `u64::MAX`.
    #[must_use]
    pub const fn of(self, whole: u64) -> u64 {
        // Lossless widening; the remainder is below 10^6, its product below 2^52.
        let ppm = self.ppm as u64;
        let (millions, rest) = divided::<PPM>(whole);
        millions.saturating_mul(ppm).saturating_add(divided::<PPM>(rest as u64 * ppm).0)
    }

    /// A part that, grown by this fraction, still fits in `whole`: the largest, to a unit.
    pub(crate) const fn leaving_room_in(self, whole: u64) -> u64 {
        let million = PPM as u128;
        let part = whole as u128 * million / (million + self.ppm as u128);
        low_half(part) // OK because part <= whole, a u64.
    }

    /// `self` as a whole part and 64 binary places, rounded down in the last place.
    pub(crate) const fn to_fixed_point(self) -> (u32, u64) {
        // Two digits of 32 bits each; a remainder below 10^6 leaves room for the shift.
        let (high, rest) = divided::<PPM>(((self.ppm % PPM) as u64) << 32);
        let (low, _) = divided::<PPM>((rest as u64) << 32);
        (self.ppm / PPM, high << 32 | low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_published_ratios_are_exact() {
        for (percent, whole, part) in [(60, 10, 6), (70, 10, 7), (30, 10, 3), (10, 10, 1)] {
            assert_eq!(Ratio::percent(percent).of(whole), part, "{percent} % of {whole}");
        }
        assert_eq!(Ratio::ppm(1_000).of(1_000), 1);
    }

    #[test]
    fn a_product_past_the_range_saturates() {
        assert_eq!(Ratio::ppm(u32::MAX).of(u64::MAX), u64::MAX);
        assert_eq!(Ratio::percent(u32::MAX), Ratio::ppm(u32::MAX));
    }

    proptest! {
        #[test]
        fn of_is_the_exact_product_rounded_down(ppm: u32, whole: u64) {
            let exact = u128::from(whole) * u128::from(ppm) / 1_000_000;
            let expected = u64::try_from(exact).unwrap_or(u64::MAX);
            prop_assert_eq!(Ratio::ppm(ppm).of(whole), expected);
        }

        #[test]
        fn room_is_left_exactly(ppm: u32, whole: u64) {
            let ratio = Ratio::ppm(ppm);
            let part = ratio.leaving_room_in(whole);
            let grown = |part: u64| {
                u128::from(part) * (1_000_000 + u128::from(ppm)) <= u128::from(whole) * 1_000_000
            };
            prop_assert!(grown(part));
            prop_assert!(part == u64::MAX || !grown(part + 1));
        }

        #[test]
        fn fixed_point_is_exact_to_the_last_place(ppm: u32) {
            let exact = (u128::from(ppm) << 64) / 1_000_000;
            let (whole, places) = Ratio::ppm(ppm).to_fixed_point();
            prop_assert_eq!(u128::from(whole) << 64 | u128::from(places), exact);
        }
    }
}
