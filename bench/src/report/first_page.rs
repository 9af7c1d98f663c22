//! The page that is read first: four questions, answers and plots.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Highlight, QUICK, Report, write_plots};

/// How many highlights the page has.
const HIGHLIGHTS: usize = 4;

impl Report {
    /// Writes the page if every highlight was measured.
    pub(super) fn write_first_page(&self, directory: &Path, name: &str) -> Result<()> {
        let highlights: Vec<&Highlight> = self
            .sections
            .iter()
            .filter_map(|section| section.highlight.as_ref())
            .collect();
        if highlights.len() < HIGHLIGHTS {
            return Ok(());
        }
        let mut text = format!(
            "# Benchmarks\n\nThis page shows costs and benefits, by four results of one run of `make bench` with PostgreSQL {}. \
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
        let measured = self.verdicts().filter(|verdict| verdict.is_measured());
        let (met, missed): (Vec<_>, Vec<_>) = measured.partition(|verdict| verdict.is_met());
        writeln!(
            text,
            "## All results\n\nThis run met {} of its {} limits{}.\n",
            met.len(),
            met.len() + missed.len(),
            match missed.len() {
                0 => String::new(),
                _ => format!("; [the others, with reasons](benchmarks/{name}.md#goals)"),
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
}
