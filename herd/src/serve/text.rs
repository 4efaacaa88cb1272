//! Quantities as they are written in scenario files and headers.

use core::fmt;
use core::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::rate::Rate;

/// A duration such as `"1m 30s"`.
pub(super) mod duration {
    use super::*;

    pub(in super::super) fn deserialize<'de, D>(deserializer: D) -> Result<Duration, D::Error>
    where
        D: Deserializer<'de>,
    {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map_err(|_| {
            let expected = "a duration such as \"1m 30s\" or \"250ms\"";
            D::Error::invalid_value(Unexpected::Str(&text), &expected)
        })
    }

    /// One that may be missing.
    pub(in super::super) mod optional {
        use super::*;

        pub(in super::super::super) fn deserialize<'de, D>(
            deserializer: D,
        ) -> Result<Option<Duration>, D::Error>
        where
            D: Deserializer<'de>,
        {
            super::deserialize(deserializer).map(Some)
        }
    }
}

/// A rate as a number or a string, its digits taken as they are written.
pub(super) fn rate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
    struct Written;

    impl Visitor<'_> for Written {
        type Value = Rate;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number from 0.000001 to 1000000 with at most 6 decimals")
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<Rate, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Rate, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Rate, E> {
            text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Rate, E> {
            self.visit_str(&number.to_string())
        }
    }

    deserializer.deserialize_any(Written)
}

/// A duration in whole seconds, rounded up.
pub(super) fn seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}

/// A duration in whole milliseconds, rounded up.
pub(super) const fn milliseconds(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000)
}

/// A duration as Go writes it, rounded up to a millisecond: `28ms`, `1.5s`, `6m0s`.
pub(super) fn go_duration(duration: Duration) -> String {
    let millis = milliseconds(duration);
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    if seconds == 0 {
        return if millis == 0 { "0s".to_owned() } else { format!("{millis}ms") };
    }
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let decimals = match millis {
        0 => String::new(),
        _ => format!(".{millis:03}").trim_end_matches('0').to_owned(),
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{decimals}s"),
        (0, _) => format!("{minutes}m{seconds}{decimals}s"),
        _ => format!("{hours}h{minutes}m{seconds}{decimals}s"),
    }
}

/// A time since 1970 as RFC 3339 has it, rounded up to a second.
pub(super) fn rfc3339(time: Duration) -> String {
    timestamp(time).to_string()
}

/// A time since 1970 as an HTTP-date (RFC 9110 section 5.6.7), rounded up to a second.
pub(super) fn http_date(time: Duration) -> String {
    // Only years of five digits or none cannot be written; a timestamp has neither.
    rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&timestamp(time))
        .unwrap_or_default()
}

fn timestamp(time: Duration) -> Timestamp {
    i64::try_from(seconds(time))
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_is_written_as_go_does() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ms"),
            (28_000_000, "28ms"),
            (999_000_001, "1s"),
            (1_000_000_000, "1s"),
            (1_500_000_000, "1.5s"),
            (8_640_000_000, "8.64s"),
            (60_000_000_000, "1m0s"),
            (360_000_000_000, "6m0s"),
            (366_012_000_000, "6m6.012s"),
            (3_600_000_000_000, "1h0m0s"),
            (90_061_000_000_000, "25h1m1s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text, "{nanos} ns");
        }
    }

    #[test]
    fn dates_are_rounded_up_and_never_fail() {
        let time = Duration::from_millis(784_111_776_001);
        assert_eq!(rfc3339(time), "1994-11-06T08:49:37Z");
        assert_eq!(http_date(time), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(rfc3339(Duration::from_secs(784_111_777)), "1994-11-06T08:49:37Z");
        assert!(rfc3339(Duration::MAX).starts_with("9999-12-"));
        assert!(http_date(Duration::MAX).contains(" 9999 "));
    }
}
