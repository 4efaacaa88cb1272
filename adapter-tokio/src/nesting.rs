//! Calls made inside of others.

use core::future::Future;

tokio::task_local! {
    static INSIDE: bool;
}

/// Whether code runs inside an attempt of a call that tries again, so that a call made there makes
/// one attempt and leaves the rest to the outer one.
///
/// It is known all through the task of the attempt, and not in tasks that it spawns: hand it over.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failure, Nesting, Policy, Stop, retry};
///
/// async fn fails() -> Result<(), Failure> {
///     Err(Failure::transient())
/// }
///
/// let inner = || retry(&Policy::STANDARD, fails);
/// let outer = retry(&Policy::STANDARD, async || {
///     let here = inner().await.unwrap_err();
///     let spawned = tokio::spawn(Nesting::current().scope(inner())).await.unwrap().unwrap_err();
///     assert_eq!((here.stop, spawned.stop), (Stop::Nested, Stop::Nested));
///     Ok::<_, Failure>(here.attempts + spawned.attempts)
/// });
/// assert_eq!(outer.await, Ok(2));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nesting {
    is_inside: bool,
}

impl Nesting {
    /// Whether this task is inside an attempt just now.
    #[must_use]
    pub fn current() -> Self {
        Self { is_inside: INSIDE.try_with(|&is_inside| is_inside).unwrap_or(false) }
    }

    /// Inside of an attempt, whatever this task knows: for a server whose client says that it tries
    /// again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// use holdoff_tokio::{Failure, Nesting, Policy, Stop, retry};
    ///
    /// let call = retry(&Policy::STANDARD, async || Err::<(), _>(Failure::transient()));
    /// let gave_up = Nesting::inside().scope(call).await.unwrap_err();
    /// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Nested, 1));
    /// # }
    /// ```
    #[must_use]
    pub const fn inside() -> Self {
        Self { is_inside: true }
    }

    /// Whether it is inside of an attempt.
    #[must_use]
    pub const fn is_inside(self) -> bool {
        self.is_inside
    }

    /// Runs `future`, made somewhere else, as if it were here.
    pub fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        INSIDE.scope(self.is_inside, future)
    }

    /// For what a layer calls that is here, and may call again or not.
    pub(crate) fn of_layer(calls_again: bool) -> Self {
        Self { is_inside: calls_again || Self::current().is_inside }
    }

    /// Runs `work` as if it were here.
    pub(crate) fn enter<R>(self, work: impl FnOnce() -> R) -> R {
        INSIDE.sync_scope(self.is_inside, work)
    }
}

/// What a call does that is made inside of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rule {
    #[default]
    Once,
    Retry,
}

impl Rule {
    /// Whether a call made here makes one attempt only.
    pub(crate) fn applies(self) -> bool {
        self == Self::Once && Nesting::current().is_inside
    }
}
