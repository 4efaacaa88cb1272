//! What every request goes through.

use holdoff::Failure;
use holdoff::http::Statuses;
use holdoff_tokio::Upstream;
use reqwest::header::HeaderName;
use std::sync::Arc;

use crate::codes::{Codes, ErrorCode};
use crate::options::FinalFailure;
use crate::upstreams::Upstreams;

/// What every request goes through: the upstreams, and what their answers mean.
///
/// With the feature `middleware` it is one; [`Guarded`](crate::Guarded) is the form without. Usable
/// through `&self` from any task or thread.
///
/// ```
/// use holdoff_reqwest::{Guard, Policy, Upstream};
/// use reqwest::header::HeaderName;
///
/// let guard = Guard::llm(Upstream::new(Policy::LLM))
///     .with_attempt_header(HeaderName::from_static("x-attempt"))
///     .with_peek(4 * 1024);
/// # let _ = guard;
/// ```
#[derive(Debug)]
#[must_use = "a guard does nothing until requests go through it"]
pub struct Guard<const BUCKETS: usize = 0> {
    pub(crate) upstreams: Upstreams<BUCKETS>,
    pub(crate) settings: Settings,
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) statuses: Statuses,
    pub(crate) codes: Codes,
    /// The longest body of a failed answer that is read (bytes).
    pub(crate) peek: usize,
    pub(crate) attaches_keys: bool,
    pub(crate) attempt_header: Option<HeaderName>,
    pub(crate) final_failure: FinalFailure,
}

impl<const BUCKETS: usize> Guard<BUCKETS> {
    /// For any HTTP service: [`Statuses::HTTP`], no idempotency keys, no attempt header.
    pub fn new(upstreams: impl Into<Upstreams<BUCKETS>>) -> Self {
        let settings = Settings {
            statuses: Statuses::HTTP,
            codes: Codes::default(),
            peek: 16 * 1024,
            attaches_keys: false,
            attempt_header: None,
            final_failure: FinalFailure::AsResponse,
        };
        Self { upstreams: upstreams.into(), settings }
    }

    /// For LLM providers: [`Statuses::LLM`], and an idempotency key for each call that needs one.
    /// Goes with upstreams of [`Policy::LLM`](holdoff::Policy::LLM).
    pub fn llm(upstreams: impl Into<Upstreams<BUCKETS>>) -> Self {
        Self::new(upstreams).with_statuses(Statuses::LLM).with_idempotency_keys()
    }

    /// The same guard, with another table of statuses.
    pub const fn with_statuses(mut self, statuses: Statuses) -> Self {
        self.settings.statuses = statuses;
        self
    }

    /// The same guard, which attaches an `Idempotency-Key`, a random UUID, to every request whose
    /// method is not idempotent and which has none: the same on every attempt of a call, and never
    /// on another call. Such a request is then safe to repeat, *if the server knows the header*.
    pub const fn with_idempotency_keys(mut self) -> Self {
        self.settings.attaches_keys = true;
        self
    }

    /// The same guard, which says in the header `name` which attempt a request is, from 1. Off if
    /// not set.
    ///
    /// For servers of your own: it is there only if somebody tries again, so the server's own calls
    /// to others better do not ([`nesting`](crate::nesting)). A request that comes with the header
    /// already, handed on from such a client, is sent once and stops with
    /// [`Stop::Nested`](holdoff::Stop::Nested).
    pub fn with_attempt_header(mut self, name: HeaderName) -> Self {
        self.settings.attempt_header = Some(name);
        self
    }

    /// The same guard, which reads the body of an answer that is worth another try up to `limit`
    /// (bytes), for at most 1 s: for the [error code](ErrorCode) in it, and so that its connection
    /// serves the next attempt. Defaults to 16 KiB; 0 reads none.
    ///
    /// The caller can read the body of the last one nevertheless. What is longer, or slower, is
    /// left to the caller, and its connection is closed if there is another attempt.
    pub const fn with_peek(mut self, limit: usize) -> Self {
        self.settings.peek = limit;
        self
    }

    /// The same guard, `meaning` being asked what an error code means before
    /// [our own table](ErrorCode::failure); `None` leaves it to that. A failure without a hint
    /// keeps the one of the headers; `x-should-retry` goes before both.
    ///
    /// ```
    /// use holdoff_reqwest::{Failure, Guard, Policy, Upstream};
    ///
    /// let guard = Guard::new(Upstream::new(Policy::STANDARD)).with_error_codes(|code| {
    ///     (code.code == Some("tenant_suspended")).then_some(Failure::permanent())
    /// });
    /// # let _ = guard;
    /// ```
    pub fn with_error_codes(
        mut self,
        meaning: impl Fn(&ErrorCode<'_>) -> Option<Failure> + Send + Sync + 'static,
    ) -> Self {
        self.settings.codes = Codes::new(meaning);
        self
    }

    /// The same guard, and what becomes of an answer that is a failure in the end. Defaults to
    /// [`FinalFailure::AsResponse`].
    pub const fn with_final_failure(mut self, final_failure: FinalFailure) -> Self {
        self.settings.final_failure = final_failure;
        self
    }

    /// Its upstreams.
    #[must_use]
    pub const fn upstreams(&self) -> &Upstreams<BUCKETS> {
        &self.upstreams
    }
}

impl<const BUCKETS: usize> From<Upstreams<BUCKETS>> for Guard<BUCKETS> {
    fn from(upstreams: Upstreams<BUCKETS>) -> Self {
        Self::new(upstreams)
    }
}

impl<const BUCKETS: usize> From<Upstream<BUCKETS>> for Guard<BUCKETS> {
    fn from(upstream: Upstream<BUCKETS>) -> Self {
        Self::new(upstream)
    }
}

impl<const BUCKETS: usize> From<Arc<Upstream<BUCKETS>>> for Guard<BUCKETS> {
    fn from(upstream: Arc<Upstream<BUCKETS>>) -> Self {
        Self::new(upstream)
    }
}

impl<const BUCKETS: usize> From<&'static Upstream<BUCKETS>> for Guard<BUCKETS> {
    fn from(upstream: &'static Upstream<BUCKETS>) -> Self {
        Self::new(upstream)
    }
}
