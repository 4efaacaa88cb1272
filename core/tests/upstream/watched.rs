//! What those who watch are told, and what is counted.

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive;
use holdoff::{
    AttemptKind, BreakerChange, BudgetConfig, Call, Counters, CountersSnapshot, DelaySource, Event,
    Failure, Hint, Outcome, PolicyConfig, Ratio, Safety, Step, Stop, StopCounts, Upstream,
};
use proptest::prelude::*;

use crate::common::{at, between, millis, samples, secs};
use crate::{POLICY, Recorder, breaker, budget, call, fail, limiter, poll, start, succeed};

const TRANSIENT: Failure = Failure::transient();

#[test]
fn everything_is_told_when_it_happens_and_once() {
    let recorder = Recorder::forever();
    let upstream = Upstream::new()
        .with_limiter(limiter(2, 1))
        .with_breaker(breaker(2))
        .with_budget(budget(9))
        .with_observer(recorder);
    let mut first = upstream.call(&POLICY, Safety::Idempotent, at(secs(0)));
    let mut told = Vec::new();
    let mut tell = |until: Duration, attempts: u32, events: &[Event]| {
        for observation in recorder.take() {
            assert_eq!(observation.now, at(until));
            assert_eq!(observation.attempts, attempts);
            told.push(observation);
        }
        let last = &told[told.len() - events.len()..];
        assert_eq!(last.iter().map(|seen| seen.event).collect::<Vec<_>>(), events);
        assert!(last.iter().all(|seen| seen.elapsed.as_secs() == until.as_secs() % 13));
    };
    start(&mut first, at(secs(0)));
    start(&mut first, at(secs(0))); // still the same
    tell(secs(0), 1, &[Event::Attempt { kind: AttemptKind::Ordinary }]);
    fail(&mut first, at(secs(0)));
    tell(secs(0), 1, &[]);
    let (delay, source) = (secs(1), DelaySource::Schedule);
    let backoff = Event::Backoff { failure: TRANSIENT, delay, source };
    for now in [secs(0), millis(0)] {
        let until = at(secs(1));
        assert_eq!(poll(&mut first, at(now)), Step::Backoff { until, source });
    }
    tell(secs(0), 1, &[backoff]);
    let until = at(secs(2));
    assert_eq!(poll(&mut first, at(secs(1))), Step::Throttled { until });
    tell(secs(1), 1, &[Event::Throttled { until }]);
    start(&mut first, until);
    tell(secs(2), 2, &[Event::Attempt { kind: AttemptKind::Ordinary }]);
    fail(&mut first, at(secs(3)));
    let until = at(secs(13));
    tell(secs(3), 2, &[Event::Breaker(BreakerChange::Opened { until })]);
    let stop = Stop::CircuitOpen { retry_at: until };
    for now in [3, 4] {
        assert_eq!(poll(&mut first, at(secs(now))), Step::Stop(stop));
    }
    tell(secs(3), 2, &[Event::Stop(stop)]);

    let mut probe = call(&upstream, until);
    start(&mut probe, until);
    tell(secs(13), 1, &[Event::Attempt { kind: AttemptKind::Probe }]);
    succeed(&mut probe, until);
    assert_eq!(poll(&mut probe, until), Step::Done);
    tell(secs(13), 1, &[Event::Breaker(BreakerChange::Closed), Event::Success]);

    let mut ignored = call(&upstream, at(secs(26)));
    start(&mut ignored, at(secs(26)));
    ignored.record(at(secs(26)), Outcome::Ignored, || 0);
    assert_eq!(poll(&mut ignored, at(secs(26))), Step::Stop(Stop::Permanent));
    tell(
        secs(26),
        1,
        &[Event::Attempt { kind: AttemptKind::Ordinary }, Event::Stop(Stop::Permanent)],
    );
    assert_eq!(told.len(), 11, "and nothing else");
}

