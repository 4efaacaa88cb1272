//! The breaker that is probed.

use holdoff::{BreakerConfig, CircuitBreaker, Instant, valid};

/// Failures in a row that trip the breaker of the probes.
pub const FAILURES_TO_TRIP: u32 = 5;

/// The breaker of all probes, closed.
pub(super) const fn closed() -> CircuitBreaker {
    valid!(BreakerConfig::consecutive(FAILURES_TO_TRIP).build())
}

/// Lets `breaker` see a run of failures at the epoch; the end of its open period.
pub(super) fn trip(breaker: &CircuitBreaker) -> Instant {
    let now = Instant::EPOCH;
    for permit in (0..FAILURES_TO_TRIP).filter_map(|_| breaker.try_acquire(now).ok()) {
        permit.failure(now, || 0);
    }
    // One that has not tripped is probed at once.
    breaker.peek(now).err().and_then(|open| open.retry_at).unwrap_or(now)
}
