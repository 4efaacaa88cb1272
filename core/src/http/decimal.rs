//! Decimal numbers as delays.

use core::time::Duration;

use crate::outcome::Hint;
use crate::wide::divided;

pub(super) const SECOND: u32 = 1_000_000_000;
pub(super) const MILLISECOND: u32 = 1_000_000;

const LOW_HALF: u64 = u32::MAX as u64;

/// `1*DIGIT [ "." 1*DIGIT ]` in units of `unit` nanoseconds (a power of 1,000, at most
/// [`SECOND`]), rounded up; [`Duration::MAX`] if what is before the point does not fit a `u64`.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) fn decimal(mut text: &[u8], unit: u32) -> Hint {
    let (mut whole, mut fits) = (0_u64, true);
    if !text.first().is_some_and(u8::is_ascii_digit) {
        return Hint::Malformed;
    }
    while let Some(digit) = digit(&mut text) {
        // In halves, so that what does not fit shows.
        let low = (whole & LOW_HALF) * 10 + u64::from(digit);
        let high = (whole >> 32) * 10 + (low >> 32);
        whole = high << 32 | low & LOW_HALF;
        fits &= high <= LOW_HALF;
    }
    // The place value of the last digit read, in nanoseconds, and of the fraction read so far.
    let (mut place, mut nanos) = (unit, 0);
    if let [b'.', fraction @ ..] = text
        && !fraction.is_empty()
    {
        text = fraction;
        let mut beyond = 0;
        while let Some(digit) = digit(&mut text) {
            if place > 1 {
                place /= 10;
                nanos += digit * place; // OK: stays below `unit`, at most 10^9.
            } else {
                beyond |= digit;
            }
        }
        nanos += u32::from(beyond > 0);
    }
    if !text.is_empty() {
        return Hint::Malformed;
    }
    // In seconds: three places of the whole number at a time.
    let mut scale = unit;
    while scale < SECOND {
        let (quotient, rest) = divided::<1_000>(whole);
        whole = quotient;
        nanos += rest * scale; // OK: at most 10^9.
        scale *= 1_000;
    }
    if nanos >= SECOND {
        nanos = 0;
        whole = whole.wrapping_add(1);
        fits &= whole > 0;
    }
    let delay = if fits { Duration::new(whole, nanos) } else { Duration::MAX };
    Hint::After { delay, granularity: place }
}

/// Cuts off a digit.
#[inline]
fn digit(text: &mut &[u8]) -> Option<u32> {
    let [first @ b'0'..=b'9', rest @ ..] = *text else { return None };
    *text = rest;
    Some(u32::from(first - b'0'))
}
