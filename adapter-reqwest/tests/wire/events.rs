//! Streams of events.

use futures_util::stream::FusedStream;
use futures_util::{StreamExt, TryStreamExt};
use holdoff_reqwest::{Class, EventsError, Guard, Guarded, Stop, Upstream};

use crate::server::{Reply, Server, answer};
use crate::{POLICY, guarded, quick};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    connection: close\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const OVERLOADED: &str = "event: error\n\
    data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";

fn stream(events: &str) -> Reply {
    Reply::Close(format!("{HEAD}{events}").into_bytes())
}

/// Breaks off after `events`.
fn cut(events: &str) -> Reply {
    Reply::Close(format!("{CHUNKED}{:x}\r\n{events}\r\n", events.len()).into_bytes())
}

fn llm() -> Guarded {
    guarded(Guard::llm(Upstream::new(POLICY)))
}

async fn events(server: &Server) -> Result<holdoff_reqwest::Events, holdoff_reqwest::Error> {
    let llm = llm();
    llm.events(llm.client().post(server.url("/")).body("{}").build().unwrap()).await
}

#[tokio::test]
async fn events_come_one_by_one_to_the_end() {
    let text = "event: ping\ndata: {}\n\nevent: a\ndata: 1\n\ndata: 2\ndata: 3\n\ndata: [DONE]\n\n";
    for reply in [stream(text), stream(&text.replace('\n', "\r\n"))] {
        let server = Server::replies(vec![reply]).await;
        let mut events = events(&server).await.unwrap();
        assert_eq!(events.response().status(), 200);
        let mut data = Vec::new();
        while let Some(event) = events.next().await {
            data.push(event.unwrap().data);
        }
        assert_eq!(data, ["1", "2\n3", "[DONE]"]);
        assert!(events.next().await.is_none());
    }
}

#[tokio::test]
async fn what_fails_before_the_first_event_is_tried_again() {
    let openai = "data: {\"error\":{\"code\":\"server_error\"}}\n\n";
    for failure in [
        stream(OVERLOADED),
        stream(openai),
        stream(": nothing yet\n\n"),
        stream("event: ping\ndata: {}\n\n"),
        cut("data: half of an ev"),
        Reply::Reset(CHUNKED.as_bytes().to_vec()),
        answer(529, &[], ""),
    ] {
        let server = Server::replies(vec![failure.clone(), stream("data: fine\n\n")]).await;
        let mut events = events(&server).await.unwrap_or_else(|e| panic!("{failure:?}: {e}"));
        assert_eq!(events.next().await.unwrap().unwrap().data, "fine");
        let received = server.received();
        assert_eq!(received.len(), 2, "{failure:?}");
        let keys = received.iter().map(|r| r.header("idempotency-key").unwrap());
        assert_eq!(keys.collect::<std::collections::HashSet<_>>().len(), 1);
    }
}

#[tokio::test]
async fn what_cannot_get_better_is_not_tried_again() {
    let invalid = "event: error\ndata: {\"error\":{\"type\":\"invalid_request_error\"}}\n\n";
    let quota = "data: {\"error\":{\"code\":\"insufficient_quota\"}}\n\n";
    for (reply, stop, status) in [
        (stream(invalid), Stop::Permanent, None),
        (stream(quota), Stop::Quota, None),
        (answer(200, &[("content-type", "application/json")], "{}"), Stop::Permanent, Some(200)),
        (answer(401, &[], "who?"), Stop::Permanent, Some(401)),
    ] {
        let server = Server::replies(vec![reply]).await;
        let error = events(&server).await.unwrap_err();
        assert_eq!((error.stop(), error.attempts()), (stop, 1));
        assert_eq!(error.status().map(|status| status.as_u16()), status);
    }
    let server = Server::replies(vec![stream(OVERLOADED)]).await;
    let error = events(&server).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
    let server = Server::replies(vec![answer(200, &[], "{}")]).await;
    let error = events(&server).await.unwrap_err();
    assert!(error.to_string().ends_with("was 200 OK and no stream of events"), "{error}");
}

/// Even without a key: nothing was done.
#[tokio::test]
async fn an_overload_in_a_stream_is_a_refusal() {
    let openai = "data: {\"error\":{\"code\":\"server_is_overloaded\"}}\n\n";
    for overloaded in [OVERLOADED, openai] {
        let server = Server::replies(vec![stream(overloaded), stream("data: fine\n\n")]).await;
        let guarded = quick();
        let request = guarded.client().post(server.url("/")).body("{}").build().unwrap();
        let mut events = guarded.events(request).await.unwrap();
        assert_eq!(events.next().await.unwrap().unwrap().data, "fine");
    }
}

#[tokio::test]
async fn after_the_first_event_nothing_is_sent_again() {
    let overloaded = format!("data: 1\n\n{OVERLOADED}data: never\n\n");
    let server = Server::replies(vec![stream(&overloaded)]).await;
    let mut broken = events(&server).await.unwrap();
    assert_eq!(broken.next().await.unwrap().unwrap().data, "1");
    let error = broken.next().await.unwrap().unwrap_err();
    assert_eq!(error.stop(), Stop::Committed);
    let EventsError::Server { failure, event } = error else { panic!("{error}") };
    assert_eq!((failure.class, &*event.event), (Class::Transient, "error"));
    assert!(broken.next().await.is_none());
    assert_eq!(server.received().len(), 1);

    let server = Server::replies(vec![cut("data: 1\n\ndata: 2\n\ndata: ha")]).await;
    let mut broken = events(&server).await.unwrap();
    for data in ["1", "2"] {
        assert_eq!(broken.next().await.unwrap().unwrap().data, data);
    }
    let error = broken.next().await.unwrap().unwrap_err();
    assert!(matches!(error, EventsError::Broken(_)), "{error}");
    assert!(broken.next().await.is_none());
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn they_are_a_stream_for_those_who_combine_streams() {
    let server = Server::replies(vec![stream("data: 1\n\ndata: 2\n\ndata: 3\n\n")]).await;
    let whole = events(&server).await.unwrap();
    assert_eq!(whole.response().headers()["connection"], "close");
    let data: Vec<_> = whole.map_ok(|event| event.data).try_collect().await.unwrap();
    assert_eq!(data, ["1", "2", "3"]);

    let server = Server::replies(vec![cut("data: 1\n\ndata: 2\n\ndata: ha")]).await;
    let mut broken = events(&server).await.unwrap();
    let first = broken.next().await.unwrap().unwrap();
    assert_eq!((&*first.data, broken.is_terminated()), ("1", false));
    let rest: Vec<_> = broken.by_ref().map_ok(|event| event.data).collect().await;
    let [Ok(data), Err(EventsError::Broken(_))] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!((&**data, broken.is_terminated()), ("2", true));
    assert!(broken.next().await.is_none());

    const fn can_be_anywhere<T: Send + Sync + Unpin>() {}
    const { can_be_anywhere::<holdoff_reqwest::Events>() }
}

#[tokio::test]
async fn an_event_without_end_is_refused() {
    let server = Server::replies(vec![stream(&format!("data: {}", "x".repeat(2 << 20)))]).await;
    let error = events(&server).await.unwrap_err();
    assert_eq!((error.stop(), error.attempts()), (Stop::Permanent, 1));
    assert_eq!(server.received().len(), 1);
}
