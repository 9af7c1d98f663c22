//! The tables that keep what a migration has to remember: `snowflake_origins`,
//! what a column was before, and `snowflake_progress`, how far rows are copied.
//!
//! They belong to the extension's owner, a superuser, and are written here
//! without SQL: no trigger, operator, name, grant or row security of anybody
//! plays a part. The caller must have the rights of the owner of the table that
//! a row is about.
//!
//! Locking: a table of the extension is found as the mark is, in the schema of
//! the function that was called, and has to have the row type that function was
//! declared with. Who writes about a table has a lock on its number as an
//! object, until the end of the transaction: a lock that core takes on no
//! relation, and that conflicts with nothing but another writer. Rows are few,
//! and found by reading all of them in a snapshot of that moment.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::varlena;

use super::{Answer, Arguments, Class, hold_owned, or_report, text_bytes};
use crate::call::called_function;
use crate::catalog;
use crate::encoding::readable;
use crate::error::Error;

const ORIGINS: &CStr = c"origins";
const PROGRESS: &CStr = c"progress";

/// What `origins.kind` may be; its CHECK says the same.
const KINDS: [&[u8]; 5] = [
    b"serial",
    b"identity always",
    b"identity by default",
    b"default",
    b"none",
];

const READ: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
const WRITE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;

#[pg_extern(requires = ["migration_records"], sql = r#"
CREATE FUNCTION snowflake_internal.migration_origin(target regclass, column_name name) RETURNS snowflake_internal.origins
    STRICT VOLATILE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_origin(target regclass, column_name name) IS
    'The row of snowflake_internal.origins of a column, for the owner of its table; otherwise NULL';
"#)]
fn snowflake_migration_origin(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    // SAFETY: the frame of this call, whose arguments are as its SQL says.
    let key = unsafe { Key::from_arguments(&Arguments::of(fcinfo), false) };
    let may = Class::of(key.target).and_then(Class::require_owner);
    if may.is_err() {
        return Answer(None);
    }
    let function = called_function(fcinfo);
    or_report(Records::open(function, ORIGINS, READ).and_then(|records| {
        // SAFETY: looks the function up that was called.
        records.require_row_type(unsafe { pg_sys::get_func_rettype(function) })?;
        Ok(Answer(records.read(&key)))
    }))
}

#[pg_extern(requires = ["migration_records"], sql = r#"
CREATE FUNCTION snowflake_internal.migration_keep_origin(origin snowflake_internal.origins) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_keep_origin(origin snowflake_internal.origins) IS
    'Used by snowflake_internal.migration_remember: writes a row of snowflake_internal.origins, for the owner of its table';
"#)]
fn snowflake_migration_keep_origin(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    or_report(keep(fcinfo, ORIGINS));
    Answer(Some(pg_sys::Datum::null()))
}

#[pg_extern(requires = ["migration_records"], sql = r#"
CREATE FUNCTION snowflake_internal.migration_progress(target regclass, column_name name, relation regclass) RETURNS snowflake_internal.progress
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_progress(target regclass, column_name name, relation regclass) IS
    'Used by snowflake_migrate_backfill: the position of the next batch';
"#)]
fn snowflake_migration_progress(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    // SAFETY: the frame of this call, whose arguments are as its SQL says.
    let key = unsafe { Key::from_arguments(&Arguments::of(fcinfo), true) };
    let function = called_function(fcinfo);
    or_report(key.lock().and_then(|()| {
        let records = Records::open(function, PROGRESS, READ)?;
        // SAFETY: looks the function up that was called.
        records.require_row_type(unsafe { pg_sys::get_func_rettype(function) })?;
        Ok(Answer(records.read(&key)))
    }))
}

#[pg_extern(requires = ["migration_records"], sql = r#"
CREATE FUNCTION snowflake_internal.migration_keep_progress(step snowflake_internal.progress) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_keep_progress(step snowflake_internal.progress) IS
    'Used by snowflake_migrate_backfill: writes a row of snowflake_internal.progress, for the owner of its tables';
"#)]
fn snowflake_migration_keep_progress(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    or_report(keep(fcinfo, PROGRESS));
    Answer(Some(pg_sys::Datum::null()))
}

#[pg_extern(requires = ["migration_records"], sql = r#"
CREATE FUNCTION snowflake_internal.migration_end(target regclass, column_name name) RETURNS void
    STRICT VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_end(target regclass, column_name name) IS
    'Used by snowflake_migration_plan: deletes the progress of a backfill';
