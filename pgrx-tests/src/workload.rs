//! Sessions that request IDs without a pause, and keep every ID they received.
//!
//! Each session runs one statement after another until it is stopped, whatever
//! happens to the server. It reconnects after a crash, and repeats a statement
//! that failed. IDs are kept as they arrive, so those that came before a
//! connection broke are kept too: an ID that a client has seen is in use,
//! whether or not its transaction was committed.
//!
//! What happens is counted in [`Window`]s: a test begins a new one with each
//! fault.

mod session;
mod true_time;
mod window;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use postgres::Client;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::ids::{self, Fields, Tally};
use crate::server::Server;
use crate::wait;

use session::{SessionResult, Shared};
use true_time::TrueTime;
pub use window::Window;

/// How long a statement or a connection may take before the test fails. The
/// server's own time limits depend on the clock that tests set.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The default layout with four slots. Sessions that start after a crash use the
/// same slots as those before it.
pub const FOUR_SLOTS: Fields = Fields {
    layout: "timestamp:41 node:6 backend:2 sequence:12",
    bits: &[("node", 6), ("backend", 2), ("sequence", 12)],
    ..ids::DEFAULT
};

/// How a session requests its IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By one call for each ID, that many in a statement.
    Calls(u32),
    /// By runs of that many IDs.
    Runs(u32),
    /// By that many rows of the table `rows`, committed.
    Commit(u32),
    /// The same, rolled back after the client has received the IDs.
    RollBack(u32),
}

impl Mode {
    /// Runs one statement or transaction.
    fn request(self, client: &mut Client, ids: &mut Vec<i64>) -> Result<()> {
        let rows = |count| {
            format!(
                "INSERT INTO rows SELECT snowflake_nextval() FROM generate_series(1, {count}) \
                 RETURNING id"
            )
        };
        match self {
            Self::Calls(count) => {
                let query = format!("SELECT snowflake_nextval() FROM generate_series(1, {count})");
                ids::fetch_into(client, &query, ids)
            }
            Self::Runs(count) => {
                let query = format!("SELECT * FROM snowflake_nextvals({count})");
                ids::fetch_into(client, &query, ids)
            }
            Self::Commit(count) => ids::fetch_into(client, &rows(count), ids),
            Self::RollBack(count) => {
                client.batch_execute("BEGIN")?;
                ids::fetch_into(client, &rows(count), ids)?;
                client.batch_execute("ROLLBACK")?;
                Ok(())
            }
        }
    }
}

/// The table that `Commit` and `RollBack` insert into.
pub const ROWS: &str = "CREATE TABLE rows (id bigint)";

/// Sessions at work.
#[derive(Debug)]
pub struct Workload {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<SessionResult>>>,
}

/// What all sessions received.
#[derive(Debug)]
pub struct Received {
    /// IDs, by session, but for those that were taken before.
    pub ids: Vec<Vec<i64>>,
    /// How often a connection received an ID that was not greater than the one
    /// before it.
    pub decreases: usize,
    /// The duration of the longest statement.
    pub longest: Duration,
}

impl Received {
    /// Counts over all IDs.
    pub fn tally(&self) -> Tally {
        Tally::of(self.ids.concat())
    }

    /// Fails if the IDs of a session decreased.
    pub fn assert_in_order(&self) {
        assert_eq!(self.decreases, 0, "IDs of a session decreased");
    }
}

impl Workload {
    /// Starts a session for each mode, in `databases` in turn, on a server whose
    /// layout has these fields. Returns when each has received an ID.
    pub fn start(
        server: &Server,
        databases: &[&str],
        modes: &[Mode],
        fields: &Fields,
    ) -> Result<Self> {
        Self::start_at(server, databases, modes, fields, TrueTime::default())
    }

    /// The same on a server with a clock that the test moves: the leads of its IDs are
    /// those over the true time of this clock.
    pub fn start_with_clock(
        cluster: &Cluster,
        databases: &[&str],
        modes: &[Mode],
        fields: &Fields,
    ) -> Result<Self> {
        let true_time = TrueTime::of(cluster.clock())?;
        Self::start_at(cluster, databases, modes, fields, true_time)
    }

