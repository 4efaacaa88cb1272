//! One run over real HTTP, in real time: the simulator's clients call a provider that
//! [serves](crate::serve) on loopback.
//!
//! The clients are the same state machines that follow the same rules; only clock, sleep and
//! transport are real. The provider has a thread of its own, so that it answers, and notes when
//! requests came, while the clients are busy. Every client has a connection of its own that is
//! open before time 0: what is measured is requests, not connecting.

mod caller;
mod record;

use core::cell::RefCell;
use core::error::Error;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;
use std::io;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use holdoff::{Instant, Limiter};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tokio::runtime;
use tokio::time::{MissedTickBehavior, interval, sleep};

use self::caller::{Caller, Shared};
use self::record::{Answers, Record};
use crate::client::Client;
use crate::serve::{Handle, Server, ServerConfig, StartError};
use crate::sim::{Observer, Scenario, Totals};

/// Enough for a bar that moves, and for nobody to wait for the end of an interrupted run.
const TICK: Duration = Duration::from_millis(100);
/// For the connections to come to rest before time 0.
const REST: Duration = Duration::from_millis(50);

/// One run of `scenario` from time 0, when all clients call, until each has its final answer.
///
/// Arrivals are those in the provider's own record, counted from the first. All chance of the
/// clients comes from `random`; which of them the provider serves, real time decides.
///
/// # Errors
/// [`WireError`]; the observer's is one of them.
pub fn run(
    scenario: &Scenario,
    observer: &mut impl Observer,
    random: &mut impl Rng,
) -> Result<Totals, WireError> {
    let setup = scenario.setup();
    let config = ServerConfig {
        rate: setup.rate(),
        burst: NonZeroU32::new(setup.burst()).unwrap_or(NonZeroU32::MIN),
        latency: setup.round_trip(),
        ..ServerConfig::default()
    };
    let provider = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(WireError::Runtime)?;
    let clients =
        runtime::Builder::new_current_thread().enable_all().build().map_err(WireError::Runtime)?;
    let server = provider.block_on(Server::start(config)).map_err(WireError::Start)?;
    // What is still open when the runtimes go, goes with them.
    clients.block_on(call_all(scenario, &server, observer, random))
}

async fn call_all(
    scenario: &Scenario,
    server: &Handle,
    observer: &mut impl Observer,
    random: &mut impl Rng,
) -> Result<Totals, WireError> {
    let mut callers = Vec::new();
    for number in 0..scenario.setup().clients() {
        callers.push(Caller::connect(number, server.addr()).await?);
        observer.on_tick()?;
    }
    sleep(REST).await;

    let rules = scenario.strategy().rules();
    let limiter = scenario.quota().map(Limiter::new);
    let answers = RefCell::new(Answers::new(scenario.setup().clients()));
    let mut record = Record::new(&answers);
    let mut successes = Vec::new();
    let shared = Shared::new(rules.header, &answers);
    let mut calls: FuturesUnordered<_> = callers
        .iter()
        .map(|caller| {
            let client = Client::new(rules, limiter.as_ref(), Instant::EPOCH);
            // One each, so that the order in which they draw, which real time decides, does not
            // change what they draw.
            let random = Xoshiro256PlusPlus::seed_from_u64(random.next_u64());
            caller.call(client, &shared, random)
        })
        .collect();
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.reset();
    loop {
        tokio::select! {
            biased;
            done = calls.next() => {
                let Some(done) = done else { break };
                let done = done?;
                if done.ok {
                    successes.push(done.at);
                }
                observer.on_done(&done)?;
            }
            _ = tick.tick() => {
                record.tell(&server.arrivals(), observer)?;
                observer.on_tick()?;
            }
        }
    }
    let (requests, rejected) = record.finish(&server.arrivals(), observer)?;
    Ok(Totals { requests, rejected, successes })
}

/// Why a run over HTTP has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum WireError {
    /// The provider answered this status, which is none of its answers; or 429 without a
    /// `retry-after` in whole seconds.
    Answer(u16),
    /// This client, from 0, has no connection.
    Connect(u32, reqwest::Error),
    /// Whoever watches cannot go on.
    Observer(io::Error),
    /// The provider's record and what the clients were answered differ.
    Record,
    /// A request had no answer.
    Request(reqwest::Error),
    /// The runtimes cannot be started.
    Runtime(io::Error),
    /// The provider cannot be started.
    Start(StartError),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(429) => f.write_str("the provider answered 429 without retry-after"),
            Self::Answer(status) => write!(f, "the provider answered {status}"),
            Self::Connect(client, error) => {
                write!(f, "client {client} cannot connect: {}", root(error))
            }
            Self::Observer(error) => error.fmt(f),
            Self::Record => {
                f.write_str("the provider's record is not what the clients were answered")
            }
            Self::Request(error) => write!(f, "a request had no answer: {}", root(error)),
            Self::Runtime(error) => write!(f, "the runtime cannot be started: {error}"),
            Self::Start(error) => error.fmt(f),
        }
    }
}

impl Error for WireError {}

/// The observer's.
impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        Self::Observer(error)
    }
}

/// What is at the bottom of it: the rest repeats the address.
fn root(error: &reqwest::Error) -> &dyn Error {
    let mut root: &dyn Error = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root
}
