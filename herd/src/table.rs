//! The rows as a table for people.

#![expect(clippy::float_arithmetic, reason = "ratios and decimals of what is printed")]

pub(crate) mod probes;

use comfy_table::{LineStyle, Table, TableStyle, presets};

use crate::experiment::{Medium, Row};
use crate::published::{Published, figures};
use crate::setup::Setup;
use crate::stats::Spread;

const HEADER: [&str; 7] =
    ["strategy", "ok", "requests", "rejected", "amplification", "last answer (s)", "p95 (s)"];

const STYLE: TableStyle = presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());

/// Where there is no figure.
const NOTHING: &str = "–";

/// What was done, the table, and how to read it.
pub(crate) fn render(rows: &[Row], setup: &Setup, medium: Medium, runs: u32, seed: u64) -> String {
    format!("{}\n{}\n{}", about(setup, medium, runs, seed), bare(rows, setup), legend(setup))
}

/// The table alone, as `herd run` prints it; under a row what was published of it, if the set-up is
/// [`Setup::PUBLISHED`].
///
/// ```
/// use holdoff_herd::experiment::Experiment;
/// use holdoff_herd::setup::Setup;
/// use holdoff_herd::sim::Unobserved;
/// use holdoff_herd::strategy::Strategy;
/// use holdoff_herd::table;
///
/// let experiment = Experiment::new(Setup::PUBLISHED, &[Strategy::Limiter], 3, 1)?;
/// let table = table::bare(&experiment.run(&mut Unobserved)?, &Setup::PUBLISHED);
/// let row = table.lines().find(|line| line.contains("limiter")).ok_or("no row")?;
/// let cells: Vec<_> = row.split_whitespace().collect();
/// assert_eq!(cells, ["limiter", "100", "100", "0", "1.00", "8.0", "7.6"]);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use]
pub fn bare(rows: &[Row], setup: &Setup) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(HEADER);
    for row in rows {
        table.add_row(measured(row, setup));
        if let Some(figures) = figures(row.strategy, setup) {
            table.add_row(published(&figures, setup));
        }
    }
    table.trim_fmt()
}

fn about(setup: &Setup, medium: Medium, runs: u32, seed: u64) -> String {
    let plural = if runs == 1 { "" } else { "s" };
    let medium = match medium {
        Medium::VirtualTime => "",
        Medium::Wire => " over HTTP in real time",
    };
    format!("{setup}. {runs} run{plural}{medium}, seed {seed}.")
}

fn legend(setup: &Setup) -> String {
    let floor = setup.floor().as_secs_f64();
    let round_trip = if setup.round_trip().is_zero() { "" } else { ", plus the round trip" };
    let mut legend = format!(
        "median [p5–p95] over the runs; amplification: requests per client; \
         last answer and p95: of the successful ones\n\
         floor: (clients - burst) / rate = {} s{round_trip}; no strategy serves everybody sooner\n",
        Unit::Seconds.number(floor, floor),
    );
    if *setup != Setup::PUBLISHED {
        legend += "no published figures: they are for 100 clients, burst 20, rate 10, no latency\n";
    }
    legend
}

fn measured(row: &Row, setup: &Setup) -> [String; 7] {
    let amplification = row.requests.divided_by(f64::from(setup.clients()));
    [
        row.strategy.to_string(),
        Unit::Count.spread(row.ok),
        Unit::Count.spread(row.requests),
        Unit::Count.spread(row.rejected),
        Unit::Ratio.spread(amplification),
        row.last_s.map_or_else(|| NOTHING.to_owned(), |spread| Unit::Seconds.spread(spread)),
        row.p95_s.map_or_else(|| NOTHING.to_owned(), |spread| Unit::Seconds.spread(spread)),
    ]
}

/// Under what was measured.
fn published(figures: &Published, setup: &Setup) -> [String; 7] {
    let cell = |unit: Unit, figure: Option<f64>| {
        figure.map_or_else(|| NOTHING.to_owned(), |figure| unit.number(figure, figure))
    };
    let requests = figures.requests.map(f64::from);
    [
        "  published".to_owned(),
        cell(Unit::Count, figures.ok.map(f64::from)),
        cell(Unit::Count, requests),
        cell(Unit::Count, figures.rejected.map(f64::from)),
        cell(Unit::Ratio, requests.map(|requests| requests / f64::from(setup.clients()))),
        cell(Unit::Seconds, figures.last_s),
        cell(Unit::Seconds, figures.p95_s),
    ]
}

#[derive(Clone, Copy)]
enum Unit {
    Count,
    Ratio,
    Seconds,
}

impl Unit {
    fn spread(self, Spread { median, p5, p95 }: Spread) -> String {
        let [median, p5, p95] = [median, p5, p95].map(|value| self.number(value, p95));
        if p5 == median && median == p95 { median } else { format!("{median} [{p5}–{p95}]") }
    }

    /// `value` with as many decimals as a figure of the size of `largest` needs.
    fn number(self, value: f64, largest: f64) -> String {
        let decimals = match self {
            Self::Count => {
                let tenths = format!("{value:.1}");
                return tenths.strip_suffix(".0").unwrap_or(&tenths).to_owned();
            }
            Self::Ratio => 2,
            Self::Seconds if largest >= 10_000.0 => 0,
            Self::Seconds if largest >= 1.0 || largest == 0.0 => 1,
            Self::Seconds if largest >= 0.01 => 3,
            Self::Seconds => 6,
        };
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_one_number_where_nothing_varies() {
        for (unit, [median, p5, p95], text) in [
            (Unit::Count, [100.0; 3], "100"),
            (Unit::Count, [376.0, 374.03, 377.5], "376 [374–377.5]"),
            (Unit::Ratio, [3.76, 3.74, 3.77], "3.76 [3.74–3.77]"),
            (Unit::Seconds, [8.0; 3], "8.0"),
            (Unit::Seconds, [16.5, 16.3, 16.84], "16.5 [16.3–16.8]"),
            (Unit::Seconds, [16.5, 16.49, 16.51], "16.5"),
            (Unit::Seconds, [0.0; 3], "0.0"),
            (Unit::Seconds, [0.08, 0.0704, 0.09], "0.080 [0.070–0.090]"),
            (Unit::Seconds, [0.000_08; 3], "0.000080"),
            (Unit::Seconds, [80_000_000.2, 0.0, 80_000_000.2], "80000000 [0–80000000]"),
        ] {
            assert_eq!(unit.spread(Spread { median, p5, p95 }), text);
        }
    }
}
