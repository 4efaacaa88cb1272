//! The provider as its clients meet it: formats, limits, and what it tells of them.

mod served;

use core::num::NonZeroU32;
use core::time::Duration;

use holdoff_herd::serve::scenario::Scenario;
use holdoff_herd::serve::{Outcome, ServerConfig};
use serde_json::{Value, json};

use served::{HINTS, Served, client, header, prompt};

/// Nothing comes back while a test lasts.
fn slow(burst: u32) -> ServerConfig {
    ServerConfig {
        rate: "0.001".parse().expect("a rate"),
        burst: NonZeroU32::new(burst).expect("not zero"),
        ..ServerConfig::default()
    }
}

#[tokio::test]
async fn messages_are_anthropics() {
    let server = Served::start(slow(20)).await;
    let response = server.post("/v1/messages", "k", &prompt(false)).await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "content-type"), Some("application/json"));
    assert!(header(&response, "request-id").is_some_and(|id| id.starts_with("req_")));
    let message: Value = response.json().await.expect("JSON");
    assert_eq!(message["type"], "message");
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["model"], "a-model");
    assert_eq!(message["content"][0]["type"], "text");
    assert_eq!(message["stop_reason"], "end_turn");

    let response = server.post("/v1/messages", "k", &prompt(true)).await.expect("an answer");
    assert_eq!(header(&response, "content-type"), Some("text/event-stream; charset=utf-8"));
    let text = response.text().await.expect("a stream");
    let mut names = Vec::new();
    for event in text.split_terminator("\n\n") {
        let (name, data) = event.split_once("\ndata: ").expect("two lines");
        let name = name.strip_prefix("event: ").expect("a name");
        let data: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["type"], name);
        names.push(name);
    }
    names.dedup();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
}

#[tokio::test]
async fn completions_are_openais() {
    let server = Served::start(slow(20)).await;
    const PATH: &str = "/v1/chat/completions";
    let response = server.post(PATH, "k", &prompt(false)).await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert!(header(&response, "x-request-id").is_some());
    let completion: Value = response.json().await.expect("JSON");
    assert_eq!(completion["object"], "chat.completion");
    let choice = &completion["choices"][0];
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(choice["finish_reason"], "stop");

    let response = server.post(PATH, "k", &prompt(true)).await.expect("an answer");
    let text = response.text().await.expect("a stream");
    let events: Vec<_> = text.split_terminator("\n\n").collect();
    let (done, chunks) = events.split_last().expect("events");
    assert_eq!(*done, "data: [DONE]");
    let mut said = String::new();
    for chunk in chunks {
        let data = chunk.strip_prefix("data: ").expect("data");
        let chunk: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        said += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
    }
    assert_eq!(choice["message"]["content"], said);
}

