//! What the threads of a run share.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::{Client, Config, NoTls};

use super::{Spec, TIMEOUT};
use crate::ids::backend_pid;
use crate::query::Ask;
use crate::server_error::ServerError;

/// How long a session waits before it connects again.
const PAUSE: Duration = Duration::from_millis(20);

/// A prepared transaction that a session is to end.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) gid: String,
    pub(super) rows: u64,
    pub(super) due: Instant,
    pub(super) commit: bool,
}

/// How prepared transactions ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct PreparedCounts {
    /// By COMMIT PREPARED.
    pub committed: u64,
    /// By ROLLBACK PREPARED.
    pub rolled_back: u64,
    /// How many of these were ended by another session than the one that
    /// prepared them.
    pub by_another: u64,
}

/// What the threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    writers_stopped: AtomicBool,
    abandoned: AtomicBool,
    /// The greatest ID of the table when the writers have ended; 0 before that.
    last: AtomicI64,
    /// Rows whose commit a writer has received.
    committed: AtomicU64,
    /// The process that serves each writer; 0 if none does.
    pids: Vec<AtomicI64>,
    /// The commits of each writer.
    commits: Vec<AtomicU64>,
    /// The rows that each reader has seen.
    seen: Vec<AtomicU64>,
    /// How many rows each reader may be behind before the writers pause.
    behind: Vec<Option<u64>>,
    /// The ID that each reader has seen last.
    positions: Vec<AtomicI64>,
    prepared: Mutex<Vec<Prepared>>,
    prepared_counts: Mutex<PreparedCounts>,
    ended_by_faults: AtomicU64,
    unexpected: Mutex<BTreeMap<String, u64>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn zeros<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

impl Shared {
    pub(super) fn new(writers: usize, readers: &[Spec]) -> Self {
        Self {
            writers_stopped: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            last: AtomicI64::new(0),
            committed: AtomicU64::new(0),
            pids: zeros(writers),
            commits: zeros(writers),
            seen: zeros(readers.len()),
            positions: zeros(readers.len()),
            behind: readers.iter().map(|reader| reader.behind()).collect(),
            prepared: Mutex::default(),
            prepared_counts: Mutex::default(),
            ended_by_faults: AtomicU64::new(0),
            unexpected: Mutex::default(),
        }
    }

    pub(super) fn stop_writers(&self) {
        self.writers_stopped.store(true, Ordering::SeqCst);
    }

    pub(super) fn writers_are_stopped(&self) -> bool {
        self.writers_stopped.load(Ordering::SeqCst) || self.is_abandoned()
    }

    /// Makes every session end.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }

