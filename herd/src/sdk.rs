//! The retry rule of Anthropic's Python SDK, which obeys hints differently from any policy.

use core::time::Duration;

use holdoff::{
    Attempt, Backoff, BackoffConfig, DelaySource, Instant, Jitter, Outcome, Ratio, Step, Stop,
    valid,
};

/// Two retries.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// The longest hint it obeys, inclusive. At a longer one it falls back to its own delay and so
/// comes too early.
const MAX_HINT: Duration = Duration::from_secs(60);

/// `min(0.5 · 2ⁿ, 8) s · (1 − 0.25 · U)` after n retries.
const BACKOFF: Backoff = valid!(
    BackoffConfig::exponential(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(8))
        .with_jitter(Jitter::Shortening(Ratio::percent(25)))
        .build()
);

/// One call made through the SDK; speaks the language of [`holdoff::Call`].
#[derive(Debug)]
pub(crate) struct SdkCall {
    attempts: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Done,
    Failed { hint: Option<Duration> },
    InFlight,
    Ready { not_before: Instant, source: DelaySource },
    Stopped(Stop),
}

impl SdkCall {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { attempts: 0, state: State::Ready { not_before: now, source: DelaySource::Schedule } }
    }

    pub(crate) fn poll(&mut self, now: Instant, sample: impl FnOnce() -> u64) -> Step {
        match self.state {
            State::Done => Step::Done,
            State::Failed { .. } if self.attempts >= MAX_ATTEMPTS => {
                self.state = State::Stopped(Stop::Attempts);
                Step::Stop(Stop::Attempts)
            }
            State::Failed { hint } => {
                let (delay, source) = self.delay(hint, sample);
                let until = now.saturating_add(delay);
                self.state = State::Ready { not_before: until, source };
                Step::Backoff { until, source }
            }
            State::InFlight => self.attempt(),
            State::Ready { not_before, source } if now < not_before => {
                Step::Backoff { until: not_before, source }
            }
            State::Ready { .. } => {
                self.attempts += 1; // OK: at most MAX_ATTEMPTS.
                self.state = State::InFlight;
                self.attempt()
            }
            State::Stopped(stop) => Step::Stop(stop),
        }
    }

    pub(crate) const fn record(&mut self, outcome: Outcome) {
        self.state = match outcome {
            Outcome::Failure(failure) => State::Failed { hint: failure.hint.delay() },
            Outcome::Ignored => State::Stopped(Stop::Permanent),
            Outcome::Success => State::Done,
        };
    }

    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }

    const fn attempt(&self) -> Step {
        Step::Attempt(Attempt::new(self.attempts, None))
    }

    /// A hint it believes is slept to the nanosecond: nothing keeps the herd apart.
    fn delay(
        &self,
        hint: Option<Duration>,
        sample: impl FnOnce() -> u64,
    ) -> (Duration, DelaySource) {
        match hint {
            Some(hint) if hint <= MAX_HINT => (hint, DelaySource::Hint),
            _ => (BACKOFF.delay(self.attempts, Duration::ZERO, sample()), DelaySource::Schedule),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdoff::{Failure, Hint};

    use super::*;

    /// The delays before the two retries of a call that is always told `hint`, in milliseconds.
    fn delays(hint: Hint, sample: u64) -> Vec<u128> {
        let mut now = Instant::EPOCH;
        let mut call = SdkCall::new(now);
        let mut delays = Vec::new();
        loop {
            match call.poll(now, || sample) {
                Step::Attempt(_) => {
                    call.record(Outcome::Failure(Failure::throttled().with_hint(hint)));
                }
                Step::Backoff { until, .. } => {
                    delays.push(until.saturating_duration_since(now).as_millis());
                    now = until;
                }
                step => {
                    assert_eq!(step, Step::Stop(Stop::Attempts));
                    assert_eq!(call.attempts(), 3);
                    return delays;
                }
            }
        }
    }

    #[test]
    fn hints_up_to_a_minute_replace_the_delay() {
        let seconds = |n| Hint::after(Duration::from_secs(n));
        for (hint, sample, expected) in [
            (Hint::Absent, 0, [375, 750]),
            (Hint::Absent, u64::MAX, [500, 1_000]),
            (seconds(1), 0, [1_000, 1_000]),
            (seconds(60), 0, [60_000, 60_000]),
            (seconds(61), u64::MAX, [500, 1_000]),
            (seconds(0), u64::MAX, [500, 1_000]),
            (Hint::Malformed, 0, [375, 750]),
        ] {
            assert_eq!(delays(hint, sample), expected, "{hint:?} {sample}");
        }
    }
}
