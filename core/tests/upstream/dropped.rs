//! A call that is dropped leaves no charge, no token and no probe behind.

use core::future::pending;
use core::pin::pin;

use holdoff::drive::{self, NoQueue};
use holdoff::{
    BreakerState, Call, Clock, Failure, Instant, Mode, Outcome, PolicyConfig, Safety, Step, Timer,
    Upstream, classified,
};

use crate::common::timer::ManualTimer;
use crate::common::{at, secs};
use crate::{breaker, budget, call, fail, level, limiter, poll, start, succeed, trip};

const FREE: BreakerState = BreakerState::HalfOpen { probing_until: None };

/// One stage of a call's life: what brings it about, and what is left when it is dropped there.
struct Stage {
    name: &'static str,
    reach: fn(&mut Call<'_>),
    level: u32,
    sent: u32,
    state: BreakerState,
}

#[test]
fn wherever_a_call_is_dropped_nothing_stays_behind() {
    // The breaker waits for a probe from 100 s on, the limiter has a token at 105 and 115 s.
    let stages = [
        Stage { name: "never polled", reach: |_| {}, level: 3, sent: 0, state: FREE },
        Stage {
            name: "throttled",
            reach: |call| {
                let until = at(secs(105));
                assert_eq!(poll(call, at(secs(100))), Step::Throttled { until });
            },
            level: 3,
            sent: 0,
            state: FREE,
        },
        Stage {
            name: "in flight as the probe",
            reach: |call| assert!(start(call, at(secs(105))).number > 0),
            level: 3,
            sent: 1,
            state: FREE,
        },
        Stage {
            name: "failed in a way that counts as nothing",
            reach: |call| {
                call.record(at(secs(105)), Outcome::Failure(Failure::throttled()), || 0);
            },
            level: 3,
            sent: 1,
            state: FREE,
        },
        Stage {
            name: "in backoff",
            reach: |call| {
                let step = poll(call, at(secs(105)));
                assert!(matches!(step, Step::Backoff { until, .. } if until == at(secs(106))));
            },
            level: 3,
            sent: 1,
            state: FREE,
        },
        Stage {
            name: "throttled before a retry",
            reach: |call| {
                let until = at(secs(115));
                assert_eq!(poll(call, at(secs(106))), Step::Throttled { until });
            },
            level: 3,
            sent: 1,
            state: FREE,
        },
        Stage {
            name: "in flight as a retry",
            reach: |call| assert!(start(call, at(secs(115))).number > 0),
            level: 2,
            sent: 2,
            state: FREE,
        },
        Stage {
            name: "done",
            reach: |call| succeed(call, at(secs(115))),
            level: 2,
            sent: 2,
            state: BreakerState::Closed,
        },
    ];
    for (last, stage) in stages.iter().enumerate() {
        let upstream = Upstream::new()
            .with_limiter(limiter(10, 1))
            .with_breaker(breaker(3))
            .with_budget(budget(3));
        trip(&upstream, at(secs(90)));
        let limiter = upstream.limiter().expect("it has one");
        limiter.try_acquire(at(secs(95)), 1).expect("full");
        let mut dropped = call(&upstream, at(secs(100)));
        stages[..=last].iter().for_each(|stage| (stage.reach)(&mut dropped));
        drop(dropped);
        let name = stage.name;
        assert_eq!(level(&upstream), stage.level, "{name}");
        let breaker = upstream.breaker().expect("it has one");
        assert_eq!(breaker.state(at(secs(115))), stage.state, "{name}");
        // A token every ten seconds, from the last that was used.
        let next = [105, 115, 125][stage.sent as usize];
        assert_eq!(limiter.available(at(secs(next - 1))), 0, "{name}");
        assert_eq!(limiter.available(at(secs(next))), 1, "{name}");
        // Whoever comes next is served.
        start(&mut call(&upstream, at(secs(125))), at(secs(125)));
    }
}

#[test]
fn a_future_that_is_dropped_anywhere_leaves_nothing_behind() {
    let policy = PolicyConfig::standard().with_max_attempts(3).with_attempt_timeout(secs(4));
    let policy = policy.build().expect("valid");
    let mut polls = 0;
    loop {
        let upstream = Upstream::new()
            .with_limiter(limiter(10, 1))
            .with_breaker(breaker(9))
            .with_budget(budget(5));
        trip(&upstream, at(secs(0)));
        let timer = ManualTimer::new(at(secs(10)));
        let mut over = false;
        {
            let begin = |now| upstream.call(&policy, Safety::Idempotent, now);
            let mut future = pin!(drive::run(
                &timer,
                &NoQueue,
                begin,
                || 0,
                classified,
                async |_| {
                    timer.sleep_until(timer.now().saturating_add(secs(2))).await;
                    Err::<(), _>(Failure::throttled())
                },
            ));
            for _ in 0..polls {
                over |= timer.poll(future.as_mut()).is_some();
            }
        }
        let now = timer.now();
        assert_eq!(upstream.breaker().expect("it has one").state(now), FREE, "{polls} polls");
        if over {
            assert_eq!(level(&upstream), 3, "two retries were sent");
            break;
        }
        let sent = upstream.limiter().map(|limiter| limiter.available(at(secs(1_000))));
        assert_eq!(sent, Some(1));
        polls += 1;
    }
    assert!(polls > 6, "only {polls} places to drop it");
}

// C35: alexfalkowski/go-service#3019, rubyist/circuitbreaker#42.
#[test]
fn callers_who_hang_up_do_not_trip_the_breaker_and_timeouts_do() {
    let policy = PolicyConfig::standard().with_max_attempts(1).with_attempt_timeout(secs(1));
    let policy = policy.build().expect("valid");
    let upstream = Upstream::new().with_breaker(breaker(5));
    let breaker = upstream.breaker().expect("it has one");
    let timer = ManualTimer::new(at(secs(0)));
    let hanging = || {
        let begin = |now| upstream.call(&policy, Safety::Idempotent, now);
        let operation = |_| pending::<Result<(), Failure>>();
        drive::run(&timer, &NoQueue, begin, || 0, classified, operation)
    };
    // One failure short of a trip, which the fifty who hang up neither complete nor take back.
    let fail_at = |now| {
        let mut call = call(&upstream, now);
        start(&mut call, now);
        fail(&mut call, now);
    };
    (0..4).for_each(|_| fail_at(at(secs(0))));
    let mut calls: Vec<_> = (0..50).map(|_| Box::pin(hanging())).collect();
    for call in &mut calls {
        assert!(timer.poll(call.as_mut()).is_none(), "in flight");
    }
    drop(calls);
    assert_eq!(breaker.state(timer.now()), BreakerState::Closed);
    fail_at(timer.now());
    let open = |now: Instant| BreakerState::Open { until: now.saturating_add(secs(10)) };
    assert_eq!(breaker.state(timer.now()), open(timer.now()));

    // The same through timeouts of our own alone.
    breaker.set_mode(Mode::Normal);
    for timeouts in 1..=5 {
        let gave_up = timer.run(hanging()).expect_err("it never answers");
        assert_eq!((gave_up.attempts, gave_up.last), (1, None));
        let now = timer.now();
        let expected = if timeouts < 5 { BreakerState::Closed } else { open(now) };
        assert_eq!(breaker.state(now), expected, "{timeouts} timeouts");
    }
}
