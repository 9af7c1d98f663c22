//! Texts of the database's encoding.

use std::borrow::Cow;

use snowflake_id::{Layout, LayoutError};

use crate::error::Error;
use crate::pg;

/// The part of a text that a message shows, in characters. A text may have 1 GB.
const LONGEST_SHOWN_CHARACTERS: usize = 200;

/// The longest character of any encoding, bytes.
const LONGEST_CHARACTER_BYTES: usize = 4;

/// A text for parsing. A byte that could not be sent back in the database's encoding
/// becomes a question mark.
pub fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() || pg::session::is_utf8_database() => Cow::Borrowed(text),
        _ => {
            let mut text = String::new();
            if text.try_reserve_exact(bytes.len()).is_err() {
                Error::OutOfMemory.report();
            }
            text.extend(
                bytes
                    .iter()
                    .map(|&byte| if byte.is_ascii() { byte as char } else { '?' }),
            );
            Cow::Owned(text)
        }
    }
}

/// A text for a message, cut if it is long.
pub fn shown(bytes: &[u8]) -> String {
    cut(bytes, LONGEST_SHOWN_CHARACTERS)
}

/// A text of at most so many characters, and three dots if it was longer.
pub fn cut(bytes: &[u8], longest_characters: usize) -> String {
    let mut end = bytes
        .len()
        .min(longest_characters * LONGEST_CHARACTER_BYTES);
    // Not within a character of UTF-8.
    while end > 0 && bytes.get(end).is_some_and(|&byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    let beginning = readable(&bytes[..end]);
    let mut characters = beginning.chars();
    let mut text: String = characters.by_ref().take(longest_characters).collect();
    if end < bytes.len() || characters.next().is_some() {
        text.push_str("...");
    }
    text
}

/// The layout that a text names.
///
/// # Errors
/// [`Error::InvalidLayout`].
pub fn layout(bytes: &[u8]) -> Result<Layout, Error> {
    let trimmed = bytes.trim_ascii();
    let parsed = if trimmed.len() > Layout::LONGEST_TEXT_BYTES {
        Err(LayoutError::TooLong)
    } else {
        readable(trimmed).parse::<Layout>()
    };
    parsed.map_err(|reason| Error::InvalidLayout {
        text: shown(bytes),
        reason,
    })
}
