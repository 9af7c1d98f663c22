//! What is reserved for this process's database, and how to reserve more.
//!
//! The reservation is kept behind a mutex, which is never held while the mark is
//! located, read or moved: an error of Postgres may come out of these.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use parking_lot::Mutex;
use pgrx::{check_for_interrupts, pg_sys};
use snowflake_id::{Allowance, Layout, Tick, TimeError, WallTime};

use crate::clock::Clocks;
use crate::error::Error;
use crate::generator::mark::{self, NotReserved};
use crate::generator::reading::Reading;
use crate::generator::session::{FAST_PATH, Session};
use crate::generator::wait::WaitBudget;
use crate::pg;
use crate::settings;
use crate::shared::{MarkKey, Shared};

/// What this process knows of its database's reservation.
#[derive(Clone, Copy)]
pub struct Reservation {
    /// The mark's sequence.
    mark: pg_sys::Oid,
    /// How many ticks a slot may borrow.
    max_borrow: u64,
    /// The length of the lease, in ticks.
    lease: u64,
    /// The first tick that is not reserved; 0 if none is.
    bound: Tick,
    /// The tick from which on more should be reserved.
    extend_from: Tick,
}

/// Unlike the standard library's, this mutex is not poisoned when an error of
/// Postgres passes through.
static RESERVATION: Mutex<Option<Reservation>> = Mutex::new(None);

/// The OID of the mark's sequence that is in use, for [`relation_changed`].
static MARK: AtomicU32 = AtomicU32::new(0);

/// Set when the relation cache forgets the mark: the extension may have been
/// dropped and created again.
static MARK_CHANGED: AtomicBool = AtomicBool::new(false);

impl Reservation {
    /// What was kept, unless the mark or a setting has changed since.
    ///
    /// # Errors
    /// As [`mark::locate`].
    pub fn current(session: &Session, function: pg_sys::Oid) -> Result<Self, Error> {
        let mark_changed = MARK_CHANGED.swap(false, Relaxed);
        let settings_changed = settings::take_changed();
        let kept = *RESERVATION.lock();
        if let Some(reservation) = kept.filter(|_| !mark_changed && !settings_changed) {
            return Ok(reservation);
        }
        // Not to be kept if an error follows.
        forget();

        watch_relation_cache();
        let mark = mark::locate(function)?;
        MARK.store(mark.to_u32(), Relaxed);
        let tick_micros = u64::from(session.tick_micros);
        let mut reservation = Reservation {
            mark,
            max_borrow: settings::max_borrow_micros() / tick_micros,
            lease: settings::lease_micros().div_ceil(tick_micros).max(2),
            bound: Tick::default(),
            extend_from: Tick::default(),
        };
        // If no process has read the mark since the server's start, nothing is
        // reserved, and the first ID reads it.
        if let Some(bound) = reservation.bound_in_shared_memory(session) {
            reservation.set_bound(bound, 1);
        }
        Ok(reservation)
    }

    /// The mark's sequence.
    pub fn mark(&self) -> pg_sys::Oid {
        self.mark
    }

    /// Whether the mark has been read since the server's start.
    pub fn is_known(&self) -> bool {
        self.bound != Tick::default()
    }

    /// What a slot may use when the clock shows this tick.
    pub fn allowance(&self, now: Tick) -> Allowance {
        Allowance {
            now,
            max_borrow: self.max_borrow,
            reserved: self.bound,
        }
    }

    /// Finds what is reserved.
    ///
    /// # Errors
    /// As [`mark::read`].
    pub fn read_mark(
        &mut self,
        session: &Session,
        clocks: Clocks,
        wait_ms: i64,
    ) -> Result<(), NotReserved> {
        let known = self.bound_in_shared_memory(session);
        let bound = match known.filter(|&bound| bound > self.bound) {
            Some(bound) => bound,
            None => mark::read(session.shared, &self.request(session, clocks, 1, wait_ms))?,
        };
        self.set_bound(bound, 1);
        Ok(())
    }

    /// Reserves time beyond `wanted`, or finds that another process has.
    ///
    /// # Errors
    /// As [`mark::advance`].
    pub fn extend(
        &mut self,
        session: &Session,
        reading: Reading,
        wanted: Tick,
        wait_ms: i64,
    ) -> Result<(), NotReserved> {
        let Reading {
            clocks,
            now,
            slowdown,
        } = reading;
        let known = self.bound_in_shared_memory(session);
        let bound = match known.filter(|&bound| bound > self.bound && bound > wanted) {
            Some(bound) => bound,
            None => {
                let request = self.request(session, clocks, slowdown, wait_ms);
                mark::advance(session.shared, &request, now, wanted)?
            }
        };
        self.set_bound(bound, slowdown);
        Ok(())
    }

    /// Reserves more while some is left, after an ID of tick `used`. The first
    /// process does it, the others continue.
    ///
    /// # Errors
    /// The errors of [`mark::advance`] that end a call.
    pub fn extend_early(
        &mut self,
        session: &Session,
        reading: Reading,
        used: Tick,
    ) -> Result<(), Error> {
        if used < self.extend_from {
            return Ok(());
        }
        // Some is left, so there is no wait.
        match self.extend(session, reading, used, 0) {
            Ok(()) => {}
            // Try again a little later, not for every ID.
            Err(NotReserved::Busy | NotReserved::Locked) => {
                let pause = (self.ticks_ahead(reading.slowdown) / 8).max(1);
                let later = Tick::new(used.get().saturating_add(pause));
                self.extend_from = later.min(self.bound);
            }
            Err(NotReserved::Failed(error)) => return Err(error),
            // The mark was set; the next ID handles that.
            Err(_) => self.set_bound(Tick::default(), 1),
        }
        Ok(())
    }

