//! The rows, as `herd run` prints them, in integers.

use core::fmt::Write;

use cortex_m_semihosting::hprintln;
use heapless::String;

use crate::sim::Totals;
use crate::strategy::Strategy;

const HEADER: [&str; COLUMNS] =
    ["strategy", "ok", "requests", "rejected", "amplification", "last answer (s)", "p95 (s)"];
const COLUMNS: usize = 7;

type Cell = String<16>;

/// What a strategy came to; times in milliseconds.
pub(crate) struct Row {
    pub(crate) strategy: Strategy,
    pub(crate) ok: u32,
    pub(crate) requests: u32,
    pub(crate) rejected: u32,
    /// When the last successful answer was there.
    pub(crate) last: u32,
    /// When 95 % of the successful answers were there.
    pub(crate) p95: u32,
}

impl Row {
    pub(crate) fn new(strategy: Strategy, totals: &Totals) -> Self {
        let Totals { requests, rejected, ref successes } = *totals;
        let last = successes.last().copied().unwrap_or(0);
        let ok = count(successes);
        Self { strategy, ok, requests, rejected, last, p95: p95(successes) }
    }

    fn cells(&self) -> [Cell; COLUMNS] {
        let Self { strategy, ok, requests, rejected, last, p95 } = *self;
        // A request per client is a hundredth each.
        [
            cell(format_args!("{}", strategy.id())),
            cell(format_args!("{ok}")),
            cell(format_args!("{requests}")),
            cell(format_args!("{rejected}")),
            cell(format_args!("{}.{:02}", requests / 100, requests % 100)),
            seconds(last),
            seconds(p95),
        ]
    }
}

pub(crate) fn print(rows: &[Row; Strategy::ALL.len()]) {
    let rows = rows.each_ref().map(Row::cells);
    let header = HEADER.map(|title| cell(format_args!("{title}")));
    let widths: [usize; COLUMNS] = core::array::from_fn(|column| {
        rows.iter().chain([&header]).map(|row| row[column].len()).max().unwrap_or(0)
    });
    // A blank on both sides of each cell, and one in between.
    let width = widths.iter().sum::<usize>() + 3 * COLUMNS - 1;
    hprintln!(
        "100 clients call at time 0; the provider answers 20 at once, then 10 a second. \
         1 run, seed 1."
    );
    rule("─", width);
    line(&header, &widths);
    rule("═", width);
    for row in &rows {
        line(row, &widths);
    }
    rule("─", width);
}

fn line(cells: &[Cell; COLUMNS], widths: &[usize; COLUMNS]) {
    let mut line = String::<128>::new();
    for (cell, &width) in cells.iter().zip(widths) {
        fits(write!(line, " {cell:width$}  "));
    }
    hprintln!("{}", line.trim_end());
}

fn rule(stroke: &str, width: usize) {
    let mut line = String::<384>::new();
    for _ in 0..width {
        fits(line.write_str(stroke));
    }
    hprintln!("{}", line);
}

fn cell(text: core::fmt::Arguments<'_>) -> Cell {
    let mut cell = Cell::new();
    fits(cell.write_fmt(text));
    cell
}

/// With one decimal, rounded.
fn seconds(millis: u32) -> Cell {
    let tenths = (millis + 50) / 100;
    cell(format_args!("{}.{}", tenths / 10, tenths % 10))
}

fn fits(written: core::fmt::Result) {
    assert!(written.is_ok(), "a row is too long");
}

fn count(times: &[u32]) -> u32 {
    u32::try_from(times.len()).unwrap_or(u32::MAX)
}

/// The 95th percentile of sorted times, of Hyndman and Fan's type 8: the value at place
/// (n + 1/3) · 0.95 + 1/3, interpolated between neighbours.
fn p95(sorted: &[u32]) -> u32 {
    // In 300ths: 95 (3 n + 1) + 100.
    let place = 95 * (3 * count(sorted) + 1) + 100;
    let (whole, part) = ((place / 300) as usize, place % 300);
    match (sorted.get(whole.wrapping_sub(1)), sorted.get(whole)) {
        (Some(&below), Some(&above)) => below + ((above - below) * part + 150) / 300,
        (None, _) => sorted.first().copied().unwrap_or(0),
        (_, None) => sorted.last().copied().unwrap_or(0),
    }
}
