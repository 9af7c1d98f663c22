//! Readers that follow a table by its key beside writers and faults: whether each
//! of them sees every row once, and in order.
//!
//! The readers run `WHERE id > $last AND id < snowflake_resolved_id() ORDER BY id`
//! in all the ways in which a program may run it ([`Way`]). Some more readers, the
//! controls, run it without the second condition. They lose rows, which shows that
//! the load is one in which rows can be lost. The writers draw, keep and insert IDs
//! in all ways that hold a transaction open ([`Kind`]), and faults end sessions,
//! end the server and set its clock ([`Fault`]).
//!
//! A reader keeps each ID that it saw. At the end they are compared with the table.
//! A reader that is far behind cannot lose a row. So the writers pause while a
//! reader is behind, and the report counts the reads that reached the last row.

mod check;
mod fault;
mod pooler;
mod reader;
mod report;
mod shared;
mod transaction;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::clock::Offset;
use crate::cluster::{Cluster, ClusterBuilder};
use crate::ids::fetch;
use crate::query::Ask;
use crate::threads::SetOnDrop;
use crate::time_limit;
use crate::wait;

pub use check::Comparison;
pub use fault::Fault;
use fault::Faults;
use pooler::Pooler;
pub use pooler::pgbouncer;
pub use reader::{Bound, Way};
use reader::{Reader, Seen};
pub use report::{ReaderReport, Report};
use shared::Shared;
pub use transaction::Kind;
pub use writer::Count;
use writer::Writer;

/// How long the sessions may take to resume after a fault, and the readers to
/// reach the last row at the end.
const TIMEOUT: Duration = Duration::from_secs(180);

/// How many rows a reader may be behind before the writers pause, unless each of
/// its reads takes long.
const BEHIND: u64 = 10_000;

/// Rows of the table that parallel workers scan, drawing an ID for each row.
const MANY: usize = 1_000;

/// The size of a run, and what disturbs it.
#[derive(Debug, Clone)]
pub struct Size {
    /// Sessions that write.
    pub writers: usize,
    /// How many rows must be committed at least.
    pub rows: u64,
    /// How long the writers work at least.
    pub length: Duration,
    /// The pause between two faults; none if there are to be no faults.
    pub pause: Option<Duration>,
    /// `synchronous_commit`.
    pub synchronous_commit: bool,
    /// What ends the reads.
    pub bound: Bound,
    /// The program of `PgBouncer`, for a reader through it.
    pub pgbouncer: Option<PathBuf>,
    /// The seed of all choices.
    pub seed: u64,
}

/// Runs writers, readers and faults on a server of its own.
///
/// # Errors
/// If it cannot be run to its end. Lost rows are no error, but in the report.
pub fn run(
    builder: ClusterBuilder,
    size: &Size,
    limit: Duration,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let on_or_off = if size.synchronous_commit { "on" } else { "off" };
    let mut cluster = builder
        .conf("snowflake.node_id", 1)
        .conf("synchronous_commit", on_or_off)
        .conf("max_prepared_transactions", 20)
        .conf("max_worker_processes", 40)
        .conf("max_parallel_workers", 32)
        .conf("shared_buffers", "512MB")
        .conf("max_wal_size", "4GB")
        .movable_clock()
        .time_limit(limit.max(time_limit::DEFAULT))
        .start()?;
    set_up(&cluster, size.bound)?;
    let pooler = match &size.pgbouncer {
        Some(program) => Some(Pooler::start(&cluster, program)?),
        None => None,
    };
    let readers = readers(size, pooler.is_some());
    let shared = Shared::new(size.writers, &readers);
    let begun = Instant::now();
    let outcome = beside_faults(
        &mut cluster,
        size,
        &shared,
        &readers,
        pooler.as_ref(),
        &mut progress,
    )?;
    let took = begun.elapsed();
    progress("the readers have reached the last row; comparing");
    let mut client = cluster.connect()?;
    let table = fetch(&mut client, "SELECT id FROM events ORDER BY id")?;
    let mut reports = Vec::new();
    for (spec, seen) in readers.iter().zip(outcome.seen) {
        reports.push(report::of_reader(
            &mut client,
            spec,
            seen,
            &table,
            &outcome.faults,
        )?);
    }
    Ok(Report {
        seed: size.seed,
        writers: size.writers,
        synchronous_commit: size.synchronous_commit,
        took,
        rows: table.len(),
        committed: shared.committed(),
        kinds: outcome.kinds,
        faults: fault::counted(&outcome.faults),
        readers: reports,
        prepared: shared.prepared_counts(),
        ended_by_faults: shared.ended_by_faults(),
        unexpected: shared.unexpected(),
    })
}

