//! Which service to call when the first will not do: ordered candidates, and when to go on to the
//! next.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::call::Stop;
use crate::sync::{Next, Word};
use crate::time::Instant;

/// `N` candidates in order of preference, and until when each is not to be called; shared by all
/// calls, usable through `&self` from any thread, task or interrupt.
///
/// The next candidate is called only after a failure that says nothing about the call itself:
/// attempts, budget or time used up on a struggling service, an open circuit breaker, a hint that
/// is too long, too many in line. A permanent failure comes back as it is, from whichever
/// candidate: another one's answer must not hide the caller's own mistake. Nor is a call handed on
/// that may have been processed and is not safe to repeat, that has no time left at all (see
/// [`Route::with_deadline`]), or whose quota a person must look at.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Failover, Instant, Stop};
///
/// static MODELS: Failover<2> = Failover::new();
///
/// let now = Instant::EPOCH;
/// let mut route = MODELS.route();
/// assert_eq!(route.next(now), Ok(0));
/// // The first asks for a minute, longer than the policy allows: on to the second.
/// let hint = Duration::from_secs(60);
/// assert!(route.failed(now, Stop::HintTooLong { hint }, Some(hint)));
/// assert_eq!(route.next(now), Ok(1));
///
/// // Whoever comes within that minute does not ask the first one again.
/// assert_eq!(MODELS.route().next(now), Ok(1));
/// ```
#[derive(Debug)]
pub struct Failover<const N: usize> {
    cooled_until: [Word; N],
}

impl<const N: usize> Failover<N> {
    /// All candidates may be called.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self { cooled_until: [const { Word::new(0) }; N] }
    }

    /// All candidates may be called.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self { cooled_until: core::array::from_fn(|_| Word::new(0)) }
    }

    /// One call's way over the candidates.
    #[must_use]
    pub const fn route(&self) -> Route<'_, N> {
        Route { failover: self, current: None, deadline: None, stops: [None; N] }
    }

    /// Until when `candidate` is not to be called; the epoch if it may be, or if there is none
    /// such.
    #[must_use]
    pub fn cooled_until(&self, candidate: usize) -> Instant {
        self.cooled_until.get(candidate).map_or(Instant::EPOCH, |at| Instant::from_nanos(at.load()))
    }

    /// Does not call `candidate` before `until`. An earlier time than the one in force changes
    /// nothing, nor does a candidate that does not exist.
    pub fn cool_until(&self, candidate: usize, until: Instant) {
        let until = until.as_nanos();
        if let Some(cooled_until) = self.cooled_until.get(candidate) {
            cooled_until
                .update(|at| if at < until { Next::Store(until, ()) } else { Next::Keep(()) });
        }
    }
}

impl<const N: usize> Default for Failover<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// There is no candidate left to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoCandidate {
    /// When the first of those that were not called, or asked to be left alone, may be called
    /// again; `None` if that is not known.
    pub retry_at: Option<Instant>,
}

impl fmt::Display for NoCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no candidate is left to call")
    }
}

impl Error for NoCandidate {}

/// One call's way over the candidates of a [`Failover`].
#[derive(Debug)]
pub struct Route<'a, const N: usize> {
    failover: &'a Failover<N>,
    current: Option<usize>,
    deadline: Option<Instant>,
    stops: [Option<Stop>; N],
}

impl<const N: usize> Route<'_, N> {
    /// The same way, of a call that as a whole has to be over by `deadline`: from then on no other
    /// candidate is called. Before it, one that stops with [`Stop::Deadline`] has used up its share
    /// of the time only.
    ///
    /// ```
    /// use holdoff::{Failover, Instant, Stop};
    ///
    /// let (failover, deadline) = (Failover::<3>::new(), Instant::from_nanos(20));
    /// let mut route = failover.route().with_deadline(deadline);
    /// assert_eq!(route.next(Instant::EPOCH), Ok(0));
    /// assert!(route.failed(Instant::from_nanos(12), Stop::Deadline, None));
    /// assert_eq!(route.next(Instant::from_nanos(12)), Ok(1));
    /// assert!(!route.failed(deadline, Stop::Deadline, None));
    /// ```
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The number of the next candidate, in order, that has not been called and is not to be left
    /// alone.
    ///
    /// # Errors
    /// [`NoCandidate`] with the earliest time at which one can be called.
    pub fn next(&mut self, now: Instant) -> Result<usize, NoCandidate> {
        let next = (0..N).find(|&candidate| {
            self.stops[candidate].is_none() && self.failover.cooled_until(candidate) <= now
        });
        self.current = next;
        next.ok_or_else(|| NoCandidate {
            retry_at: (0..N)
                .map(|candidate| self.failover.cooled_until(candidate))
                .filter(|&at| at > now)
                .min(),
        })
    }

    /// Reports why the call to the current candidate stopped; whether another may be tried.
    ///
    /// `retry_after` is the time that the candidate asked to be left alone
    /// ([`Call::retry_after`](crate::Call::retry_after)): no call goes there before it has passed,
    /// unless it is endless, which is no time to come back.
    pub fn failed(&mut self, now: Instant, stop: Stop, retry_after: Option<Duration>) -> bool {
        let Some(candidate) = self.current.take() else { return false };
        if let Some(stopped) = self.stops.get_mut(candidate) {
            *stopped = Some(stop);
        }
        // A budget or a deadline names a wait of our own, which the candidate did not ask for.
        let is_told = !matches!(stop, Stop::Budget | Stop::Deadline);
        let fails_over = fails_over(stop);
        if let (true, Some(delay)) = (fails_over && is_told, retry_after) {
            match now.saturating_add(delay) {
                Instant::MAX => {}
                until => self.failover.cool_until(candidate, until),
            }
        }
        fails_over && self.deadline.is_none_or(|deadline| now < deadline)
    }

    /// Who serves the call: the candidate that [`next`](Self::next) gave last, unless it failed.
    #[must_use]
    pub const fn current(&self) -> Option<usize> {
        self.current
    }

    /// Which candidates failed before, and why.
    pub fn failures(&self) -> impl Iterator<Item = (usize, Stop)> {
        self.stops.iter().enumerate().filter_map(|(candidate, stop)| Some((candidate, (*stop)?)))
    }
}

