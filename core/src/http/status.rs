//! The one table of statuses worth retrying, and the methods safe to repeat.

use super::retry_after::Signals;
use crate::outcome::{Class, Failure, Hint, Outcome, Safety, Sent};

/// Which statuses are worth trying again.
///
/// | status | outcome |
/// |---|---|
/// | below 400 | success |
/// | 408 500 502 504 520 522 524 | transient |
/// | 503 529 | transient, surely not processed |
/// | 429 | throttled, surely not processed |
/// | 409 | transient only [with conflict](Self::with_conflict) |
/// | 425 | transient only [with too early](Self::with_too_early) |
/// | any other | permanent, 501 and 505 among them |
///
/// RFC 9110 §15.5.9 allows repeating after 408; 520, 522 and 524 are a proxy's word that the origin
/// misbehaved; 529 is "overloaded" at LLM providers.
///
/// ```
/// use holdoff::Outcome;
/// use holdoff::http::{Signals, Statuses};
///
/// let outcome = |statuses: Statuses, status| statuses.outcome(status, Signals::default());
/// assert_eq!(outcome(Statuses::HTTP, 409), outcome(Statuses::HTTP, 400));
/// assert_ne!(outcome(Statuses::LLM, 409), outcome(Statuses::LLM, 400));
/// assert_eq!(outcome(Statuses::HTTP, 204), Outcome::Success);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Statuses {
    conflict: bool,
    too_early: bool,
}

impl Statuses {
    /// The table for any HTTP service.
    pub const HTTP: Self = Self { conflict: false, too_early: false };
    /// The table for LLM providers, whose own SDKs also retry 409.
    pub const LLM: Self = Self::HTTP.with_conflict();

    /// The same table with 409 (Conflict) worth trying again.
    #[must_use]
    pub const fn with_conflict(self) -> Self {
        Self { conflict: true, ..self }
    }

    /// The same table with 425 (Too Early) worth trying again.
    #[must_use]
    pub const fn with_too_early(self) -> Self {
        Self { too_early: true, ..self }
    }

    /// What a response of `status` with `signals` came to.
    ///
    /// `x-should-retry` overrules the table for failures: `false` makes any permanent, `true` makes
    /// a permanent one transient (the rule of the official LLM SDKs).
    #[must_use]
    #[inline]
    pub const fn outcome(self, status: u16, signals: Signals) -> Outcome {
        self.outcome_of(status, &signals)
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    const fn outcome_of(self, status: u16, signals: &Signals) -> Outcome {
        if status < 400 {
            return Outcome::Success;
        }
        let (mut class, sent) = self.failure(status);
        let mut hint = signals.hint;
        match signals.should_retry {
            Some(true) => {
                if let Class::Permanent = class {
                    class = Class::Transient;
                }
                if let Hint::Absent = hint {
                    // Told to come back but not when is not a used-up quota: own backoff.
                    hint = Hint::after(core::time::Duration::ZERO);
                }
            }
            Some(false) => class = Class::Permanent,
            None => {}
        }
        Outcome::Failure(Failure { class, hint, sent })
    }

    const fn failure(self, status: u16) -> (Class, Sent) {
        match status {
            408 | 500 | 502 | 504 | 520 | 522 | 524 => (Class::Transient, Sent::Maybe),
            409 if self.conflict => (Class::Transient, Sent::Maybe),
            425 if self.too_early => (Class::Transient, Sent::Maybe),
            429 => (Class::Throttled, Sent::Refused),
            503 | 529 => (Class::Transient, Sent::Refused),
            _ => (Class::Permanent, Sent::Maybe),
        }
    }
}

/// The safety of a request by its method: GET, HEAD, OPTIONS, TRACE, PUT and DELETE are idempotent
/// (RFC 9110 §9.2.2), any other is not. Methods are case-sensitive (§9.1).
///
/// A request that carries an idempotency key, the same on every attempt, is
/// [`Safety::Idempotent`] whatever its method.
#[must_use]
pub const fn method_safety(method: &[u8]) -> Safety {
    match method {
        b"DELETE" | b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"TRACE" => Safety::Idempotent,
        _ => Safety::NonIdempotent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(statuses: Statuses, status: u16, should_retry: Option<bool>) -> Option<Class> {
        match statuses.outcome(status, Signals { hint: Hint::Absent, should_retry }) {
            Outcome::Failure(failure) => Some(failure.class),
            Outcome::Success | Outcome::Ignored => None,
        }
    }

    #[test]
    fn every_status_has_its_class() {
        let transient = [408, 500, 502, 503, 504, 520, 522, 524, 529];
        for status in 0..=u16::MAX {
            let expected = match status {
                0..400 => None,
                429 => Some(Class::Throttled),
                _ if transient.contains(&status) => Some(Class::Transient),
                _ => Some(Class::Permanent),
            };
            assert_eq!(class(Statuses::HTTP, status, None), expected, "{status}");
            let expected = if status == 409 { Some(Class::Transient) } else { expected };
            assert_eq!(class(Statuses::LLM, status, None), expected, "LLM {status}");
        }
        assert_eq!(class(Statuses::HTTP.with_too_early(), 425, None), Some(Class::Transient));
    }

    #[test]
    fn the_servers_word_overrules_the_table() {
        for (status, should_retry, expected) in [
            (200, Some(true), None),
            (400, Some(true), Some(Class::Transient)),
            (429, Some(true), Some(Class::Throttled)),
            (429, Some(false), Some(Class::Permanent)),
            (503, Some(false), Some(Class::Permanent)),
        ] {
            assert_eq!(class(Statuses::HTTP, status, should_retry), expected, "{status}");
        }
    }

    #[test]
    fn only_refusals_surely_were_not_processed() {
        for status in 400..600 {
            let Outcome::Failure(failure) = Statuses::LLM.outcome(status, Signals::default())
            else {
                panic!("{status} is a failure");
            };
            let refused = matches!(status, 429 | 503 | 529);
            assert_eq!(failure.sent == Sent::Refused, refused, "{status}");
        }
    }

    #[test]
    fn methods_are_matched_exactly() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert_eq!(method_safety(method.as_bytes()), Safety::Idempotent, "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "get", "GET ", "", "PUTX"] {
            assert_eq!(method_safety(method.as_bytes()), Safety::NonIdempotent, "{method}");
        }
    }
}
