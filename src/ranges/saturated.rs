//! SQL: a time from what a time can be compared with, moved by microseconds. Where
//! PostgreSQL's own casts and `+` raise an error, the result is infinite: a query that
//! compares a date far away must not fail because of a range that was made of it.

use pgrx::AnyElement;
use pgrx::prelude::*;

use crate::pg::Text;
use crate::pg::time::{self, Value, Zone};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// In the session's time zone.
#[pg_extern(sql = false)]
fn snowflake_saturated(at: AnyElement, micros: i64) -> Option<TimestampWithTimeZone> {
    moved(&at, micros, Zone::of_session())
}

/// In a named time zone. Of a zone that does not exist it is NULL.
#[pg_extern(sql = false)]
fn snowflake_saturated_in_zone(
    at: AnyElement,
    micros: i64,
    zone: Text<'_>,
) -> Option<TimestampWithTimeZone> {
    moved(&at, micros, Zone::named(zone)?)
}

/// In microseconds since 2000. `None` for other types.
fn instant(at: &AnyElement, zone: Zone) -> Option<i64> {
    Some(match Value::of(at)? {
        Value::Instant(at) => at.into(),
        Value::Local(at) => time::shown_at(at, zone),
        Value::Day(date) => time::beginning_of(date, zone),
        Value::Seconds(seconds) => of_epoch(seconds),
    })
}

/// PostgreSQL sorts NaN as the highest number.
fn of_epoch(seconds: f64) -> i64 {
    if seconds.is_nan() {
        return i64::MAX;
    }
    // `as` saturates.
    let micros = (seconds * MICROS_PER_SECOND as f64) as i64;
    match micros {
        i64::MAX | i64::MIN => micros,
        _ => micros.saturating_sub(time::POSTGRES_EPOCH_MICROS),
    }
}

/// A time as a clock of a zone shows it, moved.
fn moved(at: &AnyElement, micros: i64, zone: Zone) -> Option<TimestampWithTimeZone> {
    /// A range is moved by a day for a change of clocks.
    const DAYS_OF_LONG_CHANGES: i64 = 2 * 7 + 1;
    let at = instant(at, zone)?;
    let micros = if zone.has_long_changes() {
        micros.saturating_mul(DAYS_OF_LONG_CHANGES)
    } else {
        micros
    };
    let is_infinite = at == i64::MIN || at == i64::MAX;
    let to = if is_infinite {
        at
    } else {
        at.saturating_add(micros)
    };
    Some(TimestampWithTimeZone::try_from(to).unwrap_or_else(|_| {
        if to < 0 {
            TimestampWithTimeZone::negative_infinity()
        } else {
            TimestampWithTimeZone::positive_infinity()
        }
    }))
}
