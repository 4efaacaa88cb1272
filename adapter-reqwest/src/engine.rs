//! One logical call: what both forms have in common.

use core::error::Error as StdError;
use core::future::Future;
use core::hash::{Hash, Hasher};
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::hash::DefaultHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdoff::http::method_safety;
use holdoff::{Attempt, Class, Failure, Outcome, Safety, Sent};
use holdoff_tokio::{GaveUp, Nesting};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Request, Response};

use tokio::time::Instant;
use url::{Position, Url};

use crate::body;
use crate::classify::{classify_error, judge};
use crate::error::{Ended, Error, Last, TimedOut};
use crate::guard::{Guard, Settings};
use crate::options::{FinalFailure, RequestOptions};
use crate::redirects::watched;
use crate::trace::Span;

/// Where requests are sent.
pub(crate) trait Transport: Sync {
    fn send(&self, request: Request) -> impl Future<Output = Result<Response, Failed>> + Send;
}

/// How to have another request like the first.
pub(crate) enum Again<F = fn() -> reqwest::Result<Request>> {
    Build(F),
    Clone,
}

/// What is done with an answer that is a success, as a part of the attempt.
pub(crate) trait Reading: Sync {
    type Output: Send;

    fn read(
        &self,
        settings: &Settings,
        response: Response,
    ) -> impl Future<Output = Result<Self::Output, Failed>> + Send;
}

/// An attempt that failed.
pub(crate) struct Failed {
    pub(crate) failure: Failure,
    pub(crate) last: Last,
}

impl Failed {
    pub(crate) fn answered(failure: Failure, response: Response) -> Self {
        Self { failure, last: Last::Response(Box::new(response)) }
    }

    pub(crate) fn new(failure: Failure, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { failure, last: Last::Error(error.into()) }
    }
}

impl From<reqwest::Error> for Failed {
    fn from(error: reqwest::Error) -> Self {
        Self::new(classify_error(&error), error)
    }
}

/// Answers as they come, or with their whole body.
pub(crate) struct Answers {
    pub(crate) whole_body: Option<usize>,
}

impl Reading for Answers {
    type Output = Response;

    async fn read(&self, _settings: &Settings, response: Response) -> Result<Response, Failed> {
        match self.whole_body {
            Some(limit) => Ok(body::whole(response, limit).await?),
            None => Ok(response),
        }
    }
}