#[tokio::test]
async fn an_empty_bucket_is_told_in_the_providers_own_words() {
    let server = Served::start(slow(1)).await;
    const ANTHROPIC: [&str; 3] = [
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ];
    const OPENAI: [&str; 3] = [
        "x-ratelimit-limit-requests",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ];
    for (path, own, others) in [
        ("/v1/messages", &ANTHROPIC[..], &OPENAI[..]),
        ("/v1/chat/completions", &OPENAI[..], &ANTHROPIC[..]),
        ("/anything/200", &[ANTHROPIC, OPENAI].concat()[..], &[][..]),
    ] {
        for (status, remaining) in [(200, "0"), (429, "0")] {
            let response = server.post(path, path, &prompt(false)).await.expect("an answer");
            assert_eq!(response.status(), status, "{path}");
            for names in own.chunks(3) {
                assert_eq!(header(&response, names[0]), Some("1"), "{path}");
                assert_eq!(header(&response, names[1]), Some(remaining), "{path}");
            }
            // 1000 s less what the test has taken so far.
            if let Some(reset) = header(&response, "x-ratelimit-reset-requests") {
                assert!(reset.starts_with("16m") && reset.ends_with('s'), "{path}: {reset}");
            }
            if let Some(reset) = header(&response, "anthropic-ratelimit-requests-reset") {
                let reset: jiff::Timestamp = reset.parse().expect("RFC 3339");
                let left = reset.duration_since(jiff::Timestamp::now()).as_secs();
                assert!((900..=1_001).contains(&left), "{path}: {left}");
            }
            assert!(others.iter().all(|name| header(&response, name).is_none()), "{path}");
            let policy = header(&response, "ratelimit-policy");
            assert_eq!(policy, Some("\"requests\";q=1;w=1000"), "{path}");
            let level = header(&response, "ratelimit").expect("a level");
            assert!(level.starts_with("\"requests\";r=0;t="), "{path}: {level}");
            if status == 200 {
                assert!(HINTS.iter().all(|name| header(&response, name).is_none()), "{path}");
                continue;
            }
            let wait: u32 = header(&response, "retry-after").expect("a hint").parse().expect("s");
            assert!((900..=1_000).contains(&wait), "{path}: {wait}");
            let body: Value = response.json().await.expect("JSON");
            match path {
                "/v1/messages" => {
                    assert_eq!(body["type"], "error");
                    assert_eq!(body["error"]["type"], "rate_limit_error");
                    assert!(body["request_id"].is_string());
                }
                "/v1/chat/completions" => {
                    assert_eq!(body["error"]["type"], "requests");
                    assert_eq!(body["error"]["code"], "rate_limit_exceeded");
                    assert_eq!(body["error"]["param"], Value::Null);
                }
                _ => assert_eq!(body["status"], 429),
            }
        }
    }
}

#[tokio::test]
async fn each_key_has_a_bucket_whichever_header_it_comes_in() {
    let server = Served::start(slow(2)).await;
    let client = client();
    let url = server.url("/anything/201");
    let mut statuses = Vec::new();
    for name_and_value in [
        Some(("x-api-key", "a")),
        Some(("authorization", "Bearer a")),
        Some(("authorization", "bearer a")),
        Some(("x-api-key", "b")),
        None,
        Some(("authorization", "Basic a")),
        Some(("x-api-key", "")),
    ] {
        let mut request = client.get(&url);
        if let Some((name, value)) = name_and_value {
            request = request.header(name, value);
        }
        statuses.push(request.send().await.expect("an answer").status().as_u16());
    }
    // Without a key, whatever else it says, it shares the bucket of all without.
    assert_eq!(statuses, [201, 201, 429, 201, 201, 201, 429]);
    let stats = server.handle.stats();
    let requests = stats.keys.iter().map(|(key, counts)| (key.as_str(), counts.requests));
    assert_eq!(requests.collect::<Vec<_>>(), [("a", 3), ("anonymous", 3), ("b", 1)]);
}

#[tokio::test]
async fn anything_answers_the_status_and_what_it_was_sent() {
    let server = Served::start(slow(20)).await;
    let client = client();
    for (method, status) in
        [("PUT", 200), ("DELETE", 204), ("GET", 302), ("PATCH", 418), ("GET", 503)]
    {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request = client.request(method.clone(), server.url(&format!("/anything/{status}")));
        let response = request.body("sent").send().await.expect("an answer");
        assert_eq!(response.status(), status);
        if status == 302 {
            assert_eq!(header(&response, "location"), Some("/anything/200"));
        }
        if status == 204 {
            assert_eq!(response.text().await.expect("none"), "");
            continue;
        }
        let body: Value = response.json().await.expect("JSON");
        assert_eq!(body["body"], "sent");
        assert_eq!(body["method"], method.as_str());
    }
}

