//! One run: clients, provider and the way between them, in virtual time.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;

use holdoff::{ConfigError, Instant, Limiter, Quota, Step};
use rand_xoshiro::rand_core::Rng;

use crate::client::{Client, outcome};
use crate::provider::{Provider, Verdict};
use crate::queue::{Event, Queue};
use crate::setup::Setup;
use crate::strategy::{Header, Limit, Strategy};

/// A request that reached the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrived.
    pub at: Instant,
    /// Whose it was, from 0.
    pub client: u32,
    /// Which of this client's requests it was, from 1.
    pub attempt: u32,
    /// What the provider said.
    pub verdict: Verdict,
}

/// A client that has its final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// When the answer reached it.
    pub at: Instant,
    /// Which client, from 0.
    pub client: u32,
    /// Requests it made.
    pub attempts: u32,
    /// Whether the answer is what it wanted.
    pub ok: bool,
}

/// Someone who watches runs. An error ends the run.
pub trait Observer {
    /// Run `run` (from 0) of `strategy` begins.
    ///
    /// # Errors
    /// Whatever keeps the observer from doing its work, as for all its methods.
    fn on_start(&mut self, strategy: Strategy, run: u32) -> io::Result<()> {
        let _ = (strategy, run);
        Ok(())
    }

    /// A request arrived.
    ///
    /// # Errors
    /// As [`on_start`](Self::on_start).
    fn on_arrival(&mut self, arrival: &Arrival) -> io::Result<()> {
        let _ = arrival;
        Ok(())
    }

    /// A client is done.
    ///
    /// # Errors
    /// As [`on_start`](Self::on_start).
    fn on_done(&mut self, done: &Done) -> io::Result<()> {
        let _ = done;
        Ok(())
    }

    /// Real time passes, whether or not anything happens. Virtual time does not tick.
    ///
    /// # Errors
    /// As [`on_start`](Self::on_start).
    fn on_tick(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Watches if there is somebody to.
impl<O: Observer> Observer for Option<O> {
    fn on_start(&mut self, strategy: Strategy, run: u32) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.on_start(strategy, run))
    }

    fn on_arrival(&mut self, arrival: &Arrival) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.on_arrival(arrival))
    }

    fn on_done(&mut self, done: &Done) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), |observer| observer.on_done(done))
    }

    fn on_tick(&mut self) -> io::Result<()> {
        self.as_mut().map_or(Ok(()), Observer::on_tick)
    }
}

/// Two who watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_start(&mut self, strategy: Strategy, run: u32) -> io::Result<()> {
        self.0.on_start(strategy, run)?;
        self.1.on_start(strategy, run)
    }

    fn on_arrival(&mut self, arrival: &Arrival) -> io::Result<()> {
        self.0.on_arrival(arrival)?;
        self.1.on_arrival(arrival)
    }

    fn on_done(&mut self, done: &Done) -> io::Result<()> {
        self.0.on_done(done)?;
        self.1.on_done(done)
    }

    fn on_tick(&mut self) -> io::Result<()> {
        self.0.on_tick()?;
        self.1.on_tick()
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that reached the provider.
    pub requests: u64,
    /// Those it answered with 429.
    pub rejected: u64,
    /// When each successful answer reached its client, in order.
    pub successes: Vec<Instant>,
}

/// A set-up and the strategy all its clients follow: what can be run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    setup: Setup,
    strategy: Strategy,
    quota: Option<Quota>,
}

impl Scenario {
    /// All clients of `setup` follow `strategy`.
    ///
    /// # Errors
    /// [`ConfigError::RefillTooLong`] if the strategy needs a limiter that cannot hold the set-up's
    /// rate and burst.
    pub fn new(setup: Setup, strategy: Strategy) -> Result<Self, ConfigError> {
        let quota = match strategy.rules().limit {
            Limit::None => None,
            Limit::Shared => Some(setup.quota()?),
        };
        Ok(Self { setup, strategy, quota })
    }

    /// The strategy.
    #[must_use]
    pub const fn strategy(&self) -> Strategy {
        self.strategy
    }

    pub(crate) const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Of the limiter that the clients share.
    pub(crate) const fn quota(&self) -> Option<Quota> {
        self.quota
    }

