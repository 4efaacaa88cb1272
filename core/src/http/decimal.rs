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
    let (mut nanos, mut place) = (0, unit);
    if let [b'.', rest @ ..] = text {
        text = rest;
        let Some(fraction) = fraction(&mut text, unit) else { return Hint::Malformed };
        (nanos, place) = fraction;
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

/// Cuts off the digits after a point, at least one: what they are in nanoseconds, given those of
/// the digit before (a power of ten, at most [`SECOND`]), rounded up, and those of the last one
/// read.
pub(super) fn fraction(text: &mut &[u8], unit: u32) -> Option<(u32, u32)> {
    let mut rest = *text;
    let (mut nanos, mut place, mut beyond) = (0, unit, 0);
    while let Some(digit) = digit(&mut rest) {
        if place > 1 {
            place /= 10;
            nanos += digit * place; // OK: stays below `unit`.
        } else {
            beyond |= digit;
        }
    }
    let is_there = rest.len() < text.len();
    *text = rest;
    is_there.then_some((nanos + u32::from(beyond > 0), place))
}

/// Cuts off a digit.
#[inline]
pub(super) fn digit(text: &mut &[u8]) -> Option<u32> {
    let [first @ b'0'..=b'9', rest @ ..] = *text else { return None };
    *text = rest;
    Some(u32::from(first - b'0'))
}
