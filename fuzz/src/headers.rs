//! `Retry-After`, `retry-after-ms`, `x-should-retry`, HTTP-dates and whole responses.
//!
//! An input is text: the wall clock in seconds since the Unix epoch (anything else: none), then a
//! header a line, in any bytes. Numbers are read again by a naive decimal parser and dates by
//! `httpdate`, see `dates`.

mod dates;

use std::time::Duration;

use holdoff::http::retry_after::{retry_after, retry_after_ms, x_should_retry};
use holdoff::http::{Signals, Statuses};
use holdoff::{Class, Hint, Outcome};

/// Reads headers.
///
/// # Panics
/// If they are not read as documented.
pub fn run(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let wall_now: Option<u64> = str::from_utf8(first).ok().and_then(|text| text.parse().ok());
    let wall_now = wall_now.map(Duration::from_secs);

    let headers: Vec<(&[u8], &[u8])> = lines.map(split).collect();
    for (_, value) in &headers {
        check_value(value, wall_now);
    }
    check_value(data, wall_now);
    check_signals(&headers, wall_now);
}

/// `name: value`
fn split(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|&byte| byte == b':') {
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, b""),
    }
}

fn check_value(value: &[u8], wall_now: Option<Duration>) {
    dates::check(value, wall_now.unwrap_or_default());

    let text = trimmed(value);
    assert_eq!(retry_after_ms(value), hint(decimal(text, 6)), "milliseconds");
    assert_eq!(x_should_retry(value), verdict(text), "verdict");

    let expected = match text.first() {
        Some(b'0'..=b'9') => hint(longest(text)),
        // `, 5`: a list that begins with an empty member is not taken for one.
        _ => date_hint(text, wall_now),
    };
    assert_eq!(retry_after(value, wall_now), expected, "seconds");
}

/// The documented rules on the hints of the single lines.
fn check_signals(headers: &[(&[u8], &[u8])], wall_now: Option<Duration>) {
    let named = |wanted: &'static str| {
        headers.iter().filter_map(move |(name, value)| {
            let name = name.to_ascii_lowercase();
            (name == wanted.as_bytes()).then_some(*value)
        })
    };
    let millis: Vec<Hint> = named("retry-after-ms").map(retry_after_ms).collect();
    let plain: Vec<Hint> = named("retry-after").map(|value| retry_after(value, wall_now)).collect();
    let either = || millis.iter().chain(&plain).copied();

    let signals = Signals::from_headers(headers.iter().copied(), wall_now);
    let longest = |hints: &[Hint]| hints.iter().filter_map(|hint| hint.delay()).max();
    match longest(&millis).or_else(|| longest(&plain)) {
        Some(delay) => assert_eq!(signals.hint.delay(), Some(delay), "the longest, in ms first"),
        None if either().any(|hint| matches!(hint, Hint::After { .. })) => {
            assert!(matches!(signals.hint, Hint::After { delay: Duration::ZERO, .. }), "zero");
        }
        None if either().next().is_some() => assert_eq!(signals.hint, Hint::Malformed),
        None => assert_eq!(signals.hint, Hint::Absent),
    }
    let mut verdicts = named("x-should-retry").map(trimmed).filter_map(verdict);
    assert_eq!(signals.should_retry, verdicts.next_back(), "the last valid verdict");

    let backwards = Signals::from_headers(headers.iter().rev().copied(), wall_now);
    assert_eq!(backwards.hint.delay(), signals.hint.delay(), "in any order");
    check_outcomes(signals);
}

/// What the headers say is what the failure says, whatever the status.
fn check_outcomes(signals: Signals) {
    for status in [0, 200, 399, 400, 408, 409, 429, 500, 501, 503, 529, u16::MAX] {
        let outcome = Statuses::LLM.outcome(status, signals);
        let Outcome::Failure(failure) = outcome else {
            assert!(status < 400 && outcome == Outcome::Success, "{status}");
            continue;
        };
        assert_eq!(failure.hint.delay(), signals.hint.delay(), "{status}");
        let is_permanent = failure.class == Class::Permanent;
        assert!(signals.should_retry.is_none_or(|wanted| wanted != is_permanent), "{status}");
    }
}

/// What was read: nanoseconds, `None` if there are too many, and the place of the last digit.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Decimal {
    nanos: Option<u128>,
    granularity: u32,
}

/// Shifts the decimal point by `places` digits in the text and reads what is then whole.
fn decimal(text: &[u8], places: usize) -> Option<Decimal> {
    let text = str::from_utf8(text).ok()?;
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    if whole.is_empty() || !(whole.to_owned() + fraction).bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let granularity = 10_u32.pow(u32::try_from(places - fraction.len().min(places)).ok()?);
    // Numbers that do not fit a `u64` are documented as endless, whatever the unit.
    let nanos = whole.parse::<u64>().ok().map(|whole| {
        let shifted = format!("{whole}{fraction:0<places$}");
        let (kept, rest) = shifted.split_at(whole.to_string().len() + places);
        let up = u128::from(rest.bytes().any(|digit| digit != b'0'));
        kept.parse::<u128>().expect("at most 29 digits") + up
    });
    Some(Decimal { nanos, granularity })
}

/// The longest of a list, if all its members can be read.
fn longest(list: &[u8]) -> Option<Decimal> {
    let members = list.split(|&byte| byte == b',').map(trimmed).filter(|text| !text.is_empty());
    let read: Option<Vec<Decimal>> = members.map(|text| decimal(text, 9)).collect();
    // Endless is longest; of equal ones the first.
    let length = |decimal: &Decimal| match decimal.nanos {
        Some(nanos) => nanos.min(Duration::MAX.as_nanos()),
        None => Duration::MAX.as_nanos(),
    };
    read?.into_iter().reduce(|a, b| if length(&b) > length(&a) { b } else { a })
}

fn hint(read: Option<Decimal>) -> Hint {
    let Some(Decimal { nanos, granularity }) = read else { return Hint::Malformed };
    let delay = match nanos {
        Some(nanos) if nanos < Duration::MAX.as_nanos() => {
            let (secs, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            Duration::new(secs.try_into().expect("fits"), nanos.try_into().expect("fits"))
        }
        _ => Duration::MAX,
    };
    Hint::After { delay, granularity }
}

fn date_hint(text: &[u8], wall_now: Option<Duration>) -> Hint {
    let date = |now| holdoff::http::date::parse(text, now);
    match wall_now.and_then(|now| Some(date(now)?.saturating_sub(now))) {
        Some(delay) => Hint::after(delay),
        None => Hint::Malformed,
    }
}

fn verdict(text: &[u8]) -> Option<bool> {
    match text.to_ascii_lowercase().as_slice() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Without spaces and tabs at the ends.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}
