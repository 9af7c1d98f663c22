//! SQL values in Rust: times, and the layout that a text names.

use parking_lot::Mutex;
use pgrx::prelude::*;
use snowflake_id::{Layout, Time};

use crate::encoding;
use crate::error::Error;
use crate::pg::{Call, POSTGRES_EPOCH_MICROS, Text};

/// Postgres' epoch, in microseconds since 1970.
const POSTGRES_EPOCH: i128 = POSTGRES_EPOCH_MICROS as i128;

/// A time as a timestamptz; `None` outside of its range, 4713 BC to 294276 AD.
pub fn timestamptz(time: Time) -> Option<TimestampWithTimeZone> {
    let micros = i64::try_from(time.unix_micros() - POSTGRES_EPOCH).ok()?;
    // The two ends stand for the infinities.
    let is_finite = micros != i64::MIN && micros != i64::MAX;
    TimestampWithTimeZone::try_from(micros)
        .ok()
        .filter(|_| is_finite)
}

/// A timestamptz in microseconds since 1970. The infinities are times that no
/// clock reaches.
pub fn unix_micros(at: TimestampWithTimeZone) -> i64 {
    i64::from(at).saturating_add(POSTGRES_EPOCH_MICROS)
}

/// A timestamptz, two of whose values are no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instant {
    /// `-infinity`, before every time.
    NegativeInfinity,
    /// A time.
    Finite(Time),
    /// `infinity`, after every time.
    Infinity,
}

impl From<TimestampWithTimeZone> for Instant {
    fn from(at: TimestampWithTimeZone) -> Self {
        match i64::from(at) {
            i64::MIN => Self::NegativeInfinity,
            i64::MAX => Self::Infinity,
            micros => Self::Finite(Time::from_unix_micros(i128::from(micros) + POSTGRES_EPOCH)),
        }
    }
}

impl std::fmt::Display for Instant {
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
