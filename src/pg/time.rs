//! Postgres' times.

use std::ffi::{CStr, CString, c_int};
use std::ptr;

use pgrx::prelude::*;
use pgrx::{AnyElement, FromDatum, IntoDatum, direct_function_call, pg_sys};

use super::text::Text;

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

/// A time zone.
#[derive(Clone, Copy)]
pub struct Zone(*mut pg_sys::pg_tz);

impl Zone {
    /// That of the session.
    pub fn of_session() -> Self {
        // SAFETY: set before a session begins, and never null.
        Zone(unsafe { pg_sys::session_timezone })
    }

    /// Its name.
    pub fn name(&self) -> &CStr {
        // SAFETY: a zone's name, which ends with a zero byte and stays as it is.
        unsafe { CStr::from_ptr(pg_sys::pg_get_timezone_name(self.0)) }
    }

    /// Whether its clocks may be changed by more than a day. In a zone of the time zone
    /// database they are not. A POSIX specification can name two offsets of up to 167
    /// hours; no name of the database has two numbers.
    pub fn has_long_changes(&self) -> bool {
        let name = self.name().to_bytes();
        let rules = name.iter().position(|byte| *byte == b',');
        let mut is_quoted = false;
        let mut in_number = false;
        let mut numbers = 0;
        for byte in &name[..rules.unwrap_or(name.len())] {
            is_quoted = *byte == b'<' || is_quoted && *byte != b'>';
            let is_number = !is_quoted && (byte.is_ascii_digit() || *byte == b':');
            numbers += i32::from(is_number && !in_number);
            in_number = is_number;
        }
        numbers > 1
    }

    /// That of this name, if it exists.
    pub fn named(name: Text<'_>) -> Option<Self> {
        let name = name.bytes();
        // Longer ones are no names, and Postgres would write them to the log.
        if name.is_empty() || name.len() >= pg_sys::TZ_STRLEN_MAX as usize || name.contains(&0) {
            return None;
        }
        let name = CString::new(name).ok()?;
        // SAFETY: a name with a zero byte at its end. Postgres keeps the zones for ever.
        let zone = unsafe { pg_sys::pg_tzset(name.as_ptr()) };
        (!zone.is_null()).then_some(Zone(zone))
    }
}

/// What a time can be compared with.
pub enum Value {
    /// A time.
    Instant(TimestampWithTimeZone),
    /// What a clock shows.
    Local(Timestamp),
    /// A day.
    Day(Date),
    /// Seconds since 1970; infinite where no time is so far away.
    Seconds(f64),
}

impl Value {
    /// `None` for values of other types.
    pub fn of(value: &AnyElement) -> Option<Self> {
        let datum = value.datum();
        // SAFETY: the type tells what the datum is; it is not NULL.
        unsafe {
            Some(match value.oid() {
                pg_sys::TIMESTAMPTZOID => Value::Instant(FromDatum::from_datum(datum, false)?),
                pg_sys::TIMESTAMPOID => Value::Local(FromDatum::from_datum(datum, false)?),
                pg_sys::DATEOID => Value::Day(FromDatum::from_datum(datum, false)?),
                pg_sys::FLOAT8OID => Value::Seconds(f64::from_datum(datum, false)?),
                pg_sys::NUMERICOID => {
                    Value::Seconds(seconds(AnyNumeric::from_datum(datum, false)?)?)
                }
                _ => return None,
            })
        }
    }
}

/// A number that no `double precision` can be would be an error: one that is too far away, or that only 0 is near.
fn seconds(number: AnyNumeric) -> Option<f64> {
    const FAR: i64 = 10_000_000_000_000;
    if number.is_nan() {
        Some(f64::NAN)
    } else if number > AnyNumeric::from(FAR) {
        Some(f64::INFINITY)
    } else if number < AnyNumeric::from(-FAR) {
        Some(f64::NEG_INFINITY)
    } else {
        Some(number.try_into().unwrap_or(0.0))
    }
}

/// When a date begins, in microseconds since 2000; infinite if there is no such time.
pub fn beginning_of(date: Date, zone: Zone) -> i64 {
    // Dates are days since 2000. They reach as far back as times, and further ahead.
    const DAY: i64 = 86_400_000_000;
    const END: i64 = 9_223_371_331_200_000_000;
    let at = match pg_sys::DateADT::from(date) {
        i32::MIN => i64::MIN,
        day => match i64::from(day).checked_mul(DAY) {
            Some(at) if at < END => at,
            _ => i64::MAX,
        },
    };
    shown(at, zone)
}

/// When clocks of a time zone show a time, likewise.
pub fn shown_at(timestamp: Timestamp, zone: Zone) -> i64 {
    shown(timestamp.into(), zone)
}

fn shown(timestamp: i64, Zone(zone): Zone) -> i64 {
    if timestamp == i64::MAX || timestamp == i64::MIN {
        return timestamp;
    }
    let mut parts = pg_sys::pg_tm::default();
    let mut fraction = 0;
    // SAFETY: valid out-pointers; null where nothing is wanted. The zone is one.
    unsafe {
        let status = pg_sys::timestamp2tm(
            timestamp,
            ptr::null_mut(),
            &raw mut parts,
            &raw mut fraction,
            ptr::null_mut(),
            ptr::null_mut(),
        );
        if status != 0 {
            return saturated(timestamp, if timestamp < 0 { -1 } else { 1 });
        }
        let seconds_west = pg_sys::DetermineTimeZoneOffset(&raw mut parts, zone);
        timestamp.saturating_add(i64::from(seconds_west) * 1_000_000)
    }
}

fn saturated(at: i64, overflow: c_int) -> i64 {
    match overflow.signum() {
        1 => i64::MAX,
        -1 => i64::MIN,
        _ => at,
    }
}
