//! The service fails at random: the breaker should bear it, and trip when it should.
//!
//! Five failures in a row are what the breaker was told to trip at, and chance brings them about:
//! of 1000 calls, 30 % of which fail, four runs in five see them at least once. So the question is
//! not whether it trips but whether each trip is real and is got over.

use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::{BreakerChange, BreakerState, CircuitBreaker, Instant};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::tested;
use crate::stats::Spread;

/// How many of a hundred calls fail.
pub const FAILING_PERCENT: u32 = 30;

/// What became of the calls, over all seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flaky {
    /// Calls that reached the service, of each seed.
    pub calls: u32,
    /// Runs, each with chance of its own.
    pub seeds: u32,
    /// What the breaker did after the last call.
    pub ends: Ends,
    /// Those of the calls that failed.
    pub failures: Spread,
    /// Calls refused by the open breaker and made again when it said. One at a time, so there is
    /// one for each trip and for each probe that failed, but for the last call.
    pub refused: Spread,
    /// How often it tripped.
    pub trips: Trips,
}

/// In how many seeds the breaker ended in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// [`BreakerState::Closed`].
    pub closed: u32,
    /// [`BreakerState::HalfOpen`].
    pub half_open: u32,
    /// [`BreakerState::Open`].
    pub open: u32,
}

/// How often a closed breaker opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trips {
    /// Seeds with at least one trip.
    pub seeds: u32,
    /// Trips of all seeds.
    pub total: u64,
    /// Trips at which the service had just failed five times in a row.
    pub at_a_run_of_five: u64,
    /// Runs of at least five failures in what the service answered: as many as trips if none was
    /// missed either.
    pub runs_of_five: u64,
    /// The median of the trips of a seed.
    pub median: f64,
    /// The most trips of a seed.
    pub max: u32,
}

/// From the start of a call to its end; the next one starts then.
const CALL: Duration = Duration::from_millis(100);

/// As many of a generator's numbers are below as calls fail.
const FAILS_BELOW: u64 = u64::MAX / 100 * FAILING_PERCENT as u64;

/// Seed s draws from `generator` jumped s times, 2¹²⁸ numbers each time.
pub(super) fn probe(
    calls: NonZeroU32,
    seeds: NonZeroU32,
    mut generator: Xoshiro256PlusPlus,
) -> Flaky {
    let mut sample = Sample::default();
    for _ in 0..seeds.get() {
        sample.add(Run::of(&tested::closed(), calls.get(), &mut generator.clone()));
        generator.jump();
    }
    sample.into_flaky(calls.get(), seeds.get())
}

/// One seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    end: BreakerState,
    failures: u32,
    refused: u32,
    trips: u32,
    at_a_run_of_five: u32,
    runs_of_five: u32,
}

impl Run {
    fn of(breaker: &CircuitBreaker, calls: u32, random: &mut impl Rng) -> Self {
        let mut now = Instant::EPOCH;
        let mut record = Record::default();
        let (mut refused, mut trips, mut at_a_run_of_five) = (0, 0, 0);
        while record.calls < calls {
            let permit = match breaker.try_acquire(now) {
                Ok(permit) => permit,
                Err(open) => {
                    refused += 1;
                    now = open.retry_at.unwrap_or(now).max(now.saturating_add(CALL));
                    continue;
                }
            };
            now = now.saturating_add(CALL);
            let fails = random.next_u64() < FAILS_BELOW;
            record.add(fails);
            let sample = || random.next_u64();
            let change =
                if fails { permit.failure(now, sample) } else { permit.success(now, sample) };
            if let Some(BreakerChange::Opened { .. }) = change {
                trips += 1;
                at_a_run_of_five += u32::from(record.run >= tested::FAILURES_TO_TRIP);
            }
        }
        let Record { failures, runs_of_five, .. } = record;
        let end = breaker.state(now);
        Self { end, failures, refused, trips, at_a_run_of_five, runs_of_five }
    }
}

/// What the service answered, counted without the breaker.
#[derive(Default)]
struct Record {
    calls: u32,
    failures: u32,
    /// Failures since the last success.
    run: u32,
    runs_of_five: u32,
}

impl Record {
    fn add(&mut self, fails: bool) {
        self.calls += 1;
        self.failures += u32::from(fails);
        self.run = if fails { self.run + 1 } else { 0 };
        // Once, however long it gets.
        self.runs_of_five += u32::from(self.run == tested::FAILURES_TO_TRIP);
    }
}

