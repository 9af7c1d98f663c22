//! The mark: the bound, in the write-ahead log, below which this database's
//! IDs stay.
//!
//! `snowflake_internal.mark` is a sequence. Its `last_value` is an ID; none at or above it has been issued in this database. A server
//! reserves time by moving the mark ahead before it issues IDs up to there, as
//! `nextval()` logs 32 values ahead, but once for all tables and by time. The
//! page is changed in place with generic WAL, and the record is flushed before
//! any ID below the new bound goes out: a row with an ID is always later in
//! the log than the mark above it, so whatever carries the rows (a crash's
//! recovery, a standby, a base backup, `pg_rewind`) carries the mark too, and
//! `pg_dump` does as for any sequence.
//!
//! Moving needs no transaction ID, so it works in read-only transactions, in
//! parallel workers and in transactions that are rolled back; the move itself
//! is never rolled back.
//!
//! `log_cnt`, which a sequence uses to count values that are logged ahead,
//! holds the number of the server run that moved the mark last:
//!
//! | `log_cnt` | who wrote the page | what it says |
//! |---|---|---|
//! | this run's number | this server run | nothing that the slots don't know: all IDs below it came from them |
//! | another negative number | an earlier run, or the server that this one is a copy of | IDs below it may be out; every slot is raised to it |
//! | 0 to 32 | `setval` or `nextval`: a dump that was restored, or anybody with the privilege | the same, as far as the lease; see below |
//!
//! The slots belong to the whole server, so a mark that was set takes the IDs of
//! all its databases along. The privilege to set a sequence is given away with
//! all others of a schema (`GRANT ... ON ALL SEQUENCES`, `pg_write_all_data`),
//! so a mark that was set raises slots no further than a lease ahead of the
//! clock. Beyond that IDs of its own database wait, or are refused, until a
//! superuser says that it is right ([`start_at`]). One that was set to less
//! than what is reserved is moved up again before anything is answered.
//!
//! The highest mark of all databases is kept for the server as well
//! ([`crate::generator::floor`]).
//!
//! Locking: the relation lock that `nextval()` takes, for as long as the page
//! is looked at; then the mark's entry in shared memory, so that one process
//! moves it at a time; then the page. Only the first is ever waited for, and
//! only where nothing is reserved any more; for how long is bounded, since
//! anybody who may read the sequence can be in the way.
#![allow(unsafe_code)] // relations, buffers and WAL

use std::ffi::{CStr, c_int};

use pgrx::pg_sys;
use pgrx::prelude::*;
use snowflake_id::{Layout, SnowflakeId, Tick};

use crate::catalog;
use crate::clock;
use crate::error::Error;
use crate::generator::floor::{self, Server};
use crate::shared::{Locked, MarkKey, Shared};

const SEQUENCE_NAME: &CStr = c"mark";

/// The lock that `nextval()` takes on a sequence.
const LOCK_MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

/// What a reservation needs to know.
pub struct Request {
    /// The mark's sequence.
    pub sequence: pg_sys::Oid,
    /// Whose IDs they are.
    pub server: Server,
    /// How far ahead to reserve.
    pub lease: u64,
    /// What time it is for making IDs.
    pub now: Tick,
    /// The highest tick that slots may be raised to because somebody has set
    /// the mark; at least what time has been reached.
    pub highest_set: Tick,
    /// How long to wait for the lock on the sequence, milliseconds; 0 not to.
    pub wait_ms: i64,
    /// The same instant by the clock that cannot step, microseconds.
    pub boot: i64,
    /// The tick that has to be below the bound; `None` to read the mark only.
    pub wanted: Option<Tick>,
    /// The highest tick that slots may be raised to; a mark above it means
    /// that the clock is too far behind.
    pub highest_accepted: Tick,
}

/// How a reservation went.
pub enum Reserved {
    /// Ticks below this one may be used.
    Until(Tick),
    /// Another process is moving the mark, or, where no time was given to
    /// wait, has a lock on it.
    Busy,
    /// The sequence was locked for as long as may be waited.
    Locked,
    /// Somebody has set the mark so that IDs may be out up to this tick, which is
    /// more than is accepted from anybody; nothing was changed.
    SetAhead(Tick),
    /// The mark says that IDs may be out up to this tick, which is more than
    /// can be accepted; nothing was changed.
    TooFarAhead(Tick),
    /// Somebody has set the mark. Every slot was raised to it, and with that
    /// what time it is for making IDs has changed.
    Raised,
}

