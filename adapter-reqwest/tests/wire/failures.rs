//! Which failures are tried again, and what comes back.

use core::error::Error as _;

use holdoff_reqwest::{
    BreakerConfig, Classify, Failure, FinalFailure, Guard, Guarded, Policy, Sent, Stop,
    UnhintedThrottle, Upstream, valid,
};
use tokio::net::TcpListener;

use crate::server::{Reply, Server, answer, truncated};
use crate::{POLICY, QUICK, client, gave_up, get, guarded, post, quick, secs};

const RETRIED: [u16; 10] = [408, 429, 500, 502, 503, 504, 520, 522, 524, 529];

/// C51: one table; 409 is for LLM providers.
#[tokio::test]
async fn every_status_is_tried_as_often_as_the_table_says() {
    let server = Server::start(|request| {
        answer(request.path[1..].parse().expect("a status"), &[], "the body")
    })
    .await;
    let (http, llm) = (quick(), guarded(Guard::llm(Upstream::new(POLICY))));
    let others =
        [400, 401, 402, 403, 404, 405, 409, 410, 413, 418, 422, 425, 431, 451, 501, 505, 599];
    for status in RETRIED.into_iter().chain(others) {
        for (guarded, also) in [(&http, None), (&llm, Some(409))] {
            let request = guarded.client().get(server.url(&format!("/{status}")));
            let before = server.received().len();
            let response = guarded.execute(request.build().unwrap()).await.unwrap();
            let is_retried = RETRIED.contains(&status) || also == Some(status);
            let expected = if is_retried { (Stop::Attempts, 3) } else { (Stop::Permanent, 1) };
            assert_eq!(gave_up(&response), expected, "{status}");
            assert_eq!(server.received().len() - before, expected.1 as usize, "{status}");
            // As without a guard.
            assert_eq!((response.status().as_u16(), response.content_length()), (status, Some(8)));
            assert!(response.url().path().ends_with(&status.to_string()));
            assert!(response.remote_addr().is_some());
            assert_eq!(response.text().await.unwrap(), "the body");
        }
    }
}

#[tokio::test]
async fn a_failure_comes_as_an_error_if_that_is_asked_for() {
    let server = Server::replies(vec![answer(503, &[("retry-after", "7")], "busy")]).await;
    let guard = Guard::new(Upstream::new(POLICY)).with_final_failure(FinalFailure::AsError);
    let error = get(&guarded(guard), &server).await.unwrap_err();
    assert_eq!(error.stop(), Stop::HintTooLong { hint: secs(7) });
    assert_eq!((error.status().map(|s| s.as_u16()), error.attempts()), (Some(503), 1));
    assert_eq!(error.retry_after(), Some(secs(7)));
    assert_eq!(error.classify().hint.delay(), Some(secs(7)));
    assert!(error.to_string().contains("; the last answer was 503"), "{error}");
    assert!(error.to_string().ends_with("worth another try in 7s"), "{error}");
    assert_eq!(error.into_response().unwrap().text().await.unwrap(), "busy");
}

#[tokio::test]
async fn a_connection_that_is_refused_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let guarded = quick();
    let request = guarded.client().post(format!("http://{address}/")).body("hello");
    let error = guarded.execute(request.build().unwrap()).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    assert!(error.reqwest().unwrap().is_connect());
    assert!(error.source().unwrap().downcast_ref::<reqwest::Error>().is_some());
    assert_eq!(error.classify(), Failure::transient().with_sent(Sent::No));
}

#[tokio::test]
async fn a_connection_that_breaks_may_have_brought_the_request() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-le".to_vec();
    for reply in [
        Reply::Reset(Vec::new()),
        Reply::Close(Vec::new()),
        Reply::Reset(half.clone()),
        Reply::Close(half),
    ] {
        let server = Server::replies(vec![reply.clone()]).await;
        let error = get(&quick(), &server).await.unwrap_err();
        assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3), "{reply:?}");
        assert_eq!(server.received().len(), 3, "{reply:?}");

        let server = Server::replies(vec![reply.clone()]).await;
        let error = post(&quick(), &server).await.unwrap_err();
        assert_eq!((error.stop(), error.attempts()), (Stop::NotIdempotent, 1), "{reply:?}");
        assert_eq!(server.received().len(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn what_cannot_get_better_is_tried_once() {
    let redirect = |request: &crate::server::Received| {
        answer(302, &[("location", &request.path)], "round and round")
    };
    let looping = Server::start(redirect).await;
    let error = get(&quick(), &looping).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 1));
    assert!(error.reqwest().unwrap().is_redirect());

    let no_http = Server::replies(vec![Reply::Close(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec())]).await;
    let error = get(&quick(), &no_http).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 1));

    let guarded = quick();
    let error = guarded.send(|client| client.get("not a url")).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 0));
    assert!(error.reqwest().unwrap().is_builder());
}

