//! Limiter, breaker and budget together, through calls.

use holdoff::{
    BreakerConfig, BudgetConfig, Failure, Limiter, Outcome, Policy, Quota, Rate, Ratio, Safety,
    Step, Stop, Upstream,
};
use loom::sync::Arc;
use loom::thread;

use super::{NOW, explore};
use crate::common::{at, secs};

/// Tokens for two, a breaker that tripped now, a budget of one retry.
fn upstream() -> Arc<Upstream> {
    let hour = core::time::Duration::from_secs(3600);
    let breaker = BreakerConfig::consecutive(1).build().expect("valid");
    breaker.try_acquire(NOW).expect("closed").failure(NOW, || 0);
    Arc::new(
        Upstream::new()
            .with_limiter(Limiter::new(Quota::new(Rate::new(1, hour), 2).expect("valid")))
            .with_breaker(breaker)
            .with_budget(BudgetConfig::new(1, Ratio::ZERO).build().expect("valid")),
    )
}

// Mutant: no-refund-at-admit
#[test]
fn of_two_calls_one_probes_and_the_other_gives_its_token_back() {
    explore(|| {
        let upstream = upstream();
        let now = at(secs(10));
        let probe = move |upstream: &Upstream| {
            let mut call = upstream.call(&Policy::STANDARD, Safety::Idempotent, now);
            match call.poll(now, || 0) {
                Step::Attempt(_) => {
                    call.record(now, Outcome::Failure(Failure::transient()), || 0);
                    let open = call.poll(now, || 0);
                    assert!(matches!(open, Step::Stop(Stop::CircuitOpen { .. })), "{open:?}");
                    true
                }
                Step::Stop(Stop::CircuitOpen { .. }) => false,
                step => panic!("{step:?}"),
            }
        };
        let other = {
            let upstream = Arc::clone(&upstream);
            thread::spawn(move || probe(&upstream))
        };
        let ours = probe(&upstream);
        let theirs = other.join().expect("no panic");
        assert!(ours != theirs, "ours {ours}, theirs {theirs}");
        let limiter = upstream.limiter().expect("configured");
        assert_eq!(limiter.available(now), 1, "only the probe's token is spent");
        assert_eq!(upstream.budget().expect("configured").level(now), 1);
    });
}

// Mutant: charge-kept
#[test]
fn of_two_failures_the_budget_pays_for_one_retry() {
    explore(|| {
        let budget = BudgetConfig::new(1, Ratio::ZERO).build().expect("valid");
        let upstream: Arc<Upstream> = Arc::new(Upstream::new().with_budget(budget));
        let retry = |upstream: &Upstream| {
            let mut call = upstream.call(&Policy::STANDARD, Safety::Idempotent, NOW);
            assert!(matches!(call.poll(NOW, || 0), Step::Attempt(_)));
            call.record(NOW, Outcome::Failure(Failure::transient()), || 0);
            match call.poll(NOW, || 0) {
                Step::Backoff { until, .. } => {
                    assert!(matches!(call.poll(until, || 0), Step::Attempt(_)));
                    true
                }
                Step::Stop(Stop::Budget) => false,
                step => panic!("{step:?}"),
            }
        };
        let other = {
            let upstream = Arc::clone(&upstream);
            thread::spawn(move || retry(&upstream))
        };
        let ours = retry(&upstream);
        let theirs = other.join().expect("no panic");
        assert!(ours != theirs, "ours {ours}, theirs {theirs}");
        assert_eq!(upstream.budget().expect("configured").level(NOW), 0);
    });
}
