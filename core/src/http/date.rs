//! HTTP-date, the three forms of RFC 9110 §5.6.7, and RFC 3339 timestamps.

mod rfc_3339;

use core::time::Duration;

pub use rfc_3339::parse_rfc_3339;

use super::decimal::digit;
use super::text::{Case, word, words};
use crate::outcome::Hint;
use crate::time::minus;

/// The time since the Unix epoch that an HTTP-date names, zero for one before the epoch.
///
/// Reads IMF-fixdate (`Sun, 06 Nov 1994 08:49:37 GMT`) and the obsolete RFC 850 (`Sunday, 06-Nov-94
/// 08:49:37 GMT`) and asctime (`Sun Nov  6 08:49:37 1994`) forms; all are UTC. A two-digit year is
/// the one that lies at most 50 years ahead of `wall_now` (time since the Unix epoch). Case
/// matters, as the RFC says; a weekday that does not match the date is passed over; a leap second
/// is the start of the next minute. `None` for anything else.
///
/// ```
/// use core::time::Duration;
/// use holdoff::http::date;
///
/// let now = Duration::from_secs(784_111_657);
/// let then = Some(Duration::from_secs(784_111_777));
/// assert_eq!(date::parse(b"Sun, 06 Nov 1994 08:49:37 GMT", now), then);
/// assert_eq!(date::parse(b"Sunday, 06-Nov-94 08:49:37 GMT", now), then);
/// assert_eq!(date::parse(b"Sun Nov  6 08:49:37 1994", now), then);
/// assert_eq!(date::parse(b"Sun, 06 Nov 1994 08:49:37 EST", now), None);
/// ```
#[must_use]
pub fn parse(value: &[u8], wall_now: Duration) -> Option<Duration> {
    let date = imf_fixdate(value)
        .or_else(|| rfc_850(value, wall_now))
        .or_else(|| asctime(value))
        .filter(DateTime::exists)?;
    // Zero for a date before 1970.
    Some(Duration::from_secs(u64::try_from(date.unix_seconds()).unwrap_or(0)))
}

/// The time since the Unix epoch, and how a date becomes a delay from it: who has no wall clock
/// need not link what reads dates.
pub(super) struct WallClock {
    now: Duration,
    delay_until: fn(&[u8], Duration) -> Hint,
}

impl WallClock {
    /// For HTTP-dates.
    pub(super) const fn for_dates(now: Duration) -> Self {
        Self { now, delay_until: |value, now| delay(parse(value, now), now) }
    }

    /// For RFC 3339 timestamps.
    pub(super) const fn for_timestamps(now: Duration) -> Self {
        Self { now, delay_until: |value, now| delay(parse_rfc_3339(value), now) }
    }

    /// The delay to the date that `value` names, zero if past.
    pub(super) fn delay_until(&self, value: &[u8]) -> Hint {
        (self.delay_until)(value, self.now)
    }
}

fn delay(then: Option<Duration>, now: Duration) -> Hint {
    then.map_or(Hint::Malformed, |then| Hint::after(minus(then, now)))
}

/// A date and time of day in UTC.
struct DateTime {
    year: i32,
    month: u8,
    day: u8,
    second_of_day: u32,
}

impl DateTime {
    /// Whether the month has that day.
    const fn exists(&self) -> bool {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let days = match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        self.day >= 1 && self.day <= days
    }