/// What one reader does, and whether it is a control.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) way: Way,
    pub(crate) bound: Bound,
}

impl Spec {
    fn is_control(self) -> bool {
        self.bound == Bound::None
    }

    /// How many rows it may be behind before the writers pause; `None` for one that
    /// loses rows.
    fn behind(self) -> Option<u64> {
        match self.way {
            _ if self.is_control() => None,
            Way::SequentialScan => Some(reader::LIMIT_OF_SCAN as u64),
            _ => Some(BEHIND),
        }
    }
}

/// All readers of a run. Each of the controls is one of the others without its
/// bound.
fn readers(size: &Size, with_pooler: bool) -> Vec<Spec> {
    let bounded = Way::ALL
        .into_iter()
        .filter(|way| with_pooler || *way != Way::Pooler)
        .map(|way| Spec {
            way,
            bound: size.bound,
        });
    let controls = Way::CONTROLS.into_iter().map(|way| Spec {
        way,
        bound: Bound::None,
    });
    bounded.chain(controls).collect()
}

/// What the sessions and the faults have done.
struct Outcome {
    seen: Vec<Seen>,
    kinds: BTreeMap<Kind, Count>,
    /// The faults, and when they began, in microseconds since 1970.
    faults: Vec<(i64, Fault)>,
}

/// Runs the sessions to their end, and the faults beside them.
fn beside_faults(
    cluster: &mut Cluster,
    size: &Size,
    shared: &Shared,
    readers: &[Spec],
    pooler: Option<&Pooler>,
    progress: &mut impl FnMut(&str),
) -> Result<Outcome> {
    thread::scope(|scope| {
        let _abandon = SetOnDrop(shared.abandon_flag());
        let mut writers = Vec::new();
        for number in 0..size.writers {
            let mut config = cluster.config("postgres", "postgres");
            config.application_name(&format!("writer {number}"));
            let writer = Writer::new(shared, number, config, size.seed);
            writers.push(scope.spawn(move || writer.run()));
        }
        let mut threads = Vec::new();
        for (number, &spec) in readers.iter().enumerate() {
            let mut config = match (spec.way, pooler) {
                (Way::Pooler, Some(pooler)) => pooler.config(),
                _ => cluster.config("postgres", "postgres"),
            };
            config.application_name(&format!("reader {number}"));
            let reader = Reader::new(shared, number, spec, config, size.seed);
            threads.push(scope.spawn(move || reader.run()));
        }
        let a_session_ended = || {
            writers.iter().any(ScopedJoinHandle::is_finished)
                || threads.iter().any(ScopedJoinHandle::is_finished)
        };
        let faults = hold_a_row(cluster, shared, readers, &a_session_ended).and_then(|()| {
            Faults::new(size, shared, readers, &a_session_ended).run(cluster, progress)
        });
        shared.stop_writers();
        let kinds = joined(writers);
        let drained = if kinds.is_ok() && faults.is_ok() {
            progress("the writers have ended");
            let all_ended = || threads.iter().all(ScopedJoinHandle::is_finished);
            drain(cluster, shared, readers, &all_ended)
        } else {
            Ok(())
        };
        shared.abandon();
        // The error of a session explains more than that of what waited for it.
        let seen = joined(threads)?;
        let kinds = writer::total(kinds?);
        drained?;
        Ok(Outcome {
            seen,
            kinds,
            faults: faults?,
        })
    })
}

