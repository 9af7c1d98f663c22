//! The first snowflake IDs of migrated columns: the table `first_ids`.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{Key, Kind, Records, keep, read};
use crate::catalog::CORE;
use crate::error::{Error, or_report};
use crate::owner::{class_of, require_owner};
use crate::pg::composite::{Composite, CompositeResult};
use crate::pg::{self, Call, Mode, Name};

/// The table.
pub static FIRST_IDS: Kind = Kind {
    home: CORE,
    name: c"first_ids",
    has_relation: false,
    lock: 0,
    check: |_, _| Ok(Vec::new()),
};

const FIRST_ID: &CStr = c"first_id";

// The number bounds the column's own IDs, so a role that may read these learns
// nothing that it could not find out. The rest of the row is for the owner.
#[pg_extern(sql = false)]
fn snowflake_first_id_of(target: pg_sys::Oid, column_name: Name<'_>) -> Option<i64> {
    let key = Key::new(&FIRST_IDS, target, column_name, None);
    let class = class_of(target).ok()?;
    let number = pg::catalog::column_number(target, &key.column)?;
    let user = pg::session::current_user();
    if !pg::privileges::has_privileges_of(user, class.owner)
        && !pg::privileges::may_read_column(target, number, user)
    {
        return None;
    }
    or_report(highest(&key))
}

#[pg_extern(sql = false)]
fn snowflake_first_id_record(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(&FIRST_IDS, target, column_name, None);
    class_of(target).and_then(require_owner).ok()?;
    or_report(read(call.function(), &FIRST_IDS, &key))
}

#[pg_extern(sql = false)]
fn snowflake_keep_first_id(first_id: Composite<'_>) {
    or_report(keep(&FIRST_IDS, first_id));
}

/// The highest first ID of a column in its table, in the tables that this one
/// inherits from and in those that inherit from it. A migration is recorded for the
/// table that was named, and a query of a table also reads the rows of its children.
fn highest(key: &Key) -> Result<Option<i64>, Error> {
    let records = Records::open(&FIRST_IDS, Mode::Read)?;
    let columns = records.columns()?;
    let first_id = records
        .table
        .columns()
        .find(FIRST_ID)
        .and_then(|column| column.of_type(pg_sys::INT8OID))
        .ok_or_else(|| records.missing())?;
    let mut recorded: Vec<(pg_sys::Oid, i64)> = Vec::new();
    records.table.scan(|row| {
        let of = columns.key_of(row);
        if of.column == key.column {
            recorded.extend(row.bigint(first_id).map(|first_id| (of.target, first_id)));
        }
        None::<()>
    });
    let is_related = |other: pg_sys::Oid| {
        other == key.target
            || pg::meaning::inherits_from(key.target, other)
            || pg::meaning::inherits_from(other, key.target)
    };
    Ok(recorded
        .into_iter()
        .filter(|(target, _)| is_related(*target))
        .map(|(_, first_id)| first_id)
        .max())
}
