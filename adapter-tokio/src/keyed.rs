//! Limiters and upstreams by key, in a table that does not grow.

mod idle;
mod places;

use core::borrow::Borrow;
use core::error::Error;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::num::NonZeroUsize;
use core::time::Duration;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdoff::Clock;

pub use self::idle::Idle;
use self::places::Places;
use crate::timer::TokioTimer;

/// A [`FairLimiter`](crate::FairLimiter) or an [`Upstream`](crate::Upstream) for each of a bounded
/// number of keys: tenants, hosts, endpoints; usable through `&self` from any task or thread.
///
/// Strangers may choose the keys: the table never holds more than its capacity, and a key that is
/// new takes the place of the least recently used *idle* one or of none. Idle is what loses next to
/// nothing by being forgotten:
/// - nobody holds its `Arc`, so nobody waits in its line; a key whose `Arc` is held when room is
///   looked for counts as asked for then,
/// - it has not been asked for since [`idle_after`](Self::with_idle_after),
/// - its limiter is full and not paused, so nobody gets a fresh burst by being forgotten,
/// - its breaker has refused nobody for its stable period; while it is forced open, by hand, it
///   stays.
///
/// A look-up hashes the key with a seed of its own (SipHash), takes one lock for a moment and, if
/// the key is there, allocates nothing. Strangers that flood a full table are refused as cheaply:
/// it knows when to look for room again. What it holds is bounded in number: bound the length of
/// keys that strangers choose.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{FairLimiter, Keyed, Limit, Policy, Quota, Rate, Upstream, valid};
/// use std::num::NonZeroUsize;
/// use std::sync::LazyLock;
///
/// static PROVIDER: Upstream =
///     Upstream::new(Policy::LLM).with_limiter(valid!(Quota::new(Rate::per_second(10), 20)));
///
/// // No tenant gets more than 2 a second, of the 10 that all have together.
/// static TENANTS: LazyLock<Keyed<String, FairLimiter>> = LazyLock::new(|| {
///     let capacity = NonZeroUsize::new(10_000).unwrap();
///     Keyed::new(capacity, |_| FairLimiter::new(valid!(Quota::new(Rate::per_second(2), 5))))
/// });
///
/// async fn ask(tenant: &str) -> Result<&'static str, Box<dyn std::error::Error>> {
///     let limiter = TENANTS.get(tenant)?;
///     let limits = [Limit::new(&limiter, 1)];
///     let call = PROVIDER.prepare().with_limits(&limits);
///     Ok(call.run(async |_| Ok::<_, std::io::Error>("hello")).await?)
/// }
///
/// assert_eq!(ask("acme").await.unwrap(), "hello");
/// assert_eq!(TENANTS.get("acme").unwrap().available(), 4);
/// # }
/// ```
pub struct Keyed<K, V> {
    places: Mutex<Places<K, V>>,
    /// Seeded, so that nobody can choose keys that collide.
    hasher: RandomState,
    build: Box<dyn Fn(&K) -> V + Send + Sync>,
    idle_after: Duration,
}

impl<K: Eq, V: Idle> Keyed<K, V> {
    /// An empty table for at most `capacity` keys, that has `build` make what a key is to have.
    ///
    /// Memory is taken as keys come. `build` is called without a lock, also for a key that another
    /// thread puts in meanwhile: then what it made is dropped.
    #[must_use]
    pub fn new(capacity: NonZeroUsize, build: impl Fn(&K) -> V + Send + Sync + 'static) -> Self {
        Self {
            places: Mutex::new(Places::new(capacity)),
            hasher: RandomState::new(),
            build: Box::new(build),
            idle_after: Duration::from_secs(60),
        }
    }

    /// The same table, a key being idle only when nobody has asked for it for so long. Defaults to
    /// 60 s.
    ///
    /// A retry budget that is used up is whole again when its key is forgotten: so a key that comes
    /// and goes gets its reserve once in this time.
    #[must_use]
    pub fn with_idle_after(self, idle_after: Duration) -> Self {
        Self { idle_after, ..self }
    }

