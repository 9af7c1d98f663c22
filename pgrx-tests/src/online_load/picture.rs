//! The latencies of a run over time, as a picture.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use plotters::prelude::*;

use super::Report;

/// The curves: the share of transactions below them, a name, and a color.
const CURVES: [(f64, &str, RGBColor); 3] = [
    (0.5, "half of the transactions", RGBColor(0x1b, 0x7f, 0x4b)),
    (0.99, "99 of 100", RGBColor(0x2b, 0x6c, 0xb0)),
    (1.0, "the slowest one", RGBColor(0xb7, 0x47, 0x2a)),
];

impl Report {
    /// The latencies of `pgbench`'s transactions in each second, as SVG, with the
    /// steps of the migrations behind them. The scale of time is linear, and that of
    /// latencies logarithmic.
    pub fn picture(&self) -> Result<String> {
        let mut svg = String::new();
        self.draw(SVGBackend::with_string(&mut svg, (900, 420)).into_drawing_area())?;
        Ok(svg)
    }

    fn draw(&self, area: DrawingArea<SVGBackend, plotters::coord::Shift>) -> Result<()> {
        let began = self.latencies.iter().map(|(ended, took)| *ended - *took);
        let Some(began) = began.min() else {
            return Ok(());
        };
        let seconds_of = |time: SystemTime| time.duration_since(began).unwrap_or_default();
        let mut by_second: Vec<Vec<f64>> = Vec::new();
        for (ended, took) in &self.latencies {
            let second = seconds_of(*ended).as_secs() as usize;
            by_second.resize_with(by_second.len().max(second + 1), Vec::new);
            by_second[second].push(milliseconds(*took));
        }
        by_second
            .iter_mut()
            .for_each(|it| it.sort_by(f64::total_cmp));
        let mut all = by_second.concat();
        all.sort_by(f64::total_cmp);
        let whole_power = |exponent: f64| 10_f64.powf(exponent);
        let low = whole_power(quantile(&all, 0.25).log10().floor());
        let high = whole_power(quantile(&all, 1.0).log10().ceil());

        area.fill(&WHITE)?;
        let title = "Latency of pgbench's transactions during two online migrations";
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..by_second.len() as f64, (low..high).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc("seconds of the run; shaded: the steps of the migrations")
            .y_desc("milliseconds")
            .draw()?;
        // A name has the letters for which its band has room.
        let letter = by_second.len() as f64 / 160.0;
        for (number, step) in self.steps.iter().enumerate() {
            let shade = [RGBColor(0xee, 0xf2, 0xf7), RGBColor(0xdf, 0xe6, 0xee)][number % 2];
            let [from, until] = [step.began, step.ended].map(|time| seconds_of(time).as_secs_f64());
            let band = Rectangle::new([(from, low), (until, high)], shade.filled());
            chart.draw_series([band])?;
            let letters = ((until - from) / letter) as usize;
            if letters >= 9 {
                let name: String = step.what.chars().take(letters).collect();
                chart.draw_series([Text::new(name, (from, high), ("sans-serif", 10))])?;
            }
        }
        for (share, name, color) in CURVES {
            let seconds = by_second
                .iter()
                .enumerate()
                .filter(|(_, it)| !it.is_empty());
            let points = seconds.map(|(second, it)| (second as f64 + 0.5, quantile(it, share)));
            chart
                .draw_series(LineSeries::new(points, color))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .draw()?;
        Ok(area.present()?)
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).max(0.001)
}

/// What this share of sorted numbers does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * share).round();
    sorted.get(place as usize).copied().unwrap_or(1.0)
}
