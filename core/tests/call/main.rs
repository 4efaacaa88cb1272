//! Whole calls: every decision against naive rules, the presets, and the drivers.

#![cfg(not(loom))]

mod cancelled;
#[path = "../common/mod.rs"]
mod common;
mod decisions;
mod driven;
mod dropped;
mod limits;
mod line;
mod messages;
mod presets;
mod reference;
mod rules;
