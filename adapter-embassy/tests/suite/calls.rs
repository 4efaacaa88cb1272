//! Whole calls.

use core::cell::{Cell, RefCell};
use core::num::NonZeroU32;
use core::time::Duration;
use std::rc::Rc;

use holdoff_embassy::{
    BackoffConfig, BreakerConfig, BudgetConfig, Counters, Event, Failure, Hint, Jitter,
    Observation, Observer, Policy, PolicyConfig, Quota, Random, Rate, Ratio, Stop, Upstream, retry,
    retry_when, valid,
};

use crate::bench::{Bench, millis};

/// 1, 2, 4 s, four attempts.
pub(crate) const STRICT: Policy = valid!(strict().build());

pub(crate) const fn strict() -> PolicyConfig {
    const BACKOFF: BackoffConfig =
        BackoffConfig::exponential(Duration::from_secs(1)).with_jitter(Jitter::None);
    PolicyConfig::new(valid!(BACKOFF.build())).with_max_attempts(4)
}

#[test]
fn waits_follow_the_policy_on_embassys_clock() {
    let mut bench = Bench::new();
    let starts = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&starts);
    let gave_up = bench.run(async move {
        let mut random = Random::from_entropy(1);
        let operation = || {
            seen.borrow_mut().push(millis());
            async { Err::<(), _>(Failure::transient()) }
        };
        retry(&STRICT, &mut random, operation).await.unwrap_err()
    });
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Attempts, 4));
    assert_eq!(gave_up.elapsed, Duration::from_secs(7));
    assert_eq!(*starts.borrow(), [0, 1_000, 3_000, 7_000]);
}

#[test]
fn the_callers_error_comes_back_untouched_and_is_judged_by_the_caller() {
    let mut bench = Bench::new();
    let gave_up = bench.run(async {
        let mut random = Random::from_entropy(1);
        let mut errors = ["busy", "no such topic"].into_iter();
        let judge = |error: &&str| match *error {
            "busy" => Failure::throttled().with_hint(Hint::after(Duration::from_secs(5))),
            _ => Failure::permanent(),
        };
        let operation = || core::future::ready(Err::<(), _>(errors.next().unwrap()));
        retry_when(&STRICT, &mut random, judge, operation).await.unwrap_err()
    });
    assert_eq!((gave_up.last, gave_up.stop), (Some("no such topic"), Stop::Permanent));
    assert!(gave_up.elapsed >= Duration::from_secs(5), "the hint is kept: {:?}", gave_up.elapsed);
}

#[test]
fn an_attempt_is_cut_off_by_its_timeout_and_the_call_by_its_deadline() {
    let mut bench = Bench::new();
    let gave_up = bench.run(async {
        let policy = strict().with_attempt_timeout(Duration::from_millis(250)).build().unwrap();
        let mut random = Random::from_entropy(1);
        let silent = async |_| core::future::pending::<Result<(), Failure>>().await;
        holdoff_embassy::Prepared::new(&policy, &mut random)
            .with_deadline(Duration::from_secs(3))
            .run(silent)
            .await
            .unwrap_err()
    });
    // 0.25 s, 1 s, 0.25 s; the next would start at 3.5 s.
    assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Deadline, 2));
    assert_eq!((gave_up.elapsed, gave_up.timed_out), (Duration::from_millis(1_500), true));
}

#[test]
fn what_is_shared_is_shared_by_all_tasks() {
    static UPLINK: Upstream<8> = Upstream::new(STRICT)
        .with_breaker(valid!(BreakerConfig::consecutive(3).build()))
        .with_budget(valid!(BudgetConfig::new(100, Ratio::percent(10)).build()))
        .with_counters(Counters::new());

    let mut bench = Bench::new();
    let calls = Rc::new(Cell::new(0));
    let tasks: Vec<_> = (0..3)
        .map(|seed| {
            let calls = Rc::clone(&calls);
            bench.spawn(async move {
                let mut random = Random::from_entropy(seed);
                let operation = || {
                    calls.set(calls.get() + 1);
                    async { Err::<(), _>(Failure::transient()) }
                };
                UPLINK.call(&mut random, operation).await.unwrap_err().stop
            })
        })
        .collect();
    let stops = tasks.iter().map(|task| bench.until(task).1);
    assert!(stops.into_iter().all(|stop| matches!(stop, Stop::CircuitOpen { .. })));
    assert_eq!(calls.get(), 3, "three failures in a row open it for everybody");
    assert_eq!(UPLINK.counters().unwrap().snapshot().attempts, 3);
}

#[test]
fn settings_of_one_call_are_of_that_call_alone() {
    #[derive(Debug, Default)]
    struct Watch(core::sync::atomic::AtomicU32);

    impl Observer for Watch {
        fn on_event(&self, observation: &Observation) {
            if let Event::Attempt { .. } = observation.event {
                self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    static WATCH: Watch = Watch(core::sync::atomic::AtomicU32::new(0));
    static UPLINK: Upstream<2> = Upstream::new(STRICT)
        .with_limiter(valid!(Quota::new(Rate::per_second(1), 10)))
        .with_counters(Counters::new());

    let mut bench = Bench::new();
    let stops = bench.run(async {
        let mut random = Random::from_entropy(1);
        let fails = async |_| Err::<(), _>(Failure::transient());
        let nested = UPLINK.prepare(&mut random).nested().with_cost(4).run(fails).await;
        let bounded = UPLINK
            .prepare(&mut random)
            .with_observer(&WATCH)
            .with_max_attempts(NonZeroU32::new(2).unwrap())
            .run(fails)
            .await;
        let other = UPLINK.prepare(&mut random).with_policy(Policy::STANDARD);
        let costly = other.with_cost(11).run(fails).await;
        [nested, bounded, costly].map(|result| result.unwrap_err().stop)
    });
    assert_eq!(stops[0], Stop::Nested);
    assert_eq!(stops[1], Stop::Attempts);
    assert_eq!(stops[2], Stop::CostTooHigh { burst: 10 });
    assert_eq!(WATCH.0.load(core::sync::atomic::Ordering::Relaxed), 2);
    assert_eq!(UPLINK.counters().unwrap().snapshot().attempts, 3);
}
