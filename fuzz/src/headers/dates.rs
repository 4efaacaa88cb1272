//! HTTP-dates, read by `holdoff` and by `httpdate`.
//!
//! Where both read a date they agree, but for what is documented:
//!
//! | | holdoff | httpdate |
//! |---|---|---|
//! | weekday that does not match | passed over | refused |
//! | leap second, `:60` | start of the next minute | refused |
//! | before 1970 | zero | refused |
//! | year of two digits | at most 50 years ahead | 1970 to 2069 |
//! | between year and time in the RFC 850 form | a space | any byte |
//! | white space at the ends | refused (`Retry-After` trims) | passed over |

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdoff::http::date;

/// The first second that `httpdate` does not know: year 10,000.
const END: u64 = 253_402_300_800;

pub(super) fn check(value: &[u8], wall_now: Duration) {
    let ours = date::parse(value, wall_now);
    if let Some(ours) = ours {
        assert_eq!(ours.subsec_nanos(), 0, "whole seconds");
        let text = str::from_utf8(value).expect("only ASCII is read");
        check_fields(text, ours.as_secs(), wall_now.as_secs());
    }
    let Ok(text) = str::from_utf8(value) else { return };
    let Ok(theirs) = httpdate::parse_http_date(text) else { return };
    let is_slack = text.trim() != text || text.contains('-') && !is_rfc_850(text);
    if is_slack {
        return;
    }
    let theirs = theirs.duration_since(UNIX_EPOCH).expect("not before 1970").as_secs();
    match ours {
        Some(Duration::ZERO) if text.contains('-') => {} // Before 1970 in our century.
        Some(ours) if text.contains('-') => {
            assert_eq!(time_of_day(ours.as_secs()), time_of_day(theirs), "{text}");
        }
        Some(ours) => assert_eq!(ours.as_secs(), theirs, "{text}"),
        // 29 February of a year that is a leap year in one century and not in the other.
        None => assert!(text.contains("29-Feb-00") || wall_now.as_secs() > END, "{text}"),
    }
}

/// Writes the date that was read and compares it with the text, field by field.
fn check_fields(text: &str, ours: u64, wall_now: u64) {
    let Fields { day, month, year, time } = Fields::of(text);
    if year.len() == 4 && year < "1970" {
        assert_eq!(ours, 0, "{text}");
        return;
    }
    let is_leap_second = time.ends_with(":60");
    let then = ours.saturating_sub(u64::from(is_leap_second));
    if year.len() == 2 {
        let half = 50 * 366 * 86_400;
        assert!(ours <= wall_now.saturating_add(half), "{text}: at most 50 years ahead");
        assert!(ours.saturating_add(half) >= wall_now, "{text}: at most 50 years behind");
        if ours == 0 || then >= END {
            return; // Before 1970, or past what the other one can write.
        }
    }
    let written = httpdate::fmt_http_date(at(then));
    let expected = Fields::of(&written);
    assert_eq!(format!("{day:0>2}"), expected.day, "{text}");
    assert_eq!(month, expected.month, "{text}");
    assert!(expected.year.ends_with(year), "{text}: {}", expected.year);
    let time = if is_leap_second { time.replace(":60", ":59") } else { time.to_owned() };
    assert_eq!(time, expected.time, "{text}");
    assert_eq!(date::parse(written.as_bytes(), Duration::ZERO), Some(Duration::from_secs(then)));
}

/// What is written in a date of any form.
struct Fields<'a> {
    day: &'a str,
    month: &'a str,
    year: &'a str,
    time: &'a str,
}

impl<'a> Fields<'a> {
    fn of(text: &'a str) -> Self {
        let parts: Vec<&str> =
            text.split([' ', ',', '-']).filter(|part| !part.is_empty()).collect();
        match parts[..] {
            [_, day, month, year, time, "GMT"] => Self { day, month, year, time },
            [_, month, day, time, year] => Self { day, month, year, time },
            _ => panic!("no date: {text}"),
        }
    }
}

fn is_rfc_850(text: &str) -> bool {
    // `httpdate` looks at all but this one.
    text.rsplit_once(' ')
        .is_some_and(|(date, _)| date.as_bytes().iter().rev().nth(8) == Some(&b' '))
}

fn time_of_day(secs: u64) -> u64 {
    secs % 86_400
}

fn at(secs: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(secs)
}
