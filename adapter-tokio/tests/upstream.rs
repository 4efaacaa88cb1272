//! Calls through everything that guards a service.

mod common;

use core::future::{Future, pending, ready};
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use common::{built, constant, within_polls};
use holdoff::Clock;
use holdoff_tokio::{
    AcquireError, AttemptKind, BreakerConfig, BreakerState, BudgetConfig, CircuitBreaker, Counters,
    Event, Failover, Failure, FairLimiter, Hint, Limit, Nesting, Observation, Observer, Policy,
    Prepared, Quota, Rate, Ratio, Retry, RetryBudget, Safety, Stop, TokioTimer, Upstream, failover,
    retry,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);

fn quota(rate: Rate, burst: u32) -> Quota {
    Quota::new(rate, burst).expect("the quota is valid")
}

fn breaker(failures: u32) -> CircuitBreaker {
    BreakerConfig::consecutive(failures).build().expect("the breaker is valid")
}

fn budget(reserve: u32) -> RetryBudget {
    BudgetConfig::new(reserve, Ratio::ZERO).build().expect("the budget is valid")
}

async fn fails() -> Result<(), Failure> {
    Err(Failure::transient())
}

// Everything at once, dropped at each poll there is: nothing is lost but what was sent.
#[tokio::test(start_paused = true)]
async fn dropping_a_call_at_any_poll_leaks_nothing() {
    let throttled = Failure::throttled().with_hint(Hint::Malformed);
    let hinted = Failure::throttled().with_hint(Hint::after(3 * SECOND));
    let answers = [throttled, hinted, throttled, Failure::transient()];
    let policy = built(constant(4, 2 * SECOND).with_attempt_timeout(5 * SECOND));
    let mut polls = 0;
    loop {
        let upstream = Upstream::new(policy)
            .with_limiter(quota(Rate::per_second(1), 2))
            .with_breaker(breaker(1))
            .with_budget(budget(9))
            .with_counters(Counters::new());
        // Half-open: each attempt is a probe, and only the last says anything of the service.
        let permit = upstream.breaker().expect("it has one").try_acquire(TokioTimer.now());
        permit.expect("closed").failure(TokioTimer.now(), || 0);
        sleep(11 * SECOND).await;
        let tenant = FairLimiter::new(quota(Rate::per_second(1), 2));
        let limits = [Limit::new(&tenant, 1)];
        let sent = AtomicU32::new(0);
        let mut answers = answers.iter();
        let call = upstream.prepare().with_limits(&limits).with_cost(2).run(|_| {
            sent.fetch_add(1, Ordering::Relaxed);
            let answer = *answers.next().expect("four attempts");
            async move {
                sleep(SECOND / 2).await;
                Err::<(), _>(answer)
            }
        });
        let ended = within_polls(polls, call).await;

        let sent = sent.load(Ordering::Relaxed);
        let limiter = upstream.limiter().expect("it has one");
        assert_eq!((limiter.waiting(), tenant.waiting()), (0, 0), "after {polls} polls");
        let breaker = upstream.breaker().expect("it has one");
        let held = BreakerState::HalfOpen { probing_until: None };
        let state = breaker.state(TokioTimer.now());
        assert!(
            matches!(state, BreakerState::Closed | BreakerState::Open { .. }) || state == held,
            "after {polls} polls: {state:?}"
        );
        let left = upstream.budget().expect("it has one").level(TokioTimer.now());
        assert_eq!(left, 9 - sent.saturating_sub(1), "after {polls} polls");
        let counted = upstream.counters().expect("it has some").snapshot();
        assert_eq!(counted.attempts, u64::from(sent));
        // No debt: whatever was taken and not sent is there again.
        sleep(600 * SECOND).await;
        assert_eq!((limiter.available(), tenant.available()), (2, 2));
        if let Some(ended) = ended {
            assert!(ended.is_err());
            break;
        }
        polls += 1;
    }
    assert!(polls > 7, "only {polls} places to drop it");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_full_says_so_at_once() {
    let one = NonZeroU32::MIN;
    let upstream = Upstream::new(Policy::BATCH)
        .with_limiter(quota(Rate::per_minute(1), 1))
        .with_max_waiting(one);
    let upstream = Arc::new(upstream);
    upstream.call(async || Ok::<_, Failure>(())).await.expect("the first is admitted");
    let waiting = [(); 2].map(|()| {
        let upstream = Arc::clone(&upstream);
        tokio::spawn(async move { upstream.call(async || Ok::<_, Failure>(())).await })
    });
    sleep(SECOND).await;
    let start = Instant::now();
    let gave_up = upstream.call(fails).await.expect_err("one stands behind the head already");
    assert_eq!((gave_up.stop, gave_up.attempts, gave_up.last), (Stop::QueueFull, 0, None));
    let limiter = upstream.limiter().expect("it has one");
    assert_eq!(limiter.acquire(1).await, Err(AcquireError::QueueFull));
    assert_eq!((start.elapsed(), limiter.waiting()), (Duration::ZERO, 2));
    for waiting in waiting {
        waiting.await.expect("no panic").expect("it is admitted in time");
    }
    assert_eq!(limiter.waiting(), 0);
}

// C61: johanhaleby/occurrent#866, gojek/heimdall#145, electron-userland/electron-builder#10126.
#[tokio::test(start_paused = true)]
async fn a_token_ends_a_backoff_a_hint_and_a_place_in_line_at_once() {
    let hinted = Failure::throttled().with_hint(Hint::after(Duration::from_secs(277_403)));
    let policy = built(constant(5, 60 * SECOND).with_max_hint(Duration::MAX));
    for (failure, tokens, attempts) in
        [(Failure::transient(), 1, 1), (hinted, 1, 1), (hinted, 0, 0)]
    {
        let limiter = FairLimiter::new(quota(Rate::per_minute(1), 1));
        limiter.try_acquire(1 - tokens).expect("full");
        let token = CancellationToken::new();
        let (start, cancel) = (Instant::now(), token.clone());
        tokio::spawn(async move {
            sleep(SECOND / 100).await;
            cancel.cancel();
        });
        let sent = AtomicU32::new(0);
        let call = Prepared::new(&policy).with_limiter(&limiter, 1).cancel_when(token.cancelled());
        let gave_up = call
            .run(|_| {
                sent.fetch_add(1, Ordering::Relaxed);
                ready(Err::<(), _>(failure))
            })
            .await
            .expect_err("it is told to stop");
        assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Cancelled, attempts));
        assert_eq!(gave_up.last, (attempts == 1).then_some(failure));
        assert_eq!(start.elapsed().as_millis(), 10);
        assert_eq!((sent.load(Ordering::Relaxed), limiter.waiting()), (attempts, 0));
    }
}

