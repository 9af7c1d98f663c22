//! How much is measured.

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Whether the figures may be quoted.
    pub full: bool,
    /// Rounds of the contenders that a goal is about.
    pub rounds: usize,
    /// Rounds of the others.
    pub peer_rounds: usize,
    /// Calls in a statement that measures one call, and its rounds. Many short rounds, because other virtual machines on
    /// the host slow single seconds down by half.
    pub calls: u32,
    pub call_rounds: usize,
    /// Numbers of clients.
    pub clients: &'static [usize],
    /// Seconds of `pgbench` for calls, and for inserts.
    pub call_seconds: u64,
    pub insert_seconds: u64,
    /// Rounds of single-row inserts, which vary most.
    pub insert_rounds: usize,
    /// Rounds of COPY, and of calls on rows that are read.
    pub copy_rounds: usize,
    pub read_rounds: usize,
    /// Rows of one COPY or INSERT … SELECT.
    pub rows: u32,
    /// Rows that 16 writers insert in batches, and one by one, before the index is examined.
    pub index_rows: u64,
    pub index_single_rows: u64,
    /// Rows that the other mixes of writers insert.
    pub mix_rows: u64,
    /// Single calls that are timed in each round.
    pub timed_calls: usize,
    /// Rows of the tables that are read.
    pub read_rows: u32,
    /// Seconds in which one session generates IDs without a pause, and those of the peer.
    pub steady_seconds: u64,
    pub steady_peer_seconds: u64,
    /// Rows of large tables.
    pub large: &'static [u64],
    /// Rows that a collector receives from its servers.
    pub collected_rows: usize,
}

impl Scale {
    /// For figures that are quoted: about 25 minutes on two processors.
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
            collected_rows: 1_000_000,
        }
    }

    /// For tests: about 3 minutes.
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
            collected_rows: 50_000,
        }
    }
}
