//! What an operator wants to know of a service, counted.

use core::time::Duration;

use crate::breaker::BreakerChange;
use crate::call::{AttemptKind, Event, Observation, Observer, Stop};
use crate::sync::{Next, Word};
use crate::time::{Instant, saturating_nanos};

/// Counts what calls do, usable through `&self` from any thread, task or interrupt.
///
/// ```
/// use holdoff::{Call, Counters, Instant, Outcome, Policy, Safety};
///
/// let counters = Counters::new();
/// let now = Instant::EPOCH;
/// let mut call =
///     Call::new(&Policy::STANDARD, Safety::Idempotent, now).with_observer(&counters);
/// call.poll(now, || 0);
/// call.record(now, Outcome::Success, || 0);
/// let snapshot = counters.snapshot();
/// assert_eq!((snapshot.calls, snapshot.attempts, snapshot.successes), (1, 1, 1));
/// ```
#[derive(Debug)]
pub struct Counters {
    words: [Word; COUNT],
}

/// What [`Counters`] had counted at one moment.
///
/// Each number is exact; numbers that change while they are read may be of slightly different
/// moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct CountersSnapshot {
    /// Calls that started an attempt or were stopped before one.
    pub calls: u64,
    /// Attempts started.
    pub attempts: u64,
    /// Attempts beyond a call's first.
    pub retries: u64,
    /// Calls that succeeded.
    pub successes: u64,
    /// Times a call was told to wait for the limiter; a call that asks before its time is told
    /// again.
    pub throttles: u64,
    /// Probes of a half-open breaker.
    pub probes: u64,
    /// Attempts that the breaker, run in [`Mode::Shadow`](crate::Mode::Shadow), would have refused.
    pub shadow_refusals: u64,
    /// Times the breaker tripped.
    pub opens: u64,
    /// Times a probe failed and the breaker stayed open for another period.
    pub reopens: u64,
    /// The open periods of the breaker together, each counted in full when it begins; not the time
    /// for which it is forced open. In shadow the time for which it would have been open.
    pub time_open: Duration,
    /// Calls stopped, by reason.
    pub stops: StopCounts,
}

/// Calls stopped, by reason: the fields are named for [`Stop`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct StopCounts {
    /// [`Stop::Attempts`].
    pub attempts: u64,
    /// [`Stop::Budget`].
    pub budget: u64,
    /// [`Stop::Cancelled`].
    pub cancelled: u64,
    /// [`Stop::CircuitOpen`].
    pub circuit_open: u64,
    /// [`Stop::Committed`].
    pub committed: u64,
    /// [`Stop::CostTooHigh`].
    pub cost_too_high: u64,
    /// [`Stop::Deadline`].
    pub deadline: u64,
    /// [`Stop::HintTooLong`].
    pub hint_too_long: u64,
    /// [`Stop::Nested`].
    pub nested: u64,
    /// [`Stop::NotIdempotent`].
    pub not_idempotent: u64,
    /// [`Stop::Permanent`].
    pub permanent: u64,
    /// [`Stop::QueueFull`].
    pub queue_full: u64,
    /// [`Stop::Quota`].
    pub quota: u64,
}

/// Which word counts what.
#[derive(Clone, Copy)]
enum Counter {
    Calls,
    Attempts,
    Retries,
    Successes,
    Throttles,
    Probes,
    ShadowRefusals,
    Opens,
    Reopens,
    NanosOpen,
    StopAttempts,
    StopBudget,
    StopCancelled,
    StopCircuitOpen,
    StopCommitted,
    StopCostTooHigh,
    StopDeadline,
    StopHintTooLong,
    StopNested,
    StopNotIdempotent,
    StopPermanent,
    StopQueueFull,
    StopQuota,
}

const COUNT: usize = Counter::StopQuota as usize + 1;