#[test]
fn a_call_that_is_dropped_says_nothing_more() {
    let recorder = Recorder::forever();
    let upstream = Upstream::new().with_breaker(breaker(1)).with_observer(recorder);
    let mut call = call(&upstream, at(secs(0)));
    drop(crate::call(&upstream, at(secs(0))));
    start(&mut call, at(secs(0)));
    drop(call);
    assert_eq!(recorder.events(), [Event::Attempt { kind: AttemptKind::Ordinary }]);
}

#[test]
fn a_backoff_is_told_before_the_sleep_with_its_delay_and_where_that_comes_from() {
    let recorder = Recorder::forever();
    let upstream: Upstream = Upstream::new().with_observer(recorder);
    let hinted = Failure::throttled().with_hint(Hint::after(secs(7)));
    let clock = Cell::new(at(secs(0)));
    let mut failures = [TRANSIENT, hinted, TRANSIENT].into_iter();
    let mut expected =
        [DelaySource::Schedule, DelaySource::Hint, DelaySource::Schedule].into_iter();
    let result = drive::run_blocking(
        &clock,
        |slept| {
            let observations = recorder.take();
            let last = observations.last().expect("told before the sleep");
            let Event::Backoff { delay, source, .. } = last.event else { panic!("{last:?}") };
            assert_eq!((delay, Some(source)), (slept, expected.next()));
            assert_eq!(slept >= secs(7), source == DelaySource::Hint);
            clock.set(clock.get().saturating_add(slept));
        },
        |now| upstream.call(&POLICY, Safety::Idempotent, now),
        samples(3),
        |answer: Result<(), Failure>| answer.map_err(|failure| (failure, failure)),
        |_| failures.next().map_or(Ok(()), Err),
    );
    assert_eq!(result, Ok(()));
    assert_eq!(recorder.events(), [Event::Attempt { kind: AttemptKind::Ordinary }, Event::Success]);
}

#[test]
fn two_watch_one_call() {
    let (counters, recorder) = (Counters::new(), Recorder::forever());
    let both = (&counters, recorder);
    let now = at(secs(0));
    let mut call = Call::new(&POLICY, Safety::Idempotent, now).with_observer(&both);
    start(&mut call, now);
    succeed(&mut call, now);
    let told: Vec<_> = recorder.take().into_iter().map(|seen| seen.event).collect();
    assert_eq!(told, [Event::Attempt { kind: AttemptKind::Ordinary }, Event::Success]);
    assert_eq!((counters.snapshot().attempts, counters.snapshot().successes), (1, 1));
}

/// Adds up what a recorder was told, as an operator would by hand.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    attempts: u64,
    throttles: u64,
    probes: u64,
    opens: u64,
    reopens: u64,
    time_open: Duration,
}

impl Tally {
    fn of(recorder: &Recorder) -> Self {
        let mut tally = Self::default();
        for seen in recorder.take() {
            match seen.event {
                Event::Attempt { kind } => {
                    tally.attempts += 1;
                    tally.probes += u64::from(kind == AttemptKind::Probe);
                }
                Event::Breaker(BreakerChange::Opened { until }) => {
                    tally.opens += 1;
                    tally.time_open += until.saturating_duration_since(seen.now);
                }
                Event::Breaker(BreakerChange::Reopened { until }) => {
                    tally.reopens += 1;
                    tally.time_open += until.saturating_duration_since(seen.now);
                }
                Event::Throttled { .. } => tally.throttles += 1,
                _ => {}
            }
        }
        tally
    }
}

