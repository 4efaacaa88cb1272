//! A table of upstreams by key: who keeps a place, who loses it, what is new then.

#![cfg(not(loom))]

#[path = "../common/mod.rs"]
mod common;
mod model;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use holdoff::{
    BreakerConfig, BreakerState, BudgetConfig, CircuitBreaker, Counters, Entry, Instant, Limiter,
    Mode, NoEntry, Outcome, Policy, Quota, Rate, Ratio, Safety, Upstream, UpstreamTable, valid,
};

use common::{at, secs};

const QUOTA: Quota = valid!(Quota::new(Rate::per_second(1), 5));

/// Five tokens, one a second; a failure opens it for 10 s; two retries.
#[expect(clippy::declare_interior_mutable_const, reason = "each slot has a copy of its own")]
const UPSTREAM: Upstream = Upstream::new()
    .with_limiter(Limiter::new(QUOTA))
    .with_breaker(valid!(BreakerConfig::consecutive(1).build()))
    .with_budget(valid!(BudgetConfig::new(2, Ratio::ZERO).build()))
    .with_counters(Counters::new());

/// Idle after a minute.
fn table<const N: usize>() -> UpstreamTable<N> {
    UpstreamTable::new([UPSTREAM; N])
}

fn use_up(entry: &Entry<'_>, now: Instant) {
    let limiter = entry.limiter().expect("it has one");
    limiter.try_acquire(now, limiter.available(now)).expect("available");
}

const fn full_until(retry_at: Duration) -> NoEntry {
    NoEntry::Full { retry_at: Some(at(retry_at)) }
}

#[test]
fn a_key_finds_its_own_upstream_again() {
    let table = table::<3>();
    for key in [0, u64::MAX, 7] {
        use_up(&table.get(at(secs(0)), key).expect("there is room"), at(secs(0)));
    }
    for (key, later) in [(u64::MAX, 1), (7, 2), (0, 3)] {
        let entry = table.get(at(secs(later)), key).expect("it is there");
        assert_eq!(entry.key(), key);
        let level = entry.limiter().expect("it has one").available(at(secs(later)));
        assert_eq!(u64::from(level), later, "{key}");
    }
    assert_eq!(table.entries().map(|entry| entry.key()).collect::<Vec<_>>(), [0, u64::MAX, 7]);
}

#[test]
fn a_vacant_slot_holds_no_key() {
    let table = table::<2>();
    assert!(table.find(at(secs(0)), 0).is_none());
    assert_eq!(table.entries().count(), 0);
    let none = UpstreamTable::<0>::new([]);
    assert_eq!(none.get(at(secs(0)), 1).unwrap_err(), NoEntry::Full { retry_at: None });
}

#[test]
fn the_least_recently_used_idle_key_makes_room() {
    let table = table::<3>();
    for (key, used) in [(1, 5), (2, 0), (3, 9), (2, 10)] {
        drop(table.get(at(secs(used)), key).expect("there is room"));
    }
    // A look does not count as use.
    assert_eq!(table.entries().count(), 3);
    for (new, now, gone) in [(4, 65, 1), (5, 69, 3), (6, 70, 2)] {
        let early = at(secs(now)).as_nanos() - 1;
        assert_eq!(table.get(Instant::from_nanos(early), new).unwrap_err(), full_until(secs(now)));
        drop(table.get(at(secs(now)), new).expect("one is idle"));
        assert!(table.find(at(secs(now)), gone).is_none(), "{gone} is gone");
    }
}

