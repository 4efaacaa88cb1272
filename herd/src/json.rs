//! The rows as JSON.

#![expect(clippy::float_arithmetic, reason = "rounding what is printed")]

pub(crate) mod probes;

use serde::Serialize;

use crate::experiment::Row;
use crate::published::{Published, figures};
use crate::setup::Setup;
use crate::stats::Spread;

/// An array with one object per strategy, and a newline.
pub(crate) fn render(rows: &[Row], setup: &Setup, runs: u32) -> serde_json::Result<String> {
    let objects: Vec<_> = rows.iter().map(|row| Object::new(row, setup, runs)).collect();
    Ok(serde_json::to_string_pretty(&objects)? + "\n")
}

#[derive(Serialize)]
struct Object {
    strategy: &'static str,
    runs: u32,
    floor_s: f64,
    ok: Percentiles,
    requests: Percentiles,
    rejected: Percentiles,
    last_s: Option<Percentiles>,
    p95_s: Option<Percentiles>,
    published: Option<Published>,
}

impl Object {
    fn new(row: &Row, setup: &Setup, runs: u32) -> Self {
        Self {
            strategy: row.strategy.id(),
            runs,
            floor_s: rounded(setup.floor().as_secs_f64()),
            ok: row.ok.into(),
            requests: row.requests.into(),
            rejected: row.rejected.into(),
            last_s: row.last_s.map(Percentiles::from),
            p95_s: row.p95_s.map(Percentiles::from),
            published: figures(row.strategy, setup),
        }
    }
}

#[derive(Serialize)]
struct Percentiles {
    median: f64,
    p5: f64,
    p95: f64,
}

impl From<Spread> for Percentiles {
    fn from(spread: Spread) -> Self {
        Self { median: rounded(spread.median), p5: rounded(spread.p5), p95: rounded(spread.p95) }
    }
}

/// To six decimals, a microsecond where it is a time: what interpolation adds beyond is noise.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
