//! Texts and names.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::ptr;

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, pg_sys, varlena};

/// A `text`. Its bytes are in the database's encoding: pgrx's `&str` takes them
/// for UTF-8 unchecked.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    value: *mut pg_sys::varlena,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Text<'a> {
    /// # Safety
    /// The datum is a `text` that lives for `'a`.
    #[inline]
    pub(super) unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        Self {
            value: datum.cast_mut_ptr(),
            lifetime: PhantomData,
        }
    }

    /// The bytes as they are.
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: a text is a varlena, and lives as long as the call. One that
        // lies in place uncompressed is read there, which spares a guarded call.
        unsafe {
            let in_place = varlena::varatt_is_4b_u(self.value)
                || (varlena::varatt_is_1b(self.value) && !varlena::varatt_is_1b_e(self.value));
            let plain = if in_place {
                self.value
            } else {
                pg_sys::pg_detoast_datum_packed(self.value)
            };
            varlena::varlena_to_byte_slice(plain)
        }
    }

    /// A copy as a C string, in the current memory context. Memory that is missing
    /// is an error of Postgres; in Rust it would end the server.
    pub fn to_c_str(self) -> &'a CStr {
        // SAFETY: a text, which may be compressed; the copy ends with a zero byte. The
        // current memory context lives at least as long as the call.
        unsafe { CStr::from_ptr(pg_sys::text_to_cstring(self.value.cast_const().cast())) }
    }
}

impl FromDatum for Text<'_> {
    #[inline]
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: the caller's.
        (!is_null).then(|| unsafe { Self::from_datum(datum) })
    }
}

// SAFETY: reads a `text`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for Text<'fcx> {
    #[inline]
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("the function is STRICT")
    }
}

super::sql_type!(
    Text<'_>,
    Ok(SqlMappingRef::As("text")),
    Err(ReturnsError::Datum),
    "text"
);

/// A `name` as an argument.
#[derive(Clone, Copy)]
pub struct Name<'a>(&'a CStr);

impl<'a> Name<'a> {
    /// The name, in the database's encoding.
    pub fn as_c_str(self) -> &'a CStr {
        self.0
    }
}

impl FromDatum for Name<'_> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: a name ends with a zero byte, and lives as long as the call.
        (!is_null).then(|| Self(unsafe { CStr::from_ptr(datum.cast_mut_ptr()) }))
    }
}

// SAFETY: reads a `name`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for Name<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("the function is STRICT")
    }
}

super::sql_type!(
    Name<'_>,
    Ok(SqlMappingRef::As("name")),
    Err(ReturnsError::Datum),
    "name"
);

/// A `name[]` as an argument. The array may have any length, so it stays in Postgres'
/// memory.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    values: *const pg_sys::Datum,
    nulls: *const bool,
    count: usize,
    lifetime: PhantomData<&'a CStr>,
}

impl<'a> Names<'a> {
    /// The names that are not NULL, in the database's encoding.
    pub fn iter(self) -> impl Iterator<Item = &'a CStr> {
        (0..self.count).filter_map(move |index| {
            // SAFETY: both arrays have `count` elements and live as long as the call, as
            // the names do, each of which ends with a zero byte.
            unsafe {
                let value: pg_sys::Datum = *self.values.add(index);
                (!*self.nulls.add(index)).then(|| CStr::from_ptr(value.cast_mut_ptr()))
            }
        })
    }
}

impl FromDatum for Names<'_> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: an array of names, each of which ends with a zero byte.
        unsafe {
            let array = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast();
            let (mut values, mut nulls, mut count) = (ptr::null_mut(), ptr::null_mut(), 0);
            pg_sys::deconstruct_array(
                array,
                pg_sys::NAMEOID,
                pg_sys::NAMEDATALEN as c_int,
                false,
                pg_sys::TYPALIGN_CHAR as c_char,
                &mut values,
                &mut nulls,
                &mut count,
            );
            Some(Self {
                values,
                nulls,
                count: usize::try_from(count).unwrap_or(0),
                lifetime: PhantomData,
            })
        }
    }
}

// SAFETY: reads a `name[]`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for Names<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("the function is STRICT")
    }
}

super::sql_type!(
    Names<'_>,
    Ok(SqlMappingRef::As("name[]")),
    Err(ReturnsError::Datum),
    "name[]"
);

/// A `text` as a result.
pub struct TextResult(pg_sys::Datum);

impl TextResult {
    /// The bytes are in the database's encoding: those of a [`Text`], of a name, or
    /// ASCII, which every encoding has.
    pub fn new(bytes: &[u8]) -> Self {
        TextResult(pg_sys::Datum::from(
            varlena::rust_byte_slice_to_bytea(bytes).into_pg(),
        ))
    }
}

// SAFETY: a `text`, which is what its SQL type says, in the caller's memory.
unsafe impl BoxRet for TextResult {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: as above.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

super::sql_type!(result TextResult, "text");
