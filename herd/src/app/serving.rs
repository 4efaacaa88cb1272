//! `herd serve`: a provider until told to stop.

use std::io::{self, Write};

use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::printed;
use crate::error::Error;
use crate::serve::{Server, ServerConfig, StartError};

/// Serves until SIGINT or SIGTERM, then finishes what is in flight; told again, ends at once.
pub(super) fn serve(config: ServerConfig) -> Result<(), Error> {
    // One thread is enough for what is mostly waiting.
    let runtime =
        runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    runtime.block_on(async {
        // Before the address is known, so that whoever knows it can stop us in good order.
        let mut signals = Signals::watch().map_err(Error::Runtime)?;
        let addr = config.addr;
        let server = Server::start(config).await.map_err(|error| match error {
            StartError::Bind(error) => Error::Addr(addr, error),
            StartError::Quota(_) | StartError::Scenario(_) => Error::Arguments(error.to_string()),
        })?;
        printed(announced(&server.addr().to_string()))?;
        signals.told().await;
        tokio::select! {
            () = server.shutdown() => {}
            () = signals.told() => {}
        }
        Ok(())
    })
}

fn announced(addr: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "http://{addr}")?;
    stdout.flush()
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
