//! A client whose requests all go through a guard.

use core::future::{Future, poll_fn};
use core::pin::pin;
use std::sync::Arc;

use reqwest::{Client, Request, RequestBuilder, Response};

use crate::engine::{Again, Answers, Failed, Transport, finish, run};
use crate::error::Error;
use crate::events::{Events, FirstEvent};
use crate::guard::Guard;
use crate::options::RequestOptions;

/// A client of reqwest whose requests all go through a [`Guard`]. Clones share both.
///
/// ```
/// use holdoff_reqwest::{Error, Guarded, Policy, Upstream};
///
/// async fn fetch(client: reqwest::Client) -> Result<(), Error> {
///     let guarded = Guarded::new(client, Upstream::new(Policy::INTERACTIVE));
///     let response = guarded.send(|client| client.get("https://example.org/")).await?;
///     println!("{}", response.status());
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Guarded<const BUCKETS: usize = 0> {
    client: Client,
    guard: Arc<Guard<BUCKETS>>,
}

impl<const BUCKETS: usize> Guarded<BUCKETS> {
    /// Requests of `client` through `guard`; upstreams alone will do, for [`Guard::new`].
    #[must_use]
    pub fn new(client: Client, guard: impl Into<Guard<BUCKETS>>) -> Self {
        Self { client, guard: Arc::new(guard.into()) }
    }

    /// The client behind it, to build requests with.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The guard.
    pub fn guard(&self) -> &Guard<BUCKETS> {
        &self.guard
    }

    /// Sends `request`, and sends it again until it succeeds or it is time to stop.
    ///
    /// Every attempt but the last possible one sends a clone: method, URL, headers and a handle on
    /// the body's bytes, about four allocations. [`send`](Self::send) needs none. A body that is a
    /// stream cannot be cloned: it is sent once, and what fails then stops with
    /// [`Stop::Committed`](holdoff::Stop::Committed).
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use holdoff_reqwest::{GaveUp, Guarded, Policy, Upstream};
    ///
    /// let guarded = Guarded::new(reqwest::Client::new(), Upstream::new(Policy::INTERACTIVE));
    /// let request = guarded.client().get("https://example.org/").build()?;
    /// let response = guarded.execute(request).await?;
    /// if let Some(gave_up) = response.extensions().get::<GaveUp<()>>() {
    ///     println!("{}: {gave_up}", response.status());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error`], if there was no answer in the end or if failures are to be errors
    /// ([`FinalFailure`](crate::FinalFailure)).
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// Dropping the future ends an attempt or a wait at once; nothing more is sent.
    pub async fn execute(&self, request: Request) -> Result<Response, Error> {
        self.execute_with(request, &RequestOptions::new()).await
    }

    /// [`execute`](Self::execute), with what is different for this request.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    ///
    /// # Panics
    /// As for [`execute`](Self::execute).
    pub async fn execute_with(
        &self,
        request: Request,
        options: &RequestOptions,
    ) -> Result<Response, Error> {
        let again: Again = Again::Clone;
        self.answer(request, again, options).await
    }

    /// Sends the request that `build` makes, made anew for every attempt: nothing is cloned, and a
    /// stream can be sent again.
    ///
    /// All of them have the idempotency key of the first, if it has one. A request that cannot be
    /// built is not tried again.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    ///
    /// # Panics
    /// As for [`execute`](Self::execute).
    pub async fn send(
        &self,
        build: impl FnMut(&Client) -> RequestBuilder + Send,
    ) -> Result<Response, Error> {
        self.send_with(&RequestOptions::new(), build).await
    }

    /// [`send`](Self::send), with what is different for this request.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    ///
    /// # Panics
    /// As for [`execute`](Self::execute).
    pub async fn send_with(
        &self,
        options: &RequestOptions,
        mut build: impl FnMut(&Client) -> RequestBuilder + Send,
    ) -> Result<Response, Error> {
        let mut build = || build(&self.client).build();
        let request = build().map_err(Error::not_built)?;
        self.answer(request, Again::Build(build), options).await
    }

    /// Sends `request` and reads the answer as a stream of events (`text/event-stream`), as LLM
    /// providers send their tokens.
    ///
    /// The call goes on until the first event is there: a stream that breaks off before it, or
    /// begins with an error that is worth another try (`overloaded_error`), is one more failed
    /// attempt. After the first event nothing is sent again, as the caller has seen a part of an
    /// answer that no other attempt would go on with; what fails then comes out of
    /// [`Events::next`].
    ///
    /// ```
    /// # async fn example(request: reqwest::Request) -> Result<(), Box<dyn std::error::Error>> {
    /// use holdoff_reqwest::{Guard, Guarded, Policy, Upstream};
    ///
    /// let guard = Guard::llm(Upstream::new(Policy::LLM));
    /// let guarded = Guarded::new(reqwest::Client::new(), guard);
    /// let mut events = guarded.events(request).await?;
    /// while let Some(event) = events.next().await {
    ///     println!("{}", event?.data);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error`], also for an answer that is a failure in the end, which is in it, or that is no
    /// stream of events.
    ///
    /// # Panics
    /// As for [`execute`](Self::execute).
    pub async fn events(&self, request: Request) -> Result<Events, Error> {
        self.events_with(request, &RequestOptions::new()).await
    }

    /// [`events`](Self::events), with what is different for this request.
    ///
    /// # Errors
    /// As for [`events`](Self::events).
    ///
    /// # Panics
    /// As for [`execute`](Self::execute).
    pub async fn events_with(
        &self,
        request: Request,
        options: &RequestOptions,
    ) -> Result<Events, Error> {
        let again: Again = Again::Clone;
        let guard = &*self.guard;
        let reading = FirstEvent { codes: guard.settings.codes.clone() };
        Ok(run(guard, &self.client, request, again, options, &reading).await?)
    }

    async fn answer<F: FnMut() -> reqwest::Result<Request> + Send>(
        &self,
        request: Request,
        again: Again<F>,
        options: &RequestOptions,
    ) -> Result<Response, Error> {
        let guard = &*self.guard;
        let answers = Answers { whole_body: options.whole_body };
        let called = run(guard, &self.client, request, again, options, &answers).await;
        let final_failure = options.final_failure.unwrap_or(guard.settings.final_failure);
        called.or_else(|ended| finish(ended, final_failure))
    }
}

impl<const BUCKETS: usize> Clone for Guarded<BUCKETS> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), guard: Arc::clone(&self.guard) }
    }
}

impl Transport for Client {
    // Nothing `async`, which would keep the request, or its future, once more.
    fn send(&self, request: Request) -> impl Future<Output = Result<Response, Failed>> + Send {
        let mut sent = self.execute(request);
        poll_fn(move |context| pin!(&mut sent).poll(context).map_err(Failed::from))
    }
}
