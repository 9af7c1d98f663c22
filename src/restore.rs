//! Restoring a dump, by a role that need not be a superuser.
//!
//! `pg_dump` includes one table of each extension, `restore`, which is always empty.
//! The rows that are dumped in its name are the mark and the layouts
//! (`sql/snowflake/restore.sql`), and the origins of migrated columns
//! (`sql/snowflake_migrate/restore.sql`). A restored dump inserts
//! these rows, and a trigger applies them. Every role has the privilege to insert
//! them, so each row is checked:
//!
//! | row | who may restore it | what it can do |
//! |---|---|---|
//! | mark | the owner of the database or of the extension | raise the mark as `setval` does, never lower it: slots move to a lease ahead of the clock at most; beyond that IDs of this database wait, or are refused |
//! | layout | the same | add a layout, which is reported if it is not the server's |
//! | origin | the same, with the privileges of the table's owner | record what that owner can record as well; an existing record stays |
//!
//! A record of a table that the role may not write, or whose table does not exist, is
//! left out with a warning, so that the dump is restored otherwise. Nothing is stored.
//!
//! Any table can have a trigger with this function. A role that inserts into such a
//! table has not asked to restore anything, so a function serves one table only.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::catalog::{CORE, Home};
use crate::encoding::{self, readable, shown};
use crate::error::{Error, or_report};
use crate::generator::{self, accepted_layout};
use crate::pg::{self, Call, Column, Row, Text, TriggerResult};
use crate::records::{self, Kind, Restored};

const TABLE: &str = "restore";
const TABLE_NAME: &CStr = c"restore";

#[pg_extern(sql = false)]
fn snowflake_restore_row(call: Call<'_>) -> TriggerResult {
    restore_row(call, &CORE, apply)
}

/// Applies the row of a trigger, which is that of the extension's own table.
pub fn restore_row(
    call: Call<'_>,
    home: &Home,
    apply: fn(Row<'_>) -> Result<(), Error>,
) -> TriggerResult {
    let table = home.table(TABLE_NAME);
    let Some(row) = call
        .trigger()
        .filter(|trigger| Some(trigger.table()) == table)
        .and_then(|trigger| trigger.row_to_write())
    else {
        Error::RestoreIsATrigger.report();
    };
    // The rows are valid on one server only, as those of the tables themselves.
    if !pg::session::is_logical_worker() {
        or_report(require_privileges(call.function()).and_then(|()| apply(row)));
    }
    TriggerResult::no_row()
}

/// # Errors
/// [`Error::RestoreDenied`] unless the current user has the privileges of the owner
/// of the database, or of the extension's. Each of them can drop the extension, or the
/// database, so a mark that stops its IDs is no additional privilege.
fn require_privileges(function: pg_sys::Oid) -> Result<(), Error> {
    let user = pg::session::current_user();
    let extension = pg::catalog::extension_of(pg_sys::ProcedureRelationId, function);
    let is_owner = pg::privileges::owns_database(user)
        || extension.is_some_and(|extension| pg::privileges::owns_extension(extension, user));
    if is_owner {
        Ok(())
    } else {
        Err(Error::RestoreDenied)
    }
}

fn apply(row: Row<'_>) -> Result<(), Error> {
    match text(row, "record")?.bytes() {
        b"mark" => {
            let mark = row.bigint(column(row, "mark")?);
            generator::restore_mark(mark.ok_or_else(|| null("mark"))?)
        }
        b"layout" => {
            let layout = encoding::layout(text(row, "layout")?.bytes())?;
            let accepted_at = column(row, "accepted_at")?
                .of_type(pg_sys::TIMESTAMPTZOID)
                .and_then(|column| row.value(column))
                .ok_or_else(|| null("accepted_at"))?;
            accepted_layout::restore(layout, accepted_at.value() as i64)
        }
        other => Err(Error::InvalidRestoredRecord(shown(other))),
    }
}

/// Restores a record of a column.
///
/// # Errors
/// [`Error::RecordsMissing`] and [`Error::NullInRecord`], and those of [`Kind::check`].
pub fn restore_record(kind: &'static Kind, row: Row<'_>) -> Result<(), Error> {
    let name = |name| {
        let value = row.name(column(row, name)?);
        value.ok_or_else(|| null(name))
    };
    let (schema, table, key) = (
        name("target_schema")?,
        name("target_name")?,
        name("column_name")?,
    );
    let why = match records::restore(kind, schema, table, row)? {
        Restored::Written => return Ok(()),
        Restored::NoTable => "The table does not exist.",
        Restored::NotOwner => "The current role does not have the privileges of the table's owner.",
        Restored::Exists => "A migration of this column is recorded already.",
    };
    let [schema, table, key] = [schema, table, key].map(|name| readable(name.to_bytes()));
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the migration of column \"{key}\" of \"{schema}\".\"{table}\" was not restored"),
        "snowflake",
    )
    .set_detail(why)
    .set_hint("snowflake_migrate.revert() needs the records of migrations.")
    .report(PgLogLevel::WARNING);
    Ok(())
}

/// # Errors
/// [`Error::RecordsMissing`].
fn column<'a>(row: Row<'a>, name: &'static str) -> Result<Column<'a>, Error> {
    let found = CString::new(name)
        .ok()
        .and_then(|name| row.columns().find(&name));
    found.ok_or(Error::RecordsMissing(TABLE))
}

/// # Errors
/// [`Error::RecordsMissing`] and [`Error::NullInRecord`].
fn text<'a>(row: Row<'a>, name: &'static str) -> Result<Text<'a>, Error> {
    row.text(column(row, name)?).ok_or_else(|| null(name))
}

fn null(column: &str) -> Error {
    Error::NullInRecord {
        table: TABLE,
        column: column.to_owned(),
    }
}
