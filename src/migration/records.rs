//! The tables that keep a migration's records: `origins`, what a column was
//! before, `progress`, how far rows are copied, and `pace`, how fast.
//!
//! They belong to the extension's owner, a superuser, and are written here
//! without SQL. No trigger, operator, name, grant or row security has any effect.
//! The caller must have the privileges of the owner of the table that a row is about,
//! and of each table that it names as part of the migration.
//!
//! Locking: a table of the extension is found as the mark is, in the schema of
//! the function that was called, and has to have the row type that function was
//! declared with. A session that writes about a table holds a lock on the table's
//! OID as an object, until the end of the transaction. PostgreSQL takes such a lock
//! on no relation, so it conflicts with other writers only. Rows are few, and are
//! found by reading all of them in a current snapshot.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::{class_of, hold_owned, require_owner};
use crate::catalog;
use crate::encoding::{readable, shown};
use crate::error::{Error, or_report};
use crate::pg::catalog::Class;
use crate::pg::composite::{Composite, CompositeResult};
use crate::pg::table::{Table, Unfit};
use crate::pg::{self, Call, Column, Mode, Name, Relation, Row, Text};

const ORIGINS: &CStr = c"origins";
const PROGRESS: &CStr = c"progress";
const PACE: &CStr = c"pace";

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
fn snowflake_migration_origin(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(ORIGINS, target, column_name, None);
    class_of(target).and_then(require_owner).ok()?;
    or_report(read(call.function(), ORIGINS, &key))
}

// The number bounds the column's own IDs, so a role that may read these learns
// nothing that it could not find out. The rest of the row is for the owner.
#[pg_extern(sql = false)]
fn snowflake_first_id_of(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    call: Call<'_>,
) -> Option<i64> {
    let key = Key::new(ORIGINS, target, column_name, None);
    let class = class_of(target).ok()?;
    let number = pg::catalog::column_number(target, &key.column)?;
    let user = pg::session::current_user();
    if !pg::privileges::has_privileges_of(user, class.owner)
        && !pg::privileges::may_read_column(target, number, user)
    {
        return None;
    }
    or_report(first_id_ever(call.function(), &key))
}

#[pg_extern(sql = false)]
fn snowflake_migration_keep_origin(origin: Composite<'_>, call: Call<'_>) {
    or_report(keep(call.function(), ORIGINS, origin));
}

#[pg_extern(sql = false)]
fn snowflake_migration_progress(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    relation: pg_sys::Oid,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(PROGRESS, target, column_name, Some(relation));
    or_report(
        key.lock()
            .and_then(|()| read(call.function(), PROGRESS, &key)),
    )
}

#[pg_extern(sql = false)]
fn snowflake_migration_keep_progress(step: Composite<'_>, call: Call<'_>) {
    or_report(keep(call.function(), PROGRESS, step));
}

#[pg_extern(sql = false)]
fn snowflake_migration_end(target: pg_sys::Oid, column_name: Name<'_>, call: Call<'_>) {
    for table in [PROGRESS, PACE] {
        let key = Key::new(table, target, column_name, None);
        or_report(key.lock().and_then(|()| {
            let records = Records::open(call.function(), table, Mode::Write)?;
            let columns = records.columns()?;
            records
                .table
                .delete_where(|row| columns.is_about(row, &key));
            Ok(())
        }));
    }
}

#[pg_extern(sql = false)]
fn snowflake_migration_pace(
    target: pg_sys::Oid,
    column_name: Name<'_>,
    call: Call<'_>,
) -> Option<CompositeResult> {
    let key = Key::new(PACE, target, column_name, None);
    or_report(key.lock().and_then(|()| read(call.function(), PACE, &key)))
}

#[pg_extern(sql = false)]
fn snowflake_migration_keep_pace(pace: Composite<'_>, call: Call<'_>) {
    or_report(keep(call.function(), PACE, pace));
}

/// The row with this key, as a value of the row type that the function returns.
fn read(
    function: pg_sys::Oid,
    table: &'static CStr,
    key: &Key,
) -> Result<Option<CompositeResult>, Error> {
    let records = Records::open(function, table, Mode::Read)?;
    if pg::catalog::result_type_of(function) != records.table.row_type() {
        return Err(records.missing());
    }
    let columns = records.columns()?;
    let found = |row: Row<'_>| columns.is_about(row, key).then(|| row.to_composite());
    Ok(records.table.scan(found))
}

