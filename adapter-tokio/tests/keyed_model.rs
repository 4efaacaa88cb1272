//! Whatever is asked in whatever order, the table keeps what a plain list would.

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use holdoff_tokio::{FairLimiter, Keyed, Quota, Rate};
use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::{Instant, advance};

#[derive(Clone, Copy, Debug)]
enum Op {
    Drop(usize),
    Find(u32),
    Get(u32),
    Take(usize),
    /// The clock goes on (ms).
    Tick(u64),
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..6_usize).prop_map(Op::Drop),
        1 => (0..6_u32).prop_map(Op::Find),
        5 => (0..6_u32).prop_map(Op::Get),
        2 => (0..6_usize).prop_map(Op::Take),
        3 => prop_oneof![0..5_000_u64, 0..90_000_u64].prop_map(Op::Tick),
    ]
}

const PLACES: usize = 3;
/// Of each bucket, in which there is one more each 20 s.
const BURST: u64 = 5;
const INTERVAL: u64 = 20_000;
const IDLE_AFTER: u64 = 30_000;

#[derive(Clone, Copy, Debug)]
struct Kept {
    key: u32,
    held: usize,
    last_use: u64,
    full_at: u64,
}

/// The least recently used first; times in milliseconds.
#[derive(Default)]
struct List(Vec<Kept>);

impl List {
    fn find(&mut self, now: u64, key: u32) -> bool {
        let Some(at) = self.0.iter().position(|kept| kept.key == key) else { return false };
        let kept = self.0.remove(at);
        self.0.push(Kept { held: kept.held + 1, last_use: now, ..kept });
        true
    }

    /// Or for how long there can be no room.
    fn get(&mut self, now: u64, key: u32) -> Result<(), u64> {
        if !self.find(now, key) {
            if self.0.len() == PLACES {
                self.forget(now)?;
            }
            self.0.push(Kept { key, held: 1, last_use: now, full_at: 0 });
        }
        Ok(())
    }

    fn forget(&mut self, now: u64) -> Result<(), u64> {
        let is_unused = |kept: &Kept| kept.last_use + IDLE_AFTER <= now;
        let is_idle = |kept: &Kept| is_unused(kept) && kept.held == 0 && kept.full_at <= now;
        let idle = self.0.iter().position(is_idle);
        let seen = idle.unwrap_or(self.0.len());
        let (seen, unseen) = self.0.split_at(seen);
        // Whoever is held counts as used now, if that was looked at.
        let (held, left): (Vec<_>, Vec<_>) =
            seen.iter().copied().partition(|kept| is_unused(kept) && kept.held > 0);
        let held = held.into_iter().map(|kept| Kept { last_use: now, ..kept });
        let list = left.into_iter().chain(unseen.iter().skip(1).copied()).chain(held).collect();
        if idle.is_some() {
            self.0 = list;
            return Ok(());
        }
        self.0 = list;
        let soonest = self.0.iter().map(|kept| match is_unused(kept) {
            true => kept.full_at,
            false => kept.last_use + IDLE_AFTER,
        });
        Err(soonest.min().unwrap_or(u64::MAX) - now)
    }

    fn of(&mut self, key: u32) -> &mut Kept {
        self.0.iter_mut().find(|kept| kept.key == key).expect("what is held is there")
    }

    fn take(&mut self, now: u64, key: u32) -> bool {
        let kept = self.of(key);
        let full_at = kept.full_at.max(now) + INTERVAL;
        let is_there = full_at <= now + BURST * INTERVAL;
        if is_there {
            kept.full_at = full_at;
        }
        is_there
    }
}

async fn check(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let quota = Quota::new(Rate::per_minute(3), 5).expect("the quota is valid");
    let places = NonZeroUsize::new(PLACES).expect("there are some");
    let table = Keyed::new(places, move |_: &u32| FairLimiter::new(quota))
        .with_idle_after(Duration::from_millis(IDLE_AFTER));
    let mut list = List::default();
    let mut held: Vec<(u32, Arc<FairLimiter>)> = Vec::new();
    let start = Instant::now();
    for op in ops {
        let now = u64::try_from(start.elapsed().as_millis()).expect("it is not that long");
        match op {
            Op::Tick(by) => advance(Duration::from_millis(by)).await,
            Op::Drop(number) if number < held.len() => list.of(held.remove(number).0).held -= 1,
            Op::Take(number) if number < held.len() => {
                let (key, limiter) = &held[number];
                prop_assert_eq!(limiter.try_acquire(1).is_ok(), list.take(now, *key));
            }
            Op::Drop(_) | Op::Take(_) => {}
            Op::Find(key) => {
                let found = table.find(&key);
                prop_assert_eq!(found.is_some(), list.find(now, key));
                held.extend(found.map(|limiter| (key, limiter)));
            }
            Op::Get(key) => match (table.get(&key), list.get(now, key)) {
                (Ok(limiter), Ok(())) => held.push((key, limiter)),
                (Err(full), Err(soonest)) => {
                    // What it found out before may have become later since.
                    prop_assert!(full.retry_after <= Duration::from_millis(soonest));
                    prop_assert!(full.retry_after > Duration::ZERO);
                }
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            },
        }
        let there: Vec<u32> = table.entries().iter().map(|(key, _)| *key).collect();
        let expected: Vec<u32> = list.0.iter().map(|kept| kept.key).collect();
        prop_assert_eq!(there, expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn it_keeps_and_forgets_what_a_plain_list_would(
        ops in prop::collection::vec(any_op(), 1..80),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be built").block_on(check(ops))?;
    }
}
