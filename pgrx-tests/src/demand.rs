//! Sessions that never stop asking for IDs, and keep every one they received.
//!
//! Each session runs one statement after another until it is told to stop,
//! whatever happens to the server: it connects again after a crash, and asks
//! again after a refusal. IDs are kept as they arrive, so the ones that came
//! before a connection broke are there, too: an ID that a client has seen is
//! out, committed or not.
//!
//! What happens is looked at in [`Window`]s: a test begins one with each fault.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use postgres::error::{DbError, Severity};
use postgres::{Client, Config, NoTls};

use crate::ids::{self, Fields, Tally};
use crate::outcome::Refusal;
use crate::server::Server;

/// How long a statement or a connection may take before its session is given
/// up. The server's own time limits go by the clock that tests move.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a session that was refused lets the server be.
const PAUSE: Duration = Duration::from_millis(5);

/// The default layout with four slots: sessions that come after a crash have
/// the slots of those before it.
pub const FOUR_SLOTS: Fields = Fields {
    layout: "timestamp:41 node:6 backend:2 sequence:12",
    bits: &[("node", 6), ("backend", 2), ("sequence", 12)],
    ..ids::DEFAULT
};

/// How a session takes its IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// A call each, that many in a statement.
    Calls(u32),
    /// Runs of that many.
    Runs(u32),
    /// Rows of the table `rows`, committed.
    Commit(u32),
    /// The same, rolled back after the client has seen the IDs.
    RollBack(u32),
}

impl Habit {
    /// One statement or transaction.
    fn turn(self, client: &mut Client, ids: &mut Vec<i64>) -> Result<()> {
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

/// The table that some habits want.
pub const ROWS: &str = "CREATE TABLE rows (id bigint)";

/// What happened since the last fault.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// IDs of statements that began and ended in the window.
    pub ids: usize,
    /// The longest statement that ended in it, whenever it began.
    pub longest: Duration,
    /// The lowest time of an ID less the machine's time before its statement,
    /// microseconds; of statements that began and ended in the window.
    pub lowest_lead_us: Option<i64>,
    /// The highest time of an ID less the machine's time after its statement.
    pub highest_lead_us: Option<i64>,
    /// How often a statement was refused, by SQLSTATE.
    pub refused: BTreeMap<String, usize>,
    /// The last refusal.
    pub last_refusal: Option<Refusal>,
    /// Connections that were made.
    pub connections: usize,
}

impl Window {
    /// How often a statement was refused with this SQLSTATE.
    pub fn refused_with(&self, sqlstate: &str) -> usize {
        self.refused.get(sqlstate).copied().unwrap_or(0)
    }

    /// How often a statement was refused.
    pub fn refusals(&self) -> usize {
        self.refused.values().sum()
    }
}

/// Sessions at work.
#[derive(Debug)]
pub struct Demand {
    shared: Arc<Shared>,
    databases: usize,
    threads: Vec<JoinHandle<Result<Received>>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    window: Mutex<(u64, Window)>,
    /// The process that serves each session; 0 where none does.
    pids: Vec<AtomicI32>,
    fields: Fields,
}

/// What one session received.
#[derive(Debug, Default)]
struct Received {
    ids: Vec<i64>,
    /// How often an ID was not above the one before it.
    decreases: usize,
    longest: Duration,
}

/// What all sessions received.
#[derive(Debug)]
pub struct Harvest {
    /// By session.
    pub ids: Vec<Vec<i64>>,
    /// How often a connection was given an ID that was not above the one
    /// before it.
    pub decreases: usize,
    /// The longest statement of all.
    pub longest: Duration,
    databases: usize,
}

impl Harvest {
    /// Counts over everything.
    pub fn tally(&self) -> Tally {
        Tally::of(self.ids.concat())
    }

    /// The same without keeping them: they may be most of the memory.
    pub fn into_tally(self) -> Tally {
        let mut all = Vec::with_capacity(self.ids.iter().map(Vec::len).sum());
        for ids in self.ids {
            all.extend(ids);
        }
        Tally::of(all)
    }

