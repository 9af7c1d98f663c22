//! Texts of the database's encoding.

use std::borrow::Cow;

use crate::pg;

/// A text for parsing and for messages. A byte that could not be sent back in the
/// database's encoding becomes a question mark.
pub fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() || pg::is_utf8_database() => Cow::Borrowed(text),
        _ => bytes
            .iter()
            .map(|&byte| if byte.is_ascii() { byte as char } else { '?' })
            .collect(),
    }
}
