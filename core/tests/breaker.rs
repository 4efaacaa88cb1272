//! The circuit breaker by its public face: the published failures of others, and their kinds.

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use holdoff::{
    BreakerChange, BreakerConfig, BreakerState, CircuitBreaker, ConfigError, Instant, Mode, Ratio,
};

const fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Three failures in a row, open for 10 s.
fn breaker() -> CircuitBreaker {
    built(BreakerConfig::consecutive(3))
}

fn built<const BUCKETS: usize>(config: BreakerConfig) -> CircuitBreaker<BUCKETS> {
    config.build_with_buckets().expect("the configuration is valid")
}

fn fail<const B: usize>(breaker: &CircuitBreaker<B>, times: u32, now: Instant) {
    for _ in 0..times {
        breaker.try_acquire(now).expect("closed").failure(now, || 0);
    }
}

fn succeed<const B: usize>(breaker: &CircuitBreaker<B>, times: u32, now: Instant) {
    for _ in 0..times {
        breaker.try_acquire(now).expect("closed").success(now, || 0);
    }
}

const fn open_until(millis: u64) -> BreakerState {
    BreakerState::Open { until: at(millis) }
}

// C28: App-vNext/Polly#1979, getnora-io/nora#585, github/gh-aw-mcpg#10686.
#[test]
fn a_probe_that_ends_without_evidence_frees_the_slot() {
    for end in ["neutral", "dropped", "unwound"] {
        let breaker = breaker();
        fail(&breaker, 3, at(0));
        for round in 0..100 {
            let now = at(10_000 + round);
            let probe = breaker.try_acquire(now).expect("the slot is free");
            assert!(probe.is_probe());
            assert!(breaker.try_acquire(now).is_err(), "{end}: one at a time");
            match end {
                "neutral" => probe.neutral(),
                "dropped" => drop(probe),
                _ => {
                    let call = AssertUnwindSafe(|| {
                        let _probe = probe;
                        panic!("the operation panics");
                    });
                    catch_unwind(call).expect_err("it panics");
                }
            }
        }
        let last = breaker.try_acquire(at(10_200)).expect("the slot is free");
        assert_eq!(last.success(at(10_200), || 0), Some(BreakerChange::Closed), "{end}");
        assert_eq!(breaker.state(at(10_200)), BreakerState::Closed, "{end}");
    }
}

// C29: diegosouzapw/OmniRoute#13836, BerriAI/litellm#39701.
#[test]
fn a_probe_that_never_ends_loses_the_slot_after_its_lease() {
    let breaker = breaker();
    fail(&breaker, 3, at(0));
    let hung = breaker.try_acquire(at(10_000)).expect("the open period is over");
    for refused in [10_100, 19_900, 19_999] {
        let open = breaker.try_acquire(at(refused)).expect_err("the lease holds");
        assert_eq!(open.retry_at, Some(at(20_000)));
    }
    let second = breaker.try_acquire(at(20_100)).expect("the lease is over");
    assert!(second.is_probe());
    // Whatever the first says now is ignored.
    assert_eq!(hung.success(at(20_200), || 0), None);
    assert!(breaker.try_acquire(at(20_200)).is_err());
    assert_eq!(second.success(at(20_300), || 0), Some(BreakerChange::Closed));
}

// C33: App-vNext/Polly#217, #218, #223.
#[test]
fn late_results_from_before_the_trip_change_nothing() {
    for late in ["success", "failure", "neutral"] {
        let breaker = breaker();
        let a = breaker.try_acquire(at(0)).expect("closed");
        fail(&breaker, 3, at(1_000));
        assert_eq!(breaker.state(at(1_000)), open_until(11_000));
        let probe = breaker.try_acquire(at(11_000)).expect("the open period is over");
        let during = breaker.state(at(12_000));
        match late {
            "success" => drop(a.success(at(12_000), || 0)),
            "failure" => drop(a.failure(at(12_000), || 0)),
            _ => a.neutral(),
        }
        assert_eq!(breaker.state(at(12_000)), during, "{late}");
        assert!(breaker.try_acquire(at(12_100)).is_err(), "{late}: the slot is still held");
        // The second open period is twice the first.
        let reopened = BreakerChange::Reopened { until: at(33_000) };
        assert_eq!(probe.failure(at(13_000), || 0), Some(reopened), "{late}");
    }
}

