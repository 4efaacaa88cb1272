//! The command line: what may be asked for, and one clear line where it may not.

mod serve;

use core::error::Error as _;
use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;
use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};

use self::serve::ServeArguments;
use crate::error::Error;
use crate::experiment::Medium;
use crate::probes::ProbesConfig;
use crate::rate::Rate;
use crate::serve::ServerConfig;
use crate::setup::{Setup, SetupError};
use crate::strategy::Strategy;

/// What to run and where the result goes.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) setup: Setup,
    pub(crate) strategies: Vec<Strategy>,
    pub(crate) runs: u32,
    pub(crate) seed: u64,
    pub(crate) medium: Medium,
    pub(crate) format: Format,
    pub(crate) out: Option<PathBuf>,
}

/// What to probe.
#[derive(Debug)]
pub(crate) struct ProbesOptions {
    pub(crate) config: ProbesConfig,
    pub(crate) format: Format,
}

/// What the arguments ask for.
#[derive(Debug)]
pub(crate) enum Request {
    /// `--help` or `--version`.
    Explain(clap::Error),
    Probes(ProbesOptions),
    Run(Options),
    Serve(ServerConfig),
}

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

/// What the arguments, the program's name first, ask for.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request, Error> {
    match Cli::try_parse_from(arguments) {
        Ok(cli) => match cli.command {
            Some(Command::Probes(arguments)) => Ok(Request::Probes(arguments.into_options())),
            Some(Command::Run(arguments)) => Ok(Request::Run(arguments.into_options()?)),
            Some(Command::Serve(arguments)) => Ok(Request::Serve(arguments.into_config()?)),
            None => Ok(Request::Run(cli.arguments.into_options()?)),
        },
        Err(error) if !error.use_stderr() => Ok(Request::Explain(error)),
        Err(error) => Err(Error::Arguments(one_line(&error))),
    }
}

/// Many clients, one rate limit, and what each retry strategy makes of it: in virtual time, or over
/// HTTP in real time.
#[derive(Debug, Parser)]
#[command(
    name = "herd",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    arguments: RunArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the experiment; the same as giving no command
    Run(RunArguments),
    /// Probe the circuit breaker, and what is retried
    Probes(ProbesArguments),
    /// Be a provider with a rate limit, over real HTTP, for any client
    #[command(after_long_help = serve::AFTER_HELP)]
    Serve(ServeArguments),
}

// A value that starts with a hyphen is a value, so that "-1" is told the range and not taken for a
// flag.
#[derive(Args, Debug)]
struct RunArguments {
    /// Call over real HTTP on loopback, in real time: about a minute a run for all strategies
    #[arg(long)]
    wire: bool,

    /// Runs of each strategy, 1 to 1000000; with --wire one if not said
    #[arg(long, value_name = "N", default_value = "200", default_value_if("wire", "true", "1"))]
    #[arg(value_parser = whole::<u32, 1, 1_000_000>, allow_hyphen_values = true)]
    runs: u32,

    /// Seed of everything random; the same seed gives the same result to the byte, but for --wire
    #[arg(long, value_name = "S", default_value = "1")]
    #[arg(value_parser = whole::<u64, 0, { u64::MAX }>)]
    #[arg(allow_hyphen_values = true)]
    seed: u64,

    #[arg(long, value_name = "NAMES", value_delimiter = ',', help = strategy_help())]
    #[arg(allow_hyphen_values = true)]
    strategy: Vec<Strategy>,

    /// Clients that call at time 0, 1 to 10000000, with --wire to 1000
    #[arg(long, value_name = "N", default_value = "100")]
    #[arg(value_parser = whole::<NonZeroU32, 1, 10_000_000>, allow_hyphen_values = true)]
    clients: NonZeroU32,

    /// Requests the provider answers at once, 1 to 4294967295
    #[arg(long, value_name = "N", default_value = "20")]
    #[arg(value_parser = whole::<NonZeroU32, 1, 4_294_967_295>, allow_hyphen_values = true)]
    burst: NonZeroU32,

    /// Requests it answers a second after that, 0.000001 to 1000000
    #[arg(long, value_name = "R", default_value = "10", allow_hyphen_values = true)]
    rate: Rate,

    /// Round trip in milliseconds, half of it each way, 0 to 3600000
    #[arg(long, value_name = "L", default_value = "0")]
    #[arg(value_parser = whole::<u64, 0, 3_600_000>, allow_hyphen_values = true)]
    latency_ms: u64,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    #[arg(allow_hyphen_values = true)]
    format: Format,

    /// Also write arrivals.csv, results.csv and a picture per strategy to this directory, replacing
    /// those that are there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl RunArguments {
    fn into_options(self) -> Result<Options, Error> {
        let round_trip = Duration::from_millis(self.latency_ms);
        let setup =
            Setup::new(self.clients, self.burst, self.rate, round_trip).map_err(|error| {
                Error::Arguments(match error {
                    SetupError::FloorTooLong => format!("--rate is too low for --clients: {error}"),
                    SetupError::RoundTripTooLong => format!("--latency-ms is too high: {error}"),
                })
            })?;
        let medium = if self.wire { Medium::Wire } else { Medium::VirtualTime };
        if medium == Medium::Wire {
            check_wire(&setup)?;
        }
        Ok(Options {
            setup,
            strategies: chosen(&self.strategy),
            runs: self.runs,
            seed: self.seed,
            medium,
            format: self.format,
            out: self.out,
        })
    }
}

