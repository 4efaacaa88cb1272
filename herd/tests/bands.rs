//! The published experiment lands where it has to: exactly where nothing is left to chance, else in
//! the range of nine in ten runs of an independent model of the same set-up.

use core::ops::RangeInclusive;
use std::io;

use holdoff::Instant;
use holdoff_herd::experiment::{Experiment, Row};
use holdoff_herd::setup::Setup;
use holdoff_herd::sim::{Observer, Unobserved};
use holdoff_herd::stats::Spread;
use holdoff_herd::strategy::Strategy;

const RUNS: u32 = 200;

fn row(strategy: Strategy, runs: u32, seed: u64, observer: &mut impl Observer) -> Row {
    let experiment = Experiment::new(Setup::PUBLISHED, &[strategy], runs, seed).expect("valid");
    experiment.run(observer).expect("nobody fails")[0]
}

const fn always(value: f64) -> Spread {
    Spread { median: value, p5: value, p95: value }
}

#[test]
fn what_is_not_left_to_chance_is_exact_in_every_run() {
    for (strategy, ok, requests) in [
        (Strategy::None, 20.0, 100.0),
        (Strategy::LlmRetry3, 36.0, 255.0),
        (Strategy::AnthropicSdk, 40.0, 250.0),
        (Strategy::Limiter, 100.0, 100.0),
    ] {
        // Run by run, so that nothing hides in a percentile.
        for seed in 0..RUNS {
            let row = row(strategy, 1, u64::from(seed), &mut Unobserved);
            assert_eq!(row.ok, always(ok), "{strategy}, seed {seed}");
            assert_eq!(row.requests, always(requests), "{strategy}, seed {seed}");
            assert_eq!(row.rejected, always(requests - ok), "{strategy}, seed {seed}");
        }
    }
}

#[test]
fn medians_are_inside_the_bands_whatever_the_seed() {
    type Bands = [RangeInclusive<f64>; 3];
    let rows: [(Strategy, f64, Bands); 5] = [
        (Strategy::LlmRetry3, 36.0, [255.0..=255.0, 1.55..=1.65, 0.0..=1.65]),
        (Strategy::AnthropicSdk, 40.0, [250.0..=250.0, 2.0..=2.0, 2.0..=2.0]),
        (Strategy::LlmRetry8, 100.0, [374.0..=377.0, 16.3..=16.8, 15.6..=16.3]),
        (Strategy::FullJitter, 100.0, [406.0..=419.0, 11.9..=22.3, 9.2..=12.2]),
        (Strategy::RetryAfter, 100.0, [312.0..=318.0, 9.6..=14.1, 8.3..=9.7]),
    ];
    for seed in 1..=3 {
        for (strategy, ok, [requests, last, p95]) in &rows {
            let row = row(*strategy, RUNS, seed, &mut Unobserved);
            let (last_s, p95_s) = (row.last_s.expect("answers"), row.p95_s.expect("answers"));
            let name = format!("{strategy}, seed {seed}");
            assert_eq!(row.ok.median, *ok, "{name}");
            for (band, median) in [(requests, row.requests), (last, last_s), (p95, p95_s)] {
                assert!(band.contains(&median.median), "{name}: {median:?} is not in {band:?}");
            }
        }
    }
}

#[test]
fn the_limiter_reaches_the_floor_in_every_run() {
    let row = row(Strategy::Limiter, RUNS, 1, &mut Unobserved);
    assert_eq!(row.last_s, Some(always(Setup::PUBLISHED.floor().as_secs_f64())));
    assert_eq!(row.rejected, always(0.0));
}

/// When the last run's arrivals were.
#[derive(Default)]
struct Arrivals(Vec<Instant>);

impl Observer for Arrivals {
    fn on_start(&mut self, _: Strategy, _: u32) -> io::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn on_arrival(&mut self, arrival: &holdoff_herd::sim::Arrival) -> io::Result<()> {
        self.0.push(arrival.at);
        Ok(())
    }
}

#[test]
fn the_seed_decides_every_run_and_nothing_else_does() {
    let arrivals = |runs, seed| {
        let mut arrivals = Arrivals::default();
        row(Strategy::FullJitter, runs, seed, &mut arrivals);
        arrivals.0
    };
    assert_eq!(arrivals(1, 7), arrivals(1, 7));
    assert_ne!(arrivals(1, 7), arrivals(1, 8), "another seed");
    assert_ne!(arrivals(1, 7), arrivals(2, 7), "another run");
}

#[test]
fn a_row_does_not_depend_on_the_others() {
    let all = Experiment::new(Setup::PUBLISHED, &Strategy::ALL, 5, 1).expect("valid");
    let together = all.run(&mut Unobserved).expect("nobody fails");
    for (strategy, together) in Strategy::ALL.into_iter().zip(together) {
        assert_eq!(row(strategy, 5, 1, &mut Unobserved), together, "{strategy}");
    }
}
