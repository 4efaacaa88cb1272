//! A retry budget that counts everything it is told, in 128 bits.

use holdoff::Instant;

/// What a retry is counted as.
pub(crate) const RETRY: i128 = 1_000_000;
/// The clock readings between which trickle is told from a step back: 2^27 s, 4 years.
pub(crate) const SPAN_MAX: i128 = 1 << 27;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) capacity: u32,
    pub(crate) ratio_ppm: u32,
    pub(crate) trickle_ppm: u32,
    level: i128,
    /// The second up to which it has trickled.
    trickled: i128,
}

impl Budget {
    pub(crate) fn new(reserve: u32, capacity: u32, ratio_ppm: u32, trickle_ppm: u32) -> Self {
        let level = i128::from(reserve) * RETRY;
        Self { capacity, ratio_ppm, trickle_ppm, level, trickled: 0 }
    }

    pub(crate) fn deposit(&mut self) {
        self.add(self.ratio_ppm.into());
    }

    pub(crate) fn refund(&mut self) {
        self.add(RETRY);
    }

    fn add(&mut self, more: i128) {
        self.level = self.full().min(self.level + more);
    }

    fn full(&self) -> i128 {
        i128::from(self.capacity) * RETRY
    }

    /// The level at `now`; a clock that is behind adds nothing.
    fn level_at(&self, now: Instant) -> i128 {
        let passed = (second(now) - self.trickled).max(0);
        self.full().min(self.level + passed * i128::from(self.trickle_ppm))
    }

    pub(crate) fn level(&self, now: Instant) -> u32 {
        (self.level_at(now) / RETRY).try_into().expect("at most the capacity")
    }

    pub(crate) fn withdraw(&mut self, now: Instant) -> bool {
        let level = self.level_at(now);
        if level < RETRY {
            return false;
        }
        self.level = level - RETRY;
        self.trickled = self.trickled.max(second(now));
        true
    }

    /// Whether `now` is too far from the last trickle to be told from a step back.
    pub(crate) fn is_too_far(&self, now: Instant) -> bool {
        self.trickle_ppm > 0 && (second(now) - self.trickled).abs() >= SPAN_MAX
    }
}

pub(crate) fn second(now: Instant) -> i128 {
    i128::from(now.as_nanos() / 1_000_000_000)
}
