//! What goes over the wire to a host that reads `defmt`: the values, and not their text.

#![cfg(feature = "defmt")]

mod common;

use core::cell::RefCell;
use core::time::Duration;
use std::collections::BTreeSet;

use common::secs;
use defmt::Format;
use holdoff::drive::{AcquireError, GaveUp, NoQueue, QueueFull};
use holdoff::http::{Signals, Statuses};
use holdoff::{
    Attempt, AttemptKind, Backoff, BackoffConfig, BreakerChange, BreakerConfig, BreakerState,
    BudgetConfig, BudgetEmpty, ChangeUnderWay, CircuitOpen, Class, ConfigError, CountersSnapshot,
    DelaySource, Event, Failure, Hint, HintSpread, HintTooLong, Instant, Jitter, Mode, NoCandidate,
    NoEntry, Observation, Outcome, Policy, PolicyConfig, Quota, Rate, Ratio, Reconnect, Refusal,
    Reservation, Safety, Sent, Step, Stop, StopCounts, UnhintedThrottle,
};

thread_local! {
    static WIRE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[defmt::global_logger]
struct Recorder;

unsafe impl defmt::Logger for Recorder {
    fn acquire() {}
    unsafe fn flush() {}
    unsafe fn release() {}
    unsafe fn write(bytes: &[u8]) {
        WIRE.with_borrow_mut(|wire| wire.extend(bytes));
    }
}

defmt::timestamp!("");

/// What a log line of nothing but `value` takes on the wire, its own number of two bytes included.
fn wire(value: impl Format) -> Vec<u8> {
    defmt::println!("{}", value);
    WIRE.take()
}

const BIG: u64 = 0x0102_0304_0506_0708;
const LONG: Duration = Duration::new(BIG, 0x090a_0b0c);
/// A limit that a call can have.
const TIMEOUT: Duration = Duration::new(0x3132_3334, 0x090a_0b0c);
const LATE: Instant = Instant::from_nanos(0x1112_1314_1516_1718);

fn long() -> Vec<Vec<u8>> {
    parts(LONG)
}

fn parts(duration: Duration) -> Vec<Vec<u8>> {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    vec![seconds.to_le_bytes().to_vec(), nanos.to_le_bytes().to_vec()]
}

fn late() -> Vec<Vec<u8>> {
    vec![LATE.as_nanos().to_le_bytes().to_vec()]
}

fn small(number: u32) -> Vec<Vec<u8>> {
    vec![number.to_le_bytes().to_vec()]
}

/// Whether `bytes` has all `numbers`, in their order.
fn carries(mut bytes: &[u8], numbers: &[Vec<u8>]) -> bool {
    numbers.iter().all(|number| {
        let found = bytes.windows(number.len()).position(|window| window == number);
        found.is_some_and(|at| {
            bytes = &bytes[at + number.len()..];
            true
        })
    })
}

#[test]
fn every_number_is_on_the_wire_as_it_is() {
    const NUMBER: u32 = 0x2122_2324;
    let hint = Hint::After { delay: LONG, granularity: NUMBER };
    let failure = Failure::throttled().with_hint(hint);
    let source = DelaySource::Hint;
    let mut counted = CountersSnapshot::default();
    (counted.attempts, counted.time_open, counted.stops.quota) = (BIG, LONG, LATE.as_nanos());
    for (number, (bytes, numbers)) in [
        (wire(LATE), late()),
        (wire(Attempt::new(NUMBER, Some(TIMEOUT))), [small(NUMBER), parts(TIMEOUT)].concat()),
        (wire(BreakerChange::Opened { until: LATE }), late()),
        (wire(BreakerState::HalfOpen { probing_until: Some(LATE) }), late()),
        (wire(CircuitOpen { retry_at: Some(LATE), is_probing: true }), late()),
        (wire(counted), [vec![BIG.to_le_bytes().to_vec()], long(), late()].concat()),
        (wire(Event::Backoff { failure, delay: LONG, source }), [long(), small(NUMBER)].concat()),
        (wire(Event::Breaker(BreakerChange::Reopened { until: LATE })), late()),
        (wire(Event::Stop(Stop::HintTooLong { hint: LONG })), long()),
        (wire(Event::Throttled { until: LATE }), late()),
        (wire(failure), [long(), small(NUMBER)].concat()),
        (wire(HintTooLong { hint: LONG }), long()),
        (wire(Outcome::Failure(failure)), [long(), small(NUMBER)].concat()),
        (wire(Policy::LLM.with_deadline(TIMEOUT)), parts(TIMEOUT)),
        (wire(Ratio::ppm(NUMBER)), small(NUMBER)),
        (wire(Refusal::Never { burst: NUMBER }), small(NUMBER)),
        (wire(Refusal::NotYet { until: LATE }), late()),
        (wire(Step::Backoff { until: LATE, source }), late()),
        (wire(Stop::CircuitOpen { retry_at: LATE }), late()),
        (wire(Stop::CostTooHigh { burst: NUMBER }), small(NUMBER)),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(carries(&bytes, &numbers), "{number}: {bytes:x?}");
    }
}

#[test]
fn names_stay_on_the_host_and_are_told_apart() {
    let stops = [
        Stop::Attempts,
        Stop::Budget,
        Stop::Cancelled,
        Stop::Committed,
        Stop::Deadline,
        Stop::Nested,
        Stop::NotIdempotent,
        Stop::Permanent,
        Stop::QueueFull,
        Stop::Quota,
    ];
    // The number of the line, of the type and of the variant: 5 bytes.
    let tags: BTreeSet<_> = stops.map(|stop| wire(Event::Stop(stop))).into();
    assert_eq!(tags.len(), stops.len());
    assert!(tags.iter().all(|bytes| bytes.len() <= 8), "{tags:x?}");

    let classes = [Class::Permanent, Class::Quota, Class::Throttled, Class::Transient];
    let tags: BTreeSet<_> = classes.map(wire).into();
    assert_eq!(tags.len(), classes.len());
}

#[test]
fn everything_there_is_to_log_can_be_logged() {
    const fn logs<T: Format>() {}
    macro_rules! logged {
        ($($type:ty),*) => { const { $(logs::<$type>();)* } };
    }
    logged!(
        Attempt,
        AttemptKind,
        Event,
        Observation,
        Step,
        Stop,
        DelaySource,
        GaveUp<u32>,
        Outcome,
        Failure,
        Class,
        Sent,
        Hint,
        Safety,
        Signals,
        Statuses,
        Instant,
        BreakerChange,
        BreakerState,
        CircuitOpen,
        Mode,
        Refusal,
        Reservation,
        ChangeUnderWay,
        BudgetEmpty,
        QueueFull,
        AcquireError,
        NoQueue,
        NoCandidate,
        NoEntry,
        CountersSnapshot,
        StopCounts,
        Reconnect,
        HintTooLong,
        ConfigError,
        Backoff,
        BackoffConfig,
        Jitter,
        Ratio,
        BreakerConfig,
        BudgetConfig,
        Quota,
        Rate,
        Policy,
        PolicyConfig,
        HintSpread,
        UnhintedThrottle
    );
    assert!(carries(&wire(Policy::LLM), &[secs(1).as_nanos().to_le_bytes()[..8].to_vec()]));
}
