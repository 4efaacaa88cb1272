//! Who watches a call, behind a table of what is told.

use core::fmt;

use super::decision::Retry;
use super::event::{AttemptKind, Event, Observation, Observer};
use super::machine::{Machine, State};
use crate::breaker::{BreakerChange, Role};
use crate::time::{Instant, duration};

/// An observer and how it is told.
#[derive(Clone, Copy)]
pub(super) struct Watcher<'a> {
    pub(super) observer: &'a dyn Observer,
    table: &'static WatchTable,
}

struct WatchTable {
    attempt: fn(&Machine<'_>),
    backoff: fn(&Machine<'_>, Retry),
    breaker: fn(&Machine<'_>, BreakerChange),
    end: fn(&Machine<'_>),
    throttled: fn(&Machine<'_>, Instant),
}

impl<'a> Watcher<'a> {
    pub(super) const fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, table: Self::TABLE }
    }

    const TABLE: &'static WatchTable = &WatchTable {
        attempt: |machine| machine.notify(Event::Attempt { kind: machine.state.kind() }),
        backoff: |machine, Retry { at, source }| {
            if let State::Failed { failure } = machine.state {
                let delay = duration(machine.wait_until(at));
                machine.notify(Event::Backoff { failure, delay, source });
            }
        },
        breaker: |machine, change| machine.notify(Event::Breaker(change)),
        end: |machine| match machine.state {
            State::Stopped { stop, .. } => machine.notify(Event::Stop(stop)),
            _ => machine.notify(Event::Success),
        },
        throttled: |machine, until| machine.notify(Event::Throttled { until }),
    };
}

impl Machine<'_> {
    /// An attempt has started.
    pub(super) fn tell_attempt(&self) {
        if let Some(Watcher { table, .. }) = self.parts.watcher {
            (table.attempt)(self);
        }
    }

    /// It will be tried again after the failure.
    pub(super) fn tell_backoff(&self, retry: Retry) {
        if let Some(Watcher { table, .. }) = self.parts.watcher {
            (table.backoff)(self, retry);
        }
    }

    pub(super) fn tell_change(&self, change: BreakerChange) {
        if let Some(Watcher { table, .. }) = self.parts.watcher {
            (table.breaker)(self, change);
        }
    }

    /// It has succeeded or stopped.
    pub(super) fn tell_end(&self) {
        if let Some(Watcher { table, .. }) = self.parts.watcher {
            (table.end)(self);
        }
    }

    pub(super) fn tell_throttled(&self, until: Instant) {
        if let Some(Watcher { table, .. }) = self.parts.watcher {
            (table.throttled)(self, until);
        }
    }

    #[inline(never)]
    fn notify(&self, event: Event) {
        if let Some(Watcher { observer, .. }) = self.parts.watcher {
            let (attempts, now) = (self.attempts, self.now);
            let elapsed = now.saturating_duration_since(self.started);
            observer.on_event(&Observation { event, attempts, elapsed, now });
        }
    }
}

impl State {
    /// What the breaker made of the attempt in flight.
    fn kind(&self) -> AttemptKind {
        self.ticket().map_or(AttemptKind::Ordinary, |ticket| match ticket.role {
            Role::Call => AttemptKind::Ordinary,
            Role::Probe => AttemptKind::Probe,
            Role::Shadow => AttemptKind::Shadow,
        })
    }
}

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.observer.fmt(f)
    }
}
