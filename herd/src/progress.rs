//! A progress bar for those who have waited a second.

use core::time::Duration;
use std::io::{self, IsTerminal};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::sim::{Arrival, Done, Observer};
use crate::strategy::Strategy;

const PATIENCE: Duration = Duration::from_secs(1);
/// The clock is read once in so many events.
const EVENTS_PER_LOOK: u64 = 4096;

/// Shows on a terminal how much of the work is done; elsewhere nothing.
///
/// The work is every request that clients could make. Those that a client who is done did not need
/// count as made, so the bar moves also while thousands are at it and none is done yet.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    is_terminal: bool,
    bar: Option<ProgressBar>,
    events: u64,
    requests: u64,
    requests_in_all: u64,
    requests_per_client: u32,
}

impl Progress {
    pub(crate) fn new(strategies: &[Strategy], runs: u32, clients: u32) -> Self {
        let per_client = strategies.iter().map(|strategy| u64::from(strategy.max_attempts()));
        Self {
            started: Instant::now(),
            is_terminal: io::stderr().is_terminal(),
            bar: None,
            events: 0,
            requests: 0,
            requests_in_all: (u64::from(runs) * u64::from(clients))
                .saturating_mul(per_client.sum()),
            requests_per_client: 0,
        }
    }

    fn on_event(&mut self) {
        self.events += 1;
        if self.is_terminal && self.events.is_multiple_of(EVENTS_PER_LOOK) {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        if self.bar.is_none() && self.started.elapsed() >= PATIENCE {
            let style = ProgressStyle::with_template("{wide_bar} {percent} %, {eta} left");
            let bar = ProgressBar::new(self.requests_in_all);
            self.bar = Some(match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            });
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.requests);
        }
    }
}

impl Observer for Progress {
    fn on_start(&mut self, strategy: Strategy, _: u32) -> io::Result<()> {
        self.requests_per_client = strategy.max_attempts();
        Ok(())
    }

    fn on_arrival(&mut self, _: &Arrival) -> io::Result<()> {
        self.requests += 1;
        self.on_event();
        Ok(())
    }

    fn on_done(&mut self, done: &Done) -> io::Result<()> {
        self.requests += u64::from(self.requests_per_client.saturating_sub(done.attempts));
        self.on_event();
        Ok(())
    }

    fn on_tick(&mut self) -> io::Result<()> {
        if self.is_terminal {
            self.look();
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
