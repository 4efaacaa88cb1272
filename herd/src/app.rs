//! The command `herd`.

mod serving;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use holdoff::ConfigError;

use crate::cli::{self, Format, Options, ProbesOptions, Request};
use crate::error::Error;
use crate::experiment::{Experiment, Medium, Row};
use crate::files::Files;
use crate::interrupt::Interrupt;
use crate::probes::Probes;
use crate::progress::Progress;
use crate::sim::Observer;
use crate::wire::WireError;
use crate::{json, table};

/// Does what the arguments, the program's name first, ask for.
///
/// 0 if it was done or nobody wanted to read the result to its end, 2 if the arguments are wrong, 1
/// if something else is. Errors are one line on stderr.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "herd: {error}");
            error.exit_code()
        }
    }
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), Error> {
    let text = match cli::parse(arguments)? {
        Request::Explain(text) => return printed(text.print()),
        Request::Probes(options) => probed(&options)?,
        Request::Run(options) => rendered(&measure(&options)?, &options)?,
        Request::Serve(config) => return serving::serve(config),
    };
    let mut stdout = io::stdout().lock();
    printed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Runs the experiment and writes the files.
fn measure(options: &Options) -> Result<Vec<Row>, Error> {
    let Options { setup, strategies, runs, seed, medium, .. } = options;
    let experiment = Experiment::new(*setup, strategies, *runs, *seed)
        .map_err(|error| Error::Arguments(no_limiter(error)))?;
    let Some(directory) = &options.out else {
        return rows(&experiment, *medium, &mut progress(options)).map_err(|error| match error {
            // Without files nobody who watches can fail.
            WireError::Observer(error) => Error::Print(error),
            error => Error::Wire(error),
        });
    };
    let written = || {
        let files = Files::prepare(directory, setup, strategies)?;
        let mut observer = (Interrupt::watch()?, (files, progress(options)));
        let rows = rows(&experiment, *medium, &mut observer)?;
        let (interrupt, (files, _)) = observer;
        interrupt.check()?;
        files.commit()?;
        Ok(rows)
    };
    written().map_err(|error| match error {
        WireError::Observer(error) if error.kind() == io::ErrorKind::Interrupted => {
            Error::Interrupted
        }
        WireError::Observer(error) => Error::Out(directory.clone(), error),
        error => Error::Wire(error),
    })
}

fn rows(
    experiment: &Experiment,
    medium: Medium,
    observer: &mut impl Observer,
) -> Result<Vec<Row>, WireError> {
    match medium {
        Medium::VirtualTime => Ok(experiment.run(observer)?),
        Medium::Wire => experiment.run_on_wire(observer),
    }
}

fn progress(options: &Options) -> Progress {
    Progress::new(&options.strategies, options.runs, options.setup.clients())
}

fn no_limiter(error: ConfigError) -> String {
    format!("--burst is too high for --rate and strategy limiter: {error}")
}

fn rendered(rows: &[Row], options: &Options) -> Result<String, Error> {
    let Options { setup, runs, seed, medium, .. } = options;
    match options.format {
        Format::Json => {
            json::render(rows, setup, *runs).map_err(|error| Error::Print(error.into()))
        }
        Format::Table => Ok(table::render(rows, setup, *medium, *runs, *seed)),
    }
}

fn probed(options: &ProbesOptions) -> Result<String, Error> {
    let probes = Probes::run(&options.config).map_err(Error::Threads)?;
    match options.format {
        Format::Json => json::probes::render(&probes).map_err(|error| Error::Print(error.into())),
        Format::Table => Ok(table::probes::render(&probes, &options.config)),
    }
}

/// A reader who has seen enough (`herd | head -1`) is no error.
fn printed(result: io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Print(error)),
        _ => Ok(()),
    }
}
