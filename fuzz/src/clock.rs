//! Clocks that stand still, step back and leap.

use arbitrary::Arbitrary;
use holdoff::Instant;

use crate::amount::Unit;

/// What a clock does between two readings.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Tick {
    Ahead {
        count: u8,
        unit: Unit,
    },
    Back {
        count: u8,
        unit: Unit,
    },
    Leap {
        to: Instants,
    },
    Still,
    /// To the time that was named last, or next to it: where mistakes are.
    ToNamed(Nudge),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Nudge {
    After,
    At,
    Before,
}

/// Where a clock leaps to.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Instants {
    Any(u64),
    /// So far before the end of time.
    End(u16),
    Epoch,
}

/// A clock moved by ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TestClock {
    now: u64,
    named: u64,
    latest: u64,
}

impl TestClock {
    pub(crate) const fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// The latest reading so far.
    pub(crate) const fn latest(&self) -> Instant {
        Instant::from_nanos(self.latest)
    }

    /// Remembers a time that an answer named.
    pub(crate) const fn name(&mut self, time: Instant) {
        self.named = time.as_nanos();
    }

    pub(crate) fn tick(&mut self, tick: Tick) {
        let by = |count, unit: Unit| u64::from(count).saturating_mul(unit.nanos());
        self.now = match tick {
            Tick::Ahead { count, unit } => self.now.saturating_add(by(count, unit)),
            Tick::Back { count, unit } => self.now.saturating_sub(by(count, unit)),
            Tick::Leap { to: Instants::Any(nanos) } => nanos,
            Tick::Leap { to: Instants::End(before) } => u64::MAX - u64::from(before),
            Tick::Leap { to: Instants::Epoch } => 0,
            Tick::Still => self.now,
            Tick::ToNamed(Nudge::After) => self.named.saturating_add(1),
            Tick::ToNamed(Nudge::At) => self.named,
            Tick::ToNamed(Nudge::Before) => self.named.saturating_sub(1),
        };
        self.latest = self.latest.max(self.now);
    }
}
