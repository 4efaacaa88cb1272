//! What calls do, in the log of the device.

use core::time::Duration;

use holdoff::{AttemptKind, BreakerChange, Event, Observation, Observer};

/// An observer that logs by [defmt](https://defmt.ferrous-systems.com) (feature `defmt`).
///
/// | level | what |
/// |---|---|
/// | warn | a call that stops without success; a circuit breaker that opens |
/// | info | a retry, after how long and why; a circuit breaker that closes; a probe |
/// | debug | a wait at the limiter |
/// | trace | each attempt and each success |
///
/// Each line begins with the name it is given. Times are in milliseconds, rounded down. Which
/// levels are compiled in, `DEFMT_LOG` says.
///
/// ```no_run
/// use holdoff_embassy::{Log, Policy, Upstream};
///
/// static LOG: Log = Log::new("uplink");
/// static UPLINK: Upstream<4> = Upstream::new(Policy::STANDARD).with_observer(&LOG);
/// # let _ = &UPLINK;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Log {
    name: &'static str,
}

impl Log {
    /// An observer whose lines begin with `name`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }
}

impl Observer for Log {
    fn on_event(&self, observation: &Observation) {
        let (name, attempts) = (self.name, observation.attempts);
        match observation.event {
            Event::Attempt { kind: AttemptKind::Probe } => {
                defmt::info!("{=str}: attempt {=u32} is a probe", name, attempts);
            }
            Event::Attempt { kind } => {
                defmt::trace!("{=str}: attempt {=u32} ({})", name, attempts, kind);
            }
            Event::Backoff { failure, delay, source } => defmt::info!(
                "{=str}: attempt {=u32} failed ({}), again in {=u64} ms ({})",
                name,
                attempts,
                failure.class,
                millis(delay),
                source
            ),
            Event::Breaker(change) => match change {
                BreakerChange::Closed => defmt::info!("{=str}: circuit breaker closed", name),
                _ => defmt::warn!("{=str}: circuit breaker {}", name, change),
            },
            Event::Stop(stop) => defmt::warn!(
                "{=str}: gave up after {=u32} attempts in {=u64} ms: {}",
                name,
                attempts,
                millis(observation.elapsed),
                stop
            ),
            Event::Success => defmt::trace!("{=str}: success, attempt {=u32}", name, attempts),
            Event::Throttled { until } => defmt::debug!(
                "{=str}: waits {=u64} ms at the limiter",
                name,
                millis(until.saturating_duration_since(observation.now))
            ),
            _ => {}
        }
    }
}

/// Without the 128-bit division of `as_millis`; at most `u64::MAX`.
fn millis(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000).saturating_add(u64::from(time.subsec_millis()))
}