    pub(super) fn abandon_flag(&self) -> &AtomicBool {
        &self.abandoned
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Lets the readers end when they have seen this ID.
    pub(super) fn drain_to(&self, last: i64) {
        self.last.store(last, Ordering::SeqCst);
    }

    /// Whether a reader that has found no further row may end.
    pub(super) fn is_drained(&self, position: i64) -> bool {
        let last = self.last.load(Ordering::SeqCst);
        last != 0 && position >= last
    }

    pub(super) fn count_commit(&self, writer: usize, rows: u64) {
        self.commits[writer].fetch_add(1, Ordering::SeqCst);
        self.committed.fetch_add(rows, Ordering::SeqCst);
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    pub(super) fn commits(&self) -> Vec<u64> {
        let commits = self.commits.iter();
        commits.map(|it| it.load(Ordering::SeqCst)).collect()
    }

    pub(super) fn count_seen(&self, reader: usize, rows: u64, position: i64) {
        self.seen[reader].fetch_add(rows, Ordering::SeqCst);
        self.positions[reader].store(position, Ordering::SeqCst);
    }

    pub(super) fn seen(&self) -> Vec<u64> {
        let seen = self.seen.iter();
        seen.map(|it| it.load(Ordering::SeqCst)).collect()
    }

    /// The ID that each reader has seen last.
    pub(super) fn positions(&self) -> Vec<i64> {
        let positions = self.positions.iter();
        positions.map(|it| it.load(Ordering::SeqCst)).collect()
    }

    /// The processes of the writers that have a connection.
    pub(super) fn pids(&self) -> Vec<i32> {
        let pids = self.pids.iter().map(|pid| pid.load(Ordering::SeqCst));
        pids.filter_map(|pid| i32::try_from(pid).ok())
            .filter(|&pid| pid != 0)
            .collect()
    }

    pub(super) fn set_pid(&self, writer: usize, pid: i32) {
        self.pids[writer].store(i64::from(pid), Ordering::SeqCst);
    }

    /// Pauses while a reader is behind, for a second at most: a fault may have undone
    /// commits that were counted.
    pub(super) fn wait_for_readers(&self) {
        for _ in 0..100 {
            let committed = self.committed();
            let is_behind = |(seen, behind): (u64, &Option<u64>)| {
                behind.is_some_and(|behind| seen.saturating_add(behind) < committed)
            };
            let is_any_behind = self.seen().into_iter().zip(&self.behind).any(is_behind);
            if !is_any_behind || self.writers_are_stopped() || self.is_any_due() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// Whether a reader may wait for the end of a prepared transaction.
    fn is_any_due(&self) -> bool {
        let now = Instant::now();
        locked(&self.prepared).iter().any(|it| it.due <= now)
    }

    pub(super) fn prepared_now(&self) -> usize {
        locked(&self.prepared).len()
    }

    pub(super) fn add_prepared(&self, prepared: Prepared) {
        locked(&self.prepared).push(prepared);
    }

    /// A prepared transaction that is to be ended now.
    pub(super) fn take_due(&self) -> Option<Prepared> {
        let mut prepared = locked(&self.prepared);
        let now = Instant::now();
        let due = prepared.iter().position(|it| it.due <= now)?;
        Some(prepared.swap_remove(due))
    }

    pub(super) fn count_prepared(&self, count: impl FnOnce(&mut PreparedCounts)) {
        count(&mut locked(&self.prepared_counts));
    }

    pub(super) fn prepared_counts(&self) -> PreparedCounts {
        *locked(&self.prepared_counts)
    }

    /// A connection; `None` if the session is to stop.
    pub(super) fn connect(
        &self,
        config: &Config,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Option<Client>> {
        let begun = Instant::now();
        loop {
            if is_stopped() {
                return Ok(None);
            }
            match config.connect(NoTls) {
                Ok(client) => return Ok(Some(client)),
                Err(error) if begun.elapsed() > TIMEOUT => {
                    return Err(error).context("the server accepts no connection again");
                }
                Err(_) => sleep(PAUSE),
            }
        }
    }

    /// Counts an error: as explained by a fault, or as unexpected. Ends a
    /// transaction that is open.
    pub(super) fn count_error(&self, client: &mut Client, during: &str, error: &anyhow::Error) {
        self.classify(during, error);
        if !client.is_closed() {
            let _ = client.batch_execute("ROLLBACK");
        }
    }

    fn classify(&self, during: &str, error: &anyhow::Error) {
        let server_error = ServerError::in_chain(error);
        let is_explained = match &server_error {
            None => is_broken(error),
            // A signal, a crash, startup or shutdown; PgBouncer without its server.
            Some(it) => it.sqlstate.starts_with("57") || it.sqlstate.starts_with("08"),
        };
        if is_explained {
            self.count_ended_by_fault();
        } else {
            let error = server_error.map_or_else(|| format!("{error:#}"), |it| it.to_string());
            let text = format!("{during}: {error}");
            *locked(&self.unexpected).entry(text).or_default() += 1;
        }
    }

    /// Counts what a fault has ended.
    pub(super) fn count_ended_by_fault(&self) {
        self.ended_by_faults.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn ended_by_faults(&self) -> u64 {
        self.ended_by_faults.load(Ordering::SeqCst)
    }

    pub(super) fn unexpected(&self) -> BTreeMap<String, u64> {
        locked(&self.unexpected).clone()
    }
}

/// Whether a client has lost its connection.
fn is_broken(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let closed = cause.downcast_ref().is_some_and(postgres::Error::is_closed);
        closed || cause.is::<std::io::Error>()
    })
}

/// The number of the process that serves a client; 0 if that has just ended.
pub(super) fn pid_of(client: &mut Client) -> i32 {
    backend_pid(client).unwrap_or(0)
}

/// Where the readers are and what may hold them back, for the report of a run that
/// does not end.
pub(super) fn describe(client: &mut Client, shared: &Shared, readers: &[Spec]) -> String {
    let mut text = String::new();
    let positions = shared.positions.iter().zip(shared.seen());
    for (spec, (position, seen)) in readers.iter().zip(positions) {
        let position = position.load(Ordering::SeqCst);
        let _ = write!(text, "{}: {seen} rows, at {position}; ", spec.name());
    }
    for sql in [
        "SELECT 'resolved: ' || coalesce(snowflake_resolved_id()::text, 'NULL')",
        "SELECT 'prepared: ' || coalesce(string_agg(gid, ' '), 'none') FROM pg_prepared_xacts",
        "SELECT 'unresolved: ' || coalesce(string_agg(u::text, ' '), 'none') FROM snowflake_unresolved AS u",
    ] {
        let answer = client
            .value(sql)
            .unwrap_or_else(|error| format!("{error:#}"));
        let _ = write!(text, "{answer}; ");
    }
    text
}
