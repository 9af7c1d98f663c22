//! The documents: what was to be shown, what was measured, and how; and before
//! them a page of four plots.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::machine::Facts;
use crate::measure::Samples;
use crate::peers::Peer;
use crate::plot::Chart;
use crate::run::{Run, SHOWN, Scale};

/// How many highlights make the first page.
const HIGHLIGHTS: usize = 4;

const QUICK: &str =
    "> A quick run with few and short rounds: to try the benchmarks, not to be quoted.\n\n";

/// A part of the document.
#[derive(Default)]
pub struct Section {
    pub title: &'static str,
    pub blocks: Vec<Block>,
    pub verdicts: Vec<Verdict>,
    /// What of it is on the first page.
    pub highlight: Option<Highlight>,
}

/// What a person reads first: a question, its answer and one plot.
pub struct Highlight {
    pub question: &'static str,
    pub answer: String,
    pub figure: Figure,
}

pub enum Block {
    Text(String),
    Table(Table),
    Figure(Figure),
}

/// A plot in a file of its own.
pub struct Figure {
    /// The file's name, without the extension.
    pub file: &'static str,
    /// What a person who can't see it is told.
    pub about: &'static str,
    pub chart: Chart,
}

/// The first column names what the others are of.
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self::of(head.iter().map(ToString::to_string).collect())
    }

    pub fn of(head: Vec<String>) -> Self {
        Self {
            head,
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.to_vec());
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&self.head);
        text.push_str("|---|");
        text.push_str(&"---:|".repeat(self.head.len() - 1));
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text
    }
}

/// What a ratio may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// Something that is to be shown, and a reason for where it is not.
pub struct Goal {
    pub what: String,
    pub limit: Limit,
    pub why: String,
}

/// A goal and what was measured.
pub struct Verdict {
    goal: Goal,
    measured: Samples,
}

impl Goal {
    /// By the median of the rounds.
    pub fn judge(self, measured: &Samples) -> Verdict {
        Verdict {
            goal: self,
            measured: measured.clone(),
        }
    }
}

impl Verdict {
    fn is_met(&self) -> bool {
        let median = self.measured.median();
        match self.goal.limit {
            Limit::AtMost(limit) => median <= limit,
            Limit::AtLeast(limit) => median >= limit,
        }
    }

    fn limit(&self) -> String {
        match self.goal.limit {
            Limit::AtMost(limit) => format!("at most {limit}"),
            Limit::AtLeast(limit) => format!("at least {limit}"),
        }
    }

    fn outcome(&self) -> &'static str {
        if self.measured.len() == 0 {
            "not measured"
        } else if self.is_met() {
            "met"
        } else {
            "**missed**"
        }
    }

    /// Why it was missed, as far as the measurements tell.
    fn reason(&self) -> Option<String> {
        if self.measured.len() == 0 || self.is_met() {
            return None;
        }
        let (Limit::AtMost(limit) | Limit::AtLeast(limit)) = self.goal.limit;
        let doubt = if (self.measured.low()..=self.measured.high()).contains(&limit) {
            " The rounds lie on both sides of the limit."
        } else {
            ""
        };
        Some(format!("- {}: {}.{doubt}\n", self.goal.what, self.goal.why))
    }
}

/// The document as it grows.
pub struct Report {
    scale: Scale,
    machine: Facts,
    server: Vec<(String, String)>,
    peers: Vec<Peer>,
    searched: Option<String>,
    assertions: bool,
    sections: Vec<Section>,
}

impl Report {
    pub fn new(machine: Facts, scale: Scale, searched: Option<String>) -> Self {
        Self {
            scale,
            machine,
            server: Vec::new(),
            peers: Vec::new(),
            searched,
            assertions: false,
            sections: Vec::new(),
        }
    }

