//! `Retry-After`, `retry-after-ms` and `x-should-retry`.

use core::time::Duration;

use super::date::WallClock;
use super::decimal::{MILLISECOND, SECOND, decimal};
use super::text::{Case, cut, trim, whole_word, words};
use crate::outcome::Hint;

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
    /// [`date::parse`](super::date::parse)); without one an HTTP-date counts as malformed. Of
    /// several lines of one name the longest valid delay holds. `retry-after-ms` goes before
    /// `Retry-After` unless it is zero or malformed; of several `x-should-retry` the last valid one
    /// holds.
    pub fn from_headers<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        headers: impl IntoIterator<Item = (N, V)>,
        wall_now: Option<Duration>,
    ) -> Self {
        let wall_clock = wall_now.map(WallClock::for_dates);
        let (mut signals, mut millis) = (Self::default(), Hint::Absent);
        for (name, value) in headers {
            let name = name.as_ref();
            // The length alone tells most others apart.
            if matches!(name.len(), 11 | 14) {
                signals.read(name, value.as_ref(), wall_clock.as_ref(), &mut millis);
            }
        }
        signals.settle(&millis);
        signals
    }

    /// Reads one header; `millis` is what `retry-after-ms` says.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn read(&mut self, name: &[u8], value: &[u8], clock: Option<&WallClock>, millis: &mut Hint) {
        let Some(place) = whole_word(name, NAMES, Case::Ignored) else { return };
        let value = trim(value);
        match place {
            0 => millis.prolong(&decimal(value, MILLISECOND)),
            1 => self.hint.prolong(&list_or_date(value, clock)),
            _ => self.should_retry = verdict(value).or(self.should_retry),
        }
    }

    /// `retry-after-ms` goes first, if it is obeyed.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    const fn settle(&mut self, millis: &Hint) {
        if matches!(millis, Hint::After { delay, .. } if !delay.is_zero()) {
            self.hint = Hint::Absent;
        }
        self.hint.prolong(millis);
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
#[inline]
pub fn retry_after(value: &[u8], wall_now: Option<Duration>) -> Hint {
    list_or_date(trim(value), wall_now.map(WallClock::for_dates).as_ref())
}

#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn list_or_date(value: &[u8], clock: Option<&WallClock>) -> Hint {
    let mut rest = value;
    if !rest.first().is_some_and(u8::is_ascii_digit) {
        return clock.map_or(Hint::Malformed, |clock| clock.delay_until(rest));
    }
    let mut longest = Hint::Absent;
    while let Some(member) = cut(&mut rest, b',') {
        let member = trim(member);
        if !member.is_empty() {
            match decimal(member, SECOND) {
                // One bad member spoils a list: what the rest of it meant is then a guess.
                Hint::Malformed => break,
                number => longest.prolong(&number),
            }
        }
        if rest.is_empty() {
            return longest;
        }
    }
    Hint::Malformed
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
    verdict(trim(value))
}

fn verdict(value: &[u8]) -> Option<bool> {
    whole_word(value, words![b"false", b"true"], Case::Ignored).map(|place| place > 0)
}

const NAMES: &[u8] = words![b"retry-after-ms", b"retry-after", b"x-should-retry"];

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
