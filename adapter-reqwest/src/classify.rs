//! What answers and errors of reqwest mean: the one place that decides it.

use core::error::Error as StdError;
use core::time::Duration;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use holdoff::http::{Signals, Statuses, date, rate_limit};
use holdoff::{Class, Classify, Failure, Outcome, Sent};
use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap};

/// What an answer of `status` and `headers` came to, by the table `statuses`.
///
/// The hint is in `retry-after-ms`, else in `Retry-After`, else, for a 429, in the rate-limit
/// headers ([`http::rate_limit`](holdoff::http::rate_limit)); one of zero, or one that cannot be
/// read, gives way to the next. Dates count from the answer's own `Date` if it has one: the
/// server's clock need not be ours. `x-should-retry` is obeyed.
///
/// ```
/// use holdoff_reqwest::http::Statuses;
/// use holdoff_reqwest::{Class, Outcome, classify_response};
/// use reqwest::StatusCode;
/// use reqwest::header::HeaderMap;
/// use std::time::Duration;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("date", "Sun, 06 Nov 1994 08:49:30 GMT".parse().unwrap());
/// headers.insert("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
/// let status = StatusCode::TOO_MANY_REQUESTS;
/// let outcome = classify_response(Statuses::HTTP, status, &headers);
/// let Outcome::Failure(failure) = outcome else { panic!() };
/// assert_eq!(failure.class, Class::Throttled);
/// assert_eq!(failure.hint.delay(), Some(Duration::from_secs(7)));
/// ```
#[must_use]
pub fn classify_response(statuses: Statuses, status: StatusCode, headers: &HeaderMap) -> Outcome {
    judge(statuses, status, headers).0
}

/// What an answer came to, and whether the server said itself if it is worth another try.
pub(crate) fn judge(
    statuses: Statuses,
    status: StatusCode,
    headers: &HeaderMap,
) -> (Outcome, bool) {
    if status.as_u16() < 400 {
        return (Outcome::Success, false);
    }
    let wall_now = Some(wall_now(headers));
    let fields = || headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut signals = Signals::from_headers(fields(), wall_now);
    if status == StatusCode::TOO_MANY_REQUESTS && signals.hint.delay().is_none() {
        let limits = rate_limit(fields(), wall_now);
        if limits.delay().is_some() {
            signals.hint = limits;
        }
    }
    (statuses.outcome(status.as_u16(), signals), signals.should_retry.is_some())
}

/// The answer's own `Date`, else the wall clock's: the time since the Unix epoch.
fn wall_now(headers: &HeaderMap) -> Duration {
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    headers.get(DATE).and_then(|date| date::parse(date.as_bytes(), here)).unwrap_or(here)
}

/// What kind of failure an error of reqwest is.
///
/// | error | failure |
/// |---|---|
/// | connecting: refused, reset, unreachable, timed out, name not found | transient, never sent |
/// | connecting: TLS (a bad certificate), refused by a proxy, a bad address | permanent |
/// | connection or stream reset or closed before the whole answer was there | transient |
/// | reqwest's own timeouts after the connection stood | transient |
/// | a bad request or URL, too many redirects, a body of the caller's that fails | permanent |
/// | an answer that is no HTTP, or whose body cannot be decoded | permanent |
/// | `error_for_status`, called by another middleware | by [`Statuses::HTTP`], without a hint |
/// | anything else | permanent |
///
/// A name that is not found is tried again because a name server that is in trouble cannot be told
/// from it; nothing was sent, so it does no harm.
///
/// ```
/// use holdoff_reqwest::{Failure, Sent, classify_error};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let refused = reqwest::get("http://127.0.0.1:1/").await.unwrap_err();
/// assert_eq!(classify_error(&refused), Failure::transient().with_sent(Sent::No));
///
/// let no_url = reqwest::get("nowhere").await.unwrap_err();
/// assert_eq!(classify_error(&no_url), Failure::permanent());
/// # }
/// ```
#[must_use]
pub fn classify_error(error: &reqwest::Error) -> Failure {
    if let Some(status) = error.status() {
        return match Statuses::HTTP.outcome(status.as_u16(), Signals::default()) {
            Outcome::Failure(failure) => failure,
            Outcome::Ignored | Outcome::Success => Failure::permanent(),
        };
    }
    if error.is_builder() || error.is_redirect() || error.is_upgrade() {
        return Failure::permanent();
    }
    if error.is_connect() {
        return classify_connect(error);
    }
    let hyper = cause::<hyper::Error>(error);
    // Before what is behind it, which is the caller's.
    if hyper.is_some_and(|error| error.is_user() || error.is_body_write_aborted()) {
        return Failure::permanent();
    }
    if error.is_timeout() {
        return Failure::transient();
    }
    let class = io_error(error).map(|error| error.classify().class);
    let class = class.or_else(|| hyper.map(classify_hyper));
    Failure::new(class.unwrap_or(Class::Permanent))
}

/// Nothing was sent, so trying again does no harm; but it must be able to help.
fn classify_connect(error: &reqwest::Error) -> Failure {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, PermissionDenied, Unsupported};

    let can_help = match io_error(error).map(io::Error::kind) {
        _ if error.is_timeout() || error.is_dns() => true,
        // TLS reports what it does not accept as invalid data, or as an error of its own.
        Some(InvalidData | InvalidInput | Other | PermissionDenied | Unsupported) | None => false,
        // Too many open files, no free port: there is no word for all of them.
        Some(_) => true,
    };
    let failure = if can_help { Failure::transient() } else { Failure::permanent() };
    failure.with_sent(Sent::No)
}

/// Without an I/O error behind it: the connection was closed or reset by the other side, at a
/// moment when the request may have been processed, or what it said is no HTTP.
fn classify_hyper(error: &hyper::Error) -> Class {
    if error.is_parse() { Class::Permanent } else { Class::Transient }
}

/// The I/O error behind `error`: the innermost, as some wrap one in another, which hides it from
/// `source`.
fn io_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a io::Error> {
    let mut found = cause::<io::Error>(error)?;
    while let Some(inner) = found.get_ref().and_then(|inner| inner.downcast_ref()) {
        found = inner;
    }
    Some(found)
}

/// The outermost error of type `E` behind `error`.
pub(crate) fn cause<'a, E: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(cause) = error.downcast_ref() {
            return Some(cause);
        }
        next = error.source();
    }
    None
}
