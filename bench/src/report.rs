//! The documents: the goals, the run, a chapter for each section, and a first page
//! with four plots.

mod first_page;
mod format;
mod preface;
mod section;
mod verdict;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::machine::Facts;
use crate::peers::Peer;
use crate::run::{Run, SHOWN, Scale};

pub use format::{per_second, ratio, ratio_cell, spread, three};
pub use section::{Block, Figure, Highlight, Section, Table};
pub use verdict::{Goal, Limit, Verdict};

const QUICK: &str = "> A quick run with few and short rounds, to test the benchmarks. Its figures are not to be quoted.\n\n";

/// A document while its sections are measured.
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

    /// Records the facts about the server.
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

    /// Writes the document `benchmarks/NAME.md` and its plots into a directory, and
    /// the first page `benchmarks.md` if every highlight was measured. Plots of an
    /// earlier run are removed.
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
                verdict.what(),
                verdict.limit(),
                verdict.measured()
            );
        }
        println!("written: {}", file.display());
        Ok(())
    }

    /// The fact about the run with this name.
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
            text.push_str("> This server was built with assertions, which slow everything down, but not equally.\n\n");
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
}

/// Writes plots into a directory of their own, and removes the earlier ones.
fn write_plots<'a>(directory: &Path, figures: impl Iterator<Item = &'a Figure>) -> Result<()> {
    let mut figures = figures.peekable();
    if figures.peek().is_none() && !directory.exists() {
        return Ok(());
    }
    fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
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
