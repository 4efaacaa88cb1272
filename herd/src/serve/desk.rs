//! From a request to its answer, without a socket or a clock.

use core::time::Duration;

use holdoff::{Instant, Quota};
use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::dialect::{Dialect, Headers, Problem, hint_headers};
use super::ledger::{Arrival, Ledger, Outcome, shown};
use super::limits::Limits;
use super::plan::{Plan, Planned, Planner, Reset, StreamEnd};
use super::scenario::{Scenario, Trickle};

/// A request that has come in whole.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) endpoint: Endpoint,
    pub(super) method: String,
    pub(super) path: String,
    /// Nothing of a client that names none.
    pub(super) key: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) idempotency_key: Option<String>,
    pub(super) body: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// Whatever status the path names.
    Anything(u16),
    /// A model's answer.
    Completion(Dialect),
}

/// What to send, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Headers,
    /// Sent one by one; a body that is not a stream is one piece.
    pub(super) pieces: Vec<Bytes>,
    pub(super) is_stream: bool,
    pub(super) delay: Duration,
    pub(super) trickle: Option<Trickle>,
    pub(super) ending: Ending,
    pub(super) outcome: Outcome,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As it should.
    Complete,
    /// The connection is closed after the pieces.
    Cut,
    /// The connection is reset after so many bytes.
    Reset(usize),
    /// The connection is reset, and nothing is sent.
    Silence,
}

/// Answers requests in the order in which they come.
#[derive(Debug)]
pub(super) struct Desk {
    /// When the first request came.
    start: Option<Instant>,
    limits: Limits,
    planner: Planner,
    ledger: Ledger,
    number: u64,
}

/// What a model is asked. Anything else in the body is of no interest here.
#[derive(Deserialize)]
struct Prompt {
    model: String,
    #[serde(default)]
    stream: Option<bool>,
}

impl Desk {
    pub(super) fn new(quota: Quota, scenario: &Scenario) -> Self {
        Self {
            start: None,
            limits: Limits::new(quota, scenario),
            planner: Planner::new(scenario),
            ledger: Ledger::default(),
            number: 0,
        }
    }

    pub(super) const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The answer to a request that comes at `now`, `wall` after 1970.
    pub(super) fn answer(&mut self, now: Instant, wall: Duration, asked: &Asked) -> Answer {
        let elapsed = now.saturating_duration_since(*self.start.get_or_insert(now));
        let plan = self.planner.plan(elapsed, &asked.path);
        self.number += 1;
        let request_id = format!("req_{:024}", self.number);
        let mut answer = self.judged(elapsed, wall, asked, &plan, &request_id);
        answer.headers.push((asked.endpoint.dialect().request_id(), request_id));
        if let Some(should_retry) = plan.hint.should_retry {
            answer.headers.push(("x-should-retry", should_retry.to_string()));
        }
        answer.delay = plan.slow.delay;
        answer.trickle = plan.slow.trickle;
        if let Some(reset) = plan.reset {
            answer.outcome = Outcome::Broken;
            answer.ending = match reset {
                Reset::AfterBytes(bytes) => answer.reset_after(bytes, &asked.method),
                Reset::BeforeAnswer => Ending::Silence,
            };
        }
        self.ledger.record(arrival(elapsed, asked, &answer), &asked.body);
        answer
    }

    fn judged(
        &mut self,
        elapsed: Duration,
        wall: Duration,
        asked: &Asked,
        plan: &Plan,
        request_id: &str,
    ) -> Answer {
        let dialect = asked.endpoint.dialect();
        if let Some(failure) = plan.failure {
            let (problem, hint) = match failure {
                Planned::Quota => (Problem::Quota, Headers::new()),
                Planned::Status(status) => {
                    (Problem::Status(status), hint_headers(plan.hint, None, wall))
                }
            };
            return Answer::error(dialect, problem, hint, request_id);
        }
        let key = asked.key.as_deref().unwrap_or_default();
        let level = self.limits.request(Instant::EPOCH.saturating_add(elapsed), key);
        let mut headers = dialect.rate_headers(&level, wall);
        if level.wait.is_some() {
            headers.extend(hint_headers(plan.hint, level.wait, wall));
            return Answer::error(dialect, Problem::RateLimit, headers, request_id);
        }
        match asked.endpoint {
            Endpoint::Anything(status) => anything(status, asked, headers),
            Endpoint::Completion(_) => match serde_json::from_slice::<Prompt>(&asked.body) {
                Ok(prompt) if prompt.stream == Some(true) => {
                    let events = dialect.events(&prompt.model, self.number, wall);
                    stream(events, plan.stream, &dialect.overloaded_event(request_id), headers)
                }
                Ok(prompt) => {
                    let value = dialect.completion(&prompt.model, self.number, wall);
                    Answer::json(200, &value, headers)
                }
                Err(_) => {
                    let problem = Problem::Invalid("The body must be JSON with a `model`.");
                    Answer::error(dialect, problem, headers, request_id)
                }
            },
        }
    }
}