/// Makes the call, from the first attempt to the last.
pub(crate) async fn run<const BUCKETS: usize, F, R>(
    guard: &Guard<BUCKETS>,
    transport: &impl Transport,
    request: Request,
    again: Again<F>,
    options: &RequestOptions,
    reading: &R,
) -> Result<R::Output, Ended>
where
    F: FnMut() -> reqwest::Result<Request> + Send,
    R: Reading,
{
    let Guard { upstreams, settings } = guard;
    let first = &request;
    let upstream = upstreams.of(first, options);

    let key = idempotency_key(settings, first, options);
    let safety = match options.safety {
        _ if !again.is_possible(first) => Safety::Once,
        Some(safety) => safety,
        None if key.is_some() => Safety::Idempotent,
        None => method_safety(first.method().as_str().as_bytes()),
    };

    let mut prepared = upstream.prepare().with_safety(safety);
    if let Some(policy) = options.policy {
        prepared = prepared.with_policy(policy);
    }
    if let Some(deadline) = options.deadline {
        prepared = prepared.with_deadline(deadline);
    }
    if let Some(most) = options.max_attempts {
        prepared = prepared.with_max_attempts(most);
    }
    if let Some(cost) = options.cost {
        prepared = prepared.with_cost(cost);
    }

    let attempt_header = settings.attempt_header.as_ref();
    let is_handed_on = attempt_header.is_some_and(|name| first.headers().contains_key(name));
    let nesting = if is_handed_on { Nesting::inside() } else { Nesting::current() };
    let mut is_nested = nesting.is_inside();
    if options.retries_although_nested {
        prepared = prepared.retry_although_nested();
        is_nested = false;
    }
    let policy = options.policy.as_ref().unwrap_or_else(|| upstream.policy());
    let most = match options.max_attempts.unwrap_or(policy.max_attempts()).get() {
        _ if is_nested || safety == Safety::Once => 1,
        most => most,
    };
    let is_announced = !is_handed_on && (nesting.is_inside() || most > 1);
    // What does no harm twice need not be told whether it was answered by a redirect.
    let is_tracked = safety != Safety::Idempotent || key.is_some();
    let marks = Marks { key, attempt_header: attempt_header.filter(|_| is_announced) };

    // Both are locked by one task only: what is called and polled below takes turns.
    let source = Mutex::new(Source { request: Some(request), again, marks, most });
    let attempt = pin!(None);
    let slot = Mutex::new(Slot { attempt, last: None, failure: None, in_flight: None });
    let operation = |attempt: Attempt| {
        let mut locked = lock(&slot);
        locked.last = locked.last.take().map(Last::release);
        locked.in_flight = Some(attempt);
        let work = make_attempt(settings, transport, reading, &source, attempt, is_tracked);
        locked.attempt.set(Some(work));
        InPlace(&slot)
    };
    let classify = |attempted: Result<R::Output, Failed>| {
        let mut slot = lock(&slot);
        slot.in_flight = None;
        attempted.map_err(|Failed { failure, last }| {
            (slot.last, slot.failure) = (Some(last), Some(failure));
            (failure, ())
        })
    };
    let call = pin!(prepared.run_with(classify, operation));
    nesting.scope(call).await.map_err(|gave_up| {
        let mut slot = lock(&slot);
        let (last, failure, in_flight) = (slot.last.take(), slot.failure, slot.in_flight);
        let timed_out = in_flight.map(|attempt| match policy.attempt_timeout() {
            Some(timeout) if Some(timeout) == attempt.timeout() => TimedOut::Attempt,
            _ => TimedOut::Deadline,
        });
        let failure = if timed_out.is_some() { Some(Failure::transient()) } else { failure };
        Ended { gave_up, last, timed_out, failure }
    })
}

/// What is kept between attempts.
struct Slot<'a, A> {
    /// The one in flight.
    attempt: Pin<&'a mut Option<A>>,
    last: Option<Last>,
    failure: Option<Failure>,
    /// Still set in the end, if it was cut off.
    in_flight: Option<Attempt>,
}

/// Where the request of each attempt comes from.
struct Source<'a, F> {
    /// Until it is sent.
    request: Option<Request>,
    again: Again<F>,
    marks: Marks<'a>,
    /// How many attempts there may be.
    most: u32,
}

