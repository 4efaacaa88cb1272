//! One run: clients, provider, and time that really passes.

use core::time::Duration;

use heapless::{Deque, Vec};
use holdoff::{Call, Failure, Hint, Instant, Limiter, Outcome, Quota, Rate, Safety, Step, valid};
use holdoff_embassy_qemu::systick;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::CLIENTS;
use crate::provider::{Provider, Verdict};
use crate::queue::{Event, Queue};
use crate::strategy::{Header, Limit, Rules};

/// The limit of the provider, as the clients' limiter knows it.
const QUOTA: Quota = valid!(Quota::new(Rate::per_second(10), 20));
const SEED: u64 = 1;

/// What a run came to.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) requests: u32,
    pub(crate) rejected: u32,
    /// When each successful answer was there (ms), in order.
    pub(crate) successes: Vec<u32, CLIENTS>,
}

/// All clients call at once and follow `rules`, until each has its final answer.
pub(crate) fn run(rules: &'static Rules) -> Totals {
    let limiter = Limiter::new(QUOTA);
    let mut run = Run {
        clients: Vec::new(),
        header: rules.header,
        line: Deque::new(),
        provider: Provider::new(),
        queue: Queue::new(),
        random: Xoshiro256PlusPlus::seed_from_u64(SEED),
        totals: Totals::default(),
    };
    for client in (0..=u8::MAX).take(CLIENTS) {
        let call = Call::new(&rules.policy, Safety::Idempotent, Instant::EPOCH);
        let call = match rules.limit {
            Limit::None => call,
            Limit::Shared => call.with_limiter(&limiter, 1),
        };
        assert!(run.clients.push(call).is_ok());
        run.queue.push(0, Event::Wake(client));
    }
    let start = systick::now() + 1;
    while let Some((at, event)) = run.queue.pop() {
        systick::sleep_until(start + u64::from(at));
        let now = systick::now() - start;
        assert_eq!(now, u64::from(at), "too late");
        run.on_event(at, event);
    }
    run.totals
}

struct Run<'a> {
    clients: Vec<Call<'a>, CLIENTS>,
    header: Header,
    /// Those who want a permit of the limiter, in order. Only the head asks and sleeps.
    line: Deque<u8, CLIENTS>,
    provider: Provider,
    queue: Queue,
    random: Xoshiro256PlusPlus,
    totals: Totals,
}

impl Run<'_> {
    fn on_event(&mut self, now: u32, event: Event) {
        match event {
            Event::Answer(client, verdict) => self.on_answer(now, client, verdict),
            Event::Arrive(client) => self.on_arrive(now, client),
            Event::Wake(client) => self.on_wake(now, client),
        }
    }

    fn on_arrive(&mut self, now: u32, client: u8) {
        let verdict = self.provider.request(now);
        self.totals.requests += 1;
        self.totals.rejected += u32::from(verdict != Verdict::Accepted);
        self.queue.push(now, Event::Answer(client, verdict));
    }

    fn on_answer(&mut self, now: u32, client: u8, verdict: Verdict) {
        let outcome = outcome(verdict, self.header);
        self.clients[usize::from(client)].record(instant(now), outcome, || 0);
        self.on_wake(now, client);
    }

    /// What a driver does: ask the call what comes next and do it.
    fn on_wake(&mut self, now: u32, client: u8) {
        let call = &mut self.clients[usize::from(client)];
        if call.wants_permit(instant(now)) && self.line.front() != Some(&client) {
            assert!(self.line.push_back(client).is_ok(), "each is in line once");
            if self.line.front() != Some(&client) {
                return; // Whoever leaves the line wakes the next.
            }
        }
        let step = call.poll(instant(now), || self.random.next_u64());
        if !matches!(step, Step::Throttled { .. }) && self.line.front() == Some(&client) {
            self.line.pop_front();
            if let Some(&next) = self.line.front() {
                self.queue.push(now, Event::Wake(next));
            }
        }
        match step {
            Step::Attempt(_) => self.queue.push(now, Event::Arrive(client)),
            Step::Backoff { until, .. } | Step::Throttled { until } => {
                self.queue.push(tick(until), Event::Wake(client));
            }
            Step::Done => assert!(self.totals.successes.push(now).is_ok(), "each is done once"),
            Step::Stop(_) => {}
        }
    }
}

/// What the provider's answer means to a client that reads the header or does not.
fn outcome(verdict: Verdict, header: Header) -> Outcome {
    match (verdict, header) {
        (Verdict::Accepted, _) => Outcome::Success,
        (Verdict::Rejected { .. }, Header::Ignored) => Outcome::Failure(Failure::throttled()),
        (Verdict::Rejected { retry_after }, Header::Read) => {
            let hint = Hint::after(Duration::from_secs(u64::from(retry_after)));
            Outcome::Failure(Failure::throttled().with_hint(hint))
        }
    }
}

const fn instant(millis: u32) -> Instant {
    Instant::from_nanos(millis as u64 * 1_000_000)
}

/// The first millisecond that is not before `instant`.
fn tick(instant: Instant) -> u32 {
    u32::try_from(instant.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}
