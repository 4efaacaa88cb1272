//! How many tokens a second, as an exact decimal.

use core::error::Error;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;
use core::time::Duration;

const MICRO: u64 = 1_000_000;
const DECIMALS: usize = 6;

/// Tokens per second, exact to a millionth: 0.000001 to 1000000.
///
/// ```
/// use holdoff_herd::rate::Rate;
///
/// let rate: Rate = "2.5".parse()?;
/// assert_eq!(rate.micros(), 2_500_000);
/// assert_eq!(rate.to_string(), "2.5");
/// # Ok::<(), holdoff_herd::rate::InvalidRate>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    micros: NonZeroU64,
}

impl Rate {
    const MAX_MICROS: u64 = 1_000_000 * MICRO;

    /// A rate of `micros` millionths of a token per second, `None` if it is out of range.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Option<Self> {
        match NonZeroU64::new(micros) {
            Some(nonzero) if micros <= Self::MAX_MICROS => Some(Self { micros: nonzero }),
            _ => None,
        }
    }

    /// Millionths of a token per second: 1 to 10¹².
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.micros.get()
    }

    /// The time one token takes, rounded up to a nanosecond.
    #[must_use]
    pub const fn time_per_token(self) -> Duration {
        // A millionth of a token per second is a token per 10^6 s, or 10^15 ns.
        Duration::from_nanos(1_000_000_000_000_000_u64.div_ceil(self.micros.get()))
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    /// Reads plain decimal notation. The digits are taken as they are, without a detour through
    /// binary floating point, which has no 0.1.
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(decimals) || decimals.len() > DECIMALS {
            return Err(InvalidRate);
        }
        let whole: u64 = whole.parse().map_err(|_| InvalidRate)?;
        let decimals: u64 = format!("{decimals:0<DECIMALS$}").parse().map_err(|_| InvalidRate)?;
        whole
            .checked_mul(MICRO)
            .and_then(|micros| micros.checked_add(decimals))
            .and_then(Self::from_micros)
            .ok_or(InvalidRate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.micros() / MICRO, self.micros() % MICRO);
        if decimals == 0 {
            write!(f, "{whole}")
        } else {
            let decimals = format!("{decimals:0DECIMALS$}");
            write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
        }
    }
}

/// Not a rate; says what one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidRate;

impl fmt::Display for InvalidRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be a number from 0.000001 to 1000000 with at most 6 decimals")
    }
}

impl Error for InvalidRate {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_and_written_back() {
        for (text, micros, written) in [
            ("10", 10_000_000, "10"),
            ("2.5", 2_500_000, "2.5"),
            ("0.1", 100_000, "0.1"),
            ("007.50", 7_500_000, "7.5"),
            ("0.000001", 1, "0.000001"),
            ("999999.999999", 999_999_999_999, "999999.999999"),
            ("1000000", 1_000_000_000_000, "1000000"),
            ("1000000.000000", 1_000_000_000_000, "1000000"),
        ] {
            let rate: Rate = text.parse().expect(text);
            assert_eq!(rate.micros(), micros, "{text}");
            assert_eq!(rate.to_string(), written, "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "0",
            "0.0",
            "0.000000",
            "-1",
            "+1",
            "-0",
            "NaN",
            "nan",
            "inf",
            "infinity",
            "1e3",
            "0x10",
            "1,5",
            " 1",
            "1 ",
            "1_000",
            "1.2.3",
            "0.0000001",
            "1.0000000",
            "1000000.000001",
            "1000001",
            "18446744073709551616",
            "٣",
            "ten",
        ] {
            assert_eq!(text.parse::<Rate>(), Err(InvalidRate), "{text:?}");
        }
    }

    #[test]
    fn the_time_per_token_is_rounded_up() {
        for (text, nanos) in [
            ("10", 100_000_000),
            ("3", 333_333_334),
            ("1000000", 1_000),
            ("999999.999999", 1_001),
            ("0.000001", 1_000_000_000_000_000),
        ] {
            let rate: Rate = text.parse().expect(text);
            assert_eq!(rate.time_per_token(), Duration::from_nanos(nanos), "{text}");
        }
    }
}
