//! embassy's clock as holdoff's.

use core::future::pending;

use embassy_time::TICK_HZ;
use holdoff::{Clock, Instant, Timer};

use crate::ticks;

/// The longest wait asked of the time driver at once (ticks); longer ones are split.
///
/// Half of what a driver can tell apart that compares 32 bits of an alarm with its counter.
const LONGEST: u64 = 1 << 31;

/// embassy-time's clock and sleep, at any tick rate.
///
/// Readings are rounded down to the tick and deadlines up: a wait is never shorter than asked by
/// this clock, and one longer than nothing takes at least a tick. Waits are split into pieces of at
/// most 2^31 ticks; one that cannot be told in ticks, or ends at [`Instant::MAX`], never ends and
/// occupies no timer. The epoch is the time driver's.
///
/// ```
/// use embassy_time::{Duration, MockDriver};
/// use holdoff::{Clock, Instant};
/// use holdoff_embassy::EmbassyTimer;
///
/// MockDriver::get().advance(Duration::from_micros(5));
/// assert_eq!(EmbassyTimer.now(), Instant::from_nanos(5_000));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbassyTimer;

impl Clock for EmbassyTimer {
    #[inline]
    fn now(&self) -> Instant {
        Instant::from_nanos(ticks::to_nanos(embassy_time::Instant::now().as_ticks(), TICK_HZ))
    }
}

impl Timer for EmbassyTimer {
    /// # Cancel safety
    /// A dropped sleep ends nothing but itself; the time driver may still wake its task once, which
    /// finds nothing to do.
    async fn sleep_until(&self, deadline: Instant) {
        let tick = ticks::from_nanos(deadline.as_nanos(), TICK_HZ);
        if deadline == Instant::MAX || tick == u64::MAX {
            pending::<()>().await;
        }
        loop {
            let now = embassy_time::Instant::now().as_ticks();
            if now >= tick {
                break;
            }
            let next = tick.min(now.saturating_add(LONGEST));
            embassy_time::Timer::at(embassy_time::Instant::from_ticks(next)).await;
        }
    }
}
