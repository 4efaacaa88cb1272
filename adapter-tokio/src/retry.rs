//! The simplest form: a policy and an operation.

use core::future::Future;

use holdoff::drive::GaveUp;
use holdoff::{Classify, Failure, Policy};

use crate::prepared::Prepared;
use crate::upstream::Upstream;

/// Calls `operation` until it succeeds or `policy` says stop.
///
/// Only for what is safe to repeat: an operation that timed out may have been carried out. An async
/// closure may read what it captures; to change it, copy or clone it into an `async move` block.
/// The closure may borrow; the future is `Send` if closure and results are. Dropping the future
/// ends an attempt or a wait at once, and nothing more is sent. Each call draws its own random
/// numbers, seeded from the system.
///
/// # Errors
/// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
///
/// # Panics
/// Outside a tokio runtime with time enabled, once it has to wait.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Policy, Stop, retry};
/// use std::io::{Error, ErrorKind};
///
/// let reset = async || Err::<(), _>(Error::from(ErrorKind::ConnectionReset));
/// let gave_up = retry(&Policy::STANDARD, reset).await.unwrap_err();
/// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Attempts, 5));
/// assert_eq!(gave_up.last.unwrap().kind(), ErrorKind::ConnectionReset);
/// # }
/// ```
pub async fn retry<T, E: Classify, F: Future<Output = Result<T, E>>>(
    policy: &Policy,
    mut operation: impl FnMut() -> F,
) -> Result<T, GaveUp<E>> {
    Prepared::new(policy).run(|_| operation()).await
}

/// Calls `operation` until it succeeds or `policy` says stop, `classify` saying what its errors
/// mean.
///
/// [`retry`] for errors of types that are not yours.
///
/// # Errors
/// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
///
/// # Panics
/// Outside a tokio runtime with time enabled, once it has to wait.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failure, Policy, retry_when};
/// use std::future::ready;
///
/// let mut answers = [Err("busy"), Err("busy"), Ok(7)].into_iter();
/// let busy = |error: &&str| match *error {
///     "busy" => Failure::transient(),
///     _ => Failure::permanent(),
/// };
/// let answer = retry_when(&Policy::STANDARD, busy, || ready(answers.next().unwrap())).await;
/// assert_eq!(answer, Ok(7));
/// # }
/// ```
pub async fn retry_when<T, E, F: Future<Output = Result<T, E>>>(
    policy: &Policy,
    classify: impl FnMut(&E) -> Failure,
    mut operation: impl FnMut() -> F,
) -> Result<T, GaveUp<E>> {
    Prepared::new(policy).run_when(classify, |_| operation()).await
}

/// [`retry`] and its kin as methods of the operation.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff_tokio::{Failure, Policy, Retry, Upstream};
///
/// static PROVIDER: Upstream = Upstream::new(Policy::LLM);
///
/// async fn fetch() -> Result<u32, Failure> {
///     Ok(7)
/// }
///
/// assert_eq!(fetch.retry(&Policy::INTERACTIVE).await, Ok(7));
/// assert_eq!((|| fetch()).guarded_by(&PROVIDER).await, Ok(7));
/// # }
/// ```
pub trait Retry<T, E, F: Future<Output = Result<T, E>>>: FnMut() -> F + Sized {
    /// As [`retry`].
    fn retry(self, policy: &Policy) -> impl Future<Output = Result<T, GaveUp<E>>>
    where
        E: Classify,
    {
        retry(policy, self)
    }

    /// As [`retry_when`].
    fn retry_when(
        self,
        policy: &Policy,
        classify: impl FnMut(&E) -> Failure,
    ) -> impl Future<Output = Result<T, GaveUp<E>>> {
        retry_when(policy, classify, self)
    }

    /// As [`Upstream::call`].
    fn guarded_by<const BUCKETS: usize>(
        self,
        upstream: &Upstream<BUCKETS>,
    ) -> impl Future<Output = Result<T, GaveUp<E>>>
    where
        E: Classify,
    {
        upstream.call(self)
    }
}

impl<T, E, F: Future<Output = Result<T, E>>, O: FnMut() -> F> Retry<T, E, F> for O {}
