//! Postgres' times.

use std::ffi::{CStr, c_int};

use pgrx::prelude::*;
use pgrx::{IntoDatum, direct_function_call, pg_sys};

/// 2000-01-01T00:00:00Z, the epoch of Postgres' times, in microseconds since 1970.
pub const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A time as Postgres prints it in this session.
pub fn printed(at: TimestampWithTimeZone) -> String {
    // SAFETY: the output function of the argument's type; its text is copied
    // at once.
    let text: Option<&CStr> =
        unsafe { direct_function_call(pg_sys::timestamptz_out, &[at.into_datum()]) };
    text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// When a date begins in the session's time zone, in microseconds since 2000; infinite
/// if there is no such time.
pub fn beginning_of(date: Date) -> i64 {
    let mut overflow: c_int = 0;
    // SAFETY: a valid out-pointer.
    let at = unsafe { pg_sys::date2timestamptz_opt_overflow(date.into(), &raw mut overflow) };
    saturated(at, overflow)
}

/// When clocks of the session's time zone show a time, likewise.
pub fn shown_at(timestamp: Timestamp) -> i64 {
    let mut overflow: c_int = 0;
    // SAFETY: a valid out-pointer.
    let at =
        unsafe { pg_sys::timestamp2timestamptz_opt_overflow(timestamp.into(), &raw mut overflow) };
    saturated(at, overflow)
}

fn saturated(at: i64, overflow: c_int) -> i64 {
    match overflow.signum() {
        1 => i64::MAX,
        -1 => i64::MIN,
        _ => at,
    }
}
