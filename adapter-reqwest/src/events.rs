//! Answers that are streams of events.

mod parser;

use core::error::Error as StdError;
use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::stream::FusedStream;
use holdoff::{Failure, Stop};
use http_body::Body as HttpBody;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Response};

pub use self::parser::Event;
use self::parser::{Parser, TooLong};
use crate::body;
use crate::codes::Codes;
use crate::engine::{Failed, Reading};
use crate::guard::Settings;

/// The events of an answer, the first of which is there.
///
/// From [`Guarded::events`](crate::Guarded::events). An event is at most 1 MiB; leading `ping`
/// events, which say nothing, are passed over. Dropping it closes the connection. It is a
/// [`Stream`](futures_core::Stream), too, for those who have combinators for one.
///
/// ```
/// use holdoff_reqwest::{Events, EventsError};
///
/// /// All there is, even if it breaks off.
/// async fn collect(mut events: Events) -> (String, Option<EventsError>) {
///     let mut text = String::new();
///     while let Some(event) = events.next().await {
///         match event {
///             Ok(event) => text.push_str(&event.data),
///             Err(error) => return (text, Some(error)),
///         }
///     }
///     (text, None)
/// }
/// ```
#[derive(Debug)]
pub struct Events {
    first: Option<Event>,
    stream: Stream,
}

impl Events {
    /// The next event; `None` at the end of the stream, and after an error.
    ///
    /// # Errors
    /// [`EventsError`]: the stream broke off, or the server reports an error in it. Nothing is sent
    /// again; the events so far are all there is.
    ///
    /// # Cancel safety
    /// No event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Event, EventsError>> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event, EventsError>>> {
        match self.first.take() {
            Some(event) => Poll::Ready(Some(Ok(event))),
            None => self.stream.poll(context),
        }
    }

    /// The answer: status, headers, URL. Its body is empty, as it comes as events.
    #[must_use]
    pub const fn response(&self) -> &Response {
        &self.stream.response
    }
}

/// Of what [`next`](Events::next) gives. It ends for good, so it is fused.
impl futures_core::Stream for Events {
    type Item = Result<Event, EventsError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

impl FusedStream for Events {
    fn is_terminated(&self) -> bool {
        self.first.is_none() && self.stream.is_over
    }
}

/// Why a stream of events ended before its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum EventsError {
    /// The connection broke off, or timed out.
    Broken(reqwest::Error),
    /// The server reports an error (`overloaded_error`, say) as this event.
    Server {
        /// What kind of failure it is.
        failure: Failure,
        /// What was sent.
        event: Event,
    },
    /// An event is longer than 1 MiB.
    TooLong,
}

impl EventsError {
    /// Why it is not tried again: a part of the answer has been handed out.
    ///
    /// ```
    /// use holdoff_reqwest::{EventsError, Stop};
    ///
    /// assert_eq!(EventsError::TooLong.stop(), Stop::Committed);
    /// ```
    #[must_use]
    pub const fn stop(&self) -> Stop {
        Stop::Committed
    }
}

impl fmt::Display for EventsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken(_) => "the stream of events broke off",
            Self::Server { .. } => "the server reports an error in the stream of events",
            Self::TooLong => "an event is longer than 1 MiB",
        })
    }
}

impl StdError for EventsError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Broken(error) => Some(error),
            Self::Server { .. } | Self::TooLong => None,
        }
    }
}

#[derive(Debug)]
struct Stream {
    /// Without its body.
    response: Response,
    body: Body,
    parser: Parser,
    /// Read, but not parsed yet.
    chunk: Bytes,
    codes: Codes,
    is_over: bool,
}

const LONGEST: usize = 1 << 20;

impl Stream {
    fn new(response: Response, codes: Codes) -> Self {
        let (response, body) = body::split(response);
        let (parser, chunk) = (Parser::new(LONGEST), Bytes::new());
        Self { response, body, parser, chunk, codes, is_over: false }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event, EventsError>>> {
        while !self.is_over {
            let (read, event) = match self.parser.read(&self.chunk) {
                Ok(read) => read,
                Err(TooLong) => return Poll::Ready(Some(Err(self.end(EventsError::TooLong)))),
            };
            self.chunk = self.chunk.split_off(read);
            if let Some(event) = event {
                return Poll::Ready(Some(self.checked(event)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                // Trailers say nothing.
                Some(Ok(frame)) => self.chunk = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(self.end(EventsError::Broken(error)))));
                }
                None => self.is_over = true,
            }
        }
        Poll::Ready(None)
    }

    fn checked(&mut self, event: Event) -> Result<Event, EventsError> {
        // Most events are none; this is asked of every one of them.
        let may_be_error = event.event == "error" || event.data.contains("\"error\"");
        let failure = if may_be_error { self.codes.in_stream(event.data.as_bytes()) } else { None };
        match failure {
            Some(failure) => Err(self.end(EventsError::Server { failure, event })),
            None => Ok(event),
        }
    }

    const fn end(&mut self, error: EventsError) -> EventsError {
        self.is_over = true;
        error
    }
}

/// The answer up to its first event.
pub(crate) struct FirstEvent {
    pub(crate) codes: Codes,
}

impl Reading for FirstEvent {
    type Output = Events;

    async fn read(&self, _settings: &Settings, response: Response) -> Result<Events, Failed> {
        if !is_event_stream(&response) {
            return Err(Failed::answered(Failure::permanent(), response));
        }
        let mut stream = Stream::new(response, self.codes.clone());
        loop {
            match poll_fn(|context| stream.poll(context)).await {
                Some(Ok(event)) if event.event == "ping" => {}
                Some(Ok(event)) => return Ok(Events { first: Some(event), stream }),
                Some(Err(EventsError::Broken(error))) => return Err(error.into()),
                Some(Err(error)) => {
                    let failure = match error {
                        EventsError::Server { failure, .. } => failure,
                        _ => Failure::permanent(),
                    };
                    return Err(Failed::new(failure, error));
                }
                None => return Err(Failed::new(Failure::transient(), NoEvent)),
            }
        }
    }
}

fn is_event_stream(response: &Response) -> bool {
    const EVENT_STREAM: &[u8] = b"text/event-stream";
    let value = response.headers().get(CONTENT_TYPE).map(|value| value.as_bytes());
    let start = value.and_then(|value| value.get(..EVENT_STREAM.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(EVENT_STREAM))
}

#[derive(Debug)]
struct NoEvent;

impl fmt::Display for NoEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream of events ended before its first")
    }
}

impl StdError for NoEvent {}
