//! The probes as a table for people.

use core::fmt;

use comfy_table::Table;

use super::{NOTHING, STYLE, Unit};
use crate::probes::flaky::{Ends, FAILING_PERCENT, Flaky, Trips};
use crate::probes::retried::{MAX_ATTEMPTS, Retried};
use crate::probes::still_down::CALLS;
use crate::probes::{FAILURES_TO_TRIP, Probes, ProbesConfig};
use crate::published::probes as published;

const HEADER: [&str; 5] = ["probe", "figure", "published broken", "published right", "ours"];

/// What was probed, the table, and how to read it.
pub(crate) fn render(probes: &Probes, config: &ProbesConfig) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(HEADER);
    let groups = [
        ("still down", still_down(probes)),
        ("recovered", recovered(probes)),
        ("flaky", flaky(&probes.flaky)),
        ("what is retried", retried(&probes.retried)),
    ];
    for (probe, rows) in groups {
        for (index, [figure, broken, right, ours]) in rows.into_iter().enumerate() {
            let probe = if index == 0 { probe } else { "" };
            table.add_row([probe, &figure, &broken, &right, &ours]);
        }
    }
    format!("{}\n{}\n{}", about(config), table.trim_fmt(), legend(&probes.flaky))
}

/// Figure, published broken, right, ours.
type Cells = [String; 4];

fn about(config: &ProbesConfig) -> String {
    let ProbesConfig { seed, seeds, calls } = config;
    let (seeds, calls) = (counted(seeds, "run"), counted(calls, "call"));
    format!(
        "A breaker that trips at {FAILURES_TO_TRIP} failures in a row; the LLM policy with \
         {MAX_ATTEMPTS} attempts. {seeds} of {calls}, seed {seed}."
    )
}

fn legend(flaky: &Flaky) -> String {
    let mut legend = format!(
        "still down, recovered: {CALLS} calls at once, and one after another, when the open period \
         is over\n\
         flaky: {FAILING_PERCENT} % fail at random, median [p5–p95] over the runs; refused calls \
         are made again when they were told to\n\
         published: of one run; of what is retried, the rule, without 501 and 505 of its 5xx\n",
    );
    if published::flaky(flaky.calls).is_none() {
        legend += "no published figures of the flaky service: they are for 1000 calls\n";
    }
    legend
}

fn still_down(probes: &Probes) -> Vec<Cells> {
    let published::Published { broken, right } = published::STILL_DOWN;
    let ours = probes.still_down;
    vec![
        row("calls that reach the service", broken.reached, right.reached, ours.reached),
        row("calls that fail fast", broken.failed_fast, right.failed_fast, ours.failed_fast),
        row("  told a time to come back", NOTHING, NOTHING, ours.with_time_to_come_back),
    ]
}

fn recovered(probes: &Probes) -> Vec<Cells> {
    let published::Published { broken, right } = published::RECOVERED;
    let (broken, right) = (broken.successes_to_close, right.successes_to_close);
    let ours = probes.recovered.successes_to_close;
    vec![row("successes until it closes", broken, right, maybe(ours))]
}

fn flaky(flaky: &Flaky) -> Vec<Cells> {
    let (broken, right) =
        published::flaky(flaky.calls).map(|both| (both.broken, both.right)).unzip();
    let state = |side: Option<published::Flaky>| maybe(side.map(|figures| figures.state));
    let failures = |side: Option<published::Flaky>| maybe(side.and_then(|side| side.failures));
    let trips = |side: Option<published::Flaky>| maybe(side.and_then(|side| side.trips));
    let Trips { seeds, total, at_a_run_of_five, median, max, .. } = flaky.trips;
    let of_runs = |number| format!("{number} of {}", flaky.seeds);
    vec![
        row("state at the end", state(broken), state(right), ends(flaky.ends)),
        row("failures", failures(broken), failures(right), Unit::Count.spread(flaky.failures)),
        row(
            "trips per run",
            trips(broken),
            trips(right),
            format!("{}, at most {max}", Unit::Count.number(median, median)),
        ),
        row("  runs with a trip", NOTHING, NOTHING, of_runs(seeds)),
        row(
            "  trips at five failures in a row",
            NOTHING,
            NOTHING,
            format!("{at_a_run_of_five} of {total}"),
        ),
        row("calls refused", NOTHING, NOTHING, Unit::Count.spread(flaky.refused)),
    ]
}

/// "closed 199, open 1": those that were seen.
fn ends(Ends { closed, half_open, open }: Ends) -> String {
    [("closed", closed), ("half-open", half_open), ("open", open)]
        .into_iter()
        .filter(|&(_, seeds)| seeds > 0)
        .map(|(state, seeds)| format!("{state} {seeds}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn retried(all: &[Retried]) -> Vec<Cells> {
    let mut rows: Vec<_> = all
        .iter()
        .map(|retried| {
            let published::Attempts { broken, right } = published::attempts(retried.trouble);
            let stop = retried.stop.map(|stop| format!(": {stop}")).unwrap_or_default();
            let ours = format!("{}{stop}", retried.attempts);
            row(&format!("attempts at {}", retried.trouble), maybe(broken), right, ours)
        })
        .collect();
    let untouched = all.iter().filter(|retried| retried.is_untouched).count();
    let (all, ours) = (all.len(), format!("{untouched} of {}", all.len()));
    rows.push(row("errors that come back untouched", NOTHING, all, ours));
    rows
}

fn row(
    figure: &str,
    broken: impl fmt::Display,
    right: impl fmt::Display,
    ours: impl fmt::Display,
) -> Cells {
    [figure.to_owned(), broken.to_string(), right.to_string(), ours.to_string()]
}

fn maybe(figure: Option<impl fmt::Display>) -> String {
    figure.map_or_else(|| NOTHING.to_owned(), |figure| figure.to_string())
}

fn counted(number: impl fmt::Display, thing: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_states_that_were_seen_are_named() {
        for (closed, half_open, open, text) in [
            (200, 0, 0, "closed 200"),
            (199, 0, 1, "closed 199, open 1"),
            (0, 1, 2, "half-open 1, open 2"),
        ] {
            assert_eq!(ends(Ends { closed, half_open, open }), text);
        }
    }
}
