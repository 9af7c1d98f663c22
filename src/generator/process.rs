//! This process, as the protocol asks it ([`snowflake_id::protocol`]): it carries out what
//! decides over uniqueness, and adds what only Postgres knows.
//!
//! No lock of this process is held while it looks things up, reserves or waits: an error
//! of Postgres may come out of any of these.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pgrx::{check_for_interrupts, pg_sys};
use snowflake_id::Tick;
use snowflake_id::protocol::{
    Budget, Clocks, DrawingProcess, NoReading, Process, Reading, Refused, ServerSettings,
    SharedMemory, Wait,
};

use crate::clock;
use crate::error::Error;
use crate::generator::session::{MEMORY, Session};
use crate::generator::storage::{Disk, locate_mark};
use crate::generator::{accepted_layout, log, stats};
use crate::pg;
use crate::settings;
use crate::shared::{Locked, MarkKey};

/// This process during a call.
pub struct Backend<'a> {
    pub session: &'a Session,
    pages: Disk,
    /// That of the mark.
    incarnation: Cell<Option<(pg_sys::Oid, u64)>>,
    budget: Budget,
    has_waited: Cell<bool>,
}

impl<'a> Backend<'a> {
    /// This process, which may wait for `snowflake.max_wait` from now on.
    pub fn new(session: &'a Session) -> Self {
        Backend {
            session,
            pages: Disk::of(pg_sys::InvalidOid),
            incarnation: Cell::new(None),
            budget: Budget {
                since: clock::boot(),
                max_wait_ms: settings::max_wait_ms().into(),
            },
            has_waited: Cell::new(false),
        }
    }

    /// This process in a call that draws nothing.
    ///
    /// # Errors
    /// As [`locate_mark`].
    pub fn of_database(session: &'a Session) -> Result<Self, Error> {
        let backend = Self::new(session);
        backend.pages.set_mark(locate_mark()?);
        Ok(backend)
    }

    fn key(&self) -> MarkKey {
        MarkKey::here(self.pages.mark())
    }

    /// Tells this mark from one of another database, or of another sequence, that had the same
    /// numbers: the rows of the catalog were written by other transactions. A statement like
    /// ALTER DATABASE writes another row; then processes compare the entry with the page.
    /// Looked up before a lock is taken.
    fn incarnation(&self) -> u64 {
        let mark = self.pages.mark();
        match self.incarnation.get() {
            Some((of, incarnation)) if of == mark => incarnation,
            _ => {
                let incarnation = pg::catalog::incarnation(mark);
                self.incarnation.set(Some((mark, incarnation)));
                incarnation
            }
        }
    }
}

impl Drop for Backend<'_> {
    fn drop(&mut self) {
        if self.has_waited.get() {
            let waited = clock::boot().micros_since(self.budget.since);
            stats::count_wait(u64::try_from(waited).unwrap_or(0));
        }
    }
}

impl Process for Backend<'_> {
    type Storage = Disk;
    type Entry = Locked;
    type Session = Session;

    fn storage(&self) -> &Disk {
        &self.pages
    }

    fn session(&self) -> &Session {
        self.session
    }

    fn shared(&self) -> SharedMemory<'_> {
        self.session.shared.memory()
    }

    fn settings(&self) -> ServerSettings {
        settings::of_protocol()
    }

    async fn clocks(&self) -> Clocks {
        clock::read()
    }

    async fn bound(&self) -> Option<Tick> {
        self.session.shared.bound_of(self.key())
    }

    async fn is_confirmed(&self) -> bool {
        let shared = self.session.shared;
        shared.is_incarnation(self.key(), self.incarnation())
    }

    async fn confirm(&self) {
        let shared = self.session.shared;
        shared.confirm_incarnation(self.key(), self.incarnation());
    }

    async fn try_lock_entry(&self) -> Option<Locked> {
        self.incarnation();
        self.session.shared.try_lock(self.key())
    }

    fn bound_of(&self, entry: &Locked) -> Option<Tick> {
        entry.bound_tick()
    }

    async fn set_bound(&self, entry: &Locked, bound: Tick) {
        #[cfg(feature = "testing")]
        {
            crate::crash_points::at(c"snowflake-publish");
            crate::trace::line(format_args!(
                "announce {} {}",
                pg::session::database().to_u32(),
                bound.get()
            ));
        }
        entry.set_bound_tick(bound, self.incarnation());
    }

    async fn forget(&self, entry: &Locked) {
        entry.forget();
    }

    #[cfg(feature = "testing")]
    async fn step(&self) {
        crate::crash_points::at(c"snowflake-raise");
    }
}

