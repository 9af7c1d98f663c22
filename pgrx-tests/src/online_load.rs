//! Online migrations beside writers: what the writers notice, and whether
//! anything is lost.
//!
//! Two keys are migrated, one after the other: that of `orders`, an identity
//! column that `order_lines` references, and that of `pgbench_accounts`. At the
//! same time four clients of the real `pgbench` write orders and its own
//! TPC-B-like transactions. Some sessions of this program do the same as an
//! application would, and keep each ID that they receive. Before the first lock
//! and before the swap of each key, a transaction that has written to the tables
//! is idle, until the sessions have committed while a step waits for it.
//!
//! `pgbench` ends a client at an error (`--max-tries` covers serialization
//! failures and deadlocks only). So each of its clients is a process that is
//! started again, as an application reconnects. The sessions of this program
//! prepare the statement again and repeat the transaction.

mod check;
mod migration;
mod pgbench;
mod picture;
mod report;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use postgres::{Config, NoTls};

use crate::cluster::{Cluster, ClusterBuilder};
use crate::server::Server;
use crate::wait;

use check::{check, errors};
use migration::{Migrated, migrate};
use pgbench::{Logged, Pgbench, pgbench};
pub use report::{Done, Report, Stall};
use report::{Stalls, steps_during};
use sessions::{Received, session};

/// Clients of `pgbench`.
const PGBENCH_CLIENTS: usize = 4;

/// Sessions that keep the IDs they receive.
const SESSIONS: usize = 3;

/// Anything shorter is no stall.
const NOTICED: Duration = Duration::from_millis(10);

/// The owner of the tables, who migrates them and is no superuser.
const OWNER: &str = "shop";

/// What is migrated.
const TARGETS: [(&str, &str); 2] = [
    ("orders", "'orders'"),
    ("pgbench_accounts", "'pgbench_accounts', 'aid'"),
];

/// The arguments of a plan.
fn arguments(target: &str, size: Size) -> String {
    format!("{target}, keep_sequence => {}", size.keep_sequence)
}

/// The size of a run, and what disturbs it.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// `pgbench`'s scale factor, of 100,000 accounts each.
    pub scale: u32,
    /// Orders, each with one line.
    pub orders: u32,
    /// How long the idle transactions last at least.
    pub idle: Duration,
    /// How long the writers work before and after the migrations.
    pub alone: Duration,
    /// Whether the keys are only widened, and keep their sequences.
    pub keep_sequence: bool,
    /// Whether the server flushes to the disk, as in production.
    pub durable: bool,
    /// A fault that the check must detect.
    pub sabotage: Option<Sabotage>,
}

/// A fault that the check must detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The plan for a maintenance window is run beside the writers.
    MaintenancePlan,
    /// A line whose ID a client received is deleted at the end.
    LostRow,
}

/// How clients send their statements: `pgbench -M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Each statement is sent as text.
    Simple,
    /// Statements are prepared once and executed repeatedly.
    Prepared,
}

impl Protocol {
    /// Its name in `pgbench`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Prepared => "prepared",
        }
    }
}

/// Runs both migrations beside writers on a server of its own.
///
/// # Errors
/// If it cannot be run to its end. Errors of writers and lost rows are no errors,
/// but in the report.
pub fn run(
    builder: ClusterBuilder,
    size: Size,
    protocol: Protocol,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let switch = if size.durable { "on" } else { "off" };
    let cluster = builder
        .conf("snowflake.node_id", 1)
        .conf("log_line_prefix", "%m [%p] %e %a ")
        .conf("max_wal_size", "8GB")
        .conf("fsync", switch)
        .conf("full_page_writes", switch)
        .start()?;
    let begun = Instant::now();
    set_up(&cluster, size)?;
    progress(&format!("tables filled in {} s", begun.elapsed().as_secs()));

    let pgbench = Pgbench::new(&cluster, size, protocol)?;
    let run = run_writers(&cluster, size, protocol, &pgbench, &mut progress)?;
    let Logged {
        transactions,
        mut stalls,
        latencies,
    } = pgbench.read_logs()?;
    stalls.extend(run.sessions.iter().flat_map(|it| it.stalls.iter().cloned()));
    let migrated = run.migrated;
    let stalls = Stalls::new(stalls, migrated.began, migrated.ended);
    if size.sabotage == Some(Sabotage::LostRow) {
        cluster.connect_to(OWNER)?.batch_execute(
            "DELETE FROM order_lines WHERE id = (SELECT max(line_id) FROM received)",
        )?;
    }
    let checked = check(&cluster, size, transactions, &run.sessions, migrated.idle)?;
    let longest = stalls.longest();
    Ok(Report {
        protocol,
        size,
        rows: checked.rows,
        longest_during: steps_during(&migrated.steps, &longest),
        steps: migrated.steps,
        transactions,
        statements: run.sessions.iter().map(|it| it.statements).sum(),
        aborts: run.aborts,
        errors: errors(&cluster.log()?),
        longest_alone: stalls.longest_alone(),
        longest,
        longest_statement: stalls.longest_statement(),
        long: stalls.long(),
        ids: checked.ids,
        snowflake_ids: checked.snowflake_ids,
        lost: checked.lost,
        latencies,
    })
}

