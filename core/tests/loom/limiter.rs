//! The limiter.

use holdoff::{Limiter, Quota, Rate, Refusal};
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

use super::{NOW, explore, explore_with};
use crate::common::{at, millis, secs};

fn quota(per_second: u32, burst: u32) -> Quota {
    Quota::new(Rate::per_second(per_second), burst).expect("valid")
}

/// A limiter of `burst` at one a second of which `left` tokens are left.
fn limiter(burst: u32, left: u32) -> Arc<Limiter> {
    let limiter = Limiter::new(quota(1, burst));
    limiter.try_acquire(NOW, burst - left).expect("the bucket is full");
    Arc::new(limiter)
}

fn spawn<T: 'static>(
    limiter: &Arc<Limiter>,
    work: impl FnOnce(&Limiter) -> T + 'static,
) -> JoinHandle<T> {
    let limiter = Arc::clone(limiter);
    thread::spawn(move || work(&limiter))
}

/// How many of `asks` single tokens are granted.
fn take(limiter: &Limiter, asks: u32) -> u32 {
    (0..asks).map(|_| u32::from(limiter.try_acquire(NOW, 1).is_ok())).sum()
}

/// A pause until 20 s is in force, with one token at its end, and stays so when tokens come back.
fn assert_paused(limiter: &Limiter) {
    assert_eq!(limiter.available(at(millis(19_999))), 0);
    assert_eq!(limiter.available(at(secs(20))), 1);
    limiter.refund(9);
    assert_eq!(limiter.available(at(millis(19_999))), 0);
}

// Mutants: exchange-by-store, second-try-by-store
#[test]
fn two_threads_take_exactly_the_burst() {
    explore(|| {
        let limiter = limiter(2, 2);
        let other = spawn(&limiter, |limiter| take(limiter, 2));
        let taken = take(&limiter, 1) + other.join().expect("no panic");
        assert_eq!(taken, 2);
        assert_eq!(limiter.available(NOW), 0);
    });
}

// Mutant: tokens-back-by-store
#[test]
fn what_is_given_back_while_others_take_is_not_lost() {
    explore(|| {
        let limiter = limiter(3, 1);
        let other = spawn(&limiter, |limiter| limiter.refund(1));
        let reserved = limiter.reserve(NOW, 1).expect("within the burst");
        assert_eq!(reserved.ready_at(), NOW);
        other.join().expect("no panic");
        assert_eq!(limiter.available(NOW), 1);
        limiter.cancel(reserved);
        assert_eq!(limiter.available(NOW), 2);
    });
}

// Mutants: level-by-store, level-not-recounted
#[test]
fn a_change_of_quota_grants_nobody_a_fresh_burst() {
    for (per_second, burst) in [(1000, 3), (1, 9), (1000, 9)] {
        explore(move || {
            let limiter = limiter(3, 1);
            let other = spawn(&limiter, move |limiter| {
                limiter.set_quota(NOW, quota(per_second, burst)).expect("nobody else is at it");
            });
            let mut taken = take(&limiter, 2);
            other.join().expect("no panic");
            assert_eq!(limiter.quota(), quota(per_second, burst));
            taken += take(&limiter, 2);
            assert_eq!(taken, 1);
        });
    }
}

// Mutant: slot-unchecked
#[test]
fn whoever_looks_during_changes_sees_one_quota_with_its_own_level() {
    explore(|| {
        let limiter = limiter(1, 0);
        let other = spawn(&limiter, |limiter| {
            for next in [quota(10, 1), Quota::new(Rate::per_minute(1), 2).expect("valid")] {
                limiter.set_quota(NOW, next).expect("nobody else is at it");
            }
        });
        assert_eq!(limiter.available(NOW), 0);
        match limiter.try_acquire(NOW, 1) {
            Err(Refusal::NotYet { until }) => {
                assert!([millis(100), secs(1), secs(60)].map(at).contains(&until), "{until:?}");
            }
            other => panic!("there is no token: {other:?}"),
        }
        other.join().expect("no panic");
        assert_eq!(limiter.available(at(secs(60))), 1);
    });
}

