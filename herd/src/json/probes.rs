//! The probes as JSON.
//!
//! ```text
//! {
//!   "still_down": {
//!     "calls": 50, "reached": 1, "failed_fast": 49, "with_time_to_come_back": 49,
//!     "published": {
//!       "broken": { "reached": 50, "failed_fast": 0 },
//!       "right": { "reached": 1, "failed_fast": 49 }
//!     }
//!   },
//!   "recovered": {
//!     "successes_to_close": 1,                   null if a thousand are not enough
//!     "published": {
//!       "broken": { "successes_to_close": 20 },
//!       "right": { "successes_to_close": 1 }
//!     }
//!   },
//!   "flaky": {
//!     "calls": 1000, "seeds": 200, "failing_percent": 30,
//!     "ends": { "closed": 199, "half_open": 0, "open": 1 },                              seeds
//!     "failures": { "median": 299.5, "p5": 277.0, "p95": 328.0 },                        per seed
//!     "refused": { "median": 2.0, "p5": 0.0, "p95": 7.0 },                               per seed
//!     "trips": {
//!       "seeds": 160, "total": 350, "at_a_run_of_five": 350, "runs_of_five": 350,
//!       "median": 2.0, "max": 6                                                          per seed
//!     },
//!     "published": {                             null if calls is not 1000
//!       "broken": { "state": "half-open", "failures": null, "trips": null },
//!       "right": { "state": "closed", "failures": 284, "trips": 0 }
//!     }
//!   },
//!   "retried": [
//!     {
//!       "outcome": "529", "attempts": 3, "stop": "no attempts left", "untouched": true,
//!       "published_broken": 1,                   null where nothing was published
//!       "right": 3
//!     }
//!   ]
//! }
//! ```

use serde::Serialize;

use super::{Percentiles, rounded};
use crate::probes::Probes;
use crate::probes::flaky::{FAILING_PERCENT, Flaky, Trips};
use crate::probes::recovered::Recovered;
use crate::probes::retried::Retried;
use crate::probes::still_down::{CALLS, StillDown};
use crate::published::probes as published;
use crate::published::probes::Published;

/// One object, and a newline.
pub(crate) fn render(probes: &Probes) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Object::new(probes))? + "\n")
}

#[derive(Serialize)]
struct Object {
    still_down: StillDownObject,
    recovered: RecoveredObject,
    flaky: FlakyObject,
    retried: Vec<RetriedObject>,
}

#[derive(Serialize)]
struct StillDownObject {
    calls: usize,
    reached: u32,
    failed_fast: u32,
    with_time_to_come_back: u32,
    published: Published<published::StillDown>,
}

#[derive(Serialize)]
struct RecoveredObject {
    successes_to_close: Option<u32>,
    published: Published<published::Recovered>,
}

#[derive(Serialize)]
struct FlakyObject {
    calls: u32,
    seeds: u32,
    failing_percent: u32,
    ends: EndsObject,
    failures: Percentiles,
    refused: Percentiles,
    trips: TripsObject,
    published: Option<Published<published::Flaky>>,
}

#[derive(Serialize)]
struct EndsObject {
    closed: u32,
    half_open: u32,
    open: u32,
}

#[derive(Serialize)]
struct TripsObject {
    seeds: u32,
    total: u64,
    at_a_run_of_five: u64,
    runs_of_five: u64,
    median: f64,
    max: u32,
}

#[derive(Serialize)]
struct RetriedObject {
    outcome: String,
    attempts: u32,
    stop: Option<String>,
    untouched: bool,
    #[serde(flatten)]
    published: published::Attempts,
}

impl Object {
    fn new(probes: &Probes) -> Self {
        let StillDown { reached, failed_fast, with_time_to_come_back } = probes.still_down;
        let Recovered { successes_to_close } = probes.recovered;
        Self {
            still_down: StillDownObject {
                calls: CALLS,
                reached,
                failed_fast,
                with_time_to_come_back,
                published: published::STILL_DOWN,
            },
            recovered: RecoveredObject { successes_to_close, published: published::RECOVERED },
            flaky: FlakyObject::new(&probes.flaky),
            retried: probes.retried.iter().map(RetriedObject::new).collect(),
        }
    }
}

impl FlakyObject {
    fn new(flaky: &Flaky) -> Self {
        let Flaky { calls, seeds, ends, failures, refused, trips } = *flaky;
        let Trips { at_a_run_of_five, runs_of_five, .. } = trips;
        Self {
            calls,
            seeds,
            failing_percent: FAILING_PERCENT,
            ends: EndsObject { closed: ends.closed, half_open: ends.half_open, open: ends.open },
            failures: failures.into(),
            refused: refused.into(),
            trips: TripsObject {
                seeds: trips.seeds,
                total: trips.total,
                at_a_run_of_five,
                runs_of_five,
                median: rounded(trips.median),
                max: trips.max,
            },
            published: published::flaky(calls),
        }
    }
}

impl RetriedObject {
    fn new(retried: &Retried) -> Self {
        Self {
            outcome: retried.trouble.to_string(),
            attempts: retried.attempts,
            stop: retried.stop.map(|stop| stop.to_string()),
            untouched: retried.is_untouched,
            published: published::attempts(retried.trouble),
        }
    }
}