// C60: BerriAI/litellm#7262 and #34129, microsoft/openaivec#186, mpfaffenberger/code_puppy#317.
#[tokio::test(start_paused = true)]
async fn layers_do_not_multiply_unless_they_are_told_to() {
    let (outer, inner) = (built(constant(4, SECOND)), built(constant(3, SECOND)));
    let once = built(constant(1, SECOND));
    for (outer, opts_out, hands_over, requests, stop) in [
        (outer, false, None, 4, Stop::Nested),
        (outer, true, None, 12, Stop::Attempts),
        (outer, false, Some(true), 4, Stop::Nested),
        (outer, false, Some(false), 12, Stop::Attempts),
        // A layer that makes one attempt is no reason not to try again inside.
        (once, false, None, 3, Stop::Attempts),
    ] {
        let wire = Arc::new(AtomicU32::new(0));
        let told = AtomicU32::new(0);
        let gave_up = retry(&outer, || {
            let wire = Arc::clone(&wire);
            let call = async move {
                let call = Prepared::new(&inner);
                let call = if opts_out { call.retry_although_nested() } else { call };
                call.run(|_| {
                    wire.fetch_add(1, Ordering::Relaxed);
                    fails()
                })
                .await
            };
            async {
                let answer = match hands_over {
                    None => call.await,
                    Some(true) => {
                        tokio::spawn(Nesting::current().scope(call)).await.expect("no panic")
                    }
                    Some(false) => tokio::spawn(call).await.expect("no panic"),
                };
                let gave_up = answer.expect_err("it always fails");
                assert_eq!(gave_up.stop, stop);
                told.fetch_add(1, Ordering::Relaxed);
                Err::<(), _>(gave_up.last.expect("it failed"))
            }
        })
        .await
        .expect_err("it always fails");
        assert_eq!(gave_up.stop, Stop::Attempts);
        assert_eq!(wire.load(Ordering::Relaxed), requests);
    }
}

