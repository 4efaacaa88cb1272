//! A table of upstreams: one slot a key, and a key keeps it while it is held.

use core::time::Duration;

use holdoff::{Limiter, NoEntry, Quota, Rate, Upstream, UpstreamTable};
use loom::sync::Arc;
use loom::thread;

use super::{NOW, explore};

fn table<const N: usize>() -> Arc<UpstreamTable<N>> {
    let upstreams = core::array::from_fn(|_| Upstream::new());
    Arc::new(UpstreamTable::new(upstreams).with_idle_after(Duration::ZERO))
}

// Mutant: put-without-a-second-look
#[test]
fn a_key_that_two_ask_for_at_once_gets_one_slot() {
    explore(|| {
        let table = table::<2>();
        let ask = |table: &UpstreamTable<2>| match table.get(NOW, 7) {
            Ok(entry) => assert_eq!(entry.key(), 7),
            Err(error) => assert_eq!(error, NoEntry::Busy),
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || ask(&table))
        };
        ask(&table);
        other.join().expect("no panic");
        let keys: Vec<u64> = table.entries().map(|entry| entry.key()).collect();
        assert_eq!(keys, [7]);
    });
}

// Mutants: key-unchecked, exchange-by-store
#[test]
fn a_slot_goes_to_another_key_only_while_nobody_holds_it() {
    explore(|| {
        let table = table::<1>();
        drop(table.get(NOW, 1).expect("empty"));
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.get(NOW, 2).map(|entry| assert_eq!(entry.key(), 2)))
        };
        let ours = table.find(NOW, 1);
        if let Some(entry) = &ours {
            assert_eq!(entry.key(), 1);
            let full = NoEntry::Full { retry_at: None };
            let answer = table.get(NOW, 3).map(|entry| entry.key());
            assert!(matches!(answer, Err(error) if error == full || error == NoEntry::Busy));
            assert_eq!(entry.key(), 1);
        }
        let theirs = other.join().expect("no panic");
        assert!(theirs.is_ok() || ours.is_some(), "{theirs:?}");
        drop(ours);
        // Everything was given back.
        assert!(table.get(NOW, 4).is_ok());
    });
}

// Mutant: no-second-look-after-claim
#[test]
fn a_bucket_that_was_touched_goes_to_no_other_key_as_full() {
    explore(|| {
        let quota = Quota::new(Rate::per_second(1), 1).expect("valid");
        let upstream = Upstream::new().with_limiter(Limiter::new(quota));
        let table = UpstreamTable::new([upstream]).with_idle_after(Duration::ZERO);
        let table: Arc<UpstreamTable<1>> = Arc::new(table);
        let takes = |upstream: &Upstream| {
            upstream.limiter().expect("configured").try_acquire(NOW, 1).is_ok()
        };
        drop(table.get(NOW, 1).expect("empty"));
        let other = {
            let table = Arc::clone(&table);
            // Within one millisecond: the slot looks as if nobody had asked for it.
            thread::spawn(move || table.find(NOW, 1).is_some_and(|entry| takes(&entry)))
        };
        let ours = table.get(NOW, 2).is_ok_and(|entry| takes(&entry));
        let theirs = other.join().expect("no panic");
        assert!(!(ours && theirs), "one token was taken twice");
    });
}
