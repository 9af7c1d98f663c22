//! `make bench`: what an ID costs, compared with the other ways to generate one.
//!
//! All contenders run on one server, in one run, in turn, so that other work on the
//! machine affects all of them. The result is a document with plots. The run writes
//! all figures, and no figure makes it fail.
//!
//! - [`machine`]: the facts about the machine
//! - [`peers`]: the contenders, and how each generates an ID in SQL
//! - [`measure`]: rounds, medians, ranges, ratios
//! - [`pgbench`]: many clients
//! - [`processors`]: processor time of the server
//! - [`run`]: the server, and how much is measured; [`progress`]: how far a run is
//! - [`sections`]: the sections of the documents
//! - [`report`]: the documents; [`plot`]: their pictures

mod machine;
mod measure;
mod peers;
mod pgbench;
mod plot;
mod processors;
mod progress;
mod report;
mod run;
mod sections;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;

use report::Section;
use run::{Run, Scale};
use sections::{
    algorithm, calls, clients, contention, copy, index, inserts, large_tables, latency, new_rows,
    reading, servers, steady, wal,
};

/// Measures the extension beside the other ways to make an ID.
#[derive(Parser)]
struct Arguments {
    /// Takes a few minutes, with few rounds. The figures are not to be quoted.
    #[arg(long)]
    quick: bool,

    /// Only these sections (several times, or with commas). The document contains no others.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// The rounds of the contenders that the goals are about.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// The directory for the first page `benchmarks.md` and the directory `benchmarks`.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,

    /// The directory of criterion's measurements of the algorithm crate.
    #[arg(long, value_name = "DIR")]
    criterion: Option<PathBuf>,

    /// The result of the search for other extensions. Each line has a source, a name
    /// and a result, separated by tabs.
    #[arg(long, value_name = "FILE")]
    searched: Option<PathBuf>,
}

/// A part of the run that can be chosen by name.
struct Part {
    name: &'static str,
    /// About how long it takes, for the progress line.
    expected: fn(&Run) -> Duration,
    measure: fn(&Run) -> Result<Section>,
}

/// In the order of the document. The part on WAL uses what the parts before it
/// recorded.
const PARTS: &[Part] = &[
    Part {
        name: "call",
        expected: calls::expected,
        measure: calls::one_call,
    },
    Part {
        name: "clients",
        expected: clients::expected,
        measure: clients::section,
    },
    Part {
        name: "contention",
        expected: contention::expected,
        measure: contention::section,
    },
    Part {
        name: "latency",
        expected: latency::expected,
        measure: latency::section,
    },
    Part {
        name: "inserts",
        expected: inserts::expected,
        measure: inserts::single_rows,
    },
    Part {
        name: "select",
        expected: inserts::expected_select,
        measure: inserts::from_select,
    },
    Part {
        name: "copy",
        expected: copy::expected,
        measure: copy::section,
    },
    Part {
        name: "wal",
        expected: |_| Duration::ZERO,
        measure: wal::section,
    },
    Part {
        name: "index",
        expected: index::expected,
        measure: index::section,
    },
    Part {
        name: "reading",
        expected: reading::expected,
        measure: reading::section,
    },
    Part {
        name: "steady",
        expected: steady::expected,
        measure: steady::section,
    },
];

/// Measured only on request, and alone: each has a document of its own.
const ALONE: &[Part] = &[
    Part {
        name: "scale",
        expected: large_tables::expected,
        measure: large_tables::section,
    },
    Part {
        name: "servers",
        expected: servers::expected,
        measure: servers::section,
    },
    Part {
        name: "new-rows",
        expected: new_rows::expected,
        measure: new_rows::section,
    },
];

/// The name of the document.
fn document(alone: Option<&Part>, major: u32) -> String {
    match alone.map(|part| part.name) {
        None => format!("postgresql-{major}"),
        Some("scale") => format!("postgresql-{major}-large-tables"),
        Some(name) => name.to_owned(),
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let alone = ALONE.iter().find(|part| arguments.only == [part.name]);
    if let Some(unknown) = arguments
        .only
        .iter()
        .find(|only| alone.is_none() && !PARTS.iter().any(|part| part.name == **only))
    {
        let names = |parts: &[Part]| -> String {
            let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
            names.join(", ")
        };
        bail!(
            "there is no section {unknown:?}; the sections are {}; each of these runs alone: {}",
            names(PARTS),
            names(ALONE)
        );
    }
    let mut scale = if arguments.quick {
        Scale::quick()
    } else {
        Scale::full()
    };
    if let Some(rounds) = arguments.rounds {
        scale.rounds = rounds.into();
    }
    // Read before the run, so that a wrong path is reported at once.
    let algorithm = arguments
        .criterion
        .as_deref()
        .map(algorithm::section)
        .transpose()?;
    let searched = arguments
        .searched
        .map(std::fs::read_to_string)
        .transpose()?;

    let mut report = report::Report::new(machine::describe(), scale, searched);
    let run = Run::start(scale)?;
    report.server(&run)?;
    let all = alone.map_or(PARTS, std::slice::from_ref);
    let parts: Vec<&Part> = all
        .iter()
        .filter(|part| arguments.only.is_empty() || arguments.only.iter().any(|n| n == part.name))
        .collect();
    let expected: Vec<Duration> = parts.iter().map(|part| (part.expected)(&run)).collect();
    for (number, part) in parts.iter().enumerate() {
        let later = expected[number + 1..].iter().sum();
        run.progress()
            .begin_part(part.name, expected[number], later);
        report.push((part.measure)(&run)?);
    }
    if let Some(section) = algorithm {
        report.push(section);
    }
    run.progress().end();
    let major = run.cluster().installation().major;
    report.write(&arguments.out, &document(alone, major))
}
