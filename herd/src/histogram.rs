//! Arrivals over time in bins that widen as time goes on.

use core::time::Duration;

use crate::provider::Verdict;
use crate::rate::Rate;
use crate::sim::Arrival;

/// More bins than this are drawn together.
const BINS_MAX: usize = 300;

/// Arrivals counted in bins of equal width.
///
/// A bin starts about as wide as one token takes, so what the provider can keep up with is one
/// arrival a bin; when there are too many bins, neighbours are put together.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// In nanoseconds: 1 or 2 times a power of ten.
    width: u64,
    bins: Vec<Bin>,
}

/// What arrived in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) accepted: u32,
    pub(crate) rejected: u32,
}

impl Histogram {
    pub(crate) fn new(rate: Rate) -> Self {
        let token = rate.time_per_token().as_nanos();
        let mut histogram = Self { width: 1, bins: Vec::new() };
        while u128::from(histogram.wider()) <= token {
            histogram.width = histogram.wider();
        }
        histogram
    }

    pub(crate) fn add(&mut self, arrival: &Arrival) {
        let mut index = self.index(arrival);
        while index >= BINS_MAX {
            self.widen();
            index = self.index(arrival);
        }
        if self.bins.len() <= index {
            self.bins.resize(index + 1, Bin::default());
        }
        // Counts fit: the set-up's clients are a u32 and make few attempts each at one time.
        match arrival.verdict {
            Verdict::Accepted => self.bins[index].accepted += 1,
            Verdict::Rejected { .. } => self.bins[index].rejected += 1,
        }
    }

    pub(crate) const fn width(&self) -> Duration {
        Duration::from_nanos(self.width)
    }

    pub(crate) fn bins(&self) -> &[Bin] {
        &self.bins
    }

    fn index(&self, arrival: &Arrival) -> usize {
        usize::try_from(arrival.at.as_nanos() / self.width).unwrap_or(usize::MAX)
    }

    fn widen(&mut self) {
        let wider = self.wider();
        let group = usize::try_from(wider / self.width).unwrap_or(usize::MAX);
        self.bins = self.bins.chunks(group).map(Bin::sum).collect();
        self.width = wider;
    }

    /// The next width: 1, 2, 10, 20, 100, ...
    const fn wider(&self) -> u64 {
        // A width is 1 or 2 times a power of ten; of the two only the first has a leading 1.
        if self.width / 10_u64.pow(self.width.ilog10()) == 1 {
            self.width * 2
        } else {
            self.width * 5
        }
    }
}

impl Bin {
    fn sum(bins: &[Self]) -> Self {
        bins.iter().fold(Self::default(), |sum, bin| Self {
            accepted: sum.accepted + bin.accepted,
            rejected: sum.rejected + bin.rejected,
        })
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use holdoff::Instant;

    use super::*;

    fn arrival(nanos: u64, verdict: Verdict) -> Arrival {
        Arrival { at: Instant::from_nanos(nanos), client: 0, attempt: 1, verdict }
    }

    #[test]
    fn bins_start_as_wide_as_a_token_takes() {
        for (rate, nanos) in [
            ("10", 100_000_000),
            ("3", 200_000_000),
            ("1000000", 1_000),
            ("0.000001", 1_000_000_000_000_000),
        ] {
            let histogram = Histogram::new(rate.parse().expect("a rate"));
            assert_eq!(histogram.width(), Duration::from_nanos(nanos), "{rate}");
        }
    }

    #[test]
    fn widening_keeps_every_arrival_in_its_place() {
        let rejected = Verdict::Rejected { retry_after: NonZeroU32::MIN };
        let mut histogram = Histogram::new("10".parse().expect("a rate"));
        for (millis, verdict) in
            [(0, Verdict::Accepted), (0, rejected), (199, rejected), (200, Verdict::Accepted)]
        {
            histogram.add(&arrival(millis * 1_000_000, verdict));
        }
        let bin = |accepted, rejected| Bin { accepted, rejected };
        assert_eq!(histogram.bins(), [bin(1, 1), bin(0, 1), bin(1, 0)]);

        // One past the last bin of 100 ms.
        histogram.add(&arrival(30_000_000_000, rejected));
        assert_eq!(histogram.width(), Duration::from_millis(200));
        assert_eq!(histogram.bins()[..2], [bin(1, 2), bin(1, 0)]);
        assert_eq!(histogram.bins()[150], bin(0, 1));
        assert_eq!(histogram.bins().len(), 151);

        // The end of the longest run.
        histogram.add(&arrival(1 << 62, rejected));
        assert!(histogram.bins().len() <= BINS_MAX);
        let total = Bin::sum(histogram.bins());
        assert_eq!(total, bin(2, 4));
    }
}
