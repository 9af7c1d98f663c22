//! Sequences: the tuple on their only page.

use pgrx::pg_sys;

use super::relation::Relation;

/// A sequence that is open: one of this session or of all.
pub struct Sequence(Relation);

impl Sequence {
    /// The relation as a sequence; `None` if it is none, or another session's
    /// temporary one.
    pub fn from_relation(relation: Relation) -> Option<Self> {
        let is_readable =
            relation.class().kind == pg_sys::RELKIND_SEQUENCE && !relation.is_temporary_elsewhere();
        is_readable.then_some(Sequence(relation))
    }

    /// The last value, and whether it was issued.
    pub fn state(&self) -> (i64, bool) {
        // SAFETY: a sequence has one block with one tuple, at line pointer 1; its
        // page is pinned and locked while it is read.
        unsafe {
            let buffer = pg_sys::ReadBuffer(self.0.as_ptr(), 0);
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            let data = &*sequence_data(pg_sys::BufferGetPage(buffer));
            let state = (data.last_value, data.is_called != 0);
            pg_sys::UnlockReleaseBuffer(buffer);
            state
        }
    }
}

/// The tuple of a sequence (`FormData_pg_sequence_data`, commands/sequence.h).
/// Whatever is on the page is a valid value of it: a `bool` need not be.
#[repr(C)]
pub struct SequenceData {
    /// The last value, or the first one.
    pub last_value: i64,
    /// How many values are logged ahead; the mark keeps the start number in it.
    pub log_cnt: i64,
    /// A C `bool`: 0 if the value has not been issued yet.
    pub is_called: u8,
}

/// The tuple on the page of a sequence.
///
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
