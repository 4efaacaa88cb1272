//! Models: every schedule of a few threads.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p holdoff --test loom --profile loom --target-dir target/loom
//! ```
//!
//! Each model names the mutants of the code that it refutes, one at least; `.ci/mutants.py` applies
//! them. All the models together take less than a minute of one core.

#![cfg(loom)]

#[path = "../common/mod.rs"]
mod common;

mod breaker;
mod budget;
mod call;
mod limiter;
mod table;
mod ticks;

use core::sync::atomic::{AtomicUsize, Ordering};

use holdoff::Instant;

const NOW: Instant = Instant::EPOCH;

/// Runs `model` on every schedule and counts them: one alone would prove nothing.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_with(loom::model::Builder::new(), model);
}

fn explore_with(loom: loom::model::Builder, model: impl Fn() + Send + Sync + 'static) {
    let schedules = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&schedules);
    loom.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    println!("{schedules} schedules");
    assert!(schedules > 1, "only one schedule");
}