"#)]
fn snowflake_migration_end(fcinfo: pg_sys::FunctionCallInfo) -> Answer {
    // SAFETY: the frame of this call, whose arguments are as its SQL says.
    let key = unsafe { Key::from_arguments(&Arguments::of(fcinfo), false) };
    or_report(key.lock().and_then(|()| {
        let records = Records::open(called_function(fcinfo), PROGRESS, WRITE)?;
        records.delete_where(|row| records.is_about(row, &key));
        Ok(())
    }));
    Answer(Some(pg_sys::Datum::null()))
}

/// Writes the row that is the only argument, in the place of one with its key.
fn keep(fcinfo: pg_sys::FunctionCallInfo, table: &'static CStr) -> Result<(), Error> {
    let records = Records::open(called_function(fcinfo), table, WRITE)?;
    // SAFETY: the frame of this call, whose argument is a row.
    let row = unsafe {
        let Some(datum) = Arguments::of(fcinfo).datum(0) else {
            return Ok(());
        };
        records.row_from(datum)?
    };
    let key = records.key_of(row);
    key.lock()?;
    records.write(row, &key);
    records.forget_what_is_gone();
    Ok(())
}

/// Which row.
struct Key<'a> {
    target: pg_sys::Oid,
    column: &'a CStr,
    /// In the table of progress; `None` for all of the target.
    relation: Option<pg_sys::Oid>,
}

impl<'a> Key<'a> {
    /// # Safety
    /// The arguments are a relation, a name and, for progress, a relation.
    unsafe fn from_arguments(arguments: &Arguments<'a>, has_relation: bool) -> Self {
        Key {
            target: arguments.relation(0),
            // SAFETY: the caller's.
            column: unsafe { arguments.name(1) }.unwrap_or_default(),
            relation: has_relation.then(|| arguments.relation(2)),
        }
    }

    /// Looks at the caller's rights, and then waits for its turn.
    ///
    /// # Errors
    /// [`Error::NoRelation`] and [`Error::NotOwner`].
    fn lock(&self) -> Result<(), Error> {
        hold_owned(self.target)?;
        if let Some(relation) = self.relation {
            hold_owned(relation)?;
        }
        // SAFETY: held until the end of the transaction.
        unsafe {
            pg_sys::LockDatabaseObject(
                pg_sys::RelationRelationId,
                self.target,
                0,
                pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE,
            );
        }
        // While this waited the table may have been given away.
        Class::of(self.target)?.require_owner()?;
        Ok(())
    }
}

/// One of the two tables, opened.
struct Records {
    table: pg_sys::Relation,
    name: &'static CStr,
    mode: pg_sys::LOCKMODE,
    target: i32,
    column: i32,
    /// 0 in the table of origins.
    relation: i32,
}

impl Records {
    /// # Errors
    /// [`Error::RecordsMissing`] where the table is not there, or not as the
    /// extension has made it.
    fn open(
        function: pg_sys::Oid,
        name: &'static CStr,
        mode: pg_sys::LOCKMODE,
    ) -> Result<Self, Error> {
        let missing = || Error::RecordsMissing(name.to_str().unwrap_or_default());
        let oid = catalog::relation(function, name).ok_or_else(missing)?;
        // SAFETY: returns null where the relation has been dropped.
        let table = unsafe { pg_sys::try_relation_open(oid, mode) };
        if table.is_null() {
            return Err(missing());
        }
        let number = |column: &CStr, of: pg_sys::Oid| {
            // SAFETY: an open relation has its columns.
            unsafe {
                let columns = (*table).rd_att;
                let number = pg_sys::SPI_fnumber(columns, column.as_ptr());
                (number > 0 && pg_sys::SPI_gettypeid(columns, number) == of).then_some(number)
            }
        };
        let records = Records {
            table,
            name,
            mode,
            target: number(c"target", pg_sys::REGCLASSOID).ok_or_else(missing)?,
            column: number(c"column_name", pg_sys::NAMEOID).ok_or_else(missing)?,
            relation: number(c"relation", pg_sys::REGCLASSOID).unwrap_or_default(),
        };
        let class = records.class();
        let is_heap = class.relkind as u8 == pg_sys::RELKIND_RELATION
            && class.relam == pg_sys::HEAP_TABLE_AM_OID;
        if !is_heap || (name == PROGRESS) != (records.relation > 0) {
            return Err(missing());
        }
        Ok(records)
    }

