//! The layout of a database's IDs, as the database records it.
//!
//! `snowflake.layout` belongs to the server, IDs to the databases. After a
//! restart under another layout, or a restore on another server, the mark keeps
//! IDs from repeating, but old ones are read with the wrong fields: another
//! year, another node. So the table `snowflake_internal.accepted_layout` holds the layout of the IDs that are there. The first ID
//! that is made writes it down; a dump carries it.
//!
//! If it is not this server's layout, the server's log reports that at the first
//! ID after a start, `snowflake_status` shows both, `snowflake_audit()` reports
//! it, and reading an ID without naming a layout gives a notice, once a session.
//! `snowflake_accept_layout()` records this server's layout.
//!
//! The table is read and written by its OID, without SQL, so no trigger and no
//! name on the search path has any effect. No process waits for its lock: a role
//! that may read the table could otherwise keep others from their IDs.
#![allow(unsafe_code)] // reads and writes a table

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{pg_sys, varlena};
use snowflake_id::Layout;

use crate::catalog;
use crate::error::Error;
use crate::generator::log;
use crate::generator::mark;
use crate::pg::{self, Call};
use crate::settings;
use crate::shared::{MarkKey, Shared};

const TABLE_NAME: &CStr = c"accepted_layout";

/// `layout` and `accepted_at`.
const COLUMNS: usize = 2;

/// Called when a process has reserved time for IDs with this layout: checks once
/// whether it is the layout of the database's IDs.
///
/// # Errors
/// As [`mark::is_unused`].
pub fn check(
    shared: Shared,
    layout: Layout,
    function: pg_sys::Oid,
    mark: pg_sys::Oid,
) -> Result<(), Error> {
    /// The mark of the database that was checked.
    static CHECKED: AtomicU32 = AtomicU32::new(0);
    if CHECKED.load(Relaxed) == mark.to_u32() {
        return Ok(());
    }
    let Some(table) = Table::open(function, pg_sys::AccessShareLock) else {
        return Ok(());
    };
    let recorded = table.layouts();
    drop(table);
    match recorded.iter().find(|text| **text != layout.to_string()) {
        // Nothing but this layout is recorded.
        None if !recorded.is_empty() => {}
        // Without IDs there is no layout of theirs.
        Some(other) if !mark::is_unused(mark)? => {
            if shared.start_layout_episode(MarkKey::here(mark)) {
                log::other_layout(other, &layout.to_string());
            }
        }
        _ => {
            if !may_write() {
                return Ok(());
            }
            if let Some(table) = Table::open(function, pg_sys::ShareRowExclusiveLock) {
                table.replace(layout);
            }
        }
    }
    CHECKED.store(mark.to_u32(), Relaxed);
    Ok(())
}

/// Whether this transaction may write a row. An ID must not depend on that.
fn may_write() -> bool {
    // SAFETY: reads the state of the transaction.
    unsafe { !pg_sys::XactReadOnly && !pg_sys::IsInParallelMode() && !pg_sys::RecoveryInProgress() }
}

/// Says once a session that IDs of this database are read with another layout
/// than they were made with.
#[inline]
pub fn hint(call: Call<'_>) {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.load(Relaxed) {
        ASKED.store(look(call), Relaxed);
    }
}

/// Whether it could be looked at.
#[cold]
#[inline(never)]
fn look(call: Call<'_>) -> bool {
    // SAFETY: set when the process starts. The leader looks for its workers.
    if unsafe { pg_sys::ParallelWorkerNumber } >= 0 {
        return true;
    }
    let Ok(layout) = settings::layout_for_reading() else {
        return true;
    };
    let Some(table) = Table::open(call.function(), pg_sys::AccessShareLock) else {
        return false;
    };
    let layouts = table.layouts();
    drop(table);
    if let Some(other) = layouts.iter().find(|text| **text != layout.to_string()) {
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            "the snowflake IDs of this database were generated with another layout",
            "snowflake",
        )
        .set_detail(format!(
            "They were generated with \"{other}\"; they are read with \"{layout}\"."
        ))
        .set_hint(
            "Pass the layout as the last argument. If the change is intended, a superuser can run \
             SELECT snowflake_accept_layout().",
        )
        .report(PgLogLevel::NOTICE);
    }
    true
}

/// The layout of the IDs in this database; if several are recorded, one that is
/// not this server's. `None` if none is recorded.
pub fn of_database(function: pg_sys::Oid) -> Option<String> {
    let current = settings::layout_for_reading().ok()?.to_string();
    let table = Table::open(function, pg_sys::AccessShareLock)?;
    let mut layouts = table.layouts();
    let index = layouts.iter().position(|text| *text != current);
    match index {
        Some(index) => Some(layouts.swap_remove(index)),
        None => layouts.pop(),
    }
}

/// Records this server's layout as that of the database's IDs.
///
/// # Errors
/// [`Error::NotPreloaded`], and [`Error::LayoutTableLocked`] if another session has
/// locked the table.
pub fn accept(function: pg_sys::Oid) -> Result<(), Error> {
    let layout = settings::layout().ok_or(Error::NotPreloaded)?;
    // SAFETY: raises the error of a read-only transaction, a parallel operation
    // and a standby.
    unsafe {
        let name = c"snowflake_accept_layout()".as_ptr();
        pg_sys::PreventCommandIfReadOnly(name);
        pg_sys::PreventCommandIfParallelMode(name);
        pg_sys::PreventCommandDuringRecovery(name);
    }
    let table = Table::open(function, pg_sys::ShareRowExclusiveLock);
    table.ok_or(Error::LayoutTableLocked)?.replace(*layout);
    Ok(())
}