#[tokio::test]
async fn success_after_failures_is_a_success() {
    for failure in [
        answer(500, &[], ""),
        answer(503, &[("retry-after", "0")], &"x".repeat(100_000)),
        Reply::Reset(Vec::new()),
        Reply::Close(truncated(500)),
    ] {
        let server = Server::replies(vec![failure, answer(200, &[], "fine")]).await;
        let response = get(&quick(), &server).await.unwrap();
        assert!(response.extensions().get::<holdoff_reqwest::GaveUp<()>>().is_none());
        assert_eq!(response.text().await.unwrap(), "fine");
        assert_eq!(server.received().len(), 2);
    }
}

#[tokio::test]
async fn an_open_circuit_is_an_error_that_says_when_to_come_back() {
    let server = Server::replies(vec![answer(500, &[], "")]).await;
    let breaker = valid!(BreakerConfig::consecutive(2).build());
    let guarded = Guarded::new(client(), Upstream::new(POLICY).with_breaker(breaker));
    // It opens in the middle of this call, whose last answer comes back.
    let response = get(&guarded, &server).await.unwrap();
    assert!(matches!(gave_up(&response), (Stop::CircuitOpen { .. }, 2)));
    let error = get(&guarded, &server).await.unwrap_err();
    assert!(matches!(error.stop(), Stop::CircuitOpen { .. }));
    assert_eq!((error.attempts(), error.status()), (0, None));
    assert!(error.retry_after().unwrap() > secs(1));
    assert_eq!(server.received().len(), 2);
}

/// C50: codes decide, and prose does not.
#[tokio::test]
async fn a_used_up_quota_is_not_waited_for() {
    let quota = r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#;
    let exhausted = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED",
        "message":"quota exceeded: requests per minute"}}"#;
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    for (status, headers, body, expected) in [
        (429, &[][..], quota, (Stop::Quota, 1)),
        (429, &[("retry-after", "0.01")], quota, (Stop::Quota, 1)),
        (429, &[("retry-after", "0.01")], exhausted, (Stop::Attempts, 3)),
        (429, &[("retry-after", "5")], exhausted, (Stop::HintTooLong { hint: secs(5) }, 1)),
        (429, &[], "", (Stop::Attempts, 3)),
        (400, &[], quota, (Stop::Permanent, 1)),
        (529, &[], overloaded, (Stop::Attempts, 3)),
        // The server's own word goes before all.
        (429, &[("x-should-retry", "true")], quota, (Stop::Attempts, 3)),
        (503, &[("x-should-retry", "false")], "", (Stop::Permanent, 1)),
        (400, &[("x-should-retry", "TRUE")], "", (Stop::Attempts, 3)),
    ] {
        let server = Server::replies(vec![answer(status, headers, body)]).await;
        let response = get(&quick(), &server).await.unwrap();
        assert_eq!(gave_up(&response), expected, "{status} {headers:?} {body}");
        assert_eq!(response.text().await.unwrap(), body);
    }
    // Without a hint it may be a spending limit, where that is the policy.
    let policy = QUICK.with_unhinted_throttle(UnhintedThrottle::Stop).build().unwrap();
    let server = Server::replies(vec![answer(429, &[], "")]).await;
    let response = get(&guarded(Upstream::new(policy)), &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Quota, 1));
    assert_eq!(Policy::LLM.unhinted_throttle(), &UnhintedThrottle::Stop);
}

#[tokio::test]
async fn what_a_code_means_can_be_plugged_in() {
    let body = r#"{"error":{"code":"tenant_suspended"}}"#;
    let server = Server::replies(vec![answer(503, &[], body)]).await;
    let guard = || Guard::new(Upstream::new(POLICY));
    let plugged = guard().with_error_codes(|code| {
        let is_ours = (code.status, code.code) == (503, Some("tenant_suspended"));
        is_ours.then_some(Failure::permanent())
    });
    let blind = guard().with_peek(0);
    for (guard, expected) in [
        (plugged, (Stop::Permanent, 1)),
        (guard(), (Stop::Attempts, 3)),
        (blind, (Stop::Attempts, 3)),
    ] {
        let response = get(&guarded(guard), &server).await.unwrap();
        assert_eq!(gave_up(&response), expected);
        assert_eq!(response.text().await.unwrap(), body);
    }
}
