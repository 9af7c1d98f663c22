//! The mark: the bound, in the write-ahead log, below which this database's IDs
//! stay.
//!
//! `snowflake_internal.mark` is a sequence. Its `last_value` is an ID; none at or
//! above it has been issued in this database. A server reserves time by moving the
//! mark ahead before it issues IDs up to there, as `nextval()` logs 32 values
//! ahead, but once for all tables and by time. The page is changed in place with
//! generic WAL, and the record is flushed before any ID below the new bound is
//! issued: a row with an ID is always later in the log than the mark above it. So
//! the mark is carried by all that carries the rows: crash recovery, a standby, a
//! base backup, `pg_rewind`. `pg_dump` carries it as a row of a table
//! ([`crate::restore`]).
//!
//! Moving needs no transaction ID, so it works in read-only transactions, in
//! parallel workers and in transactions that are rolled back; the move itself
//! is never rolled back.
//!
//! `log_cnt`, which a sequence uses to count values that are logged ahead, holds
//! the start number of the server that moved the mark last:
//!
//! | `log_cnt` | who wrote the page | what it means |
//! |---|---|---|
//! | this start number | this server since its start | nothing that the slots don't know: they issued all IDs below it |
//! | another negative number | the server before its start, or the server that this one is a copy of | IDs below it may have been issued; every slot is raised to it |
//! | 0 to 32 | a restored dump; `setval` or `nextval` by any role with the privilege | the same, within a lease; see below |
//!
//! The slots belong to the whole server, so a mark that was set moves the IDs of
//! all its databases. The privilege to set a sequence is granted together with
//! those on others (`GRANT ... ON ALL SEQUENCES`, `pg_write_all_data`), so a mark
//! that was set raises slots no further than a lease ahead of the clock. Beyond
//! that, IDs of its own database wait, or are refused, until a superuser confirms
//! the mark ([`start_at`]). A mark that was set to less than what is reserved is
//! moved up again before any ID is issued.
//!
//! A restored dump does not use `setval`: a role that is no superuser may restore
//! it, and can raise the mark only ([`raise_to`]), as if it were set.
//!
//! The highest mark of all databases is kept for the server as well
//! ([`crate::generator::floor`]).
//!
//! Locking: the relation lock that `nextval()` takes, for as long as the page is
//! read or written; then the mark's entry in shared memory, so that one process
//! moves it at a time; then the page. A process waits only for the first of these,
//! and only if nothing is reserved any more. How long it waits is bounded, since
//! any role that may read the sequence can lock it.

use std::ffi::CStr;

use pgrx::pg_sys;
use snowflake_id::{BootTime, Identity, Layout, SnowflakeId, Tick};

use crate::catalog;
use crate::clock;
use crate::error::Error;
use crate::generator::floor;
use crate::pg::relation::NotOpened;
use crate::pg::sequence::{Sequence, SequenceData, SequencePage};
use crate::pg::{self, Mode, Relation};
use crate::shared::{Locked, MarkKey, Shared};

const SEQUENCE_NAME: &CStr = c"mark";

/// Which mark to read or move, and within which limits.
pub struct Request<'a> {
    /// The mark's sequence.
    pub sequence: pg_sys::Oid,
    /// The layout and the node number of its IDs.
    pub identity: &'a Identity,
    /// How many ticks to reserve ahead.
    pub ticks_ahead: u64,
    /// The time since boot.
    pub boot: BootTime,
    /// The highest tick that slots may be raised to by a mark that was set; at
    /// least the time that has been reached.
    pub highest_set: Tick,
    /// The highest tick that slots may be raised to. A mark above it means that the
    /// clock is too far behind.
    pub highest_accepted: Tick,
    /// How long to wait for the lock on the sequence, milliseconds; 0 not to wait.
    pub wait_ms: i64,
}

/// Why nothing was reserved.
pub enum NotReserved {
    /// Another process is moving the mark, or, in a call that does not wait, has
    /// locked it.
    Busy,
    /// The sequence was locked for as long as the call may wait.
    Locked,
    /// The mark was set: IDs up to this tick may have been issued, which is further
    /// than a mark that was set may raise slots. Nothing was changed.
    SetAhead(Tick),
    /// IDs up to this tick may have been issued, which is further than any mark may
    /// raise slots. Nothing was changed.
    TooFarAhead(Tick),
    /// The mark was set. Every slot was raised to it, which has changed the time
    /// that IDs are generated with.
    Raised,
    /// An error of the call.
    Failed(Error),
}

