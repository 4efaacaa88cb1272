//! Whoever does not wait in line is told when to ask again.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};
use core::time::Duration;

use holdoff_embassy::{
    AcquireError, Clock, EmbassyTimer, FairLimiter, Instant, Quota, Rate, Refusal, valid,
};
use proptest::prelude::*;

use crate::bench::{Bench, advance_clock};

/// One in a hundred milliseconds, 5 at once.
const TENTH: Quota = valid!(Quota::new(Rate::per_second(10), 5));

/// Those who wait in line.
#[derive(Default)]
struct Line<'a>(Vec<Waiting<'a>>);

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<(), AcquireError>> + 'a>>;

impl<'a> Line<'a> {
    /// In this order, each having looked once.
    fn at(limiter: &'a FairLimiter<8>, costs: &[u32]) -> Self {
        let mut line = Self::default();
        for &cost in costs {
            line.0.push(Box::pin(limiter.acquire(cost)));
            line.poll();
        }
        line
    }

    fn poll(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        self.0.retain_mut(|waiting| waiting.as_mut().poll(&mut context).is_pending());
    }
}

#[test]
fn who_asks_while_others_wait_is_told_to_come_after_them() {
    const CENTURIES: u64 = 200 * 365 * 86_400_000;
    let not_yet =
        |millis: u64| Err(Refusal::NotYet { until: Instant::from_nanos(millis * 1_000_000) });
    let never = Err(Refusal::Never { burst: 5 });
    let end = Err(Refusal::NotYet { until: Instant::MAX });
    // Taken at 0, pause (ms), costs of those in line, when it asks (ms), nobody having looked since
    // then, and for what.
    for (name, taken, pause, line, at, cost, told) in [
        ("nobody is there", 0, 0, &[][..], 0, 5, Ok(())),
        ("an empty bucket", 5, 0, &[], 0, 2, not_yet(200)),
        ("one waits for one", 5, 0, &[1], 0, 1, not_yet(200)),
        ("one waits for one", 5, 0, &[1], 50, 1, not_yet(200)),
        ("one waits for one", 5, 0, &[1], 0, 5, not_yet(600)),
        ("four wait for one each", 5, 0, &[1, 1, 1, 1], 0, 1, not_yet(200)),
        ("one waits for five, three are there", 5, 0, &[5], 350, 2, not_yet(450)),
        ("one waits for five, three are there", 5, 0, &[5], 350, 4, not_yet(500)),
        ("a full bucket, one is due", 5, 0, &[5], 10_000, 5, not_yet(10_100)),
        ("a pause", 0, 3_000, &[], 0, 1, not_yet(3_000)),
        ("a pause that one waits out", 0, 3_000, &[1], 0, 1, not_yet(3_100)),
        ("a pause that two wait out", 5, 3_000, &[2, 1], 2_999, 1, not_yet(3_100)),
        ("above the burst, nobody is there", 5, 0, &[], 0, 6, never),
        ("above the burst", 5, 0, &[1], 0, 6, never),
        ("above the burst in a pause", 0, 3_000, &[1], 0, u32::MAX, never),
        ("free", 5, 0, &[1], 0, 0, Ok(())),
        ("the end of time, nobody is there", 0, 0, &[], CENTURIES, 1, end),
        ("the end of time", 5, 0, &[1], CENTURIES, 1, end),
    ] {
        let _bench = Bench::new();
        let limiter = FairLimiter::new(TENTH);
        limiter.try_acquire(taken).expect("it is full");
        if pause > 0 {
            limiter.pause_for(Duration::from_millis(pause));
        }
        let line = Line::at(&limiter, line);
        assert_eq!(limiter.waiting(), line.0.len());
        advance_clock(Duration::from_millis(at));
        assert_eq!(limiter.try_acquire(cost), told, "{name}: {cost} at {at} ms");
    }
}

#[derive(Clone, Debug)]
struct Crowd {
    /// Nanoseconds for a token.
    interval: u64,
    burst: u32,
    line: Vec<u32>,
    /// For so many tokens' time.
    pause: u64,
    cost: u32,
    /// Of the line leaves after the first refusal.
    leaves: Option<usize>,
}

fn crowds() -> impl Strategy<Value = Crowd> {
    let interval = prop_oneof![1..5_000_u64, 1..50_000_000_u64];
    (interval, 1..=5_u32).prop_flat_map(|(interval, burst)| {
        let line = prop::collection::vec(1..=burst, 0..=4);
        let leaves = prop::option::weighted(0.3, 0..4_usize);
        (line, 0..4_u64, 1..=burst, leaves).prop_map(move |(line, pause, cost, leaves)| Crowd {
            interval,
            burst,
            line,
            pause,
            cost,
            leaves,
        })
    })
}

fn check(crowd: Crowd) -> Result<(), TestCaseError> {
    let Crowd { interval, burst, line, pause, cost, leaves } = crowd;
    let _bench = Bench::new();
    let token = Duration::from_nanos(interval);
    let quota = Quota::new(Rate::every(token), burst).expect("the quota is valid");
    let limiter = FairLimiter::new(quota);
    limiter.try_acquire(burst).expect("it is full");
    if pause > 0 {
        limiter.pause_for(Duration::from_nanos(interval * pause));
    }
    let most = line.iter().sum::<u32>() + cost + 1;
    let mut line = Line::at(&limiter, &line);
    let mut left = false;
    for refused in 0.. {
        let Err(refusal) = limiter.try_acquire(cost) else { break };
        prop_assert!(refused < most, "no progress");
        let Refusal::NotYet { until } = refusal else { panic!("it fits") };
        prop_assert!(until > EmbassyTimer.now());
        if let Some(leaves) = leaves.filter(|&leaves| refused == 0 && leaves < line.0.len()) {
            drop(line.0.remove(leaves));
            left = true;
        }
        while EmbassyTimer.now() < until {
            prop_assert!(left || limiter.try_acquire(cost).is_err(), "told to come too late");
            let micros = Duration::from_micros(interval.div_ceil(1_000));
            advance_clock(micros.min(to_the_tick(until)));
            line.poll();
        }
    }
    prop_assert!(line.0.is_empty(), "overtook somebody");
    prop_assert_eq!(limiter.waiting(), 0);
    Ok(())
}

proptest! {
    /// Neither in vain for ever, nor too late: before it was told to, it would have been refused,
    /// unless somebody has left.
    #[test]
    fn who_comes_back_when_told_gets_in_after_the_line(crowd in crowds()) {
        check(crowd)?;
    }
}

/// How long it is to the first tick at `until` or after it.
fn to_the_tick(until: Instant) -> Duration {
    let wait = until.saturating_duration_since(EmbassyTimer.now()).as_nanos();
    Duration::from_micros(u64::try_from(wait.div_ceil(1_000)).unwrap())
}
