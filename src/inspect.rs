//! SQL: reading IDs.
#![allow(unsafe_code)] // rows are built by Postgres

use parking_lot::Mutex;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use snowflake_id::{Layout, Parts, SnowflakeId, Time};

use crate::error::Error;
use crate::settings;

/// 2000-01-01T00:00:00Z, Postgres' epoch, in microseconds since 1970.
const POSTGRES_EPOCH: i128 = 946_684_800_000_000;

/// What a timestamptz can hold (`MIN_TIMESTAMP` and `END_TIMESTAMP` of
/// datatype/timestamp.h): from 4713 BC, before 294277 AD.
const TIMESTAMPTZ_RANGE: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

#[pg_extern(
    stable,
    parallel_safe,
    sql = r#"
CREATE FUNCTION snowflake_decode(
    id bigint,
    OUT created_at timestamp with time zone,
    OUT node_id integer,
    OUT backend_id integer,
    OUT sequence integer
) STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#
)]
fn snowflake_decode(id: i64) -> Row {
    settings::layout_for_reading()
        .and_then(|layout| decode(id, &layout))
        .unwrap_or_else(|error| error.report())
}

#[pg_extern(
    immutable,
    parallel_safe,
    sql = r#"
CREATE FUNCTION snowflake_decode(
    id bigint,
    layout text,
    OUT created_at timestamp with time zone,
    OUT node_id integer,
    OUT backend_id integer,
    OUT sequence integer
) IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#
)]
fn snowflake_decode_with_layout(id: i64, layout: &str) -> Row {
    parse_layout(layout)
        .and_then(|layout| decode(id, &layout))
        .unwrap_or_else(|error| error.report())
}

/// Parses a layout argument. The one parsed last is kept: a query names the
/// same layout for every row.
fn parse_layout(text: &str) -> Result<Layout, Error> {
    static KEPT: Mutex<Option<(String, Layout)>> = Mutex::new(None);
    if let Some((kept, layout)) = KEPT.lock().as_ref()
        && kept == text
    {
        return Ok(*layout);
    }
    let layout: Layout = text.parse().map_err(|reason| Error::InvalidLayout {
        text: text.to_owned(),
        reason,
    })?;
    *KEPT.lock() = Some((text.to_owned(), layout));
    Ok(layout)
}

fn decode(id: i64, layout: &Layout) -> Result<Row, Error> {
    let parts = SnowflakeId::new(id)
        .ok_or(Error::NegativeId(id))
        .and_then(|it| {
            layout.decode(it).map_err(|error| Error::IdOutsideLayout {
                id,
                bits: error.total_bits,
            })
        })?;
    let created_at = timestamptz(parts.time).ok_or(Error::TimeOutOfRange(id))?;
    Ok(Row { created_at, parts })
}

/// A time as Postgres holds it, microseconds since 2000; `None` outside of its
/// range.
pub fn timestamptz(time: Time) -> Option<pg_sys::TimestampTz> {
    let micros = i64::try_from(time.unix_micros() - POSTGRES_EPOCH).ok()?;
    TIMESTAMPTZ_RANGE.contains(&micros).then_some(micros)
}

/// A timestamptz in microseconds since 1970; its infinities stay far outside
/// of any clock's reach.
pub fn unix_micros(at: TimestampWithTimeZone) -> i64 {
    i64::from(at).saturating_add(POSTGRES_EPOCH as i64)
}

/// The row that `snowflake_decode` returns. It is a plain record, not a set of
/// rows, so that it can stand wherever an expression can.
struct Row {
    created_at: pg_sys::TimestampTz,
    parts: Parts,
}

impl Row {
    const COLUMNS: [(&'static std::ffi::CStr, pg_sys::Oid); 4] = [
        (c"created_at", pg_sys::TIMESTAMPTZOID),
        (c"node_id", pg_sys::INT4OID),
        (c"backend_id", pg_sys::INT4OID),
        (c"sequence", pg_sys::INT4OID),
    ];

    /// The row's type, registered with Postgres once a process.
    fn descriptor() -> pg_sys::TupleDesc {
        struct Registered(pg_sys::TupleDesc);
        // SAFETY: a descriptor in memory that lives as long as the process,
        // not changed after it was registered, used by its one thread.
        unsafe impl Send for Registered {}
        static ROW: Mutex<Option<Registered>> = Mutex::new(None);

        if let Some(registered) = ROW.lock().as_ref() {
            return registered.0;
        }
        // SAFETY: attribute numbers count from 1 up to the number of columns;
        // the memory context outlives every caller.
        let descriptor = unsafe {
            let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
            let descriptor = pg_sys::CreateTemplateTupleDesc(Self::COLUMNS.len() as i32);
            for (number, (name, type_oid)) in (1..).zip(Self::COLUMNS) {
                pg_sys::TupleDescInitEntry(descriptor, number, name.as_ptr(), type_oid, -1, 0);
            }
            let descriptor = pg_sys::BlessTupleDesc(descriptor);
            pg_sys::MemoryContextSwitchTo(before);
            descriptor
        };
        *ROW.lock() = Some(Registered(descriptor));
        descriptor
    }
}

// SAFETY: builds a datum of the registered row type, which is a record.
unsafe impl BoxRet for Row {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        let mut values = [
            pg_sys::Datum::from(self.created_at),
            // Fields have at most 31 bits.
            pg_sys::Datum::from(self.parts.node as i32),
            pg_sys::Datum::from(self.parts.backend as i32),
            pg_sys::Datum::from(self.parts.sequence as i32),
        ];
        let mut nulls = [false; Self::COLUMNS.len()];
        // SAFETY: as many values as the descriptor has columns, of its types;
        // the tuple lives in the caller's memory context.
        unsafe {
            let tuple = pg_sys::heap_form_tuple(
                Self::descriptor(),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            fcinfo.return_raw_datum(pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data))
        }
    }
}

// SAFETY: the functions that return it write their SQL themselves.
unsafe impl SqlTranslatable for Row {
    const TYPE_IDENT: &'static str = "record";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::As("record")));
}
