//! Operation sequences on a retry budget, against an exact count.

use arbitrary::Arbitrary;
use holdoff::{BudgetConfig, ConfigError, Instant, RetryBudget};

use crate::amount::Share;
use crate::clock::{TestClock, Tick};
use crate::input::decoded;
use crate::model::budget::{Budget, RETRY, second};

#[derive(Arbitrary, Debug)]
struct Input {
    config: Config,
    ops: Vec<(Tick, Op)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Config {
    reserve: Count,
    capacity: Option<Count>,
    ratio: Share,
    trickle: Share,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Count {
    Any(u32),
    Few(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Deposit { times: u8 },
    Refund,
    Withdraw { times: u8 },
}

impl Count {
    const fn count(self) -> u32 {
        match self {
            Self::Any(count) => count,
            Self::Few(count) => count as u32,
        }
    }
}

impl Config {
    /// The budget and its model, or plain ones if they were rightly refused.
    pub(crate) fn build_or_preset(self) -> (RetryBudget, Budget) {
        let (reserve, ratio) = (Count::Few(2), Share::Percent(50));
        let preset = Self { reserve, capacity: None, ratio, trickle: Share::None };
        self.build().or_else(|| preset.build()).expect("nothing is wrong with it")
    }

    /// The budget and its model; the conditions are checked here once more.
    fn build(self) -> Option<(RetryBudget, Budget)> {
        let (ratio, trickle) = (self.ratio.ratio(), self.trickle.ratio());
        let reserve = self.reserve.count();
        let config = BudgetConfig::new(reserve, ratio).with_trickle(trickle);
        let (config, capacity) = match self.capacity.map(Count::count) {
            Some(capacity) => (config.with_capacity(capacity), capacity),
            None => (config, reserve.max(100)),
        };
        let built = config.build();
        if capacity == 0 || capacity > 68_719 || capacity < reserve {
            assert_eq!(built.err(), Some(ConfigError::BudgetCapacity));
            return None;
        }
        if ratio.as_ppm() > 1_000_000 || trickle.as_ppm() > 1_000_000 {
            assert_eq!(built.err(), Some(ConfigError::RatioAboveOne));
            return None;
        }
        let budget = built.expect("nothing is wrong with it");
        Some((budget, Budget::new(reserve, capacity, ratio.as_ppm(), trickle.as_ppm())))
    }
}

/// Runs a sequence of operations.
///
/// # Panics
/// If an answer is not the exact count's.
pub fn run(data: &[u8]) {
    let Some(Input { config, ops }) = decoded::<Input>(data) else { return };
    let (budget, mut model) = config.build_or_preset();
    let reserve = i128::from(budget.level(Instant::EPOCH));
    let mut clock = TestClock::default();
    let (mut calls, mut retries, mut refunds) = (0_i128, 0_i128, 0_i128);

    for (tick, op) in ops.into_iter().take(256) {
        clock.tick(tick);
        let now = clock.now();
        let is_exact = !model.is_too_far(now);
        match op {
            Op::Deposit { times } => {
                for _ in 0..times {
                    budget.deposit();
                    model.deposit();
                    calls += 1;
                }
            }
            Op::Refund => {
                budget.refund();
                model.refund();
                refunds += 1;
            }
            Op::Withdraw { times } => {
                for _ in 0..times {
                    let is_there = budget.withdraw(now).is_ok();
                    assert!(!is_exact || is_there == model.withdraw(now), "withdraw at {now:?}");
                    retries += i128::from(is_there);
                }
            }
        }
        let trickled = second(clock.latest()) * i128::from(model.trickle_ppm);
        let most = (reserve + refunds) * RETRY + calls * i128::from(model.ratio_ppm) + trickled;
        assert!(retries * RETRY <= most, "{retries} retries are too many");
        assert!(budget.level(now) <= model.capacity, "above its capacity");
        if !is_exact {
            return; // From here on a step back and a step ahead cannot be told apart.
        }
        assert_eq!(budget.level(now), model.level(now), "level at {now:?}");
    }
}
