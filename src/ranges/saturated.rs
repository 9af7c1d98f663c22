//! SQL: a time from what a time can be compared with, moved by days. Where PostgreSQL's
//! own casts and `+` raise an error, the result is infinite: a query that compares a date
//! far away must not fail because of a range that was made of it.

use pgrx::prelude::*;

use crate::pg;

const MICROS_PER_DAY: i64 = 24 * 60 * 60 * 1_000_000;

#[pg_extern(sql = false)]
fn snowflake_saturated(at: TimestampWithTimeZone, days: i32) -> TimestampWithTimeZone {
    moved(at.into(), days)
}

#[pg_extern(sql = false)]
fn snowflake_saturated_timestamp(at: Timestamp, days: i32) -> TimestampWithTimeZone {
    moved(pg::time::shown_at(at), days)
}

#[pg_extern(sql = false)]
fn snowflake_saturated_date(at: Date, days: i32) -> TimestampWithTimeZone {
    moved(pg::time::beginning_of(at), days)
}

/// A time in microseconds since 2000, moved by days of 24 hours.
fn moved(at: i64, days: i32) -> TimestampWithTimeZone {
    let is_infinite = at == i64::MIN || at == i64::MAX;
    let to = if is_infinite {
        at
    } else {
        at.saturating_add(i64::from(days).saturating_mul(MICROS_PER_DAY))
    };
    TimestampWithTimeZone::try_from(to).unwrap_or_else(|_| {
        if to < 0 {
            TimestampWithTimeZone::negative_infinity()
        } else {
            TimestampWithTimeZone::positive_infinity()
        }
    })
}
