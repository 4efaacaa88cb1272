//! `Retry-After`, `retry-after-ms` and `x-should-retry`.

use core::time::Duration;

use super::date;
use crate::outcome::Hint;
use crate::time::{duration, minus, plus};
use crate::wide::divided;

/// What the headers of one response say about trying again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Signals {
    /// When to come back.
    pub hint: Hint,
    /// `x-should-retry: true` or `false`; anything else is `None`.
    pub should_retry: Option<bool>,
}

impl Signals {
    /// Reads `headers`, names in any case, in any order; others are passed over.
    ///
    /// `wall_now` is the time since the Unix epoch, or the response's own `Date` (see
    /// [`date::parse`]); without one an HTTP-date counts as malformed. Of several lines of one name
    /// the longest valid delay holds. `retry-after-ms` goes before `Retry-After` unless it is zero
    /// or malformed; of several `x-should-retry` the last valid one holds.
    pub fn from_headers<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
        wall_now: Option<Duration>,
    ) -> Self {
        let (mut millis, mut plain, mut should_retry) = (Hint::Absent, Hint::Absent, None);
        for (name, value) in headers {
            let (name, value) = (name.as_ref(), value.as_ref());
            if name.eq_ignore_ascii_case(b"retry-after-ms") {
                millis = millis.or_longer(retry_after_ms(value));
            } else if name.eq_ignore_ascii_case(b"retry-after") {
                plain = plain.or_longer(retry_after(value, wall_now));
            } else if name.eq_ignore_ascii_case(b"x-should-retry") {
                should_retry = x_should_retry(value).or(should_retry);
            }
        }
        let hint = if millis.delay().is_some() { millis } else { plain.or_longer(millis) };
        Self { hint, should_retry }
    }
}

/// The hint in a `Retry-After` field value (RFC 9110 §10.2.3).
///
/// - delay-seconds: digits. A number too large to represent is [`Duration::MAX`].
/// - Plain decimals (`299.997`), which real services send, rounded up to the nanosecond.
/// - A list of these (`10, 20`), which a proxy makes of two lines: the longest. Empty members after
///   the first are passed over.
/// - An HTTP-date in any of the three forms of §5.6.7: the delay from `wall_now`, zero if past.
///
/// Anything else is [`Hint::Malformed`]: signs, exponents, hexadecimal, `inf`, the empty string.
/// White space around the value is passed over. Never [`Hint::Absent`].
///
/// ```
/// use core::time::Duration;
/// use holdoff::Hint;
/// use holdoff::http::retry_after::retry_after;
///
/// assert_eq!(retry_after(b" 5 ", None), Hint::after(Duration::from_secs(5)));
/// assert_eq!(retry_after(b"-5", None), Hint::Malformed);
/// assert_eq!(retry_after(b"99999999999999999999", None).delay(), Some(Duration::MAX));
/// ```
#[must_use]
pub fn retry_after(value: &[u8], wall_now: Option<Duration>) -> Hint {
    let value = trim(value);
    if value.first().is_some_and(u8::is_ascii_digit) {
        return value
            .split(|&byte| byte == b',')
            .map(trim)
            .filter(|number| !number.is_empty())
            .map(|number| decimal(number, SECOND))
            .reduce(longest_of_all)
            .unwrap_or(Hint::Malformed);
    }
    match wall_now.and_then(|now| Some((now, date::parse(value, now)?))) {
        Some((now, date)) => Hint::after(minus(date, now)),
        None => Hint::Malformed,
    }
}

/// The hint in a `retry-after-ms` field value: milliseconds, decimals rounded up.
///
/// ```
/// use core::time::Duration;
/// use holdoff::http::retry_after::retry_after_ms;
///
/// assert_eq!(retry_after_ms(b"1500").delay(), Some(Duration::from_millis(1500)));
/// assert_eq!(retry_after_ms(b"0.5").delay(), Some(Duration::from_micros(500)));
/// assert_eq!(retry_after_ms(b"soon").delay(), None);
/// ```
#[must_use]
pub fn retry_after_ms(value: &[u8]) -> Hint {
    decimal(trim(value), MILLISECOND)
}

