//! What a run showed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};

use super::sessions::STATEMENT;
use super::{PGBENCH_CLIENTS, Protocol, SESSIONS, Size};
use crate::ids::grouped;

/// A statement or transaction that took long.
#[derive(Debug, Clone)]
pub struct Stall {
    /// Its duration.
    pub took: Duration,
    /// What it was.
    pub whose: &'static str,
    /// When it ended.
    pub ended: SystemTime,
}

/// The stalls of all writers.
pub(super) struct Stalls {
    /// During the migrations.
    during: Vec<Stall>,
    /// Before and after them.
    alone: Vec<Stall>,
}

impl Stalls {
    /// Separates the stalls by the time of the migrations.
    pub(super) fn new(stalls: Vec<Stall>, began: SystemTime, ended: SystemTime) -> Self {
        let (during, alone) = stalls
            .into_iter()
            .partition(|stall| stall.ended > began && stall.ended - stall.took < ended);
        Self { during, alone }
    }

    pub(super) fn longest(&self) -> Stall {
        longest(&self.during)
    }

    pub(super) fn longest_alone(&self) -> Stall {
        longest(&self.alone)
    }

    pub(super) fn longest_statement(&self) -> Duration {
        let statements = self.during.iter().filter(|stall| stall.whose == STATEMENT);
        statements.map(|stall| stall.took).max().unwrap_or_default()
    }

    /// How many took more than a quarter of a second.
    pub(super) fn long(&self) -> usize {
        let limit = Duration::from_millis(250);
        self.during.iter().filter(|it| it.took > limit).count()
    }
}

fn longest(stalls: &[Stall]) -> Stall {
    let longest = stalls.iter().max_by_key(|stall| stall.took);
    longest.cloned().unwrap_or(Stall {
        took: Duration::ZERO,
        whose: "none",
        ended: SystemTime::UNIX_EPOCH,
    })
}

/// One step that was run.
#[derive(Debug, Clone)]
pub struct Done {
    /// The table whose key is migrated.
    pub table: &'static str,
    /// The beginning of the statement.
    pub title: String,
    /// What it does.
    pub what: String,
    /// How often the lock was not acquired in time.
    pub retries: usize,
    /// How long it took, retries and pauses included.
    pub took: Duration,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
}

/// The results of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// How statements were sent.
    pub protocol: Protocol,
    /// How much there was to migrate.
    pub size: Size,
    /// Rows of the migrated and the referencing tables at the end.
    pub rows: i64,
    /// The steps of both migrations.
    pub steps: Vec<Done>,
    /// Transactions of `pgbench` with an order, and TPC-B-like ones.
    pub transactions: [i64; 2],
    /// Statements of the sessions of this program.
    pub statements: u64,
    /// Clients of `pgbench` that ended at an error and were started again.
    pub aborts: usize,
    /// Errors in the server's log, by application and SQLSTATE.
    pub errors: BTreeMap<(String, String), usize>,
    /// The longest statement or transaction of a writer without a migration.
    pub longest_alone: Stall,
    /// The same during the migrations.
    pub longest: Stall,
    /// The longest statement of a session of this program.
    pub longest_statement: Duration,
    /// How many statements and transactions took more than a quarter of a second
    /// during the migrations.
    pub long: usize,
    /// The steps during the longest of them.
    pub longest_during: String,
    /// IDs that clients received in transactions that were committed.
    pub ids: i64,
    /// How many of those are snowflake IDs.
    pub snowflake_ids: i64,
    /// IDs, rows, lines and updates that are missing.
    pub lost: i64,
    /// When each transaction of `pgbench` ended, and how long it took.
    pub latencies: Vec<(SystemTime, Duration)>,
}

