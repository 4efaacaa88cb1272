//! Everything a scenario can do, seen on the wire.

mod served;

use core::error::Error as _;
use core::time::Duration;
use std::io;

use holdoff_herd::serve::Outcome;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use served::{HINTS, Served, client, header, prompt};

const MESSAGES: &str = "/v1/messages";
const COMPLETIONS: &str = "/v1/chat/completions";

/// What a broken connection says at the root of all.
fn root(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut source = error.source();
    let mut kind = None;
    while let Some(error) = source {
        kind = error.downcast_ref::<io::Error>().map(io::Error::kind).or(kind);
        source = error.source();
    }
    kind
}

/// All that comes of a body, and the error that ends it.
async fn read(mut response: reqwest::Response) -> (String, Option<reqwest::Error>) {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return (String::from_utf8(bytes).expect("UTF-8"), None),
            Err(error) => return (String::from_utf8(bytes).expect("UTF-8"), Some(error)),
        }
    }
}

#[tokio::test]
async fn a_status_comes_with_its_error_in_the_providers_words() {
    for (status, anthropic, openai) in [
        (500, "api_error", "server_error"),
        (503, "api_error", "server_error"),
        (504, "timeout_error", "server_error"),
        (529, "overloaded_error", "server_error"),
        (404, "not_found_error", "invalid_request_error"),
    ] {
        let step = format!("[[step]]\nthen = {{ kind = 'status', status = {status} }}");
        let server = Served::playing(&step).await;
        for (path, pointer, expected) in
            [(MESSAGES, "/error/type", anthropic), (COMPLETIONS, "/error/type", openai)]
        {
            let response = server.post(path, "k", &prompt(false)).await.expect("an answer");
            assert_eq!(response.status(), status);
            assert!(HINTS.iter().all(|name| header(&response, name).is_none()), "{status}");
            let body: Value = response.json().await.expect("JSON");
            assert_eq!(body.pointer(pointer).expect("a type"), expected, "{status} {path}");
        }
        let stats = server.handle.stats();
        assert_eq!((stats.total.failed, stats.total.requests), (2, 2));
    }
}

#[tokio::test]
async fn a_share_of_requests_fails_and_the_same_ones_with_the_same_seed() {
    const STEPS: &str = "seed = 7\n[[step]]\nwhen = { probability = 0.5, last = 19 }\n\
                         then = { kind = 'status', status = 503 }";
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = Served::playing(STEPS).await;
        for _ in 0..20 {
            server.get("/anything/200").await;
        }
        let arrivals = server.handle.arrivals();
        runs.push(arrivals.iter().map(|arrival| arrival.status).collect::<Vec<_>>());
    }
    assert_eq!(runs[0], runs[1]);
    let failed = runs[0].iter().filter(|status| **status == Some(503)).count();
    assert!((1..19).contains(&failed), "{failed} of 19");
}

