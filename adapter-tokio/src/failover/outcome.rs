//! What became of a call to several candidates.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use holdoff::Stop;
use holdoff::drive::GaveUp;

/// What a candidate answered, which it was, and who failed before.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failover, Failure, Policy, Upstream, failover};
///
/// static MODEL: Upstream = Upstream::new(Policy::LLM);
/// static MODELS: Failover<1> = Failover::new();
///
/// let served = failover(&MODELS, [&MODEL]).run(async |_, _| Ok::<_, Failure>("hi")).await;
/// let served = served.unwrap();
/// assert_eq!((served.value, served.by, served.failed.len()), ("hi", 0, 0));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Served<T, E> {
    /// The answer.
    pub value: T,
    /// The number of the candidate that gave it.
    pub by: usize,
    /// Which candidates were called before and why they gave up, in the order of the calls. Others
    /// that come before [`by`](Self::by) were cooling down.
    pub failed: Vec<(usize, GaveUp<E>)>,
}

/// Why a candidate was not called.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{
///     Clock, Failover, Failure, NotCalled, Policy, TokioTimer, Upstream, failover,
/// };
/// use std::time::Duration;
///
/// static MODEL: Upstream = Upstream::new(Policy::LLM);
/// static MODELS: Failover<1> = Failover::new();
///
/// let minute = Duration::from_secs(60);
/// MODELS.cool_until(0, TokioTimer.now().saturating_add(minute));
/// let call = failover(&MODELS, [&MODEL]);
/// let none = call.run(async |_, _| Ok::<_, Failure>(())).await.unwrap_err();
/// assert_eq!(none.not_called, [(0, NotCalled::CoolingDown { retry_after: minute })]);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotCalled {
    /// The call was over before it was its turn.
    CallOver,
    /// It asked this call or another one to be left alone.
    CoolingDown {
        /// For how long from the end of this call on.
        retry_after: Duration,
    },
}

impl fmt::Display for NotCalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallOver => f.write_str("not called"),
            Self::CoolingDown { retry_after } => write!(f, "cooling down for {retry_after:?}"),
        }
    }
}

/// No candidate served the call: why each gave up or was not called.
///
/// Its `source` is the last error that a candidate returned.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failover, Hint, Failure, Policy, Stop, Upstream, failover};
/// use std::time::Duration;
///
/// static BIG: Upstream = Upstream::new(Policy::LLM);
/// static SMALL: Upstream = Upstream::new(Policy::LLM);
/// static MODELS: Failover<2> = Failover::new();
///
/// // The first asks for an hour, the second says that the request makes no sense.
/// let hint = Hint::after(Duration::from_secs(3600));
/// let answers = [Failure::throttled().with_hint(hint), Failure::permanent()];
/// let none = failover(&MODELS, [&BIG, &SMALL])
///     .run(|candidate, _| core::future::ready(Err::<(), _>(answers[candidate])))
///     .await
///     .unwrap_err();
/// assert_eq!(none.stop(), Some(Stop::Permanent));
/// assert_eq!(none.into_last(), Some(Failure::permanent()));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NoneServed<E> {
    /// Which candidates were called and why they gave up, in the order of the calls.
    pub failed: Vec<(usize, GaveUp<E>)>,
    /// Which candidates were not called and why, in their order.
    pub not_called: Vec<(usize, NotCalled)>,
    /// The time since the call started.
    pub elapsed: Duration,
    /// How long from then until another call could make sense, where that is known: until the first
    /// candidate has cooled down or, if the last one's failure was not to be handed on, what that
    /// one says.
    pub retry_after: Option<Duration>,
}

impl<E> NoneServed<E> {
    /// Why the candidate called last gave up; `None` if all were cooling down.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        self.failed.last().map(|(_, gave_up)| gave_up.stop)
    }

    /// The last error that a candidate returned, untouched.
    #[must_use]
    pub fn into_last(self) -> Option<E> {
        self.failed.into_iter().rev().find_map(|(_, gave_up)| gave_up.last)
    }
}

impl<E> fmt::Display for NoneServed<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no candidate served the call within {:?}", self.elapsed)?;
        let mut separator = ": ";
        for (candidate, gave_up) in &self.failed {
            let GaveUp { stop, attempts, elapsed, .. } = gave_up;
            let plural = if *attempts == 1 { "" } else { "s" };
            write!(f, "{separator}candidate {candidate} gave up after {attempts} attempt{plural}")?;
            write!(f, " in {elapsed:?} ({stop})")?;
            separator = ", ";
        }
        for (candidate, reason) in &self.not_called {
            write!(f, "{separator}candidate {candidate} was {reason}")?;
            separator = ", ";
        }
        match self.retry_after {
            Some(Duration::MAX) | None => Ok(()),
            Some(delay) => write!(f, "; worth another try in {delay:?}"),
        }
    }
}

impl<E: Error + 'static> Error for NoneServed<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let mut latest = self.failed.iter().rev();
        latest.find_map(|(_, gave_up)| gave_up.last.as_ref()).map(|last| last as _)
    }
}
