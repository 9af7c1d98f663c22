//! Tables of the extension, whose rows are read and written without SQL.

use std::ffi::{CStr, CString};
use std::ptr;

use pgrx::{FromDatum, pg_sys};

use super::catalog;
use super::composite::Composite;
use super::relation::{Columns, Mode, Relation, Row};
use super::transaction;

/// Why a value cannot be written as a row of a table.
pub enum Unfit {
    /// It is of another row type, or has other columns.
    Type,
    /// It has NULL in this column.
    Null(CString),
}

/// A value of a column.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// A `text`, in the database's encoding.
    Text(&'a [u8]),
    /// A `timestamp with time zone`.
    Timestamptz(pg_sys::TimestampTz),
}

impl Value<'_> {
    fn type_oid(self) -> pg_sys::Oid {
        match self {
            Value::Text(_) => pg_sys::TEXTOID,
            Value::Timestamptz(_) => pg_sys::TIMESTAMPTZOID,
        }
    }

    /// In the caller's memory.
    fn datum(self) -> pg_sys::Datum {
        match self {
            // SAFETY: a text of that length, which is copied.
            Value::Text(bytes) => pg_sys::Datum::from(unsafe {
                pg_sys::cstring_to_text_with_len(bytes.as_ptr().cast(), bytes.len() as i32)
            }),
            Value::Timestamptz(at) => pg_sys::Datum::from(at),
        }
    }
}

/// Rows of a table, copied to the memory of the transaction.
pub struct CopiedRows {
    /// The addresses of values of the table's row type.
    rows: Vec<usize>,
    /// The transaction whose memory it is.
    transaction: u64,
}

/// The transaction, by a number that no other one has.
fn current_transaction() -> u64 {
    // SAFETY: called within a transaction that writes.
    unsafe { pg_sys::GetTopFullTransactionId() }.value
}

/// An ordinary table of an extension, whose rows are read and written without
/// SQL: no trigger, grant or row security plays a part.
pub struct Table(Relation);

impl Table {
    /// The relation as a table; `None` if it is a system table, no heap, or has
    /// indexes on more than columns.
    pub fn from_relation(relation: Relation) -> Option<Self> {
        let row = relation.row();
        let is_ordinary = row.relkind as u8 == pg_sys::RELKIND_RELATION
            && row.relam == pg_sys::HEAP_TABLE_AM_OID
            && relation.oid().to_u32() >= pg_sys::FirstNormalObjectId;
        (is_ordinary && relation.has_plain_indexes()).then_some(Table(relation))
    }