impl Endpoint {
    /// Whose errors it answers with.
    pub(super) const fn dialect(self) -> Dialect {
        match self {
            Self::Anything(_) => Dialect::Plain,
            Self::Completion(dialect) => dialect,
        }
    }
}

impl Answer {
    /// One that is sent at once and in one piece.
    pub(super) fn json(status: u16, value: &serde_json::Value, headers: Headers) -> Self {
        Self::whole(status, "application/json", value.to_string().into(), headers)
    }

    pub(super) fn whole(
        status: u16,
        content_type: &str,
        body: Bytes,
        mut headers: Headers,
    ) -> Self {
        // These have no body (RFC 9110 sections 15.3.5 and 15.4.5).
        let pieces = if matches!(status, 204 | 304) { Vec::new() } else { vec![body] };
        if !pieces.is_empty() {
            headers.push(("content-type", content_type.to_owned()));
        }
        Self {
            status,
            headers,
            pieces,
            is_stream: false,
            delay: Duration::ZERO,
            trickle: None,
            ending: Ending::Complete,
            outcome: Outcome::Ok,
        }
    }

    /// A reset that is noticed: one who has all that was promised asks for nothing more.
    fn reset_after(&self, bytes: usize, method: &str) -> Ending {
        let length: usize = self.pieces.iter().map(Bytes::len).sum();
        match length.checked_sub(1) {
            Some(_) if self.is_stream => Ending::Reset(bytes),
            Some(most) if method != "HEAD" => Ending::Reset(bytes.min(most)),
            _ => Ending::Silence,
        }
    }

    pub(super) fn error(
        dialect: Dialect,
        problem: Problem,
        headers: Headers,
        request_id: &str,
    ) -> Self {
        let outcome = match problem.status() {
            429 => Outcome::Rejected,
            _ => Outcome::Failed,
        };
        let error = dialect.error(problem, request_id);
        Self { outcome, ..Self::json(problem.status(), &error, headers) }
    }
}

fn anything(status: u16, asked: &Asked, mut headers: Headers) -> Answer {
    if matches!(status, 300..=399) && status != 304 {
        headers.push(("location", "/anything/200".to_owned()));
    }
    let value = json!({
        "method": asked.method,
        "path": asked.path,
        "idempotency_key": asked.idempotency_key,
        "body": String::from_utf8_lossy(&asked.body),
    });
    Answer::json(status, &value, headers)
}

fn stream(
    mut events: Vec<String>,
    end: Option<StreamEnd>,
    overloaded: &str,
    mut headers: Headers,
) -> Answer {
    let (ending, outcome) = match end {
        None => (Ending::Complete, Outcome::Ok),
        Some(StreamEnd::Cut { after_events }) => {
            events.truncate(after_events);
            (Ending::Cut, Outcome::Broken)
        }
        Some(StreamEnd::Overloaded { after_events }) => {
            events.truncate(after_events);
            events.push(overloaded.to_owned());
            (Ending::Complete, Outcome::Broken)
        }
    };
    headers.push(("content-type", "text/event-stream; charset=utf-8".to_owned()));
    headers.push(("cache-control", "no-cache".to_owned()));
    Answer {
        status: 200,
        headers,
        pieces: events.into_iter().map(Bytes::from).collect(),
        is_stream: true,
        delay: Duration::ZERO,
        trickle: None,
        ending,
        outcome,
    }
}