/// The server's own verdict in an `x-should-retry` field value; anything but `true` and `false` in
/// any case is `None`.
#[must_use]
pub fn x_should_retry(value: &[u8]) -> Option<bool> {
    let value = trim(value);
    if value.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if value.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

pub(super) const SECOND: u32 = 1_000_000_000;
pub(super) const MILLISECOND: u32 = 1_000_000;

/// One bad member spoils a list: what the rest of it meant is then a guess.
const fn longest_of_all(a: Hint, b: Hint) -> Hint {
    match (a, b) {
        (Hint::After { .. }, Hint::After { .. }) => a.or_longer(b),
        _ => Hint::Malformed,
    }
}

/// `1*DIGIT [ "." 1*DIGIT ]` in units of `unit` nanoseconds (a power of ten, at most
/// [`SECOND`]), rounded up.
pub(super) fn decimal(text: &[u8], unit: u32) -> Hint {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let (Some(whole), fraction) = (parts.next(), parts.next()) else { return Hint::Malformed };
    let all_digits = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !all_digits(whole) || !fraction.is_none_or(all_digits) {
        return Hint::Malformed;
    }

    // The place value of the last digit read, in nanoseconds, and of the fraction read so far.
    let (mut place, mut nanos) = (unit, 0_u32);
    let mut beyond = false;
    for &digit in fraction.unwrap_or_default() {
        if place > 1 {
            place /= 10;
            nanos += u32::from(digit - b'0') * place; // OK: stays below `unit`, at most 10^9.
        } else {
            beyond |= digit != b'0';
        }
    }
    nanos += u32::from(beyond);

    let delay = number(whole).map_or(Duration::MAX, |whole| {
        let (seconds, rest) = match unit {
            SECOND => (whole, 0),
            MILLISECOND => divided::<1_000>(whole),
            1_000 => divided::<1_000_000>(whole),
            _ => divided::<1_000_000_000>(whole),
        };
        let rest = u64::from(rest) * u64::from(unit) + u64::from(nanos); // at most 10^9
        plus(Duration::from_secs(seconds), duration(rest))
    });
    Hint::After { delay, granularity: place }
}

/// The value of `digits`, `None` if it does not fit.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// `value` without optional white space at its ends (RFC 9110 §5.6.3).
pub(super) fn trim(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = value.iter().position(is_text).unwrap_or(value.len());
    let end = value.iter().rposition(is_text).map_or(start, |last| last + 1);
    value.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{format, vec::Vec};

    const fn nanos(hint: Hint) -> Option<(u128, u32)> {
        match hint {
            Hint::After { delay, granularity } => Some((delay.as_nanos(), granularity)),
            _ => None,
        }
    }

    #[test]
    fn decimals_are_rounded_up_and_know_their_resolution() {
        for (value, expected) in [
            ("0", (0, 1_000_000_000)),
            ("007", (7_000_000_000, 1_000_000_000)),
            ("2.0", (2_000_000_000, 100_000_000)),
            ("0.4", (400_000_000, 100_000_000)),
            ("299.997", (299_997_000_000, 1_000_000)),
            ("1.0000000001", (1_000_000_001, 1)),
            ("1.9999999999", (2_000_000_000, 1)),
            ("1.0000000000000000000000000", (1_000_000_000, 1)),
        ] {
            assert_eq!(nanos(retry_after(value.as_bytes(), None)), Some(expected), "{value}");
        }
        assert_eq!(nanos(retry_after_ms(b"2.5")), Some((2_500_000, 100_000)));
        assert_eq!(nanos(retry_after_ms(b"0.0000001")), Some((1, 1)));
        assert_eq!(retry_after_ms(b"18446744073709551616").delay(), Some(Duration::MAX));
        assert_eq!(
            retry_after_ms(b"18446744073709551615").delay(),
            Some(Duration::from_millis(u64::MAX))
        );
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(value: Vec<u8>, wall_now: Option<u64>) {
            let wall_now = wall_now.map(Duration::from_secs);
            prop_assert_ne!(retry_after(&value, wall_now), Hint::Absent);
            prop_assert_ne!(retry_after_ms(&value), Hint::Absent);
            let _ = x_should_retry(&value);
        }

        #[test]
        fn seconds_are_read_as_written(secs: u64, padding in "[ \t]{0,3}") {
            let value = format!("{padding}{secs}{padding}");
            prop_assert_eq!(
                retry_after(value.as_bytes(), None),
                Hint::after(Duration::from_secs(secs))
            );
        }

        #[test]
        fn decimals_are_never_shortened(secs in 0..1_000_000_u64, fraction in "[0-9]{1,30}") {
            let value = format!("{secs}.{fraction}");
            let delay = retry_after(value.as_bytes(), None).delay().unwrap_or_default();
            // The naive model: a decimal fraction cut to 9 digits, plus one unless the rest is 0.
            let digits = format!("{fraction:0<9}");
            let (kept, rest) = digits.split_at(9);
            let kept: u64 = kept.parse().expect("nine digits");
            let up = u64::from(rest.bytes().any(|digit| digit != b'0'));
            let expected = Duration::from_secs(secs) + Duration::from_nanos(kept + up);
            prop_assert_eq!(delay, expected);
        }
    }
}
