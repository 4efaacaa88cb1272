//! Services by key, in a table that does not grow.
//!
//! ```text
//! slot  key
//!       uses   63..44 entries handed out, all ones: vacant | 43..0 last use (ms)
//!       began  63..62 the breaker's mode | 61..0 the limiter's quota: to begin with again
//!
//!          get: claimed            renewed, key written
//!  vacant ─────────────▶ changing ──────────────────────▶ in use ◀──▶ unused
//!                           ▲                                           │
//!                           └────────────── get for another key ────────┘
//!                                            (idle, the least recently used)
//! ```
//!
//! Whoever looks a key up pins the slot and then looks at the key again; whoever changes a slot
//! makes it vacant first, which a pinned one does not become. Changes are made one at a time, or
//! one key could get two slots. Nobody waits for a change under way: an interrupt could wait for
//! ever.

use core::error::Error;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;

use crate::breaker::Mode;
use crate::limiter::Quota;
use crate::sync::{Next, Word};
use crate::time::Instant;
use crate::upstream::Upstream;

const USER: u64 = 1 << TIME_BITS;
const VACANT: u64 = u64::MAX >> TIME_BITS;
const TIME_BITS: u32 = 44;
/// The latest last use (ms), 557 years after the epoch; it never grows old.
const TIME_MAX: u64 = USER - 1;
const NANOS: u64 = 1_000_000;
const MODE_SHIFT: u32 = 62;
const MODE_BITS: u32 = 2;

/// At most `N` services, each with an [`Upstream`] of its own, found by a key; usable through
/// `&self` from any thread, task or interrupt.
///
/// For services that are not known when the program is built: devices, hosts, tenants. Strangers
/// may choose the keys: the table never grows, and a key that is new takes the place of the least
/// recently used *idle* one or of none. Idle is what loses next to nothing by being forgotten:
/// - no [`Entry`] of it is held,
/// - it has not been asked for since [`idle_after`](Self::with_idle_after),
/// - its limiter is full and not paused, so nobody gets a fresh burst by being forgotten,
/// - its breaker has refused nobody for its stable period; in another mode than it began with,
///   changed by hand, it stays.
///
/// Its counters, its budget and a quota that was changed are as new when the place goes to another
/// key. An entry that is forgotten (`mem::forget`) keeps its place for ever.
///
/// A clock that steps back forgets nobody early. One that leaps ahead makes the keys asked for in
/// that time stay until the clock has caught up.
///
/// A look-up goes over all the slots: meant for tens of services. A key is a number, such as an
/// address or an identifier; for longer names take any hash of 64 bits, a keyed one such as SipHash
/// if strangers choose the names.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Instant, Limiter, NoEntry, Quota, Rate, Upstream, UpstreamTable, valid};
///
/// const fn device() -> Upstream {
///     Upstream::new().with_limiter(Limiter::new(valid!(Quota::new(Rate::per_second(1), 5))))
/// }
/// static DEVICES: UpstreamTable<2> = UpstreamTable::new([const { device() }; 2]);
///
/// let now = Instant::EPOCH;
/// let first = DEVICES.get(now, 0x0a00_0001).unwrap();
/// let second = DEVICES.get(now, 0x0a00_0002).unwrap();
/// first.limiter().unwrap().try_acquire(now, 5).unwrap();
/// assert_eq!(second.limiter().unwrap().available(now), 5);
///
/// // Both are in use.
/// assert_eq!(DEVICES.get(now, 0x0a00_0003).unwrap_err(), NoEntry::Full { retry_at: None });
/// // A minute later the second one is idle.
/// drop(second);
/// let later = now.saturating_add(Duration::from_secs(60));
/// assert!(DEVICES.get(later, 0x0a00_0003).is_ok());
/// assert!(DEVICES.find(later, 0x0a00_0002).is_none());
/// ```
#[derive(Debug)]
pub struct UpstreamTable<const N: usize, const BUCKETS: usize = 0> {
    upstreams: [Upstream<BUCKETS>; N],
    slots: [Slot; N],
    /// 1 while a key is put in.
    changing: Word,
    idle_after: Duration,
}

/// Why there is no entry for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NoEntry {
    /// Another key is being put in by another thread, or by the code that was interrupted: ask
    /// again when that has had time to run.
    Busy,
    /// All are in use or not idle yet. Refuse the call, or make it through an upstream that all
    /// such keys share.
    Full {
        /// When the first of those that are not held will be idle, if nobody asks for it; `None` if
        /// that is not known.
        retry_at: Option<Instant>,
    },
}

