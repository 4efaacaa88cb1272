//! A retry budget that counts everything it is told, in 128 bits.

use holdoff::Instant;

/// What a retry is counted as.
pub(crate) const RETRY: i128 = 1_000_000;
/// Seconds after which a number comes round again: 8 years.
const ROUND: i128 = 1 << 28;
/// How far a clock may step back (s): a year. The rest of the round is ahead.
const BACK_MAX: i128 = ROUND / 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) capacity: u32,
    pub(crate) ratio_ppm: u32,
    pub(crate) trickle_ppm: u32,
    level: i128,
    /// The second up to which it has trickled, once somebody has asked for a retry.
    trickled: Option<i128>,
}

impl Budget {
    pub(crate) fn new(reserve: u32, capacity: u32, ratio_ppm: u32, trickle_ppm: u32) -> Self {
        let level = i128::from(reserve) * RETRY;
        Self { capacity, ratio_ppm, trickle_ppm, level, trickled: None }
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
        let passed = self.trickled.map_or(0, |trickled| (second(now) - trickled).max(0));
        self.full().min(self.level + passed * i128::from(self.trickle_ppm))
    }

    pub(crate) fn level(&self, now: Instant) -> u32 {
        (self.level_at(now) / RETRY).try_into().expect("at most the capacity")
    }

    pub(crate) fn withdraw(&mut self, now: Instant) -> bool {
        self.level = self.level_at(now);
        self.trickled = self.trickled.max(Some(second(now)));
        let is_there = self.level >= RETRY;
        if is_there {
            self.level -= RETRY;
        }
        is_there
    }

    /// Whether `now` is too far from the last trickle to tell ahead from behind, or is the second
    /// at which numbers come round.
    pub(crate) fn is_too_far(&self, now: Instant) -> bool {
        let ahead = self.trickled.map_or(0, |trickled| second(now) - trickled);
        let is_told = -BACK_MAX < ahead && ahead <= ROUND - BACK_MAX;
        self.trickle_ppm > 0 && (!is_told || (second(now) + 1) % ROUND == 0)
    }
}

pub(crate) fn second(now: Instant) -> i128 {
    i128::from(now.as_nanos() / 1_000_000_000)
}
