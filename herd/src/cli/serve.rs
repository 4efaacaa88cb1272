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
pub(super) const AFTER_HELP: &str = include_str!("serve.txt");

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
