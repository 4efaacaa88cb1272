//! The experiment: all runs of all strategies, and what they come to.

use std::io;

use holdoff::ConfigError;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::setup::Setup;
use crate::sim::{Observer, Scenario, Totals};
use crate::stats::{Spread, p95_seconds, seconds_at};
use crate::strategy::Strategy;
use crate::wire::{self, WireError};

/// Some strategies in one set-up, each run a number of times.
#[derive(Clone, Debug)]
pub struct Experiment {
    scenarios: Vec<Scenario>,
    runs: u32,
    seed: u64,
}

/// Between clients and provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Nothing but events.
    VirtualTime,
    /// HTTP on loopback, in real time.
    Wire,
}

/// How a scenario is run once.
type Run<O, E> = fn(&Scenario, &mut O, &mut Xoshiro256PlusPlus) -> Result<Totals, E>;

/// What one strategy came to over all its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The strategy.
    pub strategy: Strategy,
    /// Clients that got what they wanted.
    pub ok: Spread,
    /// Requests that reached the provider.
    pub requests: Spread,
    /// Those it answered with 429.
    pub rejected: Spread,
    /// When the last successful answer was there (s). `None` if no run had any.
    pub last_s: Option<Spread>,
    /// When 95 % of the successful answers were there (s). `None` if no run had any.
    pub p95_s: Option<Spread>,
}

impl Experiment {
    /// `runs` runs (at least one) of each of `strategies`.
    ///
    /// # Errors
    /// [`ConfigError::RefillTooLong`] if one of them needs a limiter that cannot hold the set-up's
    /// rate and burst.
    pub fn new(
        setup: Setup,
        strategies: &[Strategy],
        runs: u32,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let scenario = |&strategy| Scenario::new(setup, strategy);
        let scenarios = strategies.iter().map(scenario).collect::<Result<_, _>>()?;
        Ok(Self { scenarios, runs: runs.max(1), seed })
    }

    /// Runs everything, strategy by strategy, in virtual time.
    ///
    /// # Errors
    /// The observer's.
    pub fn run(&self, observer: &mut impl Observer) -> io::Result<Vec<Row>> {
        self.rows(observer, Scenario::run)
    }

    /// Runs everything, strategy by strategy, over HTTP and in real time.
    ///
    /// # Errors
    /// The observer's, or what keeps the clients from their answers.
    pub fn run_on_wire(&self, observer: &mut impl Observer) -> Result<Vec<Row>, WireError> {
        self.rows(observer, wire::run)
    }

    fn rows<O: Observer, E: From<io::Error>>(
        &self,
        observer: &mut O,
        run: Run<O, E>,
    ) -> Result<Vec<Row>, E> {
        self.scenarios.iter().map(|scenario| self.row(scenario, observer, run)).collect()
    }

    /// Run r draws from the seed's generator jumped r times, 2¹²⁸ numbers each time: so a row is
    /// the same whatever else is run beside it, and more runs only add to it.
    fn row<O: Observer, E: From<io::Error>>(
        &self,
        scenario: &Scenario,
        observer: &mut O,
        run: Run<O, E>,
    ) -> Result<Row, E> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut sample = Sample::default();
        for number in 0..self.runs {
            observer.on_start(scenario.strategy(), number)?;
            sample.add(&run(scenario, observer, &mut generator.clone())?);
            generator.jump();
        }
        Ok(sample.into_row(scenario.strategy()))
    }
}

impl Row {
    /// The row of one run.
    ///
    /// ```
    /// use holdoff::Instant;
    /// use holdoff_herd::experiment::Row;
    /// use holdoff_herd::sim::Totals;
    /// use holdoff_herd::strategy::Strategy;
    ///
    /// let successes = vec![Instant::EPOCH];
    /// let row = Row::of(Strategy::None, &Totals { requests: 2, rejected: 1, successes });
    /// assert_eq!((row.ok.median, row.requests.p5, row.rejected.p95), (1.0, 2.0, 1.0));
    /// ```
    #[must_use]
    pub fn of(strategy: Strategy, totals: &Totals) -> Self {
        let mut sample = Sample::default();
        sample.add(totals);
        sample.into_row(strategy)
    }
}

/// The figures of all runs so far.
#[derive(Default)]
struct Sample {
    ok: Vec<f64>,
    requests: Vec<f64>,
    rejected: Vec<f64>,
    last_s: Vec<f64>,
    p95_s: Vec<f64>,
}

impl Sample {
    fn add(&mut self, totals: &Totals) {
        // Counts stay far below 2^53, so they are exact.
        self.ok.push(totals.successes.len() as f64);
        self.requests.push(totals.requests as f64);
        self.rejected.push(totals.rejected as f64);
        self.last_s.extend(totals.successes.last().map(|&at| seconds_at(at)));
        self.p95_s.extend(p95_seconds(&totals.successes));
    }

    fn into_row(self, strategy: Strategy) -> Row {
        const NONE: Spread = Spread { median: 0.0, p5: 0.0, p95: 0.0 };
        Row {
            strategy,
            // There is at least one run, so the counts have a spread.
            ok: Spread::of(self.ok).unwrap_or(NONE),
            requests: Spread::of(self.requests).unwrap_or(NONE),
            rejected: Spread::of(self.rejected).unwrap_or(NONE),
            last_s: Spread::of(self.last_s),
            p95_s: Spread::of(self.p95_s),
        }
    }
}
