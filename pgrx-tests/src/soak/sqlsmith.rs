//! SQLsmith beside a soak: statements at random, of everything in the catalog, from an ordinary
//! role. It does not judge their answers. The server judges: a build with assertions ends with
//! the first that fails, and XX000 is an error that no code expects.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cluster::{Cluster, ClusterBuilder};
use crate::ids::grouped;

/// The name of its sessions in the log.
const NAME: &str = "sqlsmith::dut";

/// How many of them there are.
const SESSIONS: u64 = 3;

/// Errors with XX000 of PostgreSQL itself, which it raises on a server without the extension
/// too: by functions for type modifiers and statistics, which take any argument from SQL, and
/// for a literal whose type is not known where one was expected.
const OF_POSTGRESQL: [&str; 4] = [
    "invalid INTERVAL typmod",
    "unrecognized interval typmod",
    "failed to find conversion function from unknown to ",
    "variadic arguments must be name/value pairs",
];

/// Its tables, and views with which the planner's part of the extension has to do.
const OBJECTS: &str = "
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION snowflake_migrate;
CREATE ROLE smith LOGIN;
GRANT CREATE ON SCHEMA public TO smith;
ALTER ROLE smith SET statement_timeout = '2s';
ALTER ROLE smith SET lock_timeout = '500ms';
ALTER ROLE smith SET work_mem = '1MB';
ALTER ROLE smith SET temp_file_limit = '100MB';
SET ROLE smith;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer int, note text);
CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), \"order\" bigint REFERENCES orders, amount numeric);
CREATE TABLE old (id serial PRIMARY KEY, kind smallint, at timestamptz DEFAULT now());
CREATE TABLE events (id bigint DEFAULT snowflake_nextval(), kind int) PARTITION BY RANGE (id);
CREATE TABLE events_all PARTITION OF events DEFAULT;
CREATE VIEW recent AS SELECT * FROM orders WHERE snowflake_timestamp(id) >= now() - interval '1 minute';
CREATE VIEW latest AS SELECT * FROM orders ORDER BY snowflake_timestamp(id) DESC LIMIT 10;
CREATE VIEW span AS SELECT min(snowflake_timestamp(id)), max(snowflake_timestamp(id)), count(*) FROM orders;
CREATE VIEW timed AS SELECT o.*, snowflake_timestamp(o.id) AS created, l.amount, snowflake_timestamp(l.id) AS line_created
    FROM orders AS o LEFT JOIN lines AS l ON l.\"order\" = o.id;
CREATE VIEW resolved AS SELECT * FROM orders WHERE id < snowflake_resolved_id();
CREATE VIEW hour AS SELECT * FROM events WHERE snowflake_between(id, now() - interval '1 hour', now());
INSERT INTO orders (customer, note) SELECT n % 10, 'note' FROM generate_series(1, 1000) AS n;
INSERT INTO lines (\"order\", amount) SELECT id, customer FROM orders;
INSERT INTO events (kind) SELECT n FROM generate_series(1, 1000) AS n;
INSERT INTO old (kind) SELECT n FROM generate_series(1, 100) AS n;
RESET ROLE";

/// What SQLsmith's statements ended with.
#[derive(Debug, Clone, Default)]
pub struct Statements {
    /// How many there were.
    pub statements: usize,
    /// Errors, by SQLSTATE.
    pub errors: BTreeMap<String, usize>,
    /// Those with XX000 that PostgreSQL raises without any extension.
    pub of_postgresql: usize,
    /// Unexpected lines of the log: XX000, failed assertions, crashes.
    pub unexpected: Vec<String>,
}

/// A server's settings, by which the log has what SQLsmith did.
pub(super) fn settings(builder: ClusterBuilder) -> ClusterBuilder {
    builder
        .conf("log_line_prefix", "%m [%p] %a %e ")
        .conf("log_min_messages", "error")
}

/// SQLsmith at work.
pub(super) struct Sqlsmith {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<()>>>,
    outputs: Vec<PathBuf>,
    /// Up to where the server's log was read.
    read: u64,
    so_far: Statements,
}

impl Sqlsmith {
    /// Starts the program of this path in a database.
    pub(super) fn start(
        program: PathBuf,
        cluster: &Cluster,
        database: &str,
        seed: u64,
    ) -> Result<Self> {
        cluster.connect_to(database)?.batch_execute(OBJECTS)?;
        let over = Arc::new(AtomicBool::new(false));
        let target = format!(
            "host={} port={} dbname={database} user=smith",
            cluster.sockets().display(),
            cluster.port()
        );
        let output = |number| cluster.parent().join(format!("sqlsmith.{number}"));
        let outputs: Vec<_> = (0..SESSIONS).map(output).collect();
        let threads = (0..).zip(&outputs).map(|(number, output)| {
            let (program, target, output) = (program.clone(), target.clone(), output.clone());
            let over = Arc::clone(&over);
            // The seeds of one follow each other.
            let seed = seed % 1_000_000 + number * 1_000_000;
            thread::spawn(move || run(&program, &target, &output, seed, &over))
        });
        Ok(Self {
            threads: threads.collect(),
            over,
            outputs,
            read: 0,
            so_far: Statements::default(),
        })
    }

    /// Reads what the server has logged since.
    pub(super) fn read(&mut self, cluster: &Cluster) -> Result<()> {
        ensure!(
            !self.threads.iter().any(JoinHandle::is_finished),
            "SQLsmith cannot be run"
        );
        let (log, end) = cluster.log_after(self.read)?;
        self.read = end;
        let lines: Vec<&str> = log.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            self.so_far.count(line, lines.get(number + 1).copied());
        }
        Ok(())
    }

    /// Ends it.
    pub(super) fn end(mut self, cluster: &Cluster) -> Result<Statements> {
        self.read(cluster)?;
        self.over.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread
                .join()
                .ok()
                .context("the thread of SQLsmith panicked")??;
        }
        for output in &self.outputs {
            // A query is printed when it has been made.
            let printed = std::fs::read(output)?;
            self.so_far.statements += printed.iter().filter(|&&byte| byte == b';').count();
        }
        Ok(std::mem::take(&mut self.so_far))
    }
}

