//! SQL: an error of the extension's functions in PL/pgSQL, as one of those in Rust.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::encoding::cut;
use crate::pg::{self, Text};

/// The part of a text that an error has. Any role can pass a text of 1 GB, for which
/// there may be no memory.
const LONGEST_CHARACTERS: usize = 100_000;

/// Raises an error without the CONTEXT of RAISE, which names the inner functions that
/// led to it.
#[pg_extern(sql = false)]
fn snowflake_refuse(
    sqlstate: Option<Text<'_>>,
    message: Option<Text<'_>>,
    detail: Option<Text<'_>>,
    hint: Option<Text<'_>>,
) {
    let readable = |text: Option<Text<'_>>| text.map(|text| cut(text.bytes(), LONGEST_CHARACTERS));
    // As RAISE without a code, for whatever is no code.
    let code = sqlstate
        .map(|text| PgSqlErrorCode::from(pg::session::sqlstate_number(text.bytes())))
        .filter(|code| {
            use PgSqlErrorCode::{ERRCODE_INTERNAL_ERROR, ERRCODE_SUCCESSFUL_COMPLETION};
            ![ERRCODE_INTERNAL_ERROR, ERRCODE_SUCCESSFUL_COMPLETION].contains(code)
        })
        .unwrap_or(PgSqlErrorCode::ERRCODE_RAISE_EXCEPTION);
    let mut report = ErrorReport::new(code, readable(message).unwrap_or_default(), "snowflake");
    if let Some(detail) = readable(detail) {
        report = report.set_detail(detail);
    }
    if let Some(hint) = readable(hint) {
        report = report.set_hint(hint);
    }
    pg::session::forget_error_context();
    report.report(PgLogLevel::ERROR);
}
