//! Pages in shared buffers: of relations, and of a file that no catalog knows.

use std::ptr;

use pgrx::pg_sys;

use super::relation::Relation;

const FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// `SizeOfPageHeaderData`, rounded up (storage/bufpage.h).
const HEADER: usize = 24;
const BLOCK: usize = pg_sys::BLCKSZ as usize;

/// The alignment that direct I/O requires.
const ALIGNMENT: usize = 4096;

/// How a page is locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Others may read it too.
    Read,
    /// By this process alone.
    Write,
}

/// A page that is pinned and locked until it is dropped.
pub struct Page {
    buffer: pg_sys::Buffer,
    access: Access,
}

impl Page {
    /// The first page of a relation that has one.
    pub(super) fn first_of(relation: &Relation, access: Access) -> Self {
        // SAFETY: an open relation. Without this page, it raises an error.
        let buffer = unsafe { pg_sys::ReadBuffer(relation.as_ptr(), 0) };
        Self::lock(buffer, access)
    }

    /// A buffer that this process has just pinned.
    fn lock(buffer: pg_sys::Buffer, access: Access) -> Self {
        let mode = match access {
            Access::Read => pg_sys::BUFFER_LOCK_SHARE,
            Access::Write => pg_sys::BUFFER_LOCK_EXCLUSIVE,
        };
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::LockBuffer(buffer, mode as _) };
        Page { buffer, access }
    }

    /// Where the page lies as long as it is pinned.
    pub(super) fn as_ptr(&self) -> pg_sys::Page {
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::BufferGetPage(self.buffer) }
    }

    fn header(&self) -> *mut pg_sys::PageHeaderData {
        self.as_ptr().cast()
    }

    /// The place of the contents: after the header.
    fn contents_ptr(&self) -> *mut u8 {
        // SAFETY: within the page.
        unsafe { self.header().cast::<u8>().add(HEADER) }
    }

    /// The end of the last record about the page.
    pub fn record(&self) -> pg_sys::XLogRecPtr {
        // SAFETY: the page is pinned and locked.
        record(unsafe { (*self.header()).pd_lsn })
    }

    /// Whether it was never written: the file got longer, and then the server ended.
    pub fn is_new(&self) -> bool {
        // SAFETY: the page is pinned and locked.
        unsafe { (*self.header()).pd_upper == 0 }
    }

    /// What [`replace_contents`](Self::replace_contents) has written; `None` if the
    /// header is damaged.
    pub fn contents(&self) -> Option<&[u8]> {
        // SAFETY: the page is locked; the end in its header is checked before it is
        // used.
        unsafe {
            let end = usize::from((*self.header()).pd_lower);
            let length = end.checked_sub(HEADER).filter(|_| end <= BLOCK)?;
            Some(std::slice::from_raw_parts(
                self.contents_ptr().cast_const(),
                length,
            ))
        }
    }

    /// Changes the page of a relation by generic WAL; returns the position up to which
    /// to flush. `change` gets a copy of the page. The difference is applied and logged
    /// in a critical section of PostgreSQL's own.
    ///
    /// # Panics
    /// If the page is locked for reading only.
    pub(super) fn change(
        &mut self,
        relation: &Relation,
        change: impl FnOnce(pg_sys::Page),
    ) -> pg_sys::XLogRecPtr {
        self.require_writable();
        // SAFETY: an open relation, and a buffer that is locked exclusively.
        unsafe {
            let state = pg_sys::GenericXLogStart(relation.as_ptr());
            change(pg_sys::GenericXLogRegisterBuffer(state, self.buffer, 0));
            pg_sys::GenericXLogFinish(state)
        }
    }

    /// Writes these bytes in the place of all that is on the page, and logs its image;
    /// returns the position up to which to flush.
    ///
    /// # Panics
    /// If the page is locked for reading only, or has no room for them.
    pub fn replace_contents(&mut self, contents: &[u8]) -> pg_sys::XLogRecPtr {
        self.require_writable();
        let end = HEADER + contents.len();
        assert!(end <= BLOCK, "more than a page has room for");
        // SAFETY: the buffer is locked exclusively, and the page has room. Nothing here
        // allocates, and only the log itself can fail.
        unsafe {
            in_critical_section(|| {
                pg_sys::PageInit(self.as_ptr(), BLOCK, 0);
                ptr::copy_nonoverlapping(contents.as_ptr(), self.contents_ptr(), contents.len());
                // What lies between the two is left out of the log.
                (*self.header()).pd_lower = end as u16;
                pg_sys::MarkBufferDirty(self.buffer);
                pg_sys::log_newpage_buffer(self.buffer, true)
            })
        }
    }

    fn require_writable(&self) {
        assert!(self.access == Access::Write, "locked for reading only");
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // If an error passes through, unlocking is left to the abort, as in C.
        if !std::thread::panicking() {
            // SAFETY: pinned and locked by `lock`, released once.
            unsafe { pg_sys::UnlockReleaseBuffer(self.buffer) };
        }
    }
}