/// Keeps a transaction with a row open until each reader whose bound is not safe has
/// seen a later row. So these readers lose a row for certain.
fn hold_a_row(
    cluster: &Cluster,
    shared: &Shared,
    readers: &[Spec],
    a_session_ended: &dyn Fn() -> bool,
) -> Result<()> {
    let mut client = cluster.connect()?;
    let mut held = client.transaction()?;
    let id: i64 = held
        .query_one(
            "INSERT INTO events (writer, n) VALUES (-1, -1) RETURNING id",
            &[],
        )?
        .get(0);
    wait::until(
        "each unsafe reader to pass an open transaction",
        TIMEOUT,
        || {
            ensure!(!a_session_ended(), "a session has failed");
            let mut readers = readers.iter().zip(shared.positions());
            Ok(readers.all(|(spec, position)| spec.bound == Bound::Resolved || position > id))
        },
    )?;
    held.commit()?;
    Ok(())
}

/// What the threads return; the first error if there is one.
fn joined<T>(threads: Vec<ScopedJoinHandle<'_, Result<T>>>) -> Result<Vec<T>> {
    let ended: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    ended
        .into_iter()
        .map(|ended| ended.map_err(|_| anyhow!("the thread of a session panicked"))?)
        .collect()
}

/// Ends the prepared transactions, and waits until every reader has seen the last
/// row.
fn drain(
    cluster: &Cluster,
    shared: &Shared,
    readers: &[Spec],
    all_ended: &dyn Fn() -> bool,
) -> Result<()> {
    let mut client = cluster.connect()?;
    for row in client.query("SELECT gid FROM pg_prepared_xacts", &[])? {
        let gid: String = row.get(0);
        client.batch_execute(&format!("COMMIT PREPARED '{gid}'"))?;
    }
    // Steps back have left IDs ahead of the clock.
    cluster
        .clock()
        .step(Offset::forward(Duration::from_secs(600)))?;
    let last = client.number("SELECT coalesce(max(id), 0) FROM events")?;
    shared.drain_to(last);
    loop {
        let seen = shared.seen();
        let ended = wait::until("the readers to reach the last row", TIMEOUT, || {
            Ok(all_ended())
        });
        match ended {
            Ok(()) => return Ok(()),
            // Some reader is slow.
            Err(_) if shared.seen() != seen => {}
            Err(error) => {
                let state = shared::describe(&mut client, shared, readers);
                return Err(error.context(format!("the last ID is {last}; {state}")));
            }
        }
    }
}

/// Creates the table, and what writers and readers need.
fn set_up(cluster: &Cluster, bound: Bound) -> Result<()> {
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE EXTENSION snowflake;
         CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), writer int NOT NULL,
                              n bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
         CREATE TABLE many AS SELECT n FROM generate_series(1, {MANY}) AS n;
         CREATE TABLE deferred (writer int NOT NULL, n bigint NOT NULL);
         CREATE TABLE positions (reader int PRIMARY KEY, last bigint NOT NULL) WITH (fillfactor = 10);
         INSERT INTO positions SELECT reader, 0 FROM generate_series(0, 99) AS reader;
         CREATE FUNCTION insert_event() RETURNS trigger LANGUAGE plpgsql
         AS 'BEGIN INSERT INTO events (writer, n) VALUES (NEW.writer, NEW.n); RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER insert_event AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION insert_event()"
    ))?;
    client.batch_execute("ANALYZE many")?;
    for bound in [bound, Bound::None] {
        client.batch_execute(&bound.functions())?;
    }
    transaction::require_parallel_draws(&mut client)
}
