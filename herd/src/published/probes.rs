//! What has been published about the same probes: of a library as it was, and as it should be.

use serde::Serialize;

use crate::probes::retried::{MAX_ATTEMPTS, Trouble};

/// The figures of the library as it was and after its repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Published<T> {
    /// As it was.
    pub broken: T,
    /// After its repair.
    pub right: T,
}

/// What became of 50 calls at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StillDown {
    /// Calls that reached the service.
    pub reached: u32,
    /// Calls refused without a request.
    pub failed_fast: u32,
}

/// How soon the breaker closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// Successes, one after another, until it is closed.
    pub successes_to_close: u32,
}

/// What became of 1000 calls to a flaky service, in one run; `None` where nothing was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Flaky {
    /// What the breaker did after the last call.
    pub state: &'static str,
    /// Calls that failed.
    pub failures: Option<u32>,
    /// How often it tripped.
    pub trips: Option<u32>,
}

/// How often a trouble is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Attempts {
    /// By the library as it was, with three attempts at most; `None` where nothing was published.
    #[serde(rename = "published_broken")]
    pub broken: Option<u32>,
    /// By the rule: as often as allowed where waiting can help, once where it cannot.
    pub right: u32,
}

/// The figures published for the service that is still down.
pub const STILL_DOWN: Published<StillDown> = Published {
    broken: StillDown { reached: 50, failed_fast: 0 },
    right: StillDown { reached: 1, failed_fast: 49 },
};

/// The figures published for the service that is back.
pub const RECOVERED: Published<Recovered> = Published {
    broken: Recovered { successes_to_close: 20 },
    right: Recovered { successes_to_close: 1 },
};

/// The figures published for the flaky service, if `calls` is what they were measured with.
#[must_use]
pub fn flaky(calls: u32) -> Option<Published<Flaky>> {
    (calls == 1000).then_some(Published {
        broken: Flaky { state: "half-open", failures: None, trips: None },
        right: Flaky { state: "closed", failures: Some(284), trips: Some(0) },
    })
}

/// How often `trouble` was tried and should be.
#[must_use]
pub const fn attempts(trouble: Trouble) -> Attempts {
    let (broken, right) = match trouble {
        Trouble::Status(408 | 529) => (Some(1), MAX_ATTEMPTS),
        Trouble::StatusWithHint(429) => (Some(MAX_ATTEMPTS), MAX_ATTEMPTS),
        Trouble::Status(429) | Trouble::OwnError => (Some(MAX_ATTEMPTS), 1),
        // The fallback answered, and nobody heard of the mistake.
        Trouble::StatusWithFallback(400) => (Some(2), 1),
        Trouble::Status(409 | 500 | 502 | 503 | 504) | Trouble::ConnectionReset => {
            (None, MAX_ATTEMPTS)
        }
        Trouble::Status(_) | Trouble::StatusWithFallback(_) | Trouble::StatusWithHint(_) => {
            (None, 1)
        }
    };
    Attempts { broken, right }
}
