//! What SQL values are in Rust: times, texts, and the layout that a text names.
#![allow(unsafe_code)] // reads values as Postgres lays them out

use std::borrow::Cow;
use std::cell::RefCell;
use std::marker::PhantomData;

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use pgrx::{FromDatum, PgList, pg_sys, varlena};
use snowflake_id::{IdText, Layout, Time};

use crate::encoding::readable;
use crate::error::Error;

/// 2000-01-01T00:00:00Z, Postgres' epoch, in microseconds since 1970.
const POSTGRES_EPOCH: i128 = 946_684_800_000_000;

/// A time as a timestamptz; `None` outside of what that can hold: 4713 BC to
/// 294276 AD.
pub fn timestamptz(time: Time) -> Option<TimestampWithTimeZone> {
    let micros = i64::try_from(time.unix_micros() - POSTGRES_EPOCH).ok()?;
    // The two ends stand for the infinities.
    let is_finite = micros != i64::MIN && micros != i64::MAX;
    TimestampWithTimeZone::try_from(micros)
        .ok()
        .filter(|_| is_finite)
}

/// A timestamptz in microseconds since 1970; its infinities stay far outside
/// of any clock's reach.
pub fn unix_micros(at: TimestampWithTimeZone) -> i64 {
    i64::from(at).saturating_add(POSTGRES_EPOCH as i64)
}

/// A timestamptz as it is meant: with two values that are no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// `-infinity`, before every time.
    NegativeInfinity,
    /// A time.
    Finite(Time),
    /// `infinity`, after every time.
    Infinity,
}

impl From<TimestampWithTimeZone> for Instant {
    fn from(at: TimestampWithTimeZone) -> Self {
        match i64::from(at) {
            i64::MIN => Self::NegativeInfinity,
            i64::MAX => Self::Infinity,
            micros => Self::Finite(Time::from_unix_micros(i128::from(micros) + POSTGRES_EPOCH)),
        }
    }
}

impl std::fmt::Display for Instant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NegativeInfinity => f.write_str("-infinity"),
            Self::Finite(time) => time.fmt(f),
            Self::Infinity => f.write_str("infinity"),
        }
    }
}

/// A `text` argument. Its bytes are in the database's encoding: pgrx's `&str`
/// takes them for UTF-8 unchecked.
#[derive(Clone, Copy)]
pub struct TextArgument<'a> {
    value: *mut pg_sys::varlena,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> TextArgument<'a> {
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

    /// The text for reading and for messages.
    pub fn readable(self) -> Cow<'a, str> {
        readable(self.bytes())
    }
}

impl FromDatum for TextArgument<'_> {
    #[inline]
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

// SAFETY: reads a `text`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for TextArgument<'fcx> {
    #[inline]
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("functions of texts are STRICT")
    }
}

// SAFETY: `text` is what its `ArgAbi` reads.
unsafe impl SqlTranslatable for TextArgument<'_> {
    const TYPE_IDENT: &'static str = "text";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::As("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

/// The text of an ID as a result: ASCII, which every database encoding has.
pub struct AsciiText(pub IdText);

// SAFETY: builds a `text`, which is what its SQL type says.
unsafe impl BoxRet for AsciiText {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        let text = varlena::rust_byte_slice_to_bytea(self.0.as_bytes());
        // SAFETY: a new varlena in the caller's memory context.
        unsafe { fcinfo.return_raw_datum(pg_sys::Datum::from(text.into_pg())) }
    }
}

// SAFETY: `text` is what its `BoxRet` builds.
unsafe impl SqlTranslatable for AsciiText {
    const TYPE_IDENT: &'static str = "text";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::As("text")));
}

/// The layout that a function's last argument names.
///
/// Where that is a constant, it is parsed at the first call and kept with the
/// call's place in the query (`fn_extra`), so the other rows don't look at it.
#[inline]
pub fn layout_named(text: TextArgument<'_>, fcinfo: pg_sys::FunctionCallInfo) -> Layout {
    // SAFETY: Postgres calls SQL functions with a valid call frame, whose
    // `flinfo` is null only where C code calls the function directly. What is
    // kept there is ours, and a layout.
    let kept = unsafe {
        let flinfo = (*fcinfo).flinfo.as_ref();
        flinfo.and_then(|flinfo| flinfo.fn_extra.cast::<Layout>().as_ref())
    };
    match kept {
        Some(layout) => *layout,
        None => parse_layout(text, fcinfo).unwrap_or_else(|error| error.report()),
    }
}

thread_local! {
    /// The text that was parsed last, for where it is no constant: rows that
    /// follow each other name the same one mostly.
    static PARSED: RefCell<Option<(Vec<u8>, Layout)>> = const { RefCell::new(None) };
}

#[inline(never)]
fn parse_layout(text: TextArgument<'_>, fcinfo: pg_sys::FunctionCallInfo) -> Result<Layout, Error> {
    let bytes = text.bytes();
    let parsed = PARSED.with_borrow(|parsed| match parsed {
        Some((before, layout)) if before == bytes => Some(*layout),
        _ => None,
    });
    let layout = match parsed {
        Some(layout) => layout,
        None => {
            let readable = text.readable();
            let layout = readable.parse().map_err(|reason| Error::InvalidLayout {
                text: readable.into_owned(),
                reason,
            })?;
            PARSED.replace(Some((bytes.to_owned(), layout)));
            layout
        }
    };
    keep_if_constant(layout, fcinfo);
    Ok(layout)
}

/// Only a true constant: a parameter's value may change while the call's place
/// in the query stays, as in a loop of PL/pgSQL.
fn keep_if_constant(layout: Layout, fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: as in `layout_named`. The expression, where there is one, is the
    // call's; the memory lives as long as `flinfo`.
    unsafe {
        let Some(flinfo) = (*fcinfo).flinfo.as_mut() else {
            return;
        };
        let call = flinfo.fn_expr;
        if call.is_null() || !pgrx::is_a(call, pg_sys::NodeTag::T_FuncExpr) {
            return;
        }
        let arguments = PgList::<pg_sys::Node>::from_pg((*call.cast::<pg_sys::FuncExpr>()).args);
        let is_constant = arguments
            .tail()
            .is_some_and(|last| pgrx::is_a(last, pg_sys::NodeTag::T_Const));
        if is_constant {
            let kept = pg_sys::MemoryContextAlloc(flinfo.fn_mcxt, size_of::<Layout>());
            kept.cast::<Layout>().write(layout);
            flinfo.fn_extra = kept;
        }
    }
}
