//! Plots with lines.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{Area, FONT, GRID, INK, drawing_failed, style, title, write};
use crate::measure::Samples;

/// A line for each contender.
pub struct Lines {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    /// Whether each step of the x axis doubles it.
    pub doubling: bool,
    pub lines: Vec<Line>,
}

pub struct Line {
    pub name: String,
    pub colour: RGBColor,
    pub points: Vec<(f64, Samples)>,
}

impl Lines {
    pub(super) fn draw(&self, whole: &Area) -> Result<()> {
        title(whole, &self.title)?;
        let (_, below) = whole.split_vertically(40);
        let (left, legend) = below.split_horizontally(650);
        let place = |x: f64| if self.doubling { x.log2() } else { x };
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let last = points().map(|(x, _)| place(*x)).fold(1.0, f64::max);
        let first = points().map(|(x, _)| place(*x)).fold(last, f64::min);
        let highest = points().map(|(_, y)| y.high()).fold(0.0, f64::max);
        let margin = if self.doubling { 0.15 } else { 0.0 };
        let mut chart = ChartBuilder::on(&left)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(first - margin..last + margin, 0.0..highest * 1.06)
            .map_err(drawing_failed)?;
        let doubling = self.doubling;
        let x_label = move |x: &f64| {
            let x = if doubling { x.exp2() } else { *x };
            format!("{x:.0}")
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_desc(self.x)
            .y_desc(self.y)
            .x_labels(if doubling {
                (last - first) as usize + 2
            } else {
                7
            })
            .y_labels(7)
            .x_label_formatter(&x_label)
            .y_label_formatter(&|y| tick(*y))
            .axis_desc_style((FONT, 14).into_font().color(&INK))
            .label_style((FONT, 13).into_font().color(&INK))
            .draw()
            .map_err(drawing_failed)?;
        // The first contender is drawn last, above the others.
        for line in self.lines.iter().rev() {
            let stroke = line.colour.stroke_width(2);
            let medians = line.points.iter().map(|(x, y)| (place(*x), y.median()));
            chart
                .draw_series(LineSeries::new(medians.clone(), stroke))
                .map_err(drawing_failed)?;
            let ranges = line.points.iter().filter(|(_, y)| y.len() > 1);
            chart
                .draw_series(ranges.map(|(x, y)| {
                    PathElement::new(
                        vec![(place(*x), y.low()), (place(*x), y.high())],
                        line.colour.stroke_width(1),
                    )
                }))
                .map_err(drawing_failed)?;
            if doubling {
                chart
                    .draw_series(medians.map(|at| Circle::new(at, 4, line.colour.filled())))
                    .map_err(drawing_failed)?;
            }
        }
        // In the order of the ends of the lines, in which a reader finds them.
        let mut ends: Vec<&Line> = self.lines.iter().collect();
        let end = |line: &Line| line.points.last().map_or(0.0, |(_, y)| y.median());
        ends.sort_by(|a, b| end(b).total_cmp(&end(a)));
        for (row, line) in (0_i32..).zip(ends) {
            let y = 24 + row * 24;
            legend
                .draw(&PathElement::new(
                    vec![(6, y), (28, y)],
                    line.colour.stroke_width(3),
                ))
                .map_err(drawing_failed)?;
            write(
                &legend,
                &line.name,
                &style(13, HPos::Left, VPos::Center),
                (36, y),
            )?;
        }
        Ok(())
    }
}

/// A label of an axis.
fn tick(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e6 => (value / 1e6, " M"),
        middle if middle >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    // One decimal, unless it is 0.
    if (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}{unit}")
    } else {
        format!("{value:.1}{unit}")
    }
}
