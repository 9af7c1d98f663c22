//! Relations, their columns and rows, and writing rows without SQL.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr;

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, PgList, pg_sys, varlena};

use super::catalog::{self, Class};
use super::text::Text;

/// How a relation is locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `ACCESS SHARE`, until the relation is closed.
    Read,
    /// `ACCESS SHARE`, until the end of the transaction.
    Hold,
    /// `ROW EXCLUSIVE`, until the end of the transaction.
    Write,
}

impl Mode {
    fn lock(self) -> pg_sys::LOCKMODE {
        match self {
            Mode::Read | Mode::Hold => pg_sys::AccessShareLock as pg_sys::LOCKMODE,
            Mode::Write => pg_sys::RowExclusiveLock as pg_sys::LOCKMODE,
        }
    }
}

/// A relation that is open, and locked.
pub struct Relation {
    relation: pg_sys::Relation,
    mode: Mode,
}

impl Relation {
    /// Locks and opens a relation; `None` if there is none.
    pub fn open(relation: pg_sys::Oid, mode: Mode) -> Option<Self> {
        // SAFETY: returns null if the relation does not exist.
        let relation = unsafe { pg_sys::try_relation_open(relation, mode.lock()) };
        (!relation.is_null()).then_some(Relation { relation, mode })
    }

    fn row(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: an open relation has its `pg_class` row.
        unsafe { &*(*self.relation).rd_rel }
    }

    /// What `pg_class` has of it.
    pub fn class(&self) -> Class {
        Class::from_row(self.row())
    }

    /// Its columns.
    pub fn columns(&self) -> Columns<'_> {
        // SAFETY: an open relation has its columns.
        unsafe { Columns::new((*self.relation).rd_att) }
    }

    /// Whether it is a temporary relation of another session.
    pub fn is_temporary_elsewhere(&self) -> bool {
        // SAFETY: an open relation.
        self.row().relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP
            && unsafe { !(*self.relation).rd_islocaltemp }
    }

    pub(super) fn as_ptr(&self) -> pg_sys::Relation {
        self.relation
    }

    fn oid(&self) -> pg_sys::Oid {
        // SAFETY: an open relation.
        unsafe { (*self.relation).rd_id }
    }

    /// Whether each index has only columns, and no condition.
    fn has_plain_indexes(&self) -> bool {
        // SAFETY: an open relation, and the list of its indexes, which are
        // locked with it; a row of the cache is looked at until it is released.
        unsafe {
            let indexes =
                PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(self.relation));
            indexes.iter_oid().all(|index| {
                let row = pg_sys::SearchSysCache1(
                    pg_sys::SysCacheIdentifier::INDEXRELID as i32,
                    pg_sys::Datum::from(index),
                );
                if row.is_null() {
                    return false;
                }
                let is_null =
                    |number: u32| pg_sys::heap_attisnull(row, number as i32, ptr::null_mut());
                let is_plain = is_null(pg_sys::Anum_pg_index_indexprs)
                    && is_null(pg_sys::Anum_pg_index_indpred);
                pg_sys::ReleaseSysCache(row);
                is_plain
            })
        }
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        // If an error passes through, closing is left to the abort, as in C.
        if !std::thread::panicking() {
            let lock = match self.mode {
                Mode::Read => self.mode.lock(),
                Mode::Hold | Mode::Write => pg_sys::NoLock as pg_sys::LOCKMODE,
            };
            // SAFETY: opened by `open`, closed once.
            unsafe { pg_sys::relation_close(self.relation, lock) };
        }
    }
}

/// The columns of a relation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Columns<'a> {
    descriptor: pg_sys::TupleDesc,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> Columns<'a> {
    /// # Safety
    /// The descriptor is valid for `'a`.
    pub(super) unsafe fn new(descriptor: pg_sys::TupleDesc) -> Self {
        Columns {
            descriptor,
            lifetime: PhantomData,
        }
    }

    /// The column of this name.
    pub fn find(self, name: &CStr) -> Option<Column<'a>> {
        // SAFETY: a valid descriptor and name.
        unsafe {
            let number = pg_sys::SPI_fnumber(self.descriptor, name.as_ptr());
            (number > 0).then(|| Column {
                columns: self,
                number,
                type_oid: pg_sys::SPI_gettypeid(self.descriptor, number),
            })
        }
    }

    fn count(self) -> usize {
        // SAFETY: a valid descriptor.
        unsafe { (*self.descriptor).natts as usize }
    }

    fn attribute(self, index: usize) -> &'a pg_sys::FormData_pg_attribute {
        assert!(index < self.count());
        // SAFETY: a valid descriptor, with a column of that index.
        unsafe { &*attribute(self.descriptor, index) }
    }
}

