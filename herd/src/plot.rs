//! Arrivals over time as a picture.

#![expect(clippy::float_arithmetic, reason = "coordinates of a picture")]

use core::error::Error;
use core::time::Duration;
use std::io;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::histogram::{Bin, Histogram};
use crate::setup::Setup;
use crate::strategy::Strategy;

const SIZE: (u32, u32) = (960, 440);
const FONT: &str = "sans-serif";
/// Blue and orange: told apart by colour-blind people too, and in grey.
const ACCEPTED: RGBColor = RGBColor(0x1f, 0x5f, 0xa8);
const REJECTED: RGBColor = RGBColor(0xf2, 0x8e, 0x3c);
const INK: RGBColor = RGBColor(0x33, 0x33, 0x33);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// The smallest number of bins drawn: a single bar as wide as the picture would look like a wall.
const BINS_MIN: usize = 20;

/// The requests of one run as an SVG document: accepted below, rejected on top.
pub(crate) fn svg(strategy: Strategy, setup: &Setup, histogram: &Histogram) -> io::Result<String> {
    let mut document = String::new();
    draw(&mut document, strategy, setup, histogram)
        .map_err(|error| io::Error::other(error.to_string()))?;
    Ok(document)
}

fn draw(
    document: &mut String,
    strategy: Strategy,
    setup: &Setup,
    histogram: &Histogram,
) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(document, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let width = histogram.width().as_secs_f64();
    let bins = histogram.bins();
    let highest = bins.iter().map(|bin| bin.accepted + bin.rejected).max().unwrap_or(0);

    let total = |pick: fn(&Bin) -> u32| bins.iter().map(|bin| u64::from(pick(bin))).sum::<u64>();
    let (accepted, rejected) = (total(|bin| bin.accepted), total(|bin| bin.rejected));
    let text = |size: u32| (FONT, size).into_font().color(&INK);
    root.draw(&Text::new(format!("{strategy}: requests at the provider"), (24, 16), text(20)))?;
    root.draw(&Text::new(format!("Run 0. {setup}."), (24, 44), text(13)))?;
    for (line, color, label) in [
        (0, ACCEPTED, format!("accepted ({accepted})")),
        (1, REJECTED, format!("rejected with 429 ({rejected})")),
    ] {
        let (x, y) = (750, 20 + 22 * line);
        root.draw(&Rectangle::new([(x, y), (x + 14, y + 14)], color.filled()))?;
        let middle = text(13).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(label, (x + 22, y + 7), middle))?;
    }

    let end = bins.len().max(BINS_MIN) as f64 * width;
    let mut chart = ChartBuilder::on(&root)
        .margin_top(78)
        .margin_right(40)
        .margin_bottom(10)
        .margin_left(14)
        .x_label_area_size(44)
        .y_label_area_size(74)
        .build_cartesian_2d(0.0..end, 0..highest.max(1))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(text(13))
        .axis_desc_style(text(14))
        .x_labels(11)
        // Multiples of a step in binary have digits nobody wants to read.
        .x_label_formatter(&|seconds| format!("{}", (seconds * 1e9).round() / 1e9))
        .y_labels(6)
        .x_desc("time (s)")
        .y_desc(format!("requests per {}", spaced(histogram.width())))
        .draw()?;
    let bar = |index: usize, low: u32, high: u32, color: RGBColor| {
        let left = index as f64 * width;
        Rectangle::new([(left + 0.06 * width, low), (left + 0.94 * width, high)], color.filled())
    };
    let filled = || bins.iter().enumerate().filter(|(_, bin)| **bin != Bin::default());
    chart.draw_series(filled().map(|(index, bin)| bar(index, 0, bin.accepted, ACCEPTED)))?;
    chart.draw_series(
        filled()
            .map(|(index, bin)| bar(index, bin.accepted, bin.accepted + bin.rejected, REJECTED)),
    )?;
    root.present()?;
    Ok(())
}

/// "100 ms" instead of "100ms".
fn spaced(duration: Duration) -> String {
    let text = format!("{duration:?}");
    match text.find(char::is_alphabetic) {
        Some(unit) => format!("{} {}", &text[..unit], &text[unit..]),
        None => text,
    }
}
