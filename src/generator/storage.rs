//! The pages of the mark and of the floor, and the log: what the protocol reads and
//! writes that outlives a server's memory ([`snowflake_id::protocol`]).
//!
//! **The mark** is the sequence `snowflake_internal.mark`. Its `last_value` is the bound,
//! and `log_cnt`, which a sequence uses to count values that are logged ahead, holds the
//! start number of the server that moved the mark last. The page is changed in place with
//! generic WAL. That needs no transaction ID, so it works in read-only transactions, in
//! parallel workers and in transactions that are rolled back; the move itself is never
//! rolled back.
//!
//! The privilege to set a sequence is granted together with those on others
//! (`GRANT ... ON ALL SEQUENCES`, `pg_write_all_data`), so a mark that was set is believed
//! within limits only. A restored dump does not use `setval`: a role that is no superuser
//! may restore it, and can raise the mark only ([`raise_mark_to`]), as if it were set.
//!
//! **The floor** is the only page of the file [`FLOOR_NUMBER`] in the directory `global`,
//! where the shared catalogs are. It is read and written through shared buffers, and each
//! change is logged as the image of the page, which PostgreSQL's own recovery restores. So
//! the floor is carried by all that carries the marks: crash recovery, a standby and its
//! promotion, a base backup, point-in-time recovery, `pg_rewind`. None of them needs this
//! library for it. No catalog knows the file. PostgreSQL never removes files it does not
//! know, and never takes the number of a file that exists. A server restored by
//! `pg_upgrade` or from a dump has none: there the marks of the databases are the only
//! record. The page holds a line for each layout and node number that the server has had.
//!
//! Locking: the relation lock that `nextval()` takes, for as long as the page is read or
//! written; then the mark's entry in shared memory, so that one process moves it at a
//! time; then the page. A process waits only for the first of these, and only if nothing
//! is reserved any more. How long it waits is bounded, since any role that may read the
//! sequence can lock it.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;
use snowflake_id::protocol::{self, LogPosition, MarkPage, NotOpened, Storage};
use snowflake_id::{Bounds, Identity, SnowflakeId};

use crate::catalog::CORE;
use crate::clock;
use crate::error::Error;
use crate::pg::page::{GlobalFile, Page};
use crate::pg::relation;
use crate::pg::sequence::{Sequence, SequenceData, SequencePage};
use crate::pg::{self, Mode, Relation};
use crate::shared::{self, LwLock, Shared};

const MARK_NAME: &CStr = c"mark";

/// The number of the floor's file: "snow" in ASCII. Files of relations have the numbers of
/// OIDs, which a server counts up from 16384.
const FLOOR_NUMBER: u32 = u32::from_be_bytes(*b"snow");

const FLOOR: GlobalFile = GlobalFile::numbered(FLOOR_NUMBER);

/// Finds the mark of this database.
///
/// # Errors
/// [`Error::MarkMissing`].
pub fn locate_mark() -> Result<pg_sys::Oid, Error> {
    CORE.sequence(MARK_NAME).ok_or(Error::MarkMissing)
}

/// Where this process has the pages. In the test build, with what tests add.
#[cfg(not(feature = "testing"))]
pub type Disk = Pages;
#[cfg(feature = "testing")]
pub type Disk = super::watched::Watched;

/// The pages of this database's mark and of the server's floor.
pub struct Pages {
    /// The mark's sequence.
    mark: Cell<pg_sys::Oid>,
}

impl Pages {
    /// With this sequence as the mark; the floor's alone without one.
    pub fn of(mark: pg_sys::Oid) -> Self {
        Pages {
            mark: Cell::new(mark),
        }
    }

    /// The mark's sequence.
    pub fn mark(&self) -> pg_sys::Oid {
        self.mark.get()
    }

    /// The extension may have been dropped and created again.
    pub fn set_mark(&self, mark: pg_sys::Oid) {
        self.mark.set(mark);
    }
}

impl Storage for Pages {
    type Error = Error;
    type Mark = Sequence;
    type Page = SequencePage;
    type Floor = LwLock;

    async fn open_mark(&self, wait_ms: i64) -> Result<Sequence, NotOpened<Error>> {
        open_mark(self.mark(), wait_ms)
    }

    async fn lock_page(&self, mark: &Sequence) -> SequencePage {
        mark.lock_page()
    }

    fn read_page(&self, page: &SequencePage) -> MarkPage {
        let data = page.data();
        MarkPage {
            // A new sequence has 1 and is not called. A negative value that was set by hand
            // also means that nothing has been issued.
            bound_id: SnowflakeId::new(data.last_value)
                .filter(|bound| data.is_called != 0 || bound.get() > 1)
                .unwrap_or(SnowflakeId::ZERO),
            start_number: data.log_cnt,
        }
    }

