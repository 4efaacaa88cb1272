//! Every arrival and every client's result as CSV, and a picture per strategy.

use core::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use csv::Writer;
use holdoff::Instant;
use serde::{Serialize, Serializer};
use tempfile::TempDir;

use crate::histogram::Histogram;
use crate::plot;
use crate::provider::Verdict;
use crate::setup::Setup;
use crate::sim::{Arrival, Done, Observer};
use crate::strategy::Strategy;

const ARRIVALS: &str = "arrivals.csv";
const RESULTS: &str = "results.csv";

/// The files in the making.
///
/// They grow in a directory of their own inside the one asked for, so that moving them there is a
/// rename. Dropped before [`commit`](Self::commit), nothing stays behind, neither they nor the
/// directories made for them.
#[derive(Debug)]
pub(crate) struct Files {
    // Fields are dropped in this order: the writers, what they wrote, and what that was in.
    arrivals: Writer<File>,
    results: Writer<File>,
    staging: TempDir,
    made: Made,
    directory: PathBuf,
    setup: Setup,
    strategy: Strategy,
    run: u32,
    /// Of the first run of each strategy.
    histograms: Vec<(Strategy, Histogram)>,
}

impl Files {
    /// Makes `directory` if need be and sees that files can be written to it.
    pub(crate) fn prepare(
        directory: &Path,
        setup: &Setup,
        strategies: &[Strategy],
    ) -> io::Result<Self> {
        let made = Made::missing(directory);
        fs::create_dir_all(directory)?;
        let staging = tempfile::Builder::new().prefix(".herd-").tempdir_in(directory)?;
        let pictures = strategies.iter().map(|&strategy| picture(strategy));
        for name in pictures.chain([ARRIVALS.to_owned(), RESULTS.to_owned()]) {
            if directory.join(&name).is_dir() {
                let error = format!("{name} is a directory");
                return Err(io::Error::new(io::ErrorKind::IsADirectory, error));
            }
        }
        let create = |name| File::create_new(staging.path().join(name)).map(Writer::from_writer);
        Ok(Self {
            arrivals: create(ARRIVALS)?,
            results: create(RESULTS)?,
            staging,
            made,
            directory: directory.to_owned(),
            setup: *setup,
            // Until the first run starts.
            strategy: Strategy::None,
            run: 0,
            histograms: Vec::new(),
        })
    }

    /// Draws the pictures and moves everything to its place, replacing what was there: pictures of
    /// strategies that were not run do not belong to these figures and go.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.arrivals.flush()?;
        self.results.flush()?;
        let mut names = vec![ARRIVALS.to_owned(), RESULTS.to_owned()];
        for (strategy, histogram) in &self.histograms {
            let name = picture(*strategy);
            let svg = plot::svg(*strategy, &self.setup, histogram)?;
            fs::write(self.staging.path().join(&name), svg)?;
            names.push(name);
        }
        for name in &names {
            fs::rename(self.staging.path().join(name), self.directory.join(name))?;
        }
        for name in Strategy::ALL.map(picture) {
            let old = self.directory.join(&name);
            if !names.contains(&name) && old.is_file() {
                fs::remove_file(old)?;
            }
        }
        self.made.keep();
        Ok(())
    }
}

impl Observer for Files {
    fn on_start(&mut self, strategy: Strategy, run: u32) -> io::Result<()> {
        (self.strategy, self.run) = (strategy, run);
        if run == 0 {
            self.histograms.push((strategy, Histogram::new(self.setup.rate())));
        }
        Ok(())
    }

    fn on_arrival(&mut self, arrival: &Arrival) -> io::Result<()> {
        if let (0, Some((_, histogram))) = (self.run, self.histograms.last_mut()) {
            histogram.add(arrival);
        }
        self.arrivals.serialize(ArrivalLine {
            strategy: self.strategy.id(),
            run: self.run,
            t_s: Seconds(arrival.at),
            client: arrival.client,
            attempt: arrival.attempt,
            status: match arrival.verdict {
                Verdict::Accepted => 200,
                Verdict::Rejected { .. } => 429,
            },
        })?;
        Ok(())
    }

    fn on_done(&mut self, done: &Done) -> io::Result<()> {
        self.results.serialize(ResultLine {
            strategy: self.strategy.id(),
            run: self.run,
            client: done.client,
            ok: done.ok,
            attempts: done.attempts,
            done_s: Seconds(done.at),
        })?;
        Ok(())
    }
}

#[derive(Serialize)]
struct ArrivalLine {
    strategy: &'static str,
    run: u32,
    t_s: Seconds,
    client: u32,
    attempt: u32,
    status: u16,
}

#[derive(Serialize)]
struct ResultLine {
    strategy: &'static str,
    run: u32,
    client: u32,
    ok: bool,
    attempts: u32,
    done_s: Seconds,
}

/// Seconds from time 0 as an exact decimal.
struct Seconds(Instant);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Directories that did not exist before, innermost first. Those still empty are removed again.
#[derive(Debug)]
struct Made(Vec<PathBuf>);

impl Made {
    fn missing(directory: &Path) -> Self {
        let missing = directory.ancestors().take_while(|path| {
            // The last ancestor of a relative path is empty and means the current directory.
            !path.as_os_str().is_empty() && !path.exists()
        });
        Self(missing.map(Path::to_owned).collect())
    }

    fn keep(&mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for directory in &self.0 {
            // It fails if someone else has put something in: then it is theirs.
            let _ = fs::remove_dir(directory);
        }
    }
}

fn picture(strategy: Strategy) -> String {
    format!("arrivals-{strategy}.svg")
}
