//! SQL: the first and the last ID of a time, so that a range of time is a range
//! of the primary key. `snowflake_between` is in `sql/snowflake/bounds.sql`.

use pgrx::prelude::*;
use snowflake_id::{Layout, SnowflakeId};

use crate::error::{Error, or_report};
use crate::pg::{Call, Text};
use crate::sql::read::by_this_server;
use crate::sql::values::{TimestampBound, layout_named};

/// The number below all IDs.
const BEFORE_ALL: i64 = -1;

#[pg_extern(sql = false)]
fn snowflake_min_id(at: TimestampWithTimeZone) -> i64 {
    by_this_server(|layout| min_id(at.into(), layout))
}

#[pg_extern(sql = false)]
fn snowflake_min_id_by(at: TimestampWithTimeZone, layout: Text<'_>, call: Call<'_>) -> i64 {
    or_report(min_id(at.into(), &layout_named(layout, call)))
}

#[pg_extern(sql = false)]
fn snowflake_max_id(at: TimestampWithTimeZone) -> i64 {
    by_this_server(|layout| Ok(max_id(at.into(), layout)))
}

#[pg_extern(sql = false)]
fn snowflake_max_id_by(at: TimestampWithTimeZone, layout: Text<'_>, call: Call<'_>) -> i64 {
    max_id(at.into(), &layout_named(layout, call))
}

#[pg_extern(sql = false)]
fn snowflake_max_id_before(at: TimestampWithTimeZone) -> i64 {
    by_this_server(|layout| Ok(max_id_before(at.into(), layout)))
}

#[pg_extern(sql = false)]
fn snowflake_max_id_before_by(at: TimestampWithTimeZone, layout: Text<'_>, call: Call<'_>) -> i64 {
    max_id_before(at.into(), &layout_named(layout, call))
}

/// The smallest ID whose time is at or after `at`.
fn min_id(at: TimestampBound, layout: &Layout) -> Result<i64, Error> {
    let found = match at {
        TimestampBound::NegativeInfinity => Some(SnowflakeId::ZERO),
        TimestampBound::Finite(time) => layout.min_id(time).ok(),
        TimestampBound::Infinity => None,
    };
    match found {
        Some(id) => Ok(id.get()),
        None => Err(Error::TimeOutsideLayout {
            at: at.to_string(),
            layout: *layout,
        }),
    }
}

/// The largest ID whose time is at or before `at`.
fn max_id(at: TimestampBound, layout: &Layout) -> i64 {
    let found = match at {
        TimestampBound::NegativeInfinity => None,
        TimestampBound::Finite(time) => layout.max_id(time),
        TimestampBound::Infinity => Some(layout.last_id()),
    };
    found.map_or(BEFORE_ALL, SnowflakeId::get)
}

/// The largest ID whose time is before `at`: the upper end of a half-open range.
/// It never fails, so a range may reach past the layout's end. With `infinity` it
/// is the largest bigint, so that numbers which are no IDs of this layout count.
fn max_id_before(at: TimestampBound, layout: &Layout) -> i64 {
    match at {
        TimestampBound::NegativeInfinity => BEFORE_ALL,
        TimestampBound::Finite(time) => layout
            .last_id_before(time)
            .map_or(BEFORE_ALL, SnowflakeId::get),
        TimestampBound::Infinity => i64::MAX,
    }
}
