//! A circuit breaker in one word.
//!
//! The word and its transitions are in `word`; here are those who call them: time comes in, a
//! compare-and-swap, and a permit that reports.

mod config;
mod permit;
mod window;
mod word;

use core::error::Error;
use core::fmt;

pub use self::config::BreakerConfig;
use self::config::Terms;
pub use self::permit::Permit;
pub use self::word::Mode;
use self::word::{Admission, Ending, Fields, Phase, Rule};
use crate::sync::{Next, Word};
use crate::time::Instant;

/// Whether a breaker admits calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls are admitted and their outcomes counted.
    Closed,
    /// Everything is admitted and nothing counted, by [`Mode::Disabled`].
    Disabled,
    /// Nothing is admitted, by [`Mode::ForcedOpen`].
    ForcedOpen,
    /// The open period is over: one probe at a time finds out whether the service is back.
    HalfOpen {
        /// Until when the probe under way holds the slot; `None` if it is free.
        probing_until: Option<Instant>,
    },
    /// Nothing is admitted before then.
    Open {
        /// The end of the open period.
        until: Instant,
    },
}

/// A report that changed what the breaker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerChange {
    /// The last probe succeeded: the service is back.
    Closed,
    /// It tripped.
    Opened {
        /// The end of the open period.
        until: Instant,
    },
    /// A probe failed: it is open for another period.
    Reopened {
        /// The end of the open period.
        until: Instant,
    },
}

/// Why a breaker did not admit a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CircuitOpen {
    /// The earliest instant at which asking again can succeed: [`Instant::MAX`], which is never, past
    /// the end of its time; `None` while it is forced open.
    pub retry_at: Option<Instant>,
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("circuit breaker is open")
    }
}

impl Error for CircuitOpen {}

/// A circuit breaker, usable through `&self` from any thread, task or interrupt.
///
/// What keeps its half-open state from flooding a service or wedging:
/// - exactly one probe at a time;
/// - a probe that ends without evidence (dropped, cancelled, a client error) frees the slot at
///   once;
/// - a probe that never reports loses the slot after a lease;
/// - what calls admitted before a trip report, or a probe whose place another has taken, changes
///   nothing.
///
/// 48 bytes, configuration included, and 8 for each of the `BUCKETS` of a [rule over
/// time](BreakerConfig::rate_over). A healthy breaker that counts failures in a row is read and not
/// written. Times are kept in milliseconds and rounded so that it never opens early; past 139 years
/// after the clock's epoch an open period has no end.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{BreakerConfig, BreakerState, CircuitBreaker, Instant, valid};
///
/// static BREAKER: CircuitBreaker = valid!(
///     BreakerConfig::consecutive(3).with_open_period(Duration::from_secs(10)).build()
/// );
///
/// let now = Instant::EPOCH;
/// for _ in 0..3 {
///     BREAKER.try_acquire(now).unwrap().failure(now, || 0);
/// }
/// let until = now.saturating_add(Duration::from_secs(10));
/// assert_eq!(BREAKER.state(now), BreakerState::Open { until });
/// assert_eq!(BREAKER.try_acquire(now).unwrap_err().retry_at, Some(until));
///
/// // One probe, and nobody beside it.
/// let probe = BREAKER.try_acquire(until).unwrap();
/// assert!(BREAKER.try_acquire(until).is_err());
/// probe.success(until, || 0);
/// assert_eq!(BREAKER.state(until), BreakerState::Closed);
/// ```
#[derive(Debug)]
pub struct CircuitBreaker<const BUCKETS: usize = 0> {
    word: Word,
    /// When a probe last succeeded (ms), to tell a service that is stable from one that flaps.
    recovered_at: Word,
    terms: Terms,
    buckets: [Word; BUCKETS],
}

impl<const BUCKETS: usize> CircuitBreaker<BUCKETS> {
    #[cfg(not(loom))]
    const fn new(terms: Terms) -> Self {
        Self {
            word: Word::new(word::CLOSED),
            recovered_at: Word::new(0),
            terms,
            buckets: [const { Word::new(0) }; BUCKETS],
        }
    }

    #[cfg(loom)]
    fn new(terms: Terms) -> Self {
        Self {
            word: Word::new(word::CLOSED),
            recovered_at: Word::new(0),
            terms,
            buckets: core::array::from_fn(|_| Word::new(0)),
        }
    }

