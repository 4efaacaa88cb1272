//! When to connect again: backoff for a link that is meant to stay.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::backoff::{Backoff, draw};
use crate::outcome::Hint;
use crate::time::{Instant, saturating_nanos};

/// When to connect again after a connect failed or a session ended (MQTT, TCP, a stream).
///
/// A success does not reset the backoff, only a session of at least `stable_for` does: a server
/// that accepts everybody and throws them out at once hears from each client as rarely as one that
/// is down. Tell it of every session and of every end:
///
/// ```text
/// connect ──ok──▶ connected(now) ──ends──▶ lost(now, sample) ──▶ sleep until then, connect
///        ──failed───────────────────────▶ lost(now, sample) ──▶ sleep until then, connect
/// ```
///
/// It tries for ever; whoever wants to stop asks [`retries`](Self::retries), and does not ask at
/// all after a failure that no retry cures, such as a wrong password.
///
/// Give the backoff a maximum, for without one a long outage ends in waits of years; and not full
/// jitter alone, whose shortest delay is zero.
///
/// ```
/// use core::time::Duration;
/// use holdoff::{Backoff, BackoffConfig, Instant, Jitter, Reconnect, valid};
///
/// const BACKOFF: Backoff = valid!(
///     BackoffConfig::exponential(Duration::from_secs(1))
///         .with_max_delay(Duration::from_secs(60))
///         .with_jitter(Jitter::Equal)
///         .build()
/// );
/// let mut link = Reconnect::new(BACKOFF, Duration::from_secs(30));
/// let secs = |secs| Instant::EPOCH.saturating_add(Duration::from_secs(secs));
/// let sample = u64::MAX; // your random numbers
///
/// link.connected(secs(0));
/// assert_eq!(link.lost(secs(0), sample), secs(1)); // thrown out at once
/// link.connected(secs(1));
/// assert_eq!(link.lost(secs(1), sample), secs(3)); // and again
/// link.connected(secs(3));
/// assert_eq!(link.lost(secs(34), sample), secs(35)); // after a session of 31 s
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Reconnect {
    backoff: Backoff,
    connected_at: Option<Instant>,
    max_hint: u64,
    previous: u64,
    retries: u32,
    stable_for: u64,
}

impl Reconnect {
    /// A link that has not been connected yet, and hints obeyed up to 5 minutes.
    ///
    /// `stable_for` is the shortest session after which the schedule begins anew, inclusive. Make
    /// it longer than what the server needs to throw somebody out, and than the first delays; with
    /// zero every session resets the schedule.
    #[must_use]
    pub const fn new(backoff: Backoff, stable_for: Duration) -> Self {
        Self {
            backoff,
            connected_at: None,
            max_hint: saturating_nanos(Duration::from_secs(300)),
            previous: 0,
            retries: 0,
            stable_for: saturating_nanos(stable_for),
        }
    }

    /// The same link, with the longest hint that is obeyed, inclusive. Defaults to 5 minutes.
    #[must_use]
    pub const fn with_max_hint(self, max_hint: Duration) -> Self {
        Self { max_hint: saturating_nanos(max_hint), ..self }
    }

    /// A session begins. If another has not been reported as [`lost`](Self::lost), this one takes
    /// its place.
    ///
    /// Say so when the server has accepted the session (MQTT: its `CONNACK`), not when TCP has.
    pub const fn connected(&mut self, now: Instant) {
        self.connected_at = Some(now);
    }

    /// The earliest instant of the next try, after a connect that failed or a session that ended:
    /// once for each.
    ///
    /// `sample` must be uniform over all of `u64`. A clock that stands still or steps back makes a
    /// session look short: it does not reset the schedule.
    pub const fn lost(&mut self, now: Instant, sample: u64) -> Instant {
        if self.was_stable(now) {
            (self.retries, self.previous) = (0, 0);
        }
        self.connected_at = None;
        self.retries = self.retries.saturating_add(1);
        let previous = Duration::from_nanos(self.previous);
        let delay = self.backoff.delay(self.retries, previous, sample);
        self.previous = saturating_nanos(delay);
        now.saturating_add(delay)
    }