impl From<Error> for NotReserved {
    fn from(error: Error) -> Self {
        NotReserved::Failed(error)
    }
}

/// Finds the mark of the extension to which an SQL function belongs.
///
/// # Errors
/// [`Error::MarkMissing`].
pub fn locate(function: pg_sys::Oid) -> Result<pg_sys::Oid, Error> {
    catalog::relation(function, SEQUENCE_NAME).ok_or(Error::MarkMissing)
}

/// Reads the mark; returns the first tick that is not reserved. If this process is
/// the first to read it since the server's start, raises every slot to it.
///
/// # Errors
/// [`NotReserved`]; among the errors of the call are [`Error::MarkMissing`] and
/// [`Error::MarkNotPermanent`].
pub fn read(shared: Shared, request: &Request) -> Result<Tick, NotReserved> {
    let mark = Mark::lock(shared, request)?;
    let known = mark.known(request.highest_accepted)?;
    if !known.page_is_low {
        return Ok(known.bound);
    }
    let target = mark.ticks_ahead_of(known.bound);
    mark.move_to(target.max(known.bound))
}

/// Moves the mark so that `wanted` and some time after it are below it; returns the
/// first tick that is not reserved. `now` is the clock's tick. Reads the mark first,
/// as [`read`].
///
/// # Errors
/// As [`read`], and [`Error::PastEnd`] if the layout has no tick left to reserve.
pub fn advance(
    shared: Shared,
    request: &Request,
    now: Tick,
    wanted: Tick,
) -> Result<Tick, NotReserved> {
    let mark = Mark::lock(shared, request)?;
    let known = mark.known(request.highest_accepted.max(now))?;
    let Known { bound, page_is_low } = known;
    // Another process may have moved it in the meantime.
    if !page_is_low && bound.get() > wanted.get().saturating_add(request.ticks_ahead / 2) {
        return Ok(bound);
    }
    let target = mark.ticks_ahead_of(now.max(wanted));
    if target > bound || page_is_low {
        return mark.move_to(target.max(bound));
    }
    if wanted < bound {
        return Ok(bound);
    }
    let end = mark.layout().expires_at();
    Err(NotReserved::Failed(Error::PastEnd { end }))
}

/// Makes sure that this database's later IDs have at least this tick, and accepts a
/// mark that was set. Returns the first tick that is not reserved.
///
/// # Errors
/// As [`read`].
pub fn start_at(shared: Shared, request: &Request, tick: Tick) -> Result<Tick, NotReserved> {
    let mark = Mark::lock(shared, request)?;
    let layout = mark.layout();
    let mut start = tick;
    let mut reserved = mark.entry.bound_tick().unwrap_or_default();
    if mark.written.start_number == shared.start_number() {
        reserved = layout.tick_of(mark.written.bound_id);
    } else {
        start = start.max(layout.tick_above(mark.written.bound_id));
        if mark.entry.bound_tick().is_none() {
            let floor = floor::at_start(shared, request.identity)?;
            start = start.max(layout.tick_above(floor));
        }
    }
    if start > request.highest_accepted {
        return Err(NotReserved::TooFarAhead(start));
    }
    let target = Tick::new(start.get().saturating_add(request.ticks_ahead))
        .min(layout.last_tick())
        .max(start)
        .max(reserved);
    mark.raise_slots(start);
    mark.move_to(target)
}

/// Raises the mark to this bound, as `setval` would, if it is lower: the database
/// of a dump had reserved time up to there. Needs no shared memory, since dumps are
/// also restored on servers that have not loaded the library yet.
///
/// The record is flushed: the transaction need not have an ID, with which its
/// commit would do that.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`]; [`Error::MarkLocked`] if
/// `lock_timeout` ends the wait.
pub fn raise_to(sequence: pg_sys::Oid, bound_id: SnowflakeId) -> Result<(), Error> {
    let since = clock::boot();
    // Waits as `setval` does.
    let opened = match open(sequence, i64::MAX)? {
        Opened::Sequence(sequence) => sequence,
        Opened::Locked => {
            return Err(Error::MarkLocked {
                waited_ms: clock::boot().micros_since(since) / 1_000,
            });
        }
    };
    let mut page = opened.lock_page();
    if bound_id <= Written::on(&page).bound_id {
        return Ok(());
    }
    let set_by_hand = Written {
        bound_id,
        start_number: 0,
    };
    let record = page.write(&opened, set_by_hand.into());
    drop(page);
    flush(record);
    Ok(())
}

