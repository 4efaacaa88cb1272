//! The guard over TLS, against a server that breaks off while hands are shaken. Tests only.

#![cfg(test)]

mod server;

use core::time::Duration;

use holdoff_reqwest::{
    Backoff, BackoffConfig, Classify, Error, Failure, Guarded, Policy, PolicyConfig,
    RequestOptions, Sent, Stop, TimedOut, Upstream, valid,
};
use reqwest::{Certificate, Client, ClientBuilder, Method, Response};

use self::server::{Act, BODY, Server};

/// Three attempts, next to no time between them.
const POLICY: Policy = valid!(PolicyConfig::new(BACKOFF).with_max_attempts(3).build());

const BACKOFF: Backoff = valid!(BackoffConfig::constant(Duration::from_millis(1)).build());

/// A client that trusts the certificate of `trusted` alone.
fn trusting(trusted: &Server) -> ClientBuilder {
    let certificate = Certificate::from_der(&trusted.certificate).unwrap();
    Client::builder().no_proxy().tls_certs_only([certificate])
}

/// Asks `server`, which `client` knows as `host`.
async fn ask_as(
    host: &str,
    method: Method,
    server: &Server,
    client: ClientBuilder,
) -> Result<Response, Error> {
    let client = client.resolve(host, server.address).build().unwrap();
    let guarded = Guarded::new(client, Upstream::new(POLICY));
    let url = format!("https://{host}:{}/", server.address.port());
    let request = guarded.client().request(method, url).body(BODY).build().unwrap();
    guarded.execute_with(request, &RequestOptions::new().with_whole_body(1_000)).await
}

async fn ask(method: Method, server: &Server) -> Result<Response, Error> {
    ask_as("localhost", method, server, trusting(server)).await
}

#[tokio::test]
async fn a_good_request_is_sent_once() {
    let server = Server::acts(&[Act::Answer]).await;
    let response = ask(Method::POST, &server).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "fine");
    assert_eq!((server.connections(), server.requests()), (1, 1));
}

#[tokio::test]
async fn what_is_not_trusted_is_permanent_and_nothing_is_sent() {
    let (server, other) = (Server::acts(&[Act::Answer]).await, Server::acts(&[Act::Answer]).await);
    let plain = Server::acts(&[Act::NoTls]).await;
    for (case, server, trusted, host) in [
        ("another certificate", &server, &other, "localhost"),
        ("another name", &server, &server, "elsewhere.example"),
        ("no TLS at all", &plain, &plain, "localhost"),
    ] {
        let before = server.connections();
        let error = ask_as(host, Method::GET, server, trusting(trusted)).await.unwrap_err();
        assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 1), "{case}");
        assert!(error.reqwest().unwrap().is_connect(), "{case}");
        assert_eq!(error.classify(), Failure::permanent().with_sent(Sent::No), "{case}");
        assert_eq!((server.connections() - before, server.requests()), (1, 0), "{case}");
    }
}

#[tokio::test]
async fn what_breaks_off_in_the_handshake_was_never_sent() {
    for (act, acts) in [
        (&[Act::Close] as &[_], &[Act::Close, Act::Answer] as &[_]),
        (&[Act::Reset], &[Act::Reset, Act::Answer]),
    ] {
        for method in [Method::GET, Method::POST] {
            let server = Server::acts(acts).await;
            let response = ask(method, &server).await.unwrap();
            assert_eq!(response.text().await.unwrap(), "fine", "{act:?}");
            assert_eq!((server.connections(), server.requests()), (2, 1), "{act:?}");
        }
        let server = Server::acts(act).await;
        let error = ask(Method::POST, &server).await.unwrap_err();
        assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3), "{act:?}");
        assert_eq!(error.classify(), Failure::transient().with_sent(Sent::No), "{act:?}");
        assert_eq!((server.connections(), server.requests()), (3, 0), "{act:?}");
    }
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_was_never_sent() {
    let server = Server::acts(&[Act::Hang]).await;
    let client = trusting(&server).connect_timeout(Duration::from_millis(20));
    let error = ask_as("localhost", Method::POST, &server, client).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    assert_eq!(error.timed_out(), Some(TimedOut::Client));
    assert_eq!(error.classify(), Failure::transient().with_sent(Sent::No));
}

/// Without TLS, the end of the connection would be the end of the answer.
#[tokio::test]
async fn an_answer_that_ends_without_a_word_of_tls_is_cut() {
    let server = Server::acts(&[Act::Cut, Act::Answer]).await;
    let response = ask(Method::GET, &server).await.unwrap();
    assert_eq!((&*response.text().await.unwrap(), server.requests()), ("fine", 2));

    let server = Server::acts(&[Act::Cut]).await;
    let error = ask(Method::POST, &server).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::NotIdempotent, 1));
    assert_eq!((error.classify(), server.requests()), (Failure::transient(), 1));
}
