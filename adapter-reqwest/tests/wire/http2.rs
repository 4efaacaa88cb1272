//! HTTP/2: what reqwest sends again beneath us, and streams that are reset.

use std::io;
use std::sync::{Arc, Mutex};

use holdoff::Counters;
use holdoff_reqwest::{
    Classify, Error, Failure, Guarded, PolicyConfig, Quota, Rate, RequestOptions, Stop, Upstream,
    valid,
};
use reqwest::{Client, Method, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::QUICK;

/// What the server does with a request.
#[derive(Clone, Copy, Debug)]
enum Act {
    Answer,
    /// Half of an answer, then the end of the stream for this reason.
    Half(u32),
    /// The connection goes away, and this stream was not processed.
    GoAway,
    /// The end of the stream for this reason, and no answer.
    Reset(u32),
}

/// Error codes of RFC 9113 section 7.
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;

/// Types of frames, RFC 9113 section 6.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, as RFC 7541 has it in its table.
const STATUS_200: u8 = 0x88;

/// Speaks HTTP/2 to those who know, one frame after the other.
struct Server {
    url: String,
    requests: Arc<Mutex<usize>>,
}

impl Server {
    /// One that acts so in turn, the last for ever.
    async fn acts(acts: &'static [Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let requests = Arc::clone(&counted);
                tokio::spawn(serve(stream, move || {
                    let mut requests = requests.lock().unwrap();
                    *requests += 1;
                    acts[(*requests - 1).min(acts.len() - 1)]
                }));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> usize {
        *self.requests.lock().unwrap()
    }
}

async fn serve(mut stream: TcpStream, next: impl Fn() -> Act) -> io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length.try_into().unwrap()];
        stream.read_exact(&mut payload).await?;
        let id = u32::from_be_bytes(head[5..].try_into().unwrap());
        let frames = match head[3] {
            SETTINGS if head[4] & ACK == 0 => frame(SETTINGS, ACK, 0, &[]),
            HEADERS => match next() {
                Act::Answer => [answer_head(id), frame(DATA, END_STREAM, id, b"fine")].concat(),
                Act::Half(reason) => {
                    let half = [answer_head(id), frame(DATA, 0, id, b"half")].concat();
                    [half, frame(RST_STREAM, 0, id, &reason.to_be_bytes())].concat()
                }
                // No stream, no error.
                Act::GoAway => frame(GOAWAY, 0, 0, &[0; 8]),
                Act::Reset(reason) => frame(RST_STREAM, 0, id, &reason.to_be_bytes()),
            },
            _ => continue,
        };
        stream.write_all(&frames).await?;
    }
}

fn answer_head(id: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, id, &[STATUS_200])
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = [&length[1..], &[kind, flags], &id.to_be_bytes()].concat();
    frame.extend_from_slice(payload);
    frame
}

/// Whether reqwest sends again by itself what was not processed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beneath {
    Never,
    Resends,
}

/// Three tokens, and none for a long time after: what reqwest sends beneath takes none of them.
fn guarded(policy: PolicyConfig, beneath: Beneath) -> Guarded {
    let mut client = Client::builder().no_proxy().http2_prior_knowledge();
    if beneath == Beneath::Never {
        client = client.retry(reqwest::retry::never());
    }
    let upstream = Upstream::new(policy.build().unwrap())
        .with_limiter(valid!(Quota::new(Rate::per_minute(1), 3)))
        .with_counters(Counters::new());
    Guarded::new(client.build().unwrap(), upstream)
}

async fn ask(guarded: &Guarded, method: Method, server: &Server) -> Result<Response, Error> {
    let request = guarded.client().request(method, &server.url).body("hello").build().unwrap();
    let options = RequestOptions::new().with_whole_body(1_000);
    guarded.execute_with(request, &options).await
}

#[tokio::test]
async fn what_reqwest_sends_again_beneath_is_no_attempt() {
    for nack in [Act::Reset(REFUSED_STREAM), Act::GoAway] {
        let acts: &'static [Act] = vec![nack, nack, Act::Answer].leak();
        for method in [Method::GET, Method::POST] {
            let server = Server::acts(acts).await;
            let guarded = guarded(QUICK.with_max_attempts(1), Beneath::Resends);
            let response = ask(&guarded, method, &server).await.unwrap();
            assert_eq!(response.text().await.unwrap(), "fine");
            assert_eq!(server.requests(), 3, "{nack:?}");
            let attempts = guarded
                .guard()
                .upstreams()
                .with("", |upstream| upstream.counters().unwrap().snapshot().attempts);
            assert_eq!(attempts, Some(1), "{nack:?}");
        }
    }
}

#[tokio::test]
async fn each_attempt_is_up_to_three_requests_or_one_if_that_is_off() {
    for (beneath, each) in [(Beneath::Resends, 3), (Beneath::Never, 1)] {
        for nack in [&[Act::Reset(REFUSED_STREAM)], &[Act::GoAway]] {
            let server = Server::acts(nack).await;
            let error = ask(&guarded(QUICK, beneath), Method::GET, &server).await.unwrap_err();
            assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 3));
            assert_eq!(server.requests(), 3 * each, "{nack:?}, {beneath:?}");

            // Which of the two it was, reqwest does not say.
            let server = Server::acts(nack).await;
            let error = ask(&guarded(QUICK, beneath), Method::POST, &server).await.unwrap_err();
            assert_eq!((error.stop(), error.attempts()), (Stop::NotIdempotent, 1));
            assert_eq!(error.classify(), Failure::transient());
            assert_eq!(server.requests(), each, "{nack:?}, {beneath:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_may_have_been_processed() {
    for act in [
        Act::Reset(INTERNAL_ERROR),
        Act::Reset(CANCEL),
        Act::Half(INTERNAL_ERROR),
        Act::Half(REFUSED_STREAM),
        Act::Half(CANCEL),
    ] {
        let acts: &'static [Act] = vec![act, Act::Answer].leak();
        let server = Server::acts(acts).await;
        let guarded = guarded(QUICK, Beneath::Resends);
        let response = ask(&guarded, Method::GET, &server).await.unwrap();
        assert_eq!((&*response.text().await.unwrap(), server.requests()), ("fine", 2), "{act:?}");

        let server = Server::acts(acts).await;
        let error = ask(&guarded, Method::POST, &server).await.unwrap_err();
        assert_eq!((error.stop(), error.attempts()), (Stop::NotIdempotent, 1), "{act:?}");
        assert_eq!(error.classify(), Failure::transient(), "{act:?}");
        assert_eq!(server.requests(), 1, "{act:?}");
    }
}