    /// Notes what server it is.
    pub fn server(&mut self, run: &Run) -> Result<()> {
        let mut client = run.connect()?;
        let mut ask = |query: &str| -> Result<String> { Ok(client.query_one(query, &[])?.get(0)) };
        self.server = vec![
            (
                "date".to_owned(),
                ask("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC'")?,
            ),
            (
                "PostgreSQL".to_owned(),
                run.cluster().installation().version.clone(),
            ),
            (
                "extension".to_owned(),
                ask("SELECT extversion FROM pg_extension WHERE extname = 'snowflake'")?,
            ),
        ];
        let mut settings = Vec::new();
        for name in SHOWN {
            let value = ask(&format!(
                "SELECT coalesce(current_setting('{name}', true), '')"
            ))?;
            if !value.is_empty() {
                settings.push(format!("`{name} = {value}`"));
            }
        }
        self.server
            .push(("settings".to_owned(), settings.join(", ")));
        self.assertions = ask("SHOW debug_assertions")? == "on";
        self.peers = run.peers().to_vec();
        Ok(())
    }

    /// Adds a section.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// Writes the document `benchmarks/NAME.md` and its plots into a directory,
    /// and where all of them were measured, the first page `benchmarks.md`. Plots
    /// of an earlier run go.
    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        let below = directory.join("benchmarks");
        let figures = self.sections.iter().flat_map(|section| &section.blocks);
        let figures = figures.filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        });
        write_plots(&below.join(name), figures)?;
        let file = below.join(name).with_extension("md");
        fs::write(&file, self.markdown(name)?)
            .with_context(|| format!("writing {}", file.display()))?;
        self.write_first_page(directory, name)?;
        for verdict in self.verdicts() {
            println!(
                "{:12} {} ({}): {}",
                verdict.outcome().trim_matches('*'),
                verdict.goal.what,
                verdict.limit(),
                spread(&verdict.measured, ratio)
            );
        }
        println!("written: {}", file.display());
        Ok(())
    }

    /// The page that is read first, where nothing of it is missing.
    fn write_first_page(&self, directory: &Path, name: &str) -> Result<()> {
        let highlights: Vec<&Highlight> = self
            .sections
            .iter()
            .filter_map(|section| section.highlight.as_ref())
            .collect();
        if highlights.len() < HIGHLIGHTS {
            return Ok(());
        }
        let mut text = format!(
            "# Benchmarks\n\nWhat does it cost me, and what do I get? Four answers from one run of `make bench` with PostgreSQL {}. \
             The line on a bar is the range of its rounds. The run writes every figure.\n\n",
            self.fact("PostgreSQL")
        );
        if !self.scale.full {
            text.push_str(QUICK);
        }
        for Highlight {
            question,
            answer,
            figure,
        } in &highlights
        {
            writeln!(
                text,
                "## {question}\n\n{answer}\n\n![{}](benchmarks/first/{}.svg)\n",
                figure.about, figure.file
            )?;
        }
        let missed = self.verdicts().filter(|verdict| verdict.measured.len() > 0);
        let (met, missed): (Vec<_>, Vec<_>) = missed.partition(|verdict| verdict.is_met());
        writeln!(
            text,
            "## All of it\n\nThis run met {} of the {} limits that are set for it{}.\n",
            met.len(),
            met.len() + missed.len(),
            match missed.len() {
                0 => String::new(),
                _ => format!("; [the others, and why](benchmarks/{name}.md#what-is-to-be-shown)"),
            }
        )?;
        let below = directory.join("benchmarks");
        let mut documents = Vec::new();
        for entry in fs::read_dir(&below)? {
            let file = entry?.file_name();
            documents.extend(
                file.to_string_lossy()
                    .strip_suffix(".md")
                    .map(str::to_owned),
            );
        }
        documents.sort();
        for document in documents {
            let path = below.join(&document).with_extension("md");
            let head = fs::read_to_string(&path)?;
            let title = head.lines().next().unwrap_or_default();
            let title = title.trim_start_matches("# ");
            writeln!(text, "- [{title}](benchmarks/{document}.md)")?;
        }
        let figures = highlights.iter().map(|highlight| &highlight.figure);
        write_plots(&below.join("first"), figures)?;
        let file = directory.join("benchmarks.md");
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    }

    /// What is known of the run under this name.
    fn fact(&self, name: &str) -> &str {
        let found = self.server.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.sections.iter().flat_map(|section| &section.verdicts)
    }

    fn markdown(&self, name: &str) -> Result<String> {
        let mut text = format!(
            "# {} with PostgreSQL {}\n\n`make bench` writes this file and its plots. Every figure and every verdict comes from one run; \
             none is typed in. For another machine or server, run it there: `make bench PG_CONFIG=/path/to/pg_config`. \
             [The first page](../benchmarks.md) has the most important results.\n\n",
            match &self.sections[..] {
                [only] => only.title,
                _ => "Benchmarks",
            },
            self.fact("PostgreSQL")
        );
        if !self.scale.full {
            text.push_str(QUICK);
        }
        if self.assertions {
            text.push_str("> This server was built with assertions, which makes everything slower, and not alike.\n\n");
        }
        self.goals(&mut text)?;
        self.how(&mut text)?;
        for section in &self.sections {
            writeln!(text, "## {}\n", section.title)?;
            for block in &section.blocks {
                match block {
                    Block::Text(words) => writeln!(text, "{words}\n")?,
                    Block::Table(table) => writeln!(text, "{}", table.markdown())?,
                    Block::Figure(figure) => {
                        writeln!(text, "![{}]({name}/{}.svg)\n", figure.about, figure.file)?;
                    }
                }
            }
        }
        Ok(text.trim_end().to_owned() + "\n")
    }

    fn goals(&self, text: &mut String) -> Result<()> {
        let mut table = Table::new(&["", "limit", "measured", "rounds", ""]);
        for verdict in self.verdicts() {
            table.row(&[
                verdict.goal.what.clone(),
                verdict.limit(),
                spread(&verdict.measured, ratio),
                verdict.measured.len().to_string(),
                verdict.outcome().to_owned(),
            ]);
        }
        if table.rows.is_empty() {
            return Ok(());
        }
        writeln!(
            text,
            "## What is to be shown\n\nRatios of what was measured in the same round; the median of the rounds, and their range.\n\n{}",
            table.markdown()
        )?;
        let reasons: Vec<String> = self.verdicts().filter_map(Verdict::reason).collect();
        if !reasons.is_empty() {
            writeln!(
                text,
                "Where it was missed, and why:\n\n{}",
                reasons.concat()
            )?;
        }
        Ok(())
    }

    fn how(&self, text: &mut String) -> Result<()> {
        text.push_str("## The run\n\n| | |\n|---|---|\n");
        let machine = self.machine.iter().map(|(name, value)| (*name, value));
        let server = self
            .server
            .iter()
            .map(|(name, value)| (name.as_str(), value));
        for (name, value) in server.chain(machine) {
            writeln!(text, "| {name} | {value} |")?;
        }
        writeln!(
            text,
            "\nOne server, started for this run; all contenders in it, in turn: a round has one measurement of each, and begins \
             with another one than the round before. {} rounds for what the limits above speak of, and {} for the others where a \
             table says nothing else. What stands in parentheses is the range of all rounds. Before each measurement the table is \
             made anew, a checkpoint is written, and the clock is let catch up with the IDs.\n",
            self.scale.rounds,
            self.scale.peer_rounds.min(self.scale.rounds)
        )?;
        text.push_str("| | type | bytes | |\n|---|---|---:|---|\n");
        for peer in std::iter::once(&Peer::Constant).chain(&self.peers) {
            writeln!(
                text,
                "| {} | `{}` | {} | {} |",
                peer.name(),
                peer.id_type(),
                peer.bytes(),
                peer.describe()
            )?;
        }
        if let Some(searched) = &self.searched {
            text.push_str("\nOther extensions that make IDs, as this run found them where an ordinary client of a registry gets them:\n\n");
            text.push_str("| where | looked for | found |\n|---|---|---|\n");
            for line in searched.lines().filter(|line| !line.is_empty()) {
                let line = line.replace('|', "\\|").replace('\t', " | ");
                writeln!(text, "| {line} |")?;
            }
        }
        text.push('\n');
        Ok(())
    }
}

