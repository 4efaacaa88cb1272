//! What a server makes of a client that tries again.

use holdoff_tokio::Nesting;
use reqwest::header::{HeaderMap, HeaderName};

/// Whether a request that a server received comes from a client that tries again by itself, as the
/// header `name` says ([`Guard::with_attempt_header`](crate::Guard::with_attempt_header)).
///
/// For gateways: what they call on behalf of the request, inside of
/// [`scope`](Nesting::scope), makes one attempt and leaves the rest to that client. Layers that
/// each try again multiply. Anybody can send the header, and has only one's own request tried less.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_reqwest::{Failure, Policy, Stop, Upstream, nesting};
/// use reqwest::header::{HeaderMap, HeaderName};
///
/// static BACKEND: Upstream = Upstream::new(Policy::STANDARD);
/// const ATTEMPT: HeaderName = HeaderName::from_static("x-attempt");
///
/// async fn handle(headers: &HeaderMap) -> Result<(), Stop> {
///     let call = BACKEND.call(async || Err::<(), _>(Failure::transient()));
///     nesting(headers, &ATTEMPT).scope(call).await.map_err(|gave_up| gave_up.stop)
/// }
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(handle(&headers).await, Err(Stop::Attempts));
/// headers.insert(ATTEMPT, 1.into());
/// assert_eq!(handle(&headers).await, Err(Stop::Nested));
/// # }
/// ```
#[must_use]
pub fn nesting(headers: &HeaderMap, name: &HeaderName) -> Nesting {
    if headers.contains_key(name) { Nesting::inside() } else { Nesting::current() }
}
