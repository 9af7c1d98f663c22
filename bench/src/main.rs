//! `make bench`: what an ID costs, compared with the other ways to generate one.
//!
//! All contenders are measured in one run, in turn, so that other work on the machine affects all
//! of them. The result is a document with tables and plots. No figure makes a run fail.
//!
//! - [`contenders`]: the ways to generate an ID
//! - [`sections`]: the comparisons, as data; the scripts are in `bench/sql`
//! - [`comparison`]: measures a comparison; [`drive`]: executes its statements
//! - [`servers`], [`new_rows`], [`migrations`], [`algorithm`]: sections that need code of their own
//! - [`measure`]: rounds, medians, ranges, ratios; [`run`]: the servers of a run
//! - [`report`]: the document; [`format`](mod@format): its figures; [`plot`]: its plots

mod algorithm;
mod comparison;
mod contenders;
mod drive;
mod format;
mod machine;
mod measure;
mod migrations;
mod new_rows;
mod plot;
mod report;
mod run;
mod sections;
mod servers;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

use report::Report;
use run::Run;
use sections::{SECTIONS, Section};

/// Measures the extension beside the other ways to generate an ID.
#[derive(Parser)]
struct Arguments {
    /// Takes a few minutes, with few rounds. The figures are not to be quoted.
    #[arg(long)]
    quick: bool,

    /// Only these sections (several times, or with commas). The document contains no others.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// The rounds of each comparison.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// The directory that contains the directory `benchmarks`.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,

    /// The directory of criterion's measurements of the algorithm crate.
    #[arg(long, value_name = "DIR")]
    criterion: Option<PathBuf>,
}

/// The sections to measure, and the name of a document of their own, if they have one.
fn chosen(only: &[String]) -> Result<(Vec<&'static Section>, Option<&'static str>)> {
    if let Some(unknown) = only
        .iter()
        .find(|name| SECTIONS.iter().all(|section| section.name != **name))
    {
        let names: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        bail!(
            "there is no section {unknown:?}; the sections are {}",
            names.join(", ")
        );
    }
    let sections: Vec<&Section> = SECTIONS
        .iter()
        .filter(|section| match only {
            [] => !section.is_alone,
            names => names.iter().any(|name| name == section.name),
        })
        .collect();
    let alone = sections.iter().find(|section| section.is_alone);
    let own_document = alone.map(|section| section.name);
    if let Some(name) = own_document
        && sections.len() > 1
    {
        bail!("the section {name} has a document of its own: measure it alone");
    }
    Ok((sections, own_document))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (sections, own_document) = chosen(&arguments.only)?;
    // Read before the run, so that a wrong path is reported at once.
    let algorithm = match &arguments.criterion {
        Some(directory) => Some(algorithm::blocks(directory)?),
        None => None,
    };
    let machine = machine::describe();
    let run = Run::start(arguments.quick, arguments.rounds.map(usize::from))?;
    let mut report = Report::begin(&run, machine)?;
    for section in sections {
        run.step(section.title);
        report.push(section.title, section.blocks(&run)?);
    }
    if let Some(blocks) = algorithm {
        report.push("The algorithm crate", blocks);
    }
    let name = own_document.map_or_else(
        || format!("postgresql-{}", run.common().installation().major),
        str::to_owned,
    );
    report.write(&arguments.out.join("benchmarks"), &name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_with_its_own_document_is_measured_alone() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(ToString::to_string).collect();
            let (sections, document) = chosen(&only).ok()?;
            let names: Vec<&str> = sections.iter().map(|section| section.name).collect();
            Some((names.join(" "), document))
        };
        assert_eq!(
            names(&["copy", "call"]),
            Some(("call copy".to_owned(), None))
        );
        assert_eq!(
            names(&["servers"]),
            Some(("servers".to_owned(), Some("servers")))
        );
        assert_eq!(names(&["servers", "copy"]), None);
        assert_eq!(names(&["unknown"]), None);
        let (all, document) = names(&[]).expect("the usual sections");
        assert!(all.contains("index") && !all.contains("servers") && document.is_none());
    }
}
