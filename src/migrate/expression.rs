//! Expressions of indexes and constraints, for shadow columns.
//!
//! Postgres' own parser finds the names in an expression. Only those of columns are
//! replaced, so a name in a string, a function of the same name or a name inside
//! another one stays as it is.
//!
//! An expression as Postgres prints it has no schema before functions, operators,
//! types and collations of pg_catalog. The result is part of statements that run
//! under any search path, which could have a better match. So it names the schema.
//! Operators do not change their precedence by that: Postgres prints parentheses.

use std::ffi::CStr;

use pgrx::check_for_interrupts;
use pgrx::prelude::*;

use crate::error::{Error, or_report};
use crate::pg::parse::NameKind;
use crate::pg::{self, Names, Text, TextResult};

/// Longer expressions are not renamed: any role can pass any text.
const LONGEST_EXPRESSION_BYTES: usize = 1 << 20;

#[pg_extern(sql = false)]
fn snowflake_migrate_rename_columns(
    expression: Text<'_>,
    former: Names<'_>,
    present: Names<'_>,
) -> Option<TextResult> {
    if expression.bytes().len() > LONGEST_EXPRESSION_BYTES {
        return None;
    }
    let text = or_report(rename(expression.to_c_str(), former, present))?;
    Some(TextResult::new(&text))
}

/// The expression with those names replaced; `None` if it refers to columns in
/// another way than by plain names.
///
/// # Errors
/// [`Error::OutOfMemory`].
fn rename(
    expression: &CStr,
    former: Names<'_>,
    present: Names<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(mut names) = pg::parse::plain_names(expression) else {
        return Ok(None);
    };
    names.sort_by_key(|name| name.start);
    let expression = expression.to_bytes();
    let mut text = Vec::new();
    let mut done = 0;
    for name in names {
        check_for_interrupts!();
        let Some(rest) = expression.get(name.start..) else {
            return Ok(None);
        };
        let (length, replacement) = match name.kind {
            NameKind::Column => {
                let mut renamed = former.iter().zip(present.iter());
                let Some((_, present)) =
                    renamed.find(|(former, _)| *former == name.name.as_c_str())
                else {
                    continue;
                };
                let Some(length) = identifier_length(rest) else {
                    return Ok(None);
                };
                (length, pg::parse::quoted(present).into_bytes())
            }
            NameKind::Object => (0, b"pg_catalog.".to_vec()),
            NameKind::Collation if rest.starts_with(b"COLLATE ") => {
                (8, b"COLLATE pg_catalog.".to_vec())
            }
            NameKind::Operator if rest.starts_with(name.name.to_bytes()) => {
                let operator = name.name.to_bytes();
                // Apart from a name before it.
                let qualified = [b" OPERATOR(pg_catalog.", operator, b")"].concat();
                let is_apart = name.start == 0 || expression[name.start - 1] == b' ';
                let qualified = qualified[usize::from(is_apart)..].to_vec();
                (operator.len(), qualified)
            }
            // A word for an operator, like LIKE, which Postgres does not print.
            NameKind::Collation | NameKind::Operator => continue,
        };
        let Some(between) = expression.get(done..name.start) else {
            return Ok(None);
        };
        text.try_reserve(between.len() + replacement.len())?;
        text.extend_from_slice(between);
        text.extend_from_slice(&replacement);
        done = name.start + length;
    }
    let Some(rest) = expression.get(done..) else {
        return Ok(None);
    };
    text.try_reserve(rest.len())?;
    text.extend_from_slice(rest);
    Ok(Some(text))
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