    /// Asks to call; the permit reports how the call ended.
    ///
    /// # Errors
    /// [`CircuitOpen`] with the time to come back; nothing is taken.
    #[inline]
    pub fn try_acquire(&self, now: Instant) -> Result<Permit<'_, BUCKETS>, CircuitOpen> {
        match word::healthy(self.word.load()) {
            Some(generation) => Ok(Permit::call(self, now, generation)),
            None => self.try_acquire_unhealthy(now),
        }
    }

    /// Whether [`try_acquire`](Self::try_acquire) would be refused; takes nothing.
    ///
    /// # Errors
    /// [`CircuitOpen`] with the time to come back.
    #[inline]
    pub fn peek(&self, now: Instant) -> Result<(), CircuitOpen> {
        let word = self.word.load();
        if word::healthy(word).is_some() {
            return Ok(());
        }
        match word::admit(word, millis_down(now), 0).1 {
            Admission::Refused { retry_at } if word::mode(word) != Mode::Shadow => {
                Err(CircuitOpen { retry_at: retry_at.map(instant) })
            }
            _ => Ok(()),
        }
    }

    /// Whether, as things stand, it cannot but refuse whoever asks at `then`. A probe under way is no
    /// such reason: it may be over by then.
    pub(crate) fn refuses_at(&self, then: Instant) -> Option<CircuitOpen> {
        let fields = Fields::unpacked(self.word.load());
        match (fields.mode, fields.phase) {
            (Mode::ForcedOpen, _) => Some(CircuitOpen { retry_at: None }),
            (Mode::Normal, Phase::Open { end }) if millis_down(then) < end => {
                Some(CircuitOpen { retry_at: Some(instant(end)) })
            }
            _ => None,
        }
    }

    /// When it will let somebody through, if nobody asks; `None` if it is run by hand in another mode
    /// than normal.
    pub(crate) fn idle_at(&self, now: Instant) -> Option<Instant> {
        match self.state(now) {
            _ if self.mode() != Mode::Normal => None,
            BreakerState::Open { until: at }
            | BreakerState::HalfOpen { probing_until: Some(at) } => Some(at),
            _ => Some(Instant::EPOCH),
        }
    }

    /// What it does at `now`.
    #[must_use]
    pub fn state(&self, now: Instant) -> BreakerState {
        let now = millis_down(now);
        let fields = Fields::unpacked(self.word.load());
        match (fields.mode, fields.phase) {
            (Mode::Disabled, _) => BreakerState::Disabled,
            (Mode::ForcedOpen, _) => BreakerState::ForcedOpen,
            (_, Phase::Closed { .. }) => BreakerState::Closed,
            (_, Phase::Open { end }) if now < end => BreakerState::Open { until: instant(end) },
            (_, Phase::HalfOpen { lease, .. }) if now < lease => {
                BreakerState::HalfOpen { probing_until: Some(instant(lease)) }
            }
            (_, Phase::HalfOpen { .. } | Phase::Open { .. }) => {
                BreakerState::HalfOpen { probing_until: None }
            }
        }
    }

    /// How it is run.
    #[must_use]
    pub fn mode(&self) -> Mode {
        word::mode(self.word.load())
    }

    /// Runs it in `mode` from now on, closed and with nothing counted; calls under way no longer
    /// count.
    pub fn set_mode(&self, mode: Mode) {
        self.word.update(|word| Next::Store(word::switched(word, mode), ()));
        window::clear(&self.buckets);
    }

    #[cold]
    fn try_acquire_unhealthy(&self, now: Instant) -> Result<Permit<'_, BUCKETS>, CircuitOpen> {
        let lease_end = later(millis_up(now), self.terms.lease.into());
        let (admission, mode) = self.word.update(|word| {
            let (new, admission) = word::admit(word, millis_down(now), lease_end);
            stored(new, (admission, word::mode(word)))
        });
        match (admission, mode) {
            (Admission::Call { generation }, _) => Ok(Permit::call(self, now, generation)),
            (Admission::Probe { generation }, _) => Ok(Permit::probe(self, now, generation)),
            (Admission::Refused { .. }, Mode::Shadow) => Ok(Permit::shadow(self, now)),
            (Admission::Refused { retry_at }, _) => {
                Err(CircuitOpen { retry_at: retry_at.map(instant) })
            }
        }
    }

    #[inline]
    fn report(
        &self,
        now: Instant,
        generation: u16,
        ending: Ending,
        sample: impl FnOnce() -> u64,
    ) -> Option<BreakerChange> {
        let word = self.word.load();
        let is_stale = !word::counts(word, generation);
        if is_stale || word::is_untouched(word, self.terms.rule, ending) {
            return None;
        }
        self.report_change(now, generation, ending, sample())
    }

    #[cold]
    fn report_change(
        &self,
        now: Instant,
        generation: u16,
        ending: Ending,
        sample: u64,
    ) -> Option<BreakerChange> {
        let (down, up) = (millis_down(now), millis_up(now));
        let fields = Fields::unpacked(self.word.load());
        let trips = match fields.phase {
            Phase::Closed { .. } => self.too_many_failures(down, ending),
            Phase::HalfOpen { .. } if ending == Ending::Success => {
                // Before the word says closed, so that nobody sees it closed since long ago.
                self.recovered_at
                    .update(|at| if at < up { Next::Store(up, ()) } else { Next::Keep(()) });
                false
            }
            Phase::HalfOpen { .. } | Phase::Open { .. } => false,
        };
        let change = self.word.update(|word| {
            let stable_at = later(self.recovered_at.load(), self.terms.stable_period());
            let terms = word::Terms {
                rule: self.terms.rule,
                probes: self.terms.probes,
                is_stable: stable_at <= down,
                opens_until: |step| later(up, self.terms.open_period(step, sample)),
            };
            let new = if trips {
                word::trip(word, generation, terms)
            } else {
                word::report(word, generation, ending, terms)
            };
            stored(new, new.and_then(|new| change(word, new)))
        });
        if let Some(BreakerChange::Opened { .. } | BreakerChange::Reopened { .. }) = change {
            // What was counted before the trip must not trip it again once it is closed.
            window::clear(&self.buckets);
        }
        change
    }

    /// Counts an outcome over time; whether there are too many failures now.
    fn too_many_failures(&self, now: u64, ending: Ending) -> bool {
        let (Rule::OverTime { least, period, ppm }, false) =
            (self.terms.rule, ending == Ending::Neutral)
        else {
            return false;
        };
        let number = window::number(now, period);
        window::count(&self.buckets, number, ending == Ending::Failure);
        let (calls, failures) = window::totals(&self.buckets, number);
        // OK: at most `BUCKETS` times 2^16 calls.
        calls >= u64::from(least) && failures * 1_000_000 > u64::from(ppm) * calls
    }
}

