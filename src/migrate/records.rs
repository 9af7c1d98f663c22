//! The records of migrations: `origins`, what a column was before, `progress`, how far
//! rows are copied, and `pace`, how fast.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::catalog::MIGRATE;
use crate::encoding::shown;
use crate::error::{Error, or_report};
use crate::owner::{class_of, require_owner};
use crate::pg::composite::{Composite, CompositeResult};
use crate::pg::{self, Call, Mode, Name, Row, Text};
use crate::records::{Key, Kind, Records, keep, read, read_all};

/// What columns were before their migration.
pub static ORIGINS: Kind = Kind {
    home: MIGRATE,
    name: c"origins",
    has_relation: false,
    lock: 0,
    check: require_kind,
};

/// How far the rows of online migrations are copied.
static PROGRESS: Kind = Kind {
    home: MIGRATE,
    name: c"progress",
    has_relation: true,
    lock: 0,
    check: key_targets,
};

/// How fast rows are copied. A transaction that has changed the pace does not delay the
/// batches.
static PACE: Kind = Kind {
    home: MIGRATE,
    name: c"pace",
    has_relation: false,
    lock: 1,
    check: |_, _| Ok(Vec::new()),
};

/// The values of `origins.kind`; its CHECK has the same.
const KINDS: [&[u8]; 5] = [
    b"serial",
    b"identity always",
    b"identity by default",
    b"default",
    b"none",
];

/// How many keys an online migration can have. Each of its rows of progress names all
/// of them, and every plan reads these rows.
const MOST_KEYS: usize = 1_600;

#[pg_extern(sql = false)]
fn snowflake_migrate_origin(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(&ORIGINS, target, column_name, None);
    class_of(target).and_then(require_owner).ok()?;
    or_report(read(call.function(), &ORIGINS, &key))
}

/// What the caller may see of the records, for its dump: one of another role's table is
/// left out, and does not prevent it.
#[pg_extern(sql = false)]
fn snowflake_migrate_origins(call: Call<'_>) -> SetOfIterator<'static, CompositeResult> {
    let user = pg::session::current_user();
    let sees_all = pg::privileges::owns_database(user) || pg::privileges::may_read_all_data(user);
    let may_see = |target| sees_all || class_of(target).and_then(require_owner).is_ok();
    SetOfIterator::new(or_report(read_all(call.function(), &ORIGINS, may_see)))
}

#[pg_extern(sql = false)]
fn snowflake_migrate_keep_origin(origin: Composite<'_>) {
    or_report(keep(&ORIGINS, origin));
}

#[pg_extern(sql = false)]
fn snowflake_migrate_progress(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    relation: pg_sys::Oid,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(&PROGRESS, target, column_name, Some(relation));
    or_report(
        key.lock()
            .and_then(|()| read(call.function(), &PROGRESS, &key)),
    )
}

#[pg_extern(sql = false)]
fn snowflake_migrate_keep_progress(step: Composite<'_>) {
    or_report(keep(&PROGRESS, step));
}

#[pg_extern(sql = false)]
fn snowflake_migrate_end_backfill(target: pg_sys::Oid, column_name: Name<'_>) {
    for table in [&PROGRESS, &PACE] {
        let key = Key::new(table, target, column_name, None);
        or_report(key.lock().and_then(|()| {
            let records = Records::open(table, Mode::Write)?;
            let columns = records.columns()?;
            records
                .table
                .delete_where(|row| columns.is_about(row, &key));
            Ok(())
        }));
    }
}

#[pg_extern(sql = false)]
fn snowflake_migrate_pace(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(&PACE, target, column_name, None);
    or_report(key.lock().and_then(|()| read(call.function(), &PACE, &key)))
}

#[pg_extern(sql = false)]
fn snowflake_migrate_keep_pace(pace: Composite<'_>) {
    or_report(keep(&PACE, pace));
}

/// The tables of all keys of the migration that a row of progress is about.
///
/// # Errors
/// [`Error::RecordsMissing`], [`Error::TooManyKeys`] and [`Error::KeysDiffer`].
fn key_targets(records: &Records, row: Row<'_>) -> Result<Vec<pg_sys::Oid>, Error> {
    let columns = records.table.columns();
    let targets = columns
        .find(c"key_targets")
        .and_then(|column| column.of_type(pg_sys::REGCLASSARRAYOID))
        .ok_or_else(|| records.missing())?;
    let names = columns
        .find(c"key_column_names")
        .and_then(|column| column.of_type(pg_sys::NAMEARRAYOID))
        .ok_or_else(|| records.missing())?;
    let targets = row
        .oids(targets, MOST_KEYS)
        .map_err(|keys| Error::TooManyKeys {
            keys,
            most: MOST_KEYS,
        })?;
    match row.name_count(names) {
        columns if columns == targets.len() => Ok(targets),
        columns => Err(Error::KeysDiffer {
            targets: targets.len(),
            columns,
        }),
    }
}

/// # Errors
/// [`Error::RecordsMissing`] and [`Error::InvalidKind`].
fn require_kind(records: &Records, row: Row<'_>) -> Result<Vec<pg_sys::Oid>, Error> {
    let column = records.table.columns().find(c"kind");
    let kind = column
        .and_then(|column| column.of_type(pg_sys::TEXTOID))
        .ok_or_else(|| records.missing())
        .map(|column| row.text(column).map_or(&[][..], Text::bytes))?;
    if KINDS.contains(&kind) {
        Ok(Vec::new())
    } else {
        Err(Error::InvalidKind(shown(kind)))
    }
}