#[tokio::test]
async fn what_is_not_asked_properly_is_told_so() {
    let server = Served::start(slow(20)).await;
    for (method, path, status) in [
        ("GET", "/v1/messages", 405),
        ("POST", "/stats", 405),
        ("POST", "/arrivals.csv", 405),
        ("GET", "/", 404),
        ("GET", "/v1/models", 404),
        ("GET", "/anything/99", 404),
        ("GET", "/anything/600", 404),
        ("GET", "/anything/+200", 404),
        ("GET", "/anything/", 404),
        ("POST", "/v1/messages", 400),
        ("POST", "/v1/chat/completions", 400),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request = client().request(method, server.url(path)).body("no JSON");
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), status, "{path}");
        let body: Value = response.json().await.expect("JSON");
        if path == "/v1/messages" && status == 400 {
            assert_eq!(body["error"]["type"], "invalid_request_error");
        }
    }
    // Only what has a limit is counted.
    assert_eq!(server.handle.stats().total.requests, 2);
}

#[tokio::test]
async fn stats_and_arrivals_tell_what_came() {
    let server = Served::start(slow(2)).await;
    let client = client();
    const RETRIES: &str = "x-stainless-retry-count";
    for (name, count, body) in [(RETRIES, "0", "x"), ("x-attempt", "2", "x"), (RETRIES, "2", "y")] {
        let request = client.post(server.url("/anything/200"));
        let request = request.header("x-api-key", "k").header("idempotency-key", "i");
        let request = request.header(name, count).body(body);
        request.send().await.expect("an answer");
    }
    let stats: Value = server.get("/stats").await.json().await.expect("JSON");
    let counts = json!({ "requests": 3, "ok": 2, "rejected": 1, "failed": 0, "broken": 0 });
    let mut expected = counts.clone();
    expected["duplicate_idempotency_keys"] = 2.into();
    expected["conflicting_idempotency_keys"] = 1.into();
    expected["repeated_ok"] = 1.into();
    expected["keys"] = json!({ "k": counts });
    assert_eq!(stats, expected);

    let response = server.get("/arrivals.csv").await;
    assert_eq!(header(&response, "content-type"), Some("text/csv; charset=utf-8"));
    let csv = response.text().await.expect("text");
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "{csv}");
    assert_eq!(lines[1], "0.000000000,k,POST,/anything/200,1,200,ok,i");
    assert!(lines[3].ends_with(",k,POST,/anything/200,3,429,rejected,i"), "{csv}");

    let arrivals = server.handle.arrivals();
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
    assert_eq!(arrivals[2].outcome, Outcome::Rejected);
    let attempts: Vec<_> = arrivals.iter().filter_map(|arrival| arrival.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
}

#[tokio::test]
async fn an_answer_in_flight_is_finished_and_then_nobody_listens() {
    let config = ServerConfig { latency: Duration::from_millis(400), ..slow(20) };
    let server = Served::start(config).await;
    let url = server.url("/anything/200");
    // One connection that never asks for anything, and one whose request has come in.
    let _idle = tokio::net::TcpStream::connect(server.handle.addr()).await.expect("a connection");
    let request = tokio::spawn(client().get(&url).send());
    while server.handle.stats().total.requests == 0 {
        tokio::task::yield_now().await;
    }
    server.handle.shutdown().await;
    assert_eq!(request.await.expect("no panic").expect("an answer").status(), 200);
    assert!(client().get(&url).send().await.expect_err("nobody").is_connect());
}

#[tokio::test]
async fn an_answer_that_takes_longer_than_the_drain_is_cut_off() {
    let scenario = Scenario::from_toml("[[step]]\nthen = { kind = 'slow', delay = '1h' }");
    let scenario = scenario.expect("a scenario");
    let config = ServerConfig { scenario, drain: Duration::from_millis(10), ..slow(20) };
    let server = Served::start(config).await;
    let request = tokio::spawn(client().get(server.url("/anything/200")).send());
    while server.handle.stats().total.requests == 0 {
        tokio::task::yield_now().await;
    }
    server.handle.shutdown().await;
    assert!(request.await.expect("no panic").is_err());
}
