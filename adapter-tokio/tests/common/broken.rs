//! Jobs that succeed or fail, by number, and the error of those that fail.

use core::error::Error;
use core::fmt;
use core::future::{Future, poll_fn};
use core::num::NonZeroUsize;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use holdoff_tokio::{Attempt, Classify, Failure, Policy};
use tokio::time::sleep;

use crate::common::{built, constant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Busy,
    Poison,
}

impl Classify for Broken {
    fn classify(&self) -> Failure {
        match self {
            Self::Busy => Failure::transient(),
            Self::Poison => Failure::permanent(),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the provider is \"busy\"",
            Self::Poison => "the job\nis poison",
        })
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        const BUSY: Broken = Broken::Busy;
        (*self == Self::Poison).then_some(&BUSY)
    }
}

/// Takes as many seconds as the job says; every third is poison, and every third is busy at its
/// first attempt.
pub(crate) async fn attempted(job: &u64, attempt: Attempt) -> Result<u64, Broken> {
    sleep(Duration::from_secs(*job)).await;
    match job % 3 {
        1 => Err(Broken::Poison),
        2 if attempt.number == 1 => Err(Broken::Busy),
        _ => Ok(10 * job),
    }
}

/// At most three attempts, a second apart.
pub(crate) fn three_attempts() -> Policy {
    built(constant(3, Duration::from_secs(1)))
}

pub(crate) const fn at_once(jobs: usize) -> NonZeroUsize {
    NonZeroUsize::new(jobs).expect("not zero")
}

/// What `work` gives, unless it is not ready after so many polls: then it is dropped.
pub(crate) async fn polled<T>(polls: usize, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut left) = (pin!(work), polls);
    poll_fn(|context| match left.checked_sub(1) {
        None => Poll::Ready(None),
        Some(less) => {
            left = less;
            work.as_mut().poll(context).map(Some)
        }
    })
    .await
}
