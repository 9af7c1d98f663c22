//! SQL: reading IDs, and putting one together.
//!
//! Each function comes twice: without a layout it reads this server's, which a
//! restart can change, so it is STABLE; with one it is IMMUTABLE, and can
//! stand in an index, a generated column or a partition key.
#![allow(unsafe_code)] // rows are built by Postgres

use parking_lot::Mutex;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use snowflake_id::{ComposeError, FieldError, Layout, Parts, SnowflakeId};

use crate::error::Error;
use crate::generator::accepted_layout;
use crate::settings;
use crate::sql::values::{Instant, TextArgument, layout_named, timestamptz};

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
fn snowflake_decode(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> Row {
    accepted_layout::hint(fcinfo);
    by_this_server(|layout| decode(id, layout))
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
fn snowflake_decode_by(id: i64, layout: TextArgument<'_>, fcinfo: pg_sys::FunctionCallInfo) -> Row {
    or_report(decode(id, &layout_named(layout, fcinfo)))
}

#[pg_extern(stable, parallel_safe)]
fn snowflake_timestamp(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> TimestampWithTimeZone {
    accepted_layout::hint(fcinfo);
    by_this_server(|layout| created_at(id, layout))
}

#[pg_extern(name = "snowflake_timestamp", immutable, parallel_safe)]
fn snowflake_timestamp_by(
    id: i64,
    layout: TextArgument<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> TimestampWithTimeZone {
    or_report(created_at(id, &layout_named(layout, fcinfo)))
}

// Fields have at most 31 bits, so they fit an integer.

#[pg_extern(stable, parallel_safe)]
fn snowflake_node_id(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> i32 {
    accepted_layout::hint(fcinfo);
    by_this_server(|layout| parts(id, layout)).node as i32
}

#[pg_extern(name = "snowflake_node_id", immutable, parallel_safe)]
fn snowflake_node_id_by(
    id: i64,
    layout: TextArgument<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> i32 {
    or_report(parts(id, &layout_named(layout, fcinfo))).node as i32
}

#[pg_extern(stable, parallel_safe)]
fn snowflake_backend_id(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> i32 {
    accepted_layout::hint(fcinfo);
    by_this_server(|layout| parts(id, layout)).backend as i32
}

#[pg_extern(name = "snowflake_backend_id", immutable, parallel_safe)]
fn snowflake_backend_id_by(
    id: i64,
    layout: TextArgument<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> i32 {
    or_report(parts(id, &layout_named(layout, fcinfo))).backend as i32
}

#[pg_extern(stable, parallel_safe)]
fn snowflake_sequence(id: i64, fcinfo: pg_sys::FunctionCallInfo) -> i32 {
    accepted_layout::hint(fcinfo);
    by_this_server(|layout| parts(id, layout)).sequence as i32
}

#[pg_extern(name = "snowflake_sequence", immutable, parallel_safe)]
fn snowflake_sequence_by(
    id: i64,
    layout: TextArgument<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> i32 {
    or_report(parts(id, &layout_named(layout, fcinfo))).sequence as i32
}

#[pg_extern(stable, parallel_safe)]
fn snowflake_compose(
    created_at: TimestampWithTimeZone,
    node_id: i32,
    backend_id: i32,
    sequence: i32,
) -> i64 {
    by_this_server(|layout| compose(created_at, [node_id, backend_id, sequence], layout))
}

#[pg_extern(name = "snowflake_compose", immutable, parallel_safe)]
fn snowflake_compose_by(
    created_at: TimestampWithTimeZone,
    node_id: i32,
    backend_id: i32,
    sequence: i32,
    layout: TextArgument<'_>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> i64 {
    or_report(compose(
        created_at,
        [node_id, backend_id, sequence],
        &layout_named(layout, fcinfo),
    ))
}

/// The answer by this server's layout, or the error raised.
#[inline]
pub fn by_this_server<T>(read: impl FnOnce(&Layout) -> Result<T, Error>) -> T {
    match settings::layout() {
        Some(layout) => or_report(read(layout)),
        None => or_report(read(&or_report(settings::layout_for_reading()))),
    }
}

/// The answer, or the error raised.
#[inline]
pub fn or_report<T>(answer: Result<T, Error>) -> T {
    answer.unwrap_or_else(|error| error.report())
}

/// The fields of an ID.
///
/// # Errors
/// [`Error::NegativeId`], [`Error::IdOutsideLayout`].
#[inline]
pub fn parts(id: i64, layout: &Layout) -> Result<Parts, Error> {
    let Some(it) = SnowflakeId::new(id) else {
        return Err(Error::NegativeId(id));
    };
    match layout.decode(it) {
        Ok(parts) => Ok(parts),
        Err(error) => Err(Error::IdOutsideLayout {
            id,
            bits: error.total_bits,
        }),
    }
}

fn created_at(id: i64, layout: &Layout) -> Result<TimestampWithTimeZone, Error> {
    time_of(id, parts(id, layout)?)
}

fn decode(id: i64, layout: &Layout) -> Result<Row, Error> {
    let parts = parts(id, layout)?;
    Ok(Row {
        created_at: time_of(id, parts)?,
        parts,
    })
}

#[inline]
fn time_of(id: i64, parts: Parts) -> Result<TimestampWithTimeZone, Error> {
    match timestamptz(parts.time) {
        Some(at) => Ok(at),
        None => Err(Error::TimeOutOfRange(id)),
    }
}

fn compose(
    created_at: TimestampWithTimeZone,
    [node, backend, sequence]: [i32; 3],
    layout: &Layout,
) -> Result<i64, Error> {
    let at = Instant::from(created_at);
    let outside = || Error::TimeOutsideLayout {
        at: at.to_string(),
        layout: *layout,
    };
    let Instant::Finite(time) = at else {
        return Err(outside());
    };
    let unsigned = |name, value: i32, max| {
        u32::try_from(value).map_err(|_| {
            Error::FieldOutOfRange(FieldError {
                name,
                value: value.into(),
                max,
            })
        })
    };
    let parts = Parts {
        time,
        node: unsigned("node", node, layout.max_node())?,
        backend: unsigned("backend", backend, layout.max_backend())?,
        sequence: unsigned("sequence", sequence, layout.max_sequence())?,
    };
    match layout.compose(parts) {
        Ok(id) => Ok(id.get()),
        Err(ComposeError::Field(error)) => Err(Error::FieldOutOfRange(error)),
        Err(ComposeError::Time(_)) => Err(outside()),
    }
}

/// The row that `snowflake_decode` returns. It is a plain record, not a set of
/// rows, so that it can stand wherever an expression can.
struct Row {
    created_at: TimestampWithTimeZone,
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
            pg_sys::Datum::from(i64::from(self.created_at)),
            pg_sys::Datum::from(self.parts.node as i32),
            pg_sys::Datum::from(self.parts.backend as i32),
            pg_sys::Datum::from(self.parts.sequence as i32),
        ];
        let mut nulls = [false; Self::COLUMNS.len()];
        // SAFETY: as many values as the descriptor has columns, of its types;
        // the tuple lives in the caller's memory context. Its header is the
        // datum: no column has a value that lies elsewhere.
        unsafe {
            let tuple = pg_sys::heap_form_tuple(
                Self::descriptor(),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            fcinfo.return_raw_datum(pg_sys::Datum::from((*tuple).t_data))
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