/// What the writers did and received.
struct WritersRun {
    migrated: Migrated,
    /// How often a client of `pgbench` ended at an error.
    aborts: usize,
    sessions: Vec<Received>,
}

/// How many transactions the sessions of this program have committed.
#[derive(Debug, Clone, Default)]
struct Committed {
    transactions: Arc<AtomicUsize>,
    /// One of the sessions has ended at an error, which is the result of the run.
    has_failed: Arc<AtomicBool>,
}

impl Committed {
    /// Several of each session, more or less.
    const ENOUGH: usize = 10 * SESSIONS;

    /// A busy machine needs its time.
    const LIMIT: Duration = Duration::from_secs(200);

    fn add_one(&self) {
        self.transactions.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until the sessions have committed more, or one of them has failed.
    fn wait_for_more(&self) -> Result<()> {
        let wanted = self.transactions.load(Ordering::SeqCst) + Self::ENOUGH;
        wait::until("the writers, which stand still", Self::LIMIT, || {
            Ok(self.transactions.load(Ordering::SeqCst) >= wanted
                || self.has_failed.load(Ordering::SeqCst))
        })
    }
}

/// Runs the writers, and the migrations in the middle of that.
fn run_writers(
    cluster: &Cluster,
    size: Size,
    protocol: Protocol,
    pgbench: &Pgbench,
    progress: &mut impl FnMut(&str),
) -> Result<WritersRun> {
    let stop = &AtomicBool::new(false);
    let committed = &Committed::default();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..PGBENCH_CLIENTS)
            .map(|client| scope.spawn(move || pgbench.client(client, stop)))
            .collect();
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| {
                scope.spawn(move || {
                    session(cluster, size, protocol, number, committed, stop)
                        .inspect_err(|_| committed.has_failed.store(true, Ordering::SeqCst))
                })
            })
            .collect();
        // The writers receive IDs before the migration and after it.
        thread::sleep(size.alone);
        let migrated = committed.wait_for_more().and_then(|()| {
            let migrated = migrate(cluster, size, committed, progress)?;
            thread::sleep(size.alone);
            committed.wait_for_more()?;
            Ok(migrated)
        });
        stop.store(true, Ordering::SeqCst);
        let mut run = WritersRun {
            migrated: migrated?,
            aborts: 0,
            sessions: Vec::new(),
        };
        for client in clients {
            run.aborts += client.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        for session in sessions {
            run.sessions.push(
                session
                    .join()
                    .map_err(|_| anyhow!("a session panicked"))??,
            );
        }
        Ok(run)
    })
}

/// Creates the tables, with rows, in a database of their owner.
fn set_up(cluster: &Cluster, size: Size) -> Result<()> {
    let mut superuser = cluster.connect()?;
    superuser.batch_execute(&format!("CREATE ROLE {OWNER} LOGIN"))?;
    superuser.batch_execute(&format!("CREATE DATABASE {OWNER} OWNER {OWNER}"))?;
    cluster
        .connect_to(OWNER)?
        .batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    let filled = pgbench(cluster)
        .args(["-i", "-q", "-s", &size.scale.to_string()])
        .output()
        .context("running pgbench -i")?;
    ensure!(
        filled.status.success(),
        "pgbench -i failed: {}",
        String::from_utf8_lossy(&filled.stderr)
    );
    let mut client = config(cluster, "migration").connect(NoTls)?;
    client.batch_execute(&format!(
        "SET statement_timeout = 0;
         CREATE TABLE orders (id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, customer integer NOT NULL,
                              total bigint NOT NULL DEFAULT 0, note text NOT NULL);
         CREATE TABLE order_lines (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                                   order_id integer NOT NULL REFERENCES orders, quantity integer NOT NULL);
         CREATE TABLE received (order_id bigint NOT NULL, line_id bigint NOT NULL);
         INSERT INTO orders (customer, note) SELECT n % 1000, 'there before' FROM generate_series(1, {0}) AS n;
         INSERT INTO order_lines (order_id, quantity) SELECT id, 1 FROM orders;
         CREATE INDEX ON order_lines (order_id)",
        size.orders
    ))?;
    client.batch_execute("VACUUM ANALYZE orders, order_lines")?;
    Ok(())
}

fn config(server: &Server, application: &str) -> Config {
    let mut config = server.config(OWNER, OWNER);
    config.application_name(application);
    config
}
