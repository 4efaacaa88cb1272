//! A rate limiter in one word: GCRA, the generic cell rate algorithm (ITU-T I.371).
//!
//! The word holds the *theoretical arrival time* (TAT): the instant at which the bucket would be
//! full again. With `T` nanoseconds per token and a burst of `B`, a request of cost `n` at `now`
//! moves it to `max(TAT, now) + n·T` and is admitted if that is at most `now + B·T`.
//!
//! A change of rate must not hand out a fresh burst, so the TAT and the quota it was counted in
//! must change together. The quota lives in one of two slots, and the word names the slot:
//!
//! ```text
//! word   63..62 tag | 61..0 TAT in ns                 tag: number of the quota in force, mod 4
//! slot   63..62 tag | 61..56 split | 55..0 T << split | B
//! ```
//!
//! Quota number k is in slot k mod 2. Whoever changes it writes quota k+1 into the other slot and
//! then moves the word from (k, TAT) to (k+1, the same level counted in the new quota). One at a
//! time: a bit beside the pause says that a change is under way. Nobody waits for it, neither those
//! who take tokens nor another who wants a change and is told so.

mod quota;
mod refusal;
mod state;

pub use self::quota::{Quota, Rate};
use self::quota::{TAG_SHIFT, low_u32};
pub use self::refusal::{ChangeUnderWay, Refusal};
use self::state::{Change, State, recounted};
use crate::sync::{Next, Word};
use crate::time::Instant;

/// The latest time a word can hold, about 146 years after the epoch. Past it nothing is admitted.
const TIME_MAX: u64 = (1 << TAG_SHIFT) - 1;
/// In the word of the pause: a change of quota is under way.
const CHANGING: u64 = 1 << 63;
/// The latest end of a pause: a bucket that is empty then still fills within the time there is.
const PAUSE_MAX: u64 = TIME_MAX - (1 << 56);

/// Tokens taken ahead of time: the right to send at an instant.
#[derive(Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "the tokens are taken: send at `ready_at`, or give them back with `Limiter::cancel`"]
pub struct Reservation {
    cost: u32,
    ready_at: Instant,
}

impl Reservation {
    /// When the request may be sent; not before the reservation was made.
    #[must_use]
    pub const fn ready_at(&self) -> Instant {
        self.ready_at
    }
}

/// A rate limiter of 32 bytes, usable through `&self` from any thread, task or interrupt.
///
/// It starts full, and idling never fills it above its burst. A clock that stands still or steps
/// back makes it stricter, never looser (but for a change of quota made while the clock is behind).
/// It serves instants up to 2⁶² ns (146 years) after the clock's epoch and admits nothing later.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Instant, Limiter, Quota, Rate, valid};
///
/// static LIMITER: Limiter = Limiter::new(valid!(Quota::new(Rate::per_second(10), 20)));
///
/// let now = Instant::EPOCH;
/// let admitted = (0..100).filter(|_| LIMITER.try_acquire(now, 1).is_ok()).count();
/// assert_eq!(admitted, 20);
/// assert_eq!(LIMITER.available(now.saturating_add(Duration::from_millis(250))), 2);
/// ```
#[derive(Debug)]
pub struct Limiter {
    word: Word,
    slots: [Word; 2],
    /// Nothing is admitted before this instant; and whether a change is under way.
    pause: Word,
}