    /// Seconds since the Unix epoch, negative before it (proleptic Gregorian calendar).
    const fn unix_seconds(&self) -> i64 {
        // Years that begin in March, so that a leap day is a year's last.
        let (year, month) = match self.month {
            1 | 2 => (self.year - 1, self.month as i32 + 9),
            _ => (self.year, self.month as i32 - 3),
        };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        // 153 days in each five months from March on: 31, 30, 31, 30, 31.
        let day_of_year = (153 * month + 2) / 5 + self.day as i32 - 1;
        // 719,468 days from 1 March of year 0 to 1 January 1970.
        let days = 365 * year as i64 + (leap_days + day_of_year - 719_468) as i64;
        days * DAY + self.second_of_day as i64
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(value: &[u8]) -> Option<DateTime> {
    let mut text = Text(value);
    text.name(WEEKDAYS)?;
    text.literal(b", ")?;
    let day = text.two_digits()?;
    text.literal(b" ")?;
    let month = text.name(MONTHS)?;
    text.literal(b" ")?;
    let year = text.four_digits()?;
    text.literal(b" ")?;
    let second_of_day = text.time_of_day()?;
    text.literal(b" GMT")?;
    text.end(DateTime { year, month: month + 1, day, second_of_day })
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc_850(value: &[u8], wall_now: Duration) -> Option<DateTime> {
    let mut text = Text(value);
    text.name(FULL_WEEKDAYS)?;
    text.literal(b", ")?;
    let day = text.two_digits()?;
    text.literal(b"-")?;
    let month = text.name(MONTHS)?;
    text.literal(b"-")?;
    let year = text.two_digits()?;
    text.literal(b" ")?;
    let second_of_day = text.time_of_day()?;
    text.literal(b" GMT")?;
    let date = DateTime { year: year.into(), month: month + 1, day, second_of_day };
    text.end(with_century(date, wall_now)?)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(value: &[u8]) -> Option<DateTime> {
    let mut text = Text(value);
    text.name(WEEKDAYS)?;
    text.literal(b" ")?;
    let month = text.name(MONTHS)?;
    text.literal(b" ")?;
    let day = if text.literal(b" ").is_some() { text.digit()? } else { text.two_digits()? };
    text.literal(b" ")?;
    let second_of_day = text.time_of_day()?;
    text.literal(b" ")?;
    let year = text.four_digits()?;
    text.end(DateTime { year, month: month + 1, day, second_of_day })
}

/// The latest date with these last two digits of the year that lies at most 50 years ahead.
fn with_century(date: DateTime, wall_now: Duration) -> Option<DateTime> {
    let now = i64::try_from(wall_now.as_secs()).ok()?;
    // Within a year of the truth, so the search starts no lower than the answer.
    // A clock that is a thousand million years ahead is none.
    let years = i32::try_from(now / MEAN_YEAR).ok().filter(|&years| years < 1_000_000_000)?;
    let year_now = 1970 + years;
    let mut year = (year_now + 51) / 100 * 100 + date.year;
    // At most 50 years ahead: the same day 50 years earlier is not after now. OK because each step
    // goes back a century, and 150 years before `year_now` is before now.
    while (DateTime { year: year - 50, ..date }).unix_seconds() > now {
        year -= 100;
    }
    Some(DateTime { year, ..date })
}

/// What is left to read.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    /// The place in `names` of the name that comes next.
    fn name(&mut self, names: &[u8]) -> Option<u8> {
        word(&mut self.0, names, Case::Exact).and_then(|place| u8::try_from(place).ok())
    }

    fn digit(&mut self) -> Option<u8> {
        digit(&mut self.0).and_then(|digit| u8::try_from(digit).ok())
    }

    fn two_digits(&mut self) -> Option<u8> {
        Some(self.digit()? * 10 + self.digit()?)
    }

    fn four_digits(&mut self) -> Option<i32> {
        Some(i32::from(self.two_digits()?) * 100 + i32::from(self.two_digits()?))
    }

    /// `08:49:37` as a second of the day; second 60 is a leap second.
    fn time_of_day(&mut self) -> Option<u32> {
        let hour = self.two_digits()?;
        self.literal(b":")?;
        let minute = self.two_digits()?;
        self.literal(b":")?;
        let second = self.two_digits()?;
        let exists = hour < 24 && minute < 60 && second <= 60;
        exists.then(|| u32::from(hour) * 3600 + u32::from(minute) * 60 + u32::from(second))
    }

    /// `date`, if nothing is left.
    fn end(self, date: DateTime) -> Option<DateTime> {
        self.0.is_empty().then_some(date)
    }
}

const DAY: i64 = 86_400;

/// A Gregorian year on average, in seconds: 365.2425 days.
const MEAN_YEAR: i64 = 31_556_952;

const WEEKDAYS: &[u8] = words![b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];

const FULL_WEEKDAYS: &[u8] =
    words![b"Monday", b"Tuesday", b"Wednesday", b"Thursday", b"Friday", b"Saturday", b"Sunday"];

const MONTHS: &[u8] = words![
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    fn at(value: &str, wall_now: u64) -> Option<u64> {
        parse(value.as_bytes(), Duration::from_secs(wall_now)).map(|since| since.as_secs())
    }

    #[test]
    fn the_calendar_is_right_at_its_corners() {
        for (value, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", Some(0)),
            ("Sat, 01 Jan 0000 00:00:00 GMT", Some(0)),
            ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
            ("Wed, 01 Mar 2000 00:00:00 GMT", Some(951_868_800)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(253_402_300_799)),
            // A weekday that does not match is passed over.
            ("Mon, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Wed, 29 Feb 2023 00:00:00 GMT", None),
            ("Mon, 29 Feb 1900 00:00:00 GMT", None),
            ("Wed, 32 Oct 2015 07:28:00 GMT", None),
            ("Wed, 00 Oct 2015 07:28:00 GMT", None),
            ("Wed, 31 Apr 2015 07:28:00 GMT", None),
            ("Wed, 21 Oct 2015 24:00:00 GMT", None),
            ("Wed, 21 Oct 2015 07:60:00 GMT", None),
            ("Wed, 21 Oct 2015 07:28:61 GMT", None),
            ("Wed, 21 Oct 2015 07:28:00 GMT ", None),
            ("Wed, 21 Oct 2015 07:28:00", None),
            ("Wed, 21 Oct 2015 7:28:00 GMT", None),
            ("Wed, 21 oct 2015 07:28:00 GMT", None),
            ("Wed, 21 Oct 2015 07:28:00 UTC", None),
            ("Xyz, 21 Oct 2015 07:28:00 GMT", None),
            ("Sun Nov 16 08:49:37 1994", Some(784_975_777)),
            ("Sun Nov 06 08:49:37 1994", Some(784_111_777)),
            ("Sun Nov 6 08:49:37 1994", None),
            ("Sun, 06-Nov-94 08:49:37 GMT", None),
            ("", None),
        ] {
            assert_eq!(at(value, 784_111_657), expected, "{value}");
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        // 2026-11-29T20:00:00Z
        let now = 1_795_982_400;
        for (value, expected) in [
            ("Sunday, 29-Nov-76 20:00:00 GMT", 3_373_905_600), // to the second
            ("Sunday, 29-Nov-76 20:00:01 GMT", 218_145_601),
            ("Saturday, 28-Nov-76 20:00:00 GMT", 3_373_819_200),
            ("Sunday, 29-Nov-77 20:00:00 GMT", 249_681_600),
            ("Sunday, 29-Nov-26 20:00:05 GMT", 1_795_982_405),
            ("Sunday, 29-Nov-25 20:00:00 GMT", 1_764_446_400),
        ] {
            assert_eq!(at(value, now), Some(expected), "{value}");
        }
        // Across a century: at the end of 2099, year 05 lies ahead.
        let (value, end_of_2099) = ("Thursday, 01-Jan-05 00:00:00 GMT", 4_102_358_400);
        assert_eq!(at(value, end_of_2099), Some(4_260_211_200));
        // A wall clock that was never set.
        assert_eq!(at("Thursday, 01-Jan-05 00:00:00 GMT", 0), Some(1_104_537_600));
        assert_eq!(at("Thursday, 01-Jan-05 00:00:00 GMT", u64::MAX), None);
    }

    proptest! {
        #[test]
        fn counting_days_one_by_one_agrees(
            year in 1970..2400_i32,
            month in 1..=12_u8,
            day in 1..=31_u8,
        ) {
            let date = DateTime { year, month, day, second_of_day: 0 };
            prop_assume!(date.exists());
            let is_leap = |year: i32| year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
            let years: i64 = (1970..year).map(|y| if is_leap(y) { 366 } else { 365 }).sum();
            let lengths =
                [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let months: i64 = lengths.iter().take(usize::from(month) - 1).sum();
            prop_assert_eq!(date.unix_seconds(), (years + months + i64::from(day) - 1) * DAY);
        }

        #[test]
        fn no_date_is_too_strange(value in "[A-Za-z0-9 :,\\-]{0,40}", wall_now: u64) {
            let _ = at(&value, wall_now);
        }

        #[test]
        fn two_digit_years_land_in_the_century_around_now(
            year in 0..100_u8,
            wall_now in 0..200_000_000_000_u64,
        ) {
            let value = format!("Monday, 15-Jun-{year:02} 12:00:00 GMT");
            let then = at(&value, wall_now).unwrap_or_default();
            let (ahead, behind) = (50 * 366 * 86_400, 50 * 366 * 86_400 + 366 * 86_400);
            prop_assert!(then <= wall_now + ahead);
            prop_assert!(then + behind >= wall_now);
        }
    }
}
