//! What responses say of the server's limits: `x-ratelimit-*`, `anthropic-ratelimit-*` and
//! `RateLimit`.

use core::time::Duration;

use super::date::WallClock;
use super::decimal::{MILLISECOND, SECOND, decimal};
use super::text::{Case, cut, trim, whole_word, word, words};
use crate::outcome::Hint;
use crate::wide::divided;

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
    let wall_clock = wall_now.map(WallClock::for_timestamps);
    let mut limits = [Limit::UNKNOWN; LIMITS];
    for (name, value) in headers {
        let name = name.as_ref();
        // None that is read is shorter than `RateLimit`.
        if name.len() >= 9 {
            read(&mut limits, name, value.as_ref(), wall_clock.as_ref());
        }
    }
    longest(&limits)
}

/// What is known of one dimension of one family of headers.
#[derive(Clone, Copy)]
struct Limit {
    /// Not known to be exhausted.
    is_open: bool,
    reset: Hint,
}

impl Limit {
    const UNKNOWN: Self = Self { is_open: true, reset: Hint::Absent };
}

/// Makes `longest` the `reset` of a limit, if that is to be waited for and longer.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
const fn prolong(longest: &mut Hint, is_exhausted: bool, reset: &Hint) {
    if is_exhausted && matches!(reset, Hint::After { .. }) {
        longest.prolong(reset);
    }
}

/// The longest of all, the first one of several.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn longest(limits: &[Limit; LIMITS]) -> Hint {
    let mut longest = Hint::Absent;
    for limit in limits {
        prolong(&mut longest, !limit.is_open, &limit.reset);
    }
    longest
}

/// Notes what one header says.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn read(limits: &mut [Limit; LIMITS], name: &[u8], value: &[u8], clock: Option<&WallClock>) {
    let mut rest = name;
    let Some(family) = word(&mut rest, FAMILIES, Case::Ignored) else { return };
    let value = trim(value);
    if rest.is_empty() && family == IETF {
        let [limit, ..] = limits;
        let _ = ietf(value, limit);
        return;
    }
    let Some(first) = word(&mut rest, WORDS, Case::Ignored) else { return };
    let second = word(&mut rest, WORDS, Case::Ignored);
    if second.is_some() == (family == IETF) || !rest.is_empty() {
        return;
    }
    let second = second.unwrap_or(PARTS);
    let (part, dimension) = if family == ANTHROPIC { (second, first) } else { (first, second) };
    let Some(dimension) = dimension.checked_sub(PARTS) else { return };
    let Some(limit) = limits.get_mut(1 + family * DIMENSIONS + dimension) else { return };
    let reset = match (part, family) {
        (REMAINING, _) => {
            limit.is_open &= !is_zero(value);
            return;
        }
        (RESET, X) => duration(value),
        (RESET, IETF) => decimal(value, SECOND),
        // Who has no wall clock need not be able to read dates.
        (RESET, _) => clock.map_or(Hint::Malformed, |clock| clock.delay_until(value)),
        _ => return,
    };
    limit.reset.prolong(&reset);
}

/// How names begin.
const FAMILIES: &[u8] = words![b"x-ratelimit", b"anthropic-ratelimit", b"ratelimit"];
const X: usize = 0;
const ANTHROPIC: usize = 1;
const IETF: usize = 2;

/// How they go on: the parts, then the dimensions.
const WORDS: &[u8] =
    words![b"-remaining", b"-reset", b"-requests", b"-tokens", b"-input-tokens", b"-output-tokens"];
const REMAINING: usize = 0;
const RESET: usize = 1;
const PARTS: usize = 2;
const DIMENSIONS: usize = 4;

/// `RateLimit`, which goes first among equals, two families with dimensions, and the one without.
const LIMITS: usize = 2 * DIMENSIONS + 2;

#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn is_zero(digits: &[u8]) -> bool {
    !digits.is_empty() && digits.iter().all(|&digit| digit == b'0')
}

