//! The simplest form: a policy and an operation.

use core::future::Future;

use holdoff::drive::GaveUp;
use holdoff::{Classify, Failure, Policy};

use crate::prepared::Prepared;
use crate::random::Random;

/// Calls `operation` until it succeeds or `policy` says stop.
///
/// Only for what is safe to repeat: an operation that timed out may have been carried out. Dropping
/// the future ends an attempt or a wait at once, and nothing more is sent.
///
/// # Errors
/// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
///
/// ```
/// use holdoff_embassy::{Failure, Policy, Random, Stop, retry};
///
/// # futures_executor::block_on(async {
/// let mut random = Random::from_device_id(b"sensor 7");
/// let refused = async || Err::<(), _>(Failure::permanent());
/// let gave_up = retry(&Policy::STANDARD, &mut random, refused).await.unwrap_err();
/// assert_eq!((gave_up.stop, gave_up.attempts), (Stop::Permanent, 1));
/// # });
/// ```
pub async fn retry<T, E: Classify, F: Future<Output = Result<T, E>>>(
    policy: &Policy,
    random: &mut Random,
    mut operation: impl FnMut() -> F,
) -> Result<T, GaveUp<E>> {
    Prepared::new(policy, random).run(|_| operation()).await
}

/// Calls `operation` until it succeeds or `policy` says stop, `classify` saying what its errors
/// mean.
///
/// [`retry`] for errors of types that are not yours.
///
/// # Errors
/// [`GaveUp`] with the last error untouched, the reason, the attempts made and the time spent.
///
/// ```
/// use core::future::ready;
/// use holdoff_embassy::{Failure, Policy, Random, retry_when};
///
/// # futures_executor::block_on(async {
/// let mut random = Random::from_device_id(b"sensor 7");
/// let broken = |_: &&str| Failure::permanent();
/// let answer = retry_when(&Policy::STANDARD, &mut random, broken, || ready(Err::<(), _>("no")));
/// assert_eq!(answer.await.unwrap_err().last, Some("no"));
/// # });
/// ```
pub async fn retry_when<T, E, F: Future<Output = Result<T, E>>>(
    policy: &Policy,
    random: &mut Random,
    classify: impl FnMut(&E) -> Failure,
    mut operation: impl FnMut() -> F,
) -> Result<T, GaveUp<E>> {
    Prepared::new(policy, random).run_when(classify, |_| operation()).await
}