impl Counters {
    /// Nothing counted.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { words: [const { Word::new(0) }; COUNT] }
    }

    /// Nothing counted.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { words: core::array::from_fn(|_| Word::new(0)) }
    }

    /// What has been counted so far.
    #[must_use]
    pub fn snapshot(&self) -> CountersSnapshot {
        let read = |counter: Counter| self.words[counter as usize].load();
        CountersSnapshot {
            calls: read(Counter::Calls),
            attempts: read(Counter::Attempts),
            retries: read(Counter::Retries),
            successes: read(Counter::Successes),
            throttles: read(Counter::Throttles),
            probes: read(Counter::Probes),
            shadow_refusals: read(Counter::ShadowRefusals),
            opens: read(Counter::Opens),
            reopens: read(Counter::Reopens),
            time_open: Duration::from_nanos(read(Counter::NanosOpen)),
            stops: StopCounts {
                attempts: read(Counter::StopAttempts),
                budget: read(Counter::StopBudget),
                cancelled: read(Counter::StopCancelled),
                circuit_open: read(Counter::StopCircuitOpen),
                committed: read(Counter::StopCommitted),
                cost_too_high: read(Counter::StopCostTooHigh),
                deadline: read(Counter::StopDeadline),
                hint_too_long: read(Counter::StopHintTooLong),
                nested: read(Counter::StopNested),
                not_idempotent: read(Counter::StopNotIdempotent),
                permanent: read(Counter::StopPermanent),
                queue_full: read(Counter::StopQueueFull),
                quota: read(Counter::StopQuota),
            },
        }
    }

    /// Nothing counted again.
    pub(crate) fn clear(&self) {
        for word in &self.words {
            word.update(|_| Next::Store(0, ()));
        }
    }

    fn add(&self, counter: Counter, more: u64) {
        self.words[counter as usize].add(more);
    }

    fn add_open_period(&self, counter: Counter, now: Instant, until: Instant) {
        self.add(counter, 1);
        let open = saturating_nanos(until.saturating_duration_since(now));
        // An open period past the end of the breaker's time is endless.
        self.words[Counter::NanosOpen as usize]
            .update(|nanos| Next::Store(nanos.saturating_add(open), ()));
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Counters {
    fn on_event(&self, observation: &Observation) {
        match observation.event {
            Event::Attempt { kind } => {
                self.add(Counter::Attempts, 1);
                let first = observation.attempts == 1;
                self.add(if first { Counter::Calls } else { Counter::Retries }, 1);
                match kind {
                    AttemptKind::Ordinary => {}
                    AttemptKind::Probe => self.add(Counter::Probes, 1),
                    AttemptKind::Shadow => self.add(Counter::ShadowRefusals, 1),
                }
            }
            Event::Backoff { .. } | Event::Breaker(BreakerChange::Closed) => {}
            Event::Breaker(BreakerChange::Opened { until }) => {
                self.add_open_period(Counter::Opens, observation.now, until);
            }
            Event::Breaker(BreakerChange::Reopened { until }) => {
                self.add_open_period(Counter::Reopens, observation.now, until);
            }
            Event::Stop(stop) => {
                if observation.attempts == 0 {
                    self.add(Counter::Calls, 1);
                }
                self.add(counter_of(stop), 1);
            }
            Event::Success => self.add(Counter::Successes, 1),
            Event::Throttled { .. } => self.add(Counter::Throttles, 1),
        }
    }
}

const fn counter_of(stop: Stop) -> Counter {
    match stop {
        Stop::Attempts => Counter::StopAttempts,
        Stop::Budget => Counter::StopBudget,
        Stop::Cancelled => Counter::StopCancelled,
        Stop::CircuitOpen { .. } => Counter::StopCircuitOpen,
        Stop::Committed => Counter::StopCommitted,
        Stop::CostTooHigh { .. } => Counter::StopCostTooHigh,
        Stop::Deadline => Counter::StopDeadline,
        Stop::HintTooLong { .. } => Counter::StopHintTooLong,
        Stop::Nested => Counter::StopNested,
        Stop::NotIdempotent => Counter::StopNotIdempotent,
        Stop::Permanent => Counter::StopPermanent,
        Stop::QueueFull => Counter::StopQueueFull,
        Stop::Quota => Counter::StopQuota,
    }
}
