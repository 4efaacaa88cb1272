//! The guard as a middleware.

use anyhow::Error as AnyError;
use holdoff::{Classify, Failure};
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{Error as MiddlewareError, Middleware, Next, Result};
use tokio::sync::Mutex;

use crate::classify::classify_error;
use crate::engine::{Again, Answers, Failed, Transport, finish, run};
use crate::error::Error;
use crate::guard::Guard;
use crate::options::RequestOptions;

/// Requests go through the guard, with the [`RequestOptions`] among their extensions, and each
/// attempt through the middlewares behind it.
///
/// An [`Error`] comes as `reqwest_middleware::Error::Middleware`: see [`Error::of`].
#[async_trait::async_trait]
impl<const BUCKETS: usize> Middleware for Guard<BUCKETS> {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let options = extensions.get::<RequestOptions>().cloned().unwrap_or_default();
        let chain = Chain { next, extensions: Mutex::new(extensions) };
        let answers = Answers { whole_body: options.whole_body };
        let again: Again = Again::Clone;
        let called = run(self, &chain, request, again, &options, &answers).await;
        let final_failure = options.final_failure.unwrap_or(self.settings.final_failure);
        called.or_else(|ended| finish(ended, final_failure)).map_err(MiddlewareError::middleware)
    }
}

impl Error {
    /// The error of a guard, in the error of a client with middlewares.
    ///
    /// ```
    /// use holdoff_reqwest::{Error, Guard, Policy, RequestOptions, Stop, Upstream};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
    ///     .with(Guard::new(Upstream::new(Policy::STANDARD)))
    ///     .build();
    /// let options = RequestOptions::new().with_deadline(Duration::ZERO);
    /// let request = client.get("http://127.0.0.1:1/").with_extension(options);
    /// let error = request.send().await.unwrap_err();
    /// assert_eq!(Error::of(&error).unwrap().stop(), Stop::Deadline);
    /// # }
    /// ```
    #[must_use]
    pub fn of(error: &MiddlewareError) -> Option<&Self> {
        match error {
            MiddlewareError::Middleware(error) => error.downcast_ref(),
            MiddlewareError::Reqwest(_) => None,
        }
    }
}

/// The middlewares behind the guard, and the client.
struct Chain<'a, 'b> {
    next: Next<'a>,
    /// Of the request: one attempt has them at a time.
    extensions: Mutex<&'b mut Extensions>,
}

impl Transport for Chain<'_, '_> {
    async fn send(&self, request: Request) -> core::result::Result<Response, Failed> {
        let mut extensions = self.extensions.lock().await;
        match self.next.clone().run(request, &mut extensions).await {
            Ok(response) => Ok(response),
            Err(MiddlewareError::Reqwest(error)) => Err(error.into()),
            Err(MiddlewareError::Middleware(error)) => {
                let failure = classify_any(&error);
                let error = error.reallocate_into_boxed_dyn_error_without_backtrace();
                Err(Failed::new(failure, error))
            }
        }
    }
}

/// What another middleware's error is: a guard's own, or one of reqwest behind it; else permanent.
fn classify_any(error: &AnyError) -> Failure {
    if let Some(error) = error.downcast_ref::<Error>() {
        return error.classify();
    }
    let mut causes = error.chain();
    let behind = causes.find_map(|error| error.downcast_ref::<reqwest::Error>());
    behind.map_or(Failure::permanent(), classify_error)
}
