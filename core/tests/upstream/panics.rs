//! An operation that panics: a failure of the service as far as anybody can tell.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::panic::AssertUnwindSafe;
use core::task::Poll;
use std::panic::catch_unwind;

use holdoff::drive::{self, NoQueue};
use holdoff::{
    BreakerChange, BreakerState, Call, Counters, Event, Failure, Instant, Safety, Step, Stop,
    Upstream, classified,
};

use crate::common::timer::ManualTimer;
use crate::common::{at, secs};
use crate::{POLICY, Recorder, breaker, budget, call, level, poll, start, succeed, trip};

/// The ways in which an operation can panic.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Run by the blocking driver.
    Blocking,
    /// Before there is a future.
    Early,
    /// When its future is first polled.
    FirstPoll,
    /// After it has waited.
    SecondPoll,
}

const WAYS: [Way; 4] = [Way::Blocking, Way::Early, Way::FirstPoll, Way::SecondPoll];

/// Makes a call whose attempts panic, or gives what it came to if it made none.
fn run(way: Way, upstream: &Upstream, now: Instant) -> Option<Stop> {
    let begin = |now| upstream.call(&POLICY, Safety::Idempotent, now);
    let call = AssertUnwindSafe(|| match way {
        Way::Blocking => {
            let clock = Cell::new(now);
            let operation = |_| -> Result<(), Failure> { panic!("the operation panics") };
            drive::run_blocking(&clock, |_| {}, begin, || 0, classified, operation)
        }
        Way::Early | Way::FirstPoll | Way::SecondPoll => {
            let timer = ManualTimer::new(now);
            let operation = |_| panicking(way, &timer);
            timer.run(drive::run(&timer, &NoQueue, begin, || 0, classified, operation))
        }
    });
    let result = catch_unwind(call).ok()?;
    Some(result.expect_err("it does not succeed").stop)
}

fn panicking(way: Way, timer: &ManualTimer) -> impl Future<Output = Result<(), Failure>> {
    assert!(!matches!(way, Way::Early), "the operation panics");
    let mut has_waited = false;
    poll_fn(move |_| {
        assert!(matches!(way, Way::SecondPoll) && !has_waited, "the operation panics");
        has_waited = true;
        timer.wake();
        Poll::Pending
    })
}

/// What the breaker of `upstream` does at `now`.
fn state(upstream: &Upstream, now: Instant) -> BreakerState {
    upstream.breaker().expect("it has one").state(now)
}

// C30: afreidah/s3-orchestrator#424, alibaba/sentinel-golang#202.
#[test]
fn a_probe_that_panics_is_a_failure() {
    for way in WAYS {
        let upstream = Upstream::new().with_breaker(breaker(3));
        trip(&upstream, at(secs(0)));
        assert_eq!(run(way, &upstream, at(secs(10))), None, "{way:?}: the panic goes on");
        // Open for twice as long, and refused at once.
        let until = at(secs(30));
        assert_eq!(state(&upstream, at(secs(11))), BreakerState::Open { until }, "{way:?}");
        let open = Some(Stop::CircuitOpen { retry_at: until });
        for refused in [11, 29] {
            assert_eq!(run(way, &upstream, at(secs(refused))), open, "{way:?}: no second panic");
        }
        let mut probe = call(&upstream, until);
        start(&mut probe, until);
        succeed(&mut probe, until);
        assert_eq!(state(&upstream, until), BreakerState::Closed, "{way:?}");
    }
}

#[test]
fn panics_in_a_row_trip_the_breaker() {
    for way in WAYS {
        let upstream = Upstream::new().with_breaker(breaker(5)).with_budget(budget(3));
        for panics in 1..=5 {
            assert_eq!(state(&upstream, at(secs(0))), BreakerState::Closed, "{panics} {way:?}");
            assert_eq!(run(way, &upstream, at(secs(0))), None, "{way:?}");
        }
        let until = at(secs(10));
        assert_eq!(state(&upstream, at(secs(1))), BreakerState::Open { until }, "{way:?}");
        assert_eq!(level(&upstream), 3, "{way:?}: nothing was retried");
    }
}

// One that ran for long before it panicked opens it no less.
#[test]
fn the_open_period_after_a_panic_begins_with_the_panic() {
    let upstream = Upstream::new().with_breaker(breaker(1));
    let clock = Cell::new(at(secs(0)));
    let call = AssertUnwindSafe(|| {
        let begin = |now| upstream.call(&POLICY, Safety::Idempotent, now);
        let operation = |_| -> Result<(), Failure> {
            clock.set(at(secs(60)));
            panic!("the operation panics")
        };
        drive::run_blocking(&clock, |_| {}, begin, || 0, classified, operation)
    });
    assert!(catch_unwind(call).is_err());
    assert_eq!(state(&upstream, at(secs(60))), BreakerState::Open { until: at(secs(70)) });
}

#[test]
fn a_trip_by_panics_is_seen_by_those_who_watch() {
    for way in WAYS {
        let recorder = Recorder::forever();
        let upstream = Upstream::new()
            .with_breaker(breaker(1))
            .with_counters(Counters::new())
            .with_observer(recorder);
        assert_eq!(run(way, &upstream, at(secs(0))), None);
        let seen = recorder.events();
        let opened =
            seen.iter().any(|event| matches!(event, Event::Breaker(BreakerChange::Opened { .. })));
        assert!(opened, "{way:?}: {seen:?}");
        assert_eq!(upstream.counters().expect("it has some").snapshot().opens, 1, "{way:?}");
    }
}

// Two calls in flight, one of which panics: the other's report counts as ever.
#[test]
fn a_panic_poisons_nobody_else() {
    for way in WAYS {
        let upstream = Upstream::new().with_breaker(breaker(2)).with_budget(budget(1));
        let mut other: Call<'_> = call(&upstream, at(secs(0)));
        start(&mut other, at(secs(0)));
        assert_eq!(run(way, &upstream, at(secs(0))), None);
        crate::fail(&mut other, at(secs(0)));
        assert_eq!(state(&upstream, at(secs(1))), BreakerState::Open { until: at(secs(10)) });
        let open = Stop::CircuitOpen { retry_at: at(secs(10)) };
        assert_eq!(poll(&mut other, at(secs(0))), Step::Stop(open), "{way:?}");
    }
}
