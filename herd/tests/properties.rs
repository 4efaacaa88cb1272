//! What holds in every set-up, for every strategy.

use core::num::NonZeroU32;
use core::time::Duration;
use std::io;

use holdoff::Instant;
use holdoff_herd::provider::Verdict;
use holdoff_herd::rate::Rate;
use holdoff_herd::setup::Setup;
use holdoff_herd::sim::{Arrival, Done, Observer, Scenario, Totals};
use holdoff_herd::strategy::Strategy;
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Everything that happened in one run.
#[derive(Default)]
struct Record {
    arrivals: Vec<Arrival>,
    done: Vec<Done>,
}

impl Observer for Record {
    fn on_arrival(&mut self, arrival: &Arrival) -> io::Result<()> {
        self.arrivals.push(*arrival);
        Ok(())
    }

    fn on_done(&mut self, done: &Done) -> io::Result<()> {
        self.done.push(*done);
        Ok(())
    }
}

impl Record {
    fn of(&self, client: u32) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(move |arrival| arrival.client == client)
    }
}

fn run(setup: Setup, strategy: Strategy, seed: u64) -> (Totals, Record) {
    let mut record = Record::default();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let scenario = Scenario::new(setup, strategy).expect("small enough for a limiter");
    let totals = scenario.run(&mut record, &mut random).expect("nobody fails");
    (totals, record)
}

prop_compose! {
    fn setups()(
        clients in 1..60_u32,
        burst in 1..30_u32,
        // From one token in a thousand seconds to a thousand a second, at every scale alike.
        magnitude in 3..9_u32,
        digits in 1..10_000_u64,
        latency_ms in prop_oneof![Just(0), 1..2_000_u64],
    ) -> Setup {
        let rate = Rate::from_micros(digits * 10_u64.pow(magnitude) / 1_000).expect("in range");
        let nonzero = |number| NonZeroU32::new(number).expect("at least 1");
        let round_trip = Duration::from_millis(latency_ms);
        Setup::new(nonzero(clients), nonzero(burst), rate, round_trip).expect("in range")
    }
}

fn strategies() -> impl proptest::strategy::Strategy<Value = Strategy> {
    proptest::sample::select(&Strategy::ALL[..])
}

proptest! {
    #[test]
    fn every_request_is_answered_and_every_client_ends(
        setup in setups(),
        strategy in strategies(),
        seed: u64,
    ) {
        let (totals, record) = run(setup, strategy, seed);
        let ok = totals.successes.len() as u64;
        prop_assert_eq!(totals.requests, ok + totals.rejected);
        prop_assert_eq!(totals.requests, record.arrivals.len() as u64);
        let most = u64::from(setup.clients()) * u64::from(strategy.max_attempts());
        prop_assert!(totals.requests <= most);

        let mut clients: Vec<_> = record.done.iter().map(|done| done.client).collect();
        clients.sort_unstable();
        prop_assert!(clients.into_iter().eq(0..setup.clients()), "each is done once");
        for done in &record.done {
            let attempts: Vec<_> = record.of(done.client).map(|arrival| arrival.attempt).collect();
            prop_assert!(attempts.iter().copied().eq(1..=done.attempts), "{:?}", attempts);
            let last = record.of(done.client).last().expect("the first attempt");
            prop_assert_eq!(last.verdict == Verdict::Accepted, done.ok);
            let answered = last.at.saturating_add(setup.round_trip() / 2);
            prop_assert_eq!(done.at, answered, "done when the last answer is there");
        }
        let successes = record.done.iter().filter(|done| done.ok).map(|done| done.at);
        prop_assert!(successes.eq(totals.successes.iter().copied()));
        prop_assert!(totals.successes.is_sorted());
    }

    #[test]
    fn the_provider_never_gives_more_than_it_has(
        setup in setups(),
        strategy in strategies(),
        seed: u64,
    ) {
        let (totals, record) = run(setup, strategy, seed);
        let accepted = |arrival: &&Arrival| arrival.verdict == Verdict::Accepted;
        for (before, arrival) in record.arrivals.iter().filter(accepted).enumerate() {
            // In 10^-15 tokens: burst + rate * time, less what was given before, is at least one.
            let refilled = u128::from(arrival.at.as_nanos()) * u128::from(setup.rate().micros());
            let given = u128::from(setup.burst()) * 10_u128.pow(15) + refilled;
            prop_assert!((before as u128 + 1) * 10_u128.pow(15) <= given, "at {:?}", arrival.at);
        }
        if totals.successes.len() == setup.clients() as usize {
            let last = totals.successes.last().copied().unwrap_or_default();
            prop_assert!(last >= Instant::EPOCH.saturating_add(setup.floor()), "before the floor");
        }
    }

    #[test]
    fn behind_the_limiter_nobody_is_rejected_and_the_first_come_is_first_served(
        setup in setups(),
        seed: u64,
    ) {
        let (totals, record) = run(setup, Strategy::Limiter, seed);
        prop_assert_eq!(totals.rejected, 0);
        prop_assert_eq!(totals.requests, u64::from(setup.clients()));
        prop_assert!(record.arrivals.iter().map(|arrival| arrival.client).eq(0..setup.clients()));
        // At the floor, but for rounding the time per token up to a nanosecond.
        let floor = setup.floor() + setup.round_trip();
        let last = totals.successes.last().copied().unwrap_or_default();
        let late = last.saturating_duration_since(Instant::EPOCH.saturating_add(floor));
        prop_assert!(late <= Duration::from_nanos(u64::from(setup.clients())), "{:?} late", late);
    }

    #[test]
    fn holdoff_is_never_earlier_than_it_was_told(setup in setups(), seed: u64) {
        let (_, record) = run(setup, Strategy::Holdoff, seed);
        for client in 0..setup.clients() {
            let arrivals: Vec<_> = record.of(client).collect();
            for pair in arrivals.windows(2) {
                let Verdict::Rejected { retry_after } = pair[0].verdict else {
                    panic!("a retry after a success");
                };
                let hint = Duration::from_secs(u64::from(retry_after.get()));
                let earliest = pair[0].at.saturating_add(hint + setup.round_trip());
                prop_assert!(pair[1].at >= earliest, "{:?}", pair);
            }
        }
    }
}