#[tokio::test]
async fn a_brownout_lasts_from_its_beginning_to_its_end() {
    let server = Served::playing(
        "[[step]]\nwhen = { from = '100ms', until = '250ms' }\n\
         then = { kind = 'status', status = 503 }\n\
         [[step]]\nwhen = { from = '100ms', until = '250ms' }\n\
         then = { kind = 'slow', delay = '5ms' }",
    )
    .await;
    let is_over = |at: Duration| at >= Duration::from_millis(250);
    while !server.handle.arrivals().last().is_some_and(|arrival| is_over(arrival.at)) {
        // Without a token it is told the same.
        server.get("/anything/429").await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // However slow the machine: what came within it failed, what came without did not.
    for arrival in server.handle.arrivals() {
        let millis = arrival.at.as_micros();
        let expected = if (100_000..250_000).contains(&millis) { 503 } else { 429 };
        assert_eq!(arrival.status, Some(expected), "{arrival:?}");
    }
}

#[tokio::test]
async fn a_spent_quota_is_429_without_a_hint() {
    let server = Served::playing("[[step]]\nthen = { kind = 'quota' }").await;
    for path in [MESSAGES, COMPLETIONS] {
        let response = server.post(path, "k", &prompt(false)).await.expect("an answer");
        assert_eq!(response.status(), 429);
        assert!(HINTS.iter().all(|name| header(&response, name).is_none()), "{path}");
        let body: Value = response.json().await.expect("JSON");
        if path == MESSAGES {
            assert_eq!(body["error"]["type"], "rate_limit_error");
        } else {
            assert_eq!(body["error"]["type"], "insufficient_quota");
            assert_eq!(body["error"]["code"], "insufficient_quota");
        }
    }
    assert_eq!(server.handle.stats().total.rejected, 2);
}

#[tokio::test]
async fn a_hint_comes_in_the_form_that_is_asked_for() {
    for (form, name, other) in [
        ("seconds", Some("retry-after"), "retry-after-ms"),
        ("milliseconds", Some("retry-after-ms"), "retry-after"),
        ("http-date", Some("retry-after"), "retry-after-ms"),
        ("omitted", None, "retry-after"),
    ] {
        let server = Served::playing(&format!(
            "[[step]]\nthen = {{ kind = 'status', status = 503 }}\n[[step]]\nthen = {{ kind = \
             'hint', form = '{form}', retry_after = '90s 1ms', should_retry = false }}"
        ))
        .await;
        let response = server.get("/anything/200").await;
        assert_eq!(header(&response, "x-should-retry"), Some("false"), "{form}");
        assert_eq!(header(&response, other), None, "{form}");
        let hint = name.and_then(|name| header(&response, name));
        match form {
            "seconds" => assert_eq!(hint, Some("91")),
            "milliseconds" => assert_eq!(hint, Some("90001")),
            "http-date" => {
                let parser = rfc2822::DateTimeParser::new();
                let date = |text: Option<&str>| -> Timestamp {
                    parser.parse_timestamp(text.expect("a date")).expect("an HTTP-date")
                };
                let wait = date(hint).duration_since(date(header(&response, "date"))).as_secs();
                assert!((90..=92).contains(&wait), "{wait}");
            }
            _ => assert_eq!(hint, None),
        }
    }
}

#[tokio::test]
async fn a_bucket_tells_its_own_wait_in_another_form_too() {
    let server = Served::playing(
        "[[step]]\nthen = { kind = 'limit', rate = 0.001, burst = 1 }\n\
         [[step]]\nthen = { kind = 'hint', form = 'milliseconds', should_retry = true }",
    )
    .await;
    assert_eq!(server.get("/anything/200").await.status(), 200);
    let response = server.get("/anything/200").await;
    assert_eq!(response.status(), 429);
    assert_eq!(header(&response, "x-should-retry"), Some("true"));
    let wait: u32 = header(&response, "retry-after-ms").expect("a hint").parse().expect("ms");
    assert!((900_000..=1_000_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_reset_before_the_answer_is_a_reset_and_not_an_end() {
    let server = Served::playing("[[step]]\nwhen = { last = 1 }\nthen = { kind = 'reset' }").await;
    let error = server.try_get("/anything/200").await.expect_err("a reset");
    assert_eq!(root(&error), Some(io::ErrorKind::ConnectionReset), "{error:?}");
    assert_eq!(server.get("/anything/200").await.status(), 200);
    let arrivals = server.handle.arrivals();
    assert_eq!((arrivals[0].status, arrivals[0].outcome), (None, Outcome::Broken));
    assert_eq!(server.handle.stats().total.broken, 1);
}

#[tokio::test]
async fn a_reset_in_the_middle_comes_after_so_many_bytes() {
    for after_bytes in [0, 10, 100] {
        let server = Served::playing(&format!(
            "[[step]]\nthen = {{ kind = 'reset', after_bytes = {after_bytes} }}"
        ))
        .await;
        for (path, is_stream) in [(MESSAGES, false), (MESSAGES, true), (COMPLETIONS, true)] {
            let response = server.post(path, "k", &prompt(is_stream)).await.expect("a head");
            assert_eq!(response.status(), 200);
            let (text, error) = read(response).await;
            assert_eq!(text.len(), after_bytes, "{path}: {text}");
            let kind = root(&error.expect("a reset"));
            assert_eq!(kind, Some(io::ErrorKind::ConnectionReset), "{path}");
        }
    }
}

#[tokio::test]
async fn a_reset_that_is_promised_comes_however_short_the_answer() {
    let server = Served::playing("[[step]]\nthen = { kind = 'reset', after_bytes = 100000 }").await;
    let response = server.try_get("/anything/200").await.expect("a head");
    let length = response.content_length().expect("a length");
    let (text, error) = read(response).await;
    assert_eq!(text.len() as u64, length - 1);
    assert_eq!(root(&error.expect("a reset")), Some(io::ErrorKind::ConnectionReset));
    let response = server.post(MESSAGES, "k", &prompt(true)).await.expect("a head");
    let (text, error) = read(response).await;
    assert!(text.ends_with("{\"type\":\"message_stop\"}\n\n"), "{text}");
    assert_eq!(root(&error.expect("a reset")), Some(io::ErrorKind::ConnectionReset));

    // Without a body there is no middle.
    let error = server.try_get("/anything/204").await.expect_err("a reset");
    assert_eq!(root(&error), Some(io::ErrorKind::ConnectionReset), "{error:?}");
    let error = client().head(server.url("/anything/200")).send().await.expect_err("a reset");
    assert_eq!(root(&error), Some(io::ErrorKind::ConnectionReset), "{error:?}");
    assert_eq!(server.handle.stats().total.broken, 4);
}

#[tokio::test]
async fn a_slow_answer_is_late_and_whole() {
    const LATE: Duration = Duration::from_millis(50);
    let server = Served::playing(
        "[[step]]\nthen = { kind = 'slow', delay = '50ms', trickle = { bytes = 100, \
         every = '1ms' } }",
    )
    .await;
    for is_stream in [false, true] {
        let start = std::time::Instant::now();
        let mut response = server.post(MESSAGES, "k", &prompt(is_stream)).await.expect("a head");
        assert!(start.elapsed() >= LATE);
        let (mut pieces, mut longest) = (0, 0);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.expect("no error") {
            pieces += 1;
            longest = longest.max(chunk.len());
            bytes.extend_from_slice(&chunk);
        }
        assert!(pieces > 1, "in one piece");
        let text = String::from_utf8(bytes).expect("UTF-8");
        if is_stream {
            // Chunks are as they were sent.
            assert!(longest <= 100, "{longest} bytes");
            assert!(text.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "{text}");
        } else {
            serde_json::from_str::<Value>(&text).expect("whole JSON");
        }
    }
    assert_eq!(server.handle.stats().total.ok, 2);
}

#[tokio::test]
async fn a_limit_changes_at_its_time() {
    let server = Served::playing(
        "[[step]]\nwhen = { from = '100ms' }\nthen = { kind = 'limit', rate = 0.001, burst = 2 }",
    )
    .await;
    let limit = |response: &reqwest::Response| -> u32 {
        header(response, "x-ratelimit-limit-requests").expect("a limit").parse().expect("a number")
    };
    loop {
        let response = server.get("/anything/200").await;
        let arrivals = server.handle.arrivals();
        let last = arrivals.last().expect("one");
        let is_changed = last.at >= Duration::from_millis(100);
        assert_eq!(limit(&response), if is_changed { 2 } else { 20 }, "{last:?}");
        if is_changed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.get("/anything/200").await.status(), 200);
    assert_eq!(server.get("/anything/200").await.status(), 429);
}

#[tokio::test]
async fn a_stream_is_cut_after_so_many_events() {
    for after_events in [0, 1, 4] {
        let server = Served::playing(&format!(
            "[[step]]\nthen = {{ kind = 'cut', after_events = {after_events} }}"
        ))
        .await;
        for path in [MESSAGES, COMPLETIONS] {
            let response = server.post(path, "k", &prompt(true)).await.expect("a head");
            assert_eq!(response.status(), 200);
            let (text, error) = read(response).await;
            assert_eq!(text.matches("\n\n").count(), after_events, "{path}: {text}");
            let error = error.expect("no end of the stream");
            assert_ne!(root(&error), Some(io::ErrorKind::ConnectionReset), "{path}");
        }
        // What is no stream is none of its business.
        let whole = server.post(MESSAGES, "k", &prompt(false)).await.expect("an answer");
        whole.json::<Value>().await.expect("JSON");
        let stats = server.handle.stats();
        assert_eq!((stats.total.broken, stats.total.ok), (2, 1));
    }
}

#[tokio::test]
async fn an_overload_can_come_inside_a_stream() {
    let server =
        Served::playing("[[step]]\nthen = { kind = 'overloaded', after_events = 4 }").await;
    for (path, kind) in [(MESSAGES, "overloaded_error"), (COMPLETIONS, "server_error")] {
        let response = server.post(path, "k", &prompt(true)).await.expect("a head");
        assert_eq!(response.status(), 200);
        let (text, error) = read(response).await;
        assert!(error.is_none(), "{error:?}");
        let events: Vec<_> = text.split_terminator("\n\n").collect();
        assert_eq!(events.len(), 5, "{text}");
        let (event, data) = events[4].split_once("data: ").expect("data");
        assert_eq!(event, if path == MESSAGES { "event: error\n" } else { "" });
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["error"]["type"], kind);
    }
    assert_eq!(server.handle.stats().total.broken, 2);
}

#[tokio::test]
async fn a_crowd_that_meets_every_fault_gets_one_answer_each() {
    const CROWD: usize = 200;
    let network = include_str!("../scenarios/network.toml").replace("250ms", "1ms");
    let server = Served::playing(&network).await;
    let calls: Vec<_> = (0..CROWD)
        .map(|number| {
            let url = server.url(if number % 2 == 0 { MESSAGES } else { COMPLETIONS });
            // Each with a key and a connection of its own.
            let request = client().post(url).header("x-api-key", number.to_string());
            let request = request.json(&prompt(number % 4 < 2));
            tokio::spawn(async move { request.send().await?.bytes().await })
        })
        .collect();
    let mut broken = 0;
    for call in calls {
        broken += u64::from(call.await.expect("no panic").is_err());
    }
    let total = server.handle.stats().total;
    assert_eq!(total.requests, u64::try_from(CROWD).expect("fits"));
    assert_eq!((total.broken, total.ok), (broken, total.requests - broken));
    assert!(broken > 0, "no fault");
}
