//! What a table may forget.

use holdoff::{Instant, Mode};

use crate::limiter::FairLimiter;
use crate::upstream::Upstream;

/// What a [`Keyed`](crate::Keyed) table may forget, and when.
///
/// For values made of several parts, the latest of theirs:
///
/// ```
/// use holdoff_tokio::{FairLimiter, Idle, Instant, Keyed, Quota, Rate, valid};
/// use std::num::NonZeroUsize;
///
/// struct Tenant {
///     requests: FairLimiter,
///     tokens: FairLimiter,
/// }
///
/// impl Idle for Tenant {
///     fn idle_at(&self) -> Option<Instant> {
///         Some(self.requests.idle_at()?.max(self.tokens.idle_at()?))
///     }
/// }
///
/// let tenants = Keyed::new(NonZeroUsize::new(1_000).unwrap(), |_: &String| Tenant {
///     requests: FairLimiter::new(valid!(Quota::new(Rate::per_minute(50), 5))),
///     tokens: FairLimiter::new(valid!(Quota::new(Rate::per_minute(30_000), 1_000))),
/// });
/// assert_eq!(tenants.get("acme").unwrap().tokens.available(), 1_000);
/// ```
pub trait Idle {
    /// When forgetting it gives nobody anything, if nobody uses it until then; now or in the past
    /// if that is so already, `None` if it is not to be forgotten as things stand.
    ///
    /// Asked only while nobody holds it, with a lock held: it must not use the table.
    fn idle_at(&self) -> Option<Instant>;
}

impl Idle for FairLimiter {
    /// When it is full and not paused.
    fn idle_at(&self) -> Option<Instant> {
        Some(self.limiter().full_at())
    }
}

impl<const BUCKETS: usize> Idle for Upstream<BUCKETS> {
    /// When its limiter is full and not paused and its breaker has refused nobody for its stable
    /// period; `None` while it is forced open.
    fn idle_at(&self) -> Option<Instant> {
        if self.breaker().is_some_and(|breaker| breaker.mode() == Mode::ForcedOpen) {
            return None;
        }
        let at = self.parts().idle_at();
        Some(self.limiter().map_or(at, |limiter| limiter.limiter().full_at().max(at)))
    }
}
