//! The limiter against a naive token bucket, at the limits of its types, and its promises.

#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod limits;
mod model;
mod promises;
mod quotas;
mod sequences;
