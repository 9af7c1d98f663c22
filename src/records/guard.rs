//! The triggers that protect the tables of records.
//!
//! Privileges on all tables (`GRANT … ON ALL TABLES`, default privileges,
//! `pg_write_all_data`) include these tables. A superuser who reverts a migration
//! runs statements that are built from them, so a privilege is not enough. Only
//! superusers may write to them by SQL. The extension's own writes ([`super::keep`]) fire no trigger.
//!
//! A publication FOR ALL TABLES includes these tables. A row that it brings is
//! discarded by a row trigger, but a TRUNCATE has no rows. An error would stop the
//! subscription, for a statement that concerns the other server only. So the rows are
//! copied before the TRUNCATE, and written again after it. No session sees the table
//! empty, because it is locked until the end of the transaction.

use std::ffi::CStr;

use parking_lot::Mutex;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::catalog::{CORE, Home, MIGRATE};
use crate::encoding::readable;
use crate::error::Error;
use crate::pg::table::{CopiedRows, Table};
use crate::pg::trigger::Trigger;
use crate::pg::{self, Call, Mode, Relation, TriggerResult};

/// The tables with triggers of the extensions.
const TABLES: [(Home, &CStr); 6] = [
    (CORE, c"accepted_layout"),
    (CORE, c"restore"),
    (MIGRATE, c"origins"),
    (MIGRATE, c"pace"),
    (MIGRATE, c"progress"),
    (MIGRATE, c"restore"),
];

/// The rows of tables that are being truncated.
static TRUNCATED: Mutex<Vec<(pg_sys::Oid, CopiedRows)>> = Mutex::new(Vec::new());

#[pg_extern(sql = false)]
fn snowflake_guard(call: Call<'_>) -> TriggerResult {
    let Some(trigger) = call.trigger() else {
        Error::NotATrigger("snowflake_internal.guard").report();
    };
    let is_replicated = trigger.is_for_truncate() && pg::session::is_logical_worker();
    if is_replicated && is_own(trigger) {
        keep_rows(trigger);
    } else if !pg::session::is_superuser() {
        let table = readable(trigger.table_name().to_bytes()).into_owned();
        Error::RecordsGuarded(table).report();
    }
    TriggerResult::no_row()
}

/// Whether it is the trigger of one of the extensions' tables.
fn is_own(trigger: Trigger<'_>) -> bool {
    TABLES
        .iter()
        .any(|(home, table)| home.table(table) == Some(trigger.table()))
}

/// Copies the table's rows before a TRUNCATE, and writes them again after it.
fn keep_rows(trigger: Trigger<'_>) {
    let table = trigger.table();
    // Those of an earlier TRUNCATE, if it failed in between.
    let copied = take_copied(table);
    let open = |mode| Relation::open(table, mode).and_then(Table::from_relation);
    if trigger.is_before() {
        if let Some(rows) = open(Mode::Read).map(|opened| opened.copy_rows()) {
            TRUNCATED.lock().push((table, rows));
        }
    } else if let (Some(rows), Some(opened)) = (copied, open(Mode::Write)) {
        opened.write_copies(&rows);
    }
}

fn take_copied(table: pg_sys::Oid) -> Option<CopiedRows> {
    let mut truncated = TRUNCATED.lock();
    let index = truncated.iter().position(|(of, _)| *of == table)?;
    Some(truncated.swap_remove(index).1)
}
