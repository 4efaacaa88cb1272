//! The places of a table, found by key and ordered by their last use.
//!
//! ```text
//!            ┌───────────────── newer ─────────────────┐
//!            ▼                                         │
//!         oldest ── newer ──▶ place ── newer ──▶ … ──▶ newest
//! ```
//!
//! The ring is ordered by `last_use`, as the clock does not go back: whoever looks for an idle
//! place starts at the oldest and may stop at the first that was asked for lately. One that is held
//! is moved to the newest on the way, so that nobody goes over it again for a while.

use core::borrow::Borrow;
use core::mem::replace;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use hashbrown::HashTable;
use holdoff::Instant;

use super::{Idle, TableFull};

#[derive(Debug)]
pub(super) struct Places<K, V> {
    /// Numbers of places, by the hash of their key.
    numbers: HashTable<usize>,
    places: Vec<Place<K, V>>,
    oldest: usize,
    capacity: NonZeroUsize,
    /// When full: no place can be idle earlier.
    no_room_before: Instant,
}

#[derive(Debug)]
struct Place<K, V> {
    key: K,
    hash: u64,
    value: Arc<V>,
    last_use: Instant,
    older: usize,
    newer: usize,
}

/// Where a key that is not there can be put.
#[derive(Debug)]
pub(super) enum Room {
    New,
    /// In the place of an idle one.
    Of(usize),
}

impl<K: Eq, V: Idle> Places<K, V> {
    pub(super) fn find<Q: Eq + ?Sized>(
        &mut self,
        now: Instant,
        hash: u64,
        key: &Q,
    ) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        let is_it = |&number: &usize| self.places[number].key.borrow() == key;
        let number = *self.numbers.find(hash, is_it)?;
        self.use_now(now, number);
        Some(Arc::clone(&self.places[number].value))
    }

    /// Where a new key can be put: the least recently used idle place if there is no other.
    pub(super) fn room(&mut self, now: Instant, idle_after: Duration) -> Result<Room, TableFull> {
        if self.places.len() < self.capacity.get() {
            return Ok(Room::New);
        }
        if self.no_room_before <= now {
            match self.idle(now, idle_after) {
                Ok(number) => return Ok(Room::Of(number)),
                Err(retry_at) => self.no_room_before = retry_at,
            }
        }
        Err(TableFull { retry_after: self.no_room_before.saturating_duration_since(now) })
    }

    /// The least recently used idle place, or the earliest time at which there can be one: earlier,
    /// those that are held have not been unused for long enough, and those that are not held do not
    /// change but by being asked for.
    fn idle(&mut self, now: Instant, idle_after: Duration) -> Result<usize, Instant> {
        let mut retry_at = now.saturating_add(idle_after);
        let mut number = self.oldest;
        for _ in 0..self.places.len() {
            let place = &mut self.places[number];
            let newer = place.newer;
            let unused = place.last_use.saturating_add(idle_after);
            if unused > now {
                return Err(retry_at.min(unused));
            }
            // Also refused if there is a `Weak`, which could come to life.
            match Arc::get_mut(&mut place.value) {
                None => self.use_now(now, number),
                Some(value) => match value.idle_at() {
                    Some(at) if at <= now => return Ok(number),
                    Some(at) => retry_at = retry_at.min(at),
                    None => {}
                },
            }
            number = newer;
        }
        Err(retry_at)
    }

    /// Puts in a key that is not there; what was in its place is returned.
    pub(super) fn put(
        &mut self,
        room: Room,
        now: Instant,
        hash: u64,
        key: K,
        value: Arc<V>,
    ) -> Option<(K, Arc<V>)> {
        let (number, forgotten) = match room {
            Room::New => {
                let number = self.places.len();
                let place = Place { key, hash, value, last_use: now, older: number, newer: number };
                self.places.push(place);
                if number > 0 {
                    self.link(self.places[self.oldest].older, number);
                    self.link(number, self.oldest);
                }
                (number, None)
            }
            Room::Of(number) => {
                let place = &mut self.places[number];
                let old_hash = replace(&mut place.hash, hash);
                let forgotten = (replace(&mut place.key, key), replace(&mut place.value, value));
                if let Ok(entry) = self.numbers.find_entry(old_hash, |&other| other == number) {
                    entry.remove();
                }
                self.use_now(now, number);
                (number, Some(forgotten))
            }
        };
        self.numbers.insert_unique(hash, number, |&other| self.places[other].hash);
        forgotten
    }

    pub(super) fn entries(&self) -> Vec<(K, Arc<V>)>
    where
        K: Clone,
    {
        let mut number = self.oldest;
        let mut entries = Vec::with_capacity(self.places.len());
        for _ in 0..self.places.len() {
            let place = &self.places[number];
            entries.push((place.key.clone(), Arc::clone(&place.value)));
            number = place.newer;
        }
        entries
    }
}

impl<K, V> Places<K, V> {
    pub(super) const fn new(capacity: NonZeroUsize) -> Self {
        Self {
            numbers: HashTable::new(),
            places: Vec::new(),
            oldest: 0,
            capacity,
            no_room_before: Instant::EPOCH,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) const fn capacity(&self) -> NonZeroUsize {
        self.capacity
    }

    /// Makes a place the newest.
    fn use_now(&mut self, now: Instant, number: usize) {
        let place = &mut self.places[number];
        place.last_use = place.last_use.max(now);
        let Place { older, newer, .. } = *place;
        if number == self.oldest {
            self.oldest = newer; // What was oldest is behind the newest already: it is a ring.
            return;
        }
        self.link(older, newer);
        let newest = self.places[self.oldest].older;
        self.link(newest, number);
        self.link(number, self.oldest);
    }

    fn link(&mut self, older: usize, newer: usize) {
        self.places[older].newer = newer;
        self.places[newer].older = older;
    }
}
