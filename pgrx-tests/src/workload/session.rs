//! One session, from its thread's point of view.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::error::Severity;
use postgres::{Client, Config, NoTls};

use super::true_time::TrueTime;
use super::{Mode, TIMEOUT, Window};
use crate::ids::{self, Fields};
use crate::server_error::{ServerError, db_error};

/// How long a session waits after an error.
const PAUSE: Duration = Duration::from_millis(5);

/// What the sessions' threads share.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    /// The present window and its number.
    window: Mutex<(u64, Window)>,
    /// The process that serves each session; 0 if none does.
    pub(super) pids: Vec<AtomicI32>,
    /// What each session received.
    ids: Vec<Mutex<Vec<i64>>>,
    fields: Fields,
    true_time: TrueTime,
}

/// What one session noticed.
#[derive(Debug, Default)]
pub(super) struct SessionResult {
    /// How often an ID was not greater than the one before it.
    pub(super) decreases: usize,
    pub(super) longest: Duration,
}

impl Shared {
    pub(super) fn new(sessions: usize, fields: &Fields, true_time: TrueTime) -> Self {
        Self {
            stop: AtomicBool::new(false),
            window: Mutex::default(),
            pids: (0..sessions).map(|_| AtomicI32::new(0)).collect(),
            ids: (0..sessions).map(|_| Mutex::default()).collect(),
            fields: fields.clone(),
            true_time,
        }
    }

    pub(super) fn window(&self) -> MutexGuard<'_, (u64, Window)> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a session has received.
    pub(super) fn take(&self, session: usize) -> Vec<i64> {
        std::mem::take(&mut *self.ids_of(session))
    }

    fn ids_of(&self, session: usize) -> MutexGuard<'_, Vec<i64>> {
        let ids = self.ids[session].lock();
        ids.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Runs one session until it is stopped.
    pub(super) fn session(
        &self,
        number: usize,
        mode: Mode,
        config: &Config,
    ) -> Result<SessionResult> {
        let mut result = SessionResult::default();
        while let Some(mut client) = self.connect(config)? {
            // IDs ascend within a session of the server, which is a connection.
            let mut last = None;
            self.pids[number].store(ids::backend_pid(&mut client).unwrap_or(0), Ordering::SeqCst);
            while !self.is_stopped() && !client.is_closed() {
                self.statement(number, mode, &mut client, &mut result, &mut last)?;
            }
            self.pids[number].store(0, Ordering::SeqCst);
        }
        Ok(result)
    }

    /// A connection; `None` if the session is to stop.
    fn connect(&self, config: &Config) -> Result<Option<Client>> {
        let begun = Instant::now();
        loop {
            if self.is_stopped() {
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
                Err(error) if begun.elapsed() > TIMEOUT => {
                    return Err(error).context("the server accepts no connection again");
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Runs one statement or transaction, and counts what came of it.
    fn statement(
        &self,
        session: usize,
        mode: Mode,
        client: &mut Client,
        result: &mut SessionResult,
        last: &mut Option<i64>,
    ) -> Result<()> {
        let number = self.window().0;
        let true_before = self.true_time.now_us()?;
        let begun = Instant::now();
        let mut new = Vec::new();
        let outcome = mode.request(client, &mut new);
        let took = begun.elapsed();
        let true_after = self.true_time.now_us()?;
        result.longest = result.longest.max(took);
        for &id in &new {
            if last.is_some_and(|last| id <= last) {
                result.decreases += 1;
            }
            *last = Some(id);
        }
        self.ids_of(session).extend(&new);

        let mut window = self.window();
        window.1.longest = window.1.longest.max(took);
        if window.0 == number
            && let (Some(&lowest), Some(&highest)) = (new.first(), new.last())
        {
            window.1.ids += new.len();
            window.1.count_leads(
                self.fields.time_us(lowest) - true_before,
                self.fields.time_us(highest) - true_after,
            );
        }
        drop(window);
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => self.handle_error(session, client, error),
        }
    }

    /// Returns the errors that no fault of the server explains.
    fn handle_error(
        &self,
        session: usize,
        client: &mut Client,
        error: anyhow::Error,
    ) -> Result<()> {
        let Some(server_error) = ServerError::in_chain(&error) else {
            // The connection broke. The loop over statements notices that.
            return Ok(());
        };
        match server_error.sqlstate.as_str() {
            "58000" => {
                self.window().1.count_error(session, server_error);
                // Ends a transaction, if one is open.
                let _ = client.batch_execute("ROLLBACK");
                std::thread::sleep(PAUSE);
                Ok(())
            }
            // The administrator, a crash, startup or shutdown.
            sqlstate if sqlstate.starts_with("57P") => Ok(()),
            // The disk of the write-ahead log is full. The first session to
            // notice causes and receives the PANIC.
            "53100" if is_panic(&error) => Ok(()),
            _ => Err(error.context(server_error.to_string())),
        }
    }
}

fn is_panic(error: &anyhow::Error) -> bool {
    db_error(error).is_some_and(|error| error.parsed_severity() == Some(Severity::Panic))
}
