//! Why there is no answer, or none that is a success.

use core::error::Error as StdError;
use core::fmt;
use core::time::Duration;

use holdoff::{Classify, Failure, Hint, Sent, Stop};
use holdoff_tokio::GaveUp;
use reqwest::{Response, StatusCode};

use crate::body::{self, InMemory};
use crate::classify::cause;

/// A request that got no answer, or, if that was [asked for](crate::FinalFailure::AsError), one
/// that is a failure.
///
/// The last error of reqwest is its [`source`](StdError::source).
///
/// ```
/// use holdoff_reqwest::{Guarded, Policy, Stop, Upstream, valid, PolicyConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// const ONCE: Policy = valid!(PolicyConfig::standard().with_max_attempts(1).build());
/// let client = reqwest::Client::new();
/// let guarded = Guarded::new(client, Upstream::new(ONCE));
///
/// let request = guarded.client().get("http://127.0.0.1:1/").build().unwrap();
/// let error = guarded.execute(request).await.unwrap_err();
/// assert_eq!((error.stop(), error.attempts()), (Stop::Attempts, 1));
/// assert!(error.reqwest().unwrap().is_connect());
/// # }
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

/// Whose timeout ended an attempt.
///
/// ```
/// use holdoff_reqwest::{Error, TimedOut};
///
/// fn advice(error: &Error) -> &'static str {
///     match error.timed_out() {
///         Some(TimedOut::Attempt) => "the service is slow",
///         Some(TimedOut::Client) => "the client's timeout is shorter than the policy's",
///         Some(TimedOut::Deadline) => "there was no time left",
///         _ => "it was no timeout",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimedOut {
    /// The policy's attempt timeout.
    Attempt,
    /// reqwest's own: `timeout`, `read_timeout` or `connect_timeout` of the client or the request.
    Client,
    /// The deadline of the whole call.
    Deadline,
}

#[derive(Debug)]
struct Inner {
    why: Why,
    last: Option<Last>,
    timed_out: Option<TimedOut>,
    failure: Option<Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Why {
    stop: Stop,
    attempts: u32,
    elapsed: Duration,
    retry_after: Option<Duration>,
}

/// What an attempt that failed left behind.
#[derive(Debug)]
pub(crate) enum Last {
    Error(Box<dyn StdError + Send + Sync>),
    Response(Box<Response>),
}

impl Last {
    /// Gives the connection free, as another attempt is about to be made.
    pub(crate) fn release(self) -> Self {
        match self {
            Self::Response(response) if response.extensions().get::<InMemory>().is_none() => {
                Self::Response(Box::new(body::without_body(*response)))
            }
            last => last,
        }
    }
}

/// How a call ended that did not succeed.
pub(crate) struct Ended {
    pub(crate) gave_up: GaveUp<()>,
    pub(crate) last: Option<Last>,
    /// Of the last attempt, which left nothing then.
    pub(crate) timed_out: Option<TimedOut>,
    pub(crate) failure: Option<Failure>,
}

impl Error {
    /// Why there was no further attempt.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.0.why.stop
    }

    /// Attempts made.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.why.attempts
    }

    /// The time since the call started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.why.elapsed
    }

    /// How long from then until another attempt could make sense, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.why.retry_after
    }

    /// Whose timeout ended the last attempt, if one did.
    #[must_use]
    pub fn timed_out(&self) -> Option<TimedOut> {
        self.0.timed_out
    }

    /// The last error of reqwest, unless an answer came after it.
    #[must_use]
    pub fn reqwest(&self) -> Option<&reqwest::Error> {
        match &self.0.last {
            Some(Last::Error(error)) => cause(&**error),
            _ => None,
        }
    }

    /// The last answer, unless an error came after it. Its body is there if it was the last thing
    /// to happen or was short; it is empty otherwise.
    #[must_use]
    pub fn response(&self) -> Option<&Response> {
        match &self.0.last {
            Some(Last::Response(response)) => Some(response),
            _ => None,
        }
    }

    /// [`response`](Self::response), to be read.
    #[must_use]
    pub fn into_response(self) -> Option<Response> {
        match self.0.last {
            Some(Last::Response(response)) => Some(*response),
            _ => None,
        }
    }

    /// The status of the last answer, unless an error came after it.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.response().map(Response::status)
    }

    /// A request that could not be built.
    pub(crate) fn not_built(error: reqwest::Error) -> Self {
        let why =
            Why { stop: Stop::Permanent, attempts: 0, elapsed: Duration::ZERO, retry_after: None };
        let (last, failure) = (Some(Last::Error(error.into())), Some(Failure::permanent()));
        Self(Box::new(Inner { why, last, timed_out: None, failure }))
    }
}

impl From<Ended> for Error {
    fn from(ended: Ended) -> Self {
        let Ended { gave_up, last, timed_out, failure } = ended;
        let GaveUp { stop, attempts, elapsed, retry_after, .. } = gave_up;
        let why = Why { stop, attempts, elapsed, retry_after };
        let mut error = Self(Box::new(Inner { why, last, timed_out, failure }));
        if timed_out.is_none() && error.reqwest().is_some_and(reqwest::Error::is_timeout) {
            error.0.timed_out = Some(TimedOut::Client);
        }
        error
    }
}

impl Classify for Error {
    /// What a layer around this one makes of it: the last failure; where nothing was sent, a
    /// transient one, unless the call itself is at fault.
    fn classify(&self) -> Failure {
        let Why { stop, retry_after, .. } = self.0.why;
        self.0.failure.unwrap_or_else(|| {
            let failure = match stop {
                Stop::Cancelled | Stop::CostTooHigh { .. } => Failure::permanent(),
                _ => Failure::transient(),
            };
            failure.with_hint(retry_after.map_or(Hint::Absent, Hint::after)).with_sent(Sent::No)
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { why: Why { stop, attempts, elapsed, retry_after }, timed_out, .. } = &*self.0;
        let plural = if *attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {attempts} attempt{plural} in {elapsed:?}: {stop}")?;
        if let Some(status) = self.status() {
            write!(f, "; the last answer was {status}")?;
            if status.as_u16() < 400 && timed_out.is_none() {
                // Of a success nothing else is asked.
                f.write_str(" and no stream of events")?;
            }
        }
        match timed_out {
            Some(TimedOut::Attempt) => f.write_str("; the attempt timeout passed")?,
            Some(TimedOut::Client) => f.write_str("; the client's own timeout passed")?,
            Some(TimedOut::Deadline) => f.write_str("; the deadline passed during an attempt")?,
            None => {}
        }
        match retry_after {
            Some(Duration::MAX) | None => Ok(()),
            Some(delay) => write!(f, "; worth another try in {delay:?}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.last {
            Some(Last::Error(error)) => Some(&**error),
            _ => None,
        }
    }
}