/// What a new word means to those who watch.
const fn change(old: u64, new: u64) -> Option<BreakerChange> {
    match (Fields::unpacked(old).phase, Fields::unpacked(new).phase) {
        (Phase::HalfOpen { .. }, Phase::Open { end }) => {
            Some(BreakerChange::Reopened { until: instant(end) })
        }
        (_, Phase::Open { end }) => Some(BreakerChange::Opened { until: instant(end) }),
        (Phase::HalfOpen { .. }, Phase::Closed { .. }) => Some(BreakerChange::Closed),
        _ => None,
    }
}

const fn stored<R: Copy>(new: Option<u64>, result: R) -> Next<R> {
    match new {
        Some(new) => Next::Store(new, result),
        None => Next::Keep(result),
    }
}

/// A time and a length (ms), at most the latest time a word can hold.
fn later(time: u64, length: u64) -> u64 {
    time.saturating_add(length).min(word::TIME_MAX)
}

const NANOS: u64 = 1_000_000;

/// Rounded down; stands still just before the latest time that a word can hold.
const fn millis_down(instant: Instant) -> u64 {
    let millis = instant.as_nanos() / NANOS;
    if millis < word::TIME_MAX { millis } else { word::TIME_MAX - 1 }
}

const fn millis_up(instant: Instant) -> u64 {
    instant.as_nanos().div_ceil(NANOS)
}

/// What ends at the latest time that a word can hold never ends.
const fn instant(millis: u64) -> Instant {
    if millis < word::TIME_MAX { Instant::from_nanos(millis * NANOS) } else { Instant::MAX }
}
