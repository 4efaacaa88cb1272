//! The other end, simulated: it answers, fails, is down and throttles; and watches who comes.

use core::cell::RefCell;
use core::future::pending;
use core::ops::Range;
use core::time::Duration;

use critical_section::Mutex;
use embassy_time::Timer;
use holdoff_embassy::{Classify, Failure, Hint, Random};
use holdoff_embassy_qemu::systick;

/// It does not answer at all (ms).
pub(crate) const OUTAGE: Range<u64> = 20_000..35_000;
/// When it next asks to be left alone, and for how long (ms).
const THROTTLES: [u64; 2] = [60_000, 75_000];
const HINT: u64 = 3_000;
/// One in so many fails by chance.
const FAILS: u64 = 15;

/// What it asks for once at a time (ms): 3 a second, and 3 at once.
const TOKEN: u64 = 1_000;
const PER_MILLI: u64 = 3;
const CAPACITY: u64 = 3 * TOKEN;

pub(crate) struct Uplink(Mutex<RefCell<State>>);

struct State {
    random: Option<Random>,
    level: u64,
    at: u64,
    quiet_until: u64,
    seen: Seen,
}

/// What came.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) requests: u32,
    pub(crate) in_outage: u32,
    pub(crate) throttled: u32,
    pub(crate) failed: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum UplinkError {
    Garbled,
    LeaveMeAlone { millis: u64 },
}

impl Classify for UplinkError {
    fn classify(&self) -> Failure {
        match *self {
            Self::Garbled => Failure::transient(),
            Self::LeaveMeAlone { millis } => {
                Failure::throttled().with_hint(Hint::after(Duration::from_millis(millis)))
            }
        }
    }
}

enum Fate {
    Answer,
    Garble,
    Nothing,
    Throttle,
}

impl Uplink {
    pub(crate) const fn new() -> Self {
        let seen = Seen { requests: 0, in_outage: 0, throttled: 0, failed: 0 };
        let state = State { random: None, level: CAPACITY, at: 0, quiet_until: 0, seen };
        Self(Mutex::new(RefCell::new(state)))
    }

    /// Sends something: an answer takes 40 to 103 ms.
    pub(crate) async fn send(&self) -> Result<(), UplinkError> {
        let (fate, latency) = self.with(|state| state.request(systick::now()));
        Timer::after_millis(latency).await;
        match fate {
            Fate::Answer => Ok(()),
            Fate::Garble => Err(UplinkError::Garbled),
            Fate::Nothing => pending().await,
            Fate::Throttle => {
                self.with(|state| state.quiet_until = systick::now() + HINT);
                Err(UplinkError::LeaveMeAlone { millis: HINT })
            }
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.with(|state| state.seen)
    }

    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        critical_section::with(|section| work(&mut self.0.borrow_ref_mut(section)))
    }
}

impl State {
    /// What becomes of a request that comes now, and after how long (ms).
    fn request(&mut self, now: u64) -> (Fate, u64) {
        self.level = (self.level + PER_MILLI * (now - self.at)).min(CAPACITY);
        self.at = now;
        assert!(self.level >= TOKEN, "more requests than the limiter allows");
        self.level -= TOKEN;
        assert!(now >= self.quiet_until, "came before the hint had passed");

        let random = self.random.get_or_insert_with(|| Random::from_entropy(1)).next_u64();
        let latency = 40 + random % 64;
        self.seen.requests += 1;
        let fate = if OUTAGE.contains(&now) {
            self.seen.in_outage += 1;
            Fate::Nothing
        } else if THROTTLES.get(self.seen.throttled as usize).is_some_and(|&at| now >= at) {
            self.seen.throttled += 1;
            Fate::Throttle
        } else if (random >> 32).is_multiple_of(FAILS) {
            self.seen.failed += 1;
            Fate::Garble
        } else {
            Fate::Answer
        };
        (fate, latency)
    }
}
