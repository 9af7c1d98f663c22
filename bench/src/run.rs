//! One run: its server and its contenders.

mod scale;

use std::time::Duration;

use anyhow::Result;
use postgres::Client;
use snowflake_tests::{Cluster, Installation};

use crate::machine;
use crate::peers::Peer;
use crate::progress::Progress;
use crate::sections::wal::Usage;

pub use scale::Scale;

/// The time limit of a run.
const TIME_LIMIT: Duration = Duration::from_secs(3 * 3_600);

/// Settings of the server that differ from PostgreSQL's defaults.
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

/// A server with everything the contenders need, and how much to measure.
pub struct Run {
    cluster: Cluster,
    peers: Vec<Peer>,
    scale: Scale,
    progress: Progress,
    /// WAL that the measurements wrote.
    pub wal: Usage,
}

impl Run {
    /// Starts the server.
    pub fn start(scale: Scale) -> Result<Self> {
        let cluster = server(None, &[])?;
        let peers = Peer::set_up(&mut cluster.connect()?)?;
        Ok(Self {
            cluster,
            peers,
            scale,
            progress: Progress::begin(),
            wal: Usage::default(),
        })
    }

    /// The server.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Another server, the same but for its layout.
    pub fn with_layout(&self, layout: &str) -> Result<Cluster> {
        self.with_settings(&[("snowflake.layout", layout)])
    }

    /// Another server, the same but for these settings.
    pub fn with_settings(&self, settings: &[(&str, &str)]) -> Result<Cluster> {
        server(None, settings)
    }

    /// Another server of another installation.
    pub fn with_installation(&self, installation: Installation) -> Result<Cluster> {
        server(Some(installation), &[])
    }

    /// A new session.
    pub fn connect(&self) -> Result<Client> {
        self.cluster.connect()
    }

    /// Every way to generate an ID on this server, ours first.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Those of them that are in `chosen`, in that order.
    pub fn peers_of(&self, chosen: &[Peer]) -> Vec<Peer> {
        let available = chosen.iter().filter(|peer| self.peers.contains(peer));
        available.copied().collect()
    }

    /// How much to measure.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// How many rounds a contender takes part in, if the goals are about ours and a
    /// plain sequence only.
    pub fn rounds_of(&self, peer: Peer) -> usize {
        self.rounds_or(peer, self.scale.rounds)
    }

    /// The same if those two take part in a given number of rounds.
    pub fn rounds_or(&self, peer: Peer, judged: usize) -> usize {
        match peer {
            Peer::Snowflake | Peer::Sequence => judged,
            _ => self.scale.peer_rounds.min(judged),
        }
    }

    /// How far the run is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Waits until no ID is ahead of the clock. Otherwise the next measurement would
    /// have to wait for time that this one has borrowed. The section
    /// [`steady`](crate::sections::steady) measures what happens without a pause.
    pub fn settle(&self, client: &mut Client) -> Result<()> {
        let query = "SELECT coalesce(max(borrowed_ticks), 0) FROM snowflake_stat_slots";
        while client.query_one(query, &[])?.get::<_, i64>(0) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn server(installation: Option<Installation>, settings: &[(&str, &str)]) -> Result<Cluster> {
    // A quarter of the memory, as is usual, but no more than what is read here.
    let buffers = (machine::memory_kib() / 4 / 1_024).clamp(128, 2_048);
    let mut builder = Cluster::builder()
        .conf("shared_buffers", format!("{buffers}MB"))
        .time_limit(TIME_LIMIT);
    if let Some(installation) = installation {
        builder = builder.installation(installation);
    }
    for (name, value) in SETTINGS.iter().chain(settings) {
        builder = builder.conf(name, value);
    }
    builder.start_with_extension()
}