    /// One run from time 0 until every client has its final answer.
    ///
    /// # Errors
    /// The observer's.
    pub fn run(&self, observer: &mut impl Observer, random: &mut impl Rng) -> io::Result<Totals> {
        let limiter = self.quota.map(Limiter::new);
        let rules = self.strategy.rules();
        let clients = self.setup.clients();
        let start = Instant::EPOCH;
        let mut run = Run {
            clients: (0..clients).map(|_| Client::new(rules, limiter.as_ref(), start)).collect(),
            header: rules.header,
            line: VecDeque::new(),
            // Lossless: the round trip is whole milliseconds.
            one_way: self.setup.round_trip() / 2,
            provider: Provider::new(&self.setup),
            queue: Queue::default(),
            totals: Totals::default(),
            observer,
            random,
        };
        for client in 0..clients {
            run.queue.push(start, Event::Wake(client));
        }
        while let Some((now, event)) = run.queue.pop() {
            run.on_event(now, event)?;
        }
        Ok(run.totals)
    }
}

/// A run in progress.
struct Run<'a, O, R> {
    clients: Vec<Client<'a>>,
    header: Header,
    /// Those who want a permit of the limiter, in order. Only the head asks and sleeps.
    line: VecDeque<u32>,
    one_way: Duration,
    provider: Provider,
    queue: Queue,
    totals: Totals,
    observer: &'a mut O,
    random: &'a mut R,
}

impl<O: Observer, R: Rng> Run<'_, O, R> {
    fn on_event(&mut self, now: Instant, event: Event) -> io::Result<()> {
        match event {
            Event::Answer(client, verdict) => self.on_answer(now, client, verdict),
            Event::Arrive(client) => self.on_arrive(now, client),
            Event::Wake(client) => self.on_wake(now, client),
        }
    }

    fn on_arrive(&mut self, now: Instant, client: u32) -> io::Result<()> {
        let verdict = self.provider.request(now);
        self.totals.requests += 1;
        self.totals.rejected += u64::from(verdict != Verdict::Accepted);
        let attempt = self.clients[client as usize].attempts();
        self.observer.on_arrival(&Arrival { at: now, client, attempt, verdict })?;
        self.queue.push(now.saturating_add(self.one_way), Event::Answer(client, verdict));
        Ok(())
    }

    fn on_answer(&mut self, now: Instant, client: u32, verdict: Verdict) -> io::Result<()> {
        self.clients[client as usize].record(now, outcome(verdict, self.header));
        self.on_wake(now, client)
    }

    /// What a driver does: ask the call what comes next and do it.
    fn on_wake(&mut self, now: Instant, client: u32) -> io::Result<()> {
        if self.clients[client as usize].wants_permit(now) && !self.is_head(client) {
            self.line.push_back(client);
            if !self.is_head(client) {
                return Ok(()); // Whoever leaves the line wakes the next.
            }
        }
        let step = self.clients[client as usize].poll(now, || self.random.next_u64());
        if !matches!(step, Step::Throttled { .. }) && self.is_head(client) {
            self.line.pop_front();
            if let Some(&next) = self.line.front() {
                self.queue.push(now, Event::Wake(next));
            }
        }
        match step {
            Step::Attempt(_) => {
                self.queue.push(now.saturating_add(self.one_way), Event::Arrive(client));
                Ok(())
            }
            // A limiter that never admits would be asked for ever at the end of time; a set-up
            // whose floor is that far away does not exist.
            Step::Backoff { until, .. } | Step::Throttled { until } => {
                self.queue.push(until, Event::Wake(client));
                Ok(())
            }
            Step::Done => self.on_done(now, client, true),
            Step::Stop(_) => self.on_done(now, client, false),
        }
    }

    fn on_done(&mut self, now: Instant, client: u32, ok: bool) -> io::Result<()> {
        if ok {
            self.totals.successes.push(now);
        }
        let attempts = self.clients[client as usize].attempts();
        self.observer.on_done(&Done { at: now, client, attempts, ok })
    }

    fn is_head(&self, client: u32) -> bool {
        self.line.front() == Some(&client)
    }
}