// Mutants: change-unclaimed, change-never-over, tag-before-claim
#[test]
fn of_two_changes_one_is_the_last_and_nobody_waits() {
    explore(|| {
        let (ours, theirs) = (quota(10, 4), quota(100, 5));
        let limiter = limiter(3, 2);
        let other = spawn(&limiter, move |limiter| limiter.set_quota(NOW, theirs).is_ok());
        let ours_made = limiter.set_quota(NOW, ours).is_ok();
        let theirs_made = other.join().expect("no panic");
        assert!(ours_made || theirs_made, "neither");
        let last = limiter.quota();
        assert!((last == ours && ours_made) || (last == theirs && theirs_made), "{last:?}");
        // Two tokens, not a bit more.
        let full_at = last.interval() * (last.burst() - 2);
        assert_eq!(limiter.available(NOW), 2);
        assert_eq!(limiter.available(at(full_at - millis(1))), last.burst() - 1);
        assert_eq!(limiter.available(at(full_at)), last.burst());

        // It can be changed again, and again.
        for next in [quota(1, 3), quota(2, 6)] {
            limiter.set_quota(NOW, next).expect("nobody else is at it");
            assert_eq!((limiter.quota(), limiter.available(NOW)), (next, 2));
        }
    });
}

// Mutant: claim-by-slot
#[test]
fn a_change_overtaken_by_others_leaves_nobody_waiting() {
    // Every schedule is too many; two switches away from a running thread are enough.
    let mut loom = loom::model::Builder::new();
    loom.preemption_bound = Some(2);
    explore_with(loom, || {
        let (first, late) = (quota(1, 3), quota(10, 4));
        let limiter = limiter(3, 2);
        let other = spawn(&limiter, move |limiter| limiter.set_quota(NOW, late).is_ok());
        let mut made = vec![first];
        for (now, next) in (1..).zip([quota(2, 3), quota(3, 3), first]) {
            if limiter.set_quota(at(millis(now)), next).is_ok() {
                made.push(next);
            }
        }
        assert!(limiter.available(NOW) <= 2);
        if other.join().expect("no panic") {
            made.push(late);
        }
        assert!(made.contains(&limiter.quota()), "{:?}", limiter.quota());
        limiter.set_quota(NOW, quota(7, 7)).expect("nobody else is at it");
        assert_eq!(limiter.quota(), quota(7, 7));
    });
}

// Mutants: shorter-pause-stored, bucket-not-emptied
#[test]
fn of_two_pauses_the_longer_holds() {
    explore(|| {
        let limiter = limiter(3, 3);
        let other = spawn(&limiter, |limiter| limiter.pause_until(at(secs(20))));
        limiter.pause_until(at(secs(10)));
        other.join().expect("no panic");
        assert_paused(&limiter);
    });
}

// Mutant: pause-unseen
#[test]
fn after_a_pause_nothing_is_taken_however_it_met_others() {
    explore(|| {
        let limiter = limiter(3, 2);
        let other = spawn(&limiter, |limiter| {
            limiter.pause_until(at(secs(20)));
            // In force for whoever set it, first of all.
            assert_eq!(take(limiter, 1), 0);
        });
        let taken = take(&limiter, 2);
        // As many as the pause took, and more.
        limiter.refund(30);
        other.join().expect("no panic");
        assert!(taken <= 2);
        let until = at(secs(20));
        let refused = Err(Refusal::NotYet { until });
        assert_eq!(limiter.try_acquire(at(millis(19_999)), 1), refused);
        assert_eq!(limiter.try_acquire(until, 1), Ok(()));
    });
}

// Mutants: recounted-from-now, pause-before-level, pause-overwritten
#[test]
fn a_pause_outlasts_a_change_of_quota() {
    for first_pause in [0, 5] {
        explore(move || {
            let limiter = limiter(3, 2);
            limiter.pause_until(at(secs(first_pause)));
            let other = spawn(&limiter, |limiter| limiter.pause_until(at(secs(20))));
            limiter.set_quota(at(secs(6)), quota(10, 5)).expect("nobody else is at it");
            other.join().expect("no panic");
            assert_paused(&limiter);
        });
    }
}

// Mutant: pause-forgets-the-change
#[test]
fn a_pause_lets_no_second_change_in() {
    explore(|| {
        let (ours, theirs) = (quota(10, 4), quota(100, 5));
        let limiter = limiter(3, 2);
        let other = spawn(&limiter, move |limiter| {
            limiter.pause_until(at(secs(20)));
            limiter.set_quota(NOW, theirs).is_ok()
        });
        let ours_made = limiter.set_quota(NOW, ours).is_ok();
        let theirs_made = other.join().expect("no panic");
        let last = limiter.quota();
        assert!((last == ours && ours_made) || (last == theirs && theirs_made), "{last:?}");
        assert_paused(&limiter);
    });
}