    /// Counts over each database.
    pub fn tallies(&self) -> Vec<Tally> {
        (0..self.databases)
            .map(|database| {
                let sessions = self.ids.iter().skip(database).step_by(self.databases);
                Tally::of(sessions.flatten().copied().collect())
            })
            .collect()
    }

    /// Fails where some session's IDs decreased.
    pub fn assert_in_order(&self) {
        assert_eq!(self.decreases, 0, "IDs of a session went down");
    }
}

impl Demand {
    /// A session for each habit, in `databases` in turn, on a server whose
    /// layout has these fields. Returns when each has received an ID.
    pub fn start(
        server: &Server,
        databases: &[&str],
        habits: &[Habit],
        fields: &Fields,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            window: Mutex::default(),
            pids: habits.iter().map(|_| AtomicI32::new(0)).collect(),
            fields: fields.clone(),
        });
        let threads = habits
            .iter()
            .enumerate()
            .map(|(number, &habit)| {
                let config = server.config("postgres", databases[number % databases.len()]);
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.session(number, habit, &config))
            })
            .collect();
        let demand = Self {
            shared,
            databases: databases.len(),
            threads,
        };
        demand.until(|demand| demand.pids().iter().all(|&pid| pid != 0))?;
        demand.begin_window();
        demand.wait_for(1)?;
        Ok(demand)
    }

    /// Begins a new window; returns the one that was.
    pub fn begin_window(&self) -> Window {
        let mut window = self.shared.window();
        window.0 += 1;
        std::mem::take(&mut window.1)
    }

    /// The window as it is now.
    pub fn window(&self) -> Window {
        self.shared.window().1.clone()
    }

    /// Waits for that many IDs of the present window. Returns how long it took.
    pub fn wait_for(&self, ids: usize) -> Result<Duration> {
        let begun = Instant::now();
        self.until(|demand| demand.window().ids >= ids)
            .with_context(|| format!("waiting for {ids} IDs; it went: {:?}", self.window()))?;
        Ok(begun.elapsed())
    }

    /// Waits for something to become true while all sessions are at work.
    pub fn until(&self, condition: impl Fn(&Self) -> bool) -> Result<()> {
        let begun = Instant::now();
        while !condition(self) {
            ensure!(
                !self.threads.iter().any(JoinHandle::is_finished),
                "a session has given up"
            );
            ensure!(
                begun.elapsed() < PATIENCE,
                "nothing of the kind in {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The processes that serve the sessions; 0 where none does.
    pub fn pids(&self) -> Vec<i32> {
        let pids = self.shared.pids.iter();
        pids.map(|pid| pid.load(Ordering::SeqCst)).collect()
    }

    /// Lets each session finish its statement, and collects what they have.
    /// Fails where one was given an error that is none of the faults'.
    pub fn end(mut self) -> Result<Harvest> {
        self.shared.stop.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            ensure!(
                begun.elapsed() < PATIENCE,
                "a session's statement did not end in {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut harvest = Harvest {
            ids: Vec::new(),
            decreases: 0,
            longest: Duration::ZERO,
            databases: self.databases,
        };
        for (number, thread) in self.threads.drain(..).enumerate() {
            let received = thread
                .join()
                .map_err(|_| anyhow!("the thread of session {number} panicked"))?
                .with_context(|| format!("session {number}"))?;
            harvest.ids.push(received.ids);
            harvest.decreases += received.decreases;
            harvest.longest = harvest.longest.max(received.longest);
        }
        Ok(harvest)
    }
}

impl Drop for Demand {
    fn drop(&mut self) {
        // A test that failed: its sessions need not go on.
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn window(&self) -> MutexGuard<'_, (u64, Window)> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// One session, until it is told to stop.
    fn session(&self, number: usize, habit: Habit, config: &Config) -> Result<Received> {
        let mut received = Received::default();
        while let Some(mut client) = self.connect(config)? {
            // A session of the server, and with it the promise of its IDs'
            // order, is a connection.
            let mut last = None;
            self.pids[number].store(ids::backend_pid(&mut client).unwrap_or(0), Ordering::SeqCst);
            while !self.stopped() && !client.is_closed() {
                self.turn(habit, &mut client, &mut received, &mut last)?;
            }
            self.pids[number].store(0, Ordering::SeqCst);
        }
        Ok(received)
    }

    /// A connection; `None` when it is time to stop.
    fn connect(&self, config: &Config) -> Result<Option<Client>> {
        let begun = Instant::now();
        loop {
            if self.stopped() {
                return Ok(None);
            }
            let connected = config.connect(NoTls).and_then(|mut client| {
                client.batch_execute("SET statement_timeout = 0")?;
                Ok(client)
            });
            match connected {
                Ok(client) => {
                    self.window().1.connections += 1;
                    return Ok(Some(client));
                }
                Err(error) if begun.elapsed() > PATIENCE => {
                    return Err(error).context("the server did not come back");
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn turn(
        &self,
        habit: Habit,
        client: &mut Client,
        received: &mut Received,
        last: &mut Option<i64>,
    ) -> Result<()> {
        let first = received.ids.len();
        let window = self.window().0;
        let machine_before = ids::now_us();
        let begun = Instant::now();
        let outcome = habit.turn(client, &mut received.ids);
        let took = begun.elapsed();
        let machine_after = ids::now_us();
        received.longest = received.longest.max(took);
        let new = &received.ids[first..];
        for &id in new {
            if last.is_some_and(|last| id <= last) {
                received.decreases += 1;
            }
            *last = Some(id);
        }

        let mut now = self.window();
        now.1.longest = now.1.longest.max(took);
        if now.0 == window
            && let (Some(&lowest), Some(&highest)) = (new.first(), new.last())
        {
            now.1.ids += new.len();
            let low = self.fields.time_us(lowest) - machine_before;
            let high = self.fields.time_us(highest) - machine_after;
            now.1.lowest_lead_us = Some(now.1.lowest_lead_us.map_or(low, |lead| lead.min(low)));
            now.1.highest_lead_us = Some(now.1.highest_lead_us.map_or(high, |lead| lead.max(high)));
        }
        let Err(error) = outcome else { return Ok(()) };
        // A broken connection is seen by who looks for the next turn; what the
        // server said before it broke is no refusal.
        let refusal = server_error(&error);
        match refusal {
            Some(refusal) if refusal.sqlstate == "58000" => {
                *now.1.refused.entry(refusal.sqlstate.clone()).or_default() += 1;
                now.1.last_refusal = Some(refusal);
                drop(now);
                // Whatever transaction it was in.
                let _ = client.batch_execute("ROLLBACK");
                std::thread::sleep(PAUSE);
                Ok(())
            }
            // The administrator, a crash, starting up or shutting down.
            Some(refusal) if refusal.sqlstate.starts_with("57P") => Ok(()),
            // The write-ahead log on a full disk: the session that meets it first
            // takes the server down, and gets the PANIC.
            Some(refusal) if refusal.sqlstate == "53100" && is_panic(&error) => Ok(()),
            Some(refusal) => Err(error.context(refusal.to_string())),
            None => Ok(()),
        }
    }
}

fn is_panic(error: &anyhow::Error) -> bool {
    said(error).is_some_and(|said| said.parsed_severity() == Some(Severity::Panic))
}

fn said(error: &anyhow::Error) -> Option<&DbError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// What the server said, also where it said so in the middle of a COPY.
fn server_error(error: &anyhow::Error) -> Option<Refusal> {
    let said = said(error)?;
    Some(Refusal {
        sqlstate: said.code().code().to_owned(),
        message: said.message().to_owned(),
        detail: said.detail().unwrap_or_default().to_owned(),
        hint: said.hint().unwrap_or_default().to_owned(),
    })
}
