//! The document: the facts about the run, and a chapter for each section.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::machine::Facts;
use crate::plot::Chart;
use crate::run::{Run, SHOWN};

pub enum Block {
    Text(String),
    Table(Table),
    Figure(Figure),
}

/// A plot in a file of its own.
pub struct Figure {
    /// The file's name, without the extension.
    pub file: &'static str,
    /// Its description, for readers who cannot see it.
    pub about: &'static str,
    pub chart: Chart,
}

/// A table whose first column names the rows.
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

/// A document while its sections are measured.
pub struct Report {
    quick: bool,
    assertions: bool,
    version: String,
    facts: Vec<(String, String)>,
    sections: Vec<(&'static str, Vec<Block>)>,
}

impl Report {
    /// Records the facts about the run.
    pub fn begin(run: &Run, machine: Facts) -> Result<Self> {
        let mut client = run.common().connect()?;
        let mut ask = |query: &str| -> Result<String> { Ok(client.query_one(query, &[])?.get(0)) };
        let version = run.common().installation().version.clone();
        let date = "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') || ' UTC'";
        let extension = "SELECT extversion FROM pg_extension WHERE extname = 'snowflake'";
        let mut settings = Vec::new();
        for name in SHOWN {
            let value = ask(&format!(
                "SELECT coalesce(current_setting('{name}', true), '')"
            ))?;
            if !value.is_empty() {
                settings.push(format!("`{name} = {value}`"));
            }
        }
        let mut facts = vec![
            ("date".to_owned(), ask(date)?),
            ("PostgreSQL".to_owned(), version.clone()),
            ("extension".to_owned(), ask(extension)?),
            ("settings".to_owned(), settings.join(", ")),
        ];
        facts.extend(
            machine
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        Ok(Self {
            quick: run.quick,
            assertions: ask("SHOW debug_assertions")? == "on",
            version,
            facts,
            sections: Vec::new(),
        })
    }

    /// Adds a section.
    pub fn push(&mut self, title: &'static str, blocks: Vec<Block>) {
        self.sections.push((title, blocks));
    }

    /// Writes the document `NAME.md` into a directory, and its plots into `NAME/` below. Plots of
    /// an earlier run are removed.
    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        let plots = directory.join(name);
        if plots.exists() {
            fs::remove_dir_all(&plots)?;
        }
        fs::create_dir_all(&plots).with_context(|| format!("creating {}", plots.display()))?;
        for (_, blocks) in &self.sections {
            for block in blocks {
                if let Block::Figure(figure) = block {
                    let file = plots.join(figure.file).with_extension("svg");
                    fs::write(file, figure.chart.svg()?)?;
                }
            }
        }
        let file = directory.join(name).with_extension("md");
        fs::write(&file, self.markdown(name)?)
            .with_context(|| format!("writing {}", file.display()))?;
        println!("\nwritten: {}", file.display());
        Ok(())
    }

    fn markdown(&self, name: &str) -> Result<String> {
        let title = match &self.sections[..] {
            [(only, _)] => *only,
            _ => "Benchmarks",
        };
        let mut text = format!(
            "# {title} with PostgreSQL {}\n\n`make bench` writes this file and its plots, all figures in one run. \
             [How they are measured](../benchmarks.md#how-it-is-measured).\n\n",
            self.version
        );
        if self.quick {
            text.push_str(
                "> A quick run with few and short rounds. Its figures are not to be quoted.\n\n",
            );
        }
        if self.assertions {
            text.push_str("> This server was built with assertions, which slow everything down, but not equally.\n\n");
        }
        text.push_str("## The run\n\n| | |\n|---|---|\n");
        for (name, value) in &self.facts {
            writeln!(text, "| {name} | {value} |")?;
        }
        for (title, blocks) in &self.sections {
            writeln!(text, "\n## {title}")?;
            for block in blocks {
                match block {
                    Block::Text(words) => writeln!(text, "\n{words}")?,
                    Block::Table(table) => write!(text, "\n{}", table.markdown())?,
                    Block::Figure(figure) => {
                        writeln!(text, "\n![{}]({name}/{}.svg)", figure.about, figure.file)?;
                    }
                }
            }
        }
        Ok(text)
    }
}