impl<F: FnMut() -> reqwest::Result<Request>> Source<'_, F> {
    /// The request of `attempt`: the last clone of a request is the request itself.
    fn next(&mut self, attempt: Attempt) -> Result<Request, Failed> {
        if let Again::Build(build) = &mut self.again
            && attempt.number > 1
        {
            self.request = Some(build()?);
        }
        // Where it is: to move a request takes as long as to mark it.
        if let Some(request) = &mut self.request {
            self.marks.put_on(request, attempt);
        }
        let request = match &self.again {
            Again::Clone if attempt.number < self.most => {
                self.request.as_ref().and_then(Request::try_clone)
            }
            Again::Build(_) | Again::Clone => self.request.take(),
        };
        request.ok_or_else(|| Failed::new(Failure::permanent(), "the request is gone"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The attempt in the slot, which it ends when it is dropped. The layers that run it hand this on:
/// each would move the request and all of its future otherwise.
struct InPlace<'a, 'b, A>(&'a Mutex<Slot<'b, A>>);

impl<A: Future> Future for InPlace<'_, '_, A> {
    type Output = A::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A::Output> {
        let mut slot = lock(self.0);
        // It is there as long as this is.
        slot.attempt.as_mut().as_pin_mut().map_or(Poll::Pending, |attempt| attempt.poll(context))
    }
}

impl<A> Drop for InPlace<'_, '_, A> {
    fn drop(&mut self) {
        lock(self.0).attempt.set(None);
    }
}

impl<F> Again<F> {
    fn is_possible(&self, request: &Request) -> bool {
        match self {
            Self::Build(_) => true,
            // A body that is no bytes is a stream.
            Self::Clone => request.body().is_none_or(|body| body.as_bytes().is_some()),
        }
    }
}

/// The headers that are ours.
struct Marks<'a> {
    key: Option<HeaderValue>,
    attempt_header: Option<&'a HeaderName>,
}

impl Marks<'_> {
    fn put_on(&self, request: &mut Request, attempt: Attempt) {
        if let Some(key) = &self.key {
            request.headers_mut().insert(IDEMPOTENCY_KEY, key.clone());
        }
        if let Some(name) = self.attempt_header {
            request.headers_mut().insert(name, attempt.number.into());
        }
    }
}

/// The key that all attempts of the call are to have: the caller's, or one of ours.
fn idempotency_key(
    settings: &Settings,
    first: &Request,
    options: &RequestOptions,
) -> Option<HeaderValue> {
    let given = first.headers().get(IDEMPOTENCY_KEY).filter(|key| !key.is_empty());
    if given.is_some() {
        return given.cloned();
    }
    let method = first.method().as_str().as_bytes();
    let needs_one = options.safety.is_none() && method_safety(method) == Safety::NonIdempotent;
    if !settings.attaches_keys || !needs_one {
        return None;
    }
    let mut text = uuid::Uuid::encode_buffer();
    let key = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(key).ok()
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

async fn make_attempt<F: FnMut() -> reqwest::Result<Request>, R: Reading>(
    settings: &Settings,
    transport: &impl Transport,
    reading: &R,
    source: &Mutex<Source<'_, F>>,
    attempt: Attempt,
    is_tracked: bool,
) -> Result<R::Output, Failed> {
    let request = lock(source).next(attempt)?;
    let span = Span::start(&request, attempt);
    let ends_at = attempt.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
    let asked = is_tracked.then(|| target(request.url()));
    let work = async {
        let (response, mut is_redirected) = watched(pin!(transport.send(request))).await;
        let read = async {
            let response = response?;
            is_redirected |= asked.is_some_and(|asked| target(response.url()) != asked);
            span.answered(response.status());
            answered(settings, reading, response, ends_at).await
        };
        read.await.map_err(|mut failed| {
            if is_redirected {
                // Whoever redirected it did answer, and may have done what was asked.
                failed.failure.sent = Sent::Maybe;
            }
            failed
        })
    };
    span.around(work).await
}

async fn answered<R: Reading>(
    settings: &Settings,
    reading: &R,
    response: Response,
    ends_at: Option<Instant>,
) -> Result<R::Output, Failed> {
    let status = response.status();
    match judge(settings.statuses, status, response.headers()) {
        (Outcome::Ignored | Outcome::Success, _) => reading.read(settings, response).await,
        (Outcome::Failure(failure), _) if failure.class == Class::Permanent => {
            Err(Failed::answered(failure, response))
        }
        (Outcome::Failure(mut failure), is_servers_own_word) => {
            let (response, body) = body::peek(response, settings.peek, ends_at).await;
            if let Some(body) = body.filter(|_| !is_servers_own_word) {
                failure = settings.codes.refine(failure, status.as_u16(), &body);
            }
            Err(Failed::answered(failure, response))
        }
    }
}

/// What tells one URL from another on the wire, without an allocation.
fn target(url: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    (url.scheme(), &url[Position::BeforeHost..Position::AfterQuery]).hash(&mut hasher);
    hasher.finish()
}

/// The answer that is to come back although it is a failure, or the error.
pub(crate) fn finish(ended: Ended, final_failure: FinalFailure) -> Result<Response, Error> {
    match ended {
        Ended { gave_up, last: Some(Last::Response(mut response)), timed_out: None, .. }
            if final_failure == FinalFailure::AsResponse =>
        {
            response.extensions_mut().remove::<body::InMemory>();
            response.extensions_mut().insert::<GaveUp<()>>(gave_up);
            Ok(*response)
        }
        ended => Err(ended.into()),
    }
}
