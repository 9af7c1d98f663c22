//! What SQL values are in Rust: times, texts, and the layout that a text names.
#![allow(unsafe_code)] // reads values as Postgres lays them out

use std::borrow::Cow;
use std::cell::RefCell;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use pgrx::{FromDatum, pg_sys, varlena};
use snowflake_id::{Layout, Time};

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

/// The bytes of a `text` argument, in the database's encoding: pgrx's `&str`
/// takes them for UTF-8 unchecked.
#[derive(Clone, Copy)]
pub struct TextArgument<'a>(&'a [u8]);

impl<'a> TextArgument<'a> {
    /// The bytes as they are.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text for reading and for messages. What could not be sent back in
    /// the database's encoding becomes a question mark.
    pub fn readable(self) -> Cow<'a, str> {
        match str::from_utf8(self.0) {
            Ok(text) if text.is_ascii() || is_utf8_database() => Cow::Borrowed(text),
            _ => self
                .0
                .iter()
                .map(|&byte| if byte.is_ascii() { byte as char } else { '?' })
                .collect(),
        }
    }
}

fn is_utf8_database() -> bool {
    // SAFETY: reads a number that is fixed for the session.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}

impl<'a> FromDatum for TextArgument<'a> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        let value: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: a text that is not null is a varlena. One that lies in place
        // uncompressed is read there, which spares the guarded call; the bytes
        // live as long as the function's call.
        unsafe {
            let in_place = varlena::varatt_is_4b_u(value)
                || (varlena::varatt_is_1b(value) && !varlena::varatt_is_1b_e(value));
            let plain = if in_place {
                value
            } else {
                pg_sys::pg_detoast_datum_packed(value)
            };
            Some(Self(varlena::varlena_to_byte_slice(plain)))
        }
    }
}

// SAFETY: reads a `text`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for TextArgument<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("functions of texts are STRICT")
    }
}

/// The layout that a `text` argument names.
#[derive(Clone, Copy)]
pub struct LayoutArgument(pub Layout);

thread_local! {
    /// The text that was parsed last: a query names the same layout for every
    /// row.
    static KEPT: RefCell<Option<(Vec<u8>, Layout)>> = const { RefCell::new(None) };
}

impl LayoutArgument {
    fn parse(text: TextArgument<'_>) -> Result<Self, Error> {
        let kept = KEPT.with_borrow(|kept| match kept {
            Some((bytes, layout)) if bytes == text.bytes() => Some(*layout),
            _ => None,
        });
        match kept {
            Some(layout) => Ok(Self(layout)),
            None => Self::parse_anew(text),
        }
    }

    #[cold]
    fn parse_anew(text: TextArgument<'_>) -> Result<Self, Error> {
        let readable = text.readable();
        let layout: Layout = readable.parse().map_err(|reason| Error::InvalidLayout {
            text: readable.into_owned(),
            reason,
        })?;
        KEPT.replace(Some((text.bytes().to_owned(), layout)));
        Ok(Self(layout))
    }
}

// SAFETY: reads a `text`, which is what its SQL type says.
unsafe impl<'fcx> ArgAbi<'fcx> for LayoutArgument {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        let text = unsafe { TextArgument::unbox_arg_unchecked(arg) };
        Self::parse(text).unwrap_or_else(|error| error.report())
    }
}

/// For types that are read from a `text`.
macro_rules! argument_is_text {
    ($($type:ty),*) => {$(
        // SAFETY: `text` is what its `ArgAbi` reads.
        unsafe impl SqlTranslatable for $type {
            const TYPE_IDENT: &'static str = "text";
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::As("text"));
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
        }
    )*};
}
pub(crate) use argument_is_text;

argument_is_text!(TextArgument<'_>, LayoutArgument);
