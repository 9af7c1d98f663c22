//! The floor: the bound below which this server's IDs stay, in any database.
//!
//! Slots belong to the server, marks to its databases, and the first ID of a
//! database after a start can read only its own mark. It would not know what
//! another database issued ahead of the clock before the start, and the two would
//! repeat each other's IDs. So the highest of all marks is kept in one place for
//! the server too, and the first ID after a start raises every slot to it.
//!
//! That place is a page of its own, the only one of the file [`NUMBER`] in the
//! directory `global`, where the shared catalogs are. It is read and written
//! through shared buffers, and each change is logged as the image of the page,
//! which PostgreSQL's own recovery restores. So the floor is carried by all that
//! carries the marks: crash recovery, a standby and its promotion, a base backup,
//! point-in-time recovery, `pg_rewind`. None of them needs this library for it.
//!
//! No catalog knows the file. PostgreSQL never removes files it does not know,
//! and never takes the number of a file that exists. A server restored by
//! `pg_upgrade` or from a dump has none: there the marks of the databases are
//! the only record.
//!
//! The page holds a line for each layout and node number that the server has had.
//! A server that returns to an earlier number finds its bound again, and the
//! bounds of other numbers do not apply to it.
//!
//! The record is written before the mark's ([`crate::generator::mark`]), and both are
//! flushed before any ID below the new bound is issued. If it cannot be written,
//! nothing has changed yet.
#![allow(unsafe_code)] // buffers and WAL

use std::ptr;

use pgrx::pg_sys;
use snowflake_id::{Bound, Bounds, Identity, SnowflakeId};

use crate::error::Error;
use crate::pg;
use crate::shared::Shared;

/// The number of the file: "snow" in ASCII. Files of relations have the numbers
/// of OIDs, which a server counts up from 16384.
pub const NUMBER: u32 = u32::from_be_bytes(*b"snow");

const FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// The floor when the server started, or was promoted; 0 if there was none.
///
/// # Errors
/// [`Error::FloorDamaged`].
pub fn at_start(shared: Shared, identity: &Identity) -> Result<SnowflakeId, Error> {
    if pg::is_in_recovery() {
        // The server that this one follows may raise it.
        return read(identity);
    }
    let _lock = shared.lock_floor();
    let floor = shared.floor();
    if let Some(known) = floor.at_start() {
        return Ok(known);
    }
    let bound_id = read(identity)?;
    floor.set_at_start(bound_id);
    Ok(bound_id)
}

/// Logs that the floor is at least `bound_id`. Returns where the record to be
/// flushed ends; `None` if another process has logged that; its record may not have
/// been flushed yet either.
///
/// # Errors
/// As [`at_start`]; then nothing has changed.
pub fn raise(
    shared: Shared,
    identity: &Identity,
    bound_id: SnowflakeId,
) -> Result<Option<pg_sys::XLogRecPtr>, Error> {
    // Read first: the bound from before the start is lost when the page is written.
    at_start(shared, identity)?;
    let floor = shared.floor();
    if floor.written() >= bound_id {
        return Ok(None);
    }
    let _lock = shared.lock_floor();
    // A process of another database may have raised it in the meantime.
    if floor.written() >= bound_id {
        return Ok(None);
    }
    let page = Page::lock()?;
    let mut bounds = page.bounds()?;
    bounds.raise(Bound {
        layout: *identity.layout(),
        node: identity.node(),
        bound_id,
    });
    let record = page.write(&bounds.to_string());
    floor.set_written(bound_id);
    Ok(Some(record))
}

/// The greatest bound that applies to this server.
fn read(identity: &Identity) -> Result<SnowflakeId, Error> {
    #[cfg(feature = "testing")]
    if crate::unprotected::is("mark") {
        return Ok(SnowflakeId::ZERO);
    }
    match File::open() {
        file if file.has_page() => Ok(Page::lock_existing()?.bounds()?.highest_for(identity)),
        _ => Ok(SnowflakeId::ZERO),
    }
}

/// The file in Postgres' storage manager.
#[derive(Clone, Copy)]
struct File(pg_sys::SMgrRelation);

impl File {
    fn open() -> Self {
        // SAFETY: creates an entry for a file that need not exist.
        File(unsafe { pg_sys::smgropen(locator(), -1) })
    }

    fn has_page(self) -> bool {
        // SAFETY: the entry was created in this call.
        unsafe { pg_sys::smgrexists(self.0, FORK) && pg_sys::smgrnblocks(self.0, FORK) > 0 }
    }