/// Plots into a directory of their own, in the place of those that were there.
fn write_plots<'a>(directory: &Path, figures: impl Iterator<Item = &'a Figure>) -> Result<()> {
    let mut figures = figures.peekable();
    if figures.peek().is_none() && !directory.exists() {
        return Ok(());
    }
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(path)?;
        }
    }
    for figure in figures {
        let file = directory.join(figure.file).with_extension("svg");
        fs::write(&file, figure.chart.svg()?)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// Three significant digits, without an exponent.
pub fn three(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    // Rounded first: 9.999 has no digit to spare after the point, 10.0 has.
    let value: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let magnitude = if value == 0.0 {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    let decimals = usize::try_from((2 - magnitude).clamp(0, 3)).unwrap_or(0);
    let rounded = format!("{value:.decimals$}");
    let (sign, digits) = rounded
        .strip_prefix('-')
        .map_or(("", &*rounded), |digits| ("-", digits));
    let whole = digits.find('.').unwrap_or(digits.len());
    let mut grouped = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && place < whole && (whole - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A rate or a large number, in thousands or millions.
pub fn per_second(value: f64) -> String {
    match value.abs() {
        large if large >= 999_500.0 => format!("{} M", three(value / 1e6)),
        middle if middle >= 9_995.0 => format!("{} k", three(value / 1e3)),
        _ => three(value),
    }
}

/// A quotient.
pub fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.3}")
    } else {
        "–".to_owned()
    }
}

/// The median, and the range where there is more than one round.
pub fn spread(samples: &Samples, write: impl Fn(f64) -> String) -> String {
    match samples.len() {
        0 => "–".to_owned(),
        1 => write(samples.median()),
        _ => format!(
            "{} ({} – {})",
            write(samples.median()),
            write(samples.low()),
            write(samples.high())
        ),
    }
}

/// The median of the rounds' ratios.
pub fn ratio_cell(this: &Samples, other: &Samples) -> String {
    ratio(this.ratio_to(other).median())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let written: Vec<String> = [0.0, 0.012_345, 1.234_5, 9.999, 41.26, 412.6, 1_234_567.0]
            .map(three)
            .into();
        assert_eq!(
            written,
            ["0.00", "0.012", "1.23", "10.0", "41.3", "413", "1,230,000"]
        );
        let rates = [950.0, 12_345.0, 999_600.0, 25_000_000.0].map(per_second);
        assert_eq!(rates, ["950", "12.3 k", "1.00 M", "25.0 M"]);
    }

    #[test]
    fn a_goal_is_judged_by_the_median() {
        let judge = |limit, values: &[f64]| {
            Goal {
                what: "x".to_owned(),
                limit,
                why: "y".to_owned(),
            }
            .judge(&values.iter().copied().collect())
        };
        assert!(judge(Limit::AtMost(0.5), &[0.4, 0.5, 0.9]).is_met());
        assert!(!judge(Limit::AtMost(0.5), &[0.4, 0.51, 0.9]).is_met());
        assert!(judge(Limit::AtLeast(2.5), &[2.4, 2.5, 2.6]).is_met());
        let missed = judge(Limit::AtLeast(2.5), &[2.0, 2.1, 2.2]);
        assert_eq!(missed.reason().as_deref(), Some("- x: y.\n"));
        let unsure = judge(Limit::AtLeast(2.5), &[2.0, 2.4, 2.6]).reason();
        assert!(unsure.is_some_and(|reason| reason.contains("both sides")));
        let unmeasured = judge(Limit::AtMost(1.0), &[]);
        assert_eq!(
            (unmeasured.outcome(), unmeasured.reason()),
            ("not measured", None)
        );
    }
}
