//! SQL: reading IDs, and composing one.
//!
//! Each function exists in two forms. Without a layout it reads IDs of this
//! server's, which a restart can change, so it is STABLE. With a layout it is
//! IMMUTABLE, and can be used in an index, a generated column or a partition key.

use pgrx::prelude::*;
use snowflake_id::{ComposeError, FieldError, Layout, Parts, SnowflakeId};

use crate::error::{Error, or_report};
use crate::generator::accepted_layout;
use crate::pg::record::{Record, RecordType, Scalar};
use crate::pg::{Call, Text};
use crate::settings;
use crate::sql::values::{TimestampBound, layout_named, timestamptz};

#[pg_extern(sql = false)]
fn snowflake_decode(id: i64) -> Record<4> {
    accepted_layout::notice_other_layout_once();
    by_this_server(|layout| decode(id, layout))
}

#[pg_extern(sql = false)]
fn snowflake_decode_by(id: i64, layout: Text<'_>, call: Call<'_>) -> Record<4> {
    or_report(decode(id, &layout_named(layout, call)))
}

#[pg_extern(sql = false)]
fn snowflake_timestamp(id: i64) -> TimestampWithTimeZone {
    accepted_layout::notice_other_layout_once();
    by_this_server(|layout| created_at(id, layout))
}

#[pg_extern(sql = false)]
fn snowflake_timestamp_by(id: i64, layout: Text<'_>, call: Call<'_>) -> TimestampWithTimeZone {
    or_report(created_at(id, &layout_named(layout, call)))
}

// Fields have at most 31 bits, so they fit an integer.

#[pg_extern(sql = false)]
fn snowflake_node_id(id: i64) -> i32 {
    accepted_layout::notice_other_layout_once();
    by_this_server(|layout| parts(id, layout)).node as i32
}

#[pg_extern(sql = false)]
fn snowflake_node_id_by(id: i64, layout: Text<'_>, call: Call<'_>) -> i32 {
    or_report(parts(id, &layout_named(layout, call))).node as i32
}

#[pg_extern(sql = false)]
fn snowflake_backend_id(id: i64) -> i32 {
    accepted_layout::notice_other_layout_once();
    by_this_server(|layout| parts(id, layout)).backend as i32
}

#[pg_extern(sql = false)]
fn snowflake_backend_id_by(id: i64, layout: Text<'_>, call: Call<'_>) -> i32 {
    or_report(parts(id, &layout_named(layout, call))).backend as i32
}

#[pg_extern(sql = false)]
fn snowflake_sequence(id: i64) -> i32 {
    accepted_layout::notice_other_layout_once();
    by_this_server(|layout| parts(id, layout)).sequence as i32
}

#[pg_extern(sql = false)]
fn snowflake_sequence_by(id: i64, layout: Text<'_>, call: Call<'_>) -> i32 {
    or_report(parts(id, &layout_named(layout, call))).sequence as i32
}

#[pg_extern(sql = false)]
fn snowflake_compose(
    created_at: TimestampWithTimeZone,
    node_id: i32,
    backend_id: i32,
    sequence: i32,
) -> i64 {
    by_this_server(|layout| compose(created_at, [node_id, backend_id, sequence], layout))
}

#[pg_extern(sql = false)]
fn snowflake_compose_by(
    created_at: TimestampWithTimeZone,
    node_id: i32,
    backend_id: i32,
    sequence: i32,
    layout: Text<'_>,
    call: Call<'_>,
) -> i64 {
    or_report(compose(
        created_at,
        [node_id, backend_id, sequence],
        &layout_named(layout, call),
    ))
}

/// The result by this server's layout. Raises the error, if any.
#[inline]
pub fn by_this_server<T>(read: impl FnOnce(&Layout) -> Result<T, Error>) -> T {
    match settings::layout() {
        Some(layout) => or_report(read(layout)),
        None => or_report(read(&or_report(settings::layout_for_reading()))),
    }
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
    Ok(timestamptz(parts(id, layout)?.time))
}

fn decode(id: i64, layout: &Layout) -> Result<Record<4>, Error> {
    let parts = parts(id, layout)?;
    let values = [
        i64::from(timestamptz(parts.time)),
        parts.node.into(),
        parts.backend.into(),
        parts.sequence.into(),
    ];
    Ok(Record::new(&DECODED, values))
}

fn compose(
    created_at: TimestampWithTimeZone,
    [node, backend, sequence]: [i32; 3],
    layout: &Layout,
) -> Result<i64, Error> {
    let at = TimestampBound::from(created_at);
    let outside = || Error::TimeOutsideLayout {
        at: at.to_string(),
        layout: *layout,
    };
    let TimestampBound::Finite(time) = at else {
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

/// The type of the row that `snowflake_decode` returns.
static DECODED: RecordType<4> = RecordType::new([
    (c"created_at", Scalar::Timestamptz),
    (c"node_id", Scalar::Integer),
    (c"backend_id", Scalar::Integer),
    (c"sequence", Scalar::Integer),
]);