fn arrival(at: Duration, asked: &Asked, answer: &Answer) -> Arrival {
    Arrival {
        at,
        key: asked.key.as_deref().map_or_else(|| "anonymous".to_owned(), shown),
        method: asked.method.clone(),
        path: asked.path.clone(),
        attempt: asked.attempt,
        status: (answer.ending != Ending::Silence).then_some(answer.status),
        outcome: answer.outcome,
        idempotency_key: asked.idempotency_key.clone(),
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;
    use crate::serve::limit;

    const WALL: Duration = Duration::from_secs(784_111_777);

    fn desk(scenario: &str) -> Desk {
        let burst = NonZeroU32::new(20).expect("not zero");
        let quota = limit("10".parse().expect("a rate"), burst).expect("a quota");
        Desk::new(quota, &Scenario::from_toml(scenario).expect("a scenario"))
    }

    fn asked() -> Asked {
        Asked {
            endpoint: Endpoint::Anything(200),
            method: "GET".to_owned(),
            path: "/anything/200".to_owned(),
            key: Some("k".to_owned()),
            attempt: None,
            idempotency_key: None,
            body: Bytes::new(),
        }
    }

    /// The answer to a request so long after a clock's epoch that is not the desk's own.
    fn answer(desk: &mut Desk, millis: u64) -> Answer {
        desk.answer(Instant::from_nanos((7_000 + millis) * 1_000_000), WALL, &asked())
    }

    fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
        let found = answer.headers.iter().find(|(is, _)| *is == name);
        found.map(|(_, value)| value.as_str())
    }

    #[test]
    fn the_experiments_herd_gets_20_at_once_and_10_a_second() {
        let mut desk = desk("");
        let (mut waiting, mut requests) = (100, 0);
        for seconds in 0..=8 {
            let answers: Vec<_> =
                (0..waiting).map(|_| answer(&mut desk, seconds * 1_000)).collect();
            requests += answers.len();
            let rejected = answers.iter().filter(|answer| answer.status == 429);
            assert!(rejected.clone().all(|answer| header(answer, "retry-after") == Some("1")));
            waiting = rejected.count();
            assert_eq!(waiting, 80 - 10 * usize::try_from(seconds).expect("small"));
        }
        // 100 + 80 + 70 + … + 10.
        assert_eq!(requests, 460);
        let total = desk.ledger().stats().total;
        assert_eq!((total.ok, total.rejected, total.requests), (100, 360, 460));
    }

    #[test]
    fn every_header_says_the_same_of_the_bucket() {
        let mut desk = desk("");
        for (millis, remaining, reset, go, date) in [
            (0, "19", "1", "100ms", "1994-11-06T08:49:38Z"),
            (0, "18", "1", "200ms", "1994-11-06T08:49:38Z"),
            (50, "17", "1", "250ms", "1994-11-06T08:49:38Z"),
            (10_000, "19", "1", "100ms", "1994-11-06T08:49:38Z"),
        ] {
            let answer = answer(&mut desk, millis);
            for (name, value) in [
                ("anthropic-ratelimit-requests-limit", "20"),
                ("anthropic-ratelimit-requests-remaining", remaining),
                ("anthropic-ratelimit-requests-reset", date),
                ("ratelimit", &format!("\"requests\";r={remaining};t={reset}")),
                ("ratelimit-policy", "\"requests\";q=20;w=2"),
                ("x-ratelimit-limit-requests", "20"),
                ("x-ratelimit-remaining-requests", remaining),
                ("x-ratelimit-reset-requests", go),
            ] {
                assert_eq!(header(&answer, name), Some(value), "{name} at {millis} ms");
            }
        }
    }

    #[test]
    fn time_begins_with_the_first_request() {
        let mut desk = desk(
            "[[step]]\nwhen = { from = '1s', until = '2s' }\n\
             then = { kind = 'status', status = 529 }",
        );
        let statuses = [0, 999, 1_000, 1_999, 2_000].map(|at| answer(&mut desk, at).status);
        assert_eq!(statuses, [200, 200, 529, 529, 200]);
        let arrivals = desk.ledger().arrivals();
        assert_eq!(arrivals[0].at, Duration::ZERO);
        assert_eq!(arrivals[4].at, Duration::from_secs(2));
    }

    #[test]
    fn a_failure_of_the_scenario_takes_no_token() {
        let mut desk =
            desk("[[step]]\nwhen = { last = 50 }\nthen = { kind = 'status', status = 500 }");
        assert!((0..50).all(|_| answer(&mut desk, 0).status == 500));
        assert!((0..20).all(|_| answer(&mut desk, 0).status == 200));
        assert_eq!(answer(&mut desk, 0).status, 429);
    }
}
