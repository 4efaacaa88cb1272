//! The order of one attempt: deadline, breaker (a look), limiter, breaker, attempt.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use holdoff::{
    BackoffConfig, BreakerState, Failure, Hint, Instant, Mode, Outcome, PolicyConfig, Safety, Step,
    Stop, Upstream,
};

use crate::common::{at, millis, secs};
use crate::{POLICY, breaker, budget, call, fail, level, limiter, poll, start, succeed, trip};

fn state(upstream: &Upstream, now: Instant) -> BreakerState {
    upstream.breaker().expect("it has one").state(now)
}

fn tokens(upstream: &Upstream, now: Instant) -> u32 {
    upstream.limiter().expect("it has one").available(now)
}

const FREE: BreakerState = BreakerState::HalfOpen { probing_until: None };

#[test]
fn an_open_breaker_fails_fast_without_a_token_and_without_a_place_in_the_line() {
    let drained = |tokens| {
        let limiter = limiter(100, 3);
        limiter.try_acquire(at(secs(0)), tokens).expect("full");
        limiter
    };
    // Whether or not there are tokens; also a cost that can never be paid.
    for (taken, cost) in [(0, 1), (3, 1), (0, 4), (0, 0)] {
        let upstream = Upstream::new()
            .with_limiter(drained(taken))
            .with_breaker(breaker(3))
            .with_budget(budget(2));
        trip(&upstream, at(secs(0)));
        for now in [secs(1), secs(9), millis(9_999)] {
            let mut call = call(&upstream, at(now)).with_cost(cost);
            assert!(!call.wants_permit(at(now)));
            let open = Stop::CircuitOpen { retry_at: at(secs(10)) };
            assert_eq!(poll(&mut call, at(now)), Step::Stop(open));
            assert_eq!(call.retry_after(), Some(secs(10) - now));
            assert_eq!((call.attempts(), level(&upstream)), (0, 2));
            assert_eq!(tokens(&upstream, at(now)), 3 - taken);
        }
        // Its time has come: those who pay stand in line again.
        let call = call(&upstream, at(secs(10))).with_cost(cost);
        assert_eq!(call.wants_permit(at(secs(10))), cost == 1);
    }
}

#[test]
fn a_breaker_that_is_forced_open_names_no_time() {
    let upstream = Upstream::new().with_limiter(limiter(1, 1)).with_breaker(breaker(3));
    upstream.breaker().expect("it has one").set_mode(Mode::ForcedOpen);
    let mut call = call(&upstream, at(secs(0)));
    assert!(!call.wants_permit(at(secs(0))));
    let never = Stop::CircuitOpen { retry_at: Instant::MAX };
    assert_eq!(poll(&mut call, at(secs(0))), Step::Stop(never));
    assert_eq!((call.retry_after(), tokens(&upstream, at(secs(0)))), (None, 1));
}

#[test]
fn a_breaker_in_shadow_stops_nobody_from_paying() {
    let upstream = Upstream::new().with_limiter(limiter(1, 2)).with_breaker(breaker(1));
    upstream.breaker().expect("it has one").set_mode(Mode::Shadow);
    for left in [1, 0] {
        let mut call = call(&upstream, at(secs(0)));
        assert!(call.wants_permit(at(secs(0))));
        start(&mut call, at(secs(0)));
        fail(&mut call, at(secs(0)));
        assert_eq!(tokens(&upstream, at(secs(0))), left);
    }
    assert_eq!(state(&upstream, at(secs(0))), BreakerState::Open { until: at(secs(10)) });
}

#[test]
fn a_call_that_is_too_late_asks_neither_the_breaker_nor_the_limiter() {
    let upstream = Upstream::new().with_limiter(limiter(100, 1)).with_breaker(breaker(1));
    let policy = POLICY.with_deadline(secs(5));
    trip(&upstream, at(secs(0)));
    for (late, stop) in [
        (secs(4), Stop::CircuitOpen { retry_at: at(secs(10)) }),
        (secs(5), Stop::Deadline),
        (secs(20), Stop::Deadline),
    ] {
        let mut call = upstream.call(&policy, Safety::Idempotent, at(secs(0)));
        assert!(!call.wants_permit(at(late)));
        assert_eq!(poll(&mut call, at(late)), Step::Stop(stop));
    }
    assert_eq!(state(&upstream, at(secs(20))), FREE);
    assert_eq!(tokens(&upstream, at(secs(20))), 1);
}

