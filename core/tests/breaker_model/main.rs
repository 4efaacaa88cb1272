//! The circuit breaker against a naive one, over random sequences of operations.

#![cfg(not(loom))]

mod operations;
mod reference;
mod sequences;
mod setups;
