//! Whole calls: every decision against naive rules, the presets, and the drivers.

#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod decisions;
mod driven;
mod dropped;
mod line;
mod messages;
mod presets;
mod reference;
mod rules;
