//! What can be set for one request alone.

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Arc;

use holdoff::{Policy, Safety};

/// What becomes of an answer that is a failure (400 and above), once there is no further attempt.
///
/// ```
/// use holdoff_reqwest::{FinalFailure, Guard, Policy, RequestOptions, Upstream};
///
/// // Everywhere, or for one request.
/// let guard = Guard::new(Upstream::new(Policy::STANDARD))
///     .with_final_failure(FinalFailure::AsError);
/// let options = RequestOptions::new().with_final_failure(FinalFailure::AsResponse);
/// # let _ = (guard, options);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FinalFailure {
    /// It comes as an [`Error`](crate::Error), answer included.
    AsError,
    /// It comes as it would without a guard, status, headers and body intact; why there is no
    /// further attempt is among its extensions, as a [`GaveUp<()>`](crate::GaveUp). The default.
    #[default]
    AsResponse,
}

/// What is different for one request. Nothing is, if nothing is set.
///
/// For [`Guarded::execute_with`](crate::Guarded::execute_with), or as an extension of a request
/// that goes through the middleware:
///
#[cfg_attr(feature = "middleware", doc = "```")]
#[cfg_attr(not(feature = "middleware"), doc = "```ignore")]
/// # async fn example() -> Result<(), reqwest_middleware::Error> {
/// use holdoff_reqwest::{Guard, Policy, RequestOptions, Safety, Upstream};
/// use std::time::Duration;
///
/// let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
///     .with(Guard::new(Upstream::new(Policy::STANDARD)))
///     .build();
/// let options = RequestOptions::new()
///     .with_deadline(Duration::from_secs(5))
///     .with_safety(Safety::Idempotent); // this POST only reads
/// client.post("https://example.org/search").with_extension(options).send().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until a request is made with them"]
pub struct RequestOptions {
    pub(crate) policy: Option<Policy>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_attempts: Option<NonZeroU32>,
    pub(crate) cost: Option<u32>,
    pub(crate) safety: Option<Safety>,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) final_failure: Option<FinalFailure>,
    pub(crate) whole_body: Option<usize>,
    pub(crate) retries_although_nested: bool,
}

impl RequestOptions {
    /// Nothing is different.
    pub const fn new() -> Self {
        Self {
            policy: None,
            deadline: None,
            max_attempts: None,
            cost: None,
            safety: None,
            key: None,
            final_failure: None,
            whole_body: None,
            retries_although_nested: false,
        }
    }

    /// Tried again by `policy` instead of the upstream's.
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Over `deadline` after it starts, all attempts and waits included.
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// At most so many attempts, the first included.
    pub const fn with_max_attempts(mut self, max_attempts: NonZeroU32) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// Each attempt costs `cost` tokens of the upstream's limiter. 1 if not set.
    pub const fn with_cost(mut self, cost: u32) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Repeated after a failure in which it may have been processed only if `safety` allows. By its
    /// method and its idempotency key if not set.
    pub const fn with_safety(mut self, safety: Safety) -> Self {
        self.safety = Some(safety);
        self
    }

    /// Made through the upstream of `key` instead of its host's; nothing if all requests share one.
    pub fn with_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// What becomes of an answer that is a failure in the end.
    pub const fn with_final_failure(mut self, final_failure: FinalFailure) -> Self {
        self.final_failure = Some(final_failure);
        self
    }

    /// The whole body of a success is read as a part of the attempt, up to `limit` (bytes): an
    /// answer that breaks off is tried again, if that is safe, and reading the one that comes back
    /// cannot fail.
    ///
    /// What is longer than `limit` comes back with the rest still to be read, which can, and so can
    /// reading the body of a failure.
    pub const fn with_whole_body(mut self, limit: usize) -> Self {
        self.whole_body = Some(limit);
        self
    }

    /// Tried again even if it is made inside of another call that is.
    pub const fn retry_although_nested(mut self) -> Self {
        self.retries_although_nested = true;
        self
    }
}
