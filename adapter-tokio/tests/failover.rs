//! Calls to several upstreams: what is handed on, to whom, within which time, and what is said.

mod common;

use core::error::Error;
use core::fmt;
use core::future::{Future, pending, ready};
use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Mutex;

use common::{built, constant};
use holdoff_tokio::{
    BreakerConfig, Classify, Clock, Failover, Failure, Hint, NotCalled, Policy, Quota, Rate, Retry,
    Safety, Sent, Stop, TokioTimer, Upstream, failover, retry,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

const SECOND: Duration = Duration::from_secs(1);

/// An error with a number, so that it can be told that it came back untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed(usize, Failure);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}", self.0)
    }
}

impl Error for Failed {}

impl Classify for Failed {
    fn classify(&self) -> Failure {
        self.1
    }
}

const fn hinted(delay: Duration) -> Failure {
    Failure::throttled().with_hint(Hint::after(delay))
}

/// Two attempts a second apart.
fn two_attempts() -> Upstream {
    Upstream::new(built(constant(2, SECOND)))
}

/// Calls both; the first fails with `failure`. What came of it, and who was called.
async fn called(
    first: &Upstream,
    failure: Failure,
    safety: Safety,
) -> (Result<usize, Stop>, Vec<usize>) {
    let (shared, second) = (Failover::new(), two_attempts());
    let calls = Mutex::new(Vec::new());
    let answer = failover(&shared, [first, &second])
        .with_safety(safety)
        .run(|candidate, _| {
            calls.lock().unwrap().push(candidate);
            ready(if candidate == 0 { Err(failure) } else { Ok(()) })
        })
        .await;
    let answer = answer.map(|served| served.by).map_err(|none| none.stop().unwrap());
    (answer, calls.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_struggling_service_hands_on() {
    let first = two_attempts();
    let transient = called(&first, Failure::transient(), Safety::Idempotent).await;
    assert_eq!(transient, (Ok(1), vec![0, 0, 1]));

    let hint = hinted(Duration::from_secs(3_600));
    assert_eq!(called(&first, hint, Safety::Idempotent).await, (Ok(1), vec![0, 1]));

    // Surely not processed: safe to send elsewhere, whatever it does.
    let unsent = Failure::transient().with_sent(Sent::No);
    assert_eq!(called(&first, unsent, Safety::NonIdempotent).await, (Ok(1), vec![0, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_hands_on_at_once() {
    let breaker = BreakerConfig::consecutive(1).build().unwrap();
    let first = two_attempts().with_breaker(breaker);
    first.call(|| ready(Err::<(), _>(Failure::transient()))).await.unwrap_err();
    let start = Instant::now();
    assert_eq!(called(&first, Failure::transient(), Safety::Idempotent).await, (Ok(1), vec![1]));
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_full_line_hands_on_at_once() {
    let quota = Quota::new(Rate::per_second(1), 1).unwrap();
    let first = two_attempts().with_limiter(quota).with_max_waiting(NonZeroU32::MIN);
    let limiter = first.limiter().unwrap();
    limiter.acquire(1).await.unwrap();
    tokio::select! {
        biased;
        _ = limiter.acquire(1) => panic!("there is no token"),
        _ = limiter.acquire(1) => panic!("it stands behind"),
        answer = called(&first, Failure::transient(), Safety::Idempotent) => {
            assert_eq!(answer, (Ok(1), vec![1]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_about_the_call_is_not_handed_on() {
    let first = two_attempts();
    for (failure, safety, stop) in [
        (Failure::permanent(), Safety::Idempotent, Stop::Permanent),
        (Failure::quota(), Safety::Idempotent, Stop::Quota),
        (Failure::transient(), Safety::NonIdempotent, Stop::NotIdempotent),
    ] {
        assert_eq!(called(&first, failure, safety).await, (Err(stop), vec![0]), "{stop:?}");
    }
    // Its own deadline is not the call's.
    let brief = Upstream::new(Policy::STANDARD.with_deadline(Duration::from_nanos(1)));
    let late = called(&brief, Failure::transient(), Safety::Idempotent).await;
    assert_eq!(late, (Ok(1), vec![0, 1]));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_of_any_candidate_comes_back_as_it_is() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts(), two_attempts()]);
    let failures = [Failure::transient(), Failure::permanent(), Failure::transient()];
    let mut number = 0;
    let none = failover(&shared, upstreams.each_ref())
        .run(|candidate, _| {
            number += 1;
            ready(Err::<(), _>(Failed(number, failures[candidate])))
        })
        .await
        .unwrap_err();
    let [(0, first), (1, second)] = &none.failed[..] else { panic!("{none:?}") };
    assert_eq!((first.stop, first.attempts, first.elapsed), (Stop::Attempts, 2, SECOND));
    assert_eq!(first.last, Some(Failed(2, Failure::transient())));
    assert_eq!((second.stop, second.attempts), (Stop::Permanent, 1));
    assert_eq!(none.not_called, [(2, NotCalled::CallOver)]);
    assert_eq!((none.elapsed, none.retry_after), (SECOND, None));
    assert_eq!(none.source().unwrap().to_string(), "error 3");
    assert_eq!(none.into_last(), Some(Failed(3, Failure::permanent())));
}

#[tokio::test(start_paused = true)]
async fn what_the_last_one_says_of_when_to_come_back_is_handed_on() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts()]);
    let used_up = Failure::quota().with_hint(Hint::after(SECOND * 3_600));
    let call = failover(&shared, upstreams.each_ref());
    let none = call.run(|_, _| ready(Err::<(), _>(used_up))).await.unwrap_err();
    assert_eq!((none.stop(), none.retry_after), (Some(Stop::Quota), Some(SECOND * 3_600)));
    assert_eq!(none.not_called, [(1, NotCalled::CallOver)]);
}

#[tokio::test(start_paused = true)]
async fn whoever_asked_to_be_left_alone_is_until_the_longest_such_time_is_over() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts()]);
    let by = |hint: Option<Duration>, takes: Duration| {
        let call = failover(&shared, upstreams.each_ref()).run(move |candidate, _| async move {
            sleep(takes).await;
            match hint {
                Some(hint) if candidate == 0 => Err(hinted(hint)),
                _ => Ok(()),
            }
        });
        async { call.await.unwrap().by }
    };
    // Of two under way at once the one told the longer time hears it first.
    let (long, longer) = (SECOND * 400, SECOND * 1_000);
    let both = tokio::join!(by(Some(longer), SECOND), by(Some(long), SECOND * 2));
    assert_eq!(both, (1, 1));
    let start = Instant::now() - SECOND * 4;
    sleep_until(start + SECOND + longer - Duration::from_millis(1)).await;
    assert_eq!(by(None, Duration::ZERO).await, 1);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(by(None, Duration::ZERO).await, 0);
}

#[tokio::test(start_paused = true)]
async fn with_all_cooling_down_it_says_who_recovers_first_and_asks_nobody() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts(), two_attempts()]);
    let now = TokioTimer.now();
    for (candidate, secs) in [(0, 30), (1, 10), (2, 20)] {
        shared.cool_until(candidate, now.saturating_add(Duration::from_secs(secs)));
    }
    let call = || {
        failover(&shared, upstreams.each_ref())
            .run(|_, _| ready(Err::<(), _>(Failed(0, hinted(Duration::from_secs(500))))))
    };
    let none = call().await.unwrap_err();
    assert_eq!((none.failed.len(), none.stop()), (0, None));
    let cooling = |candidate, secs| {
        (candidate, NotCalled::CoolingDown { retry_after: Duration::from_secs(secs) })
    };
    assert_eq!(none.not_called, [cooling(0, 30), cooling(1, 10), cooling(2, 20)]);
    assert_eq!(none.retry_after, Some(Duration::from_secs(10)));
    assert_eq!(
        none.to_string(),
        "no candidate served the call within 0ns: candidate 0 was cooling down for 30s, candidate \
         1 was cooling down for 10s, candidate 2 was cooling down for 20s; worth another try in 10s"
    );
    assert!(none.source().is_none());

    // One has recovered, and asks to be left alone again.
    sleep(Duration::from_secs(10)).await;
    let none = call().await.unwrap_err();
    assert_eq!(none.not_called, [cooling(0, 20), cooling(2, 10)]);
    assert_eq!(none.retry_after, Some(Duration::from_secs(10)));
    assert_eq!(
        none.to_string(),
        "no candidate served the call within 0ns: candidate 1 gave up after 1 attempt in 0ns (the \
         server asks for a wait of 500s, longer than allowed), candidate 0 was cooling down for \
         20s, candidate 2 was cooling down for 10s; worth another try in 10s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_recovers_during_the_call_is_called_after_all() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts()]);
    shared.cool_until(0, TokioTimer.now().saturating_add(SECOND));
    let served = failover(&shared, upstreams.each_ref())
        .run(|candidate, _| ready(if candidate == 0 { Ok(()) } else { Err(Failure::transient()) }))
        .await
        .unwrap();
    assert_eq!((served.by, served.failed[0].0), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn three_candidates_have_twenty_seconds_together() {
    let shared = Failover::new();
    let [nine, seven, patient] = [
        Upstream::new(Policy::STANDARD.with_deadline(SECOND * 9)),
        Upstream::new(Policy::STANDARD.with_deadline(SECOND * 7)),
        Upstream::new(Policy::STANDARD),
    ];
    let start = Instant::now();
    let shares = Mutex::new(Vec::new());
    let none = failover(&shared, [&nine, &seven, &patient])
        .with_deadline(SECOND * 20)
        .run(|candidate, attempt| {
            shares.lock().unwrap().push((candidate, attempt.timeout().unwrap()));
            pending::<Result<(), Failure>>()
        })
        .await
        .unwrap_err();
    // The last one has what the others left.
    let expected = [(0, SECOND * 9), (1, SECOND * 7), (2, SECOND * 4)];
    assert_eq!(*shares.lock().unwrap(), expected);
    assert_eq!((start.elapsed(), none.elapsed), (SECOND * 20, SECOND * 20));
    assert_eq!((none.stop(), none.failed.len()), (Some(Stop::Deadline), 3));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_processed_is_not_handed_on_when_a_share_is_used_up() {
    let (shared, patient) = (Failover::new(), Upstream::new(Policy::STANDARD));
    let brief = Upstream::new(Policy::STANDARD.with_deadline(SECOND * 9));
    let none = failover(&shared, [&brief, &patient])
        .with_deadline(SECOND * 20)
        .with_safety(Safety::NonIdempotent)
        .run(|_, _| pending::<Result<(), Failure>>())
        .await
        .unwrap_err();
    assert_eq!((none.stop(), none.elapsed), (Some(Stop::NotIdempotent), SECOND * 9));
    assert_eq!(none.not_called, [(1, NotCalled::CallOver)]);
}

#[tokio::test(start_paused = true)]
async fn with_no_time_left_nobody_else_is_called() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts()]);
    let start = Instant::now();
    let none = failover(&shared, upstreams.each_ref())
        .with_deadline(SECOND * 5)
        .run(|_, _| async {
            sleep(SECOND * 5).await;
            Err::<(), _>(Failure::transient())
        })
        .await
        .unwrap_err();
    assert_eq!((start.elapsed(), none.stop()), (SECOND * 5, Some(Stop::Deadline)));
    assert_eq!(none.not_called, [(1, NotCalled::CallOver)]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_line_that_does_not_fit_hands_on_and_cools_nobody() {
    let shared = Failover::new();
    let slow = two_attempts().with_limiter(Quota::new(Rate::per_minute(1), 1).unwrap());
    slow.limiter().unwrap().acquire(1).await.unwrap();
    let start = Instant::now();
    let served = failover(&shared, [&slow, &two_attempts()])
        .with_deadline(SECOND * 20)
        .run(|_, _| ready(Ok::<_, Failure>(())))
        .await
        .unwrap();
    assert_eq!((served.by, start.elapsed()), (1, Duration::ZERO));
    assert!(shared.cooled_until(0) <= TokioTimer.now());
}

#[tokio::test(start_paused = true)]
async fn told_to_stop_it_does_in_the_same_poll_and_calls_nobody_else() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts()]);
    let start = Instant::now();
    // In the backoff of the second candidate.
    let stop = async { sleep(SECOND * 3 / 2).await };
    let none = failover(&shared, upstreams.each_ref())
        .cancel_when(stop)
        .run(|candidate, _| ready(Err::<(), _>(Failed(candidate, Failure::transient()))))
        .await
        .unwrap_err();
    assert_eq!(start.elapsed(), SECOND * 3 / 2);
    assert_eq!((none.stop(), none.failed.len()), (Some(Stop::Cancelled), 2));
    assert_eq!(none.into_last(), Some(Failed(1, Failure::transient())));
}

#[tokio::test(start_paused = true)]
async fn inside_another_call_it_leaves_trying_again_to_that_one() {
    let (shared, upstreams) = (Failover::new(), [two_attempts(), two_attempts()]);
    let attempts = Mutex::new(Vec::new());
    let inner = |again: bool| {
        let call = failover(&shared, upstreams.each_ref());
        let call = if again { call.retry_although_nested() } else { call };
        let call = call.run(|candidate, _| {
            attempts.lock().unwrap().push(candidate);
            ready(Err::<(), _>(Failure::transient()))
        });
        async { Ok::<_, Failure>(call.await.unwrap_err().stop()) }
    };
    let stop = retry(&Policy::STANDARD, || inner(false)).await.unwrap();
    assert_eq!((stop, attempts.lock().unwrap().as_slice()), (Some(Stop::Nested), &[0][..]));
    let stop = (|| inner(true)).retry(&Policy::STANDARD).await.unwrap();
    assert_eq!((stop, attempts.lock().unwrap().len()), (Some(Stop::Attempts), 5));
}

#[tokio::test(start_paused = true)]
async fn the_future_is_send_and_the_closure_may_borrow() {
    fn is_send<F: Future + Send>(future: F) -> F {
        future
    }

    static UPSTREAMS: [Upstream; 2] = [const { Upstream::new(Policy::LLM) }; 2];
    static SHARED: Failover<2> = Failover::new();
    let text = String::from("borrowed");
    let mut lengths = Vec::new();
    let call = failover(&SHARED, UPSTREAMS.each_ref()).run(|_, _| {
        lengths.push(text.len());
        ready(Ok::<_, Failure>(text.as_str()))
    });
    assert_eq!(is_send(call).await.unwrap().value, "borrowed");
    assert_eq!(lengths, [8]);

    let call = failover(&SHARED, UPSTREAMS.each_ref())
        .cancel_when(pending())
        .run(|candidate, _| async move { Ok::<_, Failure>(candidate) });
    let served = timeout(SECOND, tokio::spawn(call)).await.unwrap().unwrap().unwrap();
    assert_eq!(served.value, 0);
}
