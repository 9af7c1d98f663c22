//! The floor: the bound below which this server's IDs stay, in any database.
//!
//! Slots belong to the server, marks to its databases, and the first ID of a
//! database after a start can read only its own mark. What another database
//! issued before the start, ahead of the clock, it would not know, and the two
//! would repeat each other's IDs. So the highest of all marks is kept in one
//! place for the server too, and the first ID after a start raises every slot
//! to it.
//!
//! That place is a page of its own, the only one of the file [`NUMBER`] in the
//! directory `global`, where the shared catalogs are. It is read and written
//! through shared buffers, and each change is logged as the image of the page,
//! which PostgreSQL's own recovery restores. So whatever carries the marks
//! carries the floor: a crash's recovery, a standby and its promotion, a base
//! backup, point-in-time recovery, `pg_rewind`; none of them needs this library
//! for it. Version 0.1 had a file outside of the write-ahead log, which a
//! standby had as of its base backup: after a promotion databases could repeat
//! each other's IDs.
//!
//! No catalog knows the file. PostgreSQL never removes files it does not know,
//! and never takes the number of a file that exists. A server restored by
//! `pg_upgrade` or from a dump has none: there the marks of the databases are
//! the only record.
//!
//! The page holds a line for each layout and node number that the server has
//! had: a server that returns to an earlier number finds its bound again, and
//! one with a number of its own need not heed the others'.
//!
//! The record is written before the mark's ([`crate::generator::mark`]), and both are
//! flushed before any ID below the new bound is issued. Where it cannot be
//! written nothing has changed yet.
#![allow(unsafe_code)] // buffers and WAL

use std::io;
use std::ptr;

use pgrx::pg_sys;
use snowflake_id::{Bound, Bounds, Layout, SnowflakeId};

use crate::error::Error;
use crate::shared::Shared;

/// The number of the file: "snow" in ASCII. Files of relations have the numbers
/// of OIDs, which a server counts up from 16384.
pub const NUMBER: u32 = u32::from_be_bytes(*b"snow");

/// The file that version 0.1 had, in the data directory, which is every server
/// process's working directory. It is read once more and then removed.
const EARLIER: &str = "snowflake.floor";

const FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// Whose IDs the floor is for.
#[derive(Clone, Copy)]
pub struct Server {
    /// Its layout.
    pub layout: Layout,
    /// Its node number.
    pub node: u32,
}

impl Server {
    fn heeds(self, bounds: &Bounds) -> SnowflakeId {
        bounds.highest_for(&self.layout, self.node)
    }
}

/// The floor as it was when the server started, or was promoted: 0 where there
/// was none.
///
/// # Errors
/// [`Error::FloorDamaged`], [`Error::FloorIo`].
pub fn at_start(shared: Shared, server: Server) -> Result<SnowflakeId, Error> {
    // SAFETY: reads shared memory only.
    if unsafe { pg_sys::RecoveryInProgress() } {
        // It may be raised by the server that this one follows.
        return read(server);
    }
    let _lock = shared.lock_floor();
    let floor = shared.floor();
    if let Some(known) = floor.at_start() {
        return Ok(known);
    }
    let bound = read(server)?;
    floor.started_at(bound);
    Ok(bound)
}

/// The record of a higher floor, to be flushed.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Raised {
    /// Where the record ends.
    pub record: pg_sys::XLogRecPtr,
    is_first: bool,
}

/// Logs that the floor is at least `bound`. `None` where another process has
/// logged that, which may not have been flushed yet either.
///
/// # Errors
/// As [`at_start`]; then nothing has changed.
pub fn raise(shared: Shared, server: Server, bound: SnowflakeId) -> Result<Option<Raised>, Error> {
    // What the page says from before this run is lost when it is written.
    at_start(shared, server)?;
    let floor = shared.floor();
    if floor.written() >= bound {
        return Ok(None);
    }
    let _lock = shared.lock_floor();
    // Another database's mover may have been there.
    if floor.written() >= bound {
        return Ok(None);
    }
    let is_first = floor.written() == SnowflakeId::ZERO;
    let page = Page::lock()?;
    let mut bounds = page.bounds()?;
    if is_first && let Some(earlier) = earlier()? {
        bounds.raise(earlier);
    }
    let Server { layout, node } = server;
    bounds.raise(Bound {
        layout,
        node,
        bound,
    });
    let record = page.write(&bounds.to_string());
    floor.set_written(bound);
    Ok(Some(Raised { record, is_first }))
}

