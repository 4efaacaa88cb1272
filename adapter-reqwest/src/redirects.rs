//! Redirects, which reqwest follows beneath an attempt and says nothing of.

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::Pin;

use reqwest::StatusCode;
use reqwest::redirect::Policy;

tokio::task_local! {
    /// Whether a server has answered the request of this attempt by naming another one.
    static ANSWERED: Cell<bool>;
}

/// `policy`, of which the guard hears when it is asked.
///
/// A server that sends a POST on to look elsewhere (301, 302, 303) has had it, and has most likely
/// done what it asked. If the connection to elsewhere then fails, reqwest's error is the same as if
/// nothing had been sent, and the POST would be sent again. With this it is not.
///
/// ```
/// use holdoff_reqwest::{Guarded, Policy, Upstream, redirects};
/// use reqwest::redirect;
///
/// let client = reqwest::Client::builder()
///     .redirect(redirects(redirect::Policy::limited(10)))
///     .build()?;
/// let guarded = Guarded::new(client, Upstream::new(Policy::STANDARD));
/// # let _ = guarded;
/// # Ok::<(), reqwest::Error>(())
/// ```
#[must_use]
pub fn redirects(policy: Policy) -> Policy {
    Policy::custom(move |attempt| {
        // 307 and 308 have the request sent again as it is: it has not been processed.
        let is_answer = !matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        if is_answer {
            // Nobody listens outside a guard.
            let _nobody = ANSWERED.try_with(|answered| answered.set(true));
        }
        policy.redirect(attempt)
    })
}

/// What `attempt` gives, and whether it was answered by a redirect, as far as can be told.
pub(crate) async fn watched<T>(mut attempt: Pin<&mut impl Future<Output = T>>) -> (T, bool) {
    let mut is_answered = false;
    let given = poll_fn(|context| {
        ANSWERED.sync_scope(Cell::new(is_answered), || {
            let polled = attempt.as_mut().poll(context);
            is_answered = ANSWERED.with(Cell::get);
            polled
        })
    });
    let given = given.await;
    (given, is_answered)
}
