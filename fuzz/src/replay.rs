//! What the targets are without a fuzzer: they run on the files and folders they are given.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::input;

/// Runs `target` on every file that the command line names, folders included with all in them.
///
/// With `--show` the decoded inputs are printed. All files are run, whatever becomes of one.
#[must_use]
pub fn main(target: fn(&[u8])) -> ExitCode {
    let (options, paths): (Vec<OsString>, Vec<OsString>) =
        std::env::args_os().skip(1).partition(|argument| argument == "--show");
    input::show(!options.is_empty());
    match replayed(target, paths.into_iter().map(PathBuf::from).collect()) {
        Ok((0, 0)) => {
            eprintln!("no input: name files or folders");
            ExitCode::FAILURE
        }
        Ok((count, 0)) => {
            println!("{count} inputs replayed");
            ExitCode::SUCCESS
        }
        Ok((count, failed)) => {
            eprintln!("{count} inputs replayed, {failed} of them failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// How many files were run and how many of them failed.
fn replayed(target: fn(&[u8]), mut left: Vec<PathBuf>) -> io::Result<(usize, usize)> {
    let (mut count, mut failed) = (0, 0);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                left.push(entry?.path());
            }
            continue;
        }
        let data = read(&path)?;
        count += 1;
        if panic::catch_unwind(|| target(&data)).is_err() {
            eprintln!("failed on {}", path.display());
            failed += 1;
        }
    }
    Ok((count, failed))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let named = |error| io::Error::other(format!("{}: {error}", path.display()));
    fs::read(path).map_err(named)
}
