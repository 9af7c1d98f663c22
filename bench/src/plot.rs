//! The plots, as SVG in any size, for a light background.

mod bars;
mod lines;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub use bars::{Bar, Bars};
pub use lines::{Line, Lines};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const FONT: &str = "sans-serif";
const WIDTH: u32 = 860;
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xE4, 0xE4, 0xE4);

pub enum Chart {
    Lines(Lines),
    Bars(Bars),
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
