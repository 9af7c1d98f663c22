//! Expressions of indexes and constraints, for shadow columns.
//!
//! Postgres' own parser finds the names of columns in an expression. Only these are
//! replaced, so a name in a string, a function of the same name or a name inside
//! another one stays as it is.

use std::ffi::{CStr, CString};

use pgrx::prelude::*;

use crate::pg::{self, EncodedText, Names, Text};

#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.migration_rename_columns(expression text, former name[], present name[]) RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.migration_rename_columns(expression text, former name[], present name[]) IS
    'Used by snowflake_migration_plan: an expression with other names of columns; NULL if it refers to whole rows or is no expression';
"#)]
fn snowflake_migration_rename_columns(
    expression: Text<'_>,
    former: Names,
    present: Names,
) -> Option<EncodedText> {
    // A text has no zero byte.
    let expression = CString::new(expression.bytes()).ok()?;
    let renamed: Vec<(&CString, &CString)> =
        former.as_slice().iter().zip(present.as_slice()).collect();
    rename(&expression, &renamed).map(|text| EncodedText::new(&text))
}

/// The expression with those names replaced; `None` if it refers to columns in
/// another way than by plain names.
fn rename(expression: &CStr, renamed: &[(&CString, &CString)]) -> Option<Vec<u8>> {
    let mut names = pg::column_names(expression)?;
    names.sort_by_key(|name| name.start);
    let expression = expression.to_bytes();
    let mut text = Vec::with_capacity(expression.len());
    let mut done = 0;
    for name in names {
        let Some((_, present)) = renamed.iter().find(|(former, _)| **former == name.name) else {
            continue;
        };
        text.extend_from_slice(expression.get(done..name.start)?);
        text.extend_from_slice(pg::quoted(present).to_bytes());
        done = name.start + identifier_length(expression.get(name.start..)?)?;
    }
    text.extend_from_slice(&expression[done..]);
    Some(text)
}

/// The length of the identifier at the beginning of a text, with its quotes.
/// Letters beyond ASCII have the highest bit in every byte.
fn identifier_length(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        let is_part = |byte: &u8| {
            byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$' || !byte.is_ascii()
        };
        let length = text.iter().take_while(|byte| is_part(byte)).count();
        // Not U&"...", an identifier with escapes, which Postgres does not print.
        let is_plain = text.get(length) != Some(&b'"') && !text[length..].starts_with(b"&\"");
        return (length > 0 && is_plain).then_some(length);
    }
    let mut at = 1;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}