/// # Safety
/// The descriptor is valid, and has a column of that index.
#[cfg(not(feature = "pg18"))]
unsafe fn attribute(
    columns: pg_sys::TupleDesc,
    index: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's.
    unsafe { (*columns).attrs.as_ptr().add(index) }
}

/// # Safety
/// The descriptor is valid, and has a column of that index.
#[cfg(feature = "pg18")]
unsafe fn attribute(
    columns: pg_sys::TupleDesc,
    index: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's.
    unsafe { pg_sys::TupleDescAttr(columns, index as i32) }
}

/// A column of a relation.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    columns: Columns<'a>,
    number: i32,
    type_oid: pg_sys::Oid,
}

impl Column<'_> {
    /// Its type.
    pub fn type_oid(self) -> pg_sys::Oid {
        self.type_oid
    }

    /// The column, if it is of this type.
    pub fn of_type(self, type_oid: pg_sys::Oid) -> Option<Self> {
        (self.type_oid == type_oid).then_some(self)
    }
}

/// A row of a relation.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    tuple: pg_sys::HeapTuple,
    columns: Columns<'a>,
}

impl<'a> Row<'a> {
    /// # Safety
    /// The tuple is a row with these columns, and valid for `'a`.
    pub(super) unsafe fn new(tuple: pg_sys::HeapTuple, columns: Columns<'a>) -> Self {
        Row { tuple, columns }
    }

    pub(super) fn as_ptr(self) -> pg_sys::HeapTuple {
        self.tuple
    }

    /// Its relation's columns.
    pub fn columns(self) -> Columns<'a> {
        self.columns
    }

    /// The value of a column; `None` for NULL.
    ///
    /// # Panics
    /// If it is a column of another relation.
    pub fn value(self, column: Column<'_>) -> Option<pg_sys::Datum> {
        assert!(
            column.columns == self.columns,
            "a column of another relation"
        );
        let mut is_null = false;
        // SAFETY: a row, and one of its columns.
        let value = unsafe {
            pg_sys::SPI_getbinval(
                self.tuple,
                self.columns.descriptor,
                column.number,
                &mut is_null,
            )
        };
        (!is_null).then_some(value)
    }

    /// The OID in a column; `InvalidOid` for NULL.
    pub fn oid(self, column: Column<'_>) -> pg_sys::Oid {
        self.value(column).map_or(pg_sys::InvalidOid, |value| {
            pg_sys::Oid::from(value.value() as u32)
        })
    }

    /// The name in a column of type `name`; `None` for NULL and other types.
    pub fn name(self, column: Column<'_>) -> Option<&'a CStr> {
        let value = self.value(column.of_type(pg_sys::NAMEOID)?)?;
        // SAFETY: a name ends with a zero byte, and lives as long as the row.
        Some(unsafe { CStr::from_ptr(value.cast_mut_ptr()) })
    }

    /// The text in a column of type `text`; `None` for NULL and other types.
    pub fn text(self, column: Column<'_>) -> Option<Text<'a>> {
        let value = self.value(column.of_type(pg_sys::TEXTOID)?)?;
        // SAFETY: a text, which lives as long as the row.
        Some(unsafe { Text::from_datum(value) })
    }

    /// A copy of the row with another value in a `bigint` column.
    ///
    /// # Panics
    /// If it is a column of another relation, or of another type.
    pub fn with_bigint(self, column: Column<'_>, value: Option<i64>) -> Row<'a> {
        assert!(
            column.columns == self.columns,
            "a column of another relation"
        );
        assert!(
            column.type_oid == pg_sys::INT8OID,
            "a column of another type"
        );
        // As pointers: what they point to is const from PostgreSQL 18 on.
        let mut number = column.number;
        let mut is_null = value.is_none();
        let mut datum = pg_sys::Datum::from(value.unwrap_or_default());
        // SAFETY: a row, one of its columns, and a value of the column's type.
        // The copy lives in the caller's memory.
        unsafe {
            let tuple = pg_sys::heap_modify_tuple_by_cols(
                self.tuple,
                self.columns.descriptor,
                1,
                &raw mut number,
                &raw mut datum,
                &raw mut is_null,
            );
            Row::new(tuple, self.columns)
        }
    }

    /// A copy of the row as a value of its relation's row type.
    pub fn to_composite(self) -> CompositeResult {
        // SAFETY: the row is copied, with what lies outside of it.
        CompositeResult(unsafe {
            pg_sys::heap_copy_tuple_as_datum(self.tuple, self.columns.descriptor)
        })
    }
}

/// A value of a row type as a result.
pub struct CompositeResult(pg_sys::Datum);

// SAFETY: a row, in the caller's memory.
unsafe impl BoxRet for CompositeResult {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: as above.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

super::sql_type!(result CompositeResult, "record");

/// A value of a row type as an argument.
#[derive(Clone, Copy)]
pub struct Composite<'a> {
    value: *mut pg_sys::varlena,
    lifetime: PhantomData<&'a ()>,
}

impl FromDatum for Composite<'_> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        (!is_null).then(|| Self {
            value: datum.cast_mut_ptr(),
            lifetime: PhantomData,
        })
    }
}

