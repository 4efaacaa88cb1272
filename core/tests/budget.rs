//! The retry budget: exact to the millionth, whatever the order, the clock and the threads.

#![cfg(not(loom))]

mod common;

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use common::{at, millis, secs};
use holdoff::{
    BackoffConfig, BudgetConfig, BudgetEmpty, ConfigError, Failure, Instant, Policy, PolicyConfig,
    Ratio, RetryBudget, Safety, Stop, Upstream, classified, drive,
};
use proptest::prelude::*;

const NOW: Instant = Instant::EPOCH;

fn budget(config: BudgetConfig) -> RetryBudget {
    config.build().expect("the configuration is valid")
}

fn deposit(budget: &RetryBudget, calls: u32) {
    (0..calls).for_each(|_| budget.deposit());
}

/// How many retries there are, taken out one by one.
fn withdraw_all(budget: &RetryBudget, now: Instant) -> u32 {
    let level = budget.level(now);
    let taken = (0..).take_while(|_| budget.withdraw(now).is_ok()).count();
    assert_eq!(budget.withdraw(now), Err(BudgetEmpty));
    assert_eq!(budget.level(now), 0);
    assert_eq!(u32::try_from(taken), Ok(level), "the level says how many");
    level
}

// C47: tower-rs/tower#857.
#[test]
fn a_ratio_earns_its_exact_share() {
    for (ppm, calls, retries) in [
        (600_000, 10, 6),
        (700_000, 10, 7),
        (300_000, 10, 3),
        (100_000, 10, 1),
        (1_000_000, 10, 10),
        (1_000, 1_000, 1),
        (1_000, 999, 0),
        (333_333, 3, 0), // 0.999999
        (333_334, 3, 1),
        (1, 1_000_000, 1),
        (1, 999_999, 0),
        (999_999, 1_000_000, 999_999),
        (0, 1_000, 0),
    ] {
        let config = BudgetConfig::new(0, Ratio::ppm(ppm)).with_capacity(68_719);
        // All at the end, and as soon as there is one.
        let retries = u32::min(retries, 68_719);
        let saved = budget(config);
        deposit(&saved, calls);
        assert_eq!(withdraw_all(&saved, NOW), retries, "{ppm} ppm of {calls}");
        if retries < 68_719 {
            let spent = budget(config);
            let taken = (0..calls).filter(|_| {
                spent.deposit();
                spent.withdraw(NOW).is_ok()
            });
            assert_eq!(taken.count(), retries as usize, "{ppm} ppm of {calls}, one by one");
        }
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let half = Ratio::percent(50);
    let capacity = |capacity| BudgetConfig::new(5, half).with_capacity(capacity);
    for (config, error) in [
        (capacity(0), ConfigError::BudgetCapacity),
        (capacity(4), ConfigError::BudgetCapacity),
        (capacity(68_720), ConfigError::BudgetCapacity),
        (BudgetConfig::new(68_720, half), ConfigError::BudgetCapacity),
        (BudgetConfig::new(0, half).with_capacity(0), ConfigError::BudgetCapacity),
        (BudgetConfig::new(5, Ratio::ppm(1_000_001)), ConfigError::RatioAboveOne),
        (
            BudgetConfig::new(5, half).with_trickle(Ratio::ppm(1_000_001)),
            ConfigError::RatioAboveOne,
        ),
    ] {
        assert_eq!(config.build().err(), Some(error), "{config:?}");
    }
    for (config, most) in [
        (capacity(5), 5),
        (capacity(68_719), 68_719),
        (BudgetConfig::new(0, half), 100),
        (BudgetConfig::new(99, half), 100),
        (BudgetConfig::new(101, half), 101),
        (BudgetConfig::new(68_719, Ratio::ONE), 68_719),
    ] {
        let budget = budget(config);
        deposit(&budget, 2 * most);
        assert_eq!(withdraw_all(&budget, NOW), most, "{config:?}");
    }
}

#[test]
fn a_deposit_into_a_budget_that_is_nearly_full_loses_only_the_excess() {
    let budget = budget(BudgetConfig::new(1, Ratio::percent(60)).with_capacity(2));
    deposit(&budget, 2); // 1 + 0.6 + 0.6: full, and 0.2 lost
    budget.withdraw(NOW).expect("two");
    deposit(&budget, 1); // 1.6
    budget.withdraw(NOW).expect("one");
    assert_eq!(budget.withdraw(NOW), Err(BudgetEmpty)); // 0.6
    deposit(&budget, 1); // 1.2
    budget.withdraw(NOW).expect("one");
    deposit(&budget, 1); // 0.8: the 0.2 were not forgotten
    assert_eq!(budget.level(NOW), 0);
    deposit(&budget, 1);
    assert_eq!(budget.level(NOW), 1);
}

#[test]
fn what_is_put_back_can_be_taken_again_and_no_more() {
    let budget = budget(BudgetConfig::new(3, Ratio::ZERO).with_capacity(3));
    for _ in 0..100 {
        budget.withdraw(NOW).expect("it was put back");
        budget.refund();
    }
    budget.refund(); // never taken: it does not overflow
    assert_eq!(withdraw_all(&budget, NOW), 3);
    budget.refund();
    assert_eq!(withdraw_all(&budget, NOW), 1);
}

/// A budget as exact fractions of a retry, in millionths.
#[derive(Debug)]
struct Exact {
    level: u128,
    full: u128,
    ratio: u128,
    trickle: u128,
    /// Up to when it has trickled (s); it begins with the first retry that is asked for.
    trickled_until: Option<u128>,
}

impl Exact {
    fn level(&self, now: Instant) -> u128 {
        let second = u128::from(now.as_nanos()) / 1_000_000_000;
        let since = self.trickled_until.unwrap_or(second);
        let trickled = second.saturating_sub(since) * self.trickle;
        (self.level + trickled).min(self.full)
    }

    const fn add(&mut self, millionths: u128) {
        let level = self.level + millionths;
        self.level = if level < self.full { level } else { self.full };
    }

    fn withdraw(&mut self, now: Instant) -> Result<(), BudgetEmpty> {
        self.level = self.level(now);
        let second = u128::from(now.as_nanos()) / 1_000_000_000;
        self.trickled_until = Some(self.trickled_until.map_or(second, |until| until.max(second)));
        self.level = self.level.checked_sub(1_000_000).ok_or(BudgetEmpty)?;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Back(Duration),
    Deposit(u32),
    Forward(Duration),
    Refund,
    Withdraw(u32),
}

const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn any_operation() -> impl Strategy<Value = Operation> {
    let time = |longest: Duration| common::between(Duration::ZERO, longest);
    prop_oneof![
        2 => time(secs(100)).prop_map(Operation::Back),
        4 => (0..30_u32).prop_map(Operation::Deposit),
        4 => time(secs(20)).prop_map(Operation::Forward),
        2 => (0..5_u64).prop_map(|seconds| Operation::Forward(secs(seconds))),
        1 => time(YEAR / 50).prop_map(Operation::Forward),
        1 => Just(Operation::Refund),
        6 => (1..30_u32).prop_map(Operation::Withdraw),
    ]
}

fn any_ppm() -> impl Strategy<Value = u32> {
    prop_oneof![0..=1_000_000_u32, 0..1_000_u32, Just(0), Just(1_000_000), Just(999_999)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_ratio_earns_the_whole_part_of_its_product(ppm in any_ppm(), calls in 0..5_000_u32) {
        let budget = budget(BudgetConfig::new(0, Ratio::ppm(ppm)).with_capacity(5_000));
        deposit(&budget, calls);
        let retries = u64::from(calls) * u64::from(ppm) / 1_000_000;
        prop_assert_eq!(u64::from(withdraw_all(&budget, NOW)), retries);
    }

    #[test]
    fn it_is_as_full_as_exact_fractions_are(
        (reserve, spare) in (0..20_u32, 0..20_u32),
        ratio in any_ppm(),
        trickle in prop_oneof![Just(0), any_ppm()],
        operations in prop::collection::vec(any_operation(), 1..60),
    ) {
        let capacity = (reserve + spare).max(1);
        let config = BudgetConfig::new(reserve, Ratio::ppm(ratio)).with_capacity(capacity);
        let budget = budget(config.with_trickle(Ratio::ppm(trickle)));
        let million = |n: u32| u128::from(n) * 1_000_000;
        let mut exact = Exact {
            level: million(reserve),
            full: million(capacity),
            ratio: ratio.into(),
            trickle: trickle.into(),
            trickled_until: None,
        };
        let (mut now, mut latest) = (NOW, NOW);
        let (mut calls, mut taken, mut refunds) = (0, 0, 0);
        // A look at the epoch, from where time is counted.
        prop_assert_eq!(budget.withdraw(now), exact.withdraw(now));
        taken += u32::from(reserve > 0);
        for operation in operations {
            match operation {
                Operation::Back(time) => now = now.saturating_sub(time),
                Operation::Forward(time) => now = now.saturating_add(time),
                Operation::Deposit(times) => {
                    deposit(&budget, times);
                    (0..times).for_each(|_| exact.add(exact.ratio));
                    calls += times;
                }
                Operation::Refund => {
                    budget.refund();
                    exact.add(1_000_000);
                    refunds += 1;
                }
                Operation::Withdraw(times) => for _ in 0..times {
                    let answer = budget.withdraw(now);
                    prop_assert_eq!(answer, exact.withdraw(now));
                    taken += u32::from(answer.is_ok());
                },
            }
            latest = latest.max(now);
            prop_assert_eq!(u128::from(budget.level(now)), exact.level(now) / 1_000_000);
            // The promise, whatever the order and the clock.
            let seconds = u128::from(latest.as_nanos()) / 1_000_000_000;
            let earned = u128::from(calls) * exact.ratio + seconds * exact.trickle;
            prop_assert!(million(taken) <= million(reserve) + million(refunds) + earned);
        }
    }
}

#[test]
fn a_trickle_counts_whole_seconds_and_only_forward() {
    let config = BudgetConfig::new(0, Ratio::ZERO).with_capacity(10);
    let budget = budget(config.with_trickle(Ratio::percent(50)));
    assert_eq!(budget.withdraw(NOW), Err(BudgetEmpty));
    for (now, level) in [
        (millis(1_999), 0),
        (secs(2), 1),
        (secs(3), 1),
        (secs(4), 2),
        (secs(4), 2), // stands still
        (secs(1), 0), // steps back: reading takes nothing and gives nothing
        (secs(5), 2),
        (secs(1_000), 10), // leaps: full, and no more
    ] {
        assert_eq!(budget.level(at(now)), level, "{now:?}");
    }
    budget.withdraw(at(secs(100))).expect("full");
    // It has trickled up to there: a clock that goes back and forth earns nothing twice.
    for _ in 0..100 {
        for now in [secs(0), secs(50), secs(100)] {
            assert_eq!(budget.level(at(now)), 9, "{now:?}");
        }
    }
    assert_eq!(withdraw_all(&budget, at(secs(50))), 9);
    assert_eq!(budget.level(at(secs(101))), 0);
    assert_eq!(withdraw_all(&budget, at(secs(102))), 1);
}

#[test]
fn a_budget_that_idles_for_years_is_full() {
    for years in [1, 2, 4, 5, 7] {
        let config = BudgetConfig::new(1, Ratio::ZERO).with_capacity(7);
        let budget = budget(config.with_trickle(Ratio::ppm(1_000)));
        budget.withdraw(at(secs(1))).expect("the reserve");
        assert_eq!(withdraw_all(&budget, at(YEAR * years)), 7, "{years} years");
    }
}

#[test]
fn a_trickle_begins_with_the_first_look_and_not_at_the_clocks_epoch() {
    // Half a minute, an hour, and a clock that counts from 1970.
    for start in [secs(30), secs(3_600), secs(1_767_225_600)] {
        for reserve in [0, 2] {
            let config = BudgetConfig::new(reserve, Ratio::ZERO).with_capacity(10);
            let budget = budget(config.with_trickle(Ratio::ONE));
            assert_eq!(withdraw_all(&budget, at(start)), reserve, "the reserve, at {start:?}");
            assert_eq!(withdraw_all(&budget, at(start + secs(3))), 3, "3 s after {start:?}");
        }
    }
}

#[test]
fn threads_take_out_what_was_put_in_and_not_one_more() {
    const THREADS: u32 = 4;
    const CALLS: u32 = 10_000;
    let ratio = 123_457;
    let config = BudgetConfig::new(7, Ratio::ppm(ratio)).with_capacity(68_719);
    let budget = budget(config);
    let taken = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (budget, taken) = (&budget, &taken);
            scope.spawn(move || {
                for call in 0..CALLS {
                    budget.deposit();
                    if budget.withdraw(NOW).is_ok() {
                        if (call + thread) % 3 == 0 {
                            budget.refund();
                        } else {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let left = withdraw_all(&budget, NOW);
    let earned = u64::from(THREADS * CALLS) * u64::from(ratio) / 1_000_000;
    assert_eq!(u64::from(taken.into_inner() + left), 7 + earned);
}

/// Runs a call without delays: attempts made, and why it stopped if it did.
fn run(upstream: &Upstream, policy: &Policy, outcome: Result<(), Failure>) -> (u32, Option<Stop>) {
    let clock = Cell::new(NOW);
    let attempts = Cell::new(0);
    let result = drive::run_blocking(
        &clock,
        |delay| clock.set(clock.get().saturating_add(delay)),
        |now| upstream.call(policy, Safety::Idempotent, now),
        || 0,
        classified,
        |_| {
            attempts.set(attempts.get() + 1);
            outcome
        },
    );
    (attempts.get(), result.err().map(|gave_up| gave_up.stop))
}

// C48: aws/aws-sdk-go-v2#3550, aws/aws-sdk-java-v2#5345, awslabs/aws-sdk-rust#1234 and #1423. Their
// 500 at 5 a retry and 1 a success, in retries.
#[test]
fn a_budget_ends_a_storm_and_refills_with_calls_that_are_not_retried() {
    let backoff = BackoffConfig::constant(Duration::ZERO).build().expect("valid");
    let policy = PolicyConfig::new(backoff).with_max_attempts(1_000).build().expect("valid");
    for (ratio, calls, retries) in [(20, 50, 10), (20, 49, 9), (20, 5, 1), (20, 4, 0), (100, 7, 7)]
    {
        let budget = budget(BudgetConfig::new(100, Ratio::percent(ratio)));
        let upstream = Upstream::new().with_budget(budget);
        let budget = upstream.budget().expect("it has one");
        let storm = run(&upstream, &policy, Err(Failure::transient()));
        assert_eq!(storm, (101, Some(Stop::Budget)), "the call and 100 retries");
        assert_eq!(budget.level(NOW), 0);
        for _ in 0..calls {
            assert_eq!(run(&upstream, &policy, Ok(())), (1, None));
        }
        // As read, before any retry.
        assert_eq!(budget.level(NOW), retries, "{ratio} % of {calls}");
        assert_eq!(withdraw_all(budget, NOW), retries);
    }
    // The next call's own share comes in when it is made, too.
    let budget = budget(BudgetConfig::new(100, Ratio::percent(20)));
    let upstream = Upstream::new().with_budget(budget);
    run(&upstream, &policy, Err(Failure::transient()));
    for _ in 0..50 {
        run(&upstream, &policy, Ok(()));
    }
    let (attempts, stop) = run(&upstream, &policy, Err(Failure::transient()));
    assert_eq!((attempts, stop), (11, Some(Stop::Budget)), "exactly ten retries");
}
