//! Redirects, which reqwest follows beneath.

use holdoff_reqwest::{Guard, Stop, Upstream};

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
