//! Whose timeout it was.

use holdoff_reqwest::{RequestOptions, Stop, TimedOut, Upstream};

use crate::server::{Reply, Server, answer};
use crate::{QUICK, get, guarded, millis, quick, secs};

#[tokio::test]
async fn every_timeout_is_named() {
    let server = Server::replies(vec![Reply::Hang(Vec::new())]).await;
    let by_attempt = QUICK.with_attempt_timeout(millis(50)).build().unwrap();
    let error = get(&guarded(Upstream::new(by_attempt)), &server).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    assert_eq!(error.timed_out(), Some(TimedOut::Attempt));
    assert!(error.to_string().ends_with("the attempt timeout passed"), "{error}");

    let options = RequestOptions::new().with_deadline(millis(50));
    let guarded = quick();
    let request = guarded.client().get(server.url("/")).build().unwrap();
    let error = guarded.execute_with(request, &options).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Deadline, 1));
    assert_eq!(error.timed_out(), Some(TimedOut::Deadline));

    // reqwest's own is for each attempt, as it is for each request without us.
    let request = guarded.client().get(server.url("/")).timeout(millis(50)).build().unwrap();
    let error = guarded.execute(request).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    assert_eq!(error.timed_out(), Some(TimedOut::Client));
    assert!(error.reqwest().unwrap().is_timeout());
    assert!(error.to_string().ends_with("the client's own timeout passed"), "{error}");
}

#[tokio::test]
async fn an_earlier_answer_is_not_lost_to_a_timeout() {
    for (body, kept) in [("busy".to_owned(), "busy"), ("x".repeat(100_000), "")] {
        let server = Server::replies(vec![answer(503, &[], &body), Reply::Hang(Vec::new())]).await;
        let policy = QUICK.with_attempt_timeout(millis(500)).build().unwrap();
        let error = get(&guarded(Upstream::new(policy)), &server).await.unwrap_err();
        assert_eq!((error.attempts(), error.timed_out()), (3, Some(TimedOut::Attempt)));
        assert_eq!(error.status().unwrap(), 503);
        assert_eq!(error.into_response().unwrap().text().await.unwrap(), kept);
    }
}

#[tokio::test]
async fn no_attempt_starts_when_the_time_is_up() {
    let server = Server::replies(vec![answer(503, &[("retry-after", "0.9")], "")]).await;
    let guarded = quick();
    let request = guarded.client().get(server.url("/")).build().unwrap();
    let options = RequestOptions::new().with_deadline(millis(800));
    let response = guarded.execute_with(request, &options).await.unwrap();
    assert_eq!(crate::gave_up(&response), (Stop::HintTooLong { hint: millis(900) }, 1));

    let request = guarded.client().get(server.url("/")).build().unwrap();
    let options = RequestOptions::new().with_deadline(secs(0));
    let error = guarded.execute_with(request, &options).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Deadline, 0));
}

#[tokio::test]
async fn a_status_is_not_lost_to_a_body_that_does_not_come() {
    let server = Server::replies(vec![Reply::Hang(crate::server::truncated(429))]).await;
    let policy = QUICK.with_attempt_timeout(secs(1)).build().unwrap();
    let response = get(&guarded(Upstream::new(policy)), &server).await.unwrap();
    assert_eq!((response.status().as_u16(), crate::gave_up(&response)), (429, (Stop::Attempts, 3)));
}