/// Finds the mark of the extension to which an SQL function belongs.
///
/// # Errors
/// [`Error::MarkMissing`].
pub fn locate(function: pg_sys::Oid) -> Result<pg_sys::Oid, Error> {
    catalog::relation(function, SEQUENCE_NAME).ok_or(Error::MarkMissing)
}

/// Sees to it that `request.wanted` and some time after it are below the mark.
/// Where this server run has not read the mark before, raises every slot to it.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`], and [`Error::PastEnd`]
/// where the layout has no tick left to reserve.
pub fn reserve(shared: Shared, request: &Request) -> Result<Reserved, Error> {
    let relation = match Relation::open(request.sequence, request.wait_ms)? {
        Opened::Relation(relation) => relation,
        Opened::Locked => return Ok(request.not_locked()),
    };
    let Some(entry) = shared.try_lock(MarkKey::here(request.sequence)) else {
        return Ok(Reserved::Busy);
    };
    let page = Page::lock(&relation);
    let written = page.read();
    let layout = &request.server.layout;
    let on_page = layout.tick_above(written.bound);

    // Whether the page says less than what sessions go by.
    let mut is_low = false;
    let bound = match entry.bound() {
        // What this run wrote is so, whatever the entry says: that had to make
        // room in between, or is of a database of the same number.
        _ if written.run == shared.run() => {
            let bound = layout.tick_of(written.bound);
            entry.set_bound(bound);
            bound
        }
        Some(bound) if on_page <= bound => {
            is_low = true;
            bound
        }
        known => {
            let mut bound = on_page;
            if known.is_none() {
                let floor = floor::at_start(shared, request.server)?;
                bound = bound.max(layout.tick_above(floor));
            }
            if bound > request.highest_accepted {
                return Ok(Reserved::TooFarAhead(bound));
            }
            if written.is_set() && on_page > request.highest_set {
                return Ok(Reserved::SetAhead(on_page));
            }
            raise_slots(shared, layout, bound, request.boot);
            entry.set_bound(bound);
            if known.is_some() {
                return Ok(Reserved::Raised);
            }
            bound
        }
    };
    let wanted = match request.wanted {
        Some(wanted) => wanted,
        None if is_low => bound,
        None => return Ok(Reserved::Until(bound)),
    };

    // Somebody may have moved it while this process came here.
    if !is_low && bound.get() > wanted.get().saturating_add(request.lease / 2) {
        return Ok(Reserved::Until(bound));
    }
    let highest = highest_tick(shared, layout);
    let target = Tick::new(
        request
            .now
            .max(highest)
            .max(wanted)
            .get()
            .saturating_add(request.lease),
    )
    // A bound above the layout's last tick need not fit into a bigint, so that
    // tick is never issued.
    .min(layout.last_tick());
    if target <= bound && !is_low {
        return if wanted < bound {
            Ok(Reserved::Until(bound))
        } else {
            Err(Error::PastEnd {
                end: layout.expires_at(),
            })
        };
    }
    page.move_to(shared, request, &relation, &entry, target.max(bound))
}

/// Sees to it that this database's later IDs have at least this tick, and
/// accepts what somebody has set. [`Reserved::Busy`] while another process moves
/// the mark.
///
/// # Errors
/// As [`reserve`].
pub fn start_at(shared: Shared, request: &Request, tick: Tick) -> Result<Reserved, Error> {
    let relation = match Relation::open(request.sequence, request.wait_ms)? {
        Opened::Relation(relation) => relation,
        Opened::Locked => return Ok(request.not_locked()),
    };
    let Some(entry) = shared.try_lock(MarkKey::here(request.sequence)) else {
        return Ok(Reserved::Busy);
    };
    let page = Page::lock(&relation);
    let written = page.read();
    let layout = &request.server.layout;
    let mut start = tick;
    let mut reserved = entry.bound().unwrap_or_default();
    if written.run == shared.run() {
        reserved = layout.tick_of(written.bound);
    } else {
        start = start.max(layout.tick_above(written.bound));
        if entry.bound().is_none() {
            let floor = floor::at_start(shared, request.server)?;
            start = start.max(layout.tick_above(floor));
        }
    }
    if start > request.highest_accepted {
        return Ok(Reserved::TooFarAhead(start));
    }
    let target = Tick::new(start.get().saturating_add(request.lease))
        .min(layout.last_tick())
        .max(start)
        .max(reserved);
    raise_slots(shared, layout, start, request.boot);
    page.move_to(shared, request, &relation, &entry, target)
}

