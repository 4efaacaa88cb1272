//! Responses the way a user's go: status and body code to outcome, preset, whole call.

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive::{self, GaveUp};
use holdoff::http::{Signals, Statuses, retry_after::retry_after};
use holdoff::{Failure, Hint, Outcome, Policy, Safety, Stop, Upstream};

use crate::common::{at, samples, secs};
use crate::{budget, level};

/// A response and the machine-readable code in its body.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Response {
    status: u16,
    code: &'static str,
    retry_after: &'static str,
}

impl Response {
    const fn new(status: u16) -> Self {
        Self { status, code: "", retry_after: "" }
    }

    /// A caller's own word on a code goes before the table.
    fn outcome(self, statuses: Statuses) -> Outcome {
        let hint = match self.retry_after {
            "" => Hint::Absent,
            value => retry_after(value.as_bytes(), None),
        };
        match self.code {
            "insufficient_quota" => Outcome::Failure(Failure::quota().with_hint(hint)),
            _ => statuses.outcome(self.status, Signals { hint, should_retry: None }),
        }
    }
}

#[derive(Debug)]
struct Trace {
    starts: Vec<Duration>,
    result: Result<Response, GaveUp<Response>>,
}

impl Trace {
    fn stop(&self) -> Option<Stop> {
        self.result.as_ref().err().map(|gave_up| gave_up.stop)
    }
}

#[derive(Clone, Copy, Debug)]
struct Client {
    policy: Policy,
    statuses: Statuses,
    safety: Safety,
}

const HTTP: Client =
    Client { policy: Policy::STANDARD, statuses: Statuses::HTTP, safety: Safety::Idempotent };
const LLM: Client = Client { policy: Policy::LLM, statuses: Statuses::LLM, ..HTTP };

impl Client {
    /// A call through `upstream` that is answered by `answers`, the last one again and again.
    fn call(self, upstream: &Upstream, answers: &[Response], seed: u64) -> Trace {
        let clock = Cell::new(at(secs(0)));
        let mut starts = Vec::new();
        let result = drive::run_blocking(
            &clock,
            |delay| clock.set(clock.get().saturating_add(delay)),
            |now| upstream.call(&self.policy, self.safety, now),
            samples(seed),
            |response: Response| match response.outcome(self.statuses) {
                Outcome::Success => Ok(response),
                Outcome::Failure(failure) => Err((failure, response)),
                Outcome::Ignored => unreachable!("no status is ignored"),
            },
            |_| {
                starts.push(clock.get().saturating_duration_since(at(secs(0))));
                answers[(starts.len() - 1).min(answers.len() - 1)]
            },
        );
        Trace { starts, result }
    }
}

// C50: langchain-ai/langchainjs#1929, 2389-research/tracker#547, google-gemini/gemini-cli#10925,
// coder/coder#26200.
#[test]
fn a_used_up_quota_stops_the_call_and_a_rate_limit_does_not() {
    let used_up = Response { code: "insufficient_quota", ..Response::new(429) };
    let a_minute = Response { code: "RESOURCE_EXHAUSTED", retry_after: "5", ..Response::new(429) };
    let bare = Response::new(429);
    let ok = Response::new(200);
    for seed in 0..50 {
        for client in [HTTP, LLM] {
            for first in [used_up, Response { status: 400, ..used_up }] {
                let upstream = Upstream::new().with_budget(budget(9));
                let trace = client.call(&upstream, &[first, ok], seed);
                assert_eq!((trace.starts.len(), trace.stop()), (1, Some(Stop::Quota)));
                assert_eq!(trace.result.expect_err("a quota").last, Some(first), "untouched");
                assert_eq!(level(&upstream), 9);
            }
            // What cannot be tried again as it is.
            let trace = client.call(&Upstream::new(), &[Response::new(400), ok], seed);
            assert_eq!((trace.starts.len(), trace.stop()), (1, Some(Stop::Permanent)));

            let trace = client.call(&Upstream::new(), &[a_minute, ok], seed);
            assert_eq!((trace.starts.len(), trace.stop()), (2, None));
            assert!((secs(5)..=secs(6)).contains(&trace.starts[1]), "{:?}", trace.starts);
        }
        // Without a word about when: to an LLM provider it may be a spending limit.
        let trace = HTTP.call(&Upstream::new(), &[bare, ok], seed);
        assert_eq!((trace.starts.len(), trace.stop()), (2, None));
        assert!((secs(1)..=secs(6)).contains(&trace.starts[1]), "{:?}", trace.starts);
        let trace = LLM.call(&Upstream::new(), &[bare, ok], seed);
        assert_eq!((trace.starts.len(), trace.stop()), (1, Some(Stop::Quota)));
    }
}

// C51: genkit-ai/genkit-dart#355, sudoprivacy/sudocode#722, knative/specs#96,
// anomalyco/opencode#47524.
#[test]
fn exactly_the_statuses_of_the_table_take_a_retry_out_of_the_budget() {
    let retried = [408, 429, 500, 502, 503, 504, 520, 522, 524, 529];
    for (client, more) in [(HTTP, None), (LLM, Some(409))] {
        for status in 400..700 {
            let upstream = Upstream::new().with_budget(budget(9));
            // A hint, without which an LLM provider's 429 is not tried again.
            let response = Response { retry_after: "1", ..Response::new(status) };
            let trace = client.call(&upstream, &[response], 1);
            let (attempts, stop) = if retried.contains(&status) || more == Some(status) {
                (5, Stop::Attempts)
            } else {
                (1, Stop::Permanent)
            };
            assert_eq!((trace.starts.len(), trace.stop()), (attempts, Some(stop)), "{status}");
            assert_eq!(trace.result.expect_err("failed").last, Some(response), "{status}");
            assert_eq!(level(&upstream) as usize, 9 - (attempts - 1), "{status}");
        }
    }
}

// C57, what a body that cannot be sent twice comes to: XAMPPRocky/octocrab#835,
// jonbern/fetch-retry#99, sindresorhus/got#1382, TrueLayer/reqwest-middleware#44 and #214.
#[test]
fn a_request_that_cannot_be_repeated_is_sent_once_and_its_answer_comes_back() {
    let once = Client { safety: Safety::NonIdempotent, ..HTTP };
    for (client, status, stop) in [
        (once, 500, Some(Stop::NotIdempotent)),
        (once, 502, Some(Stop::NotIdempotent)),
        (once, 504, Some(Stop::NotIdempotent)),
        (once, 408, Some(Stop::NotIdempotent)),
        (once, 404, Some(Stop::Permanent)),
        (HTTP, 501, Some(Stop::Permanent)),
        (once, 200, None),
    ] {
        let upstream = Upstream::new().with_budget(budget(9));
        let response = Response::new(status);
        let trace = client.call(&upstream, &[response, Response::new(200)], 1);
        assert_eq!((trace.starts.as_slice(), trace.stop()), (&[secs(0)][..], stop), "{status}");
        let answer = match trace.result {
            Ok(answer) => Some(answer),
            Err(gave_up) => gave_up.last,
        };
        assert_eq!(answer, Some(response), "untouched");
        assert_eq!(level(&upstream), 9, "{status}: no retry was taken");
    }
    // One that can be is sent again.
    let trace = HTTP.call(&Upstream::new(), &[Response::new(500), Response::new(200)], 1);
    assert_eq!((trace.starts.len(), trace.stop()), (2, None));
}
