//! The latencies of a run over time, as a picture.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use super::Report;

/// Sizes in pixels: the picture, and the place of the curves in it.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 16.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = HEIGHT - 56.0;

/// The curves: the share of transactions below them, a name, and a color.
const CURVES: [(f64, &str, &str); 3] = [
    (0.5, "half of the transactions are faster", "#1b7f4b"),
    (0.99, "99 of 100 are faster", "#2b6cb0"),
    (1.0, "the slowest one", "#b7472a"),
];

/// A band that is narrower has no name.
const NAMED: f64 = 46.0;
/// The width of a letter of a name.
const LETTER: f64 = 5.0;

impl Report {
    /// The latencies of `pgbench`'s transactions in each second, as SVG, with the
    /// steps of the migrations behind them. The scale of time is linear, and that of
    /// latencies logarithmic.
    pub fn picture(&self) -> String {
        let began = self
            .latencies
            .iter()
            .map(|(ended, took)| *ended - *took)
            .min();
        let Some(began) = began else {
            return String::new();
        };
        let seconds_of = |time: SystemTime| time.duration_since(began).unwrap_or_default();
        let mut by_second: Vec<Vec<Duration>> = Vec::new();
        for (ended, took) in &self.latencies {
            let second = seconds_of(*ended).as_secs() as usize;
            if by_second.len() <= second {
                by_second.resize(second + 1, Vec::new());
            }
            by_second[second].push(*took);
        }
        let length = by_second.len() as f64;
        let x = |seconds: f64| LEFT + seconds / length * (RIGHT - LEFT);
        let mut all: Vec<Duration> = by_second.iter().flatten().copied().collect();
        all.sort_unstable();
        // Whole powers of ten, in milliseconds.
        let low = (milliseconds(quantile(&all, 0.25)).log10()).floor();
        let high = (milliseconds(quantile(&all, 1.0)).log10()).ceil();
        let y = |milliseconds: f64| {
            let share = (milliseconds.log10() - low) / (high - low);
            BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP)
        };

        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">Latency of pgbench's transactions during two online migrations</text>\n"
        );
        for (number, step) in self.steps.iter().enumerate() {
            let (from, until) = (
                x(seconds_of(step.began).as_secs_f64()),
                x(seconds_of(step.ended).as_secs_f64()),
            );
            let shade = ["#eef2f7", "#dfe6ee"][number % 2];
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{shade}\"><title>{}: {} ({:.1} s)</title></rect>",
                (until - from).max(0.5),
                BOTTOM - TOP,
                step.table,
                escaped(&step.what),
                step.took.as_secs_f64()
            );
            let letters = ((until - from) / LETTER) as usize;
            if until - from >= NAMED {
                let _ = writeln!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#556\" font-size=\"10\">{}</text>",
                    from + 3.0,
                    TOP - 6.0,
                    escaped(&step.what.chars().take(letters).collect::<String>())
                );
            }
        }
        for power in low as i32..=high as i32 {
            let at = y(10f64.powi(power));
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ccd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} ms</text>",
                LEFT - 6.0,
                at + 4.0,
                10f64.powi(power)
            );
        }
        let every = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800]
            .into_iter()
            .find(|step| length / f64::from(*step) <= 12.0)
            .unwrap_or(3_600);
        for seconds in (0..by_second.len()).step_by(every as usize) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds} s</text>",
                x(seconds as f64),
                BOTTOM + 18.0
            );
        }
        for (place, (share, name, color)) in CURVES.iter().enumerate() {
            let points: Vec<String> = by_second
                .iter_mut()
                .enumerate()
                .filter(|(_, latencies)| !latencies.is_empty())
                .map(|(second, latencies)| {
                    latencies.sort_unstable();
                    let at = y(milliseconds(quantile(latencies, *share)));
                    format!("{:.1},{at:.1}", x(second as f64 + 0.5))
                })
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
                points.join(" ")
            );
            let at = LEFT + 250.0 * place as f64;
            let _ = writeln!(
                svg,
                "<line x1=\"{at}\" x2=\"{:.0}\" y1=\"46\" y2=\"46\" stroke=\"{color}\" stroke-width=\"3\"/>\
                 <text x=\"{:.0}\" y=\"50\">{name}</text>",
                at + 24.0,
                at + 30.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\" fill=\"#556\">Each second of the run. Shaded: the steps of the migrations.</text>\n</svg>",
            HEIGHT - 14.0
        );
        svg
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).max(0.001)
}

/// The duration that this share of sorted ones does not exceed.
fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * share).round() as usize)
        .copied()
        .unwrap_or_default()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
