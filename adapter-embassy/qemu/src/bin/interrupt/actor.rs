//! Who uses the upstream: the main loop and the handler do the same.

use core::sync::atomic::Ordering;
use core::time::Duration;

use holdoff::{Call, ChangeUnderWay, Failure, Hint, Outcome, Permit, Safety, Step};
use rand_xoshiro::Xoshiro128PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::{CHANGES, FAST, POLICY, PROBES, SLOW, UPSTREAM, now};

/// Who uses the upstream; the number is the place in what is kept of each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Main,
    Handler,
}

/// What one of the two has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// First attempts.
    pub(crate) calls: u32,
    pub(crate) retries: u32,
    /// Tokens taken, those given back taken off.
    pub(crate) tokens: u32,
    /// Refused because of the other's probe.
    pub(crate) beside_probe: u32,
    /// Of the quota.
    pub(crate) changes: u32,
    pub(crate) changes_refused: u32,
}

/// An attempt under way.
#[derive(Clone, Copy)]
struct Flight {
    is_probe: bool,
}

/// The main loop, or the handler: does one thing at each step.
pub(crate) struct Actor {
    user: User,
    pub(crate) random: Xoshiro128PlusPlus,
    call: Option<Call<'static>>,
    flight: Option<Flight>,
    permit: Option<Permit<'static>>,
    pub(crate) tally: Tally,
}

impl Actor {
    pub(crate) fn new(user: User) -> Self {
        Self {
            user,
            random: Xoshiro128PlusPlus::seed_from_u64(user as u64),
            call: None,
            flight: None,
            permit: None,
            tally: Tally::default(),
        }
    }

    pub(crate) fn finish(mut self) -> Tally {
        self.drop_all();
        self.tally
    }

    pub(crate) fn step(&mut self) {
        match self.random.next_u32() % 16 {
            0 => self.use_permit(),
            1 => self.take_token(),
            2 => self.change_quota(),
            3 => self.give_up(),
            _ => self.use_call(),
        }
    }

    fn use_call(&mut self) {
        let now = now();
        let Self { user, random, call, flight, tally, .. } = self;
        let running = call.get_or_insert_with(|| UPSTREAM.call(&POLICY, Safety::Idempotent, now));
        if let Some(Flight { is_probe }) = flight.take() {
            PROBES.end(is_probe);
            running.record(now, outcome(random), || u64::from(random.next_u32()) << 32);
            return;
        }
        match running.poll(now, || u64::from(random.next_u32()) << 32) {
            Step::Attempt(attempt) => {
                *flight = Some(Flight { is_probe: PROBES.is_call_probe(*user) });
                tally.tokens += 1;
                if attempt.number == 1 { tally.calls += 1 } else { tally.retries += 1 }
            }
            Step::Backoff { .. } | Step::Throttled { .. } => {}
            Step::Done | Step::Stop(_) => *call = None,
        }
    }

    /// Asks the breaker itself and keeps the permit for some steps.
    fn use_permit(&mut self) {
        let (Some(breaker), now) = (UPSTREAM.breaker(), now()) else { return };
        let Some(permit) = self.permit.take() else {
            match breaker.try_acquire(now) {
                Ok(permit) => {
                    if permit.is_probe() {
                        PROBES.begin();
                    }
                    self.permit = Some(permit);
                }
                Err(open) if open.is_probing && !self.is_probing() => self.tally.beside_probe += 1,
                Err(_) => {}
            }
            return;
        };
        PROBES.end(permit.is_probe());
        match outcome(&mut self.random) {
            Outcome::Success => permit.success(now, || 0),
            Outcome::Failure(_) => permit.failure(now, || 0),
            _ => {
                permit.neutral();
                None
            }
        };
    }

    fn take_token(&mut self) {
        let Some(limiter) = UPSTREAM.limiter() else { return };
        if limiter.try_acquire(now(), 1).is_ok() {
            self.tally.tokens += 1;
        }
    }

    fn change_quota(&mut self) {
        let Some(limiter) = UPSTREAM.limiter() else { return };
        if !CHANGES.load(Ordering::Relaxed) {
            return;
        }
        let quota = if self.random.next_u32().is_multiple_of(2) { FAST } else { SLOW };
        match limiter.set_quota(now(), quota) {
            Ok(()) => self.tally.changes += 1,
            Err(ChangeUnderWay) => self.tally.changes_refused += 1,
        }
    }

    /// Drops what is under way, now and then.
    fn give_up(&mut self) {
        if self.random.next_u32().is_multiple_of(4) {
            self.drop_all();
        }
    }

    fn is_probing(&self) -> bool {
        self.flight.is_some_and(|flight| flight.is_probe)
    }

    fn drop_all(&mut self) {
        PROBES.end(self.is_probing());
        self.flight = None;
        self.call = None;
        PROBES.end(self.permit.as_ref().is_some_and(Permit::is_probe));
        self.permit = None;
    }
}

fn outcome(random: &mut Xoshiro128PlusPlus) -> Outcome {
    match random.next_u32() % 8 {
        0..4 => Outcome::Success,
        4 => {
            let hint = Hint::after(Duration::from_millis(1));
            Outcome::Failure(Failure::throttled().with_hint(hint))
        }
        5 => Outcome::Ignored,
        _ => Outcome::Failure(Failure::transient()),
    }
}