/// Whether a stop says something about the service and nothing about the call.
const fn fails_over(stop: Stop) -> bool {
    match stop {
        Stop::Attempts
        | Stop::Budget
        | Stop::CircuitOpen { .. }
        | Stop::Deadline
        | Stop::HintTooLong { .. }
        | Stop::QueueFull => true,
        Stop::Cancelled
        | Stop::Committed
        | Stop::CostTooHigh { .. }
        | Stop::Nested
        | Stop::NotIdempotent
        | Stop::Permanent
        | Stop::Quota => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const fn at(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    const fn secs(secs: u64) -> Option<Duration> {
        Some(Duration::from_secs(secs))
    }

    #[test]
    fn only_what_says_nothing_about_the_call_is_handed_on() {
        let hint = Duration::from_secs(600);
        for (stop, goes_on) in [
            (Stop::Attempts, true),
            (Stop::Budget, true),
            (Stop::CircuitOpen { retry_at: Instant::MAX }, true),
            (Stop::HintTooLong { hint }, true),
            (Stop::QueueFull, true),
            (Stop::Cancelled, false),
            (Stop::Committed, false),
            (Stop::Nested, false),
            (Stop::Deadline, true),
            (Stop::CostTooHigh { burst: 1 }, false),
            (Stop::NotIdempotent, false),
            (Stop::Permanent, false),
            (Stop::Quota, false),
        ] {
            let failover = Failover::<2>::new();
            let mut route = failover.route();
            assert_eq!(route.next(at(0)), Ok(0));
            assert_eq!(route.failed(at(0), stop, secs(5)), goes_on, "{stop:?}");
            // Only a service that says when to come back is left alone until then; what is our own
            // wait is no such word.
            let is_told = goes_on && !matches!(stop, Stop::Budget | Stop::Deadline);
            assert_eq!(failover.cooled_until(0), if is_told { at(5) } else { at(0) }, "{stop:?}");
            assert_eq!(route.failures().collect::<Vec<_>>(), [(0, stop)]);
        }
    }

    #[test]
    fn a_shorter_cooldown_does_not_shorten_a_longer_one() {
        let failover = Failover::<1>::new();
        failover.cool_until(0, at(60));
        failover.cool_until(0, at(5));
        failover.cool_until(7, at(5)); // there is none
        assert_eq!(failover.cooled_until(0), at(60));
        assert_eq!(failover.cooled_until(7), at(0));
        assert_eq!(failover.route().next(at(59)), Err(NoCandidate { retry_at: Some(at(60)) }));
        assert_eq!(failover.route().next(at(60)), Ok(0));
    }

    #[test]
    fn a_candidates_own_deadline_is_a_share_of_the_calls() {
        let failover = Failover::<2>::new();
        let mut route = failover.route().with_deadline(at(20));
        assert_eq!(route.next(at(0)), Ok(0));
        assert!(route.failed(at(19), Stop::Deadline, secs(5)));
        assert_eq!(failover.cooled_until(0), at(0), "it did not ask to be left alone");
        assert_eq!(route.next(at(19)), Ok(1));
        assert!(!route.failed(at(20), Stop::Attempts, secs(5)), "there is no time left");
        assert_eq!(failover.cooled_until(1), at(25));
    }

    #[test]
    fn the_calls_own_failures_are_not_handed_on_however_much_time_is_left() {
        let failover = Failover::<2>::new();
        for stop in [Stop::Cancelled, Stop::Nested, Stop::NotIdempotent, Stop::Permanent] {
            let mut route = failover.route().with_deadline(Instant::MAX);
            assert_eq!(route.next(at(0)), Ok(0));
            assert!(!route.failed(at(0), stop, None), "{stop:?}");
        }
    }

    #[test]
    fn an_endless_hint_leaves_nobody_alone_for_ever() {
        let failover = Failover::<2>::new();
        let mut route = failover.route();
        assert_eq!(route.next(at(0)), Ok(0));
        let hint = Duration::MAX;
        assert!(route.failed(at(0), Stop::HintTooLong { hint }, Some(hint)));
        assert_eq!(failover.cooled_until(0), at(0));
    }

    #[test]
    fn with_all_left_alone_the_first_to_recover_is_named() {
        let failover = Failover::<3>::new();
        for (candidate, until) in [(0, 30), (1, 10), (2, 20)] {
            failover.cool_until(candidate, at(until));
        }
        assert_eq!(failover.route().next(at(0)), Err(NoCandidate { retry_at: Some(at(10)) }));
        assert_eq!(failover.route().next(at(10)), Ok(1));
        assert_eq!(Failover::<0>::new().route().next(at(0)), Err(NoCandidate { retry_at: None }));
    }

    #[test]
    fn each_candidate_is_called_once_in_order() {
        let failover = Failover::<3>::new();
        let mut route = failover.route();
        for candidate in 0..3 {
            assert_eq!(route.next(at(0)), Ok(candidate));
            assert_eq!(route.current(), Some(candidate));
            assert!(route.failed(at(0), Stop::Attempts, None));
            assert!(!route.failed(at(0), Stop::Attempts, None), "nothing is under way");
        }
        assert_eq!(route.next(at(0)), Err(NoCandidate { retry_at: None }));
        assert_eq!(route.current(), None);
    }
}
