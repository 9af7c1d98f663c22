//! One run: its server, how much is measured, and how far it is.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;
use snowflake_tests::Cluster;

use crate::machine;
use crate::peers::Peer;
use crate::wal::Usage;

/// The most a run may take before its server is ended.
const TIME_LIMIT: Duration = Duration::from_secs(3 * 3_600);

/// How often a line is written where it can't be written over.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Settings of the server that differ from PostgreSQL's defaults.
const SETTINGS: &[(&str, &str)] = &[
    ("snowflake.node_id", "1"),
    // What the test harness takes back.
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("statement_timeout", "0"),
    // No checkpoint and no vacuum in the middle of one contender's turn.
    ("checkpoint_timeout", "1d"),
    ("max_wal_size", "32GB"),
    ("autovacuum", "off"),
    // Files of the WAL are used again, for all alike.
    ("min_wal_size", "4GB"),
    // Costs as much to plan for one as for the other.
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
];

/// What of the settings a reader wants to know.
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

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Whether it is a run to quote.
    pub full: bool,
    /// Rounds for contenders that a promise speaks of.
    pub rounds: usize,
    /// Rounds for the others.
    pub peer_rounds: usize,
    /// Calls in a statement that measures one call, and the rounds of it: many short ones, because a busy neighbour of a
    /// virtual machine slows single seconds down by half.
    pub calls: u32,
    pub call_rounds: usize,
    /// Numbers of clients.
    pub clients: &'static [usize],
    /// Seconds of `pgbench` for calls, and for inserts.
    pub call_seconds: u64,
    pub insert_seconds: u64,
    /// Rounds of single-row inserts, which differ more than anything else.
    pub insert_rounds: usize,
    /// Rounds of COPY, and of calls on rows that are read.
    pub copy_rounds: usize,
    pub read_rounds: usize,
    /// Rows of one COPY or INSERT … SELECT.
    pub rows: u32,
    /// Rows of the index that 16 writers fill in batches, and row by row.
    pub index_rows: u64,
    pub index_single_rows: u64,
    /// Rows that other mixes of writers insert.
    pub mix_rows: u64,
    /// Single calls that are timed, each round.
    pub timed_calls: usize,
    /// IDs that are read.
    pub read_rows: u32,
    /// Seconds in which one session asks without a pause; and of the peer.
    pub steady_seconds: u64,
    pub steady_peer_seconds: u64,
    /// Rows of large tables.
    pub large: &'static [u64],
}

impl Scale {
    /// To quote: about 25 minutes on two cores.
    pub const fn full() -> Self {
        Self {
            full: true,
            rounds: 5,
            peer_rounds: 3,
            calls: 400_000,
            call_rounds: 25,
            clients: &[1, 2, 4, 8, 16, 32],
            call_seconds: 1,
            insert_seconds: 1,
            insert_rounds: 9,
            copy_rounds: 9,
            read_rounds: 9,
            rows: 1_000_000,
            index_rows: 5_000_000,
            index_single_rows: 300_000,
            mix_rows: 2_000_000,
            timed_calls: 50_000,
            read_rows: 2_000_000,
            steady_seconds: 60,
            steady_peer_seconds: 10,
            large: &[10_000_000, 100_000_000],
        }
    }

    /// To try: about 3 minutes.
    pub const fn quick() -> Self {
        Self {
            full: false,
            rounds: 2,
            peer_rounds: 1,
            calls: 400_000,
            call_rounds: 5,
            clients: &[1, 8, 32],
            call_seconds: 1,
            insert_seconds: 1,
            insert_rounds: 2,
            copy_rounds: 2,
            read_rounds: 2,
            rows: 200_000,
            index_rows: 500_000,
            index_single_rows: 50_000,
            mix_rows: 640_000,
            timed_calls: 10_000,
            read_rows: 300_000,
            steady_seconds: 5,
            steady_peer_seconds: 2,
            large: &[400_000],
        }
    }
}

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
        let cluster = server(&[])?;
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
        server(&[("snowflake.layout", layout)])
    }

    /// A new session.
    pub fn connect(&self) -> Result<Client> {
        self.cluster.connect()
    }

    /// Every way to make an ID that this server has, ours first.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// Those of them that are in `chosen`, in that order.
    pub fn peers_of(&self, chosen: &[Peer]) -> Vec<Peer> {
        let there = chosen.iter().filter(|peer| self.peers.contains(peer));
        there.copied().collect()
    }

    /// How much to measure.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// How many rounds a contender takes part in, where only ours and a plain
    /// sequence are what a promise speaks of.
    pub fn rounds_of(&self, peer: Peer) -> usize {
        self.rounds_or(peer, self.scale.rounds)
    }

    /// The same where those two take part in a given number of rounds.
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

    /// Waits until no ID is ahead of the clock. A burst may borrow time, which
    /// the next measurement must not pay back; what comes of a burst that does
    /// not end is measured by itself.
    pub fn settle(&self, client: &mut Client) -> Result<()> {
        let query = "SELECT coalesce(max(borrowed_ticks), 0) FROM snowflake_stat_slots";
        while client.query_one(query, &[])?.get::<_, i64>(0) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

fn server(settings: &[(&str, &str)]) -> Result<Cluster> {
    // A quarter of the memory, as is usual, and no more than what is read here.
    let buffers = (machine::memory_kib() / 4 / 1_024).clamp(128, 2_048);
    let mut builder = Cluster::builder()
        .conf("shared_buffers", format!("{buffers}MB"))
        .time_limit(TIME_LIMIT);
    for (name, value) in SETTINGS.iter().chain(settings) {
        builder = builder.conf(name, value);
    }
    builder.start_with_extension()
}

/// One line that says what is being done and how long it will take.
pub struct Progress {
    begun: Instant,
    terminal: bool,
    state: RefCell<State>,
}

struct State {
    part: &'static str,
    part_begun: Instant,
    expected: Duration,
    later: Duration,
    written: Option<Instant>,
}

impl Progress {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            terminal: std::io::stderr().is_terminal(),
            state: RefCell::new(State {
                part: "",
                part_begun: now,
                expected: Duration::ZERO,
                later: Duration::ZERO,
                written: None,
            }),
        }
    }

    /// A part of the run begins that is expected to take so long, and those
    /// after it so long.
    pub fn begin_part(&self, part: &'static str, expected: Duration, later: Duration) {
        let mut state = self.state.borrow_mut();
        state.part = part;
        state.part_begun = Instant::now();
        state.expected = expected;
        state.later = later;
        state.written = None;
    }

    /// What is being measured now.
    pub fn step(&self, what: impl std::fmt::Display) {
        let mut state = self.state.borrow_mut();
        if !self.terminal && state.written.is_some_and(|at| at.elapsed() < LINE_EVERY) {
            return;
        }
        state.written = Some(Instant::now());
        let left = state.expected.saturating_sub(state.part_begun.elapsed()) + state.later;
        let line = format!(
            "[{:4.1} min, about {:.0} to go] {}: {what}",
            minutes(self.begun.elapsed()),
            minutes(left).ceil(),
            state.part
        );
        let mut stderr = std::io::stderr().lock();
        // Progress that can't be shown is no reason to stop.
        let _ = if self.terminal {
            write!(stderr, "\r\x1b[K{line}")
        } else {
            writeln!(stderr, "{line}")
        };
    }

    /// The run is over.
    pub fn end(&self) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        eprintln!(
            "{clear}measured in {:.1} minutes",
            minutes(self.begun.elapsed())
        );
    }
}

fn minutes(duration: Duration) -> f64 {
    duration.as_secs_f64() / 60.0
}
