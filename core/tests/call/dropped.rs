//! A call whose future is dropped.

use core::cell::Cell;
use core::pin::pin;

use holdoff::drive::{self, NoQueue};
use holdoff::{
    BackoffConfig, Call, Failure, Hint, Instant, Limiter, PolicyConfig, Quota, Rate, Safety,
    classified,
};

use crate::common::timer::ManualTimer;
use crate::common::{at, secs};

/// Polls a call that fails for ever, waits in every way there is, and drops it at each point.
#[test]
fn a_dropped_call_sends_nothing_more_and_leaves_nothing_behind() {
    let backoff = BackoffConfig::constant(secs(60)).build().expect("valid");
    let policy = PolicyConfig::new(backoff).with_max_attempts(4).with_attempt_timeout(secs(9));
    let policy = policy.build().expect("valid");
    let answers = [
        Failure::transient(),
        Failure::throttled().with_hint(Hint::after(secs(277))),
        Failure::transient(),
        Failure::transient(),
    ];
    let mut polls = 0;
    loop {
        let timer = &ManualTimer::new(Instant::EPOCH);
        let limiter = Limiter::new(Quota::new(Rate::new(1, secs(100)), 1).expect("valid"));
        let sent = Cell::new(0);
        let mut over = false;
        {
            let mut answers = answers.into_iter();
            let mut call = pin!(drive::run(
                timer,
                &NoQueue,
                |now| Call::new(&policy, Safety::Idempotent, now).with_limiter(&limiter, 1),
                || 0,
                classified,
                |_| {
                    sent.set(sent.get() + 1);
                    let answer = answers.next().expect("four attempts");
                    async move {
                        timer.sleep(secs(1)).await;
                        Err::<(), _>(answer)
                    }
                },
            ));
            for _ in 0..polls {
                over |= timer.poll(call.as_mut()).is_some();
            }
            if polls > 0 && !over {
                assert!(timer.sleeping() > 0);
            }
        }
        let sent_before = sent.get();
        assert_eq!(timer.sleeping(), 0, "after {polls} polls");
        // Waiting took nothing: the tokens that are gone are those of the attempts made.
        let others = (0..10).filter(|i| limiter.try_acquire(at(secs(1000 + i * 100)), 1).is_ok());
        assert_eq!(others.count(), 10, "after {polls} polls");
        assert_eq!(sent.get(), sent_before);
        if over {
            assert_eq!(sent.get(), 4);
            break;
        }
        polls += 1;
    }
    // Attempts, delays and waits for the limiter.
    assert!(polls > 8, "only {polls} places to drop it");
}

#[test]
fn a_call_that_is_never_polled_does_nothing() {
    let timer = ManualTimer::new(Instant::EPOCH);
    let policy = PolicyConfig::standard().build().expect("valid");
    drop(drive::run(
        &timer,
        &NoQueue,
        |now: Instant| -> Call<'_> {
            let _ = Call::new(&policy, Safety::Idempotent, now);
            panic!("it begins at the first poll")
        },
        || 0,
        classified::<(), Failure>,
        async |_| Ok(()),
    ));
    assert_eq!(timer.sleeping(), 0);
}
