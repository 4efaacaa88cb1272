//! Running the command as a user does.

use std::process::{Command, Output, Stdio};

pub(crate) fn herd<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_herd"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn output<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Output {
    herd(arguments).output().expect("herd starts")
}

/// What herd prints, having succeeded without a word on stderr.
pub(crate) fn printed<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let output = output(arguments);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).expect("UTF-8")
}
