//! Being told to stop: what was begun is undone before the program ends.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::sim::{Arrival, Observer};

/// Ends a run with an error once the program is told to stop. Told twice, the program ends at once.
#[derive(Debug)]
pub(crate) struct Interrupt {
    told: Arc<AtomicBool>,
}

impl Interrupt {
    pub(crate) fn watch() -> io::Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal sets what the second one looks at.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&told))?;
            flag::register(signal, Arc::clone(&told))?;
        }
        Ok(Self { told })
    }

    /// # Errors
    /// [`io::ErrorKind::Interrupted`] once the program is told to stop.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.told.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        Ok(())
    }
}

impl Observer for Interrupt {
    fn on_arrival(&mut self, _arrival: &Arrival) -> io::Result<()> {
        self.check()
    }

    fn on_tick(&mut self) -> io::Result<()> {
        self.check()
    }
}
