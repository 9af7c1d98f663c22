//! This process, as the protocol asks it ([`snowflake_id::protocol`]): it carries out what
//! decides over uniqueness, and adds what only Postgres knows.
//!
//! No lock of this process is held while it looks things up, reserves or waits: an error
//! of Postgres may come out of any of these.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;

use pgrx::{check_for_interrupts, pg_sys};
use snowflake_id::protocol::{
    Clocks, DrawingProcess, NoReading, NotReserved, Process, Reading, Reservation, ServerSettings,
    SharedMemory, Wait,
};
use snowflake_id::{Allowance, Answer, Identity, Run, Tick, WallTime};

use crate::clock;
use crate::error::Error;
use crate::generator::open_transaction::{self, DrawingTransaction};
use crate::generator::session::{FAST_PATH, Session};
use crate::generator::storage::{Pages, locate_mark};
use crate::generator::wait::WaitBudget;
use crate::generator::{accepted_layout, log, reserve};
use crate::pg;
use crate::settings;
use crate::shared::{Locked, MarkKey};

/// This process during a call.
pub struct Backend<'a> {
    session: &'a Session,
    pages: Pages,
    /// That of the mark.
    incarnation: Cell<Option<(pg_sys::Oid, u64)>>,
    budget: RefCell<WaitBudget>,
}

impl<'a> Backend<'a> {
    /// This process, which may wait for `snowflake.max_wait` from now on.
    pub fn new(session: &'a Session) -> Self {
        Backend {
            session,
            pages: Pages::of(pg_sys::InvalidOid),
            incarnation: Cell::new(None),
            budget: RefCell::new(WaitBudget::new()),
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

    fn wait(&self, needed: i64, error: impl FnOnce(i64, i32) -> Error) -> Result<(), Error> {
        self.budget.borrow_mut().wait(needed, error)
    }

    /// Waits for the clock to come within `max_clock_step` of this time.
    fn wait_for_clock(&self, wall: WallTime, reached: WallTime) -> Result<(), Error> {
        let needed = reached
            .micros_since(wall)
            .saturating_sub(self.settings().max_clock_step.unwrap_or(0));
        self.wait(needed, |_, _| Error::ClockBehind { wall, reached })
    }
}

impl Process for Backend<'_> {
    type Storage = Pages;
    type Entry = Locked;

    fn storage(&self) -> &Pages {
        &self.pages
    }

    fn identity(&self) -> &Identity {
        &self.session.identity
    }

    fn shared(&self) -> SharedMemory<'_> {
        self.session.shared.memory()
    }

    fn settings(&self) -> ServerSettings {
        settings::of_protocol()
    }

    fn highest_wall(&self) -> WallTime {
        FAST_PATH.highest_wall()
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
        // What each process keeps: when this transaction commits, as its rows become visible.
        pg::relation::forget(self.pages.mark());
    }

    #[cfg(feature = "testing")]
    async fn step(&self) {
        crate::crash_points::at(c"snowflake-raise");
    }
}

impl DrawingProcess for Backend<'_> {
    type Opened = DrawingTransaction;

    async fn reading(&self, clocks: Clocks) -> Result<Reading, NoReading> {
        #[cfg(feature = "testing")]
        if crate::unprotected::is("clock") {
            return Ok(Reading {
                clocks,
                time: clocks.wall,
                now: self.session.tick_at(clocks.wall).unwrap_or_default(),
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

    async fn reservation(&self) -> Result<Reservation, Error> {
        if let Some((mark, reservation)) = reserve::kept() {
            self.pages.set_mark(mark);
            return Ok(reservation);
        }
        settings::warn_if_pending();
        self.pages.set_mark(reserve::find_mark()?);
        Ok(Reservation::new(self).await)
    }

    fn keep(&self, reservation: Reservation) {
        reserve::keep(self.pages.mark(), reservation);
    }

    async fn check_layout(&self) -> Result<(), Error> {
        let Session {
            shared, identity, ..
        } = self.session;
        accepted_layout::check(*shared, *identity.layout(), self.pages.mark())
    }

    async fn begin_to_draw(&self, now: Tick) -> Option<(DrawingTransaction, Tick)> {
        (!open_transaction::has_drawn()).then(|| open_transaction::begin(self.session, now))
    }

    fn drew(&self, opened: DrawingTransaction, slot: u32, run: Run) {
        opened.drew(self.session.identity.id(slot, run.tick, run.first));
    }

    async fn next_run(
        &self,
        allowance: Allowance,
        count: NonZeroU32,
        wall: WallTime,
    ) -> (u32, Answer) {
        self.session.next_run(allowance, count, wall)
    }

    fn observe(&self, wall: WallTime) {
        FAST_PATH.observe(wall);
    }

    fn left_ms(&self) -> i64 {
        self.budget.borrow().left_ms()
    }

    async fn wait_for(&self, reason: NotReserved<Error>, clocks: Clocks) -> Result<(), Error> {
        let layout = self.session.layout();
        let wall = clocks.wall;
        let time_of = |tick| WallTime::from(layout.time_of(tick));
        match reason {
            NotReserved::Raised => {
                check_for_interrupts!();
                Ok(())
            }
            NotReserved::Busy => self.budget.borrow().wait_for_mover(),
            NotReserved::Locked => Err(self.budget.borrow().mark_locked()),
            NotReserved::SetAhead(bound) => {
                let set_to = time_of(bound);
                let lease = self.settings().lease_micros();
                let needed = set_to.minus_micros(lease).micros_since(wall);
                self.wait(needed, |_, _| Error::MarkSetAhead { wall, set_to })
            }
            // Waits for the clock to come near to the mark.
            NotReserved::TooFarAhead(bound) => self.wait_for_clock(wall, time_of(bound)),
            NotReserved::PastEnd => Err(Error::PastEnd {
                end: layout.expires_at(),
            }),
            NotReserved::Failed(error) => Err(error),
        }
    }

    async fn wait_for_reading(&self, reason: NoReading, clocks: Clocks) -> Result<(), Error> {
        let layout = self.session.layout();
        let wall = clocks.wall;
        match reason {
            NoReading::Behind { reached } => self.wait_for_clock(wall, reached),
            NoReading::Ahead { expected } => Err(Error::ClockAhead { wall, expected }),
            NoReading::BeforeEpoch => Err(Error::BeforeEpoch {
                wall: clock::time(wall),
                epoch: layout.epoch(),
            }),
            NoReading::PastEnd => Err(Error::PastEnd {
                end: layout.expires_at(),
            }),
        }
    }

    async fn wait_for_slots(&self, wait: Wait) -> Result<(), Error> {
        let clocks = wait.reading.clocks;
        log::waiting(self.session.shared, clocks, wait.needed);
        self.wait(
            i64::try_from(wait.needed).unwrap_or(i64::MAX),
            |needed_ms, max_wait_ms| Error::WaitTooLong {
                wall: clocks.wall,
                next: self.session.layout().time_of(wait.next).into(),
                needed_ms,
                max_wait_ms,
            },
        )
    }

    async fn give_way(&self) {
        check_for_interrupts!();
    }
}
