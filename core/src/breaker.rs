//! A circuit breaker in one word.
//!
//! The word and its transitions are in `word`; here are those who call them: time comes in, a
//! compare-and-swap, and a permit that reports.

mod config;
mod permit;
mod state;
mod window;
mod word;

use core::time::Duration;

pub use self::config::BreakerConfig;
use self::config::Terms;
pub use self::permit::Permit;
use self::permit::Role;
pub(crate) use self::permit::Ticket;
pub use self::state::{BreakerChange, BreakerState, CircuitOpen};
pub(crate) use self::word::Ending;
pub use self::word::Mode;
use self::word::{Admission, Fields, Phase, Rule};
use crate::sync::{Next, Word};
use crate::time::{Instant, saturating_nanos};
use crate::wide::{divided, divided_up};

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
            word: Word::new(word::closed(terms.rule)),
            recovered_at: Word::new(0),
            terms,
            buckets: [const { Word::new(0) }; BUCKETS],
        }
    }

    #[cfg(loom)]
    fn new(terms: Terms) -> Self {
        Self {
            word: Word::new(word::closed(terms.rule)),
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
        let ticket = match self.ticket_if_healthy(now) {
            Some(ticket) => ticket,
            None => self.admit(now, 0)?,
        };
        Ok(Permit::new(self, ticket))
    }

    /// The same, a probe's lease beginning only when the time (ms) is over that its attempt may
    /// take: the longest open period if that has no limit. Who takes the ticket must report or
    /// [release](Self::release) it.
    pub(crate) fn admit_within(
        &self,
        now: Instant,
        timeout: Option<Duration>,
    ) -> Result<Ticket, CircuitOpen> {
        let patience = match timeout {
            Some(timeout) => divided_up::<NANOS>(saturating_nanos(timeout)),
            None => self.terms.max_open_period(),
        };
        self.admit(now, patience)
    }

    /// Whether it is closed and decides for itself.
    #[inline]
    pub(crate) fn is_healthy(&self) -> bool {
        word::healthy(self.word.load()).is_some()
    }

    /// What admits a call to a breaker that is closed and decides for itself.
    #[inline]
    pub(crate) fn ticket_if_healthy(&self, now: Instant) -> Option<Ticket> {
        let generation = word::healthy(self.word.load())?;
        Some(Ticket { admitted_at: now, generation, role: Role::Call })
    }

    /// Whether [`try_acquire`](Self::try_acquire) would be refused; takes nothing.
    ///
    /// # Errors
    /// [`CircuitOpen`] with the time to come back.
    #[inline]
    pub fn peek(&self, now: Instant) -> Result<(), CircuitOpen> {
        let word = self.word.load();
        if word::healthy(word).is_some() { Ok(()) } else { peek_unhealthy(word, now) }
    }

    /// Whether, as things stand, it cannot but refuse whoever asks at `then`. A probe under way is
    /// no such reason: it may be over by then.
    pub(crate) fn refuses_at(&self, then: Instant) -> Option<CircuitOpen> {
        let fields = Fields::unpacked(self.word.load());
        match (fields.mode, fields.phase) {
            (Mode::ForcedOpen, _) => Some(CircuitOpen { retry_at: None, is_probing: false }),
            (Mode::Normal, Phase::Open { end }) if millis_down(then) < end => {
                Some(CircuitOpen { retry_at: Some(instant(end)), is_probing: false })
            }
            _ => None,
        }
    }

    /// When it will have refused nobody for a stable period, if nobody asks: then it is as a new
    /// one.
    pub(crate) fn idle_at(&self) -> Instant {
        let since = match Fields::unpacked(self.word.load()).phase {
            Phase::Closed { .. } => self.recovered_at.load(),
            Phase::Open { end: at } | Phase::HalfOpen { lease: at, .. } => at,
        };
        if since == 0 { Instant::EPOCH } else { instant(later(since, self.terms.stable_period())) }
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
        self.word.update(|word| Next::Store(word::switched(word, mode, self.terms.rule), ()));
        window::clear(&self.buckets);
    }

    /// Admits a call, most likely to a breaker that is not healthy.
    fn admit(&self, now: Instant, patience: u64) -> Result<Ticket, CircuitOpen> {
        match word::open_end(self.word.load()).map(instant) {
            Some(until) if now < until => {
                Err(CircuitOpen { retry_at: Some(until), is_probing: false })
            }
            _ => self.admit_unhealthy(now, patience),
        }
    }

    #[cold]
    fn admit_unhealthy(&self, now: Instant, patience: u64) -> Result<Ticket, CircuitOpen> {
        let lease_end = later(millis_up(now), u64::from(self.terms.lease).saturating_add(patience));
        let (admission, word) = self.word.update(|word| {
            let (new, admission) = word::admit(word, millis_down(now), lease_end);
            stored(new, (admission, word))
        });
        let (generation, role) = match (admission, word::mode(word)) {
            (Admission::Call { generation }, _) => (generation, Role::Call),
            (Admission::Probe { generation }, _) => (generation, Role::Probe),
            (Admission::Refused { .. }, Mode::Shadow) => (0, Role::Shadow),
            (Admission::Refused { retry_at }, _) => return Err(refused(word, retry_at)),
        };
        Ok(Ticket { admitted_at: now, generation, role })
    }

    /// Gives a ticket back without a report: the place of a probe is free at once.
    #[inline]
    pub(crate) fn release(&self, ticket: Ticket) {
        if ticket.role == Role::Probe {
            self.report_outcome(ticket.admitted_at, ticket.generation, Ending::Neutral, 0);
        }
    }

    /// Whether a report changes nothing and needs no sample.
    #[inline]
    pub(crate) fn is_unmoved(&self, now: Instant, ticket: Ticket, ending: Ending) -> bool {
        ticket.role == Role::Shadow
            || !self.counts_over_time()
                && self.judged(now, ticket, ending) == Ending::Success
                && word::is_at_rest(self.word.load(), ticket.generation)
    }

    /// Reports how a call ended.
    pub(crate) fn report_ending(
        &self,
        now: Instant,
        ticket: Ticket,
        ending: Ending,
        sample: u64,
    ) -> Option<BreakerChange> {
        self.report_outcome(now, ticket.generation, self.judged(now, ticket, ending), sample)
    }

    /// A success that took too long is a failure.
    #[inline]
    fn judged(&self, now: Instant, ticket: Ticket, ending: Ending) -> Ending {
        if ending != Ending::Success || self.terms.slow == u32::MAX {
            return ending;
        }
        let taken = now.as_nanos().saturating_sub(ticket.admitted_at.as_nanos());
        let most = u64::from(self.terms.slow) * u64::from(NANOS); // OK: below 2^52.
        if taken > most { Ending::Failure } else { Ending::Success }
    }

    fn report_outcome(
        &self,
        now: Instant,
        generation: u16,
        ending: Ending,
        sample: u64,
    ) -> Option<BreakerChange> {
        // One after the other, so that only one is on the stack.
        if !self.counts_over_time() && self.is_noted(generation, ending) {
            return None;
        }
        self.report_change(now, generation, ending, sample)
    }

    /// Counts one more outcome; false if there is more to the report than that.
    #[inline(never)]
    fn is_noted(&self, generation: u16, ending: Ending) -> bool {
        self.word.update(|word| match word::noted(word, generation, self.terms.rule, ending) {
            Some(new) if new == word => Next::Keep(true),
            Some(new) => Next::Store(new, true),
            None => Next::Keep(false),
        })
    }

    #[cold]
    #[inline(never)]
    fn report_change(
        &self,
        now: Instant,
        generation: u16,
        ending: Ending,
        sample: u64,
    ) -> Option<BreakerChange> {
        let word = self.word.load();
        if !word::counts(word, generation) {
            return None;
        }
        let trips = match Fields::unpacked(word).phase {
            Phase::Closed { .. } if self.counts_over_time() => {
                if !self.too_many_failures(now, ending) {
                    return None;
                }
                true
            }
            Phase::HalfOpen { .. } if ending == Ending::Success => {
                // Before the word says closed, so that nobody sees it closed since long ago.
                let up = millis_up(now);
                self.recovered_at
                    .update(|at| if at < up { Next::Store(up, ()) } else { Next::Keep(()) });
                false
            }
            _ => false,
        };
        let change = self.word.update(|word| {
            let terms = word::Terms {
                rule: self.terms.rule,
                trips,
                probes: self.terms.probes,
                is_stable: || {
                    let stable_at = later(self.recovered_at.load(), self.terms.stable_period());
                    stable_at <= millis_down(now)
                },
                opens_until: |step| later(millis_up(now), self.terms.open_period(step, sample)),
            };
            let new = word::report(word, generation, ending, terms);
            stored(new, new.map(|new| (word, new)))
        });
        let change = change.and_then(|(old, new)| self::change(old, new));
        if let Some(BreakerChange::Opened { .. } | BreakerChange::Reopened { .. }) = change {
            // What was counted before the trip must not trip it again once it is closed.
            window::clear(&self.buckets);
        }
        change
    }

    #[inline]
    const fn counts_over_time(&self) -> bool {
        BUCKETS > 0 && matches!(self.terms.rule, Rule::OverTime { .. })
    }

    /// Counts an outcome over time; whether there are too many failures now.
    fn too_many_failures(&self, now: Instant, ending: Ending) -> bool {
        let (Rule::OverTime { least, period, ppm }, false) =
            (self.terms.rule, ending == Ending::Neutral)
        else {
            return false;
        };
        let number = window::number(millis_down(now), period);
        window::count(&self.buckets, number, ending == Ending::Failure);
        let (calls, failures) = window::totals(&self.buckets, number);
        // OK: at most `BUCKETS` times 2^16 calls.
        calls >= u64::from(least) && failures * 1_000_000 > u64::from(ppm) * calls
    }
}

#[cold]
fn peek_unhealthy(word: u64, now: Instant) -> Result<(), CircuitOpen> {
    match word::admit(word, millis_down(now), 0).1 {
        Admission::Refused { retry_at } if word::mode(word) != Mode::Shadow => {
            Err(refused(word, retry_at))
        }
        _ => Ok(()),
    }
}

fn refused(word: u64, retry_at: Option<u64>) -> CircuitOpen {
    let is_probing = matches!(Fields::unpacked(word).phase, Phase::HalfOpen { .. });
    CircuitOpen { retry_at: retry_at.map(instant), is_probing }
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

const NANOS: u32 = 1_000_000;

/// Rounded down; stands still just before the latest time that a word can hold.
const fn millis_down(instant: Instant) -> u64 {
    let millis = divided::<NANOS>(instant.as_nanos()).0;
    if millis < word::TIME_MAX { millis } else { word::TIME_MAX - 1 }
}

const fn millis_up(instant: Instant) -> u64 {
    divided_up::<NANOS>(instant.as_nanos())
}

/// What ends at the latest time that a word can hold never ends.
const fn instant(millis: u64) -> Instant {
    if millis < word::TIME_MAX { Instant::from_nanos(millis * NANOS as u64) } else { Instant::MAX }
}