/// What keeps a key from being forgotten, and until when (s), if that is known.
#[test]
fn what_would_gain_by_being_forgotten_stays() {
    type Busy = fn(&Entry<'_>);
    let rows: [(&str, Busy, Option<u64>); 10] = [
        ("unused", |_| (), Some(60)),
        ("tokens taken", |entry| use_up(entry, at(secs(0))), Some(60)),
        ("tokens taken late", |entry| use_up(entry, at(secs(70))), Some(75)),
        (
            "paused",
            |entry| entry.limiter().expect("it has one").pause_until(at(secs(200))),
            // One token is there when the pause ends, four are to come.
            Some(204),
        ),
        ("breaker open", |entry| trip(entry, at(secs(55))), Some(125)),
        (
            "probe lost",
            |entry| {
                trip(entry, at(secs(55)));
                let breaker = entry.breaker().expect("it has one");
                core::mem::forget(breaker.try_acquire(at(secs(65))).expect("half-open"));
            },
            Some(135),
        ),
        (
            // Others may have been refused as long as it was under way.
            "probe dropped",
            |entry| {
                trip(entry, at(secs(55)));
                let breaker = entry.breaker().expect("it has one");
                breaker.try_acquire(at(secs(65))).expect("half-open").neutral();
            },
            Some(135),
        ),
        ("forced open", |entry| set_mode(entry, Mode::ForcedOpen), None),
        ("disabled", |entry| set_mode(entry, Mode::Disabled), None),
        ("shadow", |entry| set_mode(entry, Mode::Shadow), None),
    ];
    for (what, busy, idle_at) in rows {
        let table = table::<1>();
        let entry = table.get(at(secs(0)), 1).expect("empty");
        busy(&entry);
        let held = NoEntry::Full { retry_at: None };
        assert_eq!(table.get(at(secs(999)), 2).unwrap_err(), held, "{what}");
        drop(entry);
        let Some(idle_at) = idle_at else {
            assert_eq!(table.get(at(secs(999)), 2).unwrap_err(), held, "{what}");
            continue;
        };
        let early = at(secs(idle_at) - Duration::from_nanos(1));
        assert_eq!(table.get(early, 2).unwrap_err(), full_until(secs(idle_at)), "{what}");
        assert!(table.find(early, 2).is_none(), "{what}: nothing changed");
        assert_eq!(table.get(at(secs(idle_at)), 2).map(|entry| entry.key()), Ok(2), "{what}");
    }
}

fn trip(entry: &Entry<'_>, now: Instant) {
    let permit = entry.breaker().expect("it has one").try_acquire(now).expect("closed");
    permit.failure(now, || 0);
}

fn set_mode(entry: &Entry<'_>, mode: Mode) {
    entry.breaker().expect("it has one").set_mode(mode);
}

#[test]
fn a_place_that_goes_to_another_key_is_as_new() {
    let table = table::<1>();
    let entry = table.get(at(secs(0)), 1).expect("empty");
    let mut call = entry.call(&Policy::STANDARD, Safety::Idempotent, at(secs(0)));
    call.poll(at(secs(0)), || 0);
    call.record(at(secs(0)), Outcome::Success, || 0);
    drop(call);
    let budget = entry.budget().expect("it has one");
    budget.withdraw(at(secs(0))).expect("two are there");
    let limiter = entry.limiter().expect("it has one");
    let other = Quota::new(Rate::per_minute(1), 2).expect("valid");
    limiter.set_quota(at(secs(0)), other).expect("nobody else changes it");
    trip(&entry, at(secs(0)));
    drop(entry);

    let now = at(secs(600));
    let entry = table.get(now, 2).expect("idle");
    assert_eq!(entry.limiter().map(Limiter::quota), Some(QUOTA));
    assert_eq!(entry.limiter().map(|limiter| limiter.available(now)), Some(5));
    assert_eq!(entry.breaker().map(|breaker| breaker.state(now)), Some(BreakerState::Closed));
    assert_eq!(entry.budget().map(|budget| budget.level(now)), Some(2));
    assert_eq!(entry.counters().expect("it has some").snapshot(), Counters::new().snapshot());
    // The first open period of a new one, and not a grown one.
    trip(&entry, now);
    let until = at(secs(610));
    assert_eq!(
        entry.breaker().map(|breaker| breaker.state(now)),
        Some(BreakerState::Open { until })
    );
}

#[test]
fn a_mode_that_it_began_with_is_nothing_to_stay_for() {
    for mode in [Mode::Shadow, Mode::Disabled, Mode::ForcedOpen] {
        let upstream = UPSTREAM;
        upstream.breaker().expect("it has one").set_mode(mode);
        let table = UpstreamTable::new([upstream]);
        for (key, now, changed) in [(1, 0, None), (2, 60, Some(Mode::Normal)), (3, 120, None)] {
            let entry = table.get(at(secs(now)), key);
            match (key, entry) {
                (3, entry) => assert!(entry.is_err(), "{mode:?}: changed by hand"),
                (_, entry) => {
                    let entry = entry.expect("idle");
                    assert_eq!(entry.breaker().map(CircuitBreaker::mode), Some(mode));
                    changed.into_iter().for_each(|changed| set_mode(&entry, changed));
                }
            }
        }
    }
}

#[test]
fn a_key_that_cannot_be_counted_any_more_gets_no_second_place() {
    let table = table::<2>();
    let mut held = 0_u32;
    let error = loop {
        match table.get(at(secs(0)), 7) {
            Ok(entry) => core::mem::forget(entry),
            Err(error) => break error,
        }
        held += 1;
    };
    assert_eq!((held, error), ((1 << 20) - 2, NoEntry::Full { retry_at: None }));
    assert_eq!(table.get(at(secs(0)), 8).map(|entry| entry.key()), Ok(8));
}

#[test]
fn what_is_refused_says_why() {
    for (error, message) in [
        (NoEntry::Busy, "another key is being put into the table"),
        (NoEntry::Full { retry_at: None }, "the table is full and nothing in it is idle"),
    ] {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn the_end_of_time_is_no_way_to_make_room() {
    let end = Instant::from_nanos(u64::MAX - 1);
    for now in [end, Instant::MAX] {
        let table = table::<1>();
        drop(table.get(now, 1).expect("empty"));
        assert_eq!(table.get(now, 2).unwrap_err(), NoEntry::Full { retry_at: None });
        assert_eq!(table.find(now, 1).map(|entry| entry.key()), Some(1));
    }
}

// More keys than slots, all of them all the time: whoever is served shares a limiter with nobody
// but its own key, and gets no more than one bucket.
#[test]
fn threads_that_fight_for_slots_get_one_bucket_a_key() {
    const KEYS: usize = 6;
    let table = table::<3>();
    let (taken, barrier) = ([const { AtomicU64::new(0) }; KEYS], Barrier::new(4));
    thread::scope(|scope| {
        for thread in 0..4_usize {
            let (table, taken, barrier) = (&table, &taken, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for turn in 0..20_000_usize {
                    let key = (turn * 7 + thread * 3 + turn / 11) % KEYS;
                    // Time stands still: a bucket that was touched is never full again.
                    let Ok(entry) = table.get(at(secs(0)), key as u64) else { continue };
                    assert_eq!(entry.key(), key as u64);
                    let limiter = entry.limiter().expect("it has one");
                    if limiter.try_acquire(at(secs(0)), 1).is_ok() {
                        taken[key].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut taken = taken.map(AtomicU64::into_inner);
    taken.sort_unstable();
    assert_eq!(taken, [0, 0, 0, 5, 5, 5]);
}
