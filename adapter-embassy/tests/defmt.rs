//! What the log of a device is told of a call: the values, and not their text.

#![cfg(feature = "defmt")]

use core::cell::RefCell;
use core::time::Duration;

use holdoff_embassy::{
    BackoffConfig, BreakerConfig, Failure, Instant, Jitter, Log, Policy, PolicyConfig, Quota,
    Random, Rate, Safety, Upstream, valid,
};

thread_local! {
    static WIRE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[defmt::global_logger]
struct Recorder;

unsafe impl defmt::Logger for Recorder {
    fn acquire() {}
    unsafe fn flush() {}
    unsafe fn release() {}
    unsafe fn write(bytes: &[u8]) {
        WIRE.with_borrow_mut(|wire| wire.extend(bytes));
    }
}

defmt::timestamp!("");

static LOG: Log = Log::new("uplink");

const POLICY: Policy = valid!(
    PolicyConfig::new(valid!(
        BackoffConfig::constant(Duration::from_millis(0x0102_0304))
            .with_jitter(Jitter::None)
            .build()
    ))
    .with_max_attempts(2)
    .build()
);

/// What is on the wire after `happens`: the number of lines and all their bytes.
fn logged(happens: impl FnOnce()) -> (usize, Vec<u8>) {
    WIRE.take();
    happens();
    let wire = WIRE.take();
    let lines = wire.windows(6).filter(|bytes| bytes == b"uplink").count();
    (lines, wire)
}

#[test]
fn every_event_is_a_line_with_its_numbers() {
    let level = option_env!("DEFMT_LOG");
    assert_eq!(level, Some("trace"), "build this test with DEFMT_LOG=trace");

    let upstream = holdoff::Upstream::new()
        .with_breaker(BreakerConfig::consecutive(2).build().unwrap())
        .with_limiter(holdoff::Limiter::new(valid!(Quota::new(Rate::per_second(1), 2))))
        .with_observer(&LOG);
    let now = Instant::EPOCH;
    let failed = holdoff::Outcome::Failure(Failure::transient());

    let mut call = upstream.call(&POLICY, Safety::Idempotent, now);
    let (lines, _) = logged(|| {
        call.poll(now, || 0);
    });
    assert_eq!(lines, 1, "an attempt");
    let (lines, wire) = logged(|| {
        call.record(now, failed, || 0);
        call.poll(now, || 0);
    });
    assert_eq!(lines, 1, "a retry");
    let delay = 0x0102_0304_u64.to_le_bytes();
    assert!(wire.windows(8).any(|bytes| bytes == delay), "and its delay: {wire:?}");
    let later = now.saturating_add(Duration::from_millis(0x0102_0304));
    let (lines, wire) = logged(|| {
        call.poll(later, || 0);
        call.record(later, failed, || 0);
        call.poll(later, || 0);
    });
    assert_eq!(lines, 3, "an attempt, the breaker opens, the call stops");
    assert!(wire.windows(8).any(|bytes| bytes == delay), "and the time it took: {wire:?}");
}

#[test]
fn a_call_on_embassy_logs_to_its_upstreams_log() {
    static UPLINK: Upstream<1> = Upstream::new(POLICY).with_observer(&LOG);
    let (lines, _) = logged(|| {
        let mut random = Random::from_entropy(1);
        let call = UPLINK.call(&mut random, async || Ok::<_, Failure>(()));
        futures_executor::block_on(call).unwrap();
    });
    assert_eq!(lines, 2, "an attempt and its success");
}
