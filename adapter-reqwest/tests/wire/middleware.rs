//! The guard as a middleware: the same, with the same.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use holdoff_reqwest::{Error, FinalFailure, Guard, RequestOptions, Stop, TimedOut, Upstream};
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next, Result};

use crate::server::{Reply, Server, answer, truncated};
use crate::{POLICY, client, gave_up, millis};

fn guarded() -> ClientWithMiddleware {
    ClientBuilder::new(client()).with(Guard::new(Upstream::new(POLICY))).build()
}

#[tokio::test]
async fn requests_are_tried_again() {
    let server = Server::replies(vec![answer(500, &[], ""), answer(200, &[], "fine")]).await;
    let response = guarded().put(server.url("/")).body("hello").send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "fine");
    assert!(server.received().iter().all(|request| request.body == b"hello"));

    let server = Server::replies(vec![answer(503, &[], "busy")]).await;
    let response = guarded().get(server.url("/")).send().await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    assert_eq!(response.text().await.unwrap(), "busy");
}

#[tokio::test]
async fn options_come_with_the_request() {
    let server = Server::replies(vec![Reply::Close(truncated(200))]).await;
    let options = RequestOptions::new().with_whole_body(1_000);
    let request = guarded().get(server.url("/")).with_extension(options);
    let error = request.send().await.unwrap_err();
    let error = Error::of(&error).unwrap();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    assert!(error.reqwest().is_some());

    let server = Server::replies(vec![Reply::Hang(Vec::new())]).await;
    let options = RequestOptions::new().with_deadline(millis(50));
    let error = guarded().get(server.url("/")).with_extension(options).send().await.unwrap_err();
    assert_eq!(Error::of(&error).unwrap().timed_out(), Some(TimedOut::Deadline));

    let server = Server::replies(vec![answer(404, &[], "")]).await;
    let options = RequestOptions::new().with_final_failure(FinalFailure::AsError);
    let error = guarded().get(server.url("/")).with_extension(options).send().await.unwrap_err();
    assert_eq!(Error::of(&error).unwrap().status().unwrap(), 404);
}

#[derive(Clone, Debug, PartialEq)]
struct Seen(u32);

struct Counting(Arc<AtomicU32>);

#[async_trait::async_trait]
impl Middleware for Counting {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let seen = extensions.get::<Seen>().map_or(0, |seen| seen.0) + 1;
        extensions.insert(Seen(seen));
        self.0.fetch_add(1, Ordering::Relaxed);
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn middlewares_behind_it_see_every_attempt_and_those_before_it_the_call() {
    let server = Server::replies(vec![answer(500, &[], "")]).await;
    let (before, behind) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let client = ClientBuilder::new(client())
        .with(Counting(Arc::clone(&before)))
        .with(Guard::new(Upstream::new(POLICY)))
        .with(Counting(Arc::clone(&behind)))
        .build();
    let request = client.get(server.url("/")).build().unwrap();
    let mut extensions = Extensions::new();
    client.execute_with_extensions(request, &mut extensions).await.unwrap();
    assert_eq!((before.load(Ordering::Relaxed), behind.load(Ordering::Relaxed)), (1, 3));
    assert_eq!(extensions.get(), Some(&Seen(4)));
}

/// C60: two guards in one chain, as happens when a library brings its own.
#[tokio::test]
async fn of_two_guards_one_tries_again() {
    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let client = ClientBuilder::new(client())
        .with(Guard::new(Upstream::new(POLICY)))
        .with(Guard::new(Upstream::new(POLICY)))
        .build();
    let response = client.get(server.url("/")).send().await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    assert_eq!(server.received().len(), 3);

    let server = Server::replies(vec![Reply::Close(Vec::new())]).await;
    let error = client.get(server.url("/")).send().await.unwrap_err();
    let error = Error::of(&error).unwrap();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    assert!(error.reqwest().is_some(), "behind the inner guard's");
    assert_eq!(server.received().len(), 3);
}

struct Refusing;

#[async_trait::async_trait]
impl Middleware for Refusing {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Result<Response> {
        Err(reqwest_middleware::Error::middleware(std::io::Error::other("no token")))
    }
}

#[tokio::test]
async fn an_error_of_another_middleware_is_permanent_and_comes_back_as_it_is() {
    let client =
        ClientBuilder::new(client()).with(Guard::new(Upstream::new(POLICY))).with(Refusing).build();
    let error = client.get("http://127.0.0.1:1/").send().await.unwrap_err();
    let error = Error::of(&error).unwrap();
    assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 1));
    let source = core::error::Error::source(error).unwrap();
    assert_eq!(source.downcast_ref::<std::io::Error>().unwrap().to_string(), "no token");
}
