//! RFC 3339 timestamps, as LLM providers name the time at which a limit resets.

use core::time::Duration;

use super::super::decimal::{SECOND, fraction};
use super::{DAY, DateTime, Text};
use crate::time::{duration, plus};

/// The time since the Unix epoch that an RFC 3339 timestamp names, zero for one before the epoch.
///
/// `2025-01-31T23:59:59Z`, with a fraction of a second (rounded up to the nanosecond) and an offset
/// (`+01:00`) if it has them. A leap second is the start of the next minute. `None` for anything
/// else.
///
/// ```
/// use core::time::Duration;
/// use holdoff::http::date::parse_rfc_3339;
///
/// let then = Some(Duration::from_millis(784_111_777_500));
/// assert_eq!(parse_rfc_3339(b"1994-11-06T08:49:37.5Z"), then);
/// assert_eq!(parse_rfc_3339(b"1994-11-06T09:49:37.5+01:00"), then);
/// assert_eq!(parse_rfc_3339(b"1994-11-06T08:49:37"), None);
/// ```
#[must_use]
pub fn parse_rfc_3339(value: &[u8]) -> Option<Duration> {
    let mut text = Text(value);
    let year = text.four_digits()?;
    text.literal(b"-")?;
    let month = text.two_digits()?;
    text.literal(b"-")?;
    let day = text.two_digits()?;
    text.either(b"T", b"t")?;
    let second_of_day = text.time_of_day()?;
    let nanos = if text.literal(b".").is_some() { fraction(&mut text.0, SECOND)?.0 } else { 0 };
    let offset = text.offset()?;
    let date = text.end(DateTime { year, month, day, second_of_day })?;
    if !(1..=12).contains(&date.month) || !date.exists() {
        return None;
    }
    let seconds = date.unix_seconds() - offset;
    let whole = u64::try_from(seconds).ok().map(Duration::from_secs);
    Some(plus(whole.unwrap_or_default(), duration(u64::from(nanos))))
}

impl Text<'_> {
    fn either(&mut self, a: &[u8], b: &[u8]) -> Option<()> {
        self.literal(a).or_else(|| self.literal(b))
    }

    /// `Z` or `+01:00`, in seconds.
    fn offset(&mut self) -> Option<i64> {
        if self.either(b"Z", b"z").is_some() {
            return Some(0);
        }
        let sign = if self.literal(b"+").is_some() {
            1
        } else {
            self.literal(b"-")?;
            -1
        };
        let hours = i64::from(self.two_digits()?);
        self.literal(b":")?;
        let minutes = i64::from(self.two_digits()?);
        let offset = (hours * 60 + minutes) * 60;
        (minutes < 60 && offset < DAY).then_some(sign * offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn timestamps_are_read_as_written_or_not_at_all() {
        for (value, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59Z", Some(0)),
            ("2000-02-29T00:00:00z", Some(951_782_400_000_000_000)),
            ("2024-02-29t12:00:00.000Z", Some(1_709_208_000_000_000_000)),
            ("2024-02-29T12:00:00.0000000001Z", Some(1_709_208_000_000_000_001)),
            ("2024-02-29T11:30:00-00:30", Some(1_709_208_000_000_000_000)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_800_000_000_000)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799_000_000_000)),
            ("2023-02-29T00:00:00Z", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-00-01T00:00:00Z", None),
            ("2024-01-00T00:00:00Z", None),
            ("2024-01-01T24:00:00Z", None),
            ("2024-01-01T00:00:00.Z", None),
            ("2024-01-01T00:00:00+24:00", None),
            ("2024-01-01T00:00:00+01:60", None),
            ("2024-01-01T00:00:00+0100", None),
            ("2024-01-01 00:00:00Z", None),
            ("2024-01-01T00:00:00Z ", None),
            ("2024-01-01", None),
            ("", None),
        ] {
            let parsed = parse_rfc_3339(value.as_bytes()).map(|since| since.as_nanos());
            assert_eq!(parsed, expected, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(value: Vec<u8>, text in "[0-9TZ:.+-]{0,40}") {
            let _ = (parse_rfc_3339(&value), parse_rfc_3339(text.as_bytes()));
        }
    }
}
