//! A hundred calls at once, through the middleware, to a provider that answers 20 of them and then
//! 10 a second. The limiter knows that, so nobody is rejected and nobody waits longer than needed:
//! `cargo run -p holdoff-reqwest --features middleware --example herd`.
//!
//! Prints the row that `herd run` prints for the strategy `limiter`; takes 8 s. Exits with 1 if a
//! call fails or a request is rejected.

use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use futures_util::future::join_all;
use holdoff::{Clock, MonotonicClock};
use holdoff_herd::experiment::Row;
use holdoff_herd::serve::{Server, ServerConfig};
use holdoff_herd::setup::Setup;
use holdoff_herd::sim::Totals;
use holdoff_herd::strategy::Strategy;
use holdoff_herd::table;
use holdoff_reqwest::{Guard, Policy, Quota, Rate, Upstream, valid};
use http::Extensions;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};

const BODY: &str = r#"{"model":"herd","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#;

const BURST: u32 = 20;

/// From the permit that a call had to wait for to its request.
///
/// The limiter counts from when the first request was sent, the provider from when it came. At
/// exactly the same rate, a request that is quicker on its way than the first one was would find
/// the provider a moment short of a token.
const MARGIN: Duration = Duration::from_millis(100);

static PROVIDER: Upstream =
    Upstream::new(Policy::LLM).with_limiter(valid!(Quota::new(Rate::per_second(10), BURST)));

#[tokio::main]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    let setup = Setup::PUBLISHED;
    let config = ServerConfig {
        rate: setup.rate(),
        burst: NonZeroU32::new(setup.burst()).ok_or("a burst of 0")?,
        ..ServerConfig::default()
    };
    let server = Server::start(config).await?;

    let http = reqwest::Client::builder().no_proxy().build()?;
    // So that the first request of the hundred has no longer a way than the others.
    http.get(format!("http://{}/stats", server.addr())).send().await?.bytes().await?;
    let client = ClientBuilder::new(http)
        .with(Guard::llm(&PROVIDER))
        .with(Margin { sent: AtomicU32::new(0) })
        .build();

    let (url, clock) = (format!("http://{}/v1/messages", server.addr()), MonotonicClock::new());
    let calls = (0..setup.clients()).map(async |_| {
        let is_ok = call(&client, &url).await.inspect_err(|error| eprintln!("{error}")).is_ok();
        is_ok.then(|| clock.now())
    });
    let mut successes: Vec<_> = join_all(calls).await.into_iter().flatten().collect();
    successes.sort();

    let counts = server.stats().total;
    server.shutdown().await;
    let totals = Totals { requests: counts.requests, rejected: counts.rejected, successes };
    println!("{}", table::bare(&[Row::of(Strategy::Limiter, &totals)], &setup));

    let figures = (totals.successes.len(), totals.requests, totals.rejected);
    if figures == (100, 100, 0) {
        Ok(())
    } else {
        Err(format!("ok, requests and rejected are not 100, 100 and 0: {figures:?}").into())
    }
}

async fn call(client: &ClientWithMiddleware, url: &str) -> reqwest_middleware::Result<()> {
    let request = client.post(url).header(CONTENT_TYPE, "application/json").body(BODY);
    request.send().await?.error_for_status()?.bytes().await?;
    Ok(())
}

/// Behind the guard: what is beyond the burst has waited for its permit.
struct Margin {
    sent: AtomicU32,
}

#[async_trait::async_trait]
impl Middleware for Margin {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        if self.sent.fetch_add(1, Ordering::Relaxed) >= BURST {
            tokio::time::sleep(MARGIN).await;
        }
        next.run(request, extensions).await
    }
}
