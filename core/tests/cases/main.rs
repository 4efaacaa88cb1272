//! Failures that other projects shipped, each widened to its kind.
//!
//! A test names the public report it comes from. Responses go the way a user's do: header bytes,
//! `Signals`, `Statuses`, `Call`.

#![cfg(not(loom))]

mod attempts;
mod backoff;
mod clock;
#[path = "../common/mod.rs"]
mod common;
mod limiter;
mod reconnect;
mod retry_after;
mod statuses;

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive::{self, GaveUp};
use holdoff::http::{Signals, Statuses};
use holdoff::{Backoff, BackoffConfig, Call, Instant, Outcome, Policy, PolicyConfig, Safety};

use common::secs;

/// One response as it comes off the wire.
#[derive(Clone, Debug, PartialEq)]
struct Response {
    status: u16,
    headers: Vec<(&'static str, Vec<u8>)>,
}

impl Response {
    const fn new(status: u16) -> Self {
        Self { status, headers: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    fn signals(&self, wall_now: Option<Duration>) -> Signals {
        let headers = self.headers.iter().map(|(name, value)| (name, value));
        Signals::from_headers(headers, wall_now)
    }

    fn outcome(&self, statuses: Statuses, wall_now: Option<Duration>) -> Outcome {
        statuses.outcome(self.status, self.signals(wall_now))
    }
}

/// A client whose own backoff is 2 s without jitter, whose calls take no time.
#[derive(Clone, Copy)]
struct Client {
    policy: Policy,
    safety: Safety,
    statuses: Statuses,
    /// Unix time when the call starts.
    wall: Option<Duration>,
    sample: u64,
}

/// The client's own backoff.
const OWN: Duration = secs(2);

const fn own_backoff() -> Backoff {
    match BackoffConfig::constant(OWN).build() {
        Ok(backoff) => backoff,
        Err(_) => unreachable!(),
    }
}

impl Client {
    fn new() -> Self {
        Self::of(PolicyConfig::new(own_backoff()))
    }

    fn of(policy: PolicyConfig) -> Self {
        Self {
            policy: policy.build().expect("valid"),
            safety: Safety::Idempotent,
            statuses: Statuses::HTTP,
            wall: None,
            sample: 0,
        }
    }

    const fn at_unix_time(self, secs: u64) -> Self {
        Self { wall: Some(Duration::from_secs(secs)), ..self }
    }

    /// What comes of a call answered by `respond`, given the number of the attempt.
    fn call(&self, respond: impl Fn(u32) -> Response) -> Trace {
        let clock = Cell::new(Instant::EPOCH);
        let since_start = || clock.get().saturating_duration_since(Instant::EPOCH);
        let mut starts = Vec::new();
        let result = drive::run_blocking(
            &clock,
            |delay| clock.set(clock.get().saturating_add(delay)),
            |now| Call::new(&self.policy, self.safety, now),
            || self.sample,
            |response: Response| {
                let wall_now = self.wall.map(|wall| wall + since_start());
                match response.outcome(self.statuses, wall_now) {
                    Outcome::Failure(failure) => Err((failure, response)),
                    Outcome::Ignored | Outcome::Success => Ok(response),
                }
            },
            |attempt| {
                starts.push(since_start());
                respond(attempt.number)
            },
        );
        Trace { starts, end: since_start(), result }
    }

    /// When the second attempt starts if the first is answered with `response`.
    fn delay_after(&self, response: &Response) -> Option<Duration> {
        let ok = Response::new(200);
        let trace = self.call(|n| if n == 1 { response.clone() } else { ok.clone() });
        trace.starts.get(1).copied()
    }
}

/// What a call did: when its attempts started, when it was over, and what came back.
#[derive(Debug, PartialEq)]
struct Trace {
    starts: Vec<Duration>,
    end: Duration,
    result: Result<Response, GaveUp<Response>>,
}

impl Trace {
    fn gave_up(self) -> GaveUp<Response> {
        self.result.expect_err("it gave up")
    }
}