/// Whether no ID of this database has been issued: the mark was never moved.
/// `false` if it cannot be read without waiting.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`].
pub fn is_unused(sequence: pg_sys::Oid) -> Result<bool, Error> {
    Ok(bound_on_page(sequence)? == Some(SnowflakeId::ZERO))
}

/// The bound that is written on the mark's page; `None` if it cannot be read without
/// waiting. Its record is flushed, so that it is there after a crash: the process that
/// has written the page unlocks it before it flushes.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`].
pub fn bound_on_page(sequence: pg_sys::Oid) -> Result<Option<SnowflakeId>, Error> {
    match open(sequence, 0)? {
        Opened::Sequence(opened) => {
            let page = opened.lock_page();
            let bound_id = Written::on(&page).bound_id;
            let record = page.record();
            drop(page);
            // What a standby has replayed is in its log already.
            if !pg::server::is_in_recovery() {
                pg::wal::flush(record);
            }
            Ok(Some(bound_id))
        }
        Opened::Locked => Ok(None),
    }
}

/// A mark that this process alone reads and moves. The fields are dropped in this
/// order, the reverse of that in which they are locked.
struct Mark<'a> {
    page: SequencePage,
    entry: Locked,
    sequence: Sequence,
    written: Written,
    shared: Shared,
    request: &'a Request<'a>,
}

/// What is known of a mark after it was read.
struct Known {
    /// The first tick that is not reserved.
    bound: Tick,
    /// Whether the page has a lower bound than the one that sessions use.
    page_is_low: bool,
}

impl<'a> Mark<'a> {
    fn lock(shared: Shared, request: &'a Request) -> Result<Self, NotReserved> {
        let sequence = match open(request.sequence, request.wait_ms)? {
            Opened::Sequence(sequence) => sequence,
            Opened::Locked if request.wait_ms > 0 => return Err(NotReserved::Locked),
            Opened::Locked => return Err(NotReserved::Busy),
        };
        let entry = shared
            .try_lock(MarkKey::here(request.sequence))
            .ok_or(NotReserved::Busy)?;
        let page = sequence.lock_page();
        Ok(Mark {
            written: Written::on(&page),
            page,
            entry,
            sequence,
            shared,
            request,
        })
    }

    fn layout(&self) -> &'a Layout {
        self.request.identity.layout()
    }

    /// What the page and the entry have. If this process is the first to read the
    /// page since the server's start, or since the mark was set, it raises every
    /// slot, to `highest_accepted` at most.
    fn known(&self, highest_accepted: Tick) -> Result<Known, NotReserved> {
        let layout = self.layout();
        let on_page = layout.tick_above(self.written.bound_id);
        if self.written.start_number == self.shared.start_number() {
            // Written since the start, so it is right whatever the entry has: that
            // may have been replaced, or be of a dropped database with this OID.
            let bound = layout.tick_of(self.written.bound_id);
            self.entry.set_bound_tick(bound);
            return Ok(Known {
                bound,
                page_is_low: false,
            });
        }
        let before = self.entry.bound_tick();
        if let Some(bound) = before.filter(|&bound| on_page <= bound) {
            return Ok(Known {
                bound,
                page_is_low: true,
            });
        }
        let mut bound = on_page;
        if before.is_none() {
            let floor = floor::at_start(self.shared, self.request.identity)?;
            bound = bound.max(layout.tick_above(floor));
        }
        if bound > highest_accepted {
            return Err(NotReserved::TooFarAhead(bound));
        }
        if self.written.is_set() && on_page > self.request.highest_set {
            return Err(NotReserved::SetAhead(on_page));
        }
        self.raise_slots(bound);
        self.entry.set_bound_tick(bound);
        if before.is_some() {
            return Err(NotReserved::Raised);
        }
        Ok(Known {
            bound,
            page_is_low: false,
        })
    }

    /// Raises every slot to a time that has been reached by now.
    fn raise_slots(&self, bound: Tick) {
        raise_slots(self.shared, self.layout(), bound, self.request.boot);
    }

    /// As many ticks as are to be reserved ahead of this tick, and of all slots.
    fn ticks_ahead_of(&self, tick: Tick) -> Tick {
        let layout = self.layout();
        let slots = self.shared.slots().iter();
        let highest = slots
            .map(|slot| slot.last(layout.sequence_bits()).0)
            .fold(tick, Tick::max);
        Tick::new(highest.get().saturating_add(self.request.ticks_ahead))
            // A bound above the layout's last tick need not fit into a bigint, so
            // that tick is never issued.
            .min(layout.last_tick())
    }

    /// Moves the mark and, once that is durable, announces it to other processes.
    fn move_to(mut self, target: Tick) -> Result<Tick, NotReserved> {
        let bound_id = self.layout().first_id_of(target);
        let start_number = self.shared.start_number();
        // First what can fail.
        let floor = floor::raise(self.shared, self.request.identity, bound_id)?;
        let written = Written {
            bound_id,
            start_number,
        };
        let record = self.page.write(&self.sequence, written.into());
        // Other processes may read the page while this one waits for the disk.
        drop(self.page);
        flush(record.max(floor.unwrap_or(0)));
        self.entry.set_bound_tick(target);
        Ok(target)
    }
}