impl DrawingProcess for Backend<'_> {
    async fn reading(&self, clocks: Clocks) -> Result<Reading, NoReading> {
        #[cfg(feature = "testing")]
        if crate::unprotected::is("clock") {
            let layout = self.session.layout();
            return Ok(Reading {
                clocks,
                time: clocks.wall,
                now: layout.tick_at(clocks.wall.into()).unwrap_or_default(),
                slowdown: 1,
            });
        }
        let reading = Reading::take(self, clocks).await?;
        log::clock(self.session.shared, clocks, reading.time);
        Ok(reading)
    }

    fn stepped(&self, step: i64, at: Clocks) {
        log::clock_step(step, at);
    }

    fn check_stopped(&self) -> Result<(), Error> {
        if self.session.shared.is_stopped() {
            return Err(Error::NodeConflict(self.session.identity.node()));
        }
        Ok(())
    }

    fn take_settings_changed(&self) -> bool {
        settings::take_changed()
    }

    async fn find_mark(&self) -> Result<u32, Error> {
        settings::warn_if_pending();
        watch_relation_cache();
        Ok(locate_mark()?.to_u32())
    }

    fn use_mark(&self, mark: u32) {
        self.pages.set_mark(mark.into());
    }

    async fn check_layout(&self) -> Result<(), Error> {
        let Session {
            shared, identity, ..
        } = self.session;
        accepted_layout::check(*shared, *identity.layout(), self.pages.mark())
    }

    fn budget(&self) -> Budget {
        self.budget
    }

    fn waits(&self, slots: Option<Wait>) {
        self.has_waited.set(true);
        if let Some(wait) = slots {
            log::waiting(self.session.shared, wait.reading.clocks, wait.needed);
        }
    }

    /// Ends at once on a cancel, `statement_timeout`, termination or the postmaster's death.
    async fn sleep(&self, millis: i64) -> Result<(), Error> {
        pg::wait::sleep(millis);
        Ok(())
    }

    fn refused(&self, why: Refused, at: Clocks) -> Error {
        let layout = self.session.layout();
        let wall = at.wall;
        match why {
            Refused::MarkLocked { waited_ms } => Error::MarkLocked { waited_ms },
            Refused::MarkSetAhead { set_to } => Error::MarkSetAhead { wall, set_to },
            Refused::ClockBehind { reached } => Error::ClockBehind { wall, reached },
            Refused::ClockAhead { expected } => Error::ClockAhead { wall, expected },
            Refused::BeforeEpoch => Error::BeforeEpoch {
                wall: clock::time(wall),
                epoch: layout.epoch(),
            },
            Refused::PastEnd => Error::PastEnd {
                end: layout.expires_at(),
            },
            Refused::WaitTooLong {
                next,
                needed_ms,
                max_wait_ms,
            } => Error::WaitTooLong {
                wall,
                next,
                needed_ms,
                max_wait_ms,
            },
        }
    }

    async fn give_way(&self) {
        check_for_interrupts!();
    }
}

/// Notices when the relation cache forgets the mark.
fn watch_relation_cache() {
    // Set last: an error of Postgres in between must not prevent a second try.
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.load(Relaxed) {
        // 0 stands for every relation, there and here.
        pg::callbacks::on_relation_change(|relation| MEMORY.mark_changed(relation.to_u32()));
        DONE.store(true, Relaxed);
    }
}