#[test]
fn a_probe_that_the_limiter_delays_does_not_hold_the_slot() {
    let upstream = Upstream::new().with_limiter(limiter(3, 1)).with_breaker(breaker(3));
    trip(&upstream, at(secs(0)));
    upstream.limiter().expect("it has one").try_acquire(at(secs(10)), 1).expect("full");
    let mut waiting = call(&upstream, at(secs(10)));
    let throttled = Step::Throttled { until: at(secs(13)) };
    for now in [10, 11, 12] {
        assert!(waiting.wants_permit(at(secs(now))));
        assert_eq!(poll(&mut waiting, at(secs(now))), throttled);
        assert_eq!(state(&upstream, at(secs(now))), FREE, "at {now} s");
    }
    // Somebody else is the probe meanwhile.
    let mut free = call(&upstream, at(secs(12))).with_cost(0);
    start(&mut free, at(secs(12)));
    // Whoever waited is told so, and its token is there for the next.
    assert!(!waiting.wants_permit(at(secs(13))));
    // The longest open period for an attempt that may take any time, then the lease.
    let open = Stop::CircuitOpen { retry_at: at(secs(12 + 300 + 10)) };
    assert_eq!(poll(&mut waiting, at(secs(13))), Step::Stop(open));
    assert_eq!(tokens(&upstream, at(secs(13))), 1);
    succeed(&mut free, at(secs(13)));
    start(&mut call(&upstream, at(secs(13))), at(secs(13)));
    assert_eq!(state(&upstream, at(secs(13))), BreakerState::Closed);
}

#[test]
fn a_wait_that_ends_at_an_open_breaker_is_not_begun() {
    // The breaker opens for 10 s, the wait is 1 s.
    let backoff = BackoffConfig::constant(secs(1)).build().expect("valid");
    let policy = PolicyConfig::new(backoff).build().expect("valid");
    for (hint, mode, starts) in [
        (None, Mode::Normal, None),
        (None, Mode::Shadow, Some(1)),
        (None, Mode::Disabled, Some(1)),
        (Some(9), Mode::Normal, None),
        (Some(10), Mode::Normal, Some(10)),
        (Some(10), Mode::ForcedOpen, None),
    ] {
        let upstream = Upstream::new().with_breaker(breaker(1)).with_budget(budget(1));
        let breaker = upstream.breaker().expect("it has one");
        if mode != Mode::ForcedOpen {
            breaker.set_mode(mode);
        }
        let mut call = upstream.call(&policy, Safety::Idempotent, at(secs(0)));
        start(&mut call, at(secs(0)));
        let hint = hint.map_or(Hint::Absent, |after| Hint::after(secs(after)));
        call.record(at(secs(0)), Outcome::Failure(Failure::transient().with_hint(hint)), || 0);
        if mode == Mode::ForcedOpen {
            breaker.set_mode(mode);
        }
        let step = call.poll(at(secs(0)), || 0);
        match (starts, step) {
            (Some(then), Step::Backoff { until, .. }) => assert_eq!(until, at(secs(then))),
            (None, Step::Stop(Stop::CircuitOpen { retry_at })) => {
                let end = if mode == Mode::ForcedOpen { Instant::MAX } else { at(secs(10)) };
                assert_eq!(retry_at, end);
                assert_eq!(upstream.budget().map(|budget| budget.level(at(secs(0)))), Some(1));
            }
            (starts, step) => panic!("{mode:?}, {hint:?}: {step:?} instead of {starts:?}"),
        }
    }
}

// It may be over by then, and well.
#[test]
fn a_probe_under_way_does_not_stop_a_wait() {
    let upstream = Upstream::new().with_breaker(breaker(2));
    let mut waiting = call(&upstream, at(secs(0)));
    start(&mut waiting, at(secs(0)));
    trip(&upstream, at(secs(0)));
    let mut probe = call(&upstream, at(secs(10)));
    start(&mut probe, at(secs(10)));
    fail(&mut waiting, at(secs(10)));
    let Step::Backoff { until, .. } = poll(&mut waiting, at(secs(10))) else { panic!("stopped") };
    succeed(&mut probe, until);
    start(&mut waiting, until);
}

#[test]
fn a_probe_that_costs_too_much_does_not_hold_the_slot() {
    let upstream = Upstream::new().with_limiter(limiter(1, 2)).with_breaker(breaker(3));
    trip(&upstream, at(secs(0)));
    let mut call = call(&upstream, at(secs(10))).with_cost(3);
    assert!(!call.wants_permit(at(secs(10))));
    assert_eq!(poll(&mut call, at(secs(10))), Step::Stop(Stop::CostTooHigh { burst: 2 }));
    assert_eq!(state(&upstream, at(secs(10))), FREE);
    assert_eq!(tokens(&upstream, at(secs(10))), 2);
}

