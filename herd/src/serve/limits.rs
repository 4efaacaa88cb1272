//! A token bucket for each API key, and the limit that is in force.

use core::time::Duration;
use std::collections::HashMap;

use holdoff::{Instant, Limiter, Quota, Refusal};

use super::limit;
use super::scenario::{Effect, Scenario};

/// The buckets of all keys. Instants are counted from the first request.
#[derive(Debug)]
pub(super) struct Limits {
    schedule: Schedule,
    buckets: HashMap<String, Bucket>,
}

/// Which limit is in force when.
#[derive(Debug)]
struct Schedule {
    base: Quota,
    changes: Vec<Change>,
    /// When the limit may change, sorted.
    boundaries: Vec<Instant>,
}

#[derive(Debug)]
struct Change {
    from: Instant,
    until: Instant,
    quota: Quota,
}

#[derive(Debug)]
struct Bucket {
    limiter: Limiter,
    /// The latest request; later boundaries are still to come.
    at: Instant,
}

/// What a bucket says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// When a token is there, if there is none.
    pub(super) wait: Option<Duration>,
    /// The burst.
    pub(super) limit: u32,
    /// Whole tokens left.
    pub(super) remaining: u32,
    /// The time until the bucket is full again.
    pub(super) full_in: Duration,
    /// The time in which an empty one fills.
    pub(super) window: Duration,
}

impl Limits {
    /// A full bucket for whoever comes; the scenario's limits are taken to be checked.
    pub(super) fn new(base: Quota, scenario: &Scenario) -> Self {
        let changes: Vec<_> = scenario
            .steps
            .iter()
            .filter_map(|step| match step.then {
                Effect::Limit { rate, burst } => Some(Change {
                    from: Instant::EPOCH.saturating_add(step.when.from),
                    until: Instant::EPOCH.saturating_add(step.when.until.unwrap_or(Duration::MAX)),
                    quota: limit(rate, burst).ok()?,
                }),
                _ => None,
            })
            .collect();
        let mut boundaries: Vec<_> =
            changes.iter().flat_map(|change| [change.from, change.until]).collect();
        boundaries.sort_unstable();
        Self { schedule: Schedule { base, changes, boundaries }, buckets: HashMap::new() }
    }

    /// Takes a token of `key`'s bucket if there is one.
    pub(super) fn request(&mut self, now: Instant, key: &str) -> Level {
        let Self { schedule, buckets } = self;
        let Bucket { limiter, at } = buckets
            .entry(key.to_owned())
            .or_insert_with(|| Bucket { limiter: Limiter::new(schedule.in_force(now)), at: now });
        // Each change is made as of its own instant, so that it does not matter when it is noticed.
        for &boundary in schedule.boundaries.iter().filter(|due| *at < **due && **due <= now) {
            // Only another change under way is refused, and `&mut self` rules that out.
            let _ = limiter.set_quota(boundary, schedule.in_force(boundary));
        }
        *at = now.max(*at);
        let wait = match limiter.try_acquire(now, 1) {
            Ok(()) => None,
            Err(Refusal::NotYet { until }) => Some(until.saturating_duration_since(now)),
            Err(Refusal::Never { .. }) => Some(Duration::MAX), // A burst is at least 1.
        };
        let quota = limiter.quota();
        Level {
            wait,
            limit: quota.burst(),
            remaining: limiter.available(now),
            full_in: limiter.full_at().saturating_duration_since(now),
            window: quota.interval().saturating_mul(quota.burst()),
        }
    }
}

impl Schedule {
    /// The quota of the last change that covers `now`.
    fn in_force(&self, now: Instant) -> Quota {
        let covers = |change: &&Change| change.from <= now && now < change.until;
        self.changes.iter().rev().find(covers).map_or(self.base, |change| change.quota)
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;

    fn limits(scenario: &str) -> Limits {
        let burst = NonZeroU32::new(20).expect("not zero");
        let base = limit("10".parse().expect("a rate"), burst).expect("a quota");
        Limits::new(base, &Scenario::from_toml(scenario).expect("a scenario"))
    }

    /// How many of 100 requests at `millis` get a token.
    fn taken(limits: &mut Limits, millis: u64, key: &str) -> usize {
        let now = Instant::from_nanos(millis * 1_000_000);
        (0..100).filter(|_| limits.request(now, key).wait.is_none()).count()
    }

    #[test]
    fn the_herd_gets_what_the_published_provider_gives() {
        let mut limits = limits("");
        assert_eq!(taken(&mut limits, 0, "a"), 20);
        assert_eq!(taken(&mut limits, 99, "a"), 0);
        assert_eq!(taken(&mut limits, 100, "a"), 1);
        assert_eq!(taken(&mut limits, 1_000, "a"), 9);
        assert_eq!(taken(&mut limits, 2_000, "a"), 10);
        assert_eq!(taken(&mut limits, 3_600_000, "a"), 20);
        assert_eq!(taken(&mut limits, 3_600_000, "b"), 20, "a key has a bucket of its own");
    }

    #[test]
    fn the_level_says_what_is_left_and_when_the_rest_comes() {
        let mut limits = limits("");
        let level = limits.request(Instant::EPOCH, "a");
        let window = Duration::from_secs(2);
        let full_in = Duration::from_millis(100);
        assert_eq!(level, Level { wait: None, limit: 20, remaining: 19, full_in, window });
        assert_eq!(taken(&mut limits, 0, "a"), 19);
        let level = limits.request(Instant::from_nanos(30_000_000), "a");
        assert_eq!(level.wait, Some(Duration::from_millis(70)));
        assert_eq!((level.remaining, level.full_in), (0, Duration::from_millis(1_970)));
    }

    #[test]
    fn a_limit_changes_at_its_time_whenever_the_next_request_comes() {
        const SCENARIO: &str = "[[step]]\nwhen = { from = '1s', until = '3s' }\n\
                                then = { kind = 'limit', rate = 1, burst = 5 }";
        let mut limits = limits(SCENARIO);
        assert_eq!(taken(&mut limits, 0, "a"), 20);
        // 10 tokens came in the first second, 5 of them are kept; nothing else came by 1.5 s.
        assert_eq!(taken(&mut limits, 1_500, "a"), 5);
        // One a second until 3 s, of which one was half there; 10 a second after that.
        assert_eq!(taken(&mut limits, 3_000, "a"), 1);
        assert_eq!(taken(&mut limits, 3_500, "a"), 5);
        // Who comes for the first time meets the limit of the day.
        assert_eq!(taken(&mut limits, 2_000, "b"), 5);
        // A change and its end between two requests: nothing is gained by it.
        assert_eq!(taken(&mut limits, 0, "c"), 20);
        assert_eq!(taken(&mut limits, 3_000, "c"), 5);
    }
}