impl Drop for Sqlsmith {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

impl Statements {
    fn count(&mut self, line: &str, next: Option<&str>) {
        let is_crash = line.contains("TRAP:")
            || line.contains("PANIC:")
            // Killed with SIGKILL by the soak.
            || (line.contains("was terminated by signal") && !line.contains("by signal 9"));
        let error = line
            .split_once(&format!("] {NAME} "))
            .and_then(|(_, rest)| rest.split_once(' '))
            .filter(|(_, rest)| rest.starts_with("ERROR:") || rest.starts_with("FATAL:"));
        if let Some((sqlstate, _)) = error {
            *self.errors.entry(sqlstate.to_owned()).or_default() += 1;
        }
        // Its DETAIL, HINT and STATEMENT have the SQLSTATE too.
        let is_internal = line.contains(" XX000 ERROR:") || line.contains(" XX000 FATAL:");
        if is_internal && OF_POSTGRESQL.iter().any(|known| line.contains(known)) {
            self.of_postgresql += 1;
        } else if is_crash || is_internal {
            let next = next.unwrap_or_default();
            self.unexpected.push(format!("{line}\n    {next}"));
        }
    }
}

impl fmt::Display for Statements {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: usize = self.errors.values().sum();
        writeln!(
            formatter,
            "sqlsmith: {} statements, {} errors, {} unexpected, {} times XX000 of PostgreSQL's own functions",
            grouped(self.statements),
            grouped(errors),
            grouped(self.unexpected.len()),
            grouped(self.of_postgresql)
        )?;
        let mut by_count: Vec<_> = self.errors.iter().collect();
        by_count.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (sqlstate, count) in by_count {
            writeln!(formatter, "sqlsmith: {:>9} x {sqlstate}", grouped(*count))?;
        }
        for line in &self.unexpected {
            writeln!(formatter, "sqlsmith: {line}")?;
        }
        Ok(())
    }
}

/// Runs it again and again, with one seed after the other: it may end when the server does.
fn run(
    program: &PathBuf,
    target: &str,
    output: &PathBuf,
    mut seed: u64,
    over: &AtomicBool,
) -> Result<()> {
    let file = File::create(output)?;
    while !over.load(Ordering::SeqCst) {
        let mut child = Command::new(program)
            .args(["--exclude-catalog", "--dump-all-queries"])
            .arg(format!("--seed={seed}"))
            .arg(format!("--target={target}"))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        wait(&mut child, over)?;
        seed += 1;
        // The server may be starting.
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

fn wait(child: &mut Child, over: &AtomicBool) -> Result<()> {
    while child.try_wait()?.is_none() {
        if over.load(Ordering::SeqCst) {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unexpected_is_counted() {
        let log = "\
2026-11-25 22:40:59.828 UTC [1] sqlsmith::dut 42883 ERROR:  operator does not exist
2026-11-25 22:40:59.828 UTC [1] sqlsmith::dut XX000 ERROR:  invalid INTERVAL typmod: 0x9
2026-11-25 22:40:59.828 UTC [1] sqlsmith::dut XX000 ERROR:  cache lookup failed for type 0
2026-11-25 22:40:59.828 UTC [1] sqlsmith::dut XX000 STATEMENT:  select
TRAP: failed Assert(\"false\"), File: \"x.c\"
2026-11-25 22:40:59.828 UTC [2]  00000 LOG:  server process (PID 1) was terminated by signal 6: Aborted
2026-11-25 22:40:59.828 UTC [2]  00000 LOG:  server process (PID 3) was terminated by signal 9: Killed";
        let mut statements = Statements::default();
        for line in log.lines() {
            statements.count(line, None);
        }
        assert_eq!(statements.of_postgresql, 1);
        assert_eq!(
            statements.unexpected.len(),
            3,
            "{:?}",
            statements.unexpected
        );
        assert_eq!(statements.errors["42883"], 1);
        assert_eq!(statements.errors["XX000"], 2);
    }
}
