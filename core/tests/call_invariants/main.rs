//! Several calls that share one service, interleaved at random: what holds whatever happens.

#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod promises;
mod setups;
mod world;
