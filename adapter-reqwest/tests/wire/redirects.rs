//! Redirects, which reqwest follows beneath.

use holdoff_reqwest::{Guard, Guarded, Stop, Upstream, redirects};
use reqwest::{Client, redirect};
use tokio::net::TcpSocket;

use crate::server::{Received, Server, answer};
use crate::{POLICY, gave_up, get, guarded, post, quick};

/// The first server has answered, so it may have done what it was asked.
#[tokio::test]
async fn a_post_that_was_redirected_may_have_been_processed() {
    for status in [429, 503, 529] {
        let server = Server::start(move |request: &Received| match &*request.path {
            "/" => answer(303, &[("location", "/done")], ""),
            _ => answer(status, &[], ""),
        })
        .await;
        let response = post(&quick(), &server).await.unwrap();
        assert_eq!(gave_up(&response), (Stop::NotIdempotent, 1), "{status}");
        assert_eq!(server.received().len(), 2);
    }
}

/// Nothing about it is special otherwise.
#[tokio::test]
async fn what_is_idempotent_or_has_a_key_is_redirected_again() {
    let server = Server::start(|request: &Received| match &*request.path {
        "/" => answer(307, &[("location", "/there#part")], ""),
        _ => answer(503, &[], ""),
    })
    .await;
    let response = get(&quick(), &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    let llm = guarded(Guard::llm(Upstream::new(POLICY)));
    let response = post(&llm, &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    let received = server.received();
    assert_eq!(received.len(), 12);
    assert_eq!((&*received[11].path, &*received[11].body), ("/there", &b"hello"[..]));
}

/// A fragment is not sent, and so is no redirect.
#[tokio::test]
async fn a_post_to_a_url_with_a_fragment_was_not_redirected() {
    let server = Server::replies(vec![answer(503, &[], "")]).await;
    let guarded = quick();
    let request = guarded.client().post(server.url("/?a=%20b c#part")).build().unwrap();
    let response = guarded.execute(request).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
}

/// How often a POST is sent that is redirected with `status` to where nobody listens.
async fn posts_redirected_to_nobody(status: u16, policy: redirect::Policy) -> (usize, Stop) {
    // Bound, so that nobody else gets it, and not listening.
    let nobody = TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let location = format!("http://{}/", nobody.local_addr().unwrap());
    let server =
        Server::start(move |_: &Received| answer(status, &[("location", &location)], "")).await;
    let client = Client::builder().no_proxy().redirect(policy).build().unwrap();
    let guarded = Guarded::new(client, Guard::new(Upstream::new(POLICY)));
    let stop = post(&guarded, &server).await.unwrap_err().stop();
    (server.received().len(), stop)
}

/// A connection that fails after a redirect is not one over which nothing was sent.
#[tokio::test]
async fn a_post_that_was_answered_elsewhere_is_sent_once_though_elsewhere_is_down() {
    for (status, sent, stop) in [
        (301, 1, Stop::NotIdempotent),
        (302, 1, Stop::NotIdempotent),
        (303, 1, Stop::NotIdempotent),
        (307, 3, Stop::Attempts), // Has only been told where to go.
        (308, 3, Stop::Attempts),
    ] {
        let policy = redirects(redirect::Policy::limited(10));
        assert_eq!(posts_redirected_to_nobody(status, policy).await, (sent, stop), "{status}");
    }
}

/// The POST that is redirected to its own URL, which the URL alone does not tell.
#[tokio::test]
async fn a_post_that_was_answered_at_its_own_url_is_sent_once() {
    let server = Server::start(|request: &Received| match &*request.method {
        "POST" => answer(303, &[("location", "/")], ""),
        _ => answer(503, &[], ""),
    })
    .await;
    let policy = redirects(redirect::Policy::default());
    let client = Client::builder().no_proxy().redirect(policy).build().unwrap();
    let guarded = Guarded::new(client, Guard::new(Upstream::new(POLICY)));
    let response = post(&guarded, &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::NotIdempotent, 1));
}

/// What a policy decides is left to it, and outside a guard it is one like any other.
#[tokio::test]
async fn a_watched_policy_decides_as_before() {
    let server = Server::start(|request: &Received| match &*request.path {
        "/" => answer(303, &[("location", "/there")], ""),
        _ => answer(200, &[], "there"),
    })
    .await;
    for (policy, status) in [(redirect::Policy::none(), 303), (redirect::Policy::default(), 200)] {
        let client = Client::builder().no_proxy().redirect(redirects(policy)).build().unwrap();
        let response = client.get(server.url("/")).send().await.unwrap();
        assert_eq!(response.status(), status);
    }
}
