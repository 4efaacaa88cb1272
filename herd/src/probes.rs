//! The probes: a circuit breaker and a retry policy, each asked what others got wrong.
//!
//! All of them ask holdoff's own [`CircuitBreaker`](holdoff::CircuitBreaker),
//! [`Call`](holdoff::Call) and [`Failover`](holdoff::Failover); only the service and the clock are
//! made up.

pub mod flaky;
pub mod recovered;
pub mod retried;
pub mod still_down;
mod tested;

use core::num::NonZeroU32;
use std::io;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use self::flaky::Flaky;
use self::recovered::Recovered;
use self::retried::{Retried, Trouble};
use self::still_down::StillDown;
pub use self::tested::FAILURES_TO_TRIP;

/// How much is probed where chance is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbesConfig {
    /// The seed of everything random.
    pub seed: u64,
    /// Runs of the flaky service, each with chance of its own.
    pub seeds: NonZeroU32,
    /// Calls that reach the flaky service in each run.
    pub calls: NonZeroU32,
}

impl ProbesConfig {
    /// Seed 1, 200 seeds, and as many calls as in the publication: 1000.
    pub const STANDARD: Self = Self {
        seed: 1,
        // Unwrapped when this is compiled.
        seeds: NonZeroU32::new(200).unwrap(),
        calls: NonZeroU32::new(1000).unwrap(),
    };
}

impl Default for ProbesConfig {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// What the probes found.
///
/// ```
/// use holdoff_herd::probes::{Probes, ProbesConfig};
///
/// let probes = Probes::run(&ProbesConfig::STANDARD)?;
/// assert_eq!((probes.still_down.reached, probes.still_down.failed_fast), (1, 49));
/// assert_eq!(probes.recovered.successes_to_close, Some(1));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Probes {
    /// 50 calls at once to a service that is still down.
    pub still_down: StillDown,
    /// What it takes to close the breaker of a service that is back.
    pub recovered: Recovered,
    /// A breaker before a service that fails at random.
    pub flaky: Flaky,
    /// Each of [`Trouble::ALL`], and how often it is tried.
    pub retried: Vec<Retried>,
}

impl Probes {
    /// Probes everything; the same configuration finds the same.
    ///
    /// # Errors
    /// The operating system's if it cannot start [`still_down::CALLS`] threads.
    pub fn run(config: &ProbesConfig) -> io::Result<Self> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(config.seed);
        Ok(Self {
            still_down: still_down::probe()?,
            recovered: recovered::probe(),
            flaky: flaky::probe(config.calls, config.seeds, generator.clone()),
            retried: Trouble::ALL
                .into_iter()
                .map(|trouble| retried::probe(trouble, &mut generator))
                .collect(),
        })
    }
}
