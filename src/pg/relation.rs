//! Relations, their columns and their rows.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr;

use pgrx::{PgList, pg_sys};

use super::catalog::Class;
use super::composite::CompositeResult;
use super::lock;
use super::text::Text;

/// How a relation is locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `ACCESS SHARE`, until the relation is closed.
    Read,
    /// `ACCESS SHARE`, until the end of the transaction.
    Hold,
    /// `ROW EXCLUSIVE`, until the relation is closed: as `nextval()` locks a sequence.
    Advance,
    /// `ROW EXCLUSIVE`, until the end of the transaction.
    Write,
    /// `SHARE ROW EXCLUSIVE`, until the end of the transaction: no other session writes.
    WriteAlone,
}

impl Mode {
    pub(super) fn lock(self) -> pg_sys::LOCKMODE {
        let lock = match self {
            Mode::Read | Mode::Hold => pg_sys::AccessShareLock,
            Mode::Advance | Mode::Write => pg_sys::RowExclusiveLock,
            Mode::WriteAlone => pg_sys::ShareRowExclusiveLock,
        };
        lock as pg_sys::LOCKMODE
    }

    /// What is unlocked when the relation is closed.
    fn unlock(self) -> pg_sys::LOCKMODE {
        match self {
            Mode::Read | Mode::Advance => self.lock(),
            Mode::Hold | Mode::Write | Mode::WriteAlone => pg_sys::NoLock as pg_sys::LOCKMODE,
        }
    }
}

/// Why a relation is not open.
pub enum NotOpened {
    /// There is none.
    Missing,
    /// Another session has locked it.
    Locked,
}

/// A relation that is open, and locked.
pub struct Relation {
    relation: pg_sys::Relation,
    pub(super) mode: Mode,
}

impl Relation {
    /// Locks and opens a relation; `None` if there is none.
    pub fn open(relation: pg_sys::Oid, mode: Mode) -> Option<Self> {
        // SAFETY: returns null if the relation does not exist.
        let relation = unsafe { pg_sys::try_relation_open(relation, mode.lock()) };
        // Not then_some: what it is given is closed when it is not returned, and null cannot be.
        (!relation.is_null()).then(|| Relation { relation, mode })
    }

    /// The same, but waits for the lock for this time at most, and not at all if it
    /// is 0.
    ///
    /// # Errors
    /// [`NotOpened`].
    pub fn open_within(relation: pg_sys::Oid, mode: Mode, wait_ms: i64) -> Result<Self, NotOpened> {
        if !lock::relation_within(relation, mode.lock(), wait_ms) {
            return Err(NotOpened::Locked);
        }
        // SAFETY: locked by now. Null if it does not exist, which can be locked, too.
        unsafe {
            let opened = pg_sys::try_relation_open(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            if opened.is_null() {
                pg_sys::UnlockRelationOid(relation, mode.lock());
                return Err(NotOpened::Missing);
            }
            Ok(Relation {
                relation: opened,
                mode,
            })
        }
    }

    pub(super) fn row(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: an open relation has its `pg_class` row.
        unsafe { &*(*self.relation).rd_rel }
    }

    /// What `pg_class` has of it.
    pub fn class(&self) -> Class {
        Class::from_row(self.row())
    }

    /// Its kind (`RELKIND_...`).
    pub(super) fn kind(&self) -> u8 {
        self.row().relkind as u8
    }

    /// Whether it is neither temporary nor unlogged.
    pub(super) fn is_permanent(&self) -> bool {
        self.row().relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT
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

    /// Whether its file has no pages.
    pub(super) fn is_empty_file(&self) -> bool {
        // SAFETY: an open relation.
        let pages = unsafe {
            pg_sys::RelationGetNumberOfBlocksInFork(self.relation, pg_sys::ForkNumber::MAIN_FORKNUM)
        };
        pages == 0
    }

    pub(super) fn as_ptr(&self) -> pg_sys::Relation {
        self.relation
    }

    pub(super) fn oid(&self) -> pg_sys::Oid {
        // SAFETY: an open relation.
        unsafe { (*self.relation).rd_id }
    }

    /// Whether each index has only columns, and no condition.
    pub(super) fn has_plain_indexes(&self) -> bool {
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

/// Tells all processes, when this transaction commits, that what they keep of a relation has changed.
pub fn forget(relation: pg_sys::Oid) {
    // SAFETY: looks the relation up in the catalog, and raises an error if it is not there.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(relation) };
}

impl Drop for Relation {
    fn drop(&mut self) {
        // If an error passes through, closing is left to the abort, as in C.
        if !std::thread::panicking() {
            // SAFETY: opened and locked in this mode, closed once.
            unsafe { pg_sys::relation_close(self.relation, self.mode.unlock()) };
        }
    }
}

/// The columns of a relation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Columns<'a> {
    pub(super) descriptor: pg_sys::TupleDesc,
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

    /// The column of this number, counted from 1.
    pub(super) fn numbered(self, number: i32) -> Option<Column<'a>> {
        (1..=self.count() as i32).contains(&number).then(|| Column {
            columns: self,
            number,
            type_oid: self.attribute(number as usize - 1).atttypid,
        })
    }

    /// Whether these are as many columns as the others, of the same types.
    pub(super) fn have_types_of(self, other: Columns<'_>) -> bool {
        self.count() == other.count()
            && (0..self.count()).all(|index| {
                let (this, that) = (self.attribute(index), other.attribute(index));
                this.atttypid == that.atttypid && this.attisdropped == that.attisdropped
            })
    }

    /// How many there are, with those that were dropped.
    pub fn count(self) -> usize {
        // SAFETY: a valid descriptor.
        unsafe { (*self.descriptor).natts as usize }
    }

    pub(super) fn attribute(self, index: usize) -> &'a pg_sys::FormData_pg_attribute {
        assert!(index < self.count());
        // SAFETY: a valid descriptor, with a column of that index.
        unsafe { &*attribute(self.descriptor, index) }
    }
}

/// # Safety
/// The descriptor is valid, and has a column of that index.
#[cfg(not(any(feature = "pg18", feature = "pg19")))]
unsafe fn attribute(
    columns: pg_sys::TupleDesc,
    index: usize,
) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's.
    unsafe { (*columns).attrs.as_ptr().add(index) }
}

