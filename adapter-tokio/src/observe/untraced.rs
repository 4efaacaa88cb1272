//! Without the feature `tracing`.

use core::future::Future;

use holdoff::{Observation, Safety};

#[derive(Debug)]
pub(super) struct Trace;

impl Trace {
    pub(super) const IS_ON: bool = false;

    pub(super) const fn start(_name: &'static str, _safety: Safety) -> Self {
        Self
    }

    pub(super) const fn around<F: Future>(&self, call: F) -> F {
        call
    }

    pub(super) const fn on_event(&self, _observation: &Observation) {}

    pub(super) const fn on_drop(&self, _attempts: u32) {}
}
