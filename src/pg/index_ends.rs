//! Whether a column has numbers outside of a range, as its index shows: without SQL, so
//! that no code of the table's owner runs, and no row security hides a row.

use std::ffi::c_int;
use std::ptr;

use pgrx::{PgList, check_for_interrupts, pg_sys};

use super::relation::{Column, Relation};

/// What an index shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// No row has a number outside.
    None,
    /// A row has a number below.
    Below,
    /// A row has a number above.
    Above,
    /// No index on the column can tell.
    NoIndex,
    /// Too many rows at its end are deleted, but not removed.
    DeadRows,
}

/// How many entries of deleted rows are looked at. As many take some milliseconds.
const MOST_DEAD: u32 = 10_000;

/// An index, which is open.
struct Index(pg_sys::Relation);

impl Index {
    /// One whose first column is this one, in the order of integers.
    fn on(relation: &Relation, column: Column<'_>) -> Option<Self> {
        // SAFETY: an open relation, and the list of its indexes, which are opened one by
        // one; an index that is open has these fields.
        unsafe {
            let indexes =
                PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(relation.as_ptr()));
            indexes.iter_oid().find_map(|index| {
                let index = Index(pg_sys::index_open(index, lock()));
                let (class, row) = (&*(*index.0).rd_rel, &*(*index.0).rd_index);
                let is_whole = pg_sys::heap_attisnull(
                    (*index.0).rd_indextuple,
                    pg_sys::Anum_pg_index_indpred as c_int,
                    ptr::null_mut(),
                );
                (class.relam == pg_sys::BTREE_AM_OID
                    && row.indisvalid
                    && row.indisready
                    && is_whole
                    && row.indkey.values.as_slice(1)[0] == column.number()
                    && *(*index.0).rd_opfamily == pg_sys::INTEGER_BTREE_FAM_OID)
                    .then_some(index)
            })
        }
    }

    fn is_descending(&self) -> bool {
        // SAFETY: as above.
        unsafe { *(*self.0).rd_indoption as u32 & pg_sys::INDOPTION_DESC != 0 }
    }

    /// The value of a number of the index's type.
    fn number(&self, value: pg_sys::Datum) -> i64 {
        // SAFETY: as above.
        match unsafe { *(*self.0).rd_opcintype } {
            pg_sys::INT2OID => i64::from(value.value() as i16),
            pg_sys::INT4OID => i64::from(value.value() as i32),
            _ => value.value() as i64,
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened in this mode, closed once.
            unsafe { pg_sys::index_close(self.0, lock()) };
        }
    }
}

fn lock() -> pg_sys::LOCKMODE {
    pg_sys::AccessShareLock as pg_sys::LOCKMODE
}

/// Whether a row that the present snapshot sees has a number below `low` or above `high`.
/// NULLs are not looked at.
pub fn outside(relation: &Relation, column: Column<'_>, low: i64, high: i64) -> Outside {
    if relation.is_empty_file() {
        return Outside::None;
    }
    let Some(index) = Index::on(relation, column) else {
        return Outside::NoIndex;
    };
    let below = end(relation, &index, index.is_descending(), |number| {
        number < low
    });
    let above = || {
        end(relation, &index, !index.is_descending(), |number| {
            number > high
        })
    };
    match below {
        Some(true) => Outside::Below,
        None => Outside::DeadRows,
        Some(false) => match above() {
            Some(true) => Outside::Above,
            None => Outside::DeadRows,
            Some(false) => Outside::None,
        },
    }
}

/// Whether there is a row at this end whose number is sought; `None` if too many are dead.
fn end(
    relation: &Relation,
    index: &Index,
    from_last: bool,
    is_sought: impl Fn(i64) -> bool,
) -> Option<bool> {
    let direction = if from_last {
        pg_sys::ScanDirection::BackwardScanDirection
    } else {
        pg_sys::ScanDirection::ForwardScanDirection
    };
    let mut found = Some(false);
    // SAFETY: an open table and an open index of it; the scan and the slot are ended once.
    // A tuple of the index has as many values as an index has columns at most.
    unsafe {
        let slot = pg_sys::table_slot_create(relation.as_ptr(), ptr::null_mut());
        let scan = begin(relation.as_ptr(), index.0);
        (*scan).xs_want_itup = true;
        pg_sys::index_rescan(scan, ptr::null_mut(), 0, ptr::null_mut(), 0);
        let mut dead = 0;
        while !pg_sys::index_getnext_tid(scan, direction).is_null() {
            let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
            let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
            pg_sys::index_deform_tuple(
                (*scan).xs_itup,
                (*scan).xs_itupdesc,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            // NULLs are at one of the ends.
            if !nulls[0] {
                if !is_sought(index.number(values[0])) {
                    break;
                }
                if pg_sys::index_fetch_heap(scan, slot) {
                    found = Some(true);
                    break;
                }
            }
            dead += 1;
            if dead == MOST_DEAD {
                found = None;
                break;
            }
            check_for_interrupts!();
        }
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
    }
    found
}

/// # Safety
/// An open table, and an open index of it.
#[cfg(not(any(feature = "pg18", feature = "pg19")))]
unsafe fn begin(table: pg_sys::Relation, index: pg_sys::Relation) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller's; a statement has a snapshot while it calls functions.
    unsafe { pg_sys::index_beginscan(table, index, pg_sys::GetActiveSnapshot(), 0, 0) }
}

/// # Safety
/// An open table, and an open index of it.
#[cfg(feature = "pg18")]
unsafe fn begin(table: pg_sys::Relation, index: pg_sys::Relation) -> pg_sys::IndexScanDesc {
    // SAFETY: as above.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        pg_sys::index_beginscan(table, index, snapshot, ptr::null_mut(), 0, 0)
    }
}

/// # Safety
/// An open table, and an open index of it.
#[cfg(feature = "pg19")]
unsafe fn begin(table: pg_sys::Relation, index: pg_sys::Relation) -> pg_sys::IndexScanDesc {
    // SAFETY: as above.
    unsafe {
        let snapshot = pg_sys::GetActiveSnapshot();
        pg_sys::index_beginscan(table, index, snapshot, ptr::null_mut(), 0, 0, 0)
    }
}
