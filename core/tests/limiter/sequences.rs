//! Random operations, clocks and quotas against the model.

use holdoff::{Instant, Limiter, Quota, Refusal};
use proptest::prelude::*;

use crate::model::{LAST, Model, any_quota, interval, try_acquire};

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Takes tokens, and if it must wait, perhaps waits and takes them then.
    Acquire {
        cost: u32,
        waits: bool,
    },
    /// Gives the oldest reservation back.
    Cancel,
    /// Pauses for a share of the time that a burst takes.
    Pause(Share),
    Refund(u32),
    Reserve(u32),
    SetQuota(Quota),
}

/// What takes tokens or keeps them back, but gives none.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Acquire(u32),
    Pause(Share),
    Reserve(u32),
}

fn any_ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        8 => any_cost().prop_map(Ask::Acquire),
        2 => any_cost().prop_map(Ask::Reserve),
        1 => (0..2_000_i64).prop_map(Ask::Pause),
    ]
}

/// Thousandths of the time in which a whole burst is earned.
type Share = i64;

/// The clock stands still, goes on, steps back or leaps.
fn any_step() -> impl Strategy<Value = Share> {
    prop_oneof![
        3 => Just(0),
        5 => 0..300_i64,
        2 => 0..3_000_i64,
        1 => -2_000..0_i64,
        1 => prop_oneof![Just(i64::MAX), Just(i64::MIN), any::<i64>()],
    ]
}

fn any_cost() -> impl Strategy<Value = u32> {
    prop_oneof![
        5 => 0..=3_u32,
        2 => 0..=12_u32,
        1 => (0..32_u32, any::<u32>()).prop_map(|(shift, n)| n >> shift),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any_cost(), any::<bool>()).prop_map(|(cost, waits)| Op::Acquire { cost, waits }),
        2 => any_cost().prop_map(Op::Reserve),
        1 => Just(Op::Cancel),
        1 => any_cost().prop_map(Op::Refund),
        1 => any_step().prop_map(Op::Pause),
        2 => any_quota().prop_map(Op::SetQuota),
    ]
}

/// Where the clock starts.
fn any_start() -> impl Strategy<Value = Instant> {
    prop_oneof![
        3 => Just(0),
        2 => 0..1_u64 << 40,
        1 => (0..62_u32).prop_map(|shift| LAST.as_nanos() - (LAST.as_nanos() >> shift)),
        1 => any::<u64>(),
    ]
    .prop_map(Instant::from_nanos)
}

fn moved(now: Instant, share: Share, quota: Quota) -> Instant {
    let refill = interval(quota) * i128::from(quota.burst());
    let by = refill.saturating_mul(i128::from(share)) / 1000;
    let nanos = i128::from(now.as_nanos()) + by;
    Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_limiter_does_what_a_token_bucket_does(
        quota in any_quota(),
        start in any_start(),
        steps in prop::collection::vec((any_step(), any_op()), 1..40),
    ) {
        let (limiter, mut model) = (Limiter::new(quota), Model::new(quota));
        let (mut now, mut quota, mut reservations) = (start, quota, Vec::new());
        for (step, op) in steps {
            now = moved(now, step, quota);
            match op {
                Op::Acquire { cost, waits } => {
                    let refusal = try_acquire(&limiter, &mut model, now, cost).err();
                    if let (Some(Refusal::NotYet { until }), true) = (refusal, waits)
                        && until < Instant::MAX
                    {
                        // Nobody else asks, so it is admitted exactly then.
                        now = until;
                        prop_assert_eq!(try_acquire(&limiter, &mut model, now, cost), Ok(()));
                    }
                }
                Op::Reserve(cost) => match limiter.reserve(now, cost) {
                    Ok(reservation) => {
                        prop_assert_eq!(Ok(reservation.ready_at()), model.reserve(now, cost));
                        reservations.push((reservation, cost));
                    }
                    Err(refusal) => prop_assert_eq!(Err(refusal), model.reserve(now, cost)),
                },
                Op::Cancel if reservations.is_empty() => {}
                Op::Cancel => {
                    let (reservation, cost) = reservations.remove(0);
                    limiter.cancel(reservation);
                    model.refund(cost);
                }
                Op::Refund(cost) => {
                    limiter.refund(cost);
                    model.refund(cost);
                }
                Op::Pause(share) => {
                    let until = moved(now, share, quota);
                    limiter.pause_until(until);
                    model.pause_until(until);
                }
                Op::SetQuota(next) => {
                    let (before, ended) = (limiter.available(now), model.ends_after(now));
                    limiter.set_quota(now, next).expect("nobody else is at it");
                    model.set_quota(now, next);
                    quota = next;
                    if !ended && !model.ends_after(now) {
                        // As many as before: never a fresh burst, never a token lost.
                        prop_assert_eq!(limiter.available(now), before.min(next.burst()));
                    }
                }
            }
            prop_assert_eq!(limiter.quota(), quota);
            prop_assert_eq!(limiter.available(now), model.available(now));
        }
    }

    #[test]
    fn no_window_sees_more_than_the_burst_and_the_rate(
        quota in any_quota(),
        asks in prop::collection::vec((any_step(), any_ask()), 1..60),
    ) {
        let limiter = Limiter::new(quota);
        let (mut now, mut sent) = (Instant::EPOCH, Vec::new());
        for (step, ask) in asks {
            now = moved(now, step, quota);
            match ask {
                Ask::Acquire(cost) => {
                    if limiter.try_acquire(now, cost).is_ok() {
                        sent.push((now, cost));
                    }
                }
                Ask::Pause(share) => limiter.pause_until(moved(now, share, quota)),
                Ask::Reserve(cost) => {
                    if let Ok(reservation) = limiter.reserve(now, cost) {
                        prop_assert!(reservation.ready_at() >= now);
                        sent.push((reservation.ready_at(), cost));
                    }
                }
            }
        }
        // What costs nothing is admitted at any time.
        sent.retain(|&(_, cost)| cost > 0);
        // Wherever the clock went in between: what it shows at the ends is what counts.
        let nanos = |instant: Instant| i128::from(instant.as_nanos());
        for (first, &(start, _)) in sent.iter().enumerate() {
            let mut admitted = 0;
            for &(end, cost) in &sent[first..] {
                admitted += i128::from(cost) * interval(quota);
                let refill = interval(quota) * i128::from(quota.burst());
                let most = refill + nanos(end) - nanos(start);
                prop_assert!(admitted <= most, "{start:?} to {end:?}");
            }
        }
    }
}
