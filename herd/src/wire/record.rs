//! The provider's record, told to whoever watches, beside what the clients were answered.

use core::cell::RefCell;

use holdoff::Instant;

use super::WireError;
use crate::provider::Verdict;
use crate::serve;
use crate::sim::{Arrival, Observer};

/// What each client was answered so far, attempt by attempt.
#[derive(Debug)]
pub(super) struct Answers(Vec<Vec<Verdict>>);

impl Answers {
    pub(super) fn new(clients: u32) -> Self {
        Self(vec![Vec::new(); clients as usize])
    }

    pub(super) fn add(&mut self, client: u32, verdict: Verdict) {
        self.0[client as usize].push(verdict);
    }

    fn answer(&self, client: u32, attempt: u32) -> Option<Verdict> {
        let attempts = self.0.get(client as usize)?;
        attempts.get(attempt.checked_sub(1)? as usize).copied()
    }

    fn count(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

/// How much of the record has been told.
#[derive(Debug)]
pub(super) struct Record<'a> {
    answers: &'a RefCell<Answers>,
    requests: usize,
    rejected: u64,
}

impl<'a> Record<'a> {
    pub(super) const fn new(answers: &'a RefCell<Answers>) -> Self {
        Self { answers, requests: 0, rejected: 0 }
    }

    /// Tells of the arrivals whose answers are there, up to the first one that is on its way.
    pub(super) fn tell(
        &mut self,
        arrivals: &[serve::Arrival],
        observer: &mut impl Observer,
    ) -> Result<(), WireError> {
        for arrival in arrivals.iter().skip(self.requests) {
            let (client, attempt) = sender(arrival).ok_or(WireError::Record)?;
            let Some(verdict) = self.answers.borrow().answer(client, attempt) else { break };
            if arrival.status != Some(status(verdict)) {
                return Err(WireError::Record);
            }
            self.requests += 1;
            self.rejected += u64::from(verdict != Verdict::Accepted);
            let at = Instant::EPOCH.saturating_add(arrival.at);
            let arrival = Arrival { at, client, attempt, verdict };
            observer.on_arrival(&arrival)?;
        }
        Ok(())
    }

    /// Tells of the rest and gives the requests and, of those, the rejected ones.
    pub(super) fn finish(
        mut self,
        arrivals: &[serve::Arrival],
        observer: &mut impl Observer,
    ) -> Result<(u64, u64), WireError> {
        self.tell(arrivals, observer)?;
        let answers = self.answers.borrow().count();
        if self.requests != arrivals.len() || self.requests != answers {
            return Err(WireError::Record);
        }
        Ok((arrivals.len() as u64, self.rejected))
    }
}

/// Client and attempt, as the client says.
fn sender(arrival: &serve::Arrival) -> Option<(u32, u32)> {
    Some((arrival.idempotency_key.as_ref()?.parse().ok()?, arrival.attempt?))
}

const fn status(verdict: Verdict) -> u16 {
    match verdict {
        Verdict::Accepted => 200,
        Verdict::Rejected { .. } => 429,
    }
}