// C34: sgl-project/sglang#25811, vllm-project/router#60.
#[test]
fn neutral_outcomes_neither_count_nor_reset() {
    let breaker: CircuitBreaker = built(BreakerConfig::consecutive(5));
    for _ in 0..10 {
        breaker.try_acquire(at(0)).expect("closed").neutral();
    }
    assert_eq!(breaker.state(at(0)), BreakerState::Closed);
    fail(&breaker, 4, at(0));
    breaker.try_acquire(at(0)).expect("closed").neutral();
    fail(&breaker, 1, at(0));
    assert_eq!(breaker.state(at(0)), open_until(10_000));
}

#[test]
fn a_success_ends_a_run_of_failures() {
    let breaker = breaker();
    for _ in 0..100 {
        fail(&breaker, 2, at(0));
        succeed(&breaker, 1, at(0));
    }
    assert_eq!(breaker.state(at(0)), BreakerState::Closed);
}

#[test]
fn open_periods_double_up_to_the_maximum_and_start_again_after_a_stable_period() {
    let config = BreakerConfig::consecutive(1)
        .with_open_period(Duration::from_secs(1))
        .with_max_open_period(Duration::from_secs(10))
        .with_stable_period(Duration::from_secs(60));
    let breaker: CircuitBreaker = built(config);
    let mut now = 0;
    fail(&breaker, 1, at(now));
    for period in [1, 2, 4, 8, 10, 10, 10] {
        assert_eq!(breaker.state(at(now)), open_until(now + period * 1_000));
        now += period * 1_000;
        breaker.try_acquire(at(now)).expect("a probe").failure(at(now), || 0);
    }
    // Closed for a moment only: it goes on where it was.
    now += 10_000;
    succeed(&breaker, 1, at(now));
    fail(&breaker, 1, at(now + 59_999));
    assert_eq!(breaker.state(at(now + 59_999)), open_until(now + 69_999));
    // Closed for a stable period.
    now += 69_999;
    succeed(&breaker, 1, at(now));
    fail(&breaker, 1, at(now + 60_000));
    assert_eq!(breaker.state(at(now + 60_000)), open_until(now + 61_000));
}

#[test]
fn jitter_lengthens_an_open_period_and_never_exceeds_the_maximum() {
    for (sample, expected) in [(0, 10_000), (u64::MAX, 12_000)] {
        let config = BreakerConfig::consecutive(1).with_open_jitter(Ratio::percent(20));
        let breaker: CircuitBreaker = built(config);
        breaker.try_acquire(at(0)).expect("closed").failure(at(0), || sample);
        assert_eq!(breaker.state(at(0)), open_until(expected));
        let breaker: CircuitBreaker = built(config.with_max_open_period(Duration::from_secs(10)));
        breaker.try_acquire(at(0)).expect("closed").failure(at(0), || sample);
        let BreakerState::Open { until } = breaker.state(at(0)) else { panic!("open") };
        assert!(until <= at(10_000), "{until:?}");
    }
}

#[test]
fn it_never_opens_early_by_rounding() {
    let breaker = breaker();
    let tripped = Instant::from_nanos(1_000_001);
    fail(&breaker, 3, tripped);
    let until = tripped.saturating_add(Duration::from_secs(10));
    assert!(breaker.try_acquire(Instant::from_nanos(until.as_nanos() - 1)).is_err());
    assert!(breaker.try_acquire(until.saturating_add(Duration::from_millis(1))).is_ok());
}

