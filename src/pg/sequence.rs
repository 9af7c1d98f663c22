//! Sequences: the tuple on their only page.

use pgrx::pg_sys;

use super::page::{Access, Page};
use super::relation::Relation;

/// A sequence that is open: one of this session or of all.
pub struct Sequence(Relation);

impl Sequence {
    /// The relation as a sequence; `None` if it is none, or another session's
    /// temporary one.
    pub fn from_relation(relation: Relation) -> Option<Self> {
        let is_readable =
            relation.kind() == pg_sys::RELKIND_SEQUENCE && !relation.is_temporary_elsewhere();
        is_readable.then_some(Sequence(relation))
    }

    /// Whether it is neither temporary nor unlogged.
    pub fn is_permanent(&self) -> bool {
        self.0.is_permanent()
    }

    /// The last value, and whether it was issued.
    pub fn state(&self) -> (i64, bool) {
        let data = SequencePage(Page::first_of(&self.0, Access::Read)).data();
        (data.last_value, data.is_called != 0)
    }

    /// Its page, for this process alone.
    pub fn lock_page(&self) -> SequencePage {
        SequencePage(Page::first_of(&self.0, Access::Write))
    }
}

/// The tuple of a sequence (`FormData_pg_sequence_data`, commands/sequence.h).
/// Whatever is on the page is a valid value of it: a `bool` need not be.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SequenceData {
    /// The last value, or the first one.
    pub last_value: i64,
    /// How many values are logged ahead; the mark keeps the start number in it.
    pub log_cnt: i64,
    /// A C `bool`: 0 if the value has not been issued yet.
    pub is_called: u8,
}

/// The page of a sequence, locked until it is dropped.
pub struct SequencePage(Page);

impl SequencePage {
    /// A copy of the tuple.
    pub fn data(&self) -> SequenceData {
        // SAFETY: the page of a sequence, pinned and locked.
        unsafe { *sequence_data(self.0.as_ptr()) }
    }

    /// The end of the last record about the page.
    pub fn record(&self) -> pg_sys::XLogRecPtr {
        self.0.record()
    }

    /// Changes the tuple and logs that; returns the position up to which to flush.
    /// `sequence` is the one whose page it is.
    ///
    /// # Panics
    /// If the page is locked for reading only.
    pub fn write(&mut self, sequence: &Sequence, data: SequenceData) -> pg_sys::XLogRecPtr {
        self.0.change(&sequence.0, |page| {
            // SAFETY: a copy of the page of a sequence.
            let tuple = unsafe { &mut *sequence_data(page) };
            // Not as a whole: padding is part of the page.
            tuple.last_value = data.last_value;
            tuple.log_cnt = data.log_cnt;
            tuple.is_called = data.is_called;
        })
    }
}

/// The tuple on the page of a sequence.
///
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