impl Report {
    /// Errors of writers with this SQLSTATE, or with any if it is `None`.
    pub fn errors_of_writers(&self, sqlstate: Option<&str>) -> usize {
        self.errors
            .iter()
            .filter(|((application, _), _)| application != "migration")
            .filter(|((_, code), _)| sqlstate.is_none_or(|wanted| wanted == code))
            .map(|(_, count)| count)
            .sum()
    }

    /// Fails if something was lost, or a writer received another error than 0A000
    /// for a prepared statement.
    pub fn verdict(&self) -> Result<()> {
        ensure!(self.lost == 0, "{} rows or IDs were lost", self.lost);
        let allowed = match self.protocol {
            Protocol::Simple => 0,
            Protocol::Prepared => self.errors_of_writers(Some("0A000")),
        };
        ensure!(
            self.errors_of_writers(None) == allowed,
            "writers received errors: {:?}",
            self.errors
        );
        if self.size.keep_sequence {
            ensure!(
                self.snowflake_ids == 0,
                "the sequence was not kept: {} snowflake IDs",
                self.snowflake_ids
            );
        } else {
            ensure!(
                self.snowflake_ids > 0 && self.snowflake_ids < self.ids,
                "the run needs IDs from before and from after the migration"
            );
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.protocol.name();
        for step in &self.steps {
            writeln!(
                formatter,
                "online load ({name}): {:>8.2} s {}{}: {}",
                step.took.as_secs_f64(),
                step.table,
                match step.retries {
                    0 => String::new(),
                    retries => format!(", {retries} times without its lock"),
                },
                step.title
            )?;
        }
        writeln!(
            formatter,
            "online load ({name}): {} rows migrated in {:.1} s beside {PGBENCH_CLIENTS} clients of pgbench -M {name} \
             ({} transactions with an order, {} TPC-B-like) and {SESSIONS} sessions ({} statements)",
            grouped(self.rows.unsigned_abs()),
            self.steps
                .iter()
                .map(|step| step.took)
                .sum::<Duration>()
                .as_secs_f64(),
            grouped(self.transactions[0].unsigned_abs()),
            grouped(self.transactions[1].unsigned_abs()),
            grouped(self.statements),
        )?;
        if self.errors.is_empty() {
            writeln!(formatter, "online load ({name}): no errors")?;
        }
        for ((application, sqlstate), count) in &self.errors {
            let why = match sqlstate.as_str() {
                "0A000" => {
                    ": cached plan must not change result type; once for each connection that had \
                     prepared a statement that returns the ID"
                }
                "55P03" => ": the lock was not acquired in time; the statement is repeated",
                _ => "",
            };
            writeln!(
                formatter,
                "online load ({name}): {count} errors {sqlstate} of {application}{why}"
            )?;
        }
        writeln!(
            formatter,
            "online load ({name}): {} clients of pgbench ended at an error and were started again",
            self.aborts
        )?;
        writeln!(
            formatter,
            "online load ({name}): longest stall {} ms ({}, {}); longest statement {} ms; {} took more than 250 ms; \
             longest without a migration {} ms ({})",
            self.longest.took.as_millis(),
            self.longest.whose,
            self.longest_during,
            self.longest_statement.as_millis(),
            self.long,
            self.longest_alone.took.as_millis(),
            self.longest_alone.whose,
        )?;
        write!(
            formatter,
            "online load ({name}): {} IDs that clients received checked, {} of them snowflake IDs; lost: {}",
            grouped(self.ids.unsigned_abs()),
            grouped(self.snowflake_ids.unsigned_abs()),
            self.lost
        )
    }
}

/// The steps during a stall.
pub(super) fn steps_during(steps: &[Done], stall: &Stall) -> String {
    let began = stall.ended - stall.took;
    let during: Vec<String> = steps
        .iter()
        .filter(|step| step.began < stall.ended && step.ended > began)
        .map(|step| format!("{}: {}", step.table, step.title))
        .collect();
    match during.is_empty() {
        true => "between steps".to_owned(),
        false => format!("during {}", during.join(" and ")),
    }
}
