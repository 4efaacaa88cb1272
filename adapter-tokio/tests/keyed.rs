//! A table by key: what it forgets, what it keeps, and tenants that share a provider.

mod common;

use core::future::ready;
use core::num::NonZeroUsize;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

use common::{built, constant};
use holdoff_tokio::{
    BreakerConfig, Failure, FairLimiter, Idle, Instant, Keyed, Limit, Mode, Policy, Quota, Rate,
    Ratio, Upstream, valid,
};
use tokio::time::{Instant as TokioInstant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

const fn capacity(capacity: usize) -> NonZeroUsize {
    NonZeroUsize::new(capacity).unwrap()
}

fn quota(rate: Rate, burst: u32) -> Quota {
    Quota::new(rate, burst).unwrap()
}

fn limiters(places: usize) -> Keyed<String, FairLimiter> {
    Keyed::new(capacity(places), |_| FairLimiter::new(quota(Rate::per_second(1), 5)))
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_idle_one_makes_room() {
    let table = limiters(3);
    for key in ["a", "b", "c", "a"] {
        table.get(key).unwrap();
        sleep(SECOND).await;
    }
    assert_eq!(table.get("d").unwrap_err().retry_after, SECOND * 57, "a minute after `b`");
    sleep(SECOND * 57).await;
    table.get("d").unwrap();
    let keys: Vec<_> = table.entries().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["c", "a", "d"]);
    assert_eq!((table.len(), table.capacity().get(), table.is_empty()), (3, 3, false));
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_a_fresh_burst_by_being_forgotten() {
    let table = limiters(1).with_idle_after(SECOND);
    table.get("a").unwrap().try_acquire(5).unwrap();
    sleep(SECOND * 2).await;
    assert_eq!(table.get("b").unwrap_err().retry_after, SECOND, "at the next look");
    sleep(SECOND).await;
    // Now it knows when the bucket is full.
    assert!(table.get("b").unwrap_err().retry_after <= SECOND * 2);
    assert_eq!(table.find("a").unwrap().available(), 3);
    sleep(SECOND * 2).await;
    table.get("b").unwrap();

    table.get("b").unwrap().pause_for(MINUTE * 10);
    sleep(MINUTE * 10 - SECOND).await;
    table.get("c").unwrap_err();
    sleep(SECOND * 5).await; // Resumed with one token.
    table.get("c").unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_is_held_stays() {
    let table = limiters(2);
    let held = table.get("a").unwrap();
    let weak = Arc::downgrade(&table.get("b").unwrap());
    sleep(MINUTE * 60).await;
    // A `Weak` could come to life.
    assert_eq!(table.get("c").unwrap_err().retry_after, MINUTE);
    assert!(weak.upgrade().is_some());
    drop(weak);
    sleep(MINUTE).await;
    table.get("c").unwrap();
    assert!(Arc::ptr_eq(&held, &table.get("a").unwrap()));
    assert!(table.find("b").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_open_or_run_by_hand_stays() {
    let open_period = MINUTE * 5;
    let table: Keyed<u32, Upstream> = Keyed::new(capacity(1), move |_| {
        let breaker = BreakerConfig::consecutive(1)
            .with_open_period(open_period)
            .with_open_jitter(Ratio::percent(0));
        Upstream::new(built(constant(1, SECOND))).with_breaker(breaker.build().unwrap())
    });
    let call = async |key| {
        let upstream = table.get(&key).unwrap();
        upstream.call(|| ready(Err::<(), _>(Failure::transient()))).await.unwrap_err();
    };
    call(1).await;
    sleep(open_period - SECOND).await;
    // It is as a new one when it has refused nobody for a minute, its stable period.
    sleep(MINUTE).await;
    assert!(table.get(&2).unwrap_err().retry_after <= SECOND * 2);
    sleep(SECOND * 2).await;
    call(2).await;

    table.get(&2).unwrap().breaker().unwrap().set_mode(Mode::ForcedOpen);
    sleep(MINUTE * 60).await;
    assert_eq!(table.get(&3).unwrap_err().retry_after, MINUTE);
    table.get(&2).unwrap().breaker().unwrap().set_mode(Mode::Normal);
    sleep(MINUTE).await;
    call(3).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_builder_changes_nothing() {
    let is_armed = Arc::new(AtomicU32::new(1));
    let table = Keyed::new(capacity(1), {
        let is_armed = Arc::clone(&is_armed);
        move |_: &u32| {
            assert_eq!(is_armed.load(Ordering::Relaxed), 0);
            FairLimiter::new(quota(Rate::per_second(1), 1))
        }
    });
    catch_unwind(AssertUnwindSafe(|| table.get(&1))).unwrap_err();
    assert!(table.is_empty());
    is_armed.store(0, Ordering::Relaxed);
    table.get(&1).unwrap();
}

#[test]
fn nothing_is_built_for_strangers_when_there_is_no_room() {
    let built = Arc::new(AtomicU32::new(0));
    let table = Keyed::new(capacity(100), {
        let built = Arc::clone(&built);
        move |_: &u32| {
            built.fetch_add(1, Ordering::Relaxed);
            FairLimiter::new(quota(Rate::per_second(1), 1))
        }
    });
    for stranger in 0..100_000 {
        assert_eq!(table.get(&stranger).is_ok(), stranger < 100);
    }
    assert_eq!((table.len(), built.load(Ordering::Relaxed)), (100, 100));
}

#[derive(Debug)]
struct Always(u32);

impl Idle for Always {
    fn idle_at(&self) -> Option<Instant> {
        Some(Instant::EPOCH)
    }
}

#[test]
fn many_threads_never_hold_two_values_of_a_key() {
    const KEYS: u32 = 12;
    let table = Keyed::new(capacity(8), |&key: &u32| Always(key)).with_idle_after(Duration::ZERO);
    // Which value of each key is held, and how often.
    let held: Mutex<HashMap<u32, (usize, u32)>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (table, held) = (&table, &held);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..5_000 {
                    let keys = [random.u32(..KEYS), random.u32(..KEYS)];
                    let mine: Vec<_> = keys.iter().filter_map(|key| table.get(key).ok()).collect();
                    for value in &mine {
                        let address = Arc::as_ptr(value).addr();
                        let mut held = held.lock().unwrap();
                        let (other, count) = held.entry(value.0).or_insert((address, 0));
                        assert!(*count == 0 || *other == address, "two of {}", value.0);
                        (*other, *count) = (address, *count + 1);
                    }
                    std::thread::yield_now();
                    for value in &mine {
                        held.lock().unwrap().get_mut(&value.0).unwrap().1 -= 1;
                    }
                }
            });
        }
    });
    assert_eq!(table.len(), 8);
    let keys: Vec<_> = table.entries().iter().map(|(key, value)| (*key, value.0)).collect();
    assert!(keys.iter().all(|(key, of)| key == of));
}

#[tokio::test(start_paused = true)]
async fn one_tenants_backlog_keeps_no_other_waiting() {
    const BACKLOG: usize = 1_000;
    static PROVIDER: Upstream =
        Upstream::new(Policy::BATCH).with_limiter(valid!(Quota::new(Rate::per_second(1), 1)));
    PROVIDER.limiter().unwrap().acquire(1).await.unwrap();
    // Each tenant alone may have all that the provider gives.
    let tenants = Arc::new(Keyed::new(capacity(10), |_: &String| {
        FairLimiter::new(quota(Rate::per_second(100), 1_000))
    }));
    let call = |tenant: &'static str| {
        let tenants = Arc::clone(&tenants);
        tokio::spawn(async move {
            let limiter = tenants.get(tenant).unwrap();
            let limits = [Limit::new(&limiter, 1)];
            let call = PROVIDER.prepare().with_limits(&limits);
            call.run(|_| ready(Ok::<_, Failure>(TokioInstant::now()))).await.unwrap()
        })
    };
    let backlog: Vec<_> = (0..BACKLOG).map(|_| call("a")).collect();
    sleep(SECOND / 2).await;
    assert_eq!(tenants.find("a").unwrap().waiting() as usize, BACKLOG);
    assert_eq!(PROVIDER.limiter().unwrap().waiting(), 1, "only its head waits with everybody");

    let start = TokioInstant::now();
    let served = call("b").await.unwrap();
    assert!(served - start <= SECOND * 2, "within two tokens: {:?}", served - start);
    for (number, call) in backlog.into_iter().enumerate() {
        let served = call.await.unwrap() - start;
        // One token in all its time went to the other.
        let turns = u32::try_from(number).unwrap() + 1;
        assert!(served <= SECOND * (turns + 1), "{number}: {served:?}");
    }
}