impl fmt::Display for NoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "another key is being put into the table",
            Self::Full { .. } => "the table is full and nothing in it is idle",
        })
    }
}

impl Error for NoEntry {}

/// The [`Upstream`] of a key, which keeps its place while this is held.
#[derive(Debug)]
#[must_use = "a key keeps its place only while its entry is held"]
pub struct Entry<'a, const BUCKETS: usize = 0> {
    upstream: &'a Upstream<BUCKETS>,
    slot: &'a Slot,
}

impl<const BUCKETS: usize> Entry<'_, BUCKETS> {
    /// Whose it is.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.slot.key.load()
    }
}

impl<const BUCKETS: usize> Deref for Entry<'_, BUCKETS> {
    type Target = Upstream<BUCKETS>;

    fn deref(&self) -> &Upstream<BUCKETS> {
        self.upstream
    }
}

impl<const BUCKETS: usize> Drop for Entry<'_, BUCKETS> {
    fn drop(&mut self) {
        // OK: it was counted when it was handed out.
        self.slot.uses.update(|uses| Next::Store(uses - USER, ()));
    }
}

impl<const N: usize, const BUCKETS: usize> UpstreamTable<N, BUCKETS> {
    /// An empty table; `upstreams`, usually all alike, are handed out in order.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(upstreams: [Upstream<BUCKETS>; N]) -> Self {
        let (slots, changing) = ([const { Slot::new() }; N], Word::new(0));
        Self { upstreams, slots, changing, idle_after: Duration::from_secs(60) }
    }

    /// An empty table.
    #[cfg(loom)]
    #[must_use]
    pub fn new(upstreams: [Upstream<BUCKETS>; N]) -> Self {
        let (slots, changing) = (core::array::from_fn(|_| Slot::new()), Word::new(0));
        Self { upstreams, slots, changing, idle_after: Duration::from_secs(60) }
    }

    /// The same table, a key being idle only when nobody has asked for it for so long. Defaults to
    /// 60 s.
    ///
    /// Counted from when it was last asked for, not from when the entry was dropped. A budget that
    /// is used up is whole again when its key is forgotten.
    #[must_use]
    pub const fn with_idle_after(mut self, idle_after: Duration) -> Self {
        self.idle_after = idle_after;
        self
    }

    /// The upstream of `key`, put in if it is not there.
    ///
    /// # Errors
    /// [`NoEntry::Full`] with the time to come back, [`NoEntry::Busy`]; neither changes anything.
    pub fn get(&self, now: Instant, key: u64) -> Result<Entry<'_, BUCKETS>, NoEntry> {
        if let Some(entry) = self.find(now, key) {
            return Ok(entry);
        }
        self.changing.update(|changing| match changing {
            0 => Next::Store(1, Ok(())),
            _ => Next::Keep(Err(NoEntry::Busy)),
        })?;
        // Somebody may have put it in before it was our turn.
        let entry = match self.find(now, key) {
            Some(entry) => Ok(entry),
            None => self.put(now, key),
        };
        self.changing.update(|_| Next::Store(0, ()));
        entry
    }

    /// The upstream of `key`, if it is there; counts as asking for it.
    pub fn find(&self, now: Instant, key: u64) -> Option<Entry<'_, BUCKETS>> {
        self.places().find_map(|(upstream, slot)| {
            if slot.key.load() != key || !slot.pin(millis(now)) {
                return None;
            }
            let entry = Entry { upstream, slot };
            // Before it was pinned it may have gone to another key.
            (slot.key.load() == key).then_some(entry)
        })
    }

    /// The keys that are there and their upstreams, to look at; does not count as asking for them.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_, BUCKETS>> {
        self.places()
            .filter(|(_, slot)| slot.pin(0))
            .map(|(upstream, slot)| Entry { upstream, slot })
    }

    fn places(&self) -> impl Iterator<Item = (&Upstream<BUCKETS>, &Slot)> {
        self.upstreams.iter().zip(&self.slots)
    }

    /// Gives `key` a slot; only one at a time does.
    fn put(&self, now: Instant, key: u64) -> Result<Entry<'_, BUCKETS>, NoEntry> {
        loop {
            let mut chosen: Option<(&Upstream<BUCKETS>, &Slot, u64)> = None;
            let mut retry_at: Option<Instant> = None;
            for (upstream, slot) in self.places() {
                let uses = slot.uses.load();
                if !is_vacant(uses) && slot.key.load() == key {
                    // So many entries of it are held that no more can be counted.
                    return Err(NoEntry::Full { retry_at: None });
                }
                match self.idle_at(upstream, slot, uses) {
                    Some(at) if at <= now => {
                        // The least recently used one; a vacant one is less so than any.
                        let age = |uses| if is_vacant(uses) { 0 } else { 1 + last_use(uses) };
                        if chosen.is_none_or(|(_, _, other)| age(uses) < age(other)) {
                            chosen = Some((upstream, slot, uses));
                        }
                    }
                    Some(at) => retry_at = Some(retry_at.map_or(at, |other| other.min(at))),
                    None => {}
                }
            }
            let Some((upstream, slot, uses)) = chosen else {
                return Err(NoEntry::Full { retry_at });
            };
            if slot.uses.compare_exchange(uses, VACANT * USER).is_err() {
                continue; // Somebody asked for it after all.
            }
            // It may have been used since the first look, and by a clock that is behind.
            if self.idle_at(upstream, slot, uses).is_none_or(|at| at > now) {
                slot.uses.update(|_| Next::Store(uses, ()));
                continue;
            }
            slot.renew(upstream, now);
            slot.key.update(|_| Next::Store(key, ()));
            slot.uses.update(|_| Next::Store(USER | millis(now), ()));
            return Ok(Entry { upstream, slot });
        }
    }

    /// When what is in a slot can be forgotten, if nobody asks for it; `None` if that is not known.
    fn idle_at(&self, upstream: &Upstream<BUCKETS>, slot: &Slot, uses: u64) -> Option<Instant> {
        if is_vacant(uses) {
            return Some(Instant::EPOCH);
        }
        if uses >= USER {
            return None;
        }
        let began = slot.began.load();
        if upstream
            .breaker()
            .is_some_and(|breaker| mode_number(breaker.mode()) != began >> MODE_SHIFT)
        {
            return None;
        }
        let last_use = match last_use(uses) {
            TIME_MAX => Instant::MAX,
            last => Instant::from_nanos(last * NANOS),
        };
        let at = last_use.saturating_add(self.idle_after).max(upstream.idle_at());
        (at < Instant::MAX).then_some(at)
    }
}

