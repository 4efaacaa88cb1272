//! What happens when: the simulator's event queue.

use core::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use holdoff::Instant;

use crate::provider::Verdict;

/// Something that happens to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its answer is there.
    Answer(u32, Verdict),
    /// Its request reaches the provider.
    Arrive(u32),
    /// It wakes and decides what to do.
    Wake(u32),
}

/// Events by time, those of one instant in the order in which they were put in.
///
/// Most events happen at the instant that causes them. They wait in a line of their own, which is
/// much quicker than a heap of a million: what is in the heap for the present instant was put there
/// before it became the present, so it comes first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    now: Instant,
    present: VecDeque<Event>,
    future: BinaryHeap<Entry>,
    /// How many events have been put into the future.
    count: u64,
}

impl Queue {
    /// The next event and its time, which becomes the present.
    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        if self.future.peek().is_none_or(|entry| entry.at > self.now)
            && let Some(event) = self.present.pop_front()
        {
            return Some((self.now, event));
        }
        let entry = self.future.pop()?;
        self.now = entry.at;
        Some((entry.at, entry.event))
    }

    /// `event` happens at `at`, or now if that is past.
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        if at <= self.now {
            self.present.push_back(event);
        } else {
            self.future.push(Entry { at, number: self.count, event });
            self.count += 1;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    number: u64,
    event: Event,
}

impl Ord for Entry {
    /// The earliest is the greatest, because that is what the heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_of_their_coming() {
        let mut queue = Queue::default();
        let at = Instant::from_nanos;
        for (nanos, client) in [(7, 0), (5, 1), (7, 2), (5, 3), (u64::MAX, 4), (0, 5)] {
            queue.push(at(nanos), Event::Wake(client));
        }
        assert_eq!(queue.pop(), Some((at(0), Event::Wake(5))));
        queue.push(at(5), Event::Arrive(6));
        queue.push(at(0), Event::Arrive(7));
        let order: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            order,
            [
                (at(0), Event::Arrive(7)),
                (at(5), Event::Wake(1)),
                (at(5), Event::Wake(3)),
                (at(5), Event::Arrive(6)),
                (at(7), Event::Wake(0)),
                (at(7), Event::Wake(2)),
                (at(u64::MAX), Event::Wake(4)),
            ]
        );
    }

    proptest! {
        /// The model sorts by time and keeps the order of coming; events cause others from time to
        /// time, often at the very instant.
        #[test]
        fn the_order_is_that_of_a_stable_sort(delays in vec(0..4_u64, 1..60)) {
            let mut queue = Queue::default();
            let mut model: Vec<(Instant, Event)> = Vec::new();
            let mut delays = delays.into_iter().zip(0..);
            let mut now = Instant::EPOCH;
            let mut causes = 3;
            loop {
                for (delay, client) in delays.by_ref().take(causes) {
                    let at = Instant::from_nanos(now.as_nanos() + delay);
                    queue.push(at, Event::Wake(client));
                    model.push((at, Event::Wake(client)));
                }
                model.sort_by_key(|&(at, _)| at);
                let expected = (!model.is_empty()).then(|| model.remove(0));
                prop_assert_eq!(queue.pop(), expected);
                let Some((at, _)) = expected else { break };
                now = at;
                causes = usize::from(now.as_nanos().is_multiple_of(2)) + 1;
            }
        }
    }
}