    fn record_of(&self, page: &SequencePage) -> LogPosition {
        LogPosition(page.record())
    }

    async fn write_page(
        &self,
        mark: &Sequence,
        page: &mut SequencePage,
        to: MarkPage,
    ) -> LogPosition {
        let record = page.write(
            mark,
            SequenceData {
                last_value: to.bound_id.get(),
                log_cnt: to.start_number,
                is_called: 1,
            },
        );
        LogPosition(record)
    }

    async fn lock_floor(&self) -> LwLock {
        // A process that needs the floor has shared memory.
        match shared::get() {
            Some(shared) => shared.lock_floor(),
            None => unreachable!("the library is not preloaded"),
        }
    }

    async fn read_floor(&self, _lock: &LwLock) -> Result<Bounds, Error> {
        if FLOOR.has_page() {
            bounds_on(&FLOOR.lock_page())
        } else {
            Ok(Bounds::default())
        }
    }

    async fn write_floor(&self, _lock: &mut LwLock, to: &Bounds) -> Result<LogPosition, Error> {
        if !FLOOR.has_page() {
            FLOOR.create();
        }
        let record = FLOOR
            .lock_page()
            .replace_contents(to.to_string().as_bytes());
        Ok(LogPosition(record))
    }

    async fn flush(&self, position: LogPosition) {
        pg::wal::flush(match position {
            LogPosition(0) => pg::wal::end(),
            LogPosition(position) => position,
        });
    }

    async fn is_in_recovery(&self) -> bool {
        pg::server::is_in_recovery()
    }
}

/// Raises the mark to this bound, as `setval` would, if it is lower
/// ([`protocol::mark::raise_to`]).
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`]; [`Error::MarkLocked`] if
/// `lock_timeout` ends the wait.
pub fn raise_mark_to(mark: pg_sys::Oid, bound_id: SnowflakeId) -> Result<(), Error> {
    let since = clock::boot();
    // Waits as `setval` does.
    let pages = Disk::of(mark);
    let raised = protocol::mark::raise_to(&pages, bound_id, i64::MAX);
    protocol::now(raised).map_err(|reason| match reason {
        NotOpened::Locked => Error::MarkLocked {
            waited_ms: clock::boot().micros_since(since) / 1_000,
        },
        NotOpened::Failed(error) => error,
    })
}

/// The floor when the server started, or was promoted; 0 if there was none.
///
/// # Errors
/// [`Error::FloorDamaged`].
pub fn floor_at_start(shared: Shared, identity: &Identity) -> Result<SnowflakeId, Error> {
    let cache = shared.memory().floor;
    protocol::now(protocol::floor::at_start(
        &Disk::of(pg_sys::InvalidOid),
        cache,
        identity,
    ))
}

/// Whether no ID of this database has been issued: the mark was never moved.
/// `false` if it cannot be read without waiting.
///
/// # Errors
/// [`Error::MarkMissing`], [`Error::MarkNotPermanent`].
pub fn is_mark_unused(mark: pg_sys::Oid) -> Result<bool, Error> {
    let bound = protocol::now(protocol::mark::bound_on_page(&Disk::of(mark)))?;
    Ok(bound == Some(SnowflakeId::ZERO))
}

fn open_mark(mark: pg_sys::Oid, wait_ms: i64) -> Result<Sequence, NotOpened<Error>> {
    let missing = || NotOpened::Failed(Error::MarkMissing);
    let relation = match Relation::open_within(mark, Mode::Advance, wait_ms) {
        Ok(relation) => relation,
        Err(relation::NotOpened::Locked) => return Err(NotOpened::Locked),
        Err(relation::NotOpened::Missing) => return Err(missing()),
    };
    let sequence = Sequence::from_relation(relation).ok_or_else(missing)?;
    if sequence.is_permanent() {
        Ok(sequence)
    } else {
        Err(NotOpened::Failed(Error::MarkNotPermanent))
    }
}

/// # Errors
/// [`Error::FloorDamaged`].
fn bounds_on(page: &Page) -> Result<Bounds, Error> {
    if page.is_new() {
        // A server ended right after it created the file.
        return Ok(Bounds::default());
    }
    page.contents()
        .and_then(|text| std::str::from_utf8(text).ok())
        .and_then(|text| text.parse().ok())
        .ok_or(Error::FloorDamaged(FLOOR_NUMBER))
}
