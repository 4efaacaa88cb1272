//! Whatever is asked in whatever order, the table keeps what a plain list would.

use holdoff::{Entry, Instant, NoEntry};
use proptest::prelude::*;

use crate::common::{at, millis};
use crate::table;

#[derive(Clone, Copy, Debug)]
enum Op {
    Drop(usize),
    Find(u64),
    Get(u64),
    Take(usize),
    /// The clock goes on, or back (ms).
    Tick(i64),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..9_usize).prop_map(Op::Drop),
        1 => (0..5_u64).prop_map(Op::Find),
        4 => (0..5_u64).prop_map(Op::Get),
        2 => (0..9_usize).prop_map(Op::Take),
        3 => (-30_000..90_000_i64).prop_map(Op::Tick),
    ]
}

const SLOTS: usize = 3;
/// The bucket holds so many tokens, one of which comes each second.
const BURST: u64 = 5;
const SECOND: u64 = 1_000;
const IDLE_AFTER: u64 = 60_000;

#[derive(Clone, Copy, Debug)]
struct Kept {
    key: u64,
    held: usize,
    last_use: u64,
    full_at: u64,
}

impl Kept {
    const fn new(key: u64) -> Self {
        Self { key, held: 0, last_use: 0, full_at: 0 }
    }

    fn idle_at(&self) -> u64 {
        self.full_at.max(self.last_use + IDLE_AFTER)
    }
}

/// Times in milliseconds.
#[derive(Default)]
struct List(Vec<Kept>);

impl List {
    fn of(&mut self, key: u64) -> Option<&mut Kept> {
        self.0.iter_mut().find(|kept| kept.key == key)
    }

    fn find(&mut self, now: u64, key: u64) -> bool {
        let Some(kept) = self.of(key) else { return false };
        kept.held += 1;
        kept.last_use = kept.last_use.max(now);
        true
    }

    /// Or when there will be room.
    fn get(&mut self, now: u64, key: u64) -> Result<(), Option<u64>> {
        if self.of(key).is_none() {
            if self.0.len() < SLOTS {
                self.0.push(Kept::new(key));
            } else {
                let unheld = self.0.iter_mut().filter(|kept| kept.held == 0);
                let mut unheld: Vec<_> = unheld.collect();
                let soonest = unheld.iter().map(|kept| kept.idle_at()).min();
                unheld.retain(|kept| kept.idle_at() <= now);
                let oldest = unheld.into_iter().min_by_key(|kept| kept.last_use);
                *oldest.ok_or(soonest)? = Kept::new(key);
            }
        }
        assert!(self.find(now, key));
        Ok(())
    }

    fn drop(&mut self, key: u64) {
        self.of(key).expect("it is there").held -= 1;
    }

    fn take(&mut self, now: u64, key: u64) -> bool {
        let kept = self.of(key).expect("it is there");
        let full_at = kept.full_at.max(now) + SECOND;
        let there = full_at <= now + BURST * SECOND;
        if there {
            kept.full_at = full_at;
        }
        there
    }
}

proptest! {
    #[test]
    fn it_keeps_and_forgets_what_a_plain_list_would(
        ops in prop::collection::vec(any_op(), 1..80),
    ) {
        let (table, mut list) = (table::<SLOTS>(), List::default());
        let mut held: Vec<Entry<'_>> = Vec::new();
        let mut clock = 0_u64;
        for op in ops {
            let now: Instant = at(millis(clock));
            match op {
                Op::Tick(by) => clock = clock.saturating_add_signed(by),
                Op::Drop(place) if place < held.len() => list.drop(held.remove(place).key()),
                Op::Take(place) if place < held.len() => {
                    let entry = &held[place];
                    let limiter = entry.limiter().expect("it has one");
                    let is_there = list.take(clock, entry.key());
                    prop_assert_eq!(limiter.try_acquire(now, 1).is_ok(), is_there);
                }
                Op::Drop(_) | Op::Take(_) => {}
                Op::Find(key) => {
                    let entry = table.find(now, key);
                    prop_assert_eq!(entry.is_some(), list.find(clock, key));
                    held.extend(entry);
                }
                Op::Get(key) => match (table.get(now, key), list.get(clock, key)) {
                    (Ok(entry), Ok(())) => {
                        prop_assert_eq!(entry.key(), key);
                        held.push(entry);
                    }
                    (Err(NoEntry::Full { retry_at }), Err(soonest)) => {
                        prop_assert_eq!(retry_at, soonest.map(|soonest| at(millis(soonest))));
                    }
                    (entry, expected) => panic!("{entry:?} instead of {expected:?}"),
                },
            }
            let there: Vec<u64> = table.entries().map(|entry| entry.key()).collect();
            let expected: Vec<u64> = list.0.iter().map(|kept| kept.key).collect();
            prop_assert_eq!(there, expected);
        }
    }
}
