//! Plots with bars.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, FONT, INK, WIDTH, drawing_failed, style, title, write};
use crate::measure::Samples;
use crate::report::{per_second, three};

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

impl Bars {
    const ROW: i32 = 26;
    const HEADING: i32 = 30;
    const TOP: i32 = 48;
    const BOTTOM: i32 = 40;
    const LEFT: i32 = 200;
    const RIGHT: i32 = 90;

    pub(super) fn height(&self) -> i32 {
        let groups = self.groups.iter().map(|(heading, bars)| {
            let heading = if heading.is_empty() { 0 } else { Self::HEADING };
            heading + Self::ROW * bars.len() as i32
        });
        Self::TOP + groups.sum::<i32>() + Self::BOTTOM
    }

    pub(super) fn draw(&self, area: &Area) -> Result<()> {
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
