//! The binary `herd`; everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdoff_herd::app::main(std::env::args_os())
}
