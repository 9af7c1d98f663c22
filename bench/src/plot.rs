//! The plots, as SVG in any size, for a light background. The crate `plotters` draws.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::format::{per_second, three};
use crate::measure::Samples;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const FONT: &str = "sans-serif";
const WIDTH: i32 = 860;
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xE4, 0xE4, 0xE4);

pub enum Chart {
    Lines(Lines),
    Bars(Bars),
}

/// One number for each contender, in groups with a heading.
pub struct Bars {
    pub title: String,
    pub unit: String,
    /// Whether bars of one group are to be compared with those of another.
    pub one_scale: bool,
    pub groups: Vec<(String, Vec<Bar>)>,
}

pub struct Bar {
    name: String,
    colour: RGBColor,
    samples: Samples,
}

/// A line for each contender. Each step of the x axis doubles it.
pub struct Lines {
    pub title: String,
    pub x: String,
    pub y: String,
    pub lines: Vec<Line>,
}

pub struct Line {
    pub name: String,
    pub colour: RGBColor,
    pub points: Vec<(f64, Samples)>,
}

impl Chart {
    /// The file's content.
    pub fn svg(&self) -> Result<String> {
        let mut text = String::new();
        let (title, height) = match self {
            Self::Lines(lines) => (&lines.title, 440),
            Self::Bars(bars) => (&bars.title, bars.height()),
        };
        {
            let size = (WIDTH as u32, height as u32);
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            area.fill(&WHITE).map_err(failed)?;
            let bold = (FONT, 18, FontStyle::Bold).into_font();
            let bold = TextStyle::from(bold).color(&INK);
            area.draw_text(title, &bold, (16, 12)).map_err(failed)?;
            match self {
                Self::Lines(lines) => lines.draw(&area)?,
                Self::Bars(bars) => bars.draw(&area)?,
            }
            area.present().map_err(failed)?;
        }
        Ok(text)
    }
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing a plot: {error}")
}

fn write(area: &Area, text: &str, across: HPos, at: (i32, i32)) -> Result<()> {
    let style = TextStyle::from((FONT, 13).into_font())
        .color(&INK)
        .pos(Pos::new(across, VPos::Center));
    area.draw_text(text, &style, at).map_err(failed)
}

fn stroke(area: &Area, colour: RGBColor, width: u32, ends: [(i32, i32); 2]) -> Result<()> {
    let path = PathElement::new(ends.to_vec(), colour.stroke_width(width));
    area.draw(&path).map_err(failed)
}

impl Bar {
    pub fn new(name: &str, colour: RGBColor, samples: &Samples) -> Self {
        Self {
            // SVG has no code spans.
            name: name.replace('`', ""),
            colour,
            samples: samples.clone(),
        }
    }
}

impl Bars {
    const ROW: i32 = 26;
    const TOP: i32 = 48;
    const LEFT: i32 = 270;
    const RIGHT: i32 = 90;

    fn height(&self) -> i32 {
        let groups = self.groups.iter().map(|(heading, bars)| {
            let rows = bars.len() + usize::from(!heading.is_empty());
            Self::ROW * rows as i32
        });
        Self::TOP + groups.sum::<i32>() + 40
    }

    fn draw(&self, area: &Area) -> Result<()> {
        let highest = |bars: &[Bar]| {
            let ends = bars.iter().map(|bar| bar.samples.high());
            ends.fold(0.0, f64::max)
        };
        let of_all = self.groups.iter().map(|(_, bars)| highest(bars));
        let of_all = of_all.fold(0.0, f64::max);
        let mut y = Self::TOP;
        for (heading, bars) in &self.groups {
            if !heading.is_empty() {
                write(area, heading, HPos::Left, (16, y + Self::ROW / 2))?;
                y += Self::ROW;
            }
            let scale = if self.one_scale {
                of_all
            } else {
                highest(bars)
            };
            let top = y;
            for bar in bars {
                bar.draw(area, scale, y + Self::ROW / 2)?;
                y += Self::ROW;
            }
            stroke(area, INK, 1, [(Self::LEFT, top), (Self::LEFT, y)])?;
        }
        write(area, &self.unit, HPos::Left, (Self::LEFT, y + 20))
    }
}

impl Bar {
    /// The bar is the median, the line on it the range.
    fn draw(&self, area: &Area, scale: f64, y: i32) -> Result<()> {
        let width = f64::from(WIDTH - Bars::LEFT - Bars::RIGHT);
        let place = |value: f64| Bars::LEFT + (value / scale * width).round() as i32;
        let median = self.samples.median();
        let end = place(median).max(Bars::LEFT + 1);
        write(area, &self.name, HPos::Right, (Bars::LEFT - 10, y))?;
        let corners = [(Bars::LEFT, y - 8), (end, y + 8)];
        area.draw(&Rectangle::new(corners, self.colour.filled()))
            .map_err(failed)?;
        let [low, high] = [self.samples.low(), self.samples.high()].map(place);
        if high > low {
            stroke(area, INK, 1, [(low, y), (high, y)])?;
            for x in [low, high] {
                stroke(area, INK, 1, [(x, y - 4), (x, y + 4)])?;
            }
        }
        let number = if median.abs() < 100_000.0 {
            three(median)
        } else {
            per_second(median)
        };
        write(area, &number, HPos::Left, (high.max(end) + 8, y))
    }
}

impl Lines {
    fn draw(&self, whole: &Area) -> Result<()> {
        let (_, below) = whole.split_vertically(40);
        let (left, legend) = below.split_horizontally(650);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let last = points().map(|(x, _)| x.log2()).fold(1.0, f64::max);
        let first = points().map(|(x, _)| x.log2()).fold(last, f64::min);
        let highest = points().map(|(_, y)| y.high()).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(&left)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(first - 0.15..last + 0.15, 0.0..highest * 1.06)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_desc(self.x.as_str())
            .y_desc(self.y.as_str())
            .x_labels((last - first) as usize + 2)
            .y_labels(7)
            .x_label_formatter(&|x: &f64| format!("{:.0}", x.exp2()))
            .y_label_formatter(&|y: &f64| per_second(*y))
            .axis_desc_style((FONT, 14).into_font().color(&INK))
            .label_style((FONT, 13).into_font().color(&INK))
            .draw()
            .map_err(failed)?;
        // The first contender is drawn last, above the others.
        for line in self.lines.iter().rev() {
            let medians = line.points.iter().map(|(x, y)| (x.log2(), y.median()));
            let series = LineSeries::new(medians.clone(), line.colour.stroke_width(2));
            chart.draw_series(series).map_err(failed)?;
            let ranges = line.points.iter().map(|(x, y)| {
                let ends = vec![(x.log2(), y.low()), (x.log2(), y.high())];
                PathElement::new(ends, line.colour.stroke_width(1))
            });
            chart.draw_series(ranges).map_err(failed)?;
            let dots = medians.map(|at| Circle::new(at, 4, line.colour.filled()));
            chart.draw_series(dots).map_err(failed)?;
        }
        // In the order of the ends of the lines, in which a reader finds them.
        let mut ends: Vec<&Line> = self.lines.iter().collect();
        let end = |line: &Line| line.points.last().map_or(0.0, |(_, y)| y.median());
        ends.sort_by(|a, b| end(b).total_cmp(&end(a)));
        for (row, line) in (0_i32..).zip(ends) {
            let y = 24 + row * 24;
            stroke(&legend, line.colour, 3, [(6, y), (28, y)])?;
            write(&legend, &line.name, HPos::Left, (36, y))?;
        }
        Ok(())
    }
}
