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
    /// Also while its heir has not heard of it; nobody waits without one.
    has_head: bool,
    /// Who is to be the head, and has been woken.
    heir: ManuallyDrop<Option<Waiting>>,
    /// Something has since there is this head, which has not heard of it.
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
            heir: ManuallyDrop::new(None),
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
            state.has_changed = state.has_head; // Who comes later finds it changed.
            state.asleep.take()
        }));
    }

    /// How many are in line, the head included.
    pub(crate) fn waiting(&self) -> usize {
        self.with(0, |state| state.waiting.iter().flatten().count() + usize::from(state.has_head))
    }

    /// Whether nobody is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.with(false, |state| !state.has_head)
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
    const fn try_join(&mut self) -> bool {
        !core::mem::replace(&mut self.has_head, true)
    }

    fn enter(&mut self, waker: &Waker) -> Result<u32, QueueFull> {
        let free = self.waiting.iter_mut().find(|place| place.is_none()).ok_or(QueueFull)?;
        let ticket = self.next_ticket;
        *free = Some(Waiting { ticket, waker: waker.clone() });
        self.next_ticket = ticket.wrapping_add(1);
        Ok(ticket)
    }

    /// There is no head any more: who is to be woken to become it.
    fn hand_on(&mut self) -> Option<Waker> {
        self.has_changed = false;
        // Tickets may have wrapped: the oldest is the furthest from the next one.
        let next_ticket = self.next_ticket;
        let age = |place: &&mut Option<Waiting>| {
            place.as_ref().map(|waiting| next_ticket.wrapping_sub(waiting.ticket))
        };
        *self.heir = self.waiting.iter_mut().max_by_key(age).and_then(Option::take);
        self.has_head = self.heir.is_some();
        self.heir.as_ref().map(|heir| heir.waker.clone())
    }

    /// Whether the holder of `ticket` is the head from now on. And a waker to drop.
    fn advance(&mut self, ticket: u32, waker: &Waker) -> (bool, Option<Waker>) {
        if let Some(heir) = self.heir.take_if(|heir| heir.ticket == ticket) {
            return (true, Some(heir.waker));
        }
        let own = self.waiting.iter_mut().flatten().find(|waiting| waiting.ticket == ticket);
        (false, own.map(|own| core::mem::replace(&mut own.waker, waker.clone())))
    }

    /// Who has left, and who is to be woken to become the head.
    fn leave(&mut self, ticket: u32) -> (Option<Waiting>, Option<Waker>) {
        let heir = self.heir.take_if(|heir| heir.ticket == ticket);
        if heir.is_some() {
            return (heir, self.hand_on());
        }
        let mut places = self.waiting.iter_mut();
        (places.find_map(|place| place.take_if(|waiting| waiting.ticket == ticket)), None)
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
            let (_left, next) = self.line.with((None, None), |state| state.leave(ticket));
            wake(next);
        }
    }
}

/// The head of a [`Line`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Head<'a, const WAITING: usize>(&'a Line<WAITING>);

