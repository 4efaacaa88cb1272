//! What responses say of the server's limits: `x-ratelimit-*`, `anthropic-ratelimit-*` and
//! `RateLimit`.

use core::time::Duration;

use super::date;
use super::retry_after::{MILLISECOND, SECOND, decimal, trim};
use crate::outcome::Hint;
use crate::time::{minus, plus, times};

/// When the server's limits let the next request through: the longest reset over the dimensions
/// that are exhausted (of which nothing remains). [`Hint::Absent`] if none is, or if it cannot be
/// read.
///
/// Names in any case, in any order; others are passed over. Of several lines of one name the lowest
/// remainder and the longest valid reset hold. Read are
/// - `x-ratelimit-remaining-D` and `x-ratelimit-reset-D`, as OpenAI sends them: `6m0s`, `20ms`, or
///   plain seconds,
/// - `anthropic-ratelimit-D-remaining` and `anthropic-ratelimit-D-reset`: an RFC 3339 timestamp,
///   which `wall_now` (time since the Unix epoch, or the response's own `Date`) makes a delay,
/// - `RateLimit` of the IETF draft (`"default";r=0;t=30`), its older form (`limit=10, remaining=0,
///   reset=30`), and its oldest, `RateLimit-Remaining` and `RateLimit-Reset`: seconds,
///
/// for D of `requests`, `tokens`, `input-tokens` and `output-tokens`. A plain `x-ratelimit-reset`
/// is passed over: some send a delay there and some a date.
///
/// ```
/// use core::time::Duration;
/// use holdoff::http::rate_limit;
///
/// let headers = [
///     ("x-ratelimit-remaining-requests", "0"),
///     ("x-ratelimit-reset-requests", "1s"),
///     ("x-ratelimit-remaining-tokens", "0"),
///     ("x-ratelimit-reset-tokens", "6m0s"),
/// ];
/// assert_eq!(rate_limit(headers, None).delay(), Some(Duration::from_secs(360)));
/// let ietf = [("RateLimit", r#""burst";r=5;t=2, "daily";r=0;t=30"#)];
/// assert_eq!(rate_limit(ietf, None).delay(), Some(Duration::from_secs(30)));
/// ```
pub fn rate_limit<N: AsRef<[u8]>, V: AsRef<[u8]>>(
    headers: impl IntoIterator<Item = (N, V)>,
    wall_now: Option<Duration>,
) -> Hint {
    let mut limits = [Limit { is_exhausted: false, reset: Hint::Absent }; LIMITS];
    let mut longest = Hint::Absent;
    for (name, value) in headers {
        let (name, value) = (name.as_ref(), trim(value.as_ref()));
        if name.eq_ignore_ascii_case(b"ratelimit") {
            longest = longest.or_longer(ietf(value));
        } else if let Some((number, part)) = place(name)
            && let Some(limit) = limits.get_mut(number)
        {
            match part {
                Part::Remaining => limit.is_exhausted |= is_zero(value),
                Part::Reset(format) => {
                    limit.reset = limit.reset.or_longer(format.read(value, wall_now));
                }
            }
        }
    }
    // By reference: nine of them are much to move.
    limits.iter().fold(longest, |longest, limit| longest.or_longer(limit.hint()))
}

/// What is known of one dimension of one family of headers.
#[derive(Clone, Copy)]
struct Limit {
    is_exhausted: bool,
    reset: Hint,
}