/// # Safety
/// The descriptor is valid, and has a column of that index.
#[cfg(any(feature = "pg18", feature = "pg19"))]
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
    pub(super) number: i32,
    type_oid: pg_sys::Oid,
}

impl Column<'_> {
    /// Its number, counted from 1.
    pub(super) fn number(self) -> pg_sys::AttrNumber {
        self.number as pg_sys::AttrNumber
    }

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

    /// The number in a column of type `bigint`, or of a domain over it; `None` for NULL and other types.
    pub fn bigint(self, column: Column<'_>) -> Option<i64> {
        // SAFETY: a catalog lookup, of a type that exists.
        let base_type = unsafe { pg_sys::getBaseType(column.type_oid) };
        let value = self.value((base_type == pg_sys::INT8OID).then_some(column)?)?;
        Some(value.value() as i64)
    }

    /// The OIDs in a column of type `regclass[]`, `InvalidOid` for a NULL among them;
    /// none for NULL and other types.
    ///
    /// # Errors
    /// Their number, if there are more than `most`.
    pub fn oids(self, column: Column<'_>, most: usize) -> Result<Vec<pg_sys::Oid>, usize> {
        let Some(array) = self.array(column, pg_sys::REGCLASSARRAYOID) else {
            return Ok(Vec::new());
        };
        // SAFETY: an array of this type, whose elements are as large as an OID. The
        // values are read at once.
        unsafe {
            let count = array_length(array);
            if count > most {
                return Err(count);
            }
            let (mut values, mut nulls) = (ptr::null_mut(), ptr::null_mut());
            let mut length = 0;
            pg_sys::deconstruct_array(
                array,
                pg_sys::REGCLASSOID,
                size_of::<pg_sys::Oid>() as i32,
                true,
                pg_sys::TYPALIGN_INT as c_char,
                &mut values,
                &mut nulls,
                &mut length,
            );
            let oid = |index| pg_sys::Oid::from((*values.add(index)).value() as u32);
            // The value of a NULL is 0.
            Ok((0..length as usize).map(oid).collect())
        }
    }

    /// How many names are in a column of type `name[]`; 0 for NULL and other types.
    pub fn name_count(self, column: Column<'_>) -> usize {
        // SAFETY: an array.
        self.array(column, pg_sys::NAMEARRAYOID)
            .map_or(0, |array| unsafe { array_length(array) })
    }

    /// The array in a column of this type of arrays; `None` for NULL and other types.
    fn array(self, column: Column<'_>, array_type: pg_sys::Oid) -> Option<*mut pg_sys::ArrayType> {
        let value = self.value(column.of_type(array_type)?)?;
        // SAFETY: an array, as every value of this type.
        Some(unsafe { pg_sys::pg_detoast_datum(value.cast_mut_ptr()) }.cast())
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

/// How many elements an array has.
///
/// # Safety
/// It is an array, with its dimensions behind its header.
unsafe fn array_length(array: *const pg_sys::ArrayType) -> usize {
    // SAFETY: the caller's.
    unsafe { pg_sys::ArrayGetNItems((*array).ndim, array.add(1).cast()) as usize }
}
