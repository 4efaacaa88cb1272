//! Random numbers on a device that has no operating system to ask.

use core::hash::Hasher;

use fnv::FnvHasher;
use rand_xoshiro::Xoshiro128PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The random numbers of one task, from a seed that somebody has to name.
///
/// There is no default: a fleet of devices that all start from the same number retries as one, and
/// jitter is worth nothing. Not for keys or tokens: the series can be guessed
/// ([xoshiro128++](https://prng.di.unimi.it/), 16 bytes). It cannot be cloned, which would give the
/// same series again: another task takes a [`fork`](Self::fork).
///
/// ```
/// use holdoff_embassy::Random;
///
/// let series = |id: &[u8]| {
///     let mut random = Random::from_device_id(id);
///     [random.next_u64(), random.next_u64()]
/// };
/// assert_eq!(series(b"device 1"), series(b"device 1"));
/// assert_ne!(series(b"device 1"), series(b"device 2"));
/// ```
#[derive(Debug)]
pub struct Random(Xoshiro128PlusPlus);

impl Random {
    /// The series of `seed`, which is best drawn from the device's own generator of random numbers.
    ///
    /// Another series at each start, if the seed is another. Seeds may differ as little as they
    /// like.
    #[must_use]
    pub fn from_entropy(seed: u64) -> Self {
        Self(Xoshiro128PlusPlus::seed_from_u64(seed))
    }

    /// The series of a device, of its serial number or network address: the same at each start, and
    /// another for each device.
    ///
    /// For devices without a source of entropy.
    #[must_use]
    pub fn from_device_id(id: &[u8]) -> Self {
        let mut hasher = FnvHasher::default();
        hasher.write(id);
        Self::from_entropy(hasher.finish())
    }

    /// A series of its own for another task of this device.
    ///
    /// ```
    /// use holdoff_embassy::Random;
    ///
    /// let mut random = Random::from_entropy(7);
    /// let (mut telemetry, mut commands) = (random.fork(), random.fork());
    /// assert_ne!(telemetry.next_u64(), commands.next_u64());
    /// ```
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::from_entropy(self.next_u64())
    }

    /// The next number, uniform over all of `u64`.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn first(mut random: Random) -> u64 {
        random.next_u64()
    }

    #[test]
    fn a_thousand_neighbouring_seeds_give_a_thousand_series() {
        let mut by_id: Vec<u64> =
            (0..1_000_u32).map(|id| first(Random::from_device_id(&id.to_le_bytes()))).collect();
        let mut by_entropy: Vec<u64> =
            (0..1_000).map(|seed| first(Random::from_entropy(seed))).collect();
        let mut parent = Random::from_entropy(0);
        let mut by_fork: Vec<u64> = (0..1_000).map(|_| first(parent.fork())).collect();
        for series in [&mut by_id, &mut by_entropy, &mut by_fork] {
            series.sort_unstable();
            series.dedup();
            assert_eq!(series.len(), 1_000);
        }
    }

    #[test]
    fn ids_that_are_nothing_or_all_zero_are_ids_too() {
        let mut ids: Vec<u64> = [&b""[..], &[0], &[0, 0], &[0; 12]]
            .map(|id| first(Random::from_device_id(id)))
            .to_vec();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }
}
