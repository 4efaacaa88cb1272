//! Bodies of answers: read within bounds, and put back.

use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Response, ResponseBuilderExt};
use tokio::time::Instant;

/// The longest that reading the body of a failed answer may take: whoever sends it slowly is not
/// waited for, as all of it is optional.
const PEEK_TIME: Duration = Duration::from_secs(1);

/// What was read of a body.
struct Read {
    bytes: BytesMut,
    end: End,
}

enum End {
    /// All of it was read.
    Complete,
    Failed(reqwest::Error),
    /// There may be more.
    Open,
}

/// The answer to a request that failed, its body in memory if it is at most `limit` bytes, and that
/// body.
///
/// So that its connection serves the next attempt, and the caller can read it in the end. What
/// cannot be read in time comes back as it was.
pub(crate) async fn peek(
    mut response: Response,
    limit: usize,
    ends_at: Option<Instant>,
) -> (Response, Option<Bytes>) {
    let too_long = |length| usize::try_from(length).map_or(true, |length| length > limit);
    if limit == 0 || response.content_length().is_some_and(too_long) {
        return (response, None);
    }
    let mut read = Read { bytes: BytesMut::new(), end: End::Open };
    {
        let reading = pin!(read_up_to(&mut response, limit, &mut read));
        // What is known of the answer already must not be lost to the attempt's timeout.
        let left = ends_at.map_or(PEEK_TIME, |at| at.saturating_duration_since(Instant::now()) / 2);
        let _ = tokio::time::timeout(left.min(PEEK_TIME), reading).await;
    }
    let is_complete = matches!(read.end, End::Complete);
    let bytes = read.bytes.freeze();
    let all = is_complete.then(|| bytes.clone());
    let mut response = put_back(response, bytes, read.end);
    if is_complete {
        response.extensions_mut().insert(InMemory);
    }
    (response, all)
}

/// The answer with its whole body in memory, or with as much of it as `limit` allows and the rest
/// still to come.
pub(crate) async fn whole(
    mut response: Response,
    limit: usize,
) -> Result<Response, reqwest::Error> {
    let mut read = Read { bytes: BytesMut::new(), end: End::Open };
    read_up_to(&mut response, limit, &mut read).await;
    match read.end {
        End::Failed(error) => Err(error),
        end => Ok(put_back(response, read.bytes.freeze(), end)),
    }
}

/// Whether the whole body of an answer is in memory.
#[derive(Clone, Copy)]
pub(crate) struct InMemory;

async fn read_up_to(response: &mut Response, limit: usize, read: &mut Read) {
    while matches!(read.end, End::Open) && read.bytes.len() <= limit {
        // Dropped while it waits, it has taken nothing.
        match response.chunk().await {
            Ok(Some(chunk)) => read.bytes.extend_from_slice(&chunk),
            Ok(None) => read.end = End::Complete,
            Err(error) => read.end = End::Failed(error),
        }
    }
}

/// `response` without its body, and what kept its connection.
pub(crate) fn without_body(response: Response) -> Response {
    split(response).0
}

/// `response` without its body, and that.
pub(crate) fn split(response: Response) -> (Response, Body) {
    let mut taken = Body::from(Bytes::new());
    let response = with_body(response, |body| core::mem::replace(&mut taken, body));
    (response, taken)
}

fn put_back(response: Response, bytes: Bytes, end: End) -> Response {
    match end {
        End::Complete => with_body(response, |_| Body::from(bytes)),
        End::Failed(error) => {
            let rest = Rest::Failed(Some(error));
            with_body(response, |_| Body::wrap(Replayed { read: bytes, rest }))
        }
        End::Open => {
            with_body(response, |body| Body::wrap(Replayed { read: bytes, rest: Rest::Open(body) }))
        }
    }
}

fn with_body(response: Response, change: impl FnOnce(Body) -> Body) -> Response {
    // Conversion loses the URL, unless it is among the extensions.
    let mut url = http::Response::builder().url(response.url().clone());
    let mut extensions = url.extensions_mut().map(core::mem::take).unwrap_or_default();
    let (mut parts, body) = http::Response::<Body>::from(response).into_parts();
    extensions.extend(parts.extensions);
    parts.extensions = extensions;
    Response::from(http::Response::from_parts(parts, change(body)))
}

/// A body of which a part was read already.
struct Replayed {
    read: Bytes,
    rest: Rest,
}

enum Rest {
    Failed(Option<reqwest::Error>),
    Open(Body),
}

impl HttpBody for Replayed {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        if !self.read.is_empty() {
            let read = core::mem::take(&mut self.read);
            return Poll::Ready(Some(Ok(Frame::data(read))));
        }
        match &mut self.rest {
            Rest::Failed(error) => Poll::Ready(error.take().map(Err)),
            Rest::Open(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_rest_over = match &self.rest {
            Rest::Failed(error) => error.is_none(),
            Rest::Open(body) => body.is_end_stream(),
        };
        self.read.is_empty() && is_rest_over
    }

    fn size_hint(&self) -> SizeHint {
        let read = u64::try_from(self.read.len()).unwrap_or(u64::MAX);
        let rest = match &self.rest {
            Rest::Failed(_) => SizeHint::new(),
            Rest::Open(body) => body.size_hint(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}
