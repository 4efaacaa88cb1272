//! Case C64 and its kind: a link that connects, is thrown out, and connects again.

use core::cell::RefCell;
use core::time::Duration;
use std::rc::Rc;

use embassy_time::Timer as Sleep;
use futures_util::FutureExt;
use holdoff_embassy::{
    Backoff, BackoffConfig, Hint, HintTooLong, Jitter, Random, Reconnect, valid,
};

use crate::bench::{Bench, millis};

const STRICT: Backoff = valid!(
    BackoffConfig::exponential(Duration::from_secs(1))
        .with_max_delay(Duration::from_secs(60))
        .with_jitter(Jitter::None)
        .build()
);
const STABLE: Duration = Duration::from_secs(30);

/// What a connect comes to.
#[derive(Clone, Copy)]
enum Fate {
    Refused,
    /// A session of so many milliseconds.
    Accepted(u64),
}

/// The waits (ms) from each end to the next connect.
fn waits(fates: &'static [Fate], backoff: Backoff, mut random: Random) -> Vec<u64> {
    Bench::new().run(async move {
        let mut waits = Vec::new();
        let mut link = Reconnect::new(backoff, STABLE, &mut random);
        for fate in fates {
            let lost = millis();
            link.ready().await;
            waits.push(millis() - lost);
            if let Fate::Accepted(session) = fate {
                link.connected();
                Sleep::after_millis(*session).await;
            }
        }
        waits
    })
}

#[test]
fn only_a_stable_session_begins_the_backoff_anew() {
    const KICKED: Fate = Fate::Accepted(50);
    const REFUSED: Fate = Fate::Refused;
    let table: [(&str, &[Fate], &[u64]); 4] = [
        ("accepted and thrown out", &[KICKED; 8], &[0, 1, 2, 4, 8, 16, 32, 60]),
        ("refused", &[REFUSED; 8], &[0, 1, 2, 4, 8, 16, 32, 60]),
        ("one of 31 s", &[KICKED, REFUSED, Fate::Accepted(31_000), KICKED], &[0, 1, 2, 1]),
        ("one a little too short", &[KICKED, Fate::Accepted(29_999), KICKED], &[0, 1, 2]),
    ];
    for (what, fates, seconds) in table {
        let waits = waits(fates, STRICT, Random::from_entropy(1));
        let expected: Vec<_> = seconds.iter().map(|seconds| seconds * 1_000).collect();
        assert_eq!(waits, expected, "{what}");
    }
}

#[test]
fn a_device_keeps_its_series_and_no_two_have_the_same() {
    const EQUAL: Backoff = valid!(
        BackoffConfig::exponential(Duration::from_secs(1))
            .with_max_delay(Duration::from_secs(60))
            .with_jitter(Jitter::Equal)
            .build()
    );
    let series = |id: &[u8]| waits(&[Fate::Refused; 6], EQUAL, Random::from_device_id(id));
    assert_eq!(series(b"device 1"), series(b"device 1"));
    assert_ne!(series(b"device 1"), series(b"device 2"));
}

#[test]
fn a_hint_lengthens_and_one_too_long_is_for_the_caller() {
    let mut bench = Bench::new();
    let at = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&at);
    let too_long = bench.run(async move {
        let mut random = Random::from_entropy(1);
        let mut link =
            Reconnect::new(STRICT, STABLE, &mut random).with_max_hint(Duration::from_secs(20));
        link.ready().await;
        let hint = Duration::from_secs(21);
        let too_long = link.lost_with(Hint::after(hint));
        link.lost_with(Hint::after(Duration::from_secs(20))).unwrap();
        link.ready().await;
        seen.borrow_mut().push(millis());
        too_long
    });
    assert_eq!(too_long, Err(HintTooLong { hint: Duration::from_secs(21) }));
    assert!((20_000..=22_000).contains(&at.borrow()[0]), "{at:?}");
}

#[test]
fn a_wait_that_is_dropped_is_the_same_wait_when_it_is_taken_up() {
    let mut bench = Bench::new();
    let retries = bench.run(async {
        let mut random = Random::from_entropy(1);
        let mut link = Reconnect::new(STRICT, STABLE, &mut random);
        link.ready().await;
        let until = link.lost();
        for _ in 0..5 {
            assert!(link.ready().now_or_never().is_none());
            Sleep::after_millis(100).await;
            assert_eq!(link.lost(), until, "the same end");
        }
        link.ready().await;
        assert_eq!(millis(), 1_000);
        link.retries()
    });
    assert_eq!(retries, 1);
}

/// Whoever connects before it was ready is thrown out as others are.
#[test]
fn a_session_begun_without_being_ready_ends_as_any_other() {
    let waits = Bench::new().run(async {
        let mut random = Random::from_entropy(1);
        let mut link = Reconnect::new(STRICT, STABLE, &mut random);
        let mut waits = Vec::new();
        for _ in 0..4 {
            link.connected(); // The first without any `ready`, the others after a dropped one.
            Sleep::after_millis(50).await;
            assert!(link.ready().now_or_never().is_none(), "thrown out, and back at once");
            let until = link.lost().as_nanos() / 1_000_000;
            waits.push(until - millis());
        }
        waits
    });
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000]);
}
