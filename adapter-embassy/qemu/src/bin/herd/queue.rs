//! What happens when.

use heapless::Deque;
use heapless::binary_heap::{BinaryHeap, Min};

use crate::CLIENTS;
use crate::provider::Verdict;

/// Something that happens to a client; to each one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Answer(u8, Verdict),
    Arrive(u8),
    Wake(u8),
}

/// When (ms), the how-manieth to be put in, and what: so the earliest is the smallest.
type Entry = (u32, u32, Event);

/// Events by time, those of one instant in the order in which they were put in.
pub(crate) struct Queue {
    now: u32,
    present: Deque<Event, CLIENTS>,
    future: BinaryHeap<Entry, Min, CLIENTS>,
    count: u32,
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { now: 0, present: Deque::new(), future: BinaryHeap::new(), count: 0 }
    }

    /// The next event and its time, which becomes the present.
    pub(crate) fn pop(&mut self) -> Option<(u32, Event)> {
        // What is in the heap for the present was put there before it became the present.
        if self.future.peek().is_none_or(|&(at, ..)| at > self.now)
            && let Some(event) = self.present.pop_front()
        {
            return Some((self.now, event));
        }
        let (at, _, event) = self.future.pop()?;
        self.now = at;
        Some((at, event))
    }

    /// `event` happens at `at` (ms), or now if that is past.
    pub(crate) fn push(&mut self, at: u32, event: Event) {
        let is_in = if at <= self.now {
            self.present.push_back(event).is_ok()
        } else {
            self.count += 1;
            self.future.push((at, self.count, event)).is_ok()
        };
        assert!(is_in, "a client has two events");
    }
}
