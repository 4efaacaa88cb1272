//! Whole calls that share a limiter, a breaker and a budget, interleaved, dropped and forgotten.
//!
//! Each step is compared with what naive models of the three say and with the rules for the call
//! itself: no more than its attempts, none at or after its deadline or earlier than a hint, the
//! budget never overdrawn and conserved when calls are dropped, every stop true, and in the end a
//! breaker that admits again.

mod policy;
mod shared;
mod tracked;

use std::time::Duration;

use arbitrary::Arbitrary;
use holdoff::{
    BreakerState, Counters, DelaySource, Instant, Limiter, Outcome, Policy, Step, Upstream,
};

use self::policy::{OutcomeInput, PolicyInput, SafetyInput};
use self::shared::{Counts, Shared};
use self::tracked::{Phase, Ready, Tracked};
use crate::breaker::{Config, ModeInput, RuleInput};
use crate::budget;
use crate::clock::{Nudge, TestClock, Tick};
use crate::input::decoded;
use crate::limiter::{Count, QuotaInput};
use crate::model::breaker::{self as model, Breaker};
use crate::model::limiter::Bucket;

#[derive(Arbitrary, Debug)]
struct Input {
    policies: [PolicyInput; 2],
    breaker: Option<Config>,
    budget: Option<budget::Config>,
    limiter: Option<QuotaInput>,
    ops: Vec<(Tick, Slot, Op)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Slot {
    A,
    B,
    C,
    D,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Drop,
    /// Polls and waits until there is an attempt, records its outcome and decides.
    Drive {
        outcome: OutcomeInput,
        sample: u64,
    },
    /// The call is lost, with all that it holds.
    Forget,
    Poll {
        sample: u64,
    },
    Record(OutcomeInput),
    SetMode(ModeInput),
    Start {
        policy: Which,
        safety: SafetyInput,
        cost: Count,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Which {
    First,
    Second,
}

/// Runs some calls.
///
/// # Panics
/// If an answer is not one that the rules allow.
pub fn run(data: &[u8]) {
    let Some(input) = decoded::<Input>(data) else { return };
    let upstream = Upstream::new().with_counters(Counters::new());
    // Without jitter the model knows the end of an open period.
    match input.breaker.map(Config::without_jitter) {
        None => run_with(&input, upstream, None),
        Some(config) if matches!(config.rule, RuleInput::OverTime { .. }) => {
            let (breaker, terms) = config.build_or_preset::<4>();
            run_with(&input, upstream.with_breaker(breaker), Some(Breaker::new(terms)));
        }
        Some(config) => {
            let (breaker, terms) = config.build_or_preset::<0>();
            run_with(&input, upstream.with_breaker(breaker), Some(Breaker::new(terms)));
        }
    }
}

fn run_with<const BUCKETS: usize>(
    input: &Input,
    mut upstream: Upstream<BUCKETS>,
    breaker: Option<Breaker>,
) {
    let [first, second] = input.policies.map(PolicyInput::build_or_preset);
    let (counts, mut reserve) = (Counts::default(), 0);
    let mut shared = Shared { breaker, budget: None, limiter: None, counts };
    if let Some(config) = input.budget {
        let (budget, model) = config.build_or_preset();
        reserve = budget.level(Instant::EPOCH).into();
        upstream = upstream.with_budget(budget);
        shared.budget = Some(model);
    }
    if let Some(quota) = input.limiter {
        let quota = quota.build_or_preset();
        upstream = upstream.with_limiter(Limiter::new(quota));
        shared.limiter = Some(Bucket::new(quota));
    }

    let mut world = World {
        upstream: &upstream,
        shared,
        clock: TestClock::default(),
        firsts: 0,
        forgotten_until: Instant::EPOCH,
        slots: [const { None }; 4],
    };
    for &(tick, slot, op) in input.ops.iter().take(128) {
        world.clock.tick(tick);
        if world.shared.is_out_of_range(world.clock.now()) {
            return;
        }
        world.step(slot as usize, op, [&first, &second]);
        world.check(reserve);
    }
    world.end(reserve);
}

struct World<'a, const BUCKETS: usize> {
    upstream: &'a Upstream<BUCKETS>,
    shared: Shared,
    clock: TestClock,
    /// First attempts.
    firsts: u64,
    /// The latest end of a lease that was under way when a call was forgotten.
    forgotten_until: Instant,
    slots: [Option<Tracked<'a, BUCKETS>>; 4],
}

impl<'a, const BUCKETS: usize> World<'a, BUCKETS> {
    fn step(&mut self, slot: usize, op: Op, policies: [&'a Policy; 2]) {
        let now = self.clock.now();
        match op {
            Op::Drop => self.drop_call(slot),
            Op::Drive { outcome, sample } => self.drive(slot, outcome, sample),
            Op::Forget => self.forget(slot),
            Op::Poll { sample } => {
                self.poll(slot, sample);
            }
            Op::Record(outcome) => self.record(slot, outcome),
            Op::SetMode(mode) => {
                if let Some((breaker, model)) =
                    self.upstream.breaker().zip(self.shared.breaker.as_mut())
                {
                    breaker.set_mode(mode.mode());
                    model.set_mode(mode.mode());
                }
            }
            Op::Start { policy, safety, cost } => {
                self.drop_call(slot);
                let policy = policies[policy as usize];
                let burst = self.shared.limiter.as_ref().map_or(1, |model| model.quota().burst());
                let (cost, safety) = (cost.of(burst), safety.safety());
                let call = self.upstream.call(policy, safety, now).with_cost(cost);
                let deadline = policy.deadline().map_or(Instant::MAX, |d| now.saturating_add(d));
                assert_eq!(call.deadline().unwrap_or(Instant::MAX), deadline);
                self.slots[slot] = Some(Tracked {
                    call,
                    policy,
                    safety,
                    cost,
                    deadline,
                    attempts: 0,
                    previous: Duration::ZERO,
                    phase: Phase::Ready(Ready {
                        not_before: Instant::EPOCH,
                        source: DelaySource::Schedule,
                        hinted: Instant::EPOCH,
                        is_charged: false,
                    }),
                });
            }
        }
    }

    fn poll(&mut self, slot: usize, sample: u64) -> Option<Step> {
        let now = self.clock.now();
        let tracked = self.slots[slot].as_mut()?;
        let attempts = tracked.attempts;
        let step = tracked.poll(&mut self.shared, now, with_likely_ends(sample));
        self.firsts += u64::from(attempts == 0 && tracked.attempts == 1);
        match step {
            Step::Backoff { until, .. } | Step::Throttled { until } => self.clock.name(until),
            _ => {}
        }
        Some(step)
    }

    fn record(&mut self, slot: usize, outcome: OutcomeInput) {
        let Some(tracked) = &mut self.slots[slot] else { return };
        let is_timeout = matches!(outcome, OutcomeInput::Timeout);
        tracked.record(&mut self.shared, self.clock.now(), (outcome.outcome(), is_timeout));
    }

    fn drive(&mut self, slot: usize, outcome: OutcomeInput, sample: u64) {
        for _ in 0..4 {
            match self.poll(slot, sample) {
                Some(Step::Backoff { .. } | Step::Throttled { .. }) => {
                    self.clock.tick(Tick::ToNamed(Nudge::At));
                    if self.shared.is_out_of_range(self.clock.now()) {
                        return;
                    }
                }
                Some(Step::Attempt(_)) => {
                    self.record(slot, outcome);
                    if outcome.outcome() != Outcome::Success {
                        self.poll(slot, sample);
                    }
                    return;
                }
                Some(Step::Done | Step::Stop(_)) | None => return,
            }
        }
    }

    fn drop_call(&mut self, slot: usize) {
        if let Some(tracked) = self.slots[slot].take() {
            tracked.free(&mut self.shared);
        }
    }

    /// A probe that is forgotten keeps its place to the end of its lease.
    fn forget(&mut self, slot: usize) {
        let state = self.upstream.breaker().map(|breaker| breaker.state(self.clock.now()));
        if let Some(BreakerState::HalfOpen { probing_until: Some(end) }) = state {
            self.forgotten_until = self.forgotten_until.max(end);
        }
        std::mem::forget(self.slots[slot].take());
    }

    fn check(&self, reserve: i128) {
        let now = self.clock.now();
        self.shared.check_retries(reserve, self.firsts, self.clock.latest());
        if self.shared.is_out_of_range(now) {
            return;
        }
        if let Some((budget, model)) = self.upstream.budget().zip(self.shared.budget) {
            assert_eq!(budget.level(now), model.level(now), "a retry is lost or gained");
        }
        if let Some((limiter, model)) = self.upstream.limiter().zip(self.shared.limiter.as_ref()) {
            assert_eq!(limiter.available(now), model.available(now), "a token is lost or gained");
        }
        if let Some((breaker, model)) = self.upstream.breaker().zip(self.shared.breaker.as_ref()) {
            assert_eq!(breaker.state(now), model.state(now));
        }
        let counters = self.upstream.counters().expect("it has some");
        assert_eq!(Counts::from(counters.snapshot()), self.shared.counts);
    }

    /// All calls are dropped: everything is given back, and in time the breaker admits again.
    fn end(mut self, reserve: i128) {
        for slot in 0..self.slots.len() {
            self.drop_call(slot);
        }
        self.check(reserve);
        let Some(breaker) = self.upstream.breaker() else { return };
        // Open periods are at most 49 days, and leases without an attempt's timeout.
        let latest = self.clock.latest().max(self.forgotten_until);
        let later = latest.saturating_add(Duration::from_secs(100 * 86_400));
        if breaker.mode() != holdoff::Mode::ForcedOpen && model::up(later) < model::TIME_MAX {
            assert!(breaker.try_acquire(later).is_ok(), "wedged");
        }
    }
}

/// Every second sample is the least or the most there can be.
const fn with_likely_ends(sample: u64) -> u64 {
    match sample % 4 {
        0 => 0,
        1 => u64::MAX,
        _ => sample,
    }
}
