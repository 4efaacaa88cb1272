//! Who watches: where interrupts strike, and that there is one probe at a time.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cortex_m::peripheral::SCB;
use cortex_m::peripheral::scb::VectActive;
use holdoff::{AttemptKind, Event, Observation, Observer};

use crate::actor::User;

/// Where the main loop was struck: a bit for each of the first 32 Ki half-words of the flash.
pub(crate) struct Places;

static PLACES: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

impl Places {
    pub(crate) fn add(address: u32) {
        let half_word = address as usize / 2;
        if let Some(bits) = PLACES.get(half_word / 32) {
            bits.fetch_or(1 << (half_word % 32), Ordering::Relaxed);
        }
    }

    pub(crate) fn count() -> u32 {
        PLACES.iter().map(|bits| bits.load(Ordering::Relaxed).count_ones()).sum()
    }
}

/// Watches that there is one probe at a time.
pub(crate) struct Probes {
    under_way: AtomicU32,
    /// Whether the attempt that a call has just begun is one.
    of_call: [AtomicBool; 2],
}

impl Probes {
    pub(crate) const fn new() -> Self {
        Self { under_way: AtomicU32::new(0), of_call: [const { AtomicBool::new(false) }; 2] }
    }

    pub(crate) fn begin(&self) {
        assert_eq!(self.under_way.fetch_add(1, Ordering::Relaxed), 0, "a probe beside a probe");
    }

    /// To be called before it is reported, after which there may be another at once.
    pub(crate) fn end(&self, is_probe: bool) {
        self.under_way.fetch_sub(u32::from(is_probe), Ordering::Relaxed);
    }

    pub(crate) fn under_way(&self) -> u32 {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Whether the attempt that a call of `user` has just begun is one; says so once.
    pub(crate) fn is_call_probe(&self, user: User) -> bool {
        self.of_call[user as usize].swap(false, Ordering::Relaxed)
    }
}

impl Observer for Probes {
    fn on_event(&self, observation: &Observation) {
        if let Event::Attempt { kind: AttemptKind::Probe } = observation.event {
            self.begin();
            let is_main = SCB::vect_active() == VectActive::ThreadMode;
            let user = if is_main { User::Main } else { User::Handler };
            self.of_call[user as usize].store(true, Ordering::Relaxed);
        }
    }
}
