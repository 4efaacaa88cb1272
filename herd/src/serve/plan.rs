//! Which steps of a scenario apply to a request, put together.

#![expect(clippy::float_arithmetic, reason = "a probability is a float")]

use core::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::scenario::{Effect, HintForm, Scenario, Step, Trickle, When};

/// What is to happen to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Instead of asking the limit.
    pub(super) failure: Option<Planned>,
    pub(super) hint: Hint,
    pub(super) slow: Slow,
    pub(super) reset: Option<Reset>,
    pub(super) stream: Option<StreamEnd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planned {
    Quota,
    Status(u16),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) form: HintForm,
    pub(super) retry_after: Option<Duration>,
    pub(super) should_retry: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) delay: Duration,
    pub(super) trickle: Option<Trickle>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    BeforeAnswer,
    AfterBytes(usize),
}

/// How a stream ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Cut { after_events: usize },
    Overloaded { after_events: usize },
}

/// Plays a scenario.
#[derive(Debug)]
pub(super) struct Planner {
    steps: Vec<(Step, u64)>,
    random: Xoshiro256PlusPlus,
}

impl Planner {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            steps: scenario.steps.iter().map(|step| (step.clone(), 0)).collect(),
            random: Xoshiro256PlusPlus::seed_from_u64(scenario.seed),
        }
    }

    /// The plan for the next request, `elapsed` after the first one.
    pub(super) fn plan(&mut self, elapsed: Duration, path: &str) -> Plan {
        let mut plan = Plan::default();
        let (mut has_hint, mut has_slow) = (false, false);
        for (step, seen) in &mut self.steps {
            let When { from, until, first, last, path: wanted, probability } = &step.when;
            if !fits(wanted.as_deref(), path) {
                continue;
            }
            *seen += 1;
            let is_numbered =
                (first.get()..=last.map_or(u64::MAX, |last| last.get())).contains(seen);
            let is_timed = *from <= elapsed && until.is_none_or(|until| elapsed < until);
            if !is_numbered || !is_timed || !drawn(&mut self.random, *probability) {
                continue;
            }
            match step.then {
                Effect::Status { status } => {
                    plan.failure.get_or_insert(Planned::Status(status));
                }
                Effect::Quota {} => {
                    plan.failure.get_or_insert(Planned::Quota);
                }
                Effect::Hint { form, retry_after, should_retry } if !has_hint => {
                    has_hint = true;
                    plan.hint = Hint { form, retry_after, should_retry };
                }
                Effect::Slow { delay, trickle } if !has_slow => {
                    has_slow = true;
                    plan.slow = Slow { delay, trickle };
                }
                Effect::Reset { after_bytes } => {
                    let reset = after_bytes.map_or(Reset::BeforeAnswer, Reset::AfterBytes);
                    plan.reset.get_or_insert(reset);
                }
                Effect::Cut { after_events } => {
                    plan.stream.get_or_insert(StreamEnd::Cut { after_events });
                }
                Effect::Overloaded { after_events } => {
                    plan.stream.get_or_insert(StreamEnd::Overloaded { after_events });
                }
                // The second of its kind; and limits are not a matter of one request.
                Effect::Hint { .. } | Effect::Slow { .. } | Effect::Limit { .. } => {}
            }
        }
        plan
    }
}

fn fits(wanted: Option<&str>, path: &str) -> bool {
    wanted.is_none_or(|wanted| match wanted.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == wanted,
    })
}

fn drawn(random: &mut Xoshiro256PlusPlus, probability: f64) -> bool {
    // What is certain uses up no chance, so that it changes nothing for other steps.
    if probability >= 1.0 {
        return true;
    }
    let share = f64::from(u32::try_from(random.next_u64() >> 32).unwrap_or(u32::MAX));
    share < probability * 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planner(steps: &str) -> Planner {
        Planner::new(&Scenario::from_toml(steps).expect("a scenario"))
    }

    fn statuses(planner: &mut Planner, requests: &[(u64, &str)]) -> Vec<Option<u16>> {
        let status = |&(millis, path): &(u64, &str)| {
            let plan = planner.plan(Duration::from_millis(millis), path);
            plan.failure.map(|failure| match failure {
                Planned::Quota => 429,
                Planned::Status(status) => status,
            })
        };
        requests.iter().map(status).collect()
    }

    #[test]
    fn a_window_has_its_start_and_not_its_end() {
        let mut planner = planner(
            "[[step]]\nwhen = { from = '1s', until = '2s' }\n\
             then = { kind = 'status', status = 503 }",
        );
        let requests = [(999, "/"), (1_000, "/"), (1_999, "/"), (2_000, "/"), (1_500, "/")];
        assert_eq!(
            statuses(&mut planner, &requests),
            [None, Some(503), Some(503), None, Some(503)]
        );
    }

    #[test]
    fn requests_are_numbered_among_those_the_path_fits() {
        let mut planner = planner(
            "[[step]]\nwhen = { first = 2, last = 3, path = '/v1/*' }\n\
             then = { kind = 'status', status = 500 }\n\
             [[step]]\nwhen = { path = '/exact' }\nthen = { kind = 'quota' }",
        );
        let requests = [
            (0, "/v1/a"),
            (0, "/exact"),
            (0, "/exact/not"),
            (0, "/v1/b"),
            (0, "/v1/c"),
            (0, "/v1/d"),
        ];
        assert_eq!(
            statuses(&mut planner, &requests),
            [None, Some(429), None, Some(500), Some(500), None]
        );
    }

    #[test]
    fn the_first_step_of_a_kind_counts_and_kinds_add_up() {
        let mut planner = planner(
            "[[step]]\nthen = { kind = 'status', status = 500 }\n\
             [[step]]\nthen = { kind = 'status', status = 504 }\n\
             [[step]]\nthen = { kind = 'slow', delay = '1s' }\n\
             [[step]]\nthen = { kind = 'slow', delay = '2s' }\n\
             [[step]]\nthen = { kind = 'reset', after_bytes = 3 }\n\
             [[step]]\nthen = { kind = 'hint', form = 'http-date', should_retry = false }\n\
             [[step]]\nthen = { kind = 'cut', after_events = 4 }\n\
             [[step]]\nthen = { kind = 'overloaded', after_events = 5 }",
        );
        let hint = Hint { form: HintForm::HttpDate, retry_after: None, should_retry: Some(false) };
        assert_eq!(
            planner.plan(Duration::ZERO, "/"),
            Plan {
                failure: Some(Planned::Status(500)),
                hint,
                slow: Slow { delay: Duration::from_secs(1), trickle: None },
                reset: Some(Reset::AfterBytes(3)),
                stream: Some(StreamEnd::Cut { after_events: 4 }),
            }
        );
    }

    #[test]
    fn chance_comes_from_the_seed_and_keeps_its_share() {
        let failures = |seed: u64| -> Vec<bool> {
            let mut planner = planner(&format!(
                "seed = {seed}\n[[step]]\nwhen = {{ probability = 0.3 }}\n\
                 then = {{ kind = 'status', status = 503 }}"
            ));
            let statuses = statuses(&mut planner, &[(0, "/"); 1000]);
            statuses.iter().map(Option::is_some).collect()
        };
        assert_eq!(failures(1), failures(1));
        assert_ne!(failures(1), failures(2));
        for seed in 0..20 {
            // Binomial: mean 300, standard deviation 14.5.
            let share = failures(seed).iter().filter(|failed| **failed).count();
            assert!((242..=358).contains(&share), "seed {seed}: {share}");
        }
    }
}