// A task spawned by the closure itself, before there is a future, and a failover of candidates that
// make one attempt each.
#[tokio::test(start_paused = true)]
async fn what_tries_again_is_known_wherever_it_is_asked() {
    let policy = built(constant(5, SECOND));
    let wire = Arc::new(AtomicU32::new(0));
    let inner = |wire: &Arc<AtomicU32>| {
        let wire = Arc::clone(wire);
        async move {
            let call = retry(&policy, || {
                wire.fetch_add(1, Ordering::Relaxed);
                fails()
            });
            call.await.map_err(|gave_up| gave_up.last.expect("it failed"))
        }
    };
    let spawned = retry(&policy, || {
        let task = tokio::spawn(Nesting::current().scope(inner(&wire)));
        async { task.await.expect("no panic") }
    });
    assert!(spawned.await.is_err());
    assert_eq!(wire.swap(0, Ordering::Relaxed), 5);

    let once = [(); 3].map(|()| Upstream::new(built(constant(1, SECOND))));
    let shared = Failover::<3>::new();
    let served = failover(&shared, once.each_ref()).run(|_, _| inner(&wire));
    assert!(served.await.is_err());
    assert_eq!(wire.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_told_from_an_error() {
    let policy = built(constant(3, SECOND).with_attempt_timeout(SECOND));
    let gave_up = retry(&policy, pending::<Result<(), Failure>>).await.expect_err("late");
    assert_eq!((gave_up.last, gave_up.timed_out), (None, true));
    let told = "gave up after 3 attempts in 5s: no attempts left; the last attempt timed out";
    assert_eq!(gave_up.to_string(), told);
    let call = Prepared::new(&policy).run(async |attempt| match attempt.number {
        1 => fails().await,
        _ => pending().await,
    });
    let gave_up = call.await.expect_err("late");
    assert_eq!((gave_up.last, gave_up.timed_out), (Some(Failure::transient()), true));
}

#[derive(Debug, Default)]
struct Recorder(std::sync::Mutex<Vec<Event>>);

impl Observer for Recorder {
    fn on_event(&self, observation: &Observation) {
        self.0.lock().expect("nobody panics here").push(observation.event);
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_of_one_call_takes_nothing_from_the_upstreams_own() {
    let recorder = Recorder::default();
    let upstream = Upstream::new(Policy::STANDARD).with_counters(Counters::new());
    let call = upstream.prepare().with_observer(&recorder);
    call.run(async |_| Ok::<_, Failure>(())).await.expect("it succeeds");
    let told = core::mem::take(&mut *recorder.0.lock().expect("nobody panics here"));
    assert_eq!(told, [Event::Attempt { kind: AttemptKind::Ordinary }, Event::Success]);
    assert_eq!(upstream.counters().expect("it has some").snapshot().successes, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_set_for_one_call_holds_for_that_call() {
    let upstream = Upstream::new(built(constant(5, SECOND)));
    let start = Instant::now();
    let two = NonZeroU32::new(2).expect("above zero");
    let gave_up = upstream.prepare().with_max_attempts(two).run(|_| fails()).await;
    assert_eq!(
        gave_up.map_err(|gave_up| (gave_up.stop, gave_up.attempts)),
        Err((Stop::Attempts, 2))
    );
    let call = upstream.prepare().with_deadline(3 * SECOND);
    let gave_up = call.run(|_| fails()).await;
    assert_eq!(
        gave_up.map_err(|gave_up| (gave_up.stop, gave_up.attempts)),
        Err((Stop::Deadline, 3))
    );
    assert_eq!(start.elapsed(), 3 * SECOND);
    let call = upstream.prepare().with_safety(Safety::NonIdempotent);
    let gave_up = call.run_when(|_: &&str| Failure::transient(), |_| ready(Err::<(), _>("reset")));
    let gave_up = gave_up.await.expect_err("it failed");
    assert_eq!((gave_up.stop, gave_up.last), (Stop::NotIdempotent, Some("reset")));
    // The next one is as ever.
    assert_eq!(upstream.call(fails).await.map_err(|gave_up| gave_up.attempts), Err(5));
}

// C45: joshrotenberg/tower-resilience#363.
#[tokio::test(start_paused = true)]
async fn ten_thousand_finish_on_time_and_in_order() {
    const TASKS: u32 = 10_000;
    let limiter = Arc::new(FairLimiter::new(quota(Rate::per_second(100), 50)));
    let (start, order) = (Instant::now(), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let (limiter, order) = (Arc::clone(&limiter), Arc::clone(&order));
            tokio::spawn(async move {
                limiter.acquire(1).await.expect("one token fits");
                let place = order.fetch_add(1, Ordering::Relaxed);
                assert_eq!(place, number, "first come, first served");
                let earned = start.elapsed().as_millis() / 10;
                assert!(u128::from(place) < 50 + earned, "earlier than the rate allows");
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let floor = SECOND / 100 * (TASKS - 50);
    assert!(start.elapsed() >= floor && start.elapsed() <= floor + floor / 100);
}

// No clock stands still here: nothing is said about how long it takes, only about who is let in.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_nobody_is_let_in_early() {
    const TASKS: u32 = 10_000;
    let (rate, burst) = (20_000, 100);
    let limiter = Arc::new(FairLimiter::new(quota(Rate::per_second(rate), burst)));
    let start = TokioTimer.now();
    let admitted = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (limiter, admitted) = (Arc::clone(&limiter), Arc::clone(&admitted));
            tokio::spawn(async move {
                limiter.acquire(1).await.expect("one token fits");
                let place = admitted.fetch_add(1, Ordering::Relaxed) + 1;
                let time = TokioTimer.now().saturating_duration_since(start);
                let earned = time.as_nanos() * u128::from(rate) / 1_000_000_000;
                assert!(u128::from(place) <= u128::from(burst) + earned + 1);
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!((admitted.load(Ordering::Relaxed), limiter.waiting()), (TASKS, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_in_line_is_overtaken() {
    let limiter = Arc::new(FairLimiter::new(quota(Rate::per_second(1), 5)));
    limiter.try_acquire(4).expect("full");
    let big = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { limiter.acquire(5).await }
    });
    sleep(SECOND / 2).await;
    // One token is there, and it belongs to whoever waits.
    assert_eq!(limiter.available(), 1);
    assert!(limiter.try_acquire(1).is_err());
    assert_eq!(limiter.try_acquire(0), Ok(()));
    big.await.expect("no panic").expect("it fits");
    sleep(SECOND).await;
    assert_eq!(limiter.try_acquire(1), Ok(()));
}

const fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test(start_paused = true)]
async fn futures_are_send_and_closures_may_borrow() {
    let greeting = String::from("hello");
    let upstream = Upstream::new(Policy::LLM).with_limiter(quota(Rate::per_second(1), 9));
    let borrowed = async || Ok::<_, Failure>(greeting.as_str());
    assert_eq!(is_send(upstream.call(borrowed)).await, Ok("hello"));
    assert_eq!(is_send(borrowed.retry(&Policy::STANDARD)).await, Ok("hello"));
    assert_eq!(is_send(borrowed.guarded_by(&upstream)).await, Ok("hello"));
    let limits = [Limit::new(upstream.limiter().expect("it has one"), 1)];
    let call = Prepared::new(&Policy::LLM).with_limits(&limits).cancel_when(pending());
    assert_eq!(is_send(call.run(|_| ready(Ok::<_, Failure>(7)))).await, Ok(7));
    fn is_future(_: &impl Future) {}
    is_future(&upstream.call(fails));
}