impl Request {
    /// What it means that the sequence is locked.
    fn not_locked(&self) -> Reserved {
        if self.wait_ms > 0 {
            Reserved::Locked
        } else {
            Reserved::Busy
        }
    }
}

/// Whether no ID of this database has been issued: the mark was never moved.
/// `false` where it cannot be looked at without waiting.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`].
pub fn is_unused(sequence: pg_sys::Oid) -> Result<bool, Error> {
    match Relation::open(sequence, 0)? {
        Opened::Relation(relation) => Ok(Page::lock(&relation).read().bound == SnowflakeId::ZERO),
        Opened::Locked => Ok(false),
    }
}

/// Raises every slot to a time that has been reached by now.
fn raise_slots(shared: Shared, layout: &Layout, bound: Tick, boot: i64) {
    if bound == Tick::default() {
        // Nothing is out yet; the epoch may lie in the future.
        return;
    }
    // The time first: who finds a raised slot finds out why.
    shared
        .pace()
        .note(clock::micros(layout.time_of(bound)), boot);
    for slot in shared.slots() {
        slot.raise_to(layout.sequence_bits(), bound);
    }
}

fn highest_tick(shared: Shared, layout: &Layout) -> Tick {
    shared
        .slots()
        .iter()
        .map(|slot| slot.last(layout.sequence_bits()).0)
        .max()
        .unwrap_or_default()
}

/// The mark's sequence, opened and locked until dropped.
struct Relation(pg_sys::Relation);

/// What came of opening it.
enum Opened {
    Relation(Relation),
    /// Somebody else has locked it.
    Locked,
}

impl Relation {
    fn open(sequence: pg_sys::Oid, wait_ms: i64) -> Result<Opened, Error> {
        if !lock(sequence, wait_ms) {
            return Ok(Opened::Locked);
        }
        // SAFETY: answers null where the relation is gone; it is locked.
        let relation = unsafe {
            let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
            pg_sys::try_relation_open(sequence, no_lock)
        };
        if relation.is_null() {
            // SAFETY: locked above.
            unsafe { pg_sys::UnlockRelationOid(sequence, LOCK_MODE) };
            return Err(Error::MarkMissing);
        }
        let relation = Relation(relation);
        // SAFETY: an open relation has its `pg_class` row.
        let (kind, persistence) = unsafe {
            let class = &*(*relation.0).rd_rel;
            (class.relkind as u8, class.relpersistence as u8)
        };
        if kind != pg_sys::RELKIND_SEQUENCE {
            return Err(Error::MarkMissing);
        }
        if persistence != pg_sys::RELPERSISTENCE_PERMANENT {
            return Err(Error::MarkNotPermanent);
        }
        Ok(Opened::Relation(relation))
    }
}

/// Locks the sequence; `false` where it could not be locked in that time.
fn lock(sequence: pg_sys::Oid, wait_ms: i64) -> bool {
    // SAFETY: a lock on a relation need not have one.
    if unsafe { pg_sys::ConditionalLockRelationOid(sequence, LOCK_MODE) } {
        return true;
    }
    if wait_ms <= 0 {
        return false;
    }
    // In the queue, as `nextval()` would, so that those who come later don't go
    // first. It is the wait that `lock_timeout` bounds.
    // SAFETY: a plain integer of this process, put back on every way out.
    unsafe {
        let before = pg_sys::LockTimeout;
        let wait = c_int::try_from(wait_ms).unwrap_or(c_int::MAX);
        pg_sys::LockTimeout = if before > 0 { before.min(wait) } else { wait };
        PgTryBuilder::new(|| {
            pg_sys::LockRelationOid(sequence, LOCK_MODE);
            true
        })
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| false)
        .finally(|| pg_sys::LockTimeout = before)
        .execute()
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        // An error that passes through leaves it to the abort, as in C.
        if !std::thread::panicking() {
            // SAFETY: opened by `open` with this mode and closed once.
            unsafe { pg_sys::relation_close(self.0, LOCK_MODE) };
        }
    }
}