#[test]
fn the_rate_rule_judges_success_and_failure_alike_once_there_is_enough() {
    let config = BreakerConfig::rate(20, Ratio::percent(50));
    // The twentieth outcome completes the window, whichever it is.
    for last in [Ok(()), Err(())] {
        let breaker: CircuitBreaker = built(config);
        let failures = if last.is_ok() { 10 } else { 9 };
        fail(&breaker, failures, at(0));
        succeed(&breaker, 19 - failures, at(0));
        assert_eq!(breaker.state(at(0)), BreakerState::Closed);
        match last {
            Ok(()) => succeed(&breaker, 1, at(0)),
            Err(()) => fail(&breaker, 1, at(0)),
        }
        assert_eq!(breaker.state(at(0)), open_until(10_000), "{last:?}");
    }
    // One failure fewer, for ever.
    let breaker: CircuitBreaker = built(config);
    for _ in 0..100 {
        fail(&breaker, 9, at(0));
        succeed(&breaker, 11, at(0));
    }
    assert_eq!(breaker.state(at(0)), BreakerState::Closed);
    // Fewer outcomes are enough where they are said to be.
    let breaker: CircuitBreaker = built(config.with_min_calls(3));
    fail(&breaker, 3, at(0));
    assert_eq!(breaker.state(at(0)), open_until(10_000));
}

#[test]
fn the_rule_over_time_forgets_what_is_old() {
    let config =
        BreakerConfig::rate_over(Duration::from_secs(30), Ratio::percent(50)).with_min_calls(10);
    let breaker: CircuitBreaker<10> = built(config);
    fail(&breaker, 9, at(0));
    // Those are out of the window. Of the next eighteen half are failures: not more than half.
    succeed(&breaker, 9, at(30_000));
    fail(&breaker, 9, at(40_000));
    assert_eq!(breaker.state(at(40_000)), BreakerState::Closed);
    fail(&breaker, 1, at(59_999));
    assert_eq!(breaker.state(at(59_999)), open_until(69_999));
    // What was counted before the trip does not trip it again.
    succeed(&breaker, 1, at(69_999));
    fail(&breaker, 9, at(69_999));
    assert_eq!(breaker.state(at(69_999)), BreakerState::Closed);
    // A leap forgets.
    fail(&breaker, 9, at(10_000_000));
    assert_eq!(breaker.state(at(10_000_000)), BreakerState::Closed);
    // A clock that steps back forgets nothing: the tenth call is judged with those nine.
    succeed(&breaker, 1, at(1));
    assert_eq!(breaker.state(at(1)), open_until(20_001)); // closed for no time: grown
}

#[test]
fn a_slow_success_is_a_failure() {
    let config = BreakerConfig::consecutive(2).with_slow_call(Duration::from_secs(1));
    let breaker: CircuitBreaker = built(config);
    for (duration, change) in [(1_000, false), (1_001, false), (1_001, true)] {
        let call = breaker.try_acquire(at(0)).expect("closed");
        assert_eq!(call.success(at(duration), || 0).is_some(), change);
    }
}

#[test]
fn several_probes_close_it_one_after_another() {
    let breaker: CircuitBreaker = built(BreakerConfig::consecutive(1).with_probes(3));
    fail(&breaker, 1, at(0));
    for probe in 1..=3 {
        let permit = breaker.try_acquire(at(10_000)).expect("the slot is free");
        assert!(breaker.try_acquire(at(10_000)).is_err(), "one at a time");
        let change = permit.success(at(10_000), || 0);
        assert_eq!(change, (probe == 3).then_some(BreakerChange::Closed));
    }
}