    fn class(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: an open relation has its `pg_class` row.
        unsafe { &*(*self.table).rd_rel }
    }

    fn columns(&self) -> pg_sys::TupleDesc {
        // SAFETY: an open relation has its columns.
        unsafe { (*self.table).rd_att }
    }

    /// # Errors
    /// [`Error::RecordsMissing`]: the function was declared with another table.
    fn require_row_type(&self, declared: pg_sys::Oid) -> Result<(), Error> {
        if declared == self.class().reltype {
            Ok(())
        } else {
            Err(Error::RecordsMissing(
                self.name.to_str().unwrap_or_default(),
            ))
        }
    }

    fn value(&self, row: pg_sys::HeapTuple, number: i32) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: a row of this table, and one of its columns.
        let value = unsafe { pg_sys::SPI_getbinval(row, self.columns(), number, &mut is_null) };
        (!is_null).then_some(value)
    }

    fn oid(&self, row: pg_sys::HeapTuple, number: i32) -> pg_sys::Oid {
        self.value(row, number).map_or(pg_sys::InvalidOid, |value| {
            pg_sys::Oid::from(value.value() as u32)
        })
    }

    /// The key of a row, which has one.
    fn key_of(&self, row: pg_sys::HeapTuple) -> Key<'_> {
        Key {
            target: self.oid(row, self.target),
            // SAFETY: the column is a name, which ends with a zero byte; the row
            // lives as long as the call.
            column: self
                .value(row, self.column)
                .map(|value| unsafe { CStr::from_ptr(value.cast_mut_ptr()) })
                .unwrap_or_default(),
            relation: (self.relation > 0).then(|| self.oid(row, self.relation)),
        }
    }

    fn is_about(&self, row: pg_sys::HeapTuple, key: &Key<'_>) -> bool {
        let has = self.key_of(row);
        has.target == key.target
            && has.column == key.column
            && (key.relation.is_none() || has.relation == key.relation)
    }

    /// Calls for each row until `visit` returns something.
    fn scan<T>(&self, mut visit: impl FnMut(pg_sys::HeapTuple) -> Option<T>) -> Option<T> {
        // SAFETY: begun and ended once; an error leaves it to the abort. The
        // rows are valid until the next one.
        unsafe {
            let scan = pg_sys::systable_beginscan(
                self.table,
                pg_sys::InvalidOid,
                false,
                std::ptr::null_mut(),
                0,
                std::ptr::null_mut(),
            );
            let mut found = None;
            while found.is_none() {
                let row = pg_sys::systable_getnext(scan);
                if row.is_null() {
                    break;
                }
                found = visit(row);
            }
            pg_sys::systable_endscan(scan);
            found
        }
    }

    /// The row as a value of the table's row type.
    fn read(&self, key: &Key<'_>) -> Option<pg_sys::Datum> {
        self.scan(|row| {
            // SAFETY: the row is copied, with what lies outside of it.
            self.is_about(row, key)
                .then(|| unsafe { pg_sys::heap_copy_tuple_as_datum(row, self.columns()) })
        })
    }

    fn write(&self, row: pg_sys::HeapTuple, key: &Key<'_>) {
        let former = self.scan(|row| {
            // SAFETY: a row that was read has its place.
            self.is_about(row, key).then(|| unsafe { (*row).t_self })
        });
        // SAFETY: a row of this table's columns; the table is locked for
        // writing, and rows with this key are written in turns.
        unsafe {
            match former {
                Some(mut place) => pg_sys::CatalogTupleUpdate(self.table, &mut place, row),
                None => pg_sys::CatalogTupleInsert(self.table, row),
            }
            pg_sys::CommandCounterIncrement();
        }
    }

    fn delete_where(&self, is_meant: impl Fn(pg_sys::HeapTuple) -> bool) {
        self.scan(|row| {
            if is_meant(row) {
                // SAFETY: a row that was read; the table is locked for writing.
                unsafe { pg_sys::CatalogTupleDelete(self.table, &mut (*row).t_self) };
            }
            None::<()>
        });
        // SAFETY: in a transaction.
        unsafe { pg_sys::CommandCounterIncrement() };
    }

    /// Deletes rows about tables that were dropped, whose numbers may become
    /// others'. One session at a time; another one leaves it at that.
    fn forget_what_is_gone(&self) {
        // SAFETY: held until the end of the transaction.
        let is_mine = unsafe {
            pg_sys::ConditionalLockRelationOid(
                (*self.table).rd_id,
                pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE,
            )
        };
        if !is_mine {
            return;
        }
        let is_gone = |relation| matches!(Class::of(relation), Err(Error::NoRelation(_)));
        self.delete_where(|row| {
            let key = self.key_of(row);
            is_gone(key.target) || key.relation.is_some_and(is_gone)
        });
    }

    /// A value of the table's row type as a row that can be written: what an
    /// executor would have seen to is seen to here.
    ///
    /// # Errors
    /// [`Error::RecordsMissing`] for a value of another type,
    /// [`Error::NullInRecord`] and [`Error::InvalidKind`].
    ///
    /// # Safety
    /// The datum is a row.
    unsafe fn row_from(&self, datum: pg_sys::Datum) -> Result<pg_sys::HeapTuple, Error> {
        // SAFETY: a row has a header with its type, whose columns core knows;
        // there are as many values as columns, and both descriptions of them
        // are compared before the values are put into a row of the table.
        unsafe {
            let header: pg_sys::HeapTupleHeader =
                pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
            let kind = (*header).t_choice.t_datum;
            self.require_row_type(kind.datum_typeid)?;
            let given = pg_sys::lookup_rowtype_tupdesc(kind.datum_typeid, kind.datum_typmod);
            let wanted = self.columns();
            let count = (*wanted).natts as usize;
            let is_same = (*given).natts == (*wanted).natts
                && (0..count).all(|index| {
                    let (given, wanted) = (&*attribute(given, index), &*attribute(wanted, index));
                    given.atttypid == wanted.atttypid && given.attisdropped == wanted.attisdropped
                });
            let mut values = vec![pg_sys::Datum::null(); count];
            let mut nulls = vec![true; count];
            if is_same {
                let mut row = pg_sys::HeapTupleData {
                    t_len: varlena::varsize_any(header.cast()) as u32,
                    t_data: header,
                    ..Default::default()
                };
                pg_sys::heap_deform_tuple(&mut row, given, values.as_mut_ptr(), nulls.as_mut_ptr());
            }
            if (*given).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(given);
            }
            if !is_same {
                self.require_row_type(pg_sys::InvalidOid)?;
            }
            for (index, is_null) in nulls.iter_mut().enumerate() {
                let column = &*attribute(wanted, index);
                if column.attisdropped {
                    *is_null = true;
                } else if *is_null && column.attnotnull {
                    let column = CStr::from_ptr(column.attname.data.as_ptr());
                    return Err(Error::NullInRecord {
                        table: self.name.to_str().unwrap_or_default(),
                        column: readable(column.to_bytes()).into_owned(),
                    });
                }
            }
            let row = pg_sys::heap_form_tuple(wanted, values.as_mut_ptr(), nulls.as_mut_ptr());
            self.require_kind(row)?;
            Ok(row)
        }
    }

    fn require_kind(&self, row: pg_sys::HeapTuple) -> Result<(), Error> {
        if self.name != ORIGINS {
            return Ok(());
        }
        // SAFETY: a name with a zero byte; the column is looked at only where it
        // is a text.
        let kind = unsafe {
            let number = pg_sys::SPI_fnumber(self.columns(), c"kind".as_ptr());
            if number <= 0 || pg_sys::SPI_gettypeid(self.columns(), number) != pg_sys::TEXTOID {
                return Err(Error::RecordsMissing("origins"));
            }
            self.value(row, number)
                .map_or(&[][..], |value| text_bytes(value))
        };
        if KINDS.contains(&kind) {
            Ok(())
        } else {
            Err(Error::InvalidKind(readable(kind).into_owned()))
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // An error that passes through leaves it to the abort, as in C. Who has
        // written keeps the lock.
        if !std::thread::panicking() {
            let mode = if self.mode == READ {
                READ
            } else {
                pg_sys::NoLock as pg_sys::LOCKMODE
            };
            // SAFETY: opened by `open`, closed once.
            unsafe { pg_sys::relation_close(self.table, mode) };
        }
    }
}

/// # Safety
/// The description has a column of that index.
#[cfg(not(feature = "pg18"))]
unsafe fn attribute(
    columns: pg_sys::TupleDesc,
    index: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's.
    unsafe { (*columns).attrs.as_ptr().add(index) }
}

/// # Safety
/// The description has a column of that index.
#[cfg(feature = "pg18")]
unsafe fn attribute(
    columns: pg_sys::TupleDesc,
    index: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's.
    unsafe { pg_sys::TupleDescAttr(columns, index as i32) }
}
