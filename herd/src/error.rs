//! Why the command ends without a result.

use core::fmt;
use core::net::SocketAddr;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::wire::WireError;

/// Each is reported as one line.
#[derive(Debug)]
pub(crate) enum Error {
    /// The arguments cannot be run; the text names the flag and what is allowed.
    Arguments(String),
    /// `--addr` cannot be listened to.
    Addr(SocketAddr, io::Error),
    /// Told to stop before `--out` was written.
    Interrupted,
    /// `--out` cannot be written to.
    Out(PathBuf, io::Error),
    /// The result cannot be printed.
    Print(io::Error),
    /// The server's runtime or its watch for signals cannot be started.
    Runtime(io::Error),
    /// The threads that probe together cannot be started.
    Threads(io::Error),
    /// The clients cannot call over HTTP.
    Wire(WireError),
}

impl Error {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Addr(..) | Self::Arguments(_) | Self::Out(..) => ExitCode::from(2),
            Self::Interrupted => ExitCode::from(130), // as a shell says of Ctrl-C
            Self::Print(_) | Self::Runtime(_) | Self::Threads(_) | Self::Wire(_) => {
                ExitCode::FAILURE
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr, error) => write!(f, "--addr {addr} cannot be listened to: {error}"),
            Self::Arguments(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted; nothing was written to --out"),
            Self::Out(directory, error) => write!(
                f,
                "--out must be a directory that can be written to, not {directory:?}: {error}"
            ),
            Self::Print(error) => write!(f, "the result cannot be printed: {error}"),
            Self::Runtime(error) => write!(f, "the server cannot be started: {error}"),
            Self::Threads(error) => write!(f, "the probe's threads cannot be started: {error}"),
            Self::Wire(error) => write!(f, "--wire: {error}"),
        }
    }
}

impl core::error::Error for Error {}
