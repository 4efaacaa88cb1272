//! One job, from its start to its result.

use core::future::Future;
use std::sync::Arc;

use holdoff::{Attempt, Failure};
use scopeguard::ScopeGuard;

use super::leftovers::Leftover;
use super::progress::ProgressSnapshot;
use super::results::{JobResult, Ledger};
use crate::dead_letter::{DeadLetter, DeadLetterSink};
use crate::prepared::Prepared;

/// What all jobs of a batch share.
#[derive(Debug)]
pub(super) struct Work<P, K, O, S> {
    pub(super) prepare: P,
    pub(super) classify: K,
    pub(super) operation: O,
    pub(super) sink: S,
}

/// The result of `job`. Dropped at any point, it leaves the job or its letter in the ledger.
pub(super) fn run<'a, const BUCKETS: usize, J, T, E, P, K, O, S, Y>(
    work: Arc<Work<P, K, O, S>>,
    ledger: Arc<Ledger<J, E>>,
    job: J,
) -> impl Future<Output = JobResult<J, T, E, S::Receipt, S::Error>>
where
    S: DeadLetterSink<J, E>,
    P: Fn(&J) -> Prepared<'a, BUCKETS, Y>,
    Y: Future<Output = ()>,
    K: Fn(&E) -> Failure,
    O: AsyncFn(&J, Attempt) -> Result<T, E>,
{
    // Not in the block, which may be dropped before it is ever polled.
    let job = guarded(job, Arc::clone(&ledger), Leftover::Job);
    async move {
        let operation = |attempt: Attempt| {
            if attempt.number > 1 {
                ledger.count(|progress| &mut progress.retries);
            }
            (work.operation)(&job, attempt)
        };
        let called = (work.prepare)(&job).run_when(&work.classify, operation).await;
        let job = ScopeGuard::into_inner(job);
        let gave_up = match called {
            Ok(value) => {
                ledger.count(|progress| &mut progress.done);
                return JobResult::Done { job, value };
            }
            Err(gave_up) => gave_up,
        };
        let letter = DeadLetter::new(job, gave_up);
        let letter = guarded(letter, Arc::clone(&ledger), Leftover::Letter);
        let reserved = work.sink.reserve(&letter).await;
        let letter = ScopeGuard::into_inner(letter);
        match reserved {
            Ok(permit) => {
                ledger.count(|progress| &mut progress.dead);
                JobResult::Dead(work.sink.hand_over(permit, letter))
            }
            Err(error) => {
                ledger.count(|progress| &mut progress.undelivered);
                JobResult::Undelivered { letter, error }
            }
        }
    }
}

/// `value`, which is left in the ledger, made a leftover, if it is dropped.
fn guarded<V, J, E>(
    value: V,
    ledger: Arc<Ledger<J, E>>,
    leftover: impl FnOnce(V) -> Leftover<J, E>,
) -> ScopeGuard<V, impl FnOnce(V)> {
    scopeguard::guard(value, move |value| {
        ledger.leave(leftover(value));
    })
}

impl<J, E> Ledger<J, E> {
    fn count(&self, counter: impl FnOnce(&mut ProgressSnapshot) -> &mut u64) {
        self.progress.send_modify(|progress| {
            let counter = counter(progress);
            *counter = counter.saturating_add(1);
        });
    }

    pub(super) fn started(&self) {
        self.count(|progress| &mut progress.started);
    }

    fn leave(&self, leftover: Leftover<J, E>) {
        self.leftovers.push(leftover);
        self.count(|progress| &mut progress.cut_off);
    }
}
