//! Lengths of time and fractions.

use std::time::Duration;

use arbitrary::Arbitrary;
use holdoff::Ratio;

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Unit {
    Day,
    Hour,
    Micros,
    Millis,
    Minute,
    Nanos,
    Second,
    Year,
}

impl Unit {
    pub(crate) const fn nanos(self) -> u64 {
        match self {
            Self::Nanos => 1,
            Self::Micros => 1_000,
            Self::Millis => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60 * Self::Second.nanos(),
            Self::Hour => 60 * Self::Minute.nanos(),
            Self::Day => 24 * Self::Hour.nanos(),
            Self::Year => 365 * Self::Day.nanos(),
        }
    }
}

/// A length of time of any size, round ones being likely.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Length {
    Any { secs: u64, nanos: u32 },
    Nanos(u64),
    Round { count: u8, unit: Unit },
}

impl Length {
    pub(crate) fn duration(self) -> Duration {
        match self {
            Self::Any { secs, nanos } => Duration::new(secs, nanos % 1_000_000_000),
            Self::Nanos(nanos) => Duration::from_nanos(nanos),
            Self::Round { count, unit } => {
                Duration::from_nanos(u64::from(count).saturating_mul(unit.nanos()))
            }
        }
    }
}

/// A fraction, round ones being likely.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Share {
    None,
    Percent(u16),
    Ppm(u32),
    Times(u8),
}

impl Share {
    pub(crate) const fn ratio(self) -> Ratio {
        match self {
            Self::None => Ratio::ZERO,
            Self::Percent(percent) => Ratio::percent(percent as u32),
            Self::Ppm(ppm) => Ratio::ppm(ppm),
            Self::Times(times) => Ratio::percent(100 * times as u32),
        }
    }
}