fn counts(stops: &[Stop]) -> StopCounts {
    let mut counts = StopCounts::default();
    for stop in stops {
        *match stop {
            Stop::Attempts => &mut counts.attempts,
            Stop::Budget => &mut counts.budget,
            Stop::CircuitOpen { .. } => &mut counts.circuit_open,
            Stop::CostTooHigh { .. } => &mut counts.cost_too_high,
            Stop::Deadline => &mut counts.deadline,
            Stop::HintTooLong { .. } => &mut counts.hint_too_long,
            Stop::NotIdempotent => &mut counts.not_idempotent,
            Stop::Permanent => &mut counts.permanent,
            Stop::Quota => &mut counts.quota,
            stop => panic!("{stop:?} is not counted"),
        } += 1;
    }
    counts
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let hint = prop_oneof![
        3 => Just(Hint::Absent),
        1 => between(secs(0), secs(20)).prop_map(Hint::after),
        1 => Just(Hint::after(secs(301))),
    ];
    let failure = prop_oneof![
        8 => Just(Failure::transient()),
        2 => Just(Failure::throttled()),
        1 => Just(Failure::permanent()),
        1 => Just(Failure::quota()),
    ];
    prop_oneof![
        6 => (failure, hint).prop_map(|(failure, hint)| Outcome::Failure(failure.with_hint(hint))),
        3 => Just(Outcome::Success),
        1 => Just(Outcome::Ignored),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_counters_add_up(
        outcomes in prop::collection::vec(any_outcome(), 1..40),
        gaps in prop::collection::vec(between(secs(0), secs(9)), 1..12),
        (costs, deadline, reserve, seed) in (1..=6_u32, 1..60_u64, 0..6_u32, any::<u64>()),
    ) {
        let recorder = Recorder::forever();
        let budget = BudgetConfig::new(reserve, Ratio::percent(20)).build().expect("valid");
        let upstream = Upstream::new()
            .with_limiter(limiter(1, 5))
            .with_breaker(breaker(3))
            .with_budget(budget)
            .with_counters(Counters::new())
            .with_observer(recorder);
        let policy = PolicyConfig::llm().with_deadline(secs(deadline)).build().expect("valid");
        let clock = Cell::new(at(secs(0)));
        let (mut random, mut outcomes) = (samples(seed), outcomes.iter().cycle());
        let (mut attempts, mut first_attempts, mut successes) = (0, 0, 0);
        let (mut stops, mut opened) = (Vec::new(), 0);
        for (number, gap) in (0..).zip(&gaps) {
            clock.set(clock.get().saturating_add(*gap));
            let safety = [Safety::Idempotent, Safety::NonIdempotent][number % 2];
            let cost = u32::try_from(number).expect("few") % (costs + 1);
            let mut call = upstream.call(&policy, safety, clock.get()).with_cost(cost);
            loop {
                match call.poll(clock.get(), &mut random) {
                    Step::Attempt(attempt) => {
                        attempts += 1;
                        first_attempts += u64::from(attempt.number == 1);
                        clock.set(clock.get().saturating_add(millis(300)));
                        let outcome = *outcomes.next().expect("endless");
                        call.record(clock.get(), outcome, &mut random);
                    }
                    Step::Backoff { until, .. } | Step::Throttled { until } => clock.set(until),
                    Step::Done => {
                        successes += 1;
                        break;
                    }
                    Step::Stop(stop) => {
                        stops.push(stop);
                        break;
                    }
                }
            }
            opened += 1;
        }
        let seen = upstream.counters().expect("it has some").snapshot();
        let CountersSnapshot { attempts: tried, throttles, probes, .. } = seen;
        let CountersSnapshot { opens, reopens, time_open, .. } = seen;
        let counted = Tally { attempts: tried, throttles, probes, opens, reopens, time_open };
        prop_assert_eq!(counted, Tally::of(recorder));
        prop_assert_eq!(seen.attempts, attempts);
        prop_assert_eq!(seen.calls, opened);
        prop_assert_eq!(seen.successes, successes);
        prop_assert_eq!(seen.calls, seen.successes + stops.len() as u64);
        prop_assert_eq!(seen.attempts, first_attempts + seen.retries);
        prop_assert_eq!(seen.stops, counts(&stops));
    }
}
