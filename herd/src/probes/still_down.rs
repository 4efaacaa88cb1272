//! The service is still down when the open period is over, and everybody asks at once.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Barrier, OnceLock};
use std::thread;

use holdoff::{CircuitBreaker, CircuitOpen, Instant};

use super::tested;

/// Calls at once, each from a thread of its own.
pub const CALLS: usize = 50;

/// What became of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StillDown {
    /// Those that reached the service, and failed.
    pub reached: u32,
    /// Those that were refused without a request.
    pub failed_fast: u32,
    /// Those that were refused and told a time to come back.
    pub with_time_to_come_back: u32,
}

/// Trips a breaker and asks it from [`CALLS`] threads the moment its open period is over.
pub(super) fn probe() -> io::Result<StillDown> {
    let breaker = tested::closed();
    let now = tested::trip(&breaker);
    let mut found = StillDown::default();
    for answer in ask_at_once(&breaker, now)? {
        match answer {
            Ok(()) => found.reached += 1,
            Err(CircuitOpen { retry_at, .. }) => {
                found.failed_fast += 1;
                found.with_time_to_come_back += u32::from(retry_at.is_some_and(|at| at > now));
            }
        }
    }
    Ok(found)
}

/// What each thread is told. Nobody's call fails before all have asked.
fn ask_at_once(breaker: &CircuitBreaker, now: Instant) -> io::Result<Vec<Result<(), CircuitOpen>>> {
    let (are_complete, all) = (OnceLock::<bool>::new(), Barrier::new(CALLS));
    let ask = || {
        // Fewer would wait for each other for ever.
        if !*are_complete.wait() {
            return Ok(());
        }
        all.wait();
        let admitted = breaker.try_acquire(now);
        all.wait();
        admitted.map(|permit| {
            permit.failure(now, || 0);
        })
    };
    thread::scope(|scope| {
        let threads: io::Result<Vec<_>> =
            (0..CALLS).map(|_| thread::Builder::new().spawn_scoped(scope, ask)).collect();
        are_complete.get_or_init(|| threads.is_ok());
        let answers = threads?.into_iter().map(|thread| match thread.join() {
            Ok(answer) => answer,
            Err(panic) => resume_unwind(panic),
        });
        Ok(answers.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdoff::Mode;

    #[test]
    fn one_call_reaches_the_service_and_the_others_are_told_when_to_come_back() {
        let expected = StillDown { reached: 1, failed_fast: 49, with_time_to_come_back: 49 };
        for round in 0..20 {
            assert_eq!(probe().expect("threads start"), expected, "round {round}");
        }
    }

    #[test]
    fn a_breaker_that_admits_everybody_would_be_found_out() {
        let breaker = tested::closed();
        breaker.set_mode(Mode::Disabled);
        let now = tested::trip(&breaker);
        let answers = ask_at_once(&breaker, now).expect("threads start");
        assert_eq!(answers, vec![Ok(()); CALLS]);
    }
}