#[derive(Debug)]
struct Slot {
    key: Word,
    uses: Word,
    /// 0 until a key has had the slot.
    began: Word,
}

impl Slot {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self { key: Word::new(0), uses: Word::new(VACANT * USER), began: Word::new(0) }
    }

    #[cfg(loom)]
    fn new() -> Self {
        Self { key: Word::new(0), uses: Word::new(VACANT * USER), began: Word::new(0) }
    }

    /// Counts one entry more, handed out at `now` (ms); not if it is vacant, or so many are held
    /// that they cannot be counted.
    fn pin(&self, now: u64) -> bool {
        self.uses.update(|uses| {
            if uses / USER >= VACANT - 1 {
                return Next::Keep(false);
            }
            let last = last_use(uses);
            Next::Store(uses - last + last.max(now) + USER, true)
        })
    }

    /// As good as new, for another key; only while it is vacant.
    fn renew<const BUCKETS: usize>(&self, upstream: &Upstream<BUCKETS>, now: Instant) {
        let began = self.began.load();
        let quota = match (began << MODE_BITS >> MODE_BITS, upstream.limiter()) {
            (_, None) => None,
            (0, Some(limiter)) => Some(limiter.quota()),
            (packed, Some(_)) => Some(Quota::unpacked(packed)),
        };
        if began == 0 {
            let mode = upstream.breaker().map_or(0, |breaker| mode_number(breaker.mode()));
            let began = mode << MODE_SHIFT | quota.map_or(0, |quota| quota.packed(0));
            self.began.update(|_| Next::Store(began, ()));
        }
        upstream.renew(now, quota);
    }
}

const fn mode_number(mode: Mode) -> u64 {
    match mode {
        Mode::Normal => 0,
        Mode::Shadow => 1,
        Mode::Disabled => 2,
        Mode::ForcedOpen => 3,
    }
}

const fn is_vacant(uses: u64) -> bool {
    uses / USER == VACANT
}

const fn last_use(uses: u64) -> u64 {
    uses % USER
}

/// Rounded up, lest it be forgotten early.
const fn millis(now: Instant) -> u64 {
    let millis = now.as_nanos().div_ceil(NANOS);
    if millis < TIME_MAX { millis } else { TIME_MAX }
}
