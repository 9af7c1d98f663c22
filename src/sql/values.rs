//! SQL values in Rust: times, and the layout that a text names.

use parking_lot::Mutex;
use pgrx::prelude::*;
use snowflake_id::{Layout, Time};

use crate::encoding;
use crate::error::Error;
use crate::pg::{Call, Text};

/// A time as a timestamptz, whose finite values are the times.
pub fn timestamptz(time: Time) -> TimestampWithTimeZone {
    TimestampWithTimeZone::try_from(time.postgres_micros()).expect("a Time is a finite timestamptz")
}

/// A timestamptz in microseconds since 1970. The infinities are times that no
/// clock reaches.
pub fn unix_micros(at: TimestampWithTimeZone) -> i64 {
    Time::from_postgres_micros(i64::from(at)).unix_micros()
}

/// A timestamptz, two of whose values are no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampBound {
    /// `-infinity`, before every time.
    NegativeInfinity,
    /// A time.
    Finite(Time),
    /// `infinity`, after every time.
    Infinity,
}

impl From<TimestampWithTimeZone> for TimestampBound {
    fn from(at: TimestampWithTimeZone) -> Self {
        match i64::from(at) {
            i64::MIN => Self::NegativeInfinity,
            i64::MAX => Self::Infinity,
            micros => Self::Finite(Time::from_postgres_micros(micros)),
        }
    }
}

impl std::fmt::Display for TimestampBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NegativeInfinity => f.write_str("-infinity"),
            Self::Finite(time) => time.fmt(f),
            Self::Infinity => f.write_str("infinity"),
        }
    }
}

/// The layout that a function's last argument names.
///
/// If that is a constant, it is parsed at the first call and kept with the
/// call's place in the query. Later calls don't read it.
#[inline]
pub fn layout_named(text: Text<'_>, call: Call<'_>) -> Layout {
    match call.kept_layout() {
        Some(layout) => layout,
        None => parse_layout(text, call).unwrap_or_else(|error| error.report()),
    }
}

/// The text that was parsed last. It is for arguments that are no constant:
/// consecutive rows mostly name the same layout.
static PARSED: Mutex<Option<(Vec<u8>, Layout)>> = Mutex::new(None);

#[inline(never)]
fn parse_layout(text: Text<'_>, call: Call<'_>) -> Result<Layout, Error> {
    let bytes = text.bytes();
    // What is kept is not longer than a layout.
    let key = bytes.trim_ascii();
    let mut parsed = PARSED.lock();
    let layout = match parsed.as_ref() {
        Some((before, layout)) if before == key => *layout,
        _ => {
            let layout = encoding::layout(bytes)?;
            *parsed = Some((key.to_owned(), layout));
            layout
        }
    };
    drop(parsed);
    // Only a true constant: a parameter's value may change while the call's
    // place in the query stays, as in a loop of PL/pgSQL.
    if call.is_last_argument_constant() {
        call.keep_layout(layout);
    }
    Ok(layout)
}
