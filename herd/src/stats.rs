//! What a sample says: median and percentiles.
//!
//! Percentiles are those of Hyndman and Fan's type 8 ("Sample Quantiles in Statistical Packages",
//! 1996), which they recommend because it is unbiased for the median whatever the distribution: the
//! value at place `(n + 1/3) · p + 1/3` of the n sorted ones, interpolated between neighbours.

#![expect(clippy::float_arithmetic, reason = "statistics are about the runs, not part of them")]

use core::time::Duration;

use holdoff::Instant;
use statrs::statistics::{Data, OrderStatistics};

/// The middle of a sample and the range that nine in ten of it are in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// As many are below as above.
    pub median: f64,
    /// One in twenty is below.
    pub p5: f64,
    /// One in twenty is above.
    pub p95: f64,
}

impl Spread {
    /// The spread of `sample`, `None` if it is empty.
    #[must_use]
    pub fn of(sample: Vec<f64>) -> Option<Self> {
        if sample.is_empty() {
            return None;
        }
        let mut data = Data::new(sample);
        Some(Self { median: data.median(), p5: data.percentile(5), p95: data.percentile(95) })
    }

    /// The same spread in another unit.
    #[must_use]
    pub fn divided_by(self, divisor: f64) -> Self {
        Self { median: self.median / divisor, p5: self.p5 / divisor, p95: self.p95 / divisor }
    }
}

/// The 95th percentile of points in time, in seconds from time 0; `None` if there are none.
#[must_use]
pub fn p95_seconds(times: &[Instant]) -> Option<f64> {
    let times: Vec<f64> = times.iter().map(|&at| seconds_at(at)).collect();
    (!times.is_empty()).then(|| Data::new(times).percentile(95))
}

/// Seconds from time 0.
#[must_use]
pub const fn seconds_at(at: Instant) -> f64 {
    Duration::from_nanos(at.as_nanos()).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentiles_of_a_hundred_places_are_known() {
        // Places 5.35, 50.5 and 95.65 of 1, 2, ..., 100.
        let spread = Spread::of((1..=100).rev().map(f64::from).collect()).expect("not empty");
        for (value, expected) in [(spread.p5, 5.35), (spread.median, 50.5), (spread.p95, 95.65)] {
            assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
        }
    }

    #[test]
    fn a_single_value_is_its_own_spread_and_nothing_has_none() {
        assert_eq!(Spread::of(vec![7.0]), Some(Spread { median: 7.0, p5: 7.0, p95: 7.0 }));
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(p95_seconds(&[]), None);
        assert_eq!(p95_seconds(&[Instant::from_nanos(1_500_000_000)]), Some(1.5));
    }
}
