//! One run: its servers, and how much is measured.

use std::cell::Cell;
use std::io::IsTerminal;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_tests::{Cluster, ClusterBuilder, Installation};

use crate::machine;

/// The time limit of a run.
const TIME_LIMIT: Duration = Duration::from_secs(3 * 3_600);

/// How often a line about progress is written if standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The `pg_config` of the tree with an earlier build of the extension.
const BEFORE: &str = "SNOWFLAKE_BEFORE_PG_CONFIG";

/// Settings of the servers that differ from PostgreSQL's defaults.
const SETTINGS: &[(&str, &str)] = &[
    ("snowflake.node_id", "1"),
    // The test harness disables these.
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("statement_timeout", "0"),
    // No checkpoint and no vacuum during a measurement.
    ("checkpoint_timeout", "1d"),
    ("max_wal_size", "32GB"),
    ("autovacuum", "off"),
    // All contenders use recycled files of the WAL.
    ("min_wal_size", "4GB"),
    // No cost of compilation or of starting workers.
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
];

/// The settings that the document shows.
pub const SHOWN: &[&str] = &[
    "shared_buffers",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "max_wal_size",
    "min_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "max_parallel_workers_per_gather",
    "debug_assertions",
    "ssl_library",
    "snowflake.layout",
    "snowflake.max_borrow",
    "snowflake.lease",
];

/// A number in a full run, and in a quick one.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64, pub u64);

/// The server of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The one that most contenders share.
    Common,
    /// Another with this setting.
    With(&'static str, &'static str),
    /// Another that does not preload the library.
    WithoutPreload,
    /// Another without the library and the extension.
    WithoutExtension,
    /// Another with the build in the tree of `SNOWFLAKE_BEFORE_PG_CONFIG`.
    Before,
}

pub struct Run {
    common: Rc<Cluster>,
    pub quick: bool,
    /// From the command line.
    pub rounds: Option<usize>,
    begun: Instant,
    written: Cell<Option<Instant>>,
}

impl Run {
    /// Starts the common server.
    pub fn start(quick: bool, rounds: Option<usize>) -> Result<Self> {
        Ok(Self {
            common: Rc::new(start(Cluster::builder(), &[])?),
            quick,
            rounds,
            begun: Instant::now(),
            written: Cell::new(None),
        })
    }

    pub fn common(&self) -> &Cluster {
        &self.common
    }

    /// Starts a contender's server, unless it is the common one.
    pub fn server(&self, server: Server) -> Result<Rc<Cluster>> {
        match server {
            Server::Common => Ok(Rc::clone(&self.common)),
            Server::With(name, value) => Ok(Rc::new(start(Cluster::builder(), &[(name, value)])?)),
            Server::WithoutPreload | Server::WithoutExtension => {
                let cluster = start(Cluster::builder().without_preload(), &[])?;
                if server == Server::WithoutExtension {
                    cluster
                        .connect()?
                        .batch_execute("DROP EXTENSION snowflake")?;
                }
                Ok(Rc::new(cluster))
            }
            Server::Before => {
                let pg_config = std::env::var_os(BEFORE).with_context(|| format!("no {BEFORE}"))?;
                let earlier = Installation::from_pg_config(Path::new(&pg_config))?;
                Ok(Rc::new(start(
                    Cluster::builder().installation(earlier),
                    &[],
                )?))
            }
        }
    }

    /// Whether there is an earlier build to compare with.
    pub fn has_before(&self) -> bool {
        std::env::var_os(BEFORE).is_some()
    }

    pub fn count(&self, Count(full, quick): Count) -> u64 {
        if self.quick { quick } else { full }
    }

    /// Shows what is measured now.
    pub fn step(&self, what: impl std::fmt::Display) {
        let is_terminal = std::io::stderr().is_terminal();
        let written = self.written.get();
        if !is_terminal && written.is_some_and(|at| at.elapsed() < LINE_EVERY) {
            return;
        }
        self.written.set(Some(Instant::now()));
        let minutes = self.begun.elapsed().as_secs_f64() / 60.0;
        if is_terminal {
            eprint!("\r\x1b[K[{minutes:4.1} min] {what}");
        } else {
            eprintln!("[{minutes:4.1} min] {what}");
        }
    }
}

/// Waits until no ID is ahead of the clock. Otherwise the next measurement would have to wait for
/// time that this one has borrowed.
pub fn settle(client: &mut Client) -> Result<()> {
    let query = "SELECT coalesce(max(borrowed_ticks), 0) FROM snowflake_stat_slots";
    while client.query_one(query, &[])?.get::<_, i64>(0) > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn start(builder: ClusterBuilder, settings: &[(&str, &str)]) -> Result<Cluster> {
    // A quarter of the memory, as is usual, but no more than what is read here.
    let buffers = (machine::memory_kib() / 4 / 1_024).clamp(128, 2_048);
    let mut builder = builder
        .conf("shared_buffers", format!("{buffers}MB"))
        .time_limit(TIME_LIMIT);
    for (name, value) in SETTINGS.iter().chain(settings) {
        builder = builder.conf(name, value);
    }
    let cluster = builder.start_with_extension()?;
    cluster
        .connect()?
        .batch_execute(include_str!("../sql/peers.sql"))?;
    Ok(cluster)
}