impl<const WAITING: usize> Drop for Head<'_, WAITING> {
    fn drop(&mut self) {
        wake(self.0.with(None, State::hand_on));
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

#[cfg(test)]
mod tests {
    use core::future::Future;
    use core::pin::{Pin, pin};
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::boxed::Box;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::task::Wake;
    use std::vec::Vec;

    use super::*;
    use proptest::prelude::*;

    const ROOM: usize = 3;

    #[derive(Debug)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    type Joining<'a> = Pin<Box<dyn Future<Output = Result<Head<'a, ROOM>, QueueFull>> + 'a>>;

    enum Guest<'a> {
        Waiting(Joining<'a>, Arc<Woken>),
        Head { _place: Head<'a, ROOM> },
        Gone,
    }

    #[derive(Clone, Debug)]
    enum Op {
        Join,
        /// Whoever was woken is polled, and nobody else.
        Run,
        /// A guest is polled, woken or not.
        Poll(usize),
        /// The head goes, or somebody who waits gives up.
        Leave(usize),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            4 => Just(Op::Join),
            2 => Just(Op::Run),
            1 => (0..8_usize).prop_map(Op::Poll),
            3 => (0..8_usize).prop_map(Op::Leave),
        ];
        prop::collection::vec(op, 0..60)
    }

    /// The guests in line, the head first; every one of them by number.
    struct Model<'a> {
        guests: Vec<Guest<'a>>,
        line: VecDeque<usize>,
    }

    impl Model<'_> {
        fn poll(&mut self, number: usize) {
            let Guest::Waiting(joining, woken) = &mut self.guests[number] else { return };
            let waker = Waker::from(Arc::clone(woken));
            woken.0.store(false, Ordering::Relaxed);
            let polled = joining.as_mut().poll(&mut Context::from_waker(&waker));
            match polled {
                Poll::Ready(joined) => {
                    assert_eq!(self.line.front(), Some(&number), "not its turn");
                    let place = joined.expect("who has waited has a place");
                    self.guests[number] = Guest::Head { _place: place };
                }
                Poll::Pending => assert_ne!(self.line.front(), Some(&number), "its turn"),
            }
        }

        fn run(&mut self) {
            for number in 0..self.guests.len() {
                let is_woken = matches!(
                    &self.guests[number],
                    Guest::Waiting(_, woken) if woken.0.load(Ordering::Relaxed)
                );
                if is_woken {
                    self.poll(number);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_line_is_a_queue_of_those_who_have_not_left(ops in ops()) {
            let line = Line::<ROOM>::new();
            line.with((), |state| state.next_ticket = u32::MAX - 5); // Tickets wrap.
            let mut model = Model { guests: Vec::new(), line: VecDeque::new() };
            for op in ops {
                match op {
                    Op::Join => {
                        let woken = Arc::new(Woken(AtomicBool::new(false)));
                        let waker = Waker::from(Arc::clone(&woken));
                        let mut joining: Joining<'_> = Box::pin(line.join());
                        let polled = joining.as_mut().poll(&mut Context::from_waker(&waker));
                        let is_first = model.line.is_empty();
                        let is_full = model.line.len() == ROOM + 1;
                        let guest = match polled {
                            Poll::Ready(Ok(place)) => {
                                prop_assert!(is_first);
                                Guest::Head { _place: place }
                            }
                            Poll::Ready(Err(QueueFull)) => {
                                prop_assert!(is_full);
                                continue;
                            }
                            Poll::Pending => {
                                prop_assert!(!is_first && !is_full);
                                Guest::Waiting(joining, woken)
                            }
                        };
                        model.line.push_back(model.guests.len());
                        model.guests.push(guest);
                    }
                    Op::Run => model.run(),
                    Op::Poll(number) => {
                        if let Some(&number) = model.line.get(number) {
                            model.poll(number);
                        }
                    }
                    Op::Leave(place) => {
                        if let Some(number) = model.line.remove(place) {
                            model.guests[number] = Guest::Gone;
                        }
                    }
                }
                prop_assert_eq!(line.waiting(), model.line.len());
                prop_assert_eq!(line.is_empty(), model.line.is_empty());
            }
            // Only by being woken does everybody get to the head.
            while let Some(&head) = model.line.front() {
                model.run();
                prop_assert!(matches!(model.guests[head], Guest::Head { .. }), "asleep for ever");
                model.line.pop_front();
                model.guests[head] = Guest::Gone;
            }
            prop_assert_eq!(line.waiting(), 0);
        }
    }

    #[test]
    fn a_change_is_remembered_until_the_head_hears_of_it() {
        let line = Line::<ROOM>::new();
        line.wake(); // Nobody is there, and who comes finds it changed.
        let join = || {
            let polled = pin!(line.join()).poll(&mut Context::from_waker(Waker::noop()));
            polled.map(|joined| joined.expect("there is room"))
        };
        let head = join();
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut asleep = Box::pin(line.changed());
        assert!(asleep.as_mut().poll(&mut context).is_pending());
        line.wake();
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(asleep.as_mut().poll(&mut context).is_ready());
        line.wake(); // Nobody is asleep.
        assert!(Box::pin(line.changed()).as_mut().poll(&mut context).is_ready());
        assert!(Box::pin(line.changed()).as_mut().poll(&mut context).is_pending());
        line.wake();
        assert!(head.is_ready());
        drop(head); // Unheard; the next one looks for itself.
        let _head = join();
        assert!(Box::pin(line.changed()).as_mut().poll(&mut context).is_pending());
        assert_eq!(Arc::strong_count(&woken), 2, "a dropped sleep leaves no waker behind");
    }
}
