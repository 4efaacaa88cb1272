//! Fuzz targets for `holdoff`: each is a function of bytes that panics if a promise is broken.
//!
//! Under a fuzzer (`cfg(fuzzing)`) the binaries are libFuzzer's; without one they replay files.

mod amount;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod call;
mod clock;
pub mod headers;
mod input;
pub mod limiter;
mod model;
#[cfg(not(fuzzing))]
pub mod replay;

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// The entry point of a target: libFuzzer's, or one that replays files.
#[cfg(fuzzing)]
#[macro_export]
macro_rules! target {
    ($run:path) => {
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| $run(data));
    };
}

/// The entry point of a target: libFuzzer's, or one that replays files.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! target {
    ($run:path) => {
        fn main() -> std::process::ExitCode {
            $crate::replay::main($run)
        }
    };
}