    /// What `key` has, built if it is not there. It keeps its place as long as this is held.
    ///
    /// The key may be borrowed: a `&str` for a table by `String`.
    ///
    /// # Errors
    /// [`TableFull`] with the time to come back; nothing has changed. Refuse the call, or make it
    /// through a limiter that all such keys share.
    ///
    /// # Panics
    /// If `build` does. Nothing has changed then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{FairLimiter, Keyed, Quota, Rate, valid};
    /// use std::num::NonZeroUsize;
    /// use std::time::Duration;
    ///
    /// let build = |_: &u64| FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// let devices = Keyed::new(NonZeroUsize::MIN, build);
    /// devices.get(&1).unwrap();
    /// let full = devices.get(&2).unwrap_err();
    /// assert_eq!(full.retry_after, Duration::from_secs(60));
    ///
    /// tokio::time::sleep(full.retry_after).await;
    /// devices.get(&2).unwrap();
    /// assert!(devices.find(&1).is_none());
    /// # }
    /// ```
    pub fn get<Q>(&self, key: &Q) -> Result<Arc<V>, TableFull>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let (now, hash) = (TokioTimer.now(), self.hasher.hash_one(key));
        {
            let mut places = self.places();
            if let Some(value) = places.find(now, hash, key) {
                return Ok(value);
            }
            // Nothing is built that there is no room for.
            places.room(now, self.idle_after)?;
        }
        let key = key.to_owned();
        let value = Arc::new((self.build)(&key));
        let mut places = self.places();
        // Another thread may have put it in, or have taken the room.
        if let Some(value) = places.find(now, hash, key.borrow()) {
            return Ok(value);
        }
        let room = places.room(now, self.idle_after)?;
        let forgotten = places.put(room, now, hash, key, Arc::clone(&value));
        drop(places); // Before what is forgotten, whose `Drop` may be anything.
        drop(forgotten);
        Ok(value)
    }

    /// What `key` has, if it is there; counts as asking for it.
    pub fn find<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (now, hash) = (TokioTimer.now(), self.hasher.hash_one(key));
        self.places().find(now, hash, key)
    }

    /// All keys that are there and what they have, the least recently used first; does not count as
    /// asking for them.
    ///
    /// ```
    /// # use holdoff_tokio::{FairLimiter, Keyed, Quota, Rate, valid};
    /// # use std::num::NonZeroUsize;
    /// let build = |_: &u64| FairLimiter::new(valid!(Quota::new(Rate::per_second(1), 5)));
    /// let devices = Keyed::new(NonZeroUsize::new(100).unwrap(), build);
    /// devices.get(&1).unwrap();
    /// let _held = devices.get(&2).unwrap();
    /// devices.get(&1).unwrap();
    /// let keys: Vec<_> = devices.entries().into_iter().map(|(key, _)| key).collect();
    /// assert_eq!(keys, [2, 1]);
    /// ```
    #[must_use]
    pub fn entries(&self) -> Vec<(K, Arc<V>)>
    where
        K: Clone,
    {
        self.places().entries()
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places().len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys there can be.
    #[must_use]
    pub fn capacity(&self) -> NonZeroUsize {
        self.places().capacity()
    }
}

impl<K, V> Keyed<K, V> {
    /// Whoever panicked with the lock, in a key's `Eq` or `Clone`, was only looking.
    fn places(&self) -> MutexGuard<'_, Places<K, V>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> fmt::Debug for Keyed<K, V> {
    /// Without keys and values: it may hold many, and names of customers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = {
            let places = self.places();
            (places.len(), places.capacity())
        };
        f.debug_struct("Keyed")
            .field("len", &len)
            .field("capacity", &capacity)
            .field("idle_after", &self.idle_after)
            .finish_non_exhaustive()
    }
}

/// All keys of a [`Keyed`] table are in use or not idle yet.
///
/// ```
/// use holdoff_tokio::{Keyed, Policy, Upstream};
/// use std::num::NonZeroUsize;
///
/// let hosts = Keyed::new(NonZeroUsize::MIN, |_: &String| Upstream::new(Policy::STANDARD));
/// let _held = hosts.get("a.example").unwrap();
/// let full = hosts.get("b.example").unwrap_err();
/// assert!(full.to_string().starts_with("the table is full and nothing in it is idle; worth"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TableFull {
    /// How long until one may be idle: asking for a new key earlier cannot succeed.
    pub retry_after: Duration,
}

impl fmt::Display for TableFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delay = self.retry_after;
        write!(f, "the table is full and nothing in it is idle; worth another try in {delay:?}")
    }
}

impl Error for TableFull {}
