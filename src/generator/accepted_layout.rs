//! The layout of a database's IDs, as the database records it.
//!
//! `snowflake.layout` belongs to the server, IDs to the databases. After a
//! restart under another layout, or a restore on another server, the mark keeps
//! IDs from repeating, but old ones are read with the wrong fields: another
//! year, another node. So the table `snowflake_internal.accepted_layout` holds the
//! layout of the IDs that are there. The first ID that is made writes it down; a
//! dump carries it.
//!
//! If it is not this server's layout, the server's log reports that at the first
//! ID after a start, `snowflake_status` shows both, `snowflake_audit()` reports
//! it, and reading an ID without naming a layout gives a notice, once a session.
//! `snowflake_accept_layout()` records this server's layout.
//!
//! The table is read and written by its OID, without SQL, so no trigger and no
//! name on the search path has any effect. No process waits for its lock: a role
//! that may read the table could otherwise keep others from their IDs.

use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_id::Layout;

use crate::catalog::CORE;
use crate::error::Error;
use crate::generator::log;
use crate::generator::storage;
use crate::pg::table::{Table, Value};
use crate::pg::{self, Mode, Relation};
use crate::settings;
use crate::shared::{self, MarkKey, Shared};

const TABLE_NAME: &CStr = c"accepted_layout";

/// Its columns.
const LAYOUT: &CStr = c"layout";
const ACCEPTED_AT: &CStr = c"accepted_at";

/// Called when a process has reserved time for IDs with this layout: checks once
/// whether it is the layout of the database's IDs.
///
/// # Errors
/// As [`storage::is_mark_unused`].
pub fn check(shared: Shared, layout: Layout, mark: pg_sys::Oid) -> Result<(), Error> {
    /// The mark of the database that was checked.
    static CHECKED: AtomicU32 = AtomicU32::new(0);
    if CHECKED.load(Relaxed) == mark.to_u32() {
        return Ok(());
    }
    let Some(table) = open(Mode::Read) else {
        return Ok(());
    };
    let recorded = layouts_in(&table);
    drop(table);
    match recorded.iter().find(|text| **text != layout.to_string()) {
        // Nothing but this layout is recorded.
        None if !recorded.is_empty() => {}
        // Without IDs there is no layout of theirs.
        Some(other) if !storage::is_mark_unused(mark)? => {
            if shared.start_layout_episode(MarkKey::here(mark)) {
                log::other_layout(other, &layout.to_string());
            }
        }
        _ => {
            // An ID must not depend on that.
            if !pg::transaction::may_write() {
                return Ok(());
            }
            if let Some(table) = open(Mode::WriteAlone) {
                replace(&table, layout);
            }
        }
    }
    CHECKED.store(mark.to_u32(), Relaxed);
    Ok(())
}

/// Says once a session that IDs of this database are read with another layout
/// than they were made with.
#[inline]
pub fn notice_other_layout_once() {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.load(Relaxed) {
        ASKED.store(look(), Relaxed);
    }
}

/// Whether it could be looked at.
#[cold]
#[inline(never)]
fn look() -> bool {
    // The leader looks for its workers.
    if pg::process::is_parallel_worker() {
        return true;
    }
    let Ok(layout) = settings::layout_for_reading() else {
        return true;
    };
    let Some(table) = open(Mode::Read) else {
        return false;
    };
    let layouts = layouts_in(&table);
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

/// Whether IDs of this database are recorded with another layout than this server's.
pub fn is_other() -> bool {
    /// That they are not.
    static KNOWN: AtomicBool = AtomicBool::new(false);
    if KNOWN.load(Relaxed) {
        return false;
    }
    let (Ok(layout), Some(table)) = (settings::layout_for_reading(), open(Mode::Read)) else {
        return false;
    };
    let layouts = layouts_in(&table);
    let is_other = layouts.iter().any(|text| *text != layout.to_string());
    KNOWN.store(!is_other && !layouts.is_empty(), Relaxed);
    is_other
}

/// The layout of the IDs in this database; if several are recorded, one that is
/// not this server's. `None` if none is recorded.
pub fn of_database() -> Option<String> {
    let current = settings::layout_for_reading().ok()?.to_string();
    let table = open(Mode::Read)?;
    let mut layouts = layouts_in(&table);
    let index = layouts.iter().position(|text| *text != current);
    match index {
        Some(index) => Some(layouts.swap_remove(index)),
        None => layouts.pop(),
    }
}

/// Records this server's layout as that of the database's IDs.
///
/// # Errors
/// As [`shared::get_or_make`], and [`Error::LayoutTableLocked`] if another session has
/// locked the table.
pub fn accept() -> Result<(), Error> {
    shared::get_or_make()?;
    let layout = settings::layout().ok_or(Error::NodeNotSet)?;
    pg::transaction::require_writable(c"snowflake_accept_layout()");
    let table = open(Mode::WriteAlone).ok_or(Error::LayoutTableLocked)?;
    replace(&table, *layout);
    Ok(())
}

/// Records the layout of restored IDs beside those that are recorded. None is
/// removed or replaced: where a restored layout is not this server's, that is
/// reported.
///
/// # Errors
/// [`Error::RecordsMissing`].
pub fn restore(layout: Layout, accepted_at: pg_sys::TimestampTz) -> Result<(), Error> {
    // Waits for other writers.
    let table = CORE
        .table(TABLE_NAME)
        .and_then(|relation| Relation::open(relation, Mode::WriteAlone))
        .and_then(as_created)
        .ok_or(Error::RecordsMissing("accepted_layout"))?;
    if !layouts_in(&table).contains(&layout.to_string()) {
        insert(&table, layout, accepted_at);
    }
    // The same layout may follow.
    pg::transaction::make_writes_visible();
    Ok(())
}

/// The table; `None` if another session has locked it.
fn open(mode: Mode) -> Option<Table> {
    let relation = CORE.table(TABLE_NAME)?;
    as_created(Relation::open_within(relation, mode, 0).ok()?)
}

/// The relation as the table that the extension creates.
fn as_created(relation: Relation) -> Option<Table> {
    let table = Table::from_relation(relation)?;
    let columns = table.columns();
    let has = |name, type_oid| {
        let column = columns.find(name);
        column.and_then(|column| column.of_type(type_oid)).is_some()
    };
    let is_as_created = columns.count() == 2
        && has(LAYOUT, pg_sys::TEXTOID)
        && has(ACCEPTED_AT, pg_sys::TIMESTAMPTZOID);
    is_as_created.then_some(table)
}

/// The recorded layouts.
fn layouts_in(table: &Table) -> Vec<String> {
    let mut layouts = Vec::new();
    if let Some(column) = table.columns().find(LAYOUT) {
        table.scan(|row| {
            let layout = row.text(column);
            layouts.extend(layout.map(|text| String::from_utf8_lossy(text.bytes()).into_owned()));
            None::<()>
        });
    }
    layouts
}

/// Records this layout and no other.
fn replace(table: &Table, layout: Layout) {
    table.clear();
    insert(table, layout, pg::transaction::start_time());
}

fn insert(table: &Table, layout: Layout, accepted_at: pg_sys::TimestampTz) {
    let text = layout.to_string();
    let values = [
        (LAYOUT, Value::Text(text.as_bytes())),
        (ACCEPTED_AT, Value::Timestamptz(accepted_at)),
    ];
    // Each of its columns has a value of its type.
    if let Ok(row) = table.row_with(&values) {
        table.insert(row);
    }
}
