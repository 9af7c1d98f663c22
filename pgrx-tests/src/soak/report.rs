//! What a soak counts.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Fault, Statements};
use crate::ids::{Tally, grouped};

/// What happened after the faults of one kind.
#[derive(Debug, Clone, Default)]
pub struct Count {
    /// How many there were.
    pub faults: usize,
    /// IDs that arrived between the first ID after a fault and the next fault.
    pub ids_after: usize,
    /// The longest time until the first ID after a fault.
    pub longest_outage: Duration,
}

/// The results of a soak.
#[derive(Debug, Clone)]
pub struct Report {
    /// The seed of the choice of faults.
    pub seed: u64,
    /// What SQLsmith did beside it, if it was run.
    pub statements: Option<Statements>,
    /// What of the server's trace was accepted: all of it.
    pub trace: String,
    /// How long it took.
    pub took: Duration,
    /// By kind of fault.
    pub counts: BTreeMap<Fault, Count>,
    /// Counts over all IDs.
    pub tally: Tally,
    /// How often an ID of a connection was not greater than the one before it.
    pub decreases: usize,
    /// Statements that failed. There should be none.
    pub errors: usize,
    /// The longest statement.
    pub longest: Duration,
}

impl Report {
    /// How many faults there were.
    pub fn faults(&self) -> usize {
        self.counts.values().map(|count| count.faults).sum()
    }

    /// Fails if a check of the IDs failed.
    pub fn verdict(&self) -> Result<()> {
        ensure!(
            self.tally.duplicates == 0,
            "an ID is repeated: {}",
            self.tally
        );
        ensure!(self.decreases == 0, "IDs of a session decreased");
        ensure!(self.errors == 0, "statements failed");
        ensure!(self.faults() > 0, "there was no fault");
        if let Some(statements) = &self.statements {
            ensure!(statements.statements > 0, "SQLsmith has run no statement");
            ensure!(
                statements.unexpected.is_empty(),
                "XX000, an assertion or a crash"
            );
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, count) in &self.counts {
            writeln!(
                formatter,
                "soak: {:>4} x {}: {} IDs after it, the first within {} ms",
                count.faults,
                fault.name(),
                grouped(count.ids_after),
                count.longest_outage.as_millis()
            )?;
        }
        if let Some(statements) = &self.statements {
            write!(formatter, "{statements}")?;
        }
        writeln!(formatter, "soak: trace: {}", self.trace)?;
        write!(
            formatter,
            "soak: {} faults in {} s, seed {}: {}, {} out of order, {} errors, longest statement {} ms",
            self.faults(),
            self.took.as_secs(),
            self.seed,
            self.tally,
            self.decreases,
            self.errors,
            self.longest.as_millis()
        )
    }
}