/// Calls `f` between what `START_CRIT_SECTION` and `END_CRIT_SECTION` do
/// (miscadmin.h), which are macros of C.
///
/// An error between the change of a page and its record would leave a page in memory
/// that the log does not know, so in such a section Postgres makes each error a PANIC,
/// which takes the server down. No error returns from `f` then: none reaches the guards
/// that pgrx has around the functions of C, and the count is lowered in every case in
/// which the process lives.
///
/// # Safety
/// `f` neither allocates memory nor panics.
unsafe fn in_critical_section<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: a count of this process.
    unsafe { pg_sys::CritSectionCount += 1 };
    let result = f();
    // SAFETY: as before.
    unsafe { pg_sys::CritSectionCount -= 1 };
    result
}

/// A file of one page in the directory `global` that no catalog knows.
#[derive(Clone, Copy)]
pub struct GlobalFile(u32);

impl GlobalFile {
    /// The file of this number, which need not exist.
    pub const fn numbered(number: u32) -> Self {
        GlobalFile(number)
    }

    /// Its entry in Postgres' storage manager.
    fn storage(self) -> pg_sys::SMgrRelation {
        // SAFETY: creates an entry for a file that need not exist.
        unsafe { pg_sys::smgropen(self.locator(), -1) }
    }

    /// Whether it exists with its page.
    pub fn has_page(self) -> bool {
        let storage = self.storage();
        // SAFETY: the entry was created in this call.
        unsafe { pg_sys::smgrexists(storage, FORK) && pg_sys::smgrnblocks(storage, FORK) > 0 }
    }

    /// Creates the file with its page, empty. No other process may do so now.
    pub fn create(self) {
        let storage = self.storage();
        // SAFETY: the entry was created in this call; the page is as large as Postgres'
        // pages are, and aligned. A file that exists and is empty is not created again.
        unsafe {
            if !pg_sys::smgrexists(storage, FORK) {
                pg_sys::smgrcreate(storage, FORK, false);
            }
            let empty = pg_sys::palloc0(BLOCK + ALIGNMENT);
            let empty = empty.byte_add(empty.align_offset(ALIGNMENT));
            pg_sys::smgrextend(storage, FORK, 0, empty.cast(), false);
        }
    }

    /// Its page, for this process alone. Raises an error if it has none.
    pub fn lock_page(self) -> Page {
        // SAFETY: Postgres checks that the page exists.
        let buffer = unsafe {
            pg_sys::ReadBufferWithoutRelcache(
                self.locator(),
                FORK,
                0,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                ptr::null_mut(),
                true,
            )
        };
        Page::lock(buffer, Access::Write)
    }

    #[cfg(feature = "pg15")]
    fn locator(self) -> pg_sys::RelFileNode {
        pg_sys::RelFileNode {
            spcNode: pg_sys::GLOBALTABLESPACE_OID,
            dbNode: pg_sys::InvalidOid,
            relNode: pg_sys::Oid::from(self.0),
        }
    }

    #[cfg(not(feature = "pg15"))]
    fn locator(self) -> pg_sys::RelFileLocator {
        pg_sys::RelFileLocator {
            spcOid: pg_sys::GLOBALTABLESPACE_OID,
            dbOid: pg_sys::InvalidOid,
            relNumber: self.0.into(),
        }
    }
}

/// The position that a page has in its header.
#[cfg(not(feature = "pg19"))]
fn record(position: pg_sys::PageXLogRecPtr) -> pg_sys::XLogRecPtr {
    u64::from(position.xlogid) << 32 | u64::from(position.xrecoff)
}

/// The same: the upper half is still the first one in memory.
#[cfg(feature = "pg19")]
fn record(position: pg_sys::PageXLogRecPtr) -> pg_sys::XLogRecPtr {
    if cfg!(target_endian = "big") {
        position.lsn
    } else {
        position.lsn.rotate_left(32)
    }
}
