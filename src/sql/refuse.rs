//! SQL: an error of the extension's functions in PL/pgSQL, as one of those in Rust.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::encoding::readable;
use crate::pg::{self, Text};

/// Raises an error without the CONTEXT of RAISE, which names the inner functions that
/// led to it.
#[pg_extern(sql = false)]
fn snowflake_refuse(
    sqlstate: Option<Text<'_>>,
    message: Option<Text<'_>>,
    detail: Option<Text<'_>>,
    hint: Option<Text<'_>>,
) {
    let readable = |text: Option<Text<'_>>| text.map(|text| readable(text.bytes()).into_owned());
    // As RAISE without a code, for whatever is no code.
    let code = sqlstate
        .map(|text| PgSqlErrorCode::from(pg::session::sqlstate_number(text.bytes())))
        .filter(|code| *code != PgSqlErrorCode::ERRCODE_INTERNAL_ERROR)
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
