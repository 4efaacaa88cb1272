//! One client: its call, and what it makes of an answer.

use core::time::Duration;

use holdoff::{Call, Failure, Hint, Instant, Limiter, Outcome, Safety, Step};

use crate::provider::Verdict;
use crate::sdk::SdkCall;
use crate::strategy::{Header, Retry, Rules};

/// One client's call, driven by the simulator.
#[derive(Debug)]
pub(crate) enum Client<'a> {
    Policy(Call<'a>),
    Sdk(SdkCall),
}

impl<'a> Client<'a> {
    pub(crate) const fn new(
        rules: &'static Rules,
        limiter: Option<&'a Limiter>,
        now: Instant,
    ) -> Self {
        match (&rules.retry, limiter) {
            (Retry::Policy(policy), None) => {
                Self::Policy(Call::new(policy, Safety::Idempotent, now))
            }
            (Retry::Policy(policy), Some(limiter)) => {
                Self::Policy(Call::new(policy, Safety::Idempotent, now).with_limiter(limiter, 1))
            }
            (Retry::Sdk, _) => Self::Sdk(SdkCall::new(now)),
        }
    }

    pub(crate) fn poll(&mut self, now: Instant, sample: impl FnOnce() -> u64) -> Step {
        match self {
            Self::Policy(call) => call.poll(now, sample),
            Self::Sdk(call) => call.poll(now, sample),
        }
    }

    pub(crate) fn record(&mut self, now: Instant, outcome: Outcome) {
        match self {
            // There is no breaker whose open period were to be spread.
            Self::Policy(call) => call.record(now, outcome, || 0),
            Self::Sdk(call) => call.record(outcome),
        }
    }

    /// Whether its next poll asks the limiter.
    pub(crate) fn wants_permit(&self, now: Instant) -> bool {
        match self {
            Self::Policy(call) => call.wants_permit(now),
            Self::Sdk(_) => false,
        }
    }

    pub(crate) const fn attempts(&self) -> u32 {
        match self {
            Self::Policy(call) => call.attempts(),
            Self::Sdk(call) => call.attempts(),
        }
    }
}

/// What the provider's answer means to a client that reads the header or does not.
pub(crate) fn outcome(verdict: Verdict, header: Header) -> Outcome {
    match (verdict, header) {
        (Verdict::Accepted, _) => Outcome::Success,
        (Verdict::Rejected { .. }, Header::Ignored) => Outcome::Failure(Failure::throttled()),
        (Verdict::Rejected { retry_after }, Header::Read) => {
            let hint = Hint::after(Duration::from_secs(u64::from(retry_after.get())));
            Outcome::Failure(Failure::throttled().with_hint(hint))
        }
    }
}
