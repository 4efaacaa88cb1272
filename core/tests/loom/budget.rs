//! The retry budget: it never grants more than it has, and loses nothing.

use holdoff::{BudgetConfig, Ratio, RetryBudget};
use loom::sync::Arc;
use loom::thread;

use super::{NOW, explore};

fn budget(reserve: u32) -> Arc<RetryBudget> {
    Arc::new(BudgetConfig::new(reserve, Ratio::percent(50)).build().expect("valid"))
}

fn withdraw(budget: &RetryBudget, times: u32) -> u32 {
    (0..times).map(|_| u32::from(budget.withdraw(NOW).is_ok())).sum()
}

// Mutant: exchange-by-store
#[test]
fn retries_are_at_most_the_reserve_and_the_share_of_the_calls() {
    explore(|| {
        let budget = budget(1);
        let other = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || {
                budget.deposit();
                budget.deposit();
                withdraw(&budget, 1)
            })
        };
        let mut granted = withdraw(&budget, 2);
        granted += other.join().expect("no panic");
        assert!(granted <= 2);
        // What was not granted is still there.
        granted += withdraw(&budget, 2);
        assert_eq!((granted, budget.level(NOW)), (2, 0));
    });
}

// Mutant: exchange-by-store
#[test]
fn what_is_put_back_can_be_taken_out_again() {
    explore(|| {
        let budget = budget(1);
        budget.withdraw(NOW).expect("the reserve");
        let other = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.refund())
        };
        budget.deposit();
        budget.deposit();
        other.join().expect("no panic");
        assert_eq!(withdraw(&budget, 3), 2);
    });
}
