//! Who is next: tasks in the order in which they came.

use core::cell::RefCell;
use core::fmt;
use core::future::poll_fn;
use core::mem::ManuallyDrop;
use core::task::{Context, Poll, Waker};

use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use holdoff::drive::QueueFull;

/// One place at the head, handed on in the order in which tasks came, and room for `WAITING`
/// behind.
///
/// Not embassy-sync's `FairSemaphore`: of a waiter that is dropped after it was woken, that (0.8)
/// tells nobody, and those behind sleep on.
pub(crate) struct Line<const WAITING: usize> {
    state: Mutex<CriticalSectionRawMutex, RefCell<State<WAITING>>>,
}

/// Wakers are not dropped with the line, or no `const fn` could pass one on: whoever waits borrows
/// it and takes its waker away.
struct State<const WAITING: usize> {
    has_head: bool,
    /// Something has, and the head has not heard of it.
    has_changed: bool,
    /// The head, if it is asleep.
    asleep: ManuallyDrop<Option<Waker>>,
    next_ticket: u32,
    /// In no order: the tickets are.
    waiting: ManuallyDrop<[Option<Waiting>; WAITING]>,
}

struct Waiting {
    ticket: u32,
    waker: Waker,
}

impl<const WAITING: usize> Line<WAITING> {
    pub(crate) const fn new() -> Self {
        let state = State {
            has_head: false,
            has_changed: false,
            asleep: ManuallyDrop::new(None),
            next_ticket: 0,
            waiting: ManuallyDrop::new([const { None }; WAITING]),
        };
        Self { state: Mutex::new(RefCell::new(state)) }
    }

    /// Lets the head look again; remembered if it is not asleep just now.
    pub(crate) fn wake(&self) {
        wake(self.with(None, |state| {
            state.has_changed = true;
            state.asleep.take()
        }));
    }

    /// How many are in line, the head included.
    pub(crate) fn waiting(&self) -> usize {
        self.with(0, |state| state.waiting.iter().flatten().count() + usize::from(state.has_head))
    }

    /// The head's place, if nobody is in line.
    pub(crate) fn try_join(&self) -> Option<Head<'_, WAITING>> {
        // Made only if there is one: its end hands the place on.
        if self.with(false, State::try_join) { Some(Head(self)) } else { None }
    }

    /// Waits to become the head.
    pub(crate) async fn join(&self) -> Result<Head<'_, WAITING>, QueueFull> {
        let mut place = Place { line: self, ticket: None };
        poll_fn(|context| place.poll(context)).await
    }

    /// Completes when the head may be admitted earlier than it was told.
    pub(crate) async fn changed(&self) {
        let asleep = Asleep(self);
        poll_fn(|context| asleep.poll(context)).await;
    }

    /// What `look` finds, in a critical section.
    ///
    /// The state is never borrowed twice, as wakers are woken and dropped outside; `otherwise` only
    /// spares the image the panic of a `RefCell`.
    fn with<R>(&self, otherwise: R, look: impl FnOnce(&mut State<WAITING>) -> R) -> R {
        self.state.lock(|state| match state.try_borrow_mut() {
            Ok(mut state) => look(&mut state),
            Err(_) => otherwise,
        })
    }
}

impl<const WAITING: usize> fmt::Debug for Line<WAITING> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl<const WAITING: usize> State<WAITING> {
    fn try_join(&mut self) -> bool {
        let joins = !self.has_head && self.waiting.iter().all(Option::is_none);
        self.has_head |= joins;
        joins
    }

    /// Who has waited longest.
    fn first(&self) -> Option<&Waiting> {
        // Tickets may have wrapped: the oldest is the furthest from the next one.
        let age = |waiting: &&Waiting| self.next_ticket.wrapping_sub(waiting.ticket);
        self.waiting.iter().flatten().max_by_key(age)
    }

    /// Who is to be woken to become the head, if there is none.
    fn next_head(&self) -> Option<Waker> {
        if self.has_head { None } else { self.first().map(|first| first.waker.clone()) }
    }

    fn enter(&mut self, waker: &Waker) -> Result<u32, QueueFull> {
        let free = self.waiting.iter_mut().find(|place| place.is_none()).ok_or(QueueFull)?;
        let ticket = self.next_ticket;
        *free = Some(Waiting { ticket, waker: waker.clone() });
        self.next_ticket = ticket.wrapping_add(1);
        Ok(ticket)
    }

    fn leave(&mut self, ticket: u32) -> Option<Waiting> {
        let holds = |place: &&mut Option<Waiting>| {
            place.as_ref().is_some_and(|waiting| waiting.ticket == ticket)
        };
        self.waiting.iter_mut().find(holds)?.take()
    }

    /// Whether the holder of `ticket` is the head from now on. And a waker to drop.
    fn advance(&mut self, ticket: u32, waker: &Waker) -> (bool, Option<Waker>) {
        if !self.has_head && self.first().is_some_and(|first| first.ticket == ticket) {
            self.has_head = true;
            return (true, self.leave(ticket).map(|left| left.waker));
        }
        let own = self.waiting.iter_mut().flatten().find(|waiting| waiting.ticket == ticket);
        (false, own.map(|own| core::mem::replace(&mut own.waker, waker.clone())))
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A place behind the head, once it has a ticket, until it is dropped.
#[derive(Debug)]
struct Place<'a, const WAITING: usize> {
    line: &'a Line<WAITING>,
    ticket: Option<u32>,
}

impl<'a, const WAITING: usize> Place<'a, WAITING> {
    fn poll(&mut self, context: &Context<'_>) -> Poll<Result<Head<'a, WAITING>, QueueFull>> {
        let waker = context.waker();
        let is_head = match self.ticket {
            Some(ticket) => {
                let (is_head, _dropped) =
                    self.line.with((false, None), |state| state.advance(ticket, waker));
                is_head
            }
            None => {
                let joined = self.line.with(Err(QueueFull), |state| {
                    if state.try_join() { Ok(None) } else { state.enter(waker).map(Some) }
                });
                match joined {
                    Ok(ticket) => self.ticket = ticket,
                    Err(full) => return Poll::Ready(Err(full)),
                }
                self.ticket.is_none()
            }
        };
        if !is_head {
            return Poll::Pending;
        }
        self.ticket = None;
        Poll::Ready(Ok(Head(self.line)))
    }
}

impl<const WAITING: usize> Drop for Place<'_, WAITING> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // It may have been woken to become the head.
            let (_left, next) =
                self.line.with((None, None), |state| (state.leave(ticket), state.next_head()));
            wake(next);
        }
    }
}

/// The head of a [`Line`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Head<'a, const WAITING: usize>(&'a Line<WAITING>);

impl<const WAITING: usize> Drop for Head<'_, WAITING> {
    fn drop(&mut self) {
        wake(self.0.with(None, |state| {
            state.has_head = false;
            state.next_head()
        }));
    }
}

/// The head, until it is dropped or woken.
struct Asleep<'a, const WAITING: usize>(&'a Line<WAITING>);

impl<const WAITING: usize> Asleep<'_, WAITING> {
    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let (poll, _dropped) = self.0.with((Poll::Pending, None), |state| {
            if core::mem::take(&mut state.has_changed) {
                (Poll::Ready(()), None)
            } else {
                (Poll::Pending, state.asleep.replace(context.waker().clone()))
            }
        });
        poll
    }
}

impl<const WAITING: usize> Drop for Asleep<'_, WAITING> {
    fn drop(&mut self) {
        let _dropped = self.0.with(None, |state| state.asleep.take());
    }
}