/// What the mark's page says.
struct Written {
    bound: SnowflakeId,
    run: i64,
}

impl Written {
    /// Whether it was set by hand: runs have negative numbers.
    fn is_set(&self) -> bool {
        self.run >= 0 && self.bound > SnowflakeId::ZERO
    }
}

/// The tuple of a sequence (`FormData_pg_sequence_data`, commands/sequence.h).
/// Whatever is on the page is a valid value of it: a `bool` need not be.
#[repr(C)]
pub struct SequenceData {
    /// The last value, or the first one.
    pub last_value: i64,
    log_cnt: i64,
    /// A C `bool`: 0 where the value has not been given out yet.
    pub is_called: u8,
}

/// The sequence's only page, pinned and exclusively locked until dropped.
struct Page(pg_sys::Buffer);

impl Page {
    fn lock(relation: &Relation) -> Self {
        // SAFETY: a sequence has exactly one block, number 0.
        unsafe {
            let buffer = pg_sys::ReadBuffer(relation.0, 0);
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
            Page(buffer)
        }
    }

    fn read(&self) -> Written {
        #[cfg(feature = "unprotected")]
        if crate::unprotected::is("mark") {
            // As on the first day.
            return Written {
                bound: SnowflakeId::ZERO,
                run: 0,
            };
        }
        // SAFETY: the buffer is pinned and locked.
        let data = unsafe { &*sequence_data(pg_sys::BufferGetPage(self.0)) };
        Written {
            // As created it is 1 and not called; a negative value somebody
            // gave it says that nothing is out yet, too.
            bound: SnowflakeId::new(data.last_value)
                .filter(|bound| data.is_called != 0 || bound.get() > 1)
                .unwrap_or(SnowflakeId::ZERO),
            run: data.log_cnt,
        }
    }

    /// Moves the mark and, once that is durable, tells who looks for it.
    fn move_to(
        self,
        shared: Shared,
        request: &Request,
        relation: &Relation,
        entry: &Locked,
        target: Tick,
    ) -> Result<Reserved, Error> {
        let bound = request.server.layout.first_id_of(target);
        let run = shared.run();
        // First what can fail.
        let floor = floor::raise(shared, request.server, bound)?;
        let record = self.write(relation, Written { bound, run });
        // Others may read the page while this process waits for the disk.
        drop(self);
        flush(record.max(floor.map_or(0, |floor| floor.record)));
        if let Some(floor) = floor {
            floor.is_durable();
        }
        entry.set_bound(target);
        Ok(Reserved::Until(target))
    }

    /// Changes the page and its log together; answers up to where to flush.
    fn write(&self, relation: &Relation, new: Written) -> pg_sys::XLogRecPtr {
        // SAFETY: the buffer is locked exclusively; generic WAL hands out a
        // copy of the page and applies and logs the difference in a critical
        // section of its own.
        unsafe {
            let state = pg_sys::GenericXLogStart(relation.0);
            let page = pg_sys::GenericXLogRegisterBuffer(state, self.0, 0);
            let data = &mut *sequence_data(page);
            data.last_value = new.bound.get();
            data.log_cnt = new.run;
            data.is_called = 1;
            pg_sys::GenericXLogFinish(state)
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: pinned and locked by `lock`, released once.
            unsafe { pg_sys::UnlockReleaseBuffer(self.0) };
        }
    }
}

/// # Safety
/// `page` is the page of a sequence: its one tuple is at line pointer 1.
pub unsafe fn sequence_data(page: pg_sys::Page) -> *mut SequenceData {
    // SAFETY: per this function's contract.
    unsafe {
        let item = pg_sys::PageGetItemId(page, 1);
        let tuple = pg_sys::PageGetItem(page, item).cast::<pg_sys::HeapTupleHeaderData>();
        tuple.byte_add(usize::from((*tuple).t_hoff)).cast()
    }
}

/// Makes the records durable. The mark's is none (0) where `wal_level` is
/// `minimal` and this very transaction has created the extension: then the
/// commit syncs the file, and no other session sees the extension before that. The
/// floor's may be another process's, which is in the log by now.
fn flush(record: pg_sys::XLogRecPtr) {
    // SAFETY: positions that were written.
    unsafe {
        let record = if record == 0 {
            pg_sys::GetXLogInsertRecPtr()
        } else {
            record
        };
        pg_sys::XLogFlush(record);
    }
}
