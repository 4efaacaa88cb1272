//! A client with a connection: what asks its state machine and does what it says.

use core::cell::RefCell;
use core::mem;
use core::net::SocketAddr;
use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::{Clock, Instant, MonotonicClock, Step};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use reqwest::header::RETRY_AFTER;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::sleep;

use super::WireError;
use super::record::Answers;
use crate::client::{Client, outcome};
use crate::provider::Verdict;
use crate::sim::Done;
use crate::strategy::Header;

/// From the permit that a client had to wait for to its request.
///
/// The limiter counts from when the first request was sent, the provider from when it came. The
/// first comes in a crowd; one that is quicker on its way would find the provider a moment short of
/// a token, and so would every one after it, for both count at exactly the same rate.
const MARGIN: Duration = Duration::from_millis(100);
/// The longest wait for a connection. Where there are no more sockets, there may be no error.
const CONNECT_MAX: Duration = Duration::from_secs(5);

const BODY: &str = r#"{"model":"herd","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#;

/// What all clients have in common.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    /// Starts at time 0.
    clock: MonotonicClock,
    header: Header,
    /// Those who want a permit of the limiter, in order. Only the head asks and sleeps.
    line: Semaphore,
    answers: &'a RefCell<Answers>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(header: Header, answers: &'a RefCell<Answers>) -> Self {
        Self { clock: MonotonicClock::new(), header, line: Semaphore::new(1), answers }
    }

    async fn sleep_until(&self, until: Instant) {
        sleep(until.saturating_duration_since(self.clock.now())).await;
    }
}

/// One client.
#[derive(Debug)]
pub(super) struct Caller {
    number: u32,
    http: reqwest::Client,
    url: String,
    idempotency_key: String,
}

impl Caller {
    /// With a connection that is open and idle.
    pub(super) async fn connect(number: u32, addr: SocketAddr) -> Result<Self, WireError> {
        let failed = |error| WireError::Connect(number, error);
        let http = reqwest::Client::builder()
            .no_proxy()
            .retry(reqwest::retry::never())
            .pool_idle_timeout(None)
            .build()
            .map_err(failed)?;
        let statistics = http.get(format!("http://{addr}/stats")).timeout(CONNECT_MAX).send().await;
        statistics.map_err(failed)?.bytes().await.map_err(failed)?;
        let url = format!("http://{addr}/v1/messages");
        Ok(Self { number, http, url, idempotency_key: number.to_string() })
    }

    /// Calls until there is a final answer.
    pub(super) async fn call(
        &self,
        mut client: Client<'_>,
        shared: &Shared<'_>,
        mut random: Xoshiro256PlusPlus,
    ) -> Result<Done, WireError> {
        let clock = &shared.clock;
        let mut place: Option<SemaphorePermit<'_>> = None;
        let mut has_waited = false;
        loop {
            if place.is_none() && client.wants_permit(clock.now()) {
                place = shared.line.try_acquire().ok();
                if place.is_none() {
                    has_waited = true;
                    place = shared.line.acquire().await.ok(); // Nobody closes the line.
                }
            }
            let step = client.poll(clock.now(), || random.next_u64());
            if !matches!(step, Step::Throttled { .. }) {
                place = None;
            }
            match step {
                Step::Attempt(attempt) => {
                    if mem::take(&mut has_waited) {
                        sleep(MARGIN).await;
                    }
                    let verdict = self.request(attempt.number).await?;
                    let now = clock.now();
                    shared.answers.borrow_mut().add(self.number, verdict);
                    client.record(now, outcome(verdict, shared.header));
                }
                Step::Backoff { until, .. } => shared.sleep_until(until).await,
                Step::Throttled { until } => {
                    has_waited = true;
                    shared.sleep_until(until).await;
                }
                Step::Done | Step::Stop(_) => {
                    let (client, attempts) = (self.number, client.attempts());
                    return Ok(Done { at: clock.now(), client, attempts, ok: step == Step::Done });
                }
            }
        }
    }

    async fn request(&self, attempt: u32) -> Result<Verdict, WireError> {
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("idempotency-key", &self.idempotency_key)
            .header("x-stainless-retry-count", attempt.saturating_sub(1))
            .body(BODY);
        let response = request.send().await.map_err(WireError::Request)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| {
            let seconds: Option<NonZeroU32> = value.to_str().ok()?.parse().ok();
            seconds
        });
        // To its end, so that the connection can be used again.
        response.bytes().await.map_err(WireError::Request)?;
        match (status, retry_after) {
            (200, _) => Ok(Verdict::Accepted),
            (429, Some(retry_after)) => Ok(Verdict::Rejected { retry_after }),
            _ => Err(WireError::Answer(status)),
        }
    }
}
