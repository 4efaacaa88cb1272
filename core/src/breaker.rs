//! A circuit breaker in one word.
//!
//! The word and its transitions are in `word`; here are those who call them: time comes in, a
//! compare-and-swap, and a permit that reports.

mod config;
mod millis;
mod permit;
mod state;
mod window;
mod word;

pub use self::config::BreakerConfig;
use self::config::Terms;
pub use self::permit::Permit;
pub(crate) use self::permit::Ticket;
pub(crate) use self::state::Refusal;
pub use self::state::{BreakerChange, BreakerState, CircuitOpen};
pub use self::word::Mode;
pub(crate) use self::word::{Ending, Role};
use self::word::{Phase, Rule};
use crate::sync::{Next, Word};
use crate::time::Instant;
use crate::wide::INLINES;

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
            None => self.admit_by_hand(now)?,
        };
        Ok(Permit::new(self, ticket))
    }

    /// The same, a probe's lease beginning only when the time (ms) is over that its attempt may
    /// take: the longest open period if that has no limit. Who takes the ticket must report or
    /// [release](Self::release) it.
    #[inline]
    pub(crate) fn admit_within(&self, now: Instant, timeout: u64) -> Result<Ticket, Refusal> {
        let lease = u64::from(self.terms.lease);
        let lease = match timeout {
            u64::MAX => lease + self.terms.max_open_period(), // OK: both are u32s.
            timeout => millis::up(timeout, lease),
        };
        self.admit(now, lease)
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
        if self.is_healthy() {
            return Ok(());
        }
        self.look(now).map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    /// Why whoever asks at `then` would be refused, as things stand.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn look(&self, then: Instant) -> Option<Refusal> {
        let word = self.word.load();
        if word::role(word, then).is_none() { Refusal::by(word) } else { None }
    }

    /// Why it cannot but refuse whoever asks at `then`. A probe under way is no such reason: it may
    /// be over by then.
    pub(crate) fn look_ahead(&self, then: Instant) -> Option<Refusal> {
        self.look(then).filter(|refusal| !refusal.is_probing())
    }

    /// When it will have refused nobody for a stable period, if nobody asks: then it is as a new
    /// one.
    pub(crate) fn idle_at(&self) -> Instant {
        let word = self.word.load();
        let since = match word::phase(word) {
            Phase::Closed => self.recovered_at.load(),
            Phase::Open | Phase::HalfOpen => word::end(word),
        };
        // OK: a time of a word and a u16 of seconds.
        let idle_at = since + self.terms.stable_period();
        if since == 0 { Instant::EPOCH } else { millis::instant(idle_at) }
    }

    /// What it does at `now`.
    #[must_use]
    pub fn state(&self, now: Instant) -> BreakerState {
        let word = self.word.load();
        let end = millis::instant(word::end(word));
        match (word::mode(word), word::phase(word)) {
            (Mode::Disabled, _) => BreakerState::Disabled,
            (Mode::ForcedOpen, _) => BreakerState::ForcedOpen,
            (_, Phase::Closed) => BreakerState::Closed,
            _ if word::is_free(word) || !millis::is_before(now, word::end(word)) => {
                BreakerState::HalfOpen { probing_until: None }
            }
            (_, Phase::Open) => BreakerState::Open { until: end },
            (_, Phase::HalfOpen) => BreakerState::HalfOpen { probing_until: Some(end) },
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
    fn admit_by_hand(&self, now: Instant) -> Result<Ticket, CircuitOpen> {
        match word::open_end(self.word.load()).map(millis::instant) {
            Some(until) if INLINES && now < until => {
                Err(CircuitOpen { retry_at: Some(until), is_probing: false })
            }
            _ => self.admit(now, u64::from(self.terms.lease)).map_err(CircuitOpen::from),
        }
    }

    /// Admits a call; a probe holds the slot for `lease` (ms).
    #[cfg_attr(target_pointer_width = "64", cold)]
    #[cfg_attr(not(target_pointer_width = "64"), inline)]
    fn admit(&self, now: Instant, lease: u64) -> Result<Ticket, Refusal> {
        let (role, word) = self.word.update(|word| match word::role(word, now) {
            Some(Role::Probe) => {
                let new = word::probed(word, millis::up(now.as_nanos(), lease));
                Next::Store(new, (Some(Role::Probe), new))
            }
            role => Next::Keep((role, word)),
        });
        match (role, Refusal::by(word)) {
            (None, Some(refusal)) => Err(refusal),
            // A word of 0 refuses nobody.
            _ => {
                let (generation, role) = (word::generation(word), role.unwrap_or(Role::Call));
                Ok(Ticket { admitted_at: now, generation, role })
            }
        }
    }

    /// Gives a ticket back without a report: the place of a probe is free at once.
    #[inline]
    pub(crate) fn release(&self, ticket: Ticket) {
        if ticket.role == Role::Probe {
            self.word.update(|word| {
                if word::is_half_open(word, ticket.generation) {
                    Next::Store(word::freed(word), ())
                } else {
                    Next::Keep(())
                }
            });
        }
    }

    /// Whether a report changes nothing and needs no sample.
    #[inline]
    pub(crate) fn is_unmoved(&self, now: Instant, ticket: Ticket, ending: Ending) -> bool {
        ticket.role == Role::Shadow || self.is_at_rest(ticket, self.judged(now, ticket, ending))
    }

    /// The same of a report that has been judged.
    #[inline]
    pub(crate) fn is_at_rest(&self, ticket: Ticket, judged: Ending) -> bool {
        ticket.role == Role::Shadow
            || !self.counts_over_time()
                && judged == Ending::Success
                && word::is_at_rest(self.word.load(), ticket.generation)
    }

    /// Reports how a call ended, having been judged.
    #[inline]
    pub(crate) fn report(
        &self,
        now: Instant,
        ticket: Ticket,
        judged: Ending,
        sample: u64,
    ) -> Option<BreakerChange> {
        let generation = ticket.generation;
        if INLINES && !self.counts_over_time() && self.is_noted(generation, judged) {
            return None;
        }
        self.report_change(now, generation, judged, sample)
    }

    /// A success that took too long is a failure.
    #[inline]
    pub(crate) fn judged(&self, now: Instant, ticket: Ticket, ending: Ending) -> Ending {
        if ending != Ending::Success || self.terms.slow == u32::MAX {
            return ending;
        }
        let taken = now.as_nanos().saturating_sub(ticket.admitted_at.as_nanos());
        let most = u64::from(self.terms.slow) * u64::from(millis::NANOS); // OK: below 2^52.
        if taken > most { Ending::Failure } else { Ending::Success }
    }

    /// Counts an outcome that a closed breaker only counts; false if there is more to it.
    #[inline(never)]
    fn is_noted(&self, generation: u16, ending: Ending) -> bool {
        self.word.update(|old| match word::reported(old, generation, ending, &self.terms, false) {
            new if new == old => Next::Keep(true),
            new if word::phase(old) == Phase::Closed && word::phase(new) == Phase::Closed => {
                Next::Store(new, true)
            }
            _ => Next::Keep(false),
        })
    }

    /// Reports whatever it is.
    #[cfg_attr(target_pointer_width = "64", cold, inline(never))]
    #[cfg_attr(not(target_pointer_width = "64"), inline)]
    fn report_change(
        &self,
        now: Instant,
        generation: u16,
        ending: Ending,
        sample: u64,
    ) -> Option<BreakerChange> {
        let mut trips = false;
        if self.counts_over_time() {
            let word = self.word.load();
            if word::phase(word) == Phase::Closed {
                trips = word::counts(word, generation) && self.too_many_failures(now, ending);
                if !trips {
                    return None;
                }
            }
        }
        let (old, new) = self.word.update(|old| {
            let new = word::reported(old, generation, ending, &self.terms, trips);
            if new == old {
                return Next::Keep(None);
            }
            let new = match (word::phase(old), word::phase(new)) {
                (_, Phase::Open) => self.opened(old, now, sample),
                (Phase::HalfOpen, _) => {
                    // Before the word says closed, so that nobody sees it closed since long ago.
                    // True as well if another word is stored first, and done twice it is the same.
                    self.note_recovery(now);
                    new
                }
                _ => new,
            };
            Next::Store(new, Some((old, new)))
        })?;
        let change = change(old, new);
        if let Some(BreakerChange::Opened { .. } | BreakerChange::Reopened { .. }) = change {
            // What was counted before the trip must not trip it again once it is closed.
            window::clear(&self.buckets);
        }
        change
    }

    /// A probe has succeeded.
    fn note_recovery(&self, now: Instant) {
        let up = millis::up(now.as_nanos(), 0);
        self.recovered_at.update(|at| if at < up { Next::Store(up, ()) } else { Next::Keep(()) });
    }

    /// The word of a breaker that opens now.
    #[cold]
    #[inline(never)]
    fn opened(&self, word: u64, now: Instant, sample: u64) -> u64 {
        // OK: a time of a word and a u16 of seconds.
        let stable_at = || self.recovered_at.load() + self.terms.stable_period();
        let step = match word::phase(word) {
            Phase::Closed if millis::is_before(now, stable_at()) => word::step(word),
            Phase::Closed => 0,
            Phase::HalfOpen | Phase::Open => word::grown(word),
        };
        let period = self.terms.open_period(step, sample);
        word::opened(word, step, millis::up(now.as_nanos(), period))
    }

    #[inline]
    const fn counts_over_time(&self) -> bool {
        BUCKETS > 0 && matches!(self.terms.rule, Rule::OverTime { .. })
    }

    /// Counts an outcome over time; whether there are too many failures now.
    fn too_many_failures(&self, now: Instant, ending: Ending) -> bool {
        let Rule::OverTime { least, period, ppm } = self.terms.rule else { return false };
        let number = window::number(millis::down(now), period);
        window::count(&self.buckets, number, ending == Ending::Failure);
        let (calls, failures) = window::totals(&self.buckets, number);
        // OK: at most `BUCKETS` times 2^16 calls.
        calls >= u64::from(least) && failures * 1_000_000 > u64::from(ppm) * calls
    }
}

/// What a new word means to those who watch.
fn change(old: u64, new: u64) -> Option<BreakerChange> {
    match (word::phase(old), word::phase(new)) {
        (Phase::HalfOpen, Phase::Closed) => Some(BreakerChange::Closed),
        (from, Phase::Open) => {
            let until = millis::instant(word::end(new));
            let is_first = from == Phase::Closed;
            Some(if is_first {
                BreakerChange::Opened { until }
            } else {
                BreakerChange::Reopened { until }
            })
        }
        _ => None,
    }
}
