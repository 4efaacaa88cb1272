//! Which upstream a request goes to.

use core::fmt;
use core::num::NonZeroUsize;
use core::ops::Deref;
use core::time::Duration;
use std::borrow::Cow;
use std::sync::Arc;

use holdoff_tokio::{Keyed, Upstream};
use reqwest::Request;
use url::Position;

use crate::options::RequestOptions;

/// The upstreams that requests go to: one that all share, or one for each host.
///
/// ```
/// use holdoff_reqwest::{BreakerConfig, Guarded, Policy, Ratio, Upstream, Upstreams, valid};
/// use std::num::NonZeroUsize;
///
/// let upstreams: Upstreams = Upstreams::per_host(NonZeroUsize::new(1_000).unwrap(), |host| {
///     let policy = match host {
///         "slow.example" => Policy::BATCH,
///         _ => Policy::INTERACTIVE,
///     };
///     let breaker = valid!(BreakerConfig::rate(20, Ratio::percent(50)).build());
///     Upstream::new(policy).with_breaker(breaker)
/// });
/// let guarded = Guarded::new(reqwest::Client::new(), upstreams);
/// # let _ = guarded;
/// ```
pub struct Upstreams<const BUCKETS: usize = 0>(Kind<BUCKETS>);

enum Kind<const BUCKETS: usize> {
    One(Held<'static, BUCKETS>),
    PerKey(Box<PerKey<BUCKETS>>),
}

struct PerKey<const BUCKETS: usize> {
    table: Keyed<String, Upstream<BUCKETS>>,
    overflow: Upstream<BUCKETS>,
    key: Box<Key>,
}

type Key = dyn Fn(&Request) -> Option<Cow<'_, str>> + Send + Sync;

/// An upstream for as long as a call needs it.
pub(crate) enum Held<'a, const BUCKETS: usize> {
    Borrowed(&'a Upstream<BUCKETS>),
    Shared(Arc<Upstream<BUCKETS>>),
}

impl<const BUCKETS: usize> Upstreams<BUCKETS> {
    /// The key of the upstream for requests that have none or find no place.
    pub const OVERFLOW: &'static str = "*";

    /// An upstream for each host and port (`example.org`, `[::1]:8080`; the scheme's own port is
    /// left out), of at most `capacity`, made by `build` when first seen.
    ///
    /// Whoever chooses the hosts cannot make it grow: when it is full, a new host takes the place
    /// of the least recently used idle one ([`Keyed`]), and if none is idle, or the name is longer
    /// than 256 bytes, the request goes through one upstream that all such hosts share, built for
    /// the key [`OVERFLOW`](Self::OVERFLOW). So the limits of that one hold for all of them
    /// together.
    ///
    /// A redirect is followed by reqwest, beneath: it counts for the host first asked.
    #[must_use]
    pub fn per_host(
        capacity: NonZeroUsize,
        build: impl Fn(&str) -> Upstream<BUCKETS> + Send + Sync + 'static,
    ) -> Self {
        Self::per_key(capacity, |request| host(request).map(Cow::Borrowed), build)
    }

    /// An upstream for each key that `key` gives, as for [`per_host`](Self::per_host); requests
    /// without one share [`OVERFLOW`](Self::OVERFLOW)'s.
    ///
    /// ```
    /// use holdoff_reqwest::{Policy, Upstream, Upstreams};
    /// use std::num::NonZeroUsize;
    ///
    /// // By the provider's account rather than by its host.
    /// let by_account = Upstreams::per_key(
    ///     NonZeroUsize::new(100).unwrap(),
    ///     |request| Some(request.headers().get("x-account")?.to_str().ok()?.into()),
    ///     |_account| Upstream::new(Policy::LLM),
    /// );
    /// # let _ = by_account;
    /// ```
    #[must_use]
    pub fn per_key(
        capacity: NonZeroUsize,
        key: impl Fn(&Request) -> Option<Cow<'_, str>> + Send + Sync + 'static,
        build: impl Fn(&str) -> Upstream<BUCKETS> + Send + Sync + 'static,
    ) -> Self {
        let overflow = build(Self::OVERFLOW);
        let table = Keyed::new(capacity, move |key: &String| build(key));
        Self(Kind::PerKey(Box::new(PerKey { table, overflow, key: Box::new(key) })))
    }

