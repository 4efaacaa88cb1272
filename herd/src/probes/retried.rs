//! What is worth another attempt: how often each trouble is tried.
//!
//! By the policy and the statuses for LLM providers, in virtual time. "Retry 5xx" would take in 501
//! and 505, but a server that does not know a method or a version will not learn it while we wait.

use core::cell::Cell;
use core::fmt;
use std::io;

use holdoff::http::{Signals, Statuses};
use holdoff::{
    Call, Classify, Failover, Failure, Instant, Outcome, Policy, PolicyConfig, Safety, Stop, drive,
    valid,
};
use rand_xoshiro::rand_core::Rng;

/// The most attempts of one call.
pub const MAX_ATTEMPTS: u32 = 3;

static POLICY: Policy = valid!(PolicyConfig::llm().with_max_attempts(MAX_ATTEMPTS).build());

/// What an attempt comes to, however often it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The connection is lost.
    ConnectionReset,
    /// The caller's own code fails on the answer: it cannot be parsed.
    OwnError,
    /// The service answers with this status and no hint.
    Status(u16),
    /// The service answers with this status, and so would another one that may be asked instead.
    StatusWithFallback(u16),
    /// The service answers with this status and says when to come back.
    StatusWithHint(u16),
}

impl Trouble {
    /// All that are probed, in the order of the table.
    pub const ALL: [Self; 19] = [
        Self::Status(400),
        Self::StatusWithFallback(400),
        Self::Status(401),
        Self::Status(403),
        Self::Status(404),
        Self::Status(408),
        Self::Status(409),
        Self::Status(422),
        Self::StatusWithHint(429),
        Self::Status(429),
        Self::Status(500),
        Self::Status(501),
        Self::Status(502),
        Self::Status(503),
        Self::Status(504),
        Self::Status(505),
        Self::Status(529),
        Self::ConnectionReset,
        Self::OwnError,
    ];

    fn answer(self) -> Answer {
        match self {
            Self::ConnectionReset => Answer::Error(io::ErrorKind::ConnectionReset.into()),
            Self::OwnError => match serde_json::from_str::<serde_json::Value>("no JSON") {
                Ok(_) => Answer::Response { status: 200, retry_after: None },
                Err(error) => Answer::Error(error.into()),
            },
            Self::Status(status) | Self::StatusWithFallback(status) => {
                Answer::Response { status, retry_after: None }
            }
            Self::StatusWithHint(status) => Answer::Response { status, retry_after: Some("1") },
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionReset => f.write_str("connection reset"),
            Self::OwnError => f.write_str("own error"),
            Self::Status(429) => f.write_str("429 without a hint"),
            Self::Status(status) => write!(f, "{status}"),
            Self::StatusWithFallback(status) => write!(f, "{status} with a fallback"),
            Self::StatusWithHint(status) => write!(f, "{status} with a hint"),
        }
    }
}

/// How often a trouble was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retried {
    /// What each attempt came to.
    pub trouble: Trouble,
    /// Attempts made, at the fallback too if there is one.
    pub attempts: u32,
    /// Why there was no further one. `None` if the call succeeded.
    pub stop: Option<Stop>,
    /// Whether the caller got back what the last attempt came to, as it was.
    pub is_untouched: bool,
}

/// Makes one call that runs into `trouble`.
pub(super) fn probe(trouble: Trouble, random: &mut impl Rng) -> Retried {
    match trouble {
        Trouble::StatusWithFallback(_) => called::<2>(trouble, random),
        _ => called::<1>(trouble, random),
    }
}

/// One call, with as many services to turn to as there are candidates.
fn called<const CANDIDATES: usize>(trouble: Trouble, random: &mut impl Rng) -> Retried {
    let clock = Cell::new(Instant::EPOCH);
    let failover = Failover::<CANDIDATES>::new();
    let mut route = failover.route();
    let mut retried = Retried { trouble, attempts: 0, stop: None, is_untouched: false };
    while route.next(clock.get()).is_ok() {
        let result = drive::run_blocking(
            &clock,
            |delay| clock.set(clock.get().saturating_add(delay)),
            |now| Call::new(&POLICY, Safety::Idempotent, now),
            || random.next_u64(),
            classify,
            |_| {
                retried.attempts += 1;
                Attempted { number: retried.attempts, answer: trouble.answer() }
            },
        );
        let Err(gave_up) = result else {
            return Retried { stop: None, is_untouched: false, ..retried };
        };
        retried.stop = Some(gave_up.stop);
        retried.is_untouched = gave_up.last.is_some_and(|last| last.number == retried.attempts);
        if !route.failed(clock.get(), gave_up.stop, gave_up.retry_after) {
            break;
        }
    }
    retried
}

/// What came back, and of which attempt.
#[derive(Debug)]
struct Attempted {
    number: u32,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    Error(io::Error),
    Response { status: u16, retry_after: Option<&'static str> },
}

fn classify(attempted: Attempted) -> Result<(), (Failure, Attempted)> {
    let failure = match &attempted.answer {
        Answer::Error(error) => error.classify(),
        Answer::Response { status, retry_after } => {
            let headers = retry_after.map(|seconds| ("retry-after", seconds));
            match Statuses::LLM.outcome(*status, Signals::from_headers(headers, None)) {
                Outcome::Failure(failure) => failure,
                Outcome::Ignored | Outcome::Success => return Ok(()),
            }
        }
    };
    Err((failure, attempted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    fn probed(trouble: Trouble) -> Retried {
        probe(trouble, &mut Xoshiro256PlusPlus::seed_from_u64(1))
    }

    #[test]
    fn each_trouble_is_tried_as_often_as_it_is_worth() {
        for trouble in Trouble::ALL {
            let (attempts, stop) = match trouble {
                Trouble::Status(408 | 409 | 500 | 502 | 503 | 504 | 529)
                | Trouble::StatusWithHint(429)
                | Trouble::ConnectionReset => (3, Stop::Attempts),
                Trouble::Status(429) => (1, Stop::Quota),
                _ => (1, Stop::Permanent),
            };
            let expected = Retried { trouble, attempts, stop: Some(stop), is_untouched: true };
            assert_eq!(probed(trouble), expected);
        }
    }

    #[test]
    fn a_fallback_is_asked_for_the_services_trouble_and_not_for_the_callers_own() {
        for (status, attempts) in [(400, 1), (404, 1), (422, 1), (429, 1), (503, 6), (529, 6)] {
            let retried = probed(Trouble::StatusWithFallback(status));
            assert_eq!(retried.attempts, attempts, "{status}");
            assert!(retried.is_untouched, "{status}");
        }
    }

    #[test]
    fn a_success_is_no_trouble() {
        let trouble = Trouble::Status(204);
        let expected = Retried { trouble, attempts: 1, stop: None, is_untouched: false };
        assert_eq!(probed(trouble), expected);
    }
}