/// Raises every slot to a time that has been reached by now.
pub fn raise_slots(shared: Shared, layout: &Layout, bound: Tick, boot: BootTime) {
    if bound == Tick::default() {
        // Nothing has been issued yet; the epoch may lie in the future.
        return;
    }
    // The time first: a process that finds a raised slot finds the reason.
    shared
        .slewed_clock()
        .observe(layout.time_of(bound).into(), boot);
    for slot in shared.slots() {
        slot.raise_to(layout.sequence_bits(), bound);
    }
}

/// The result of opening the mark's sequence.
enum Opened {
    /// It is locked until it is dropped.
    Sequence(Sequence),
    /// Another session has locked it.
    Locked,
}

fn open(sequence: pg_sys::Oid, wait_ms: i64) -> Result<Opened, Error> {
    let relation = match Relation::open_within(sequence, Mode::Advance, wait_ms) {
        Ok(relation) => relation,
        Err(NotOpened::Locked) => return Ok(Opened::Locked),
        Err(NotOpened::Missing) => return Err(Error::MarkMissing),
    };
    let sequence = Sequence::from_relation(relation).ok_or(Error::MarkMissing)?;
    if sequence.is_permanent() {
        Ok(Opened::Sequence(sequence))
    } else {
        Err(Error::MarkNotPermanent)
    }
}

/// What is written on the mark's page.
struct Written {
    bound_id: SnowflakeId,
    start_number: i64,
}

impl Written {
    fn on(page: &SequencePage) -> Self {
        #[cfg(feature = "testing")]
        if crate::unprotected::is("mark") {
            // As in a new database.
            return Written {
                bound_id: SnowflakeId::ZERO,
                start_number: 0,
            };
        }
        let data = page.data();
        Written {
            // A new sequence has 1 and is not called. A negative value that was set
            // by hand also means that nothing has been issued.
            bound_id: SnowflakeId::new(data.last_value)
                .filter(|bound| data.is_called != 0 || bound.get() > 1)
                .unwrap_or(SnowflakeId::ZERO),
            start_number: data.log_cnt,
        }
    }

    /// Whether it was set by hand: start numbers are negative.
    fn is_set(&self) -> bool {
        self.start_number >= 0 && self.bound_id > SnowflakeId::ZERO
    }
}

impl From<Written> for SequenceData {
    fn from(written: Written) -> Self {
        SequenceData {
            last_value: written.bound_id.get(),
            log_cnt: written.start_number,
            is_called: 1,
        }
    }
}

/// Makes the records durable. The mark has none (0) if `wal_level` is `minimal` and
/// this transaction has created the extension: then the commit syncs the file, and
/// no other session sees the extension before that. The floor's record may be
/// another process's, which is in the log by now.
fn flush(record: pg_sys::XLogRecPtr) {
    pg::wal::flush(if record == 0 {
        pg::wal::insert_position()
    } else {
        record
    });
}
