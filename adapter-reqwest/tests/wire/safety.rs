//! What is sent again, and under which key.

use std::collections::HashSet;

use holdoff_reqwest::{Guard, RequestOptions, Safety, Stop, TimedOut, Upstream};

use crate::server::{Reply, Server, answer};
use crate::{POLICY, QUICK, gave_up, guarded, millis, post, quick, secs};

/// C54: only what surely was not processed, or has a key.
#[tokio::test]
async fn a_post_is_sent_again_only_if_it_was_refused_or_has_a_key() {
    for (status, without_key) in [
        (429, (Stop::Attempts, 3)),
        (503, (Stop::Attempts, 3)),
        (529, (Stop::Attempts, 3)),
        (408, (Stop::NotIdempotent, 1)),
        (500, (Stop::NotIdempotent, 1)),
        (502, (Stop::NotIdempotent, 1)),
        (504, (Stop::NotIdempotent, 1)),
    ] {
        let server = Server::replies(vec![answer(status, &[], "")]).await;
        let response = post(&quick(), &server).await.unwrap();
        assert_eq!(gave_up(&response), without_key, "{status}");
        assert!(server.received().iter().all(|r| r.header("idempotency-key").is_none()));

        let server = Server::replies(vec![answer(status, &[], "")]).await;
        let guarded = quick();
        let request = guarded.client().post(server.url("/")).header("Idempotency-Key", "mine");
        let response = guarded.execute(request.build().unwrap()).await.unwrap();
        assert_eq!(gave_up(&response), (Stop::Attempts, 3), "{status}");
        let received = server.received();
        assert!(received.iter().all(|request| request.header("idempotency-key") == Some("mine")));
        assert_eq!(received.len(), 3);

        // The caller knows better.
        let server = Server::replies(vec![answer(status, &[], "")]).await;
        let request = guarded.client().post(server.url("/")).build().unwrap();
        let options = RequestOptions::new().with_safety(Safety::Idempotent);
        let response = guarded.execute_with(request, &options).await.unwrap();
        assert_eq!(gave_up(&response), (Stop::Attempts, 3), "{status}");
    }
}

#[tokio::test]
async fn a_timeout_says_nothing_about_what_was_done() {
    let policy = QUICK.with_attempt_timeout(millis(400)).build().unwrap();
    let slow = || Server::replies(vec![Reply::Later(secs(5), Box::new(answer(200, &[], "")))]);
    let server = slow().await;
    let error = post(&guarded(Upstream::new(policy)), &server).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::NotIdempotent, 1));
    assert_eq!(error.timed_out(), Some(TimedOut::Attempt));
    assert!(error.to_string().contains("may have been processed"), "{error}");
    assert_eq!(server.received().len(), 1);

    let server = slow().await;
    let llm = guarded(Guard::llm(Upstream::new(policy)));
    let error = post(&llm, &server).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    let keys: HashSet<_> = server
        .received()
        .iter()
        .map(|request| request.header("idempotency-key").unwrap().to_owned())
        .collect();
    assert_eq!((keys.len(), server.received().len()), (1, 3));
}

#[tokio::test]
async fn each_call_has_a_key_of_its_own_and_its_attempts_share_it() {
    let server = Server::start(|request| {
        let status = if request.number % 2 == 0 { 500 } else { 200 };
        answer(status, &[], "")
    })
    .await;
    let llm = guarded(Guard::llm(Upstream::new(POLICY)));
    for _ in 0..20 {
        assert_eq!(post(&llm, &server).await.unwrap().status(), 200);
    }
    let received = server.received();
    let keys: Vec<_> = received.iter().map(|r| r.header("idempotency-key").unwrap()).collect();
    assert!(keys.chunks(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 20);
    assert!(keys.iter().all(|key| key.len() == 36), "UUIDs: {keys:?}");

    // A GET needs none; one that is given stays; built requests share the first's.
    crate::get(&llm, &server).await.unwrap();
    assert_eq!(server.received().last().unwrap().header("idempotency-key"), None);
    let server = Server::replies(vec![answer(500, &[], ""), answer(200, &[], "")]).await;
    let url = server.url("/");
    let mut number = 0;
    llm.send(|client| {
        number += 1;
        client.post(&url).header("idempotency-key", number)
    })
    .await
    .unwrap();
    let keys: Vec<_> =
        server.received().iter().map(|r| r.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(keys, ["1", "1"]);
}

#[tokio::test]
async fn an_empty_key_is_none() {
    let server = Server::replies(vec![answer(500, &[], "")]).await;
    let http = quick();
    let request = http.client().post(server.url("/")).header("idempotency-key", "");
    let response = http.execute(request.build().unwrap()).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::NotIdempotent, 1));

    let llm = guarded(Guard::llm(Upstream::new(POLICY)));
    let request = llm.client().post(server.url("/")).header("idempotency-key", "");
    let response = llm.execute(request.build().unwrap()).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::Attempts, 3));
    assert_eq!(server.received()[3].header("idempotency-key").unwrap().len(), 36);
}
