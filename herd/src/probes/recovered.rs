//! The service is back when the open period is over.

use holdoff::{BreakerState, CircuitBreaker, Instant};

use super::tested;

/// How soon the breaker closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Successes, one after another, until it is closed. `None` if a thousand are not enough.
    pub successes_to_close: Option<u32>,
}

const PATIENCE: u32 = 1000;

/// Trips a breaker and lets calls succeed from the end of its open period on.
pub(super) fn probe() -> Recovered {
    let breaker = tested::closed();
    let now = tested::trip(&breaker);
    Recovered { successes_to_close: successes_to_close(&breaker, now) }
}

fn successes_to_close(breaker: &CircuitBreaker, now: Instant) -> Option<u32> {
    (1..=PATIENCE).find(|_| {
        let admitted = breaker.try_acquire(now);
        admitted.is_ok_and(|permit| {
            permit.success(now, || 0);
            breaker.state(now) == BreakerState::Closed
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use holdoff::{BreakerConfig, valid};

    #[test]
    fn one_success_closes() {
        assert_eq!(probe(), Recovered { successes_to_close: Some(1) });
    }

    #[test]
    fn a_breaker_that_wants_more_or_never_closes_would_be_found_out() {
        let breaker = valid!(BreakerConfig::consecutive(5).with_probes(15).build());
        let now = tested::trip(&breaker);
        assert_eq!(successes_to_close(&breaker, now), Some(15));

        let breaker = tested::closed();
        let now = tested::trip(&breaker).saturating_sub(Duration::from_nanos(1));
        assert_eq!(successes_to_close(&breaker, now), None);
    }
}