/// The figures of all seeds so far.
#[derive(Default)]
struct Sample {
    ends: Ends,
    failures: Vec<f64>,
    refused: Vec<f64>,
    trips: Vec<f64>,
    max: u32,
    seeds: u32,
    total: u64,
    at_a_run_of_five: u64,
    runs_of_five: u64,
}

impl Sample {
    fn add(&mut self, run: Run) {
        match run.end {
            BreakerState::Closed => self.ends.closed += 1,
            BreakerState::HalfOpen { .. } => self.ends.half_open += 1,
            // The others are modes, which nobody sets.
            _ => self.ends.open += 1,
        }
        self.failures.push(f64::from(run.failures));
        self.refused.push(f64::from(run.refused));
        self.trips.push(f64::from(run.trips));
        self.max = self.max.max(run.trips);
        self.seeds += u32::from(run.trips > 0);
        self.total += u64::from(run.trips);
        self.at_a_run_of_five += u64::from(run.at_a_run_of_five);
        self.runs_of_five += u64::from(run.runs_of_five);
    }

    fn into_flaky(self, calls: u32, seeds: u32) -> Flaky {
        // There is at least one seed, so there is a spread.
        const NONE: Spread = Spread { median: 0.0, p5: 0.0, p95: 0.0 };
        let spread = |sample| Spread::of(sample).unwrap_or(NONE);
        let trips = Trips {
            seeds: self.seeds,
            total: self.total,
            at_a_run_of_five: self.at_a_run_of_five,
            runs_of_five: self.runs_of_five,
            median: spread(self.trips).median,
            max: self.max,
        };
        let (failures, refused) = (spread(self.failures), spread(self.refused));
        Flaky { calls, seeds, ends: self.ends, failures, refused, trips }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdoff::{BreakerConfig, valid};
    use rand_xoshiro::rand_core::SeedableRng;

    fn number(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).expect("at least 1")
    }

    fn probed(calls: u32, seeds: u32, seed: u64) -> Flaky {
        probe(number(calls), number(seeds), Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    #[test]
    fn every_trip_is_real_and_none_is_missed_whatever_the_seed() {
        for seed in 0..20 {
            let Flaky { trips, ends, .. } = probed(1000, 50, seed);
            assert!(trips.total > 0, "seed {seed}");
            assert_eq!(trips.at_a_run_of_five, trips.total, "seed {seed}");
            assert_eq!(trips.runs_of_five, trips.total, "seed {seed}");
            assert_eq!(ends.closed + ends.open, 50, "seed {seed}: {ends:?}");
            assert!(ends.closed >= 45, "seed {seed}: {ends:?}");
        }
    }

    #[test]
    fn figures_are_those_of_chance() {
        for seed in 0..10 {
            let Flaky { failures, refused, trips, .. } = probed(1000, 200, seed);
            // Binomial: mean 300, standard deviation 14.5.
            assert!((296.0..=304.0).contains(&failures.median), "seed {seed}: {failures:?}");
            assert!((270.0..=282.0).contains(&failures.p5), "seed {seed}: {failures:?}");
            assert!((318.0..=330.0).contains(&failures.p95), "seed {seed}: {failures:?}");
            // A run of five begins after a success: 0.7 · 0.3⁵ · 1000 = 1.7 a seed, none in 18 %.
            assert!((145..=180).contains(&trips.seeds), "seed {seed}: {trips:?}");
            assert!((270..=410).contains(&trips.total), "seed {seed}: {trips:?}");
            assert!((1.0..=2.0).contains(&trips.median), "seed {seed}: {trips:?}");
            // Three in ten probes fail, and each brings another refusal.
            assert!((1.0..=4.0).contains(&refused.median), "seed {seed}: {refused:?}");
        }
    }

    #[test]
    fn too_few_calls_cannot_trip_it() {
        for seed in 0..100 {
            let flaky = probed(4, 10, seed);
            assert_eq!(flaky.trips.total, 0);
            assert_eq!(flaky.ends, Ends { closed: 10, half_open: 0, open: 0 });
            assert_eq!(flaky.refused, Spread { median: 0.0, p5: 0.0, p95: 0.0 });
        }
    }

    #[test]
    fn a_breaker_that_trips_too_early_or_too_late_would_be_found_out() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let early = valid!(BreakerConfig::consecutive(3).build());
        let run = Run::of(&early, 10_000, &mut random);
        assert!(run.at_a_run_of_five < run.trips, "{run:?}");
        let late = valid!(BreakerConfig::consecutive(7).build());
        let run = Run::of(&late, 10_000, &mut random);
        assert_eq!(run.at_a_run_of_five, run.trips);
        assert!(run.trips < run.runs_of_five, "{run:?}");
    }
}