impl Limit {
    const fn hint(self) -> Hint {
        match self.reset {
            Hint::After { .. } if self.is_exhausted => self.reset,
            _ => Hint::Absent,
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Remaining,
    Reset(Format),
}

#[derive(Clone, Copy)]
enum Format {
    Duration,
    Seconds,
    Timestamp,
}

impl Format {
    fn read(self, value: &[u8], wall_now: Option<Duration>) -> Hint {
        match self {
            Self::Duration => duration(value),
            Self::Seconds => decimal(value, SECOND),
            // Who has no wall clock need not be able to read dates.
            Self::Timestamp => match wall_now.map(|now| (date::parse_rfc_3339(value), now)) {
                Some((Some(then), now)) => Hint::after(minus(then, now)),
                _ => Hint::Malformed,
            },
        }
    }
}

const DIMENSIONS: [&[u8]; 4] = [b"requests", b"tokens", b"input-tokens", b"output-tokens"];

/// Both families with dimensions, and the one without.
const LIMITS: usize = 2 * DIMENSIONS.len() + 1;

/// Which limit a header is about, and what it says of it.
fn place(name: &[u8]) -> Option<(usize, Part)> {
    if let Some(rest) = after(name, b"x-ratelimit-") {
        let remaining = after(rest, b"remaining-").map(|dimension| (dimension, Part::Remaining));
        let (dimension, part) =
            remaining.or_else(|| Some((after(rest, b"reset-")?, Part::Reset(Format::Duration))))?;
        return Some((self::dimension(dimension)?, part));
    }
    if let Some(rest) = after(name, b"anthropic-ratelimit-") {
        let cut = rest.iter().rposition(|&byte| byte == b'-')?;
        let (dimension, part) = (rest.get(..cut)?, rest.get(cut + 1..)?);
        let part = if part.eq_ignore_ascii_case(b"remaining") {
            Part::Remaining
        } else if part.eq_ignore_ascii_case(b"reset") {
            Part::Reset(Format::Timestamp)
        } else {
            return None;
        };
        return Some((DIMENSIONS.len() + self::dimension(dimension)?, part));
    }
    match after(name, b"ratelimit-")? {
        part if part.eq_ignore_ascii_case(b"remaining") => Some((LIMITS - 1, Part::Remaining)),
        part if part.eq_ignore_ascii_case(b"reset") => {
            Some((LIMITS - 1, Part::Reset(Format::Seconds)))
        }
        _ => None,
    }
}

fn dimension(name: &[u8]) -> Option<usize> {
    DIMENSIONS.iter().position(|dimension| name.eq_ignore_ascii_case(dimension))
}

/// What follows `prefix`, in any case.
fn after<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn is_zero(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.iter().all(|&digit| digit == b'0')
}

/// A duration as Go writes it (`6m0s`, `1.5s`, `20ms`), with days, too; or plain seconds.
fn duration(value: &[u8]) -> Hint {
    let plain = decimal(value, SECOND);
    if plain != Hint::Malformed {
        return plain;
    }
    let (mut rest, mut sum, mut finest) = (value, Duration::ZERO, SECOND);
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
        let Some((number, tail)) = rest.split_at_checked(digits.count()) else { break };
        let letters = tail.iter().take_while(|byte| !byte.is_ascii_digit() && **byte != b'.');
        let Some((unit, tail)) = tail.split_at_checked(letters.count()) else { break };
        let Some((seconds, fraction)) = unit_of(unit) else { return Hint::Malformed };
        let Hint::After { delay, granularity } = decimal(number, fraction) else {
            return Hint::Malformed;
        };
        sum = plus(sum, times(delay, seconds));
        finest = finest.min(granularity.saturating_mul(seconds));
        rest = tail;
    }
    if value.is_empty() {
        return Hint::Malformed;
    }
    Hint::After { delay: sum, granularity: finest }
}

/// A unit as so many seconds, or as one of so many nanoseconds.
const fn unit_of(unit: &[u8]) -> Option<(u32, u32)> {
    Some(match unit {
        b"d" => (86_400, SECOND),
        b"h" => (3_600, SECOND),
        b"m" => (60, SECOND),
        b"s" => (1, SECOND),
        b"ms" => (1, MILLISECOND),
        // With the sign for micro, and with the Greek letter.
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => (1, 1_000),
        b"ns" => (1, 1),
        _ => return None,
    })
}

/// The longest reset over the exhausted members of a `RateLimit` field, in either form.
fn ietf(value: &[u8]) -> Hint {
    let mut longest = Hint::Absent;
    let mut old = Limit { is_exhausted: false, reset: Hint::Absent };
    let mut rest = value;
    while !rest.is_empty() {
        let Some((member, tail)) = until(rest, b',') else { return Hint::Absent };
        rest = tail;
        let Some((item, mut parameters)) = until(trim(member), b';') else { return Hint::Absent };
        match parameter(item) {
            (b"remaining", Some(value)) => old.is_exhausted |= is_zero(value),
            (b"reset", Some(value)) => old.reset = decimal(value, SECOND),
            _ => {}
        }
        let mut new = Limit { is_exhausted: false, reset: Hint::Absent };
        while !parameters.is_empty() {
            let Some((next, tail)) = until(parameters, b';') else { return Hint::Absent };
            parameters = tail;
            match parameter(next) {
                (b"r", Some(value)) => new.is_exhausted = is_zero(value),
                (b"t", Some(value)) => new.reset = decimal(value, SECOND),
                _ => {}
            }
        }
        longest = longest.or_longer(new.hint());
    }
    longest.or_longer(old.hint())
}

/// `text` up to a separator that is not in a quoted string, and what follows it. `None` if a string
/// does not end.
fn until(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, &byte) in text.iter().enumerate() {
        if is_escaped {
            is_escaped = false;
        } else if is_quoted && byte == b'\\' {
            is_escaped = true;
        } else if byte == b'"' {
            is_quoted = !is_quoted;
        } else if byte == separator && !is_quoted {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
    }
    (!is_quoted).then_some((text, &[]))
}

/// `key=value`, or `key` alone.
fn parameter(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = trim(text).splitn(2, |&byte| byte == b'=');
    (parts.next().unwrap_or_default(), parts.next())
}

#[cfg(test)]
mod tests;