/// The highest `first_id_ever` of a column in its table, in the tables that this one
/// inherits from and in those that inherit from it. A migration is recorded for the
/// table that was named, and a query of a table also reads the rows of its children.
fn first_id_ever(function: pg_sys::Oid, key: &Key) -> Result<Option<i64>, Error> {
    let records = Records::open(function, ORIGINS, Mode::Read)?;
    let columns = records.columns()?;
    let first_id = records
        .table
        .columns()
        .find(c"first_id_ever")
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

/// Writes a row in the place of the one with its key, if any.
fn keep(function: pg_sys::Oid, table: &'static CStr, value: Composite<'_>) -> Result<(), Error> {
    let records = Records::open(function, table, Mode::Write)?;
    let columns = records.columns()?;
    let row = records.row_from(value)?;
    let key = columns.key_of(row);
    let key_targets = records.key_targets(row)?;
    key.lock()?;
    for target in key_targets {
        // Not locked, because this transaction may hold the other table's lock. One that
        // was dropped belongs to no one: readers ignore rows that name it.
        if let Some(class) = Class::of(target) {
            require_owner(class)?;
        }
    }
    records.table.write(row, |row| columns.is_about(row, &key));
    records.forget_dropped(columns);
    Ok(())
}

/// What has become of a restored row of `origins`.
pub enum Restored {
    /// It was written.
    Written,
    /// There is no such table.
    NoTable,
    /// The current user does not have the privileges of the table's owner.
    NotOwner,
    /// The column has one already, which is newer.
    Exists,
}

/// Writes a row of `origins` with the values of a row of another table, whose
/// columns have the same names; `schema` and `name` are the target's.
///
/// The target is not locked: restoring its rows may take hours, under a lock that
/// this would wait for. Its owner may change in the meantime, as after this.
///
/// # Errors
/// [`Error::RecordsMissing`], [`Error::NullInRecord`] and [`Error::InvalidKind`].
pub fn restore_origin(
    function: pg_sys::Oid,
    schema: &CStr,
    name: &CStr,
    from: Row<'_>,
) -> Result<Restored, Error> {
    const TABLES: [u8; 2] = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE];
    let Some(target) = pg::catalog::relation_in(pg::catalog::schema_named(schema), name) else {
        return Ok(Restored::NoTable);
    };
    let is_owned = || match Class::of(target) {
        Some(class) if TABLES.contains(&class.kind) => Some(require_owner(class).is_ok()),
        _ => None,
    };
    let records = Records::open(function, ORIGINS, Mode::Write)?;
    let columns = records.columns()?;
    let row = records.checked(records.table.row_like(from, c"target", target))?;
    let key = columns.key_of(row);
    match is_owned() {
        None => return Ok(Restored::NoTable),
        Some(false) => return Ok(Restored::NotOwner),
        Some(true) => key.lock_number(),
    }
    // After the wait for another writer.
    if is_owned() != Some(true) {
        return Ok(Restored::NotOwner);
    }
    let exists = |row: Row<'_>| columns.is_about(row, &key).then_some(());
    if records.table.scan(exists).is_some() {
        return Ok(Restored::Exists);
    }
    records.table.write(row, |_| false);
    Ok(Restored::Written)
}

/// Which row.
struct Key {
    table: &'static CStr,
    target: pg_sys::Oid,
    column: CString,
    /// In the table of progress; `None` for all rows of the target.
    relation: Option<pg_sys::Oid>,
}

impl Key {
    fn new(
        table: &'static CStr,
        target: pg_sys::Oid,
        column: Name<'_>,
        relation: Option<pg_sys::Oid>,
    ) -> Self {
        Key {
            table,
            target,
            column: column.as_c_str().to_owned(),
            relation,
        }
    }

    /// Checks the caller's privileges, and then locks the key.
    ///
    /// # Errors
    /// [`Error::NoRelation`] and [`Error::NotOwner`].
    fn lock(&self) -> Result<(), Error> {
        hold_owned(self.target)?;
        if let Some(relation) = self.relation {
            hold_owned(relation)?;
        }
        self.lock_number();
        // The table may have been given to another owner in the meantime.
        require_owner(class_of(self.target)?)?;
        Ok(())
    }

    /// Locks the target's number against other writers of this table.
    fn lock_number(&self) {
        pg::lock::object(
            pg_sys::RelationRelationId,
            self.target,
            // A transaction that has changed the pace does not delay the batches.
            u16::from(self.table == PACE),
            pg_sys::ShareUpdateExclusiveLock,
        );
    }
}

/// One of the tables, opened.
struct Records {
    table: Table,
    name: &'static CStr,
}

/// The columns of a table's key.
#[derive(Clone, Copy)]
struct KeyColumns<'a> {
    table: &'static CStr,
    target: Column<'a>,
    column: Column<'a>,
    /// Only in the table of progress.
    relation: Option<Column<'a>>,
}