// SAFETY: reads a row, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for Composite<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("the function is STRICT")
    }
}

super::sql_type!(argument Composite<'_>, SqlMappingRef::As("record"));

/// Why a value cannot be written as a row of a table.
pub enum Unfit {
    /// It is of another row type, or has other columns.
    Type,
    /// It has NULL in this column.
    Null(std::ffi::CString),
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
                self.0.relation,
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
        assert!(row.columns == self.columns(), "a row of another table");
        let former = self.scan(|row| {
            // SAFETY: a row that was read has its place.
            is_former(row).then(|| unsafe { (*row.tuple).t_self })
        });
        // SAFETY: a row of this table's columns; the table is locked for
        // writing.
        unsafe {
            match former {
                Some(mut place) => {
                    pg_sys::CatalogTupleUpdate(self.0.relation, &mut place, row.tuple);
                }
                None => pg_sys::CatalogTupleInsert(self.0.relation, row.tuple),
            }
        }
        super::make_writes_visible();
    }

    /// Deletes the rows for which `is_meant` is true.
    ///
    /// # Panics
    /// If the table is open for reading only.
    pub fn delete_where(&self, is_meant: impl Fn(Row<'_>) -> bool) {
        self.require_writable();
        self.scan(|row| {
            if is_meant(row) {
                // SAFETY: a row that was read; the table is locked for writing.
                unsafe { pg_sys::CatalogTupleDelete(self.0.relation, &mut (*row.tuple).t_self) };
            }
            None::<()>
        });
        super::make_writes_visible();
    }

    fn require_writable(&self) {
        assert!(self.0.mode == Mode::Write, "open for reading only");
    }

    /// A value as a row of this table, in the caller's memory.
    ///
    /// # Errors
    /// [`Unfit`]: what an executor would have checked is checked here.
    pub fn row_from(&self, value: Composite<'_>) -> Result<Row<'_>, Unfit> {
        let (mut values, mut nulls) = self.values_of(value)?;
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

    /// A value's columns, which have the types of the table's.
    fn values_of(&self, value: Composite<'_>) -> Result<(Vec<pg_sys::Datum>, Vec<bool>), Unfit> {
        // SAFETY: a row has a header with its type, whose columns core knows.
        // There are as many values as columns, and both descriptions of them
        // are compared before the values are taken.
        unsafe {
            let header: pg_sys::HeapTupleHeader = pg_sys::pg_detoast_datum(value.value).cast();
            let kind = (*header).t_choice.t_datum;
            if kind.datum_typeid != self.row_type() {
                return Err(Unfit::Type);
            }
            let descriptor = pg_sys::lookup_rowtype_tupdesc(kind.datum_typeid, kind.datum_typmod);
            let given = Columns::new(descriptor);
            let count = self.columns().count();
            let is_same = given.count() == count
                && (0..count).all(|index| {
                    let given = given.attribute(index);
                    let wanted = self.columns().attribute(index);
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
                pg_sys::heap_deform_tuple(
                    &mut row,
                    descriptor,
                    values.as_mut_ptr(),
                    nulls.as_mut_ptr(),
                );
            }
            if (*descriptor).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(descriptor);
            }
            if is_same {
                Ok((values, nulls))
            } else {
                Err(Unfit::Type)
            }
        }
    }
}
