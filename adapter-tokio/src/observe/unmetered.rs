//! Without the feature `metrics`.

use holdoff::{BreakerState, Observation};

#[derive(Debug)]
pub(super) struct Meter;

impl Meter {
    pub(super) const IS_ON: bool = false;

    pub(super) const fn start(_name: &'static str) -> Self {
        Self
    }

    pub(super) fn on_event(
        &self,
        _observation: &Observation,
        _breaker: impl FnOnce() -> Option<BreakerState>,
    ) {
    }

    pub(super) const fn on_drop(&self, _attempts: u32) {}
}