    /// Keeps it for the next call and for the fast path.
    pub fn keep(self) {
        *RESERVATION.lock() = Some(self);
        FAST_PATH.set_max_borrow(self.max_borrow);
        FAST_PATH.set_slow_from(self.extend_from);
        // The relation cache may have forgotten the mark in the meantime.
        if MARK_CHANGED.load(Relaxed) {
            FAST_PATH.close();
        }
    }

    /// A request to read or move the mark.
    pub fn request<'a>(
        &self,
        session: &'a Session,
        clocks: Clocks,
        slowdown: u64,
        wait_ms: i64,
    ) -> mark::Request<'a> {
        mark::Request {
            sequence: self.mark,
            identity: &session.identity,
            ticks_ahead: self.ticks_ahead(slowdown),
            boot: clocks.boot,
            highest_set: highest_set(session.shared, session.layout(), clocks.wall),
            highest_accepted: highest_accepted(session, clocks.wall),
            wait_ms,
        }
    }

    fn set_bound(&mut self, bound: Tick, slowdown: u64) {
        let half = self.ticks_ahead(slowdown) / 2;
        self.bound = bound;
        self.extend_from = Tick::new(bound.get().saturating_sub(half));
    }

    /// How many ticks to reserve ahead: fewer while the clock is behind. After a
    /// crash IDs start above what was reserved. With the whole lease each time,
    /// crashes in quick succession would move them ever further ahead.
    fn ticks_ahead(&self, slowdown: u64) -> u64 {
        if slowdown == 1 {
            self.lease
        } else {
            (self.lease / 8).max(2)
        }
    }

    /// The bound that another process may have reserved.
    fn bound_in_shared_memory(&self, session: &Session) -> Option<Tick> {
        session.shared.bound_of(MarkKey::here(self.mark))
    }
}

/// Forgets what is reserved: the next ID looks it up.
pub fn forget() {
    *RESERVATION.lock() = None;
    FAST_PATH.close();
}

/// Waits a while for the reason why nothing was reserved.
///
/// # Errors
/// If there is no use in waiting, or if the wait is bound to take too long.
pub fn wait_for(
    reason: NotReserved,
    session: &Session,
    clocks: Clocks,
    budget: &mut WaitBudget,
) -> Result<(), Error> {
    let wall = clocks.wall;
    let time_of = |tick| WallTime::from(session.layout().time_of(tick));
    match reason {
        NotReserved::Raised => {
            check_for_interrupts!();
            Ok(())
        }
        NotReserved::Busy => budget.wait_for_mover(),
        NotReserved::Locked => Err(budget.mark_locked()),
        NotReserved::SetAhead(bound) => {
            let set_to = time_of(bound);
            let needed = set_to.minus_micros(lease_micros()).micros_since(wall);
            budget.wait(needed, |_, _| Error::MarkSetAhead { wall, set_to })
        }
        // Waits for the clock to come near to the mark.
        NotReserved::TooFarAhead(bound) => {
            budget.wait_for_clock(wall, time_of(bound), settings::max_clock_step_micros())
        }
        NotReserved::Failed(error) => Err(error),
    }
}

/// The highest tick that slots may be raised to by a mark that was set: a lease
/// ahead of the clock, or what has been reached anyway. No lease is added to what
/// has been reached: each `setval` would add another.
pub fn highest_set(shared: Shared, layout: &Layout, wall: WallTime) -> Tick {
    let reached = shared.slewed_clock().reached();
    let highest = wall.plus_micros(lease_micros()).max(reached);
    layout.tick_at(highest.into()).unwrap_or_default()
}

/// The highest tick that slots may be raised to.
pub fn highest_accepted(session: &Session, wall: WallTime) -> Tick {
    let layout = session.layout();
    let Some(max_step) = settings::max_clock_step_micros() else {
        return layout.last_tick();
    };
    match layout.tick_at(wall.plus_micros(max_step).into()) {
        Ok(tick) => tick,
        Err(TimeError::BeforeEpoch { .. }) => Tick::default(),
        Err(TimeError::AfterEnd { .. }) => layout.last_tick(),
    }
}

fn lease_micros() -> i64 {
    i64::try_from(settings::lease_micros()).unwrap_or(i64::MAX)
}

fn watch_relation_cache() {
    // Set last: an error of Postgres in between must not prevent a second try.
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Relaxed) {
        return;
    }
    pg::callbacks::on_relation_change(relation_changed);
    DONE.store(true, Relaxed);
}

fn relation_changed(relation: pg_sys::Oid) {
    // 0 stands for every relation.
    if relation == pg_sys::InvalidOid || relation.to_u32() == MARK.load(Relaxed) {
        MARK_CHANGED.store(true, Relaxed);
        FAST_PATH.close();
    }
}
