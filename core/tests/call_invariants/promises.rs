//! Random interleavings on random clocks.

use core::time::Duration;

use holdoff::{BackoffConfig, Instant, Outcome, Policy, PolicyConfig};
use proptest::prelude::*;

use crate::common::{at, between, millis, secs};
use crate::setups::{Rules, Service, any_outcome, any_rules, any_service};
use crate::world::{Recorder, World};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Back(Duration),
    Drop(usize),
    Forward(Duration),
    Poll(usize, u64),
    /// `None`: cut off by its timeout.
    Record(usize, Option<Outcome>, u64),
    /// To the instant that a call waits for, or just before.
    Wake(usize, Duration),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let slot = 0..4_usize;
    let outcome = prop_oneof![5 => any_outcome().prop_map(Some), 1 => Just(None)];
    let early = prop_oneof![4 => Just(secs(0)), 1 => Just(Duration::from_nanos(1))];
    prop_oneof![
        24 => (slot.clone(), any::<u64>()).prop_map(|(slot, sample)| Operation::Poll(slot, sample)),
        24 => (slot.clone(), outcome, any::<u64>())
            .prop_map(|(slot, outcome, sample)| Operation::Record(slot, outcome, sample)),
        20 => (slot.clone(), early).prop_map(|(slot, early)| Operation::Wake(slot, early)),
        6 => between(secs(0), secs(2)).prop_map(Operation::Forward),
        2 => between(secs(0), secs(60)).prop_map(Operation::Forward),
        2 => between(secs(0), secs(10)).prop_map(Operation::Back),
        2 => slot.prop_map(Operation::Drop),
    ]
}

fn apply(world: &mut World<'_>, calls: usize, operation: Operation) {
    match operation {
        Operation::Back(time) => world.set_clock(world.now.saturating_sub(time)),
        Operation::Forward(time) => world.set_clock(world.now.saturating_add(time)),
        Operation::Drop(slot) => world.drop_call(slot % calls),
        Operation::Poll(slot, sample) => world.poll(slot % calls, sample),
        Operation::Record(slot, outcome, sample) => world.record(slot % calls, outcome, sample),
        Operation::Wake(slot, early) => {
            if let Some(until) = world.wakes_at(slot % calls) {
                world.set_clock(until.saturating_sub(early));
                world.poll(slot % calls, 0);
            }
        }
    }
    world.check();
}

fn run(service: Service, rules: &[Rules], start: Instant, operations: &[Operation]) {
    let recorder: &'static Recorder = Box::leak(Box::default());
    let upstream = service.upstream(recorder);
    let policies: Vec<(Rules, Policy)> =
        rules.iter().map(|rules| (*rules, rules.policy())).collect();
    let plain = BackoffConfig::constant(secs(1)).build().expect("valid");
    let plain = PolicyConfig::new(plain).build().expect("valid");
    let mut world = World::new(service, &upstream, recorder, &policies, start);
    for &operation in operations {
        apply(&mut world, rules.len(), operation);
    }
    world.check_that_nothing_is_stuck(&plain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_interleaving_breaks_a_promise(
        service in any_service(),
        rules in prop::collection::vec(any_rules(), 1..=4),
        start in prop_oneof![Just(secs(0)), between(millis(1), secs(100))].prop_map(at),
        operations in prop::collection::vec(any_operation(), 1..120),
    ) {
        run(service, &rules, start, &operations);
    }
}
