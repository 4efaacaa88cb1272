//! The arguments of `herd serve`.

use core::net::SocketAddr;
use core::num::NonZeroU32;
use core::time::Duration;
use std::path::PathBuf;

use clap::Args;

use super::whole;
use crate::error::Error;
use crate::rate::Rate;
use crate::serve::scenario::Scenario;
use crate::serve::{ServerConfig, limit};

/// What `--help` says below the flags.
pub(super) const AFTER_HELP: &str = r#"The first line on stdout is the address, http://127.0.0.1:PORT. SIGINT or SIGTERM ends it
with exit code 0, after the answers in flight (5 s at most).

Endpoints:
  POST /v1/messages          as Anthropic's; whole, or a stream of events with "stream": true
  POST /v1/chat/completions  as OpenAI's, likewise
  any  /anything/STATUS      answers that status (200 to 599) and what it was sent
  GET  /stats                requests, ok, rejected, failed, broken; by key; idempotency keys
  GET  /arrivals.csv         each request: time, key, method, path, attempt, status, outcome
Each API key (x-api-key, or authorization: bearer) has a bucket of its own; requests without one
share theirs. Without a token the answer is 429 with retry-after, the provider's own headers, and
RateLimit and RateLimit-Policy.

Scenario: a list of steps, each with `when` (optional) and `then`.
  [[step]]
  when = { from = "2s", until = "10s", path = "/v1/*", probability = 0.5 }
  then = { kind = "status", status = 503 }
when   from, until          time since the first request, as "1m 30s"
       first, last          number of the request, from 1, of those the path fits
       path                 exactly this one, or what begins so with * at the end
       probability          0 to 1; the draws come from `seed`, a number at the top of the file
then   status               status = 400 to 599 (529: overloaded)
       quota                429 without a hint: spending limit, insufficient_quota
       hint                 form = "seconds", "http-date", "milliseconds" or "omitted";
                            retry_after = "2s"; should_retry = true or false
       slow                 delay = "1s"; trickle = { bytes = 8, every = "20ms" }
       reset                the connection; after_bytes = N: of the body, else before any answer
       cut                  a stream, after_events = N
       overloaded           a stream, with an error event, after_events = N
       limit                rate, burst: for everybody, from `from` until `until`
Kinds add up. Of several steps of one kind that apply, of status and quota, and of cut and
overloaded, the first counts; of limits the last."#;

#[derive(Args, Debug)]
pub(super) struct ServeArguments {
    /// Where to listen; port 0 is any free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    addr: SocketAddr,

    /// Requests answered a second, for each API key, 0.000001 to 1000000
    #[arg(long, value_name = "R", default_value = "10", allow_hyphen_values = true)]
    rate: Rate,

    /// Requests answered at once, for each API key, 1 to 4294967295
    #[arg(long, value_name = "N", default_value = "20")]
    #[arg(value_parser = whole::<NonZeroU32, 1, 4_294_967_295>, allow_hyphen_values = true)]
    burst: NonZeroU32,

    /// Round trip in milliseconds, half of it each way, 0 to 3600000
    #[arg(long, value_name = "L", default_value = "50")]
    #[arg(value_parser = whole::<u64, 0, 3_600_000>, allow_hyphen_values = true)]
    latency_ms: u64,

    /// What goes wrong, and when: TOML, or JSON in a file that ends in .json
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

impl ServeArguments {
    pub(super) fn into_config(self) -> Result<ServerConfig, Error> {
        let Self { addr, rate, burst, latency_ms, scenario } = self;
        limit(rate, burst).map_err(|error| {
            Error::Arguments(format!("--burst is too high for --rate: {error}"))
        })?;
        let scenario = match scenario {
            Some(path) => Scenario::read(&path)
                .map_err(|error| Error::Arguments(format!("--scenario {path:?}: {error}")))?,
            None => Scenario::default(),
        };
        let latency = Duration::from_millis(latency_ms);
        Ok(ServerConfig { addr, rate, burst, latency, scenario, ..ServerConfig::default() })
    }
}
