//! What a run showed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use postgres::Client;

use super::reader::Seen;
use super::shared::PreparedCounts;
use super::{Comparison, Count, Fault, Kind, Spec};
use crate::ids::grouped;

/// How many lost rows are described.
const DESCRIBED: usize = 5;

/// What one reader saw.
#[derive(Debug, Clone)]
pub struct ReaderReport {
    /// How it reads.
    pub name: String,
    /// Whether it reads without a bound, and is to lose rows.
    pub is_control: bool,
    /// What it saw beside what is in the table.
    pub found: Comparison,
    /// Reads that reached the last row that could be read, while the writers worked.
    pub at_the_end: u64,
    /// The longest time without a new row.
    pub longest_pause: Duration,
    /// Some of the lost rows.
    pub examples: Vec<String>,
}

/// Compares what a reader saw with the table.
pub(super) fn of_reader(
    client: &mut Client,
    spec: &Spec,
    seen: Seen,
    table: &[i64],
    faults: &[(i64, Fault)],
) -> Result<ReaderReport> {
    let found = Comparison::new(seen.ids, table);
    let mut examples = Vec::new();
    if !spec.is_control() {
        for &id in found.lost.iter().take(DESCRIBED) {
            let row = client.query_one("SELECT n FROM events WHERE id = $1", &[&id])?;
            let kind = Kind::of_number(row.get(0)).map_or("unknown", Kind::name);
            examples.push(describe(id, kind, &seen.reads, faults));
        }
    }
    Ok(ReaderReport {
        name: spec.name(),
        is_control: spec.is_control(),
        found,
        at_the_end: seen.at_the_end,
        longest_pause: seen.longest_pause,
        examples,
    })
}

/// When a reader passed an ID that it did not see.
fn describe(id: i64, kind: &str, reads: &[(i64, i64)], faults: &[(i64, Fault)]) -> String {
    let Some((last, at)) = reads.iter().find(|(last, _)| *last > id) else {
        return format!("{id} ({kind}), which is after the last row of the reader");
    };
    let before = faults.iter().rev().find(|(time, _)| time <= at);
    let fault = before.map_or("no fault".to_owned(), |(time, fault)| {
        format!("{} ms after: {}", (at - time) / 1_000, fault.name())
    });
    format!("{id} ({kind}), passed by a read up to {last} ({fault})")
}

/// The results of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed of all choices.
    pub seed: u64,
    /// Sessions that wrote.
    pub writers: usize,
    /// `synchronous_commit`.
    pub synchronous_commit: bool,
    /// How long the sessions worked.
    pub took: Duration,
    /// Rows in the table at the end.
    pub rows: usize,
    /// Rows whose commit a writer has received.
    pub committed: u64,
    /// Transactions, by kind.
    pub kinds: BTreeMap<Kind, Count>,
    /// Faults, by kind.
    pub faults: BTreeMap<Fault, usize>,
    /// What the readers saw.
    pub readers: Vec<ReaderReport>,
    /// How prepared transactions ended.
    pub prepared: PreparedCounts,
    /// Statements that a fault ended.
    pub ended_by_faults: u64,
    /// Other errors. There should be none.
    pub unexpected: BTreeMap<String, u64>,
}

impl Report {
    /// How many faults there were.
    pub fn faults(&self) -> usize {
        self.faults.values().sum()
    }

    /// Rows that the controls lost.
    pub fn lost_by_controls(&self) -> usize {
        let controls = self.readers.iter().filter(|reader| reader.is_control);
        controls.map(|reader| reader.found.lost.len()).sum()
    }

    /// Fails if a reader lost a row or saw it twice or out of order, or if the
    /// load was one in which that could not happen.
    pub fn verdict(&self) -> Result<()> {
        for reader in self.readers.iter().filter(|reader| !reader.is_control) {
            let (name, found) = (&reader.name, &reader.found);
            ensure!(
                found.lost.is_empty(),
                "{name}: {} rows lost",
                found.lost.len()
            );
            ensure!(found.twice == 0, "{name}: {} rows twice", found.twice);
            ensure!(
                found.out_of_order == 0,
                "{name}: {} rows out of order",
                found.out_of_order
            );
            // A crash may undo an asynchronous commit that was visible.
            ensure!(
                found.gone.is_empty() || !self.synchronous_commit,
                "{name}: {} IDs seen that are not in the table",
                found.gone.len()
            );
        }
        ensure!(
            self.readers.iter().any(|reader| reader.at_the_end > 0),
            "the readers were always behind the writers"
        );
        ensure!(
            !self.synchronous_commit || self.rows as u64 >= self.committed,
            "{} rows were committed, but {} are there",
            self.committed,
            self.rows
        );
        ensure!(
            self.unexpected.is_empty(),
            "statements failed: {:?}",
            self.unexpected
        );
        ensure!(
            self.lost_by_controls() > 0,
            "the readers without a bound lost no row"
        );
        Ok(())
    }

    fn write_readers(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "new rows: {:<42} {:>12} {:>9} {:>6} {:>6} {:>6} {:>11} {:>10}",
            "reader", "rows seen", "lost", "twice", "order", "gone", "at the end", "longest"
        )?;
        for reader in &self.readers {
            let found = &reader.found;
            writeln!(
                formatter,
                "new rows: {:<42} {:>12} {:>9} {:>6} {:>6} {:>6} {:>11} {:>7} ms",
                reader.name,
                grouped(found.seen),
                grouped(found.lost.len()),
                grouped(found.twice),
                grouped(found.out_of_order),
                grouped(found.gone.len()),
                grouped(reader.at_the_end),
                reader.longest_pause.as_millis()
            )?;
            for example in &reader.examples {
                writeln!(formatter, "new rows:     lost: {example}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "new rows: {:<42} {:>12} {:>12} {:>9} {:>12}",
            "transactions", "committed", "rolled back", "failed", "rows"
        )?;
        for (kind, count) in &self.kinds {
            writeln!(
                formatter,
                "new rows: {:<42} {:>12} {:>12} {:>9} {:>12}",
                kind.name(),
                grouped(count.committed),
                grouped(count.rolled_back),
                grouped(count.failed),
                grouped(count.rows)
            )?;
        }
        writeln!(
            formatter,
            "new rows: prepared transactions: {} committed, {} rolled back, {} of these by another session",
            self.prepared.committed, self.prepared.rolled_back, self.prepared.by_another
        )?;
        for (fault, count) in &self.faults {
            writeln!(formatter, "new rows: {count:>4} x {}", fault.name())?;
        }
        self.write_readers(formatter)?;
        for (error, count) in &self.unexpected {
            writeln!(formatter, "new rows: {count} x unexpected: {error}")?;
        }
        write!(
            formatter,
            "new rows: {} rows by {} writers in {} s, synchronous_commit {}, seed {}: {} faults, {} statements ended by \
             them, {} rows lost by the readers without a bound",
            grouped(self.rows),
            self.writers,
            self.took.as_secs(),
            if self.synchronous_commit { "on" } else { "off" },
            self.seed,
            self.faults(),
            grouped(self.ended_by_faults),
            grouped(self.lost_by_controls())
        )
    }
}
