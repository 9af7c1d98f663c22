//! What a client's program writes down for scripts/test-clients: see README.md.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};

/// The files of the directory `$OUT`.
pub struct Report {
    ids: BufWriter<File>,
    checks: File,
}

impl Report {
    pub fn new() -> io::Result<Self> {
        let out = std::env::var("OUT").map_err(io::Error::other)?;
        let append = |name| {
            let path = format!("{out}/{name}");
            OpenOptions::new().create(true).append(true).open(path)
        };
        Ok(Self {
            ids: BufWriter::new(append("ids")?),
            checks: append("checks")?,
        })
    }

    /// The client returned this ID for the row with this note.
    pub fn id(&mut self, table: &str, note: &str, id: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.ids, "{table}\t{note}\t{id}")
    }

    pub fn check(&mut self, holds: bool, what: &str) -> io::Result<()> {
        let result = if holds { "ok" } else { "failed" };
        writeln!(self.checks, "{result}\t{what}")
    }

    /// The IDs are buffered: without this, an error would be lost.
    pub fn finish(mut self) -> io::Result<()> {
        self.ids.flush()
    }
}

/// How many of these IDs a program gets wrong that reads JSON numbers as
/// JavaScript does, into 64-bit floating point numbers.
pub fn changed_by_javascript(json: &str) -> serde_json::Result<usize> {
    #[derive(serde::Deserialize)]
    struct Double {
        id: f64,
    }
    #[derive(serde::Deserialize)]
    struct Exact {
        id: i64,
    }
    let doubles: Vec<Double> = serde_json::from_str(json)?;
    let exact: Vec<Exact> = serde_json::from_str(json)?;
    let pairs = doubles.iter().zip(&exact);
    Ok(pairs
        .filter(|(double, exact)| double.id as i64 != exact.id)
        .count())
}
