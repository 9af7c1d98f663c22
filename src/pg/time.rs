//! Postgres' times.

use std::ffi::CStr;

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