/// A duration as Go writes it (`6m0s`, `1.5s`, `20ms`), with days, too; or plain seconds.
fn duration(value: &[u8]) -> Hint {
    let (mut rest, mut sum, mut finest) = (value, Duration::ZERO, SECOND);
    loop {
        let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
        let length = rest.iter().take_while(is_number).count();
        let Some((number, tail)) = rest.split_at_checked(length) else { break };
        rest = tail;
        let (factor, fraction) = if length == value.len() {
            (1, SECOND)
        } else {
            let unit = word(&mut rest, UNITS, Case::Exact).and_then(|place| SIZES.get(place));
            let Some(size) = unit else { break };
            *size
        };
        let Hint::After { delay, granularity } = decimal(number, fraction) else { break };
        sum = sum_with_product(sum, delay, factor);
        finest = finest.min(granularity.saturating_mul(factor));
        if rest.is_empty() {
            return Hint::After { delay: sum, granularity: finest };
        }
    }
    Hint::Malformed
}

/// With the sign for micro, and with the Greek letter. Milliseconds are not taken for minutes.
const UNITS: &[u8] =
    words![b"ms", b"s", b"m", b"h", b"d", b"us", b"\xc2\xb5s", b"\xce\xbcs", b"ns"];

/// As so many seconds, or as one of so many nanoseconds.
const SIZES: [(u32, u32); 9] = [
    (1, MILLISECOND),
    (1, SECOND),
    (60, SECOND),
    (3_600, SECOND),
    (86_400, SECOND),
    (1, 1_000),
    (1, 1_000),
    (1, 1_000),
    (1, 1),
];

/// `sum + delay · factor`, at most [`Duration::MAX`].
fn sum_with_product(sum: Duration, delay: Duration, factor: u32) -> Duration {
    // OK: below 10^14.
    let nanos = u64::from(delay.subsec_nanos()) * u64::from(factor) + u64::from(sum.subsec_nanos());
    let (carried, nanos) = divided::<SECOND>(nanos);
    let (seconds, beyond) = delay.as_secs().overflowing_mul(u64::from(factor));
    let (seconds, is_over) = seconds.overflowing_add(carried);
    let (seconds, is_over_now) = seconds.overflowing_add(sum.as_secs());
    if beyond || is_over || is_over_now || nanos >= SECOND {
        return Duration::MAX;
    }
    Duration::new(seconds, nanos)
}

/// Makes `limit` one that resets after the longest of the exhausted members of a `RateLimit` field,
/// in either form. `None`, and nothing done, if a string in it does not end.
fn ietf(value: &[u8], limit: &mut Limit) -> Option<()> {
    let mut longest = Hint::Absent;
    // The older form, in which each parameter is a member of its own.
    let (mut old_is_exhausted, mut old_reset) = (false, Hint::Absent);
    let mut rest = value;
    while !rest.is_empty() {
        let mut member = trim(cut(&mut rest, b',')?);
        let (mut is_exhausted, mut reset) = (false, Hint::Absent);
        let mut is_item = true;
        while !member.is_empty() {
            let parameter = trim(cut(&mut member, b';')?);
            let mut value = parameter;
            let key = cut(&mut value, b'=')?;
            if key.len() < parameter.len() {
                match (whole_word(key, KEYS, Case::Exact), is_item) {
                    (Some(0), true) => old_is_exhausted |= is_zero(value),
                    (Some(1), true) => old_reset = decimal(value, SECOND),
                    (Some(2), false) => is_exhausted = is_zero(value),
                    (Some(3), false) => reset = decimal(value, SECOND),
                    _ => {}
                }
            }
            is_item = false;
        }
        prolong(&mut longest, is_exhausted, &reset);
    }
    prolong(&mut longest, old_is_exhausted, &old_reset);
    limit.is_open = false;
    limit.reset.prolong(&longest);
    Some(())
}

/// In the older form, and in the present one.
const KEYS: &[u8] = words![b"remaining", b"reset", b"r", b"t"];

#[cfg(test)]
mod tests;
