//! HTTP: which request is what, and the answer as a response.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use holdoff::{Clock, MonotonicClock, Quota};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use super::body::{Broken, Pieces};
use super::connection::ResetSwitch;
use super::desk::{Answer, Asked, Desk, Ending, Endpoint};
use super::dialect::{Dialect, Headers, Problem};
use super::ledger::csv;
use super::scenario::Scenario;

/// The largest body that is taken.
const BODY_MAX: usize = 32 << 20;

/// Answers requests of all connections.
#[derive(Debug)]
pub(super) struct Handler {
    clock: MonotonicClock,
    desk: Mutex<Desk>,
    /// From the client to the desk, and back.
    ways: (Duration, Duration),
}

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Arrivals,
    Limited(Endpoint),
    Stats,
}

impl Handler {
    pub(super) fn new(quota: Quota, scenario: &Scenario, latency: Duration) -> Self {
        let there = latency / 2;
        Self {
            clock: MonotonicClock::new(),
            desk: Mutex::new(Desk::new(quota, scenario)),
            ways: (there, latency.saturating_sub(there)),
        }
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn handle(
        &self,
        request: Request<Incoming>,
        reset: ResetSwitch,
    ) -> Result<Response<Pieces>, Broken> {
        let (parts, body) = request.into_parts();
        let answer = match route(&parts.method, parts.uri.path()) {
            Ok(Route::Arrivals) => self.arrivals(),
            Ok(Route::Limited(endpoint)) => self.limited(endpoint, parts, body).await,
            Ok(Route::Stats) => self.stats(),
            Err(status) => plain_error(status),
        };
        if answer.ending == Ending::Silence {
            reset.set();
            return Err(Broken);
        }
        Ok(response(answer, reset))
    }

    async fn limited(&self, endpoint: Endpoint, parts: Parts, body: Incoming) -> Answer {
        let Ok(body) = Limited::new(body, BODY_MAX).collect().await else {
            let problem = Problem::Status(413);
            return Answer::error(endpoint.dialect(), problem, Headers::new(), "");
        };
        let asked = asked(endpoint, &parts, body.to_bytes());
        sleep(self.ways.0).await;
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let answer = {
            let mut desk = self.desk();
            // Read inside, so that arrivals are in order.
            desk.answer(self.clock.now(), wall, &asked)
        };
        sleep(self.ways.1.saturating_add(answer.delay)).await;
        answer
    }

    fn stats(&self) -> Answer {
        let stats = serde_json::to_value(self.desk().ledger().stats()).unwrap_or(Value::Null);
        Answer::json(200, &stats, Headers::new())
    }

    fn arrivals(&self) -> Answer {
        let arrivals = self.desk().ledger().arrivals().to_vec();
        match csv(&arrivals) {
            Ok(csv) => Answer::whole(200, "text/csv; charset=utf-8", csv.into(), Headers::new()),
            Err(_) => plain_error(500),
        }
    }
}

/// What a request is for, or the status that says that it is for nothing.
fn route(method: &Method, path: &str) -> Result<Route, u16> {
    let (allowed, route) = match path {
        "/arrivals.csv" => (&Method::GET, Route::Arrivals),
        "/stats" => (&Method::GET, Route::Stats),
        "/v1/chat/completions" => {
            (&Method::POST, Route::Limited(Endpoint::Completion(Dialect::OpenAi)))
        }
        "/v1/messages" => (&Method::POST, Route::Limited(Endpoint::Completion(Dialect::Anthropic))),
        _ => {
            let digits = path.strip_prefix("/anything/").ok_or(404_u16)?;
            let status = digits.parse().ok().filter(|status| (200..=599).contains(status));
            let status = status.filter(|_| !digits.starts_with('+')).ok_or(404_u16)?;
            return Ok(Route::Limited(Endpoint::Anything(status)));
        }
    };
    if method == allowed { Ok(route) } else { Err(405) }
}

fn asked(endpoint: Endpoint, parts: &Parts, body: Bytes) -> Asked {
    let header = |name: &str| text(&parts.headers, name);
    let bearer = header("authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    Asked {
        endpoint,
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        key: header("x-api-key").or(bearer).filter(|key| !key.is_empty()),
        attempt: attempt(&parts.headers),
        idempotency_key: header("idempotency-key"),
        body,
    }
}

/// Which attempt the client says it is, from 1. Its own count of attempts goes before one of
/// retries: an SDK behind a gateway that tries again knows of its own retries only.
fn attempt(headers: &HeaderMap) -> Option<u32> {
    let count = |name| text(headers, name)?.parse::<u32>().ok();
    let attempt = count("x-attempt").filter(|&attempt| attempt > 0);
    attempt.or_else(|| Some(count("x-stainless-retry-count")?.saturating_add(1)))
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn plain_error(status: u16) -> Answer {
    Answer::error(Dialect::Plain, Problem::Status(status), Headers::new(), "")
}

fn response(mut answer: Answer, reset: ResetSwitch) -> Response<Pieces> {
    let headers = core::mem::take(&mut answer.headers);
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(Pieces::new(answer, reset));
    *response.status_mut() = status;
    for (name, value) in headers {
        // All are ours and visible ASCII.
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_and_retries_are_counted_if_they_are_numbers() {
        const RETRIES: &str = "x-stainless-retry-count";
        for (headers, expected) in [
            (&[][..], None),
            (&[("x-attempt", "1")], Some(1)),
            (&[("x-attempt", "4294967295")], Some(u32::MAX)),
            (&[("x-attempt", "0")], None),
            (&[("x-attempt", "4294967296")], None),
            (&[("x-attempt", "-1")], None),
            (&[("x-attempt", "")], None),
            (&[(RETRIES, "0")], Some(1)),
            (&[(RETRIES, "4294967295")], Some(u32::MAX)),
            (&[(RETRIES, "two")], None),
            (&[(RETRIES, "0"), ("x-attempt", "3")], Some(3)),
            (&[(RETRIES, "1"), ("x-attempt", "0")], Some(2)),
        ] {
            let map = headers.iter().map(|&(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            assert_eq!(attempt(&map.collect()), expected, "{headers:?}");
        }
    }
}
