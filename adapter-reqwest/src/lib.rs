//! [holdoff] on reqwest: HTTP requests that are tried again when that helps and does no harm.
//!
//! ```
//! use holdoff_reqwest::{Error, GaveUp, Guarded, Policy, Upstream};
//! use std::time::Duration;
//!
//! async fn fetch(client: reqwest::Client) -> Result<(), Error> {
//!     // At most 4 attempts within 20 s, full jitter, and what the server says goes first.
//!     let guarded = Guarded::new(client, Upstream::new(Policy::INTERACTIVE));
//!     let response = guarded.send(|client| client.get("https://example.org/")).await?;
//!     match response.extensions().get::<GaveUp<()>>() {
//!         None => println!("{}", response.status()),
//!         // A failure comes back as it is, and says why it is the last one.
//!         Some(gave_up) => println!("{}: {gave_up}", response.status()),
//!     }
//!     Ok(())
//! }
//! ```
//!
//! - [`Guarded`]: a client whose requests all go through a guard.
//! - [`Guard`]: that guard; with the feature `middleware`, a middleware of `reqwest-middleware`.
//! - [`Upstreams`]: one for all, or one for each host, in bounded memory.
//! - [`RequestOptions`]: what is different for one request.
//! - [`Error`], [`FinalFailure`]: what comes back in the end.
//! - [`Events`]: streams of events, tried again up to the first.
//! - [`nesting`]: for gateways, so that layers do not multiply.
//! - [`classify_response`], [`classify_error`], [`ErrorCode`]: what answers mean, for loops of your
//!   own.
//!
//! # What is sent again
//! | the request | after |
//! |---|---|
//! | GET, HEAD, OPTIONS, TRACE, PUT, DELETE, or any with an `Idempotency-Key` | all that may pass |
//! | any other | failed connections, 429, 503, 529: what surely was not processed |
//! | one whose body is a stream | nothing, unless [`Guarded::send`] makes it anew |
//!
//! What may pass: 408, 429, 500, 502, 503, 504, 520, 522, 524 and 529 (409, too, for LLM
//! providers), unless `x-should-retry` or an [error code](ErrorCode) says otherwise, and the
//! transient errors of [`classify_error`]. A body is sent again byte for byte.
//!
//! # When
//! The server's word goes first: `retry-after-ms`, then `Retry-After`, then the rate-limit headers
//! of a 429 ([`classify_response`]). Never earlier than it says; and if it says later than the
//! policy's `max_hint` or the deadline allows, the call stops at once. A 429 with a hint also
//! pauses the upstream's limiter, if it has one, so that others do not find out one by one.
//!
//! # Timeouts
//! - The policy's attempt timeout and deadline cover an attempt up to the head of the answer, or up
//!   to its end with [`RequestOptions::with_whole_body`], or to the first of its [`Events`].
//! - reqwest's own (`timeout`, `read_timeout`, `connect_timeout`) are for each attempt, as they are
//!   for each request without us, and go on while the caller reads the body. Keep reqwest's above
//!   the policy's attempt timeout, or use one of both. [`Error::timed_out`] says whose it was.
//!
//! # What reqwest does beneath
//! It sends a request again by itself, up to twice and at once, if an HTTP/2 server refused the
//! stream or is shutting the connection down, which both mean that nothing was processed. Those are
//! no attempts here: they take no token, and the server may see three requests for one attempt.
//! `ClientBuilder::retry(reqwest::retry::never())` turns that off. One that is refused every time
//! is a failed attempt in which it may have been processed: reqwest does not say why it failed. A
//! stream that is reset for any other reason is one at once. A request that did not leave
//! because its kept connection had been closed is sent over another one, too, by hyper, whatever
//! is set. A retry policy of reqwest's with
//! statuses of its own multiplies with ours: have one or the other.
//!
//! It also follows redirects: the answer is the last one's, the upstream the first one's. Whoever
//! redirected a request may have processed it, so 429, 503 and 529 from another URL are no refusal
//! of it. But reqwest does not tell that a connection failed only after a redirect, or that a URL
//! redirected to itself. Where a repeated POST would do harm and its answer may be a redirect,
//! build the client with [`redirects`], which hears of it.
//!
//! An idempotency key is made for each call through the guard. Where a call of another kind is
//! tried again around it, set the header yourself outside of both, or each round has a key of its
//! own.
//!
//! # What it costs
//! A request that succeeds allocates nothing beyond what it does without us when it is built by
//! [`Guarded::send`], or when there can be one attempt only. [`Guarded::execute`] and the
//! middleware clone it, four allocations, for every attempt but the last. In instructions it adds
//! 10 to 13 % to what reqwest takes for a request over a kept connection (example `send_path`). An
//! attempt that failed keeps up to [`Guard::with_peek`] bytes of its answer until the next one
//! fails.
//!
//! # Features
//! None is on by default, and none changes what a call does.
//! - `middleware`: [`Guard`] is a `reqwest_middleware::Middleware`.
//! - `tracing`: `holdoff-tokio`'s spans and events, and in them a span of each attempt
//!   (`holdoff.http_attempt`, level debug) with `http.request.method`, `server.address`,
//!   `http.response.status_code` and, from the second on, `http.request.resend_count`.
//!
//! TLS, HTTP/2, compression and the like are features of reqwest: turn them on there.
//!
//! # What this crate does not do
//! It decides nothing about waiting: that is [`holdoff`]'s business. It does not look into bodies
//! of answers that succeeded, does not cache, does not hedge, and does not make a request safe to
//! repeat that is not: an idempotency key helps only if the server honours it.

#![forbid(unsafe_code)]

mod body;
mod classify;
mod codes;
mod engine;
mod error;
mod events;
mod guard;
mod guarded;
#[cfg(feature = "middleware")]
mod middleware;
mod nesting;
mod options;
mod redirects;
#[cfg_attr(not(feature = "tracing"), path = "trace/untraced.rs")]
mod trace;
mod upstreams;

pub use classify::{classify_error, classify_response};
pub use codes::ErrorCode;
pub use error::{Error, TimedOut};
pub use events::{Event, Events, EventsError};
pub use guard::Guard;
pub use guarded::Guarded;
pub use holdoff::Outcome;
pub use holdoff_tokio::{
    Backoff, BackoffConfig, BreakerConfig, BudgetConfig, Class, Classify, Failure, GaveUp, Hint,
    HintSpread, Jitter, Keyed, Nesting, Policy, PolicyConfig, Quota, Rate, Ratio, Safety, Sent,
    Stop, UnhintedThrottle, Upstream, http, valid,
};
pub use nesting::nesting;
pub use options::{FinalFailure, RequestOptions};
pub use redirects::redirects;
pub use upstreams::Upstreams;

#[cfg(all(doctest, feature = "middleware"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;