#[test]
fn a_deadline_that_passes_at_the_limiter_gives_everything_back() {
    // Seen before the wait, and found out after it.
    for (deadline, polls, wait) in [(9, [1, 1], Some(secs(9))), (10, [1, 1], Some(secs(9)))]
        .into_iter()
        .chain([(11, [1, 11], None), (11, [1, 40], None)])
    {
        let upstream = Upstream::new()
            .with_limiter(limiter(10, 1))
            .with_breaker(breaker(9))
            .with_budget(budget(2));
        let policy = POLICY.with_deadline(secs(deadline));
        let mut call = upstream.call(&policy, Safety::Idempotent, at(secs(0)));
        start(&mut call, at(secs(0)));
        fail(&mut call, at(secs(0)));
        assert!(matches!(poll(&mut call, at(secs(0))), Step::Backoff { .. }));
        assert_eq!(level(&upstream), 1);
        let mut step = Step::Done;
        for now in polls {
            step = poll(&mut call, at(secs(now)));
        }
        assert_eq!(step, Step::Stop(Stop::Deadline), "{deadline} s");
        assert_eq!((call.attempts(), level(&upstream)), (1, 2), "{deadline} s");
        assert_eq!(call.retry_after(), wait, "{deadline} s");
        // The token that it waited for.
        assert_eq!([9, 10].map(|now| tokens(&upstream, at(secs(now)))), [0, 1]);
    }
}

#[test]
fn only_a_rate_limit_with_a_hint_pauses_those_who_share_the_limiter() {
    let hint = Hint::after(secs(30));
    for (failure, until) in [
        (Failure::throttled().with_hint(hint), Some(30)),
        // The others' business, and not said when.
        (Failure::transient().with_hint(hint), None),
        (Failure::quota().with_hint(hint), None),
        (Failure::permanent().with_hint(hint), None),
        (Failure::throttled(), None),
        (Failure::throttled().with_hint(Hint::after(Duration::MAX)), None),
    ] {
        let upstream = Upstream::new().with_limiter(limiter(1, 9)).with_breaker(breaker(2));
        let [mut first, mut second] = [(); 2].map(|()| call(&upstream, at(secs(0))));
        start(&mut first, at(secs(0)));
        first.record(at(secs(0)), Outcome::Failure(failure), || 0);
        let step = poll(&mut second, at(secs(0)));
        match until {
            Some(until) => assert_eq!(step, Step::Throttled { until: at(secs(until)) }),
            None => assert!(matches!(step, Step::Attempt(_)), "{failure:?}: {step:?}"),
        }
        assert_eq!(state(&upstream, at(secs(0))), BreakerState::Closed);
    }
}

/// Lets all threads go on at once, without putting them to sleep.
#[derive(Default)]
struct StartLine(AtomicU32);

impl StartLine {
    /// Waits until `all` threads have come, for the `round`th time.
    fn meet(&self, round: u32, all: u32) {
        self.0.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u32;
        while self.0.load(Ordering::Acquire) < round * all {
            looks += 1;
            if looks.is_multiple_of(256) {
                std::thread::yield_now();
            }
        }
    }
}

// Those who find the slot taken only after they have paid.
#[test]
fn whoever_pays_for_the_probe_and_comes_too_late_gets_the_token_back() {
    const THREADS: u32 = 2;
    const ROUNDS: u32 = 50_000;
    // A token is earned between two rounds and none within one.
    let upstream = Upstream::new().with_limiter(limiter(100, THREADS)).with_breaker(breaker(1));
    let breaker = upstream.breaker().expect("it has one");
    // Nobody panics before the end: the others would wait for ever.
    let line = StartLine::default();
    let [started, refused, lost] = [const { AtomicU32::new(0) }; 3];
    let run = |is_first: bool| {
        for round in 1..=ROUNDS {
            let seconds = u64::from(round) * 100;
            if is_first {
                breaker.set_mode(Mode::Normal);
                trip(&upstream, at(secs(seconds - 10)));
            }
            let mut call = call(&upstream, at(secs(seconds)));
            line.meet(3 * round - 2, THREADS);
            match poll(&mut call, at(secs(seconds))) {
                Step::Attempt(_) => started.fetch_add(1, Ordering::Relaxed),
                Step::Stop(Stop::CircuitOpen { .. }) => refused.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            };
            line.meet(3 * round - 1, THREADS);
            if is_first {
                let left = tokens(&upstream, at(secs(seconds)));
                lost.fetch_add((THREADS - 1).abs_diff(left), Ordering::Relaxed);
            }
            line.meet(3 * round, THREADS);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let run = &run;
            scope.spawn(move || run(thread == 0));
        }
    });
    assert_eq!(started.into_inner(), ROUNDS);
    assert_eq!(refused.into_inner(), ROUNDS * (THREADS - 1));
    assert_eq!(lost.into_inner(), 0, "tokens");
}
