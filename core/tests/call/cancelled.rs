//! A call that is told to stop.

use core::cell::Cell;
use core::future::{Future, pending};
use core::time::Duration;

use holdoff::drive::{self, GaveUp, NoQueue, Queue, QueueFull};
use holdoff::{
    BackoffConfig, BreakerConfig, BreakerState, BudgetConfig, Call, CircuitBreaker, Counters,
    Failure, Hint, Instant, Limiter, Outcome, PolicyConfig, Quota, Rate, Ratio, Safety, Step, Stop,
    Timer, Upstream, classified,
};

use crate::common::timer::ManualTimer;
use crate::common::{at, millis, secs};

// C61: johanhaleby/occurrent#866, gojek/heimdall#145, electron-userland/electron-builder#10126.
#[test]
fn whatever_it_waits_for_it_stops_then_and_says_what_it_knows() {
    let backoff = BackoffConfig::constant(secs(60)).build().expect("valid");
    let policy = PolicyConfig::new(backoff).with_max_hint(Duration::MAX).build().expect("valid");
    let busy = Failure::transient();
    let hinted = Failure::throttled().with_hint(Hint::after(secs(277_403)));
    // The attempt takes 1 s. When it is told to stop, what for it waits then, what it knows.
    for (cancelled_at, failure, tokens, attempts, last) in [
        (millis(0), busy, 1, 0, None),
        (millis(500), busy, 1, 1, None),
        (millis(1_010), busy, 1, 1, Some(busy)),
        (secs(60), busy, 1, 1, Some(busy)),
        (millis(1_010), hinted, 1, 1, Some(hinted)),
        (secs(50), busy, 0, 0, None),
    ] {
        let timer = &ManualTimer::new(Instant::EPOCH);
        let limiter = Limiter::new(Quota::new(Rate::new(1, secs(100)), 1).expect("valid"));
        limiter.try_acquire(Instant::EPOCH, 1 - tokens).expect("full");
        let sent = Cell::new(0);
        let answer = timer.run(drive::run_until(
            timer.sleep_until(at(cancelled_at)),
            timer,
            &NoQueue,
            |now| Call::new(&policy, Safety::Idempotent, now).with_limiter(&limiter, 1),
            || 0,
            classified,
            |_| {
                sent.set(sent.get() + 1);
                async {
                    timer.sleep(secs(1)).await;
                    Err::<(), _>(failure)
                }
            },
        ));
        let GaveUp { last: told, stop, attempts: made, elapsed, .. } = answer.expect_err("failed");
        assert_eq!((stop, made, told, elapsed), (Stop::Cancelled, attempts, last, cancelled_at));
        assert_eq!((sent.get(), timer.sleeping()), (attempts, 0));
    }
}

/// A line whose head stays where it is.
struct Stuck;

impl Queue for Stuck {
    type Place = ();

    fn join(&self, _place: Option<()>) -> impl Future<Output = Result<(), QueueFull>> {
        pending()
    }
}

#[test]
fn the_time_in_line_counts() {
    let timer = &ManualTimer::new(Instant::EPOCH);
    let limiter = Limiter::new(Quota::new(Rate::per_second(1), 1).expect("valid"));
    let policy = PolicyConfig::standard().build().expect("valid");
    let answer = timer.run(drive::run_until(
        timer.sleep_until(at(secs(7))),
        timer,
        &Stuck,
        |now| Call::new(&policy, Safety::Idempotent, now).with_limiter(&limiter, 1),
        || 0,
        classified::<(), Failure>,
        async |_| Ok(()),
    ));
    let GaveUp { stop, attempts, elapsed, .. } = answer.expect_err("it stands in line");
    assert_eq!((stop, attempts, elapsed), (Stop::Cancelled, 0, secs(7)));
}

#[test]
fn what_is_done_is_not_cancelled() {
    let timer = &ManualTimer::new(Instant::EPOCH);
    let policy = PolicyConfig::standard().build().expect("valid");
    let answer = timer.run(drive::run_until(
        timer.sleep_until(at(secs(1))),
        timer,
        &NoQueue,
        |now| Call::new(&policy, Safety::Idempotent, now),
        || 0,
        classified::<_, Failure>,
        async |_| Ok(7),
    ));
    assert_eq!(answer, Ok(7));
}

#[test]
fn giving_up_gives_everything_back_and_is_told_once() {
    let policy = PolicyConfig::standard().build().expect("valid");
    let breaker: CircuitBreaker = BreakerConfig::consecutive(1).build().expect("valid");
    breaker.try_acquire(at(secs(0))).expect("closed").failure(at(secs(0)), || 0);
    let upstream = Upstream::new()
        .with_breaker(breaker)
        .with_budget(BudgetConfig::new(1, Ratio::ZERO).build().expect("valid"))
        .with_counters(Counters::new());
    let now = at(secs(10));
    let level = || upstream.budget().expect("it has one").level(now);
    let free = BreakerState::HalfOpen { probing_until: None };

    // A probe in flight: its place is free again.
    let mut call = upstream.call(&policy, Safety::Idempotent, now);
    assert!(matches!(call.poll(now, || 0), Step::Attempt(_)));
    call.give_up(now, Stop::Cancelled);
    assert_eq!(upstream.breaker().map(|breaker| breaker.state(now)), Some(free));
    // A report that comes after all changes nothing, nor does another reason.
    call.record(now, Outcome::Success, || 0);
    call.give_up(now, Stop::QueueFull);
    assert_eq!(call.poll(now, || 0), Step::Stop(Stop::Cancelled));

    // A retry decided and not sent: back in the budget.
    let mut call = upstream.call(&policy, Safety::Idempotent, now);
    call.poll(now, || 0);
    call.record(now, Outcome::Failure(Failure::throttled().with_hint(Hint::Malformed)), || 0);
    assert!(matches!(call.poll(now, || 0), Step::Backoff { .. }));
    assert_eq!(level(), 0);
    call.give_up(now, Stop::Cancelled);
    assert_eq!(level(), 1);
    drop(call);
    assert_eq!(level(), 1, "once");

    // One that is done is done.
    let mut call = upstream.call(&policy, Safety::Idempotent, now);
    call.poll(now, || 0);
    call.record(now, Outcome::Success, || 0);
    call.give_up(now, Stop::Cancelled);
    assert_eq!(call.poll(now, || 0), Step::Done);

    let stops = upstream.counters().expect("it has some").snapshot().stops;
    assert_eq!((stops.cancelled, stops.queue_full), (2, 0));
}
