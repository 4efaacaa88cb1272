//! Numbers, durations and rates as people write them.

use core::time::Duration;

use holdoff::{Rate, Ratio};

/// `0.1`, `10%` or `1.5`, exact to a millionth; what does not fit is refused, not rounded.
pub(super) fn parse_ratio(text: &str) -> Result<Ratio, &'static str> {
    let (number, places) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 4),
        None => (text, 6),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(""),
        Some(parts) => parts,
        None => (number, ""),
    };
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_number(whole) || !is_number(fraction) {
        return Err("");
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err("finer than a millionth");
    }
    let ppm = format!("{whole}{fraction:0<places$}").parse().map_err(|_| "too large")?;
    Ok(Ratio::ppm(ppm))
}

/// The decimal number.
pub(super) fn print_ratio(ratio: Ratio) -> String {
    let (whole, millionths) = (ratio.as_ppm() / 1_000_000, ratio.as_ppm() % 1_000_000);
    let text = format!("{whole}.{millionths:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `250ms`, `1.5s`, `5m`, `1h 30m`: whole nanoseconds that fit 64 bits.
pub(super) fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    const OVERLONG: &str = "finer than a nanosecond or longer than 584 years";
    if text.starts_with('-') {
        return Err("negative");
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err("its unit is missing");
    }
    // Five minutes, mistyped as `5M`, must not become five months.
    let mut words = text.split(|letter: char| !letter.is_alphabetic());
    if words.any(|word| word == "M" || word.starts_with("mo") || word.starts_with('y')) {
        return Err("months and years vary in length");
    }
    match humantime::parse_duration(text) {
        Ok(duration) if u64::try_from(duration.as_nanos()).is_ok() => Ok(duration),
        Ok(_) | Err(humantime::DurationError::NumberOverflow) => Err(OVERLONG),
        Err(_) => Err(""),
    }
}

/// Such as `1m 30s`, which reads back as what it was.
pub(super) fn print_duration(duration: Duration) -> String {
    const UNITS: [(&str, u128); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let mut rest = duration.as_nanos();
    let mut parts = Vec::new();
    for (unit, nanos) in UNITS {
        if rest >= nanos {
            parts.push(format!("{}{unit}", rest / nanos));
            rest %= nanos;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// `10/s`, `60/min`, `1 per 5s`.
pub(super) fn parse_rate(text: &str) -> Result<Rate, &'static str> {
    let (tokens, per) =
        text.split_once('/').or_else(|| text.split_once(" per ")).ok_or("its time is missing")?;
    let tokens = tokens.trim();
    if !tokens.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("");
    }
    let tokens = tokens.parse().map_err(|_| "")?;
    let per = per.trim();
    let per = if per.starts_with(|first: char| first.is_ascii_digit()) {
        parse_duration(per)?
    } else {
        parse_duration(&format!("1{per}"))?
    };
    Ok(Rate::new(tokens, per))
}

pub(super) fn print_rate(rate: Rate) -> String {
    let (tokens, per) = (rate.tokens(), print_duration(rate.per()));
    match per.as_str() {
        "1m" => format!("{tokens}/min"),
        "1d" | "1h" | "1s" | "1ms" => format!("{tokens}/{}", &per[1..]),
        _ => format!("{tokens} per {per}"),
    }
}