#[test]
fn the_mode_can_be_switched_at_any_time() {
    let breaker = breaker();
    breaker.set_mode(Mode::ForcedOpen);
    assert_eq!(breaker.try_acquire(at(0)).expect_err("forced").retry_at, None);
    assert_eq!(breaker.state(at(0)), BreakerState::ForcedOpen);
    breaker.set_mode(Mode::Disabled);
    fail(&breaker, 100, at(0));
    assert_eq!(breaker.state(at(0)), BreakerState::Disabled);
    breaker.set_mode(Mode::Shadow);
    fail(&breaker, 3, at(0));
    let refused = breaker.try_acquire(at(1)).expect("a shadow admits everything");
    assert!(refused.would_be_refused());
    refused.failure(at(1), || 0);
    assert_eq!(breaker.state(at(1)), open_until(10_000));
    assert_eq!(breaker.peek(at(1)), Ok(()));
    // A call admitted in another mode does not count.
    let old = breaker.try_acquire(at(2)).expect("a shadow admits everything");
    breaker.set_mode(Mode::Normal);
    fail(&breaker, 2, at(3));
    old.failure(at(3), || 0);
    assert_eq!(breaker.state(at(3)), BreakerState::Closed);
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let ok = BreakerConfig::consecutive(3);
    let second = Duration::from_secs(1);
    let over = |span, threshold| BreakerConfig::rate_over(span, threshold);
    for (config, error) in [
        (BreakerConfig::consecutive(0), ConfigError::BreakerRule),
        (BreakerConfig::consecutive(1).with_slow_call(Duration::ZERO), ConfigError::SlowCallZero),
        (BreakerConfig::rate(0, Ratio::percent(50)), ConfigError::BreakerRule),
        (BreakerConfig::rate(33, Ratio::percent(50)), ConfigError::BreakerRule),
        (BreakerConfig::rate(20, Ratio::ZERO), ConfigError::BreakerRule),
        (BreakerConfig::rate(20, Ratio::ppm(1_000_001)), ConfigError::BreakerRule),
        (BreakerConfig::rate(20, Ratio::ONE).with_min_calls(0), ConfigError::BreakerRule),
        (BreakerConfig::rate(20, Ratio::ONE).with_min_calls(21), ConfigError::BreakerRule),
        (over(second, Ratio::percent(50)), ConfigError::BreakerBuckets),
        (ok.with_probes(0), ConfigError::Probes),
        (ok.with_probes(16), ConfigError::Probes),
        (ok.with_lease(Duration::ZERO), ConfigError::LeaseZero),
        (ok.with_open_jitter(Ratio::ppm(1_000_001)), ConfigError::RatioAboveOne),
        (ok.with_open_period(Duration::ZERO), ConfigError::OpenPeriod),
        (ok.with_max_open_period(second), ConfigError::OpenPeriod),
        (ok.with_max_open_period(Duration::MAX), ConfigError::OpenPeriod),
    ] {
        assert_eq!(config.build().err(), Some(error), "{config:?}");
    }
    for config in [
        over(Duration::ZERO, Ratio::percent(50)),
        over(second, Ratio::ONE),
        over(second, Ratio::percent(50)).with_min_calls(0),
    ] {
        assert_eq!(
            config.build_with_buckets::<10>().err(),
            Some(ConfigError::BreakerRule),
            "{config:?}"
        );
    }
}

#[test]
fn it_is_no_larger_than_it_says() {
    assert_eq!(size_of::<CircuitBreaker>(), 48);
    assert_eq!(size_of::<CircuitBreaker<10>>(), 48 + 80);
}

// C32: App-vNext/Polly#216, resilience4j/resilience4j#1432.
#[test]
fn of_sixty_four_threads_at_the_end_of_the_open_period_exactly_one_runs() {
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::sync::Barrier;

    const THREADS: usize = 64;
    const ROUNDS: u64 = 1_000;
    let breaker = breaker();
    let barrier = Barrier::new(THREADS);
    let admitted = AtomicU32::new(0);
    let run = || {
        let mut now = 0;
        for _ in 0..ROUNDS {
            if barrier.wait().is_leader() {
                assert_eq!(admitted.swap(0, Ordering::Relaxed), u32::from(now > 0));
                breaker.set_mode(Mode::Normal);
                fail(&breaker, 3, at(now));
            }
            barrier.wait();
            now += 10_000;
            let probe = breaker.try_acquire(at(now));
            admitted.fetch_add(u32::from(probe.is_ok()), Ordering::Relaxed);
            barrier.wait();
            drop(probe);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(run);
        }
    });
    assert_eq!(admitted.into_inner(), 1);
}
