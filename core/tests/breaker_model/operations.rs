//! What can be done to a breaker, and how clocks go.

use core::time::Duration;

use holdoff::{Instant, Mode};
use proptest::prelude::*;

use crate::reference::Report;
use crate::setups::nanos;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Acquire,
    Clock(Clock),
    Mode(Mode),
    /// By one of those who are out; dropped without a word rather than reported.
    Drop(usize),
    Report(usize, Report, u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    Back(Duration),
    Forward(Duration),
    /// To about the time at which something changes.
    Near(usize, i64),
    /// To about the time at which one who is out becomes slow.
    Slow(usize, i64),
    To(Instant),
}

/// Operations with leaps of the clock up to `leap`.
pub(crate) fn any_operation(leap: Duration) -> impl Strategy<Value = Operation> {
    let report = prop_oneof![
        8 => Just(Report::Failure),
        1 => Just(Report::Nothing),
        5 => Just(Report::Success),
    ];
    let sample = prop_oneof![any::<u64>(), Just(0_u64), Just(u64::MAX)];
    prop_oneof![
        60 => Just(Operation::Acquire),
        50 => (any::<usize>(), report, sample)
            .prop_map(|(who, report, sample)| Operation::Report(who, report, sample)),
        4 => any::<usize>().prop_map(Operation::Drop),
        40 => any_clock(leap).prop_map(Operation::Clock),
        2 => any_mode().prop_map(Operation::Mode),
    ]
}

fn any_clock(leap: Duration) -> impl Strategy<Value = Clock> {
    let leap = u64::try_from(leap.as_nanos()).expect("under 584 years");
    let off = prop_oneof![Just(0_i64), -2..=2_i64, -2_000_000..=2_000_000_i64];
    prop_oneof![
        8 => nanos(0..=4_000_000_000).prop_map(Clock::Forward),
        4 => (0..=40_u64).prop_map(|tenths| Clock::Forward(Duration::from_millis(tenths * 100))),
        1 => nanos(0..=leap).prop_map(Clock::Forward),
        3 => nanos(0..=30_000_000_000).prop_map(Clock::Back),
        12 => (any::<usize>(), off.clone())
            .prop_map(|(which, off)| Clock::Near(which, off)),
        6 => (any::<usize>(), off).prop_map(|(who, off)| Clock::Slow(who, off)),
        1 => prop_oneof![Just(0_u64), Just(1), Just(leap)]
            .prop_map(|nanos| Clock::To(Instant::from_nanos(nanos))),
    ]
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        1 => Just(Mode::Disabled),
        1 => Just(Mode::ForcedOpen),
        2 => Just(Mode::Normal),
        2 => Just(Mode::Shadow),
    ]
}