    /// Its columns.
    pub fn columns(&self) -> Columns<'_> {
        self.0.columns()
    }

    /// The OID of its row type.
    pub fn row_type(&self) -> pg_sys::Oid {
        self.0.row().reltype
    }

    /// Locks it as SHARE UPDATE EXCLUSIVE does, if that needs no wait, until the
    /// end of the transaction.
    pub fn try_lock_against_others(&self) -> bool {
        // SAFETY: takes a lock.
        unsafe {
            pg_sys::ConditionalLockRelationOid(
                self.0.oid(),
                pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE,
            )
        }
    }

    /// Calls for each row until `visit` returns something.
    pub fn scan<T>(&self, mut visit: impl FnMut(Row<'_>) -> Option<T>) -> Option<T> {
        // SAFETY: begun and ended once; an error leaves it to the abort. A row
        // is valid until the next one is read.
        unsafe {
            let scan = pg_sys::systable_beginscan(
                self.0.as_ptr(),
                pg_sys::InvalidOid,
                false,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
            );
            let mut found = None;
            while found.is_none() {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                found = visit(Row::new(tuple, self.columns()));
            }
            pg_sys::systable_endscan(scan);
            found
        }
    }

    /// Writes a row in the place of the first one for which `is_former` is true,
    /// if any.
    ///
    /// # Panics
    /// If it is a row of another table, or the table is open for reading only.
    pub fn write(&self, row: Row<'_>, is_former: impl Fn(Row<'_>) -> bool) {
        self.require_writable();
        assert!(row.columns() == self.columns(), "a row of another table");
        let former = self.scan(|row| {
            // SAFETY: a row that was read has its place.
            is_former(row).then(|| unsafe { (*row.as_ptr()).t_self })
        });
        // SAFETY: a row of this table's columns; the table is locked for
        // writing.
        unsafe {
            match former {
                Some(mut place) => {
                    pg_sys::CatalogTupleUpdate(self.0.as_ptr(), &mut place, row.as_ptr());
                }
                None => pg_sys::CatalogTupleInsert(self.0.as_ptr(), row.as_ptr()),
            }
        }
        transaction::make_writes_visible();
    }

    /// Writes a row. The transaction's next command sees it.
    ///
    /// # Panics
    /// If it is a row of another table, or the table is open for reading only.
    pub fn insert(&self, row: Row<'_>) {
        self.require_writable();
        assert!(row.columns() == self.columns(), "a row of another table");
        // SAFETY: a row of this table's columns; the table is locked for writing.
        unsafe { pg_sys::CatalogTupleInsert(self.0.as_ptr(), row.as_ptr()) };
    }

    /// Deletes all rows. The transaction's next command sees none.
    ///
    /// # Panics
    /// If the table is open for reading only.
    pub fn clear(&self) {
        self.delete_unseen(|_| true);
    }

    /// Deletes the rows for which `is_meant` is true.
    ///
    /// # Panics
    /// If the table is open for reading only.
    pub fn delete_where(&self, is_meant: impl Fn(Row<'_>) -> bool) {
        self.delete_unseen(is_meant);
        transaction::make_writes_visible();
    }

    fn delete_unseen(&self, is_meant: impl Fn(Row<'_>) -> bool) {
        self.require_writable();
        self.scan(|row| {
            if is_meant(row) {
                // SAFETY: a row that was read; the table is locked for writing.
                unsafe { pg_sys::CatalogTupleDelete(self.0.as_ptr(), &mut (*row.as_ptr()).t_self) };
            }
            None::<()>
        });
    }

    /// Copies all rows, with the values that are stored outside of them.
    pub fn copy_rows(&self) -> CopiedRows {
        let transaction = current_transaction();
        let mut rows = Vec::new();
        self.scan(|row| {
            // SAFETY: the memory of the transaction exists as long as it. After an error,
            // its end restores the context.
            unsafe {
                let former = pg_sys::MemoryContextSwitchTo(pg_sys::TopTransactionContext);
                rows.push(row.to_composite().0.value());
                pg_sys::MemoryContextSwitchTo(former);
            }
            None::<()>
        });
        CopiedRows { rows, transaction }
    }

    /// Writes copies of its rows, if this transaction has made them.
    ///
    /// # Panics
    /// If the table is open for reading only.
    pub fn write_copies(&self, copies: &CopiedRows) {
        self.require_writable();
        if copies.transaction != current_transaction() {
            return;
        }
        for address in &copies.rows {
            // SAFETY: a value of a row type, in memory of this transaction.
            let value = unsafe {
                let datum = pg_sys::Datum::from(*address);
                Composite::from_polymorphic_datum(datum, false, pg_sys::InvalidOid)
            };
            // Only what has the table's row type.
            if let Some(Ok(row)) = value.map(|value| self.row_from(value)) {
                self.insert(row);
            }
        }
        transaction::make_writes_visible();
    }

    fn require_writable(&self) {
        let is_writable = matches!(self.0.mode, Mode::Write | Mode::WriteAlone);
        assert!(is_writable, "open for reading only");
    }

    /// A value as a row of this table, in the caller's memory.
    ///
    /// # Errors
    /// [`Unfit`]: what an executor would have checked is checked here.
    pub fn row_from(&self, value: Composite<'_>) -> Result<Row<'_>, Unfit> {
        let (values, nulls) = value
            .values(self.row_type(), self.columns())
            .ok_or(Unfit::Type)?;
        self.row_of(values, nulls)
    }

    /// A row of this table with the values that a row of another one has in
    /// columns of the same name and type, and with this relation in the `regclass`
    /// column `column`. Other columns are NULL.
    ///
    /// # Errors
    /// [`Unfit::Null`].
    pub fn row_like(
        &self,
        other: Row<'_>,
        column: &CStr,
        relation: pg_sys::Oid,
    ) -> Result<Row<'_>, Unfit> {
        let values = (0..self.columns().count()).map(|index| {
            let own = self.columns().attribute(index);
            let name = catalog::name(&own.attname);
            let value = if own.attisdropped {
                None
            } else if name == column && own.atttypid == pg_sys::REGCLASSOID {
                Some(pg_sys::Datum::from(relation))
            } else {
                let same = other.columns().find(name);
                same.and_then(|same| same.of_type(own.atttypid))
                    .and_then(|same| other.value(same))
            };
            (value.unwrap_or(pg_sys::Datum::null()), value.is_none())
        });
        let (values, nulls) = values.unzip();
        self.row_of(values, nulls)
    }

    /// A row of this table with these values in columns of these names, in the caller's
    /// memory. Other columns are NULL.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn row_with(&self, given: &[(&CStr, Value<'_>)]) -> Result<Row<'_>, Unfit> {
        let columns = self.columns();
        let mut values = vec![pg_sys::Datum::null(); columns.count()];
        let mut nulls = vec![true; columns.count()];
        for &(name, value) in given {
            let column = columns
                .find(name)
                .and_then(|column| column.of_type(value.type_oid()))
                .ok_or(Unfit::Type)?;
            let index = column.number as usize - 1;
            values[index] = value.datum();
            nulls[index] = false;
        }
        self.row_of(values, nulls)
    }

    /// As many values as columns, of the columns' types.
    fn row_of(
        &self,
        mut values: Vec<pg_sys::Datum>,
        mut nulls: Vec<bool>,
    ) -> Result<Row<'_>, Unfit> {
        for (index, is_null) in nulls.iter_mut().enumerate() {
            let column = self.columns().attribute(index);
            if column.attisdropped {
                *is_null = true;
            } else if *is_null && column.attnotnull {
                return Err(Unfit::Null(catalog::name(&column.attname).to_owned()));
            }
        }
        let columns = self.columns();
        // SAFETY: as many values as columns, of the columns' types.
        unsafe {
            let tuple = pg_sys::heap_form_tuple(
                columns.descriptor,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            Ok(Row::new(tuple, columns))
        }
    }
}