impl Raised {
    /// Called when the record is durable: the page has what the file of version
    /// 0.1 said.
    pub fn is_durable(self) {
        if self.is_first {
            // Where it stays, it says no more than the page.
            let _ = std::fs::remove_file(EARLIER);
        }
    }
}

/// The greatest bound that this server has to heed.
fn read(server: Server) -> Result<SnowflakeId, Error> {
    #[cfg(feature = "unprotected")]
    if crate::unprotected::is("mark") {
        return Ok(SnowflakeId::ZERO);
    }
    let page = match File::open() {
        file if file.has_page() => server.heeds(&Page::lock_existing()?.bounds()?),
        _ => SnowflakeId::ZERO,
    };
    let earlier = earlier()?.map(|bound| server.heeds(&Bounds::from_iter([bound])));
    Ok(earlier.map_or(page, |bound| page.max(bound)))
}

/// What the file of version 0.1 says.
fn earlier() -> Result<Option<Bound>, Error> {
    let text = match std::fs::read_to_string(EARLIER) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(Error::FloorDamaged(EARLIER.into()));
        }
        Err(error) => {
            return Err(Error::FloorIo {
                name: EARLIER.into(),
                error,
            });
        }
    };
    let mut lines = text.lines();
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let mut line = || {
        Some(Bound {
            layout: field("layout")?.parse().ok()?,
            node: field("node")?.parse().ok()?,
            bound: SnowflakeId::new(field("bound")?.parse().ok()?)?,
        })
    };
    line()
        .map(Some)
        .ok_or_else(|| Error::FloorDamaged(EARLIER.into()))
}

/// The file, as Postgres' storage manager has it.
#[derive(Clone, Copy)]
struct File(pg_sys::SMgrRelation);

impl File {
    fn open() -> Self {
        // SAFETY: makes an entry for a file that need not exist.
        File(unsafe { pg_sys::smgropen(locator(), -1) })
    }

    fn has_page(self) -> bool {
        // SAFETY: the entry was made in this very call of ours.
        unsafe { pg_sys::smgrexists(self.0, FORK) && pg_sys::smgrnblocks(self.0, FORK) > 0 }
    }

    /// Makes the file with its page, empty. The caller has the floor's lock.
    fn create(self) {
        // SAFETY: as above; the page is as large as Postgres' pages are, and
        // aligned. Where the file is there and empty, making it is left out.
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

/// What direct I/O asks for.
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

/// The name of the file for a message.
fn name() -> String {
    format!("global/{NUMBER}")
}

/// The page, pinned and exclusively locked until dropped.
struct Page(pg_sys::Buffer);

impl Page {
    /// Makes the file where there is none.
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

    /// Where the text is: after the page's header.
    fn contents(&self) -> *mut u8 {
        // SAFETY: within the page.
        unsafe { self.header().cast::<u8>().add(HEADER) }
    }

    fn bounds(&self) -> Result<Bounds, Error> {
        // SAFETY: the page is locked; what its header says is checked before it
        // is used.
        let text = unsafe {
            let end = usize::from((*self.header()).pd_lower);
            if (*self.header()).pd_upper == 0 {
                // Never written: a server ended right after the file was made.
                return Ok(Bounds::default());
            }
            let length = end.checked_sub(HEADER).filter(|_| end <= BLOCK);
            length.map(|length| std::slice::from_raw_parts(self.contents().cast_const(), length))
        };
        text.and_then(|text| std::str::from_utf8(text).ok())
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::FloorDamaged(name()))
    }

    /// Writes the text and logs the page; answers up to where to flush.
    fn write(&self, text: &str) -> pg_sys::XLogRecPtr {
        assert!(HEADER + text.len() <= BLOCK, "{}", Bounds::MOST);
        // SAFETY: the buffer is locked exclusively. As everywhere in Postgres:
        // an error between the change and its record would leave a page that
        // the log does not know, so it takes the server down (a critical
        // section); nothing in it allocates or can fail but for the log itself.
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
