//! Values of row types as arguments and results.

use std::marker::PhantomData;

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, pg_sys, varlena};

use super::relation::Columns;

/// A value of a row type as a result.
pub struct CompositeResult(pub(super) pg_sys::Datum);

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

impl Composite<'_> {
    /// The values of its columns; `None` unless it is of this row type, and its
    /// columns have the types of these.
    pub(super) fn values(
        self,
        row_type: pg_sys::Oid,
        wanted: Columns<'_>,
    ) -> Option<(Vec<pg_sys::Datum>, Vec<bool>)> {
        // SAFETY: a row has a header with its type, whose columns core knows.
        // There are as many values as columns, and both descriptions of them
        // are compared before the values are taken.
        unsafe {
            let header: pg_sys::HeapTupleHeader = pg_sys::pg_detoast_datum(self.value).cast();
            let kind = (*header).t_choice.t_datum;
            if kind.datum_typeid != row_type {
                return None;
            }
            let descriptor = pg_sys::lookup_rowtype_tupdesc(kind.datum_typeid, kind.datum_typmod);
            let values = Columns::new(descriptor)
                .have_types_of(wanted)
                .then(|| values_of(header, descriptor));
            if (*descriptor).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(descriptor);
            }
            values
        }
    }
}

/// # Safety
/// The header is of a row that the descriptor describes.
unsafe fn values_of(
    header: pg_sys::HeapTupleHeader,
    descriptor: pg_sys::TupleDesc,
) -> (Vec<pg_sys::Datum>, Vec<bool>) {
    // SAFETY: the caller's; as many values as columns.
    unsafe {
        let count = (*descriptor).natts as usize;
        let mut values = vec![pg_sys::Datum::null(); count];
        let mut nulls = vec![true; count];
        let mut row = pg_sys::HeapTupleData {
            t_len: varlena::varsize_any(header.cast()) as u32,
            t_data: header,
            ..Default::default()
        };
        let (to_values, to_nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::heap_deform_tuple(&mut row, descriptor, to_values, to_nulls);
        (values, nulls)
    }
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
