//! Naive reference models: plain structs and lists, wide integers, no cleverness.

pub(crate) mod breaker;
pub(crate) mod budget;
pub(crate) mod limiter;