impl Limiter {
    /// A limiter with a full bucket.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self {
            word: Word::new(0),
            slots: [Word::new(quota.packed(0)), Word::new(quota.packed(3))],
            pause: Word::new(0),
        }
    }

    /// A limiter with a full bucket.
    #[cfg(loom)]
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self {
            word: Word::new(0),
            slots: [Word::new(quota.packed(0)), Word::new(quota.packed(3))],
            pause: Word::new(0),
        }
    }

    /// Takes `cost` tokens, or nothing. A cost of 0 is free.
    ///
    /// # Errors
    /// [`Refusal::NotYet`] with the instant to ask again; [`Refusal::Never`] if `cost` is above the
    /// burst. Neither takes anything.
    #[inline]
    pub fn try_acquire(&self, now: Instant, cost: u32) -> Result<(), Refusal> {
        if cost == 0 {
            return Ok(());
        }
        self.change(now.as_nanos(), cost, Change::Take)
    }

    /// Whether [`try_acquire`](Self::try_acquire) would be refused; takes nothing.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn peek(&self, now: Instant, cost: u32) -> Result<(), Refusal> {
        if cost == 0 {
            return Ok(());
        }
        self.change(now.as_nanos(), cost, Change::None)
    }

    /// The refusal of whoever may not overtake those who wait in line for it, for adapters with a
    /// line; takes nothing.
    ///
    /// [`Refusal::NotYet`] with the earliest instant, later than `now` or never, at which asking
    /// again can succeed if the head of the line stays: a token's time after `cost` tokens are
    /// there, as the head takes one at least. [`Refusal::Never`] if `cost` is above the burst.
    ///
    /// ```
    /// use holdoff::{Instant, Limiter, Quota, Rate, Refusal, valid};
    ///
    /// let limiter = Limiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// let until = Instant::from_nanos(1_000_000_000);
    /// assert_eq!(limiter.refusal_in_line(Instant::EPOCH, 5), Refusal::NotYet { until });
    /// assert_eq!(limiter.refusal_in_line(Instant::EPOCH, 6), Refusal::Never { burst: 5 });
    /// ```
    #[must_use]
    pub fn refusal_in_line(&self, now: Instant, cost: u32) -> Refusal {
        let until = match self.peek(now, cost) {
            Ok(()) => now,
            Err(Refusal::NotYet { until }) => until,
            Err(never @ Refusal::Never { .. }) => return never,
        };
        let token = self.quota().interval(); // Not zero, so this is later than now.
        Refusal::NotYet { until: until.saturating_add(token) }
    }

    /// Settles what was only estimated when it was taken: gives back what was too much, or takes
    /// what was too little as a debt, which later calls wait for.
    ///
    /// ```
    /// use holdoff::{Instant, Limiter, Quota, Rate};
    ///
    /// let tokens = Limiter::new(Quota::new(Rate::per_second(100), 1_000)?);
    /// let now = Instant::EPOCH;
    /// tokens.try_acquire(now, 800).unwrap();
    /// tokens.settle(now, 800, 300);
    /// assert_eq!(tokens.available(now), 700);
    /// tokens.settle(now, 300, 1_200);
    /// assert!(tokens.try_acquire(now, 1).is_err()); // 200 are owed, two seconds' worth
    /// # Ok::<(), holdoff::ConfigError>(())
    /// ```
    pub fn settle(&self, now: Instant, estimated: u32, actual: u32) {
        let now = now.as_nanos();
        if let Some(more) = actual.checked_sub(estimated) {
            self.update(|state| {
                let owed = state.quota.interval.saturating_mul(u64::from(more));
                (Some(state.tat.max(now).saturating_add(owed).min(TIME_MAX)), ())
            });
        } else {
            self.refund(estimated - actual);
        }
    }

    /// Takes `cost` tokens now for a request to be sent when they are there.
    ///
    /// Reservations are served in the order in which they are made. One given back with
    /// [`cancel`](Self::cancel) does not move later ones forward: to wait in line with others use
    /// an adapter's queue, which holds no tokens.
    ///
    /// ```
    /// use core::time::Duration;
    /// use holdoff::{Instant, Limiter, Quota, Rate};
    ///
    /// let limiter = Limiter::new(Quota::new(Rate::per_second(1), 1)?);
    /// let now = Instant::EPOCH;
    /// let first = limiter.reserve(now, 1).unwrap();
    /// let second = limiter.reserve(now, 1).unwrap();
    /// assert_eq!(first.ready_at(), now);
    /// assert_eq!(second.ready_at(), now.saturating_add(Duration::from_secs(1)));
    /// limiter.cancel(second);
    /// # Ok::<(), holdoff::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`Refusal::Never`] if `cost` is above the burst; [`Refusal::NotYet`] with [`Instant::MAX`]
    /// past the end of time. Neither takes anything.
    pub fn reserve(&self, now: Instant, cost: u32) -> Result<Reservation, Refusal> {
        if cost == 0 {
            return Ok(Reservation { cost, ready_at: now });
        }
        let nanos = now.as_nanos();
        self.update(|state| match state.charge(nanos, cost) {
            Ok(charged) => {
                let ready_at = now.max(Instant::from_nanos(charged.ready_at));
                (Some(charged.tat), Ok(Reservation { cost, ready_at }))
            }
            Err(refusal) => (None, Err(refusal)),
        })
    }

    /// Gives a reservation back that will not be used.
    #[expect(clippy::needless_pass_by_value, reason = "it must not be given back twice")]
    pub fn cancel(&self, reservation: Reservation) {
        self.refund(reservation.cost);
    }

    /// Gives `cost` tokens back that were taken but not used, or were estimated too high.
    ///
    /// The bucket never holds more than its burst, and a pause stays in force.
    pub fn refund(&self, cost: u32) {
        // It is never refused.
        let _ = self.change(0, cost, Change::Refund);
    }

    /// Admits nothing before `until`, then resumes at the rate, with one token and not with a
    /// burst.
    ///
    /// For a server's "come back then": its bucket is empty, so ours must not say otherwise. A
    /// shorter pause than the one in force changes nothing. What is free passes, and reservations
    /// made before keep their time. The latest end is 2⁶² − 2⁵⁶ ns (144 years) after the epoch.
    pub fn pause_until(&self, until: Instant) {
        let until = until.as_nanos().min(PAUSE_MAX);
        let is_longer = self.pause.update(|pause| {
            let longer = pause & CHANGING | until;
            if pause < longer { Next::Store(longer, true) } else { Next::Keep(false) }
        });
        if is_longer {
            // Nor is this.
            let _ = self.change(until, 0, Change::Pause);
        }
    }

    /// Changes rate and burst from `now` on.
    ///
    /// The tokens in the bucket stay as many as they are, cut to the new burst: a change never
    /// grants a fresh burst. Tokens owed stay owed. A pause stays in force.
    ///
    /// # Errors
    /// [`ChangeUnderWay`] if another thread, or the code that an interrupt interrupted, is in the
    /// middle of a change; nothing is changed.
    pub fn set_quota(&self, now: Instant, quota: Quota) -> Result<(), ChangeUnderWay> {
        self.pause.update(|pause| match pause & CHANGING {
            0 => Next::Store(pause | CHANGING, Ok(())),
            _ => Next::Keep(Err(ChangeUnderWay)),
        })?;
        let tag = self.word.load() >> TAG_SHIFT; // Only a change moves it.
        let next = following(tag);
        self.slot(next).update(|_| Next::Store(quota.packed(next), ()));
        self.word.update(|word| {
            let from = Quota::unpacked(self.slot(tag).load());
            // While paused nothing is taken: what counts is the level when the pause ends. Looked
            // at after the word, in which the pause has perhaps emptied the bucket.
            let from_when = now.as_nanos().max(self.pause.load() & TIME_MAX);
            let tat = recounted(from_when, word & TIME_MAX, from, quota);
            Next::Store(next << TAG_SHIFT | tat, ())
        });
        self.pause.update(|pause| Next::Store(pause & !CHANGING, ()));
        Ok(())
    }

    /// The quota in force.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.word.update(|word| match self.slot_of(word) {
            Some(slot) => Next::Keep(Quota::unpacked(slot)),
            None => Next::Reload,
        })
    }

    /// How many tokens can be taken at `now`, 0 while paused.
    #[must_use]
    pub fn available(&self, now: Instant) -> u32 {
        let now = now.as_nanos();
        self.update(|state| {
            let start = state.tat.max(now);
            let level = state.quota.refill().saturating_sub(start - now);
            // At most the burst, and no more than can be counted until the end of time.
            let level = level.min(TIME_MAX.saturating_sub(start));
            // No interval is zero, but only a quota that was built knows.
            let there = level.checked_div(state.quota.interval).unwrap_or(0);
            (None, if now < state.paused_until { 0 } else { low_u32(there) })
        })
    }

    /// When its bucket is full and no pause in force, if nobody takes tokens until then; now or in
    /// the past if that is so already.
    ///
    /// ```
    /// use holdoff::{Instant, Limiter, Quota, Rate, valid};
    ///
    /// let limiter = Limiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// limiter.try_acquire(Instant::EPOCH, 3).unwrap();
    /// assert_eq!(limiter.full_at(), Instant::from_nanos(3_000_000_000));
    /// ```
    #[must_use]
    pub fn full_at(&self) -> Instant {
        self.update(|state| (None, Instant::from_nanos(state.tat.max(state.paused_until))))
    }

    /// As it was built, with a full bucket; only while nobody else uses it.
    pub(crate) fn renew(&self, now: Instant, quota: Quota) {
        if self.quota() != quota {
            // Nobody else uses it, so there is no other change under way.
            let _ = self.set_quota(now, quota);
        }
        self.update(|_| (Some(0), ()));
    }

    /// What calls do to the bucket, in one place: flash is dear where it is no more than that.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn change(&self, time: u64, cost: u32, change: Change) -> Result<(), Refusal> {
        self.update(|state| {
            let tat = match change {
                Change::Pause => {
                    let one_left = time + state.quota.refill() - state.quota.interval;
                    Ok(state.tat.max(one_left))
                }
                Change::Refund => {
                    let back = state.quota.interval.saturating_mul(u64::from(cost));
                    Ok(state.tat.saturating_sub(back))
                }
                Change::None | Change::Take => state.admit(time, cost),
            };
            match tat {
                Ok(_) if matches!(change, Change::None) => (None, Ok(())),
                Ok(tat) => (Some(tat), Ok(())),
                Err(refusal) => (None, Err(refusal)),
            }
        })
    }

    /// Runs `transition` on a consistent view and stores the TAT it returns, if any.
    #[inline]
    fn update<R>(&self, transition: impl Fn(State) -> (Option<u64>, R)) -> R {
        self.word.update(|word| {
            let Some(state) = self.view(word) else { return Next::Reload };
            match transition(state) {
                (Some(tat), result) => Next::Store(word & !TIME_MAX | tat, result),
                (None, result) => Next::Keep(result),
            }
        })
    }

    /// What `word` means; `None` if the quota that it was counted in is no longer there.
    #[cfg_attr(target_pointer_width = "64", inline)]
    fn view(&self, word: u64) -> Option<State> {
        let slot = self.slot_of(word)?;
        Some(State {
            tat: word & TIME_MAX,
            quota: Quota::unpacked(slot),
            paused_until: self.pause.load() & TIME_MAX,
        })
    }

    /// The slot of the quota that `word` was counted in, if it is still there.
    #[inline]
    fn slot_of(&self, word: u64) -> Option<u64> {
        let tag = word >> TAG_SHIFT;
        let slot = self.slot(tag).load();
        if slot >> TAG_SHIFT != tag {
            return None;
        }
        Some(slot)
    }

    const fn slot(&self, tag: u64) -> &Word {
        let [even, odd] = &self.slots;
        if tag & 1 == 0 { even } else { odd }
    }
}

/// The tag of the quota after `tag`.
const fn following(tag: u64) -> u64 {
    (tag + 1) & 3
}