    /// As [`lost`](Self::lost), but not before `hint` has passed: what the server said about
    /// coming back (`Retry-After` at a WebSocket's handshake, a field of one's own protocol).
    ///
    /// A hint only lengthens the wait. What is added to it is as wide as the own schedule's
    /// envelope, at least the hint's granularity, so that those told the same do not return
    /// together. An absent, malformed or zero hint is none.
    ///
    /// # Errors
    /// [`HintTooLong`] for a hint above the [maximum](Self::with_max_hint). Nothing has changed:
    /// turn to another server, or go on as if the hint were not there, with [`lost`](Self::lost).
    ///
    /// ```
    /// use core::time::Duration;
    /// use holdoff::{BackoffConfig, Hint, HintTooLong, Instant, Reconnect};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut link = Reconnect::new(BackoffConfig::constant(second).build()?, 30 * second);
    ///
    /// let until = link.lost_with(Instant::EPOCH, Hint::after(10 * second), 0);
    /// assert_eq!(until, Ok(Instant::EPOCH.saturating_add(10 * second)));
    ///
    /// let hint = 86_400 * second;
    /// let until = link.lost_with(Instant::EPOCH, Hint::after(hint), 0);
    /// assert_eq!(until, Err(HintTooLong { hint }));
    /// # Ok::<(), holdoff::ConfigError>(())
    /// ```
    pub fn lost_with(
        &mut self,
        now: Instant,
        hint: Hint,
        sample: u64,
    ) -> Result<Instant, HintTooLong> {
        let (Some(asked), Hint::After { granularity, .. }) = (hint.delay(), hint) else {
            return Ok(self.lost(now, sample));
        };
        if asked > self.max_hint() {
            return Err(HintTooLong { hint: asked });
        }
        let own = self.lost(now, sample);
        let envelope = saturating_nanos(self.backoff.envelope(self.retries));
        // One sample is enough: only the later of the two counts.
        let spread = draw(0, envelope.max(u64::from(granularity)), sample);
        let hinted = now.saturating_add(asked).saturating_add(Duration::from_nanos(spread));
        Ok(own.max(hinted))
    }

    /// The longest hint that is obeyed, inclusive.
    #[must_use]
    pub const fn max_hint(&self) -> Duration {
        Duration::from_nanos(self.max_hint)
    }

    /// Tries waited for since the last stable session, at most `u32::MAX`.
    ///
    /// A session is known to have been stable when it is lost: until then the number stands.
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.retries
    }

    const fn was_stable(&self, now: Instant) -> bool {
        match self.connected_at {
            Some(since) => now.as_nanos().saturating_sub(since.as_nanos()) >= self.stable_for,
            None => false,
        }
    }
}

/// The server asks for a longer wait than a [`Reconnect`] obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HintTooLong {
    /// What it asks for; [`Duration::MAX`] if that was too long to represent.
    pub hint: Duration,
}

impl fmt::Display for HintTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server asks for a longer wait than allowed")
    }
}

impl Error for HintTooLong {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::{BackoffConfig, Jitter};

    #[test]
    fn the_last_retry_that_can_be_counted_repeats() {
        let second = Duration::from_secs(1);
        for jitter in [Jitter::None, Jitter::Decorrelated] {
            let backoff = BackoffConfig::exponential(second)
                .with_max_delay(60 * second)
                .with_jitter(jitter)
                .build()
                .expect("valid");
            let mut link = Reconnect::new(backoff, 30 * second);
            (link.retries, link.previous) = (u32::MAX - 1, u64::MAX);
            for _ in 0..3 {
                link.connected(Instant::EPOCH);
                let until = link.lost(Instant::EPOCH, u64::MAX);
                assert_eq!(until, Instant::EPOCH.saturating_add(60 * second));
                assert_eq!(link.retries(), u32::MAX);
            }
            link.connected(Instant::EPOCH);
            let end = Instant::EPOCH.saturating_add(30 * second);
            assert_eq!(link.lost(end, 0), end.saturating_add(second));
            assert_eq!(link.retries(), 1);
        }
    }
}
