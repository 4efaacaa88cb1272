//! tokio's clock as holdoff's.

use core::future::pending;
use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant as StdInstant;

use holdoff::{Clock, Instant, Timer};
use tokio::time::Instant as TokioInstant;

/// tokio's clock and sleep.
///
/// One reading is one of `std::time::Instant` and about 65 instructions (callgrind, fat LTO,
/// without tokio's `test-util`): no lock, no allocation. A call that succeeds at once reads twice,
/// and once more for each line that it joins.
///
/// All timers share one epoch, so instants of one can be used with any other whose runtime reads
/// the same time; a runtime whose clock was paused and advanced does not. Sleeps end on tokio's
/// millisecond, never before the instant asked for. Must be used inside a tokio runtime with time
/// enabled.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use holdoff::{Clock, Timer};
/// use holdoff_tokio::TokioTimer;
/// use std::time::Duration;
///
/// let later = TokioTimer.now().saturating_add(Duration::from_secs(3600));
/// TokioTimer.sleep_until(later).await; // at once, under paused time
/// assert!(TokioTimer.now() >= later);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

impl Clock for TokioTimer {
    fn now(&self) -> Instant {
        let now = TokioInstant::now().into_std();
        Instant::EPOCH.saturating_add(now.saturating_duration_since(epoch()))
    }
}

impl Timer for TokioTimer {
    /// # Panics
    /// When polled outside a tokio runtime, or in one without time, as every tokio timer does.
    async fn sleep_until(&self, deadline: Instant) {
        let since_epoch = deadline.saturating_duration_since(Instant::EPOCH);
        match epoch().checked_add(since_epoch) {
            Some(at) if deadline < Instant::MAX => {
                tokio::time::sleep_until(TokioInstant::from_std(at)).await;
            }
            _ => pending().await,
        }
    }
}

/// The instant that counts as zero.
///
/// It lies some way back, because a paused clock stands still: a runtime that was paused before the
/// first reading must not lie before the epoch.
fn epoch() -> StdInstant {
    static EPOCH: OnceLock<StdInstant> = OnceLock::new();
    *EPOCH.get_or_init(|| {
        let now = StdInstant::now();
        // Shortly after boot there may not be a whole day to go back.
        let day = Duration::from_secs(86_400);
        (0..20).find_map(|halvings| now.checked_sub(day / (1 << halvings))).unwrap_or(now)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_tokios_paused_time() {
        let start = TokioTimer.now();
        tokio::time::advance(Duration::from_secs(300)).await;
        assert_eq!(TokioTimer.now().saturating_duration_since(start), Duration::from_secs(300));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_never_ends_early_whatever_its_fraction() {
        for nanos in [1, 999, 999_999, 1_000_000, 1_000_001, 59_999_999_999] {
            let until = TokioTimer.now().saturating_add(Duration::from_nanos(nanos));
            TokioTimer.sleep_until(until).await;
            let late = TokioTimer.now().saturating_duration_since(until);
            assert!(TokioTimer.now() >= until, "{nanos} ns");
            assert!(late < Duration::from_millis(2), "{nanos} ns ended {late:?} late");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_past_is_over_and_never_is_never() {
        TokioTimer.sleep_until(Instant::EPOCH).await;
        let never = TokioTimer.sleep_until(Instant::MAX);
        let century = Duration::from_secs(86_400 * 365 * 2);
        assert!(tokio::time::timeout(century, never).await.is_err());
    }
}