/// Records the layout of restored IDs beside those that are recorded. None is
/// removed or replaced: where a restored layout is not this server's, that is
/// reported.
///
/// # Errors
/// [`Error::RecordsMissing`].
pub fn restore(
    function: pg_sys::Oid,
    layout: Layout,
    accepted_at: pg_sys::TimestampTz,
) -> Result<(), Error> {
    let table =
        Table::open_for_restoring(function).ok_or(Error::RecordsMissing("accepted_layout"))?;
    if !table.layouts().contains(&layout.to_string()) {
        table.insert(layout, accepted_at);
    }
    table.close_locked();
    // The same layout may follow.
    pg::make_writes_visible();
    Ok(())
}

/// The table, opened and locked. If it was written to, the lock stays until the
/// transaction ends.
struct Table {
    relation: pg_sys::Relation,
    lock: pg_sys::LOCKMODE,
}

impl Table {
    /// `None` if another session has locked it.
    fn open(function: pg_sys::Oid, lock: u32) -> Option<Self> {
        let lock = lock as pg_sys::LOCKMODE;
        let oid = catalog::relation(function, TABLE_NAME)?;
        // SAFETY: a lock on a relation need not have one.
        unsafe { pg_sys::ConditionalLockRelationOid(oid, lock) }
            .then(|| Self::open_locked(oid, lock))
            .flatten()
    }

    /// The same, but waits for other writers. `None` if there is none.
    fn open_for_restoring(function: pg_sys::Oid) -> Option<Self> {
        let lock = pg_sys::ShareRowExclusiveLock as pg_sys::LOCKMODE;
        let oid = catalog::relation(function, TABLE_NAME)?;
        // SAFETY: as above.
        unsafe { pg_sys::LockRelationOid(oid, lock) };
        Self::open_locked(oid, lock)
    }

    /// Opens a relation that is locked in this mode.
    fn open_locked(oid: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Option<Self> {
        // SAFETY: a relation is opened only while it is locked.
        unsafe {
            let relation = pg_sys::try_relation_open(oid, pg_sys::NoLock as pg_sys::LOCKMODE);
            if relation.is_null() {
                pg_sys::UnlockRelationOid(oid, lock);
                return None;
            }
            let table = Table { relation, lock };
            let is_ours = (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_RELATION
                && (*(*relation).rd_att).natts as usize == COLUMNS;
            is_ours.then_some(table)
        }
    }

    /// The recorded layouts.
    fn layouts(&self) -> Vec<String> {
        let mut layouts = Vec::new();
        self.each(|tuple| layouts.extend(self.layout_of(tuple)));
        layouts
    }

    /// Records this layout and no other.
    fn replace(self, layout: Layout) {
        let mut old = Vec::new();
        // SAFETY: rows of the scan. Their places stay the same: the lock on the
        // table keeps other sessions from writing.
        self.each(|tuple| old.push(unsafe { (*tuple).t_self }));
        for mut place in old {
            // SAFETY: a row of this table, deleted as those of catalogs are.
            unsafe { pg_sys::CatalogTupleDelete(self.relation, &mut place) };
        }
        // SAFETY: reads the state of the transaction.
        let now = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
        self.insert(layout, now);
        self.close_locked();
    }

    /// Writes a row.
    fn insert(&self, layout: Layout, accepted_at: pg_sys::TimestampTz) {
        let text = layout.to_string();
        // SAFETY: a row with a value for each column, of its type, written as
        // catalogs are: without triggers. The table has no indexes.
        unsafe {
            let text = pg_sys::cstring_to_text_with_len(text.as_ptr().cast(), text.len() as i32);
            let mut values = [pg_sys::Datum::from(text), pg_sys::Datum::from(accepted_at)];
            let mut nulls = [false; COLUMNS];
            let row = pg_sys::heap_form_tuple(
                (*self.relation).rd_att,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            pg_sys::CatalogTupleInsert(self.relation, row);
        }
    }

    /// Closes it, and keeps the lock until the transaction ends.
    fn close_locked(self) {
        // SAFETY: opened by `open_locked`, closed once.
        unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock as pg_sys::LOCKMODE) };
        std::mem::forget(self);
    }

    fn each(&self, mut visit: impl FnMut(pg_sys::HeapTuple)) {
        // SAFETY: an ordinary table that is open; a row is valid until the next one
        // is fetched.
        unsafe {
            let scan = pg_sys::systable_beginscan(
                self.relation,
                pg_sys::InvalidOid,
                false,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
            );
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                visit(tuple);
            }
            pg_sys::systable_endscan(scan);
        }
    }

    fn layout_of(&self, tuple: pg_sys::HeapTuple) -> Option<String> {
        let mut values = [pg_sys::Datum::null(); COLUMNS];
        let mut nulls = [true; COLUMNS];
        // SAFETY: a row of this table, which has that many columns; the first is
        // a text.
        unsafe {
            pg_sys::heap_deform_tuple(
                tuple,
                (*self.relation).rd_att,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            if nulls[0] {
                return None;
            }
            let text = pg_sys::pg_detoast_datum_packed(values[0].cast_mut_ptr());
            let bytes = varlena::varlena_to_byte_slice(text);
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened and locked by `open`, closed once.
            unsafe { pg_sys::relation_close(self.relation, self.lock) };
        }
    }
}