    fn start_at(
        server: &Server,
        databases: &[&str],
        modes: &[Mode],
        fields: &Fields,
        true_time: TrueTime,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(modes.len(), fields, true_time));
        let threads = modes
            .iter()
            .enumerate()
            .map(|(number, &mode)| {
                let config = server.config("postgres", databases[number % databases.len()]);
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.session(number, mode, &config))
            })
            .collect();
        let workload = Self { shared, threads };
        workload.until(|workload| workload.pids().iter().all(|&pid| pid != 0))?;
        workload.begin_window();
        workload.wait_for(1)?;
        Ok(workload)
    }

    /// Begins a new window. Returns the previous one.
    pub fn begin_window(&self) -> Window {
        let mut window = self.shared.window();
        window.0 += 1;
        std::mem::take(&mut window.1)
    }

    /// The window as it is now.
    pub fn window(&self) -> Window {
        self.shared.window().1.clone()
    }

    /// Waits for that many IDs in the present window. Returns how long it took.
    pub fn wait_for(&self, ids: usize) -> Result<Duration> {
        let begun = Instant::now();
        self.until(|workload| workload.window().ids >= ids)
            .with_context(|| format!("waiting for {ids} IDs; so far: {:?}", self.window()))?;
        Ok(begun.elapsed())
    }

    /// Waits until the condition is true while all sessions are at work.
    pub fn until(&self, condition: impl Fn(&Self) -> bool) -> Result<()> {
        wait::until("the sessions", TIMEOUT, || {
            let is_true = condition(self);
            ensure!(
                is_true || !self.threads.iter().any(JoinHandle::is_finished),
                "a session has failed"
            );
            Ok(is_true)
        })
    }

    /// Has the sessions work at a time again, from `began` to `ended` by a clock that
    /// shows less than that. Up to there time is made to pass in jumps. From there on
    /// it passes by itself, so that the clock shows every millisecond.
    pub fn revisit(&self, clock: &Clock, began: i64, ended: i64) -> Result<()> {
        // Jumps and pauses end somewhat before it. Pauses take time as well, so the
        // rest is computed anew after each.
        const BEFORE: i64 = 50_000;
        const JUMP: u64 = 200_000;
        while let Ok(left @ 1..) = u64::try_from(began - BEFORE - clock.now_us()) {
            clock.pass(Duration::from_micros(left.min(JUMP)))?;
        }
        let so_far = self.window().ids;
        self.until(|workload| clock.now_us() >= ended && workload.window().ids > so_far)
    }

    /// The processes that serve the sessions; 0 for a session without one.
    pub fn pids(&self) -> Vec<i32> {
        let pids = self.shared.pids.iter();
        pids.map(|pid| pid.load(Ordering::SeqCst)).collect()
    }

    /// Takes the IDs that were received so far; [`end`](Self::end) has the later ones.
    pub fn take(&self) -> Vec<i64> {
        (0..self.threads.len())
            .flat_map(|session| self.shared.take(session))
            .collect()
    }

    /// Lets each session finish its statement, and collects what they received.
    /// Fails if a session received an error that the faults do not explain.
    pub fn end(mut self) -> Result<Received> {
        self.shared.stop();
        wait::until("the sessions' last statements", TIMEOUT, || {
            Ok(self.threads.iter().all(JoinHandle::is_finished))
        })?;
        let mut collected = Received {
            ids: Vec::new(),
            decreases: 0,
            longest: Duration::ZERO,
        };
        for (number, thread) in self.threads.drain(..).enumerate() {
            let session = thread
                .join()
                .map_err(|_| anyhow!("the thread of session {number} panicked"))?
                .with_context(|| format!("session {number}"))?;
            collected.ids.push(self.shared.take(number));
            collected.decreases += session.decreases;
            collected.longest = collected.longest.max(session.longest);
        }
        Ok(collected)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // The sessions of a failed test stop, too.
        self.shared.stop();
    }
}
