//! What an attempt came to, in the machine's words.

use core::convert::Infallible;
use core::time::Duration;

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// It failed; whether it is tried again depends on the failure and the policy.
    Failure(Failure),
    /// It ended without saying anything about the service (the caller's own mistake or
    /// cancellation). Never tried again.
    Ignored,
    /// It succeeded.
    Success,
}

/// Why an attempt failed and what the server said about coming back.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Failure, Hint, Sent};
///
/// let overloaded = Failure::transient()
///     .with_hint(Hint::after(Duration::from_secs(5)))
///     .with_sent(Sent::Refused);
/// assert_eq!(overloaded.hint.delay(), Some(Duration::from_secs(5)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Failure {
    /// What kind of failure it is.
    pub class: Class,
    /// When the server asks us to come back.
    pub hint: Hint,
    /// How far the request got.
    pub sent: Sent,
}

impl Failure {
    /// A failure of `class` without a hint, for a request that may have been processed.
    #[must_use]
    pub const fn new(class: Class) -> Self {
        Self { class, hint: Hint::Absent, sent: Sent::Maybe }
    }

    /// Trying again cannot help.
    #[must_use]
    pub const fn permanent() -> Self {
        Self::new(Class::Permanent)
    }

    /// A quota is used up and stays so until it resets.
    #[must_use]
    pub const fn quota() -> Self {
        Self::new(Class::Quota).with_sent(Sent::Refused)
    }

    /// The server refused because we call too often.
    #[must_use]
    pub const fn throttled() -> Self {
        Self::new(Class::Throttled).with_sent(Sent::Refused)
    }

    /// The service or the way to it is in trouble: server errors, timeouts, lost connections.
    #[must_use]
    pub const fn transient() -> Self {
        Self::new(Class::Transient)
    }

    /// The same failure with the server's hint.
    #[must_use]
    pub const fn with_hint(self, hint: Hint) -> Self {
        Self { hint, ..self }
    }

    /// The same failure, of a request that got as far as `sent`.
    #[must_use]
    pub const fn with_sent(self, sent: Sent) -> Self {
        Self { sent, ..self }
    }
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Class {
    /// Trying again cannot help. Whatever is unknown is permanent.
    Permanent,
    /// A quota is used up (`insufficient_quota`): not a matter of waiting a little.
    Quota,
    /// The server refused because we call too often (429).
    Throttled,
    /// The service or the way to it is in trouble (5xx, timeouts, lost connections).
    Transient,
}

impl Class {
    /// Its name as logs and metrics give it, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Quota => "quota",
            Self::Throttled => "throttled",
            Self::Transient => "transient",
        }
    }
}

/// How far a failed request got; decides whether one that is not idempotent may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Sent {
    /// It may have been processed.
    Maybe,
    /// It never left (connect failure).
    No,
    /// The server answered that it had not processed it (429, 503, 529).
    Refused,
}

/// When the server asks us to come back. Absent, malformed and zero are three different things.
///
/// ```
/// use core::time::Duration;
/// use holdoff::Hint;
///
/// let hint = Hint::after(Duration::from_secs(5));
/// assert_eq!(hint.delay(), Some(Duration::from_secs(5)));
/// assert_eq!(hint.or_longer(Hint::Malformed), hint);
/// assert_eq!(Hint::after(Duration::ZERO).delay(), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Hint {
    /// The server said nothing.
    #[default]
    Absent,
    /// Not before `delay` has passed. Zero (or a date that is past) leaves it to our own backoff.
    After {
        /// The delay asked for, rounded up; [`Duration::MAX`] if it was too long to represent.
        delay: Duration,
        /// The hint's own resolution (nanoseconds): everybody told "1 s" is told the same second.
        granularity: u32,
    },
    /// The server said something that cannot be read: own backoff, never zero.
    Malformed,
}

