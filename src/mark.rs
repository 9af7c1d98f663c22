//! The mark: the bound, in the write-ahead log, below which this database's
//! IDs stay.
//!
//! `snowflake_mark` is a sequence in the extension's schema. Its `last_value`
//! is an ID; none at or above it has been issued in this database. A server
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
//! holds the number of the server run that moved the mark last. A page with
//! this run's number says nothing that the slots don't know: all IDs below it
//! came from them. Any other (a restart, another server's copy, a dump's
//! `setval`) raises every slot. `setval` and `nextval` on the mark write a
//! `log_cnt` of 0 to 32; run numbers are negative.
//!
//! The highest mark of all databases is kept in a file as well ([`crate::floor`]).
//!
//! Locking: the relation lock that `nextval()` takes, for as long as the page
//! is looked at; then the mark's entry in shared memory, so that one process
//! moves it at a time; then the page. Only the first can be waited for.
#![allow(unsafe_code)] // relations, buffers and WAL

use std::ffi::CStr;

use pgrx::pg_sys;
use snowflake_id::{Layout, SnowflakeId, Tick};

use crate::clock;
use crate::error::Error;
use crate::floor::{self, Server};
use crate::shared::{Locked, MarkKey, Shared};

const SEQUENCE_NAME: &CStr = c"snowflake_mark";

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
    /// Another process is moving the mark.
    Busy,
    /// The mark says that IDs may be out up to this tick, which is more than
    /// can be accepted; nothing was changed.
    TooFarAhead(Tick),
    /// Somebody has set the mark. Every slot was raised to it, and with that
    /// what time it is for making IDs has changed.
    Raised,
}

/// Finds the mark that belongs to an SQL function of the extension: the
/// extension is not relocatable, so they share a schema.
///
/// # Errors
/// [`Error::MarkMissing`].
pub fn locate(function: pg_sys::Oid) -> Result<pg_sys::Oid, Error> {
    // SAFETY: catalog lookups with a valid name.
    let sequence = unsafe {
        let schema = pg_sys::get_func_namespace(function);
        pg_sys::get_relname_relid(SEQUENCE_NAME.as_ptr(), schema)
    };
    if sequence == pg_sys::InvalidOid {
        Err(Error::MarkMissing)
    } else {
        Ok(sequence)
    }
}

/// Sees to it that `request.wanted` and some time after it are below the mark.
/// Where this server run has not read the mark before, raises every slot to it.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`], and [`Error::PastEnd`]
/// where the layout has no tick left to reserve.
pub fn reserve(shared: Shared, request: &Request) -> Result<Reserved, Error> {
    let relation = Relation::open(request.sequence)?;
    let Some(entry) = shared.try_lock(MarkKey::here(request.sequence)) else {
        return Ok(Reserved::Busy);
    };
    let page = Page::lock(&relation);
    let written = page.read();
    let layout = &request.server.layout;

    let bound = match entry.bound() {
        // Read before by this run, and nobody else has moved it since.
        Some(bound) if layout.tick_above(written.bound) <= bound => bound,
        // Moved by this run, whose entry had to make room in between.
        None if written.run == shared.run() => {
            let bound = layout.tick_of(written.bound);
            entry.set_bound(bound);
            bound
        }
        known => {
            let mut bound = layout.tick_above(written.bound);
            if known.is_none() {
                let floor = floor::at_start(shared, request.server)?;
                bound = bound.max(layout.tick_above(floor));
            }
            if bound > request.highest_accepted {
                return Ok(Reserved::TooFarAhead(bound));
            }
            raise_slots(shared, layout, bound, request.boot);
            entry.set_bound(bound);
            if known.is_some() {
                return Ok(Reserved::Raised);
            }
            bound
        }
    };
    let Some(wanted) = request.wanted else {
        return Ok(Reserved::Until(bound));
    };

    // Somebody may have moved it while this process came here.
    if bound.get() > wanted.get().saturating_add(request.lease / 2) {
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
    if target <= bound {
        return if wanted < bound {
            Ok(Reserved::Until(bound))
        } else {
            Err(Error::PastEnd {
                end: layout.expires_at(),
            })
        };
    }
    page.move_to(shared, request, &relation, &entry, target)
}

/// Sees to it that this database's later IDs have at least this tick.
/// [`Reserved::Busy`] while another process moves the mark, [`Reserved::Raised`]
/// where it has to be read again first.
///
/// # Errors
/// As [`reserve`].
pub fn start_at(shared: Shared, request: &Request, tick: Tick) -> Result<Reserved, Error> {
    let relation = Relation::open(request.sequence)?;
    let Some(entry) = shared.try_lock(MarkKey::here(request.sequence)) else {
        return Ok(Reserved::Busy);
    };
    let page = Page::lock(&relation);
    let layout = &request.server.layout;
    let Some(known) = entry.bound() else {
        return Ok(Reserved::Raised);
    };
    let bound = known.max(layout.tick_above(page.read().bound));
    let target = Tick::new(tick.get().saturating_add(request.lease))
        .min(layout.last_tick())
        .max(bound);
    raise_slots(shared, layout, tick, request.boot);
    page.move_to(shared, request, &relation, &entry, target)
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

impl Relation {
    fn open(sequence: pg_sys::Oid) -> Result<Self, Error> {
        // SAFETY: answers null where the relation is gone.
        let relation = unsafe { pg_sys::try_relation_open(sequence, LOCK_MODE) };
        if relation.is_null() {
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
        Ok(relation)
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

/// The tuple of a sequence (`FormData_pg_sequence_data`, commands/sequence.h).
#[repr(C)]
struct SequenceData {
    last_value: i64,
    log_cnt: i64,
    is_called: bool,
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
                .filter(|bound| data.is_called || bound.get() > 1)
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
        let record = self.write(relation, Written { bound, run });
        // Others may read the page while this process waits for the disk.
        drop(self);
        flush(record);
        floor::raise(shared, request.server, bound)?;
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
            data.is_called = true;
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
unsafe fn sequence_data(page: pg_sys::Page) -> *mut SequenceData {
    // SAFETY: per this function's contract.
    unsafe {
        let item = pg_sys::PageGetItemId(page, 1);
        let tuple = pg_sys::PageGetItem(page, item).cast::<pg_sys::HeapTupleHeaderData>();
        tuple.byte_add(usize::from((*tuple).t_hoff)).cast()
    }
}

/// Makes the record durable. There is none (0) where `wal_level` is `minimal`
/// and this very transaction has created the extension: then the commit syncs
/// the file, and before it nobody else can see the extension.
fn flush(record: pg_sys::XLogRecPtr) {
    if record != 0 {
        // SAFETY: a position that was just written.
        unsafe { pg_sys::XLogFlush(record) };
    }
}
