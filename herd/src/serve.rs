//! A provider to test against: real HTTP, a rate limit for each key, and whatever can go wrong.
//!
//! It speaks HTTP/1.1 and looks like the API of a language model: `POST /v1/messages` as
//! Anthropic's, `POST /v1/chat/completions` as OpenAI's, both whole or as a stream of events, and
//! `/anything/{status}` for everything else. Each API key has a token bucket, which is a
//! [`holdoff::Limiter`]; requests without a key share one. Without a token the answer is 429 with
//! the headers and the body of that provider. A [scenario] says what else goes wrong, and when.
//! What came in is told by `GET /stats` and `GET /arrivals.csv`, or by the [`Handle`].
//!
//! ```
//! use holdoff_herd::serve::{Server, ServerConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let server = Server::start(ServerConfig::default()).await?;
//! let url = format!("http://{}/v1/messages", server.addr());
//! // … point a client at it …
//! assert_eq!(server.stats().total.rejected, 0);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//! It knows no models, tokens or prices; each request costs one token of its bucket. It does not
//! check keys. It remembers idempotency keys and does not act on them. Whom it serves it
//! remembers until it ends: it is made for a test, not to stand on the internet.

mod body;
mod connection;
mod desk;
mod dialect;
mod handler;
mod ledger;
mod limits;
mod plan;
pub mod scenario;
mod text;

use core::fmt;
use core::net::{Ipv4Addr, SocketAddr};
use core::num::NonZeroU32;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use holdoff::{ConfigError, Quota};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::handler::Handler;
pub use self::ledger::{Arrival, Counts, Outcome, Stats};
use self::scenario::{Scenario, ScenarioError};
use crate::rate::Rate;

/// What the provider is like.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where it listens. Port 0, the default on loopback, is any free one.
    pub addr: SocketAddr,
    /// Requests it answers a second, for each key; 10 by default.
    pub rate: Rate,
    /// Requests it answers at once, for each key; 20 by default.
    pub burst: NonZeroU32,
    /// The round trip, half of it each way; none by default.
    pub latency: Duration,
    /// What goes wrong; nothing by default.
    pub scenario: Scenario,
    /// How long answers in flight may take when it is told to stop; 5 s by default.
    pub drain: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        const BURST: NonZeroU32 = NonZeroU32::new(20).unwrap();
        const RATE: Rate = Rate::from_micros(10_000_000).unwrap();
        Self {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            rate: RATE,
            burst: BURST,
            latency: Duration::ZERO,
            scenario: Scenario::default(),
            drain: Duration::from_secs(5),
        }
    }
}

/// Starts providers.
#[derive(Clone, Copy, Debug)]
pub struct Server;

impl Server {
    /// A provider that serves from now on, on the tokio runtime this is called on.
    ///
    /// # Errors
    /// [`StartError`] for a limit that no limiter has, a scenario that cannot be played, or an
    /// address that cannot be listened to.
    pub async fn start(config: ServerConfig) -> Result<Handle, StartError> {
        let ServerConfig { addr, rate, burst, latency, scenario, drain } = config;
        let quota = limit(rate, burst).map_err(StartError::Quota)?;
        scenario.check().map_err(StartError::Scenario)?;
        let listener = TcpListener::bind(addr).await.map_err(StartError::Bind)?;
        let addr = listener.local_addr().map_err(StartError::Bind)?;
        let handler = Arc::new(Handler::new(quota, &scenario, latency));
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(connection::serve(listener, Arc::clone(&handler), stopped, drain));
        Ok(Handle { addr, handler, stop, task })
    }
}

/// A provider that serves. Dropped, it takes no more connections and finishes by itself.
#[derive(Debug)]
#[must_use = "dropped, it serves no longer"]
pub struct Handle {
    addr: SocketAddr,
    handler: Arc<Handler>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Handle {
    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What became of the requests so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.handler.desk().ledger().stats().clone()
    }

    /// The requests so far, the first million of them, in the order in which they came.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.handler.desk().ledger().arrivals().to_vec()
    }

    /// Takes no more connections, finishes the answers in flight within
    /// [`drain`](ServerConfig::drain), and cuts off those that take longer.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        // It neither panics nor is aborted; and if it did, it would serve no longer, either.
        let _ = self.task.await;
    }
}

/// Why there is no provider.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened to.
    Bind(io::Error),
    /// No limiter has this rate and burst.
    Quota(ConfigError),
    /// The scenario cannot be played.
    Scenario(ScenarioError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(error) => write!(f, "the address cannot be listened to: {error}"),
            Self::Quota(error) => write!(f, "the burst is too high for the rate: {error}"),
            Self::Scenario(error) => write!(f, "the scenario cannot be played: {error}"),
        }
    }
}

impl core::error::Error for StartError {}

/// The limit as [`Limiter`] has it.
pub(crate) const fn limit(rate: Rate, burst: NonZeroU32) -> Result<Quota, ConfigError> {
    Quota::new(holdoff::Rate::every(rate.time_per_token()), burst.get())
}