impl Records {
    /// # Errors
    /// [`Error::RecordsMissing`] if the table does not exist, or is not as the
    /// extension creates it.
    fn open(function: pg_sys::Oid, name: &'static CStr, mode: Mode) -> Result<Self, Error> {
        let table = catalog::relation(function, name)
            .and_then(|relation| Relation::open(relation, mode))
            .and_then(Table::from_relation)
            .ok_or_else(|| missing(name))?;
        Ok(Records { table, name })
    }

    fn missing(&self) -> Error {
        missing(self.name)
    }

    /// # Errors
    /// [`Error::RecordsMissing`].
    fn columns(&self) -> Result<KeyColumns<'_>, Error> {
        let column = |name: &CStr, type_oid| self.table.columns().find(name)?.of_type(type_oid);
        let relation = column(c"relation", pg_sys::REGCLASSOID);
        match (
            column(c"target", pg_sys::REGCLASSOID),
            column(c"column_name", pg_sys::NAMEOID),
        ) {
            (Some(target), Some(column)) if relation.is_some() == (self.name == PROGRESS) => {
                Ok(KeyColumns {
                    table: self.name,
                    target,
                    column,
                    relation,
                })
            }
            _ => Err(self.missing()),
        }
    }

    /// Deletes rows about tables that were dropped, whose OIDs may become those
    /// of others. One session does it at a time; another one skips it.
    fn forget_dropped(&self, columns: KeyColumns<'_>) {
        if !self.table.try_lock_against_others() {
            return;
        }
        let is_dropped = |relation| Class::of(relation).is_none();
        self.table.delete_where(|row| {
            let key = columns.key_of(row);
            is_dropped(key.target) || key.relation.is_some_and(is_dropped)
        });
    }

    /// A value of the table's row type as a row that can be written: what an
    /// executor would have checked is checked here.
    ///
    /// # Errors
    /// [`Error::RecordsMissing`] for a value of another type,
    /// [`Error::NullInRecord`] and [`Error::InvalidKind`].
    fn row_from(&self, value: Composite<'_>) -> Result<Row<'_>, Error> {
        self.checked(self.table.row_from(value))
    }

    /// # Errors
    /// As [`row_from`](Self::row_from).
    fn checked<'a>(&self, row: Result<Row<'a>, Unfit>) -> Result<Row<'a>, Error> {
        let row = row.map_err(|unfit| match unfit {
            Unfit::Type => self.missing(),
            Unfit::Null(column) => Error::NullInRecord {
                table: self.name.to_str().unwrap_or_default(),
                column: readable(column.to_bytes()).into_owned(),
            },
        })?;
        self.require_kind(row)?;
        Ok(row)
    }

    /// The tables of all keys of the migration that a row of progress is about; none for
    /// rows of the other tables.
    ///
    /// # Errors
    /// [`Error::RecordsMissing`], [`Error::TooManyKeys`] and [`Error::KeysDiffer`].
    fn key_targets(&self, row: Row<'_>) -> Result<Vec<pg_sys::Oid>, Error> {
        if self.name != PROGRESS {
            return Ok(Vec::new());
        }
        let columns = self.table.columns();
        let targets = columns
            .find(c"key_targets")
            .and_then(|column| column.of_type(pg_sys::REGCLASSARRAYOID))
            .ok_or_else(|| self.missing())?;
        let names = columns
            .find(c"key_column_names")
            .and_then(|column| column.of_type(pg_sys::NAMEARRAYOID))
            .ok_or_else(|| self.missing())?;
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

    fn require_kind(&self, row: Row<'_>) -> Result<(), Error> {
        if self.name != ORIGINS {
            return Ok(());
        }
        let column = self.table.columns().find(c"kind");
        let kind = column
            .and_then(|column| column.of_type(pg_sys::TEXTOID))
            .ok_or_else(|| self.missing())
            .map(|column| row.text(column).map_or(&[][..], Text::bytes))?;
        if KINDS.contains(&kind) {
            Ok(())
        } else {
            Err(Error::InvalidKind(shown(kind)))
        }
    }
}

impl KeyColumns<'_> {
    /// The key of a row, which has one.
    fn key_of(self, row: Row<'_>) -> Key {
        Key {
            table: self.table,
            target: row.oid(self.target),
            column: row.name(self.column).unwrap_or_default().to_owned(),
            relation: self.relation.map(|relation| row.oid(relation)),
        }
    }

    fn is_about(self, row: Row<'_>, key: &Key) -> bool {
        let has = self.key_of(row);
        has.target == key.target
            && has.column == key.column
            && (key.relation.is_none() || has.relation == key.relation)
    }
}

fn missing(table: &'static CStr) -> Error {
    Error::RecordsMissing(table.to_str().unwrap_or_default())
}