#[derive(Args, Debug)]
struct ProbesArguments {
    /// Seed of everything random; the same seed gives the same result to the byte
    #[arg(long, value_name = "S", default_value_t = ProbesConfig::STANDARD.seed)]
    #[arg(value_parser = whole::<u64, 0, { u64::MAX }>)]
    #[arg(allow_hyphen_values = true)]
    seed: u64,

    /// Runs of the flaky service, each with chance of its own, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = ProbesConfig::STANDARD.seeds)]
    #[arg(value_parser = whole::<NonZeroU32, 1, 1_000_000>, allow_hyphen_values = true)]
    seeds: NonZeroU32,

    /// Calls that reach the flaky service in each run, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = ProbesConfig::STANDARD.calls)]
    #[arg(value_parser = whole::<NonZeroU32, 1, 1_000_000>, allow_hyphen_values = true)]
    calls: NonZeroU32,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    #[arg(allow_hyphen_values = true)]
    format: Format,
}

impl ProbesArguments {
    const fn into_options(self) -> ProbesOptions {
        let Self { seed, seeds, calls, format } = self;
        ProbesOptions { config: ProbesConfig { seed, seeds, calls }, format }
    }
}

/// Refuses what virtual time and clients without sockets can do, and real ones cannot.
fn check_wire(setup: &Setup) -> Result<(), Error> {
    const CLIENTS_MAX: u32 = 1_000;
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let refused = |text: String| Err(Error::Arguments(text));
    if setup.clients() > CLIENTS_MAX {
        return refused(format!(
            "--clients must be at most {CLIENTS_MAX} with --wire, not {}: each has a connection",
            setup.clients()
        ));
    }
    if setup.floor() > HOUR {
        return refused(
            "--rate is too low for --clients: with --wire, in real time, (clients - burst) / rate \
             must be at most an hour"
                .to_owned(),
        );
    }
    match setup.quota() {
        Ok(_) => Ok(()),
        Err(error) => refused(format!("--burst is too high for --rate with --wire: {error}")),
    }
}

/// Each of `named` once, in the order of the table; all if none is named.
fn chosen(named: &[Strategy]) -> Vec<Strategy> {
    let is_chosen = |strategy: &Strategy| named.is_empty() || named.contains(strategy);
    Strategy::ALL.into_iter().filter(is_chosen).collect()
}

fn strategy_help() -> String {
    format!(
        "Strategies to run, separated by commas: {} [default: all]",
        Strategy::ALL.map(Strategy::id).join(", ")
    )
}

/// A whole number from `MIN` to `MAX`.
fn whole<T: FromStr, const MIN: u64, const MAX: u64>(text: &str) -> Result<T, OutOfRange> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_in_range = text.parse().is_ok_and(|number| (MIN..=MAX).contains(&number));
    let number = if is_digits && is_in_range { text.parse().ok() } else { None };
    number.ok_or(OutOfRange { min: MIN, max: MAX })
}

#[derive(Debug)]
struct OutOfRange {
    min: u64,
    max: u64,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be a whole number from {} to {}", self.min, self.max)
    }
}

impl core::error::Error for OutOfRange {}

/// The parser's error, which is a page with usage and tips, as one line.
fn one_line(error: &clap::Error) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    // "--rate <R>", of which the first word is the flag.
    let flag = context(ContextKind::InvalidArg)
        .and_then(|argument| argument.split_whitespace().next().map(str::to_owned));
    let value = context(ContextKind::InvalidValue).map(|value| value.escape_debug().to_string());
    match (error.kind(), flag, value) {
        (ErrorKind::ValueValidation, Some(flag), Some(value)) if error.source().is_some() => {
            let allowed = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{flag} {allowed}, not '{value}'")
        }
        (ErrorKind::InvalidValue, Some(flag), Some(value)) => {
            let allowed = context(ContextKind::ValidValue)
                .filter(|allowed| !allowed.is_empty())
                .map(|allowed| format!("one of {allowed}"));
            match (allowed, value.is_empty()) {
                (Some(allowed), false) => format!("{flag} must be {allowed}, not '{value}'"),
                (Some(allowed), true) => format!("{flag} needs a value: {allowed}"),
                (None, _) => format!("{flag} needs a value; see herd --help"),
            }
        }
        (ErrorKind::InvalidUtf8, ..) => "arguments must be UTF-8; see herd --help".to_owned(),
        (ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument, ..) => {
            let unknown = context(ContextKind::InvalidSubcommand)
                .or_else(|| context(ContextKind::InvalidArg))
                .unwrap_or_default();
            format!("there is no command or flag '{}'; see herd --help", unknown.escape_debug())
        }
        _ => {
            let page = error.render().to_string();
            let first = page.lines().next().unwrap_or_default();
            format!("{}; see herd --help", first.strip_prefix("error: ").unwrap_or(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_run_once_each_in_the_order_of_the_table() {
        assert_eq!(chosen(&[]), Strategy::ALL);
        assert_eq!(
            chosen(&[Strategy::Limiter, Strategy::None, Strategy::Limiter]),
            [Strategy::None, Strategy::Limiter]
        );
    }

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