    /// The same upstreams, a host being idle only when nobody has asked for it for so long.
    /// Defaults to 60 s. Nothing if all requests share one.
    #[must_use]
    pub fn with_idle_after(self, idle_after: Duration) -> Self {
        match self.0 {
            Kind::PerKey(keys) => {
                let PerKey { table, overflow, key } = *keys;
                let table = table.with_idle_after(idle_after);
                Self(Kind::PerKey(Box::new(PerKey { table, overflow, key })))
            }
            one @ Kind::One(_) => Self(one),
        }
    }

    /// How many keys there are; 0 if all requests share one upstream.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::One(_) => 0,
            Kind::PerKey(keys) => keys.table.len(),
        }
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The upstream of `key`, if it is there; the one that all share, whatever the key.
    ///
    /// ```
    /// use holdoff_reqwest::{Policy, Upstream, Upstreams};
    ///
    /// let upstreams = Upstreams::from(Upstream::new(Policy::LLM).named("provider"));
    /// assert_eq!(upstreams.with("any", |upstream| upstream.name()), Some("provider"));
    /// ```
    pub fn with<T>(&self, key: &str, look: impl FnOnce(&Upstream<BUCKETS>) -> T) -> Option<T> {
        match &self.0 {
            Kind::One(upstream) => Some(look(upstream)),
            Kind::PerKey(keys) if key == Self::OVERFLOW => Some(look(&keys.overflow)),
            Kind::PerKey(keys) => keys.table.find(key).map(|upstream| look(&upstream)),
        }
    }

    pub(crate) fn of(&self, request: &Request, options: &RequestOptions) -> Held<'_, BUCKETS> {
        match &self.0 {
            Kind::One(Held::Borrowed(upstream)) => Held::Borrowed(upstream),
            Kind::One(Held::Shared(upstream)) => Held::Borrowed(upstream),
            Kind::PerKey(keys) => {
                let PerKey { table, overflow, key } = &**keys;
                let key = options.key.as_deref().map(Cow::Borrowed).or_else(|| key(request));
                key.filter(|key| key.len() <= LONGEST_KEY && key != Self::OVERFLOW)
                    .and_then(|key| table.get(&*key).ok())
                    .map_or(Held::Borrowed(overflow), Held::Shared)
            }
        }
    }
}

/// More than any name in the DNS (253), with its port.
const LONGEST_KEY: usize = 256;

fn host(request: &Request) -> Option<&str> {
    let host = &request.url()[Position::BeforeHost..Position::AfterPort];
    (!host.is_empty()).then_some(host)
}

impl<const BUCKETS: usize> Deref for Held<'_, BUCKETS> {
    type Target = Upstream<BUCKETS>;

    fn deref(&self) -> &Upstream<BUCKETS> {
        match self {
            Held::Borrowed(upstream) => upstream,
            Held::Shared(upstream) => upstream,
        }
    }
}

impl<const BUCKETS: usize> From<Upstream<BUCKETS>> for Upstreams<BUCKETS> {
    fn from(upstream: Upstream<BUCKETS>) -> Self {
        Arc::new(upstream).into()
    }
}

impl<const BUCKETS: usize> From<Arc<Upstream<BUCKETS>>> for Upstreams<BUCKETS> {
    fn from(upstream: Arc<Upstream<BUCKETS>>) -> Self {
        Self(Kind::One(Held::Shared(upstream)))
    }
}

impl<const BUCKETS: usize> From<&'static Upstream<BUCKETS>> for Upstreams<BUCKETS> {
    fn from(upstream: &'static Upstream<BUCKETS>) -> Self {
        Self(Kind::One(Held::Borrowed(upstream)))
    }
}

impl<const BUCKETS: usize> fmt::Debug for Upstreams<BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::One(upstream) => f.debug_tuple("Upstreams").field(&**upstream).finish(),
            Kind::PerKey(keys) => f.debug_tuple("Upstreams").field(&keys.table).finish(),
        }
    }
}
