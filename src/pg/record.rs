//! Records: rows of a type that has no name.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

/// The types that a record's columns can have. All are passed by value, so any
/// 64 bits are one of their values.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// `timestamp with time zone`
    Timestamptz,
    /// `integer`
    Integer,
}

impl Scalar {
    fn type_oid(self) -> pg_sys::Oid {
        match self {
            Scalar::Timestamptz => pg_sys::TIMESTAMPTZOID,
            Scalar::Integer => pg_sys::INT4OID,
        }
    }
}

/// The type of a record with `N` columns, registered with Postgres once a
/// process.
pub struct RecordType<const N: usize> {
    columns: [(&'static CStr, Scalar); N],
    /// Null until the type is registered. Then it is not changed any more, and
    /// lives as long as the process.
    descriptor: AtomicPtr<pg_sys::TupleDescData>,
}

impl<const N: usize> RecordType<N> {
    /// A type with these columns.
    pub const fn new(columns: [(&'static CStr, Scalar); N]) -> Self {
        RecordType {
            columns,
            descriptor: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn descriptor(&self) -> pg_sys::TupleDesc {
        let registered = self.descriptor.load(Relaxed);
        if registered.is_null() {
            self.register()
        } else {
            registered
        }
    }

    #[cold]
    fn register(&self) -> pg_sys::TupleDesc {
        // SAFETY: attribute numbers count from 1 up to the number of columns;
        // the memory context outlives every caller.
        let descriptor = unsafe {
            let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
            let descriptor = pg_sys::CreateTemplateTupleDesc(N as i32);
            for (number, (name, scalar)) in (1..).zip(self.columns) {
                let type_oid = scalar.type_oid();
                pg_sys::TupleDescInitEntry(descriptor, number, name.as_ptr(), type_oid, -1, 0);
            }
            let descriptor = pg_sys::BlessTupleDesc(descriptor);
            pg_sys::MemoryContextSwitchTo(before);
            descriptor
        };
        self.descriptor.store(descriptor, Relaxed);
        descriptor
    }
}

/// A record. It is no set of rows, so it can stand wherever an expression can.
pub struct Record<const N: usize> {
    of: &'static RecordType<N>,
    values: [i64; N],
}

impl<const N: usize> Record<N> {
    /// A record with the values of its columns, none of which is NULL.
    #[inline]
    pub fn new(of: &'static RecordType<N>, values: [i64; N]) -> Self {
        Record { of, values }
    }
}

// SAFETY: builds a datum of the registered row type, which is a record.
unsafe impl<const N: usize> BoxRet for Record<N> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        let mut values = self.values.map(pg_sys::Datum::from);
        let mut nulls = [false; N];
        // SAFETY: as many values as the descriptor has columns, passed by value;
        // the tuple lives in the caller's memory context. Its header is the
        // datum: no column has a value that lies elsewhere.
        unsafe {
            let tuple = pg_sys::heap_form_tuple(
                self.of.descriptor(),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            fcinfo.return_raw_datum(pg_sys::Datum::from((*tuple).t_data))
        }
    }
}

// SAFETY: the functions that return it write their SQL themselves.
unsafe impl<const N: usize> SqlTranslatable for Record<N> {
    const TYPE_IDENT: &'static str = "record";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::As("record")));
}
