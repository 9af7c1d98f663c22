//! The plots, as SVG: to be read on a light page, in any size.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::measure::Samples;
use crate::report::{per_second, three};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const FONT: &str = "sans-serif";
const WIDTH: u32 = 860;
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xE4, 0xE4, 0xE4);

pub enum Chart {
    Lines(Lines),
    Bars(Bars),
}

/// Something by something else, a line for each contender.
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

/// One number for each contender, in groups with a heading.
pub struct Bars {
    pub title: String,
    pub unit: &'static str,
    /// Whether bars of one group are to be compared with those of another.
    pub one_scale: bool,
    pub groups: Vec<(String, Vec<Bar>)>,
}

#[derive(Clone)]
pub struct Bar {
    name: String,
    colour: RGBColor,
    samples: Samples,
}

impl Bar {
    pub fn new(name: &str, colour: RGBColor, samples: &Samples) -> Self {
        Self {
            name: name.to_owned(),
            colour,
            samples: samples.clone(),
        }
    }
}

impl Chart {
    /// The file's content.
    pub fn svg(&self) -> Result<String> {
        let mut text = String::new();
        let height = match self {
            Self::Lines(_) => 440,
            Self::Bars(bars) => bars.height(),
        };
        {
            let area =
                SVGBackend::with_string(&mut text, (WIDTH, height as u32)).into_drawing_area();
            let drawn = area
                .fill(&WHITE)
                .map_err(drawing_failed)
                .and_then(|()| match self {
                    Self::Lines(lines) => lines.draw(&area),
                    Self::Bars(bars) => bars.draw(&area),
                });
            drawn?;
            area.present().map_err(drawing_failed)?;
        }
        Ok(text)
    }
}

fn drawing_failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("drawing a plot: {error}")
}

fn style(size: i32, across: HPos, down: VPos) -> TextStyle<'static> {
    TextStyle::from((FONT, size).into_font())
        .color(&INK)
        .pos(Pos::new(across, down))
}

fn write(area: &Area, text: &str, style: &TextStyle, at: (i32, i32)) -> Result<()> {
    area.draw_text(text, style, at).map_err(drawing_failed)
}

fn title(area: &Area, text: &str) -> Result<()> {
    let bold = ("sans-serif", 18, FontStyle::Bold).into_font();
    write(area, text, &TextStyle::from(bold).color(&INK), (16, 12))
}

impl Lines {
    fn draw(&self, whole: &Area) -> Result<()> {
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
        // In the order in which the lines end, so that an eye finds them.
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
    // One digit after the point where it says something.
    if (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}{unit}")
    } else {
        format!("{value:.1}{unit}")
    }
}

impl Bars {
    const ROW: i32 = 26;
    const HEADING: i32 = 30;
    const TOP: i32 = 48;
    const BOTTOM: i32 = 40;
    const LEFT: i32 = 200;
    const RIGHT: i32 = 90;

    fn height(&self) -> i32 {
        let groups = self.groups.iter().map(|(heading, bars)| {
            let heading = if heading.is_empty() { 0 } else { Self::HEADING };
            heading + Self::ROW * bars.len() as i32
        });
        Self::TOP + groups.sum::<i32>() + Self::BOTTOM
    }

    fn draw(&self, area: &Area) -> Result<()> {
        title(area, &self.title)?;
        let highest_of = |bars: &[Bar]| {
            let ends = bars.iter().map(|bar| bar.samples.high());
            ends.fold(0.0, f64::max)
        };
        let highs = self.groups.iter().map(|(_, bars)| highest_of(bars));
        let highest_of_all = highs.fold(0.0, f64::max);
        let width = f64::from(WIDTH as i32 - Self::LEFT - Self::RIGHT);
        let mut y = Self::TOP;
        for (heading, bars) in &self.groups {
            if !heading.is_empty() {
                let bold = (FONT, 14, FontStyle::Bold).into_font();
                let bold = TextStyle::from(bold)
                    .color(&INK)
                    .pos(Pos::new(HPos::Left, VPos::Center));
                write(area, heading, &bold, (16, y + Self::HEADING / 2 + 4))?;
                y += Self::HEADING;
            }
            let highest = if self.one_scale {
                highest_of_all
            } else {
                highest_of(bars)
            };
            let place = |value: f64| Self::LEFT + (value / highest * width).round() as i32;
            let top = y;
            for bar in bars {
                let middle = y + Self::ROW / 2;
                let end = place(bar.samples.median());
                write(
                    area,
                    &bar.name,
                    &style(13, HPos::Right, VPos::Center),
                    (Self::LEFT - 10, middle),
                )?;
                area.draw(&Rectangle::new(
                    [
                        (Self::LEFT, middle - 8),
                        (end.max(Self::LEFT + 1), middle + 8),
                    ],
                    bar.colour.filled(),
                ))
                .map_err(drawing_failed)?;
                let [low, high] = [bar.samples.low(), bar.samples.high()].map(place);
                if high > low {
                    area.draw(&PathElement::new(
                        vec![(low, middle), (high, middle)],
                        INK.stroke_width(1),
                    ))
                    .map_err(drawing_failed)?;
                    for at in [low, high] {
                        area.draw(&PathElement::new(
                            vec![(at, middle - 4), (at, middle + 4)],
                            INK.stroke_width(1),
                        ))
                        .map_err(drawing_failed)?;
                    }
                }
                let value = number(bar.samples.median());
                write(
                    area,
                    &value,
                    &style(13, HPos::Left, VPos::Center),
                    (high.max(end) + 8, middle),
                )?;
                y += Self::ROW;
            }
            area.draw(&PathElement::new(
                vec![(Self::LEFT, top), (Self::LEFT, y)],
                INK.stroke_width(1),
            ))
            .map_err(drawing_failed)?;
        }
        write(
            area,
            self.unit,
            &style(13, HPos::Left, VPos::Center),
            (Self::LEFT, y + 20),
        )
    }
}

fn number(value: f64) -> String {
    if value.abs() < 100_000.0 {
        three(value)
    } else {
        per_second(value)
    }
}
