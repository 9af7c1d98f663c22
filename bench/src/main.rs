//! `make bench`: what an ID costs, beside the other ways to make one.
//!
//! All contenders run in one server, in one run, in turn, so that whatever else
//! the machine does meets all alike. What comes out is a document and its plots;
//! no figure in them is typed in by hand, and none fails the run.
//!
//! - [`machine`]: what it ran on
//! - [`peers`]: the contenders, and how each makes an ID in SQL
//! - [`measure`]: taking turns; medians, spreads, ratios
//! - [`pgbench`]: many clients
//! - [`run`]: the server, how much is measured, and how far it is
//! - [`calls`], [`clients`], [`contention`], [`inserts`], [`copy`], [`wal`],
//!   [`index`], [`latency`], [`reading`], [`steady`]: a section of the document each
//! - [`scale`]: large tables, a document of their own
//! - [`criterion`]: the section on the algorithm crate, from what criterion left
//! - [`report`]: the document; [`plot`]: its pictures

mod calls;
mod clients;
mod contention;
mod copy;
mod criterion;
mod index;
mod inserts;
mod latency;
mod machine;
mod measure;
mod peers;
mod pgbench;
mod plot;
mod reading;
mod report;
mod run;
mod scale;
mod steady;
mod wal;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;

use report::Section;
use run::{Run, Scale};

/// Measures the extension beside the other ways to make an ID.
#[derive(Parser)]
struct Arguments {
    /// A few minutes with few rounds: to try it, not to quote it.
    #[arg(long)]
    quick: bool,

    /// Only these sections (several times, or with commas); the document has no others then.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,

    /// How often each contender that the document judges takes its turn.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,

    /// Where the first page `benchmarks.md` and the directory `benchmarks` go.
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,

    /// Where criterion has left its measurements of the algorithm crate.
    #[arg(long, value_name = "DIR")]
    criterion: Option<PathBuf>,

    /// What became of looking for other extensions: a line each, the source,
    /// the name and the outcome with tabs between.
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

/// In the order of the document. WAL comes from what the parts before it saw.
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

/// What is measured only when it is asked for, and alone.
const LARGE: Part = Part {
    name: "scale",
    expected: scale::expected,
    measure: scale::section,
};

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let large = arguments.only == [LARGE.name];
    if let Some(unknown) = arguments
        .only
        .iter()
        .find(|only| !large && !PARTS.iter().any(|part| part.name == **only))
    {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!(
            "there is no section {unknown:?}; there are {}, and alone {}",
            names.join(", "),
            LARGE.name
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
    // Read before the run, so that a wrong path is no surprise at its end.
    let algorithm = arguments
        .criterion
        .as_deref()
        .map(criterion::section)
        .transpose()?;
    let searched = arguments
        .searched
        .map(std::fs::read_to_string)
        .transpose()?;

    let mut report = report::Report::new(machine::describe(), scale, searched);
    let run = Run::start(scale)?;
    report.server(&run)?;
    let all = if large {
        std::slice::from_ref(&LARGE)
    } else {
        PARTS
    };
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
    let large = if large { "-large-tables" } else { "" };
    report.write(&arguments.out, &format!("postgresql-{major}{large}"))
}
