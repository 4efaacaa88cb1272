//! The circuit breaker: one probe, whatever happens to it.

use core::mem;

use holdoff::{BreakerChange, BreakerConfig, BreakerState, CircuitBreaker, Instant};
use loom::sync::Arc;
use loom::thread;

use super::{NOW, explore};
use crate::common::{at, secs};

/// Trips at `failures` in a row, open for 10 s.
fn closed(failures: u32) -> Arc<CircuitBreaker> {
    Arc::new(BreakerConfig::consecutive(failures).build().expect("valid"))
}

/// Tripped now.
fn open() -> Arc<CircuitBreaker> {
    let breaker = closed(1);
    fail(&breaker, NOW);
    breaker
}

fn fail(breaker: &CircuitBreaker, now: Instant) {
    breaker.try_acquire(now).expect("admitted").failure(now, || 0);
}

/// When the open period is over.
fn later() -> Instant {
    at(secs(10))
}

// Mutant: exchange-by-store
#[test]
fn of_those_who_come_at_the_end_of_the_open_period_one_probes() {
    explore(|| {
        let breaker = open();
        let ask = |breaker: &CircuitBreaker| {
            // Held for as long as the others ask.
            breaker.try_acquire(later()).map(mem::forget).is_ok()
        };
        let threads = [0; 2].map(|_| {
            let breaker = Arc::clone(&breaker);
            thread::spawn(move || ask(&breaker))
        });
        let mut admitted = u32::from(ask(&breaker));
        for thread in threads {
            admitted += u32::from(thread.join().expect("no panic"));
        }
        assert_eq!(admitted, 1);
    });
}

// Mutant: empty-drop
#[test]
fn a_dropped_probe_frees_its_place_for_another() {
    explore(|| {
        let breaker = open();
        let other = {
            let breaker = Arc::clone(&breaker);
            thread::spawn(move || drop(breaker.try_acquire(later())))
        };
        drop(breaker.try_acquire(later()));
        other.join().expect("no panic");
        let probe = breaker.try_acquire(later()).expect("the place is free");
        assert!(probe.is_probe());
        assert_eq!(probe.success(later(), || 0), Some(BreakerChange::Closed));
    });
}

// Mutant: no-lease
#[test]
fn a_silent_probe_is_replaced_by_one_other() {
    explore(|| {
        let breaker = open();
        mem::forget(breaker.try_acquire(later()).expect("the first probe"));
        let lease_over = at(secs(20));
        let other = {
            let breaker = Arc::clone(&breaker);
            thread::spawn(move || breaker.try_acquire(lease_over).map(mem::forget).is_ok())
        };
        let ours = breaker.try_acquire(lease_over).map(mem::forget).is_ok();
        let theirs = other.join().expect("no panic");
        assert!(ours != theirs, "ours {ours}, theirs {theirs}");
    });
}

// Mutant: no-generation
#[test]
fn what_calls_from_before_a_trip_report_changes_nothing() {
    for report in ["success", "failure", "drop"] {
        explore(move || {
            let breaker = closed(2);
            fail(&breaker, NOW);
            let late = {
                let breaker = Arc::clone(&breaker);
                thread::spawn(move || {
                    let Ok(call) = breaker.try_acquire(NOW) else { return };
                    if call.is_probe() {
                        return;
                    }
                    match report {
                        "success" => drop(call.success(later(), || 0)),
                        "failure" => drop(call.failure(later(), || 0)),
                        _ => drop(call),
                    }
                })
            };
            fail_and_probe(&breaker);
            late.join().expect("no panic");
        });
    }
}

/// Trips, and holds a probe while others report.
fn fail_and_probe(breaker: &CircuitBreaker) {
    if let Ok(call) = breaker.try_acquire(NOW) {
        call.failure(NOW, || 0);
    }
    let until = match breaker.state(NOW) {
        BreakerState::Open { until } => until,
        // A success has kept it closed.
        BreakerState::Closed => return,
        state => panic!("{state:?}"),
    };
    let probe = breaker.try_acquire(until).expect("the open period is over");
    assert!(probe.is_probe());
    assert!(breaker.try_acquire(until).is_err(), "the place is held");
    assert!(matches!(probe.failure(until, || 0), Some(BreakerChange::Reopened { .. })));
}

// Mutant: exchange-by-store
#[test]
fn failures_at_once_trip_once_and_leave_the_timer_alone() {
    explore(|| {
        let breaker = closed(1);
        let report = |breaker: &CircuitBreaker, now: Instant| {
            breaker.try_acquire(now).ok().and_then(|call| call.failure(now, || 0))
        };
        let other = {
            let breaker = Arc::clone(&breaker);
            thread::spawn(move || report(&breaker, at(secs(1))))
        };
        let ours = report(&breaker, at(secs(2)));
        let theirs = other.join().expect("no panic");
        assert!(ours.is_some() != theirs.is_some(), "ours {ours:?}, theirs {theirs:?}");
        let Some(BreakerChange::Opened { until }) = ours.or(theirs) else {
            panic!("it opened");
        };
        assert_eq!(breaker.state(at(secs(2))), BreakerState::Open { until });
    });
}
