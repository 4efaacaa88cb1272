//! Bodies: sent again byte for byte, or once; read within the attempt, or left to the caller.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream;
use holdoff_reqwest::{RequestOptions, Safety, Stop};
use reqwest::{Body, Request};

use crate::server::{Reply, Server, answer, message, truncated};
use crate::{gave_up, get, millis, quick, secs};

fn put(server: &Server, body: impl Into<Body>) -> Request {
    crate::client().put(server.url("/")).body(body).build().unwrap()
}

fn streamed() -> Body {
    Body::wrap_stream(stream::iter([Ok::<_, std::io::Error>("he"), Ok("llo")]))
}

/// C57.
#[tokio::test]
async fn the_second_request_has_the_same_bytes() {
    let server = Server::replies(vec![
        answer(500, &[], ""),
        Reply::Close(Vec::new()),
        answer(200, &[], "fine"),
    ])
    .await;
    let bytes: Vec<u8> = (0..=255).collect();
    let response = quick().execute(put(&server, bytes.clone())).await.unwrap();
    assert_eq!(response.status(), 200);
    let received = server.received();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|request| request.body == bytes && request.method == "PUT"));
}

#[tokio::test]
async fn a_stream_is_sent_once_and_its_failure_comes_back() {
    let server = Server::replies(vec![answer(200, &[], "fine")]).await;
    let response = quick().execute(put(&server, streamed())).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "fine");
    assert_eq!(server.received()[0].body, b"hello");

    for (status, stop) in [(500, Stop::Committed), (503, Stop::Committed), (400, Stop::Permanent)] {
        let server = Server::replies(vec![answer(status, &[], "why")]).await;
        let response = quick().execute(put(&server, streamed())).await.unwrap();
        assert_eq!(gave_up(&response), (stop, 1));
        assert_eq!((response.status().as_u16(), server.received().len()), (status, 1));
        assert_eq!(response.text().await.unwrap(), "why");
    }

    let server = Server::replies(vec![Reply::Close(Vec::new())]).await;
    let options = RequestOptions::new().with_safety(Safety::Idempotent);
    let error = quick().execute_with(put(&server, streamed()), &options).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Committed, 1));
}

#[tokio::test]
async fn a_stream_that_is_made_anew_is_sent_again() {
    let server = Server::replies(vec![answer(500, &[], ""), answer(200, &[], "")]).await;
    let url = server.url("/");
    let made = AtomicUsize::new(0);
    let response = quick()
        .send(|client| {
            made.fetch_add(1, Ordering::Relaxed);
            client.put(&url).body(streamed())
        })
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), made.into_inner()), (200, 2));
    assert!(server.received().iter().all(|request| request.body == b"hello"));
}

#[tokio::test]
async fn a_stream_that_fails_by_itself_is_the_callers_trouble() {
    let server = Server::replies(vec![answer(200, &[], "")]).await;
    let url = server.url("/");
    let error = quick()
        .send(|client| {
            let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            client.put(&url).body(Body::wrap_stream(stream::iter([Ok("he"), Err(broken)])))
        })
        .await
        .unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 1));
}

#[tokio::test]
async fn short_failures_leave_their_connection_to_the_next_attempt() {
    let server = Server::replies(vec![
        answer(500, &[], "short"),
        answer(500, &[], &"x".repeat(1_000_000)),
        answer(200, &[], ""),
    ])
    .await;
    get(&quick(), &server).await.unwrap();
    let connections: Vec<_> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
}

#[tokio::test]
async fn the_body_of_the_last_failure_is_whole_however_long_and_slow() {
    let long = "x".repeat(1_000_000);
    let server = Server::replies(vec![answer(500, &[], &long)]).await;
    let response = get(&quick(), &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    assert_eq!(response.content_length(), Some(1_000_000));
    assert_eq!(response.text().await.unwrap(), long);

    // Chunks, so that nobody knows how long it is.
    let chunk = format!("{:x}\r\n{}\r\n", 10_000, "y".repeat(10_000)).repeat(5);
    let chunked = format!("HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n");
    let server = Server::replies(vec![Reply::Bytes(chunked.into_bytes())]).await;
    let response = get(&quick(), &server).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "y".repeat(50_000));

    // What breaks off does so for the caller, too.
    let server = Server::replies(vec![Reply::Close(truncated(500))]).await;
    let mut response = get(&quick(), &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    assert_eq!(response.chunk().await.unwrap().unwrap(), "only this");
    assert!(response.chunk().await.is_err());
    assert!(response.chunk().await.unwrap().is_none());
}

#[tokio::test]
async fn nobody_waits_for_a_body_that_does_not_come() {
    let head = truncated(503);
    let server = Server::replies(vec![Reply::Hang(head), answer(200, &[], "")]).await;
    let started = Instant::now();
    assert_eq!(get(&quick(), &server).await.unwrap().status(), 200);
    assert!(started.elapsed() < secs(10));
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_whole_body_is_read_inside_of_the_attempt() {
    let options = RequestOptions::new().with_whole_body(1_000);
    let broken = Reply::Close(truncated(200));
    let server = Server::replies(vec![broken.clone(), answer(200, &[], "all of it")]).await;
    let guarded = quick();
    let request = || guarded.client().get(server.url("/")).build().unwrap();
    let response = guarded.execute_with(request(), &options).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "all of it");
    assert_eq!(server.received().len(), 2);

    // Without it, the caller finds out.
    let server = Server::replies(vec![broken.clone()]).await;
    let response = get(&guarded, &server).await.unwrap();
    assert!(response.bytes().await.is_err());

    // What may have been processed is not sent again.
    let request = guarded.client().post(server.url("/")).body("x").build().unwrap();
    let error = guarded.execute_with(request, &options).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::NotIdempotent, 1));
    assert!(error.reqwest().unwrap().is_decode() || error.reqwest().unwrap().is_body());

    // What is longer comes back with its rest.
    let long = "z".repeat(300_000);
    let server = Server::replies(vec![answer(200, &[("x-kept", "yes")], &long)]).await;
    let request = guarded.client().get(server.url("/path")).build().unwrap();
    let response = guarded.execute_with(request, &options).await.unwrap();
    assert_eq!(
        (response.url().path(), &response.headers()["x-kept"]),
        ("/path", &"yes".parse().unwrap())
    );
    assert_eq!(response.text().await.unwrap(), long);
}

#[tokio::test]
async fn dropping_the_future_ends_it_at_once() {
    let server = Server::replies(vec![Reply::Later(
        millis(50),
        Box::new(Reply::Bytes(message(503, &[], ""))),
    )])
    .await;
    let server = Arc::new(server);
    let call = tokio::spawn({
        let server = Arc::clone(&server);
        async move { get(&quick(), &server).await.map(|_| ()) }
    });
    while server.received().is_empty() {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    tokio::time::sleep(millis(150)).await;
    assert_eq!(server.received().len(), 1);
}
