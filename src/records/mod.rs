//! The tables that keep the records of migrations ([`crate::migrate`]).
//!
//! They belong to the extension's owner, a superuser, and are written here
//! without SQL. No trigger, operator, name, grant or row security has any effect.
//! The caller must have the privileges of the owner of the table that a row is about,
//! and of each table that it names as part of the migration.
//!
//! Locking: a table of an extension is found as the mark is ([`crate::catalog`]), and has
//! to have the row type that the function was declared with that reads it. A session that writes about a table holds a lock on the table's
//! OID as an object, until the end of the transaction. PostgreSQL takes such a lock
//! on no relation, so it conflicts with other writers only. Rows are few, and are
//! found by reading all of them in a current snapshot.

mod guard;

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use crate::catalog::Home;
use crate::encoding::readable;
use crate::error::Error;
use crate::owner::{class_of, hold_owned, require_owner};
use crate::pg::catalog::Class;
use crate::pg::composite::{Composite, CompositeResult};
use crate::pg::table::{Table, Unfit};
use crate::pg::{self, Column, Mode, Name, Relation, Row};

/// A table of records.
#[derive(Debug)]
pub struct Kind {
    /// The extension that it belongs to.
    pub home: Home,
    /// Its name.
    pub name: &'static CStr,
    /// Whether a row is about one of the tables of a migration, besides the target.
    pub has_relation: bool,
    /// Distinguishes the locks of its writers.
    pub lock: u16,
    /// What is checked of a row besides its key, as an executor would check it, and the
    /// other tables that it names.
    pub check: fn(&Records, Row<'_>) -> Result<Vec<pg_sys::Oid>, Error>,
}

/// The row with this key, as a value of the row type that the function returns.
pub fn read(
    function: pg_sys::Oid,
    kind: &'static Kind,
    key: &Key,
) -> Result<Option<CompositeResult>, Error> {
    let records = Records::open(kind, Mode::Read)?;
    if pg::catalog::result_type_of(function) != records.table.row_type() {
        return Err(records.missing());
    }
    let columns = records.columns()?;
    let found = |row: Row<'_>| columns.is_about(row, key).then(|| row.to_composite());
    Ok(records.table.scan(found))
}

/// The rows about tables of which `may_see` is true, as [`read`] returns them.
pub fn read_all(
    function: pg_sys::Oid,
    kind: &'static Kind,
    may_see: impl Fn(pg_sys::Oid) -> bool,
) -> Result<Vec<CompositeResult>, Error> {
    let records = Records::open(kind, Mode::Read)?;
    if pg::catalog::result_type_of(function) != records.table.row_type() {
        return Err(records.missing());
    }
    let columns = records.columns()?;
    let mut rows = Vec::new();
    records.table.scan(|row| {
        if may_see(columns.key_of(row).target) {
            rows.push(row.to_composite());
        }
        None::<()>
    });
    Ok(rows)
}

/// Writes a row in the place of the one with its key, if any.
pub fn keep(kind: &'static Kind, value: Composite<'_>) -> Result<(), Error> {
    let records = Records::open(kind, Mode::Write)?;
    let columns = records.columns()?;
    let row = records.row_from(value)?;
    let key = columns.key_of(row);
    let other_targets = (kind.check)(&records, row)?;
    key.lock()?;
    for target in other_targets {
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

/// What has become of a restored row.
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

/// Writes a row with the values of a row of another table, whose
/// columns have the same names; `schema` and `name` are the target's.
///
/// The target is not locked: restoring its rows may take hours, under a lock that
/// this would wait for. Its owner may change in the meantime, as after this.
///
/// # Errors
/// [`Error::RecordsMissing`] and [`Error::NullInRecord`], and those of [`Kind::check`].
pub fn restore(
    kind: &'static Kind,
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
    let records = Records::open(kind, Mode::Write)?;
    let columns = records.columns()?;
    let row = records.checked(records.table.row_like(from, c"target", target))?;
    (kind.check)(&records, row)?;
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
pub struct Key {
    kind: &'static Kind,
    target: pg_sys::Oid,
    column: CString,
    /// If the table has it; `None` for all rows of the target.
    relation: Option<pg_sys::Oid>,
}

impl Key {
    /// The key of a row about a column.
    pub fn new(
        kind: &'static Kind,
        target: pg_sys::Oid,
        column: Name<'_>,
        relation: Option<pg_sys::Oid>,
    ) -> Self {
        Key {
            kind,
            target,
            column: column.as_c_str().to_owned(),
            relation,
        }
    }

    /// Checks the caller's privileges, and then locks the key.
    ///
    /// # Errors
    /// [`Error::NoRelation`] and [`Error::NotOwner`].
    pub fn lock(&self) -> Result<(), Error> {
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
            self.kind.lock,
            pg_sys::ShareUpdateExclusiveLock,
        );
    }
}

/// One of the tables, opened.
pub struct Records {
    /// The table.
    pub table: Table,
    kind: &'static Kind,
}

/// The columns of a table's key.
#[derive(Clone, Copy)]
pub struct KeyColumns<'a> {
    kind: &'static Kind,
    target: Column<'a>,
    column: Column<'a>,
    /// Only in some tables.
    relation: Option<Column<'a>>,
}

impl Records {
    /// # Errors
    /// [`Error::RecordsMissing`] if the table does not exist, or is not as the
    /// extension creates it.
    pub fn open(kind: &'static Kind, mode: Mode) -> Result<Self, Error> {
        if mode != Mode::Read {
            pg::transaction::require_writable(c"INSERT");
        }
        let table = kind
            .home
            .table(kind.name)
            .and_then(|relation| Relation::open(relation, mode))
            .and_then(Table::from_relation)
            .ok_or_else(|| missing(kind))?;
        Ok(Records { table, kind })
    }

    /// The error of a table that is not as the extension creates it.
    pub fn missing(&self) -> Error {
        missing(self.kind)
    }

    /// # Errors
    /// [`Error::RecordsMissing`].
    pub fn columns(&self) -> Result<KeyColumns<'_>, Error> {
        let column = |name: &CStr, type_oid| self.table.columns().find(name)?.of_type(type_oid);
        let relation = column(c"relation", pg_sys::REGCLASSOID);
        match (
            column(c"target", pg_sys::REGCLASSOID),
            column(c"column_name", pg_sys::NAMEOID),
        ) {
            (Some(target), Some(column)) if relation.is_some() == self.kind.has_relation => {
                Ok(KeyColumns {
                    kind: self.kind,
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
    /// [`Error::RecordsMissing`] for a value of another type, and [`Error::NullInRecord`].
    fn row_from(&self, value: Composite<'_>) -> Result<Row<'_>, Error> {
        self.checked(self.table.row_from(value))
    }

    /// # Errors
    /// As [`row_from`](Self::row_from).
    fn checked<'a>(&self, row: Result<Row<'a>, Unfit>) -> Result<Row<'a>, Error> {
        let row = row.map_err(|unfit| match unfit {
            Unfit::Type => self.missing(),
            Unfit::Null(column) => Error::NullInRecord {
                table: self.kind.name.to_str().unwrap_or_default(),
                column: readable(column.to_bytes()).into_owned(),
            },
        })?;
        Ok(row)
    }
}

impl KeyColumns<'_> {
    /// The key of a row, which has one.
    pub fn key_of(self, row: Row<'_>) -> Key {
        Key {
            kind: self.kind,
            target: row.oid(self.target),
            column: row.name(self.column).unwrap_or_default().to_owned(),
            relation: self.relation.map(|relation| row.oid(relation)),
        }
    }

    /// Whether a row has this key.
    pub fn is_about(self, row: Row<'_>, key: &Key) -> bool {
        let has = self.key_of(row);
        has.target == key.target
            && has.column == key.column
            && (key.relation.is_none() || has.relation == key.relation)
    }
}

fn missing(kind: &Kind) -> Error {
    Error::RecordsMissing(kind.name.to_str().unwrap_or_default())
}
