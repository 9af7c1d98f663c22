//! Texts of the database's encoding.
#![allow(unsafe_code)] // asks Postgres which one it is

use std::borrow::Cow;

use pgrx::pg_sys;

/// A text for reading and for messages. What could not be sent back in the
/// database's encoding becomes a question mark.
pub fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() || is_utf8_database() => Cow::Borrowed(text),
        _ => bytes
            .iter()
            .map(|&byte| if byte.is_ascii() { byte as char } else { '?' })
            .collect(),
    }
}

fn is_utf8_database() -> bool {
    // SAFETY: reads a number that is fixed for the session.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}