    /// Creates the file with its page, empty. The caller has the floor's lock.
    fn create(self) {
        // SAFETY: as above; the page is as large as Postgres' pages are, and
        // aligned. A file that exists and is empty is not created again.
        unsafe {
            if !pg_sys::smgrexists(self.0, FORK) {
                pg_sys::smgrcreate(self.0, FORK, false);
            }
            let empty = pg_sys::palloc0(pg_sys::BLCKSZ as usize + ALIGNMENT);
            let empty = empty.byte_add(empty.align_offset(ALIGNMENT));
            pg_sys::smgrextend(self.0, FORK, 0, empty.cast(), false);
        }
    }
}

/// The alignment that direct I/O requires.
const ALIGNMENT: usize = 4096;

#[cfg(feature = "pg15")]
fn locator() -> pg_sys::RelFileNode {
    pg_sys::RelFileNode {
        spcNode: pg_sys::GLOBALTABLESPACE_OID,
        dbNode: pg_sys::InvalidOid,
        relNode: pg_sys::Oid::from(NUMBER),
    }
}

#[cfg(not(feature = "pg15"))]
fn locator() -> pg_sys::RelFileLocator {
    pg_sys::RelFileLocator {
        spcOid: pg_sys::GLOBALTABLESPACE_OID,
        dbOid: pg_sys::InvalidOid,
        relNumber: NUMBER.into(),
    }
}

/// The page, pinned and exclusively locked until dropped.
struct Page(pg_sys::Buffer);

impl Page {
    /// Creates the file if it does not exist.
    fn lock() -> Result<Self, Error> {
        let file = File::open();
        if !file.has_page() {
            file.create();
        }
        Self::lock_existing()
    }

    fn lock_existing() -> Result<Self, Error> {
        // SAFETY: the file has one page.
        unsafe {
            let buffer = pg_sys::ReadBufferWithoutRelcache(
                locator(),
                FORK,
                0,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                ptr::null_mut(),
                true,
            );
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as i32);
            Ok(Page(buffer))
        }
    }

    fn header(&self) -> *mut pg_sys::PageHeaderData {
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::BufferGetPage(self.0).cast() }
    }

    /// The place of the text: after the page's header.
    fn contents(&self) -> *mut u8 {
        // SAFETY: within the page.
        unsafe { self.header().cast::<u8>().add(HEADER) }
    }

    fn bounds(&self) -> Result<Bounds, Error> {
        // SAFETY: the page is locked; the end in its header is checked before it is
        // used.
        let text = unsafe {
            let end = usize::from((*self.header()).pd_lower);
            if (*self.header()).pd_upper == 0 {
                // Never written: a server ended right after it created the file.
                return Ok(Bounds::default());
            }
            let length = end.checked_sub(HEADER).filter(|_| end <= BLOCK);
            length.map(|length| std::slice::from_raw_parts(self.contents().cast_const(), length))
        };
        text.and_then(|text| std::str::from_utf8(text).ok())
            .and_then(|text| text.parse().ok())
            .ok_or(Error::FloorDamaged)
    }

    /// Writes the text and logs the page; returns the position up to which to flush.
    fn write(&self, text: &str) -> pg_sys::XLogRecPtr {
        assert!(HEADER + text.len() <= BLOCK, "{}", Bounds::MOST);
        // SAFETY: the buffer is locked exclusively. As everywhere in Postgres, an
        // error between the change and its record would leave a page that the log
        // does not know, so it takes the server down (a critical section). Nothing
        // in it allocates, and only the log itself can fail.
        unsafe {
            pg_sys::CritSectionCount += 1;
            pg_sys::PageInit(self.header().cast(), BLOCK, 0);
            ptr::copy_nonoverlapping(text.as_ptr(), self.contents(), text.len());
            // What lies between the two is left out of the log.
            (*self.header()).pd_lower = (HEADER + text.len()) as u16;
            pg_sys::MarkBufferDirty(self.0);
            let record = pg_sys::log_newpage_buffer(self.0, true);
            pg_sys::CritSectionCount -= 1;
            record
        }
    }
}

/// `SizeOfPageHeaderData`, rounded up (storage/bufpage.h).
const HEADER: usize = 24;
const BLOCK: usize = pg_sys::BLCKSZ as usize;

impl Drop for Page {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: pinned and locked by `lock`, released once.
            unsafe { pg_sys::UnlockReleaseBuffer(self.0) };
        }
    }
}