impl Hint {
    /// A hint of `delay` in whole seconds' resolution, as plain `Retry-After` has.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self::After { delay, granularity: 1_000_000_000 }
    }

    /// The delay to obey, if there is one above zero.
    #[must_use]
    pub const fn delay(self) -> Option<Duration> {
        match self {
            Self::After { delay, .. } if !delay.is_zero() => Some(delay),
            _ => None,
        }
    }

    /// Of two hints of one response the one to obey: the longest, then zero, then malformed.
    #[must_use]
    pub const fn or_longer(mut self, other: Self) -> Self {
        self.prolong(&other);
        self
    }

    /// Becomes `other`, if that is the one to obey.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) const fn prolong(&mut self, other: &Self) {
        let is_longer = match (&*self, other) {
            (Self::After { delay: a, .. }, Self::After { delay: b, .. }) => {
                // `Ord` is not const: seconds first, then the rest.
                b.as_secs() > a.as_secs()
                    || b.as_secs() == a.as_secs() && b.subsec_nanos() > a.subsec_nanos()
            }
            (Self::After { .. }, _) | (Self::Malformed, Self::Absent) => false,
            _ => true,
        };
        if is_longer {
            *self = *other;
        }
    }
}

/// Whether repeating a request that may have been processed does harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Safety {
    /// Repeating it does no harm (RFC 9110 §9.2.2), or it carries an idempotency key.
    Idempotent,
    /// It is repeated only if it surely was not processed.
    NonIdempotent,
    /// It cannot be repeated at all: what it sends is gone after one attempt, as a stream is.
    Once,
}

/// An error that knows what kind of failure it is.
///
/// Unknown means permanent: implementations name what is worth retrying, not what is not.
///
/// ```
/// use holdoff::{Classify, Failure};
///
/// enum FetchError { Busy, BadRequest }
///
/// impl Classify for FetchError {
///     fn classify(&self) -> Failure {
///         match self {
///             Self::Busy => Failure::transient(),
///             Self::BadRequest => Failure::permanent(),
///         }
///     }
/// }
/// # assert_eq!(FetchError::Busy.classify(), Failure::transient());
/// # assert_eq!(FetchError::BadRequest.classify(), Failure::permanent());
/// ```
pub trait Classify {
    /// What kind of failure this error is.
    fn classify(&self) -> Failure;
}

/// `result` with its error's own classification beside the error, as [`drive`](crate::drive) takes
/// it.
///
/// # Errors
/// The error that `result` holds, classified.
///
/// ```
/// use holdoff::{Failure, classified};
///
/// assert_eq!(classified::<_, Failure>(Ok(7)), Ok(7));
/// let busy = Failure::transient(); // a failure is its own error
/// assert_eq!(classified::<(), _>(Err(busy)), Err((busy, busy)));
/// ```
pub fn classified<T, E: Classify>(result: Result<T, E>) -> Result<T, (Failure, E)> {
    result.map_err(|error| (error.classify(), error))
}

impl Classify for Failure {
    fn classify(&self) -> Failure {
        *self
    }
}

impl Classify for Infallible {
    fn classify(&self) -> Failure {
        match *self {}
    }
}

/// Lost, refused and timed-out connections and unreachable hosts are transient; only a refused
/// connection proves that nothing was sent. Everything else is permanent.
///
/// An unexpected end is a connection that was lost. Readers report one, too, for data that came in
/// full and ends too early, such as JSON: classify such an error before it becomes an I/O error.
#[cfg(feature = "std")]
impl Classify for std::io::Error {
    fn classify(&self) -> Failure {
        use std::io::ErrorKind;
        match self.kind() {
            ErrorKind::ConnectionRefused => Failure::transient().with_sent(Sent::No),
            ErrorKind::BrokenPipe
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NotConnected
            | ErrorKind::TimedOut
            | ErrorKind::UnexpectedEof => Failure::transient(),
            _ => Failure::permanent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_several_hints_is_obeyed() {
        let ten = Hint::after(Duration::from_secs(10));
        let twenty = Hint::after(Duration::from_secs(20));
        let zero = Hint::after(Duration::ZERO);
        for (a, b, obeyed) in [
            (ten, twenty, twenty),
            (ten, Hint::Absent, ten),
            (ten, Hint::Malformed, ten),
            (zero, Hint::Malformed, zero),
            (zero, ten, ten),
            (Hint::Absent, Hint::Malformed, Hint::Malformed),
            (Hint::Absent, Hint::Absent, Hint::Absent),
        ] {
            assert_eq!(a.or_longer(b), obeyed, "{a:?} or {b:?}");
            assert_eq!(b.or_longer(a), obeyed, "{b:?} or {a:?}");
        }
    }
}
