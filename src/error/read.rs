//! The texts for what IDs consist of: layouts, fields, times and encodings.

use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_id::{Encoding, FieldError, Layout, LayoutError, TextError, presets};

use super::{new_report, sentence};

pub(super) fn servers_out_of_range(servers: i32) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("no layout has node numbers for {servers} servers"),
    )
    .set_detail("The range is 1 to 16777216.")
    .set_hint("Count all servers that may generate IDs: standbys and replacements too.")
}

pub(super) fn invalid_layout(text: &str, reason: &LayoutError) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid snowflake layout: \"{text}\""),
    )
    .set_detail(sentence(&reason.to_string()))
    .set_hint(layout_hint())
}

pub(super) fn field_out_of_range(error: FieldError) -> ErrorReport {
    new_report(
        ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!(
            "{} {} is out of range for the layout",
            error.name, error.value
        ),
    )
    .set_detail(format!("The range is 0 to {}.", error.max))
}

pub(super) fn negative_id(id: i64) -> ErrorReport {
    new_report(
        ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{id} is not a snowflake ID"),
    )
    .set_detail("Snowflake IDs are never negative.")
}

pub(super) fn id_outside_layout(id: i64, bits: u32) -> ErrorReport {
    new_report(
        ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{id} is out of range for the layout"),
    )
    .set_detail(format!("IDs of this layout have {bits} bits."))
    .set_hint("Specify the layout that the ID was generated with.")
}

pub(super) fn time_outside_layout(at: &str, layout: &Layout) -> ErrorReport {
    new_report(
        ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{at} is out of range for the layout"),
    )
    .set_detail(format!(
        "The layout \"{layout}\" has IDs from {} to {}.",
        layout.epoch(),
        layout.time_of(layout.last_tick())
    ))
}

pub(super) fn invalid_encoding(name: &str) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("unrecognized encoding: \"{name}\""),
    )
    .set_hint("Use \"base32\" or \"base62\".")
}

pub(super) fn invalid_text(text: &str, reason: TextError) -> ErrorReport {
    let (code, message) = match reason {
        TextError::TooLarge { .. } => (
            ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{text}\" is out of range for a snowflake ID"),
        ),
        _ => (
            ERRCODE_INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for snowflake ID: \"{text}\""),
        ),
    };
    let report = new_report(code, message).set_detail(sentence(&reason.to_string()));
    match hint_for_text(text, reason) {
        Some(hint) => report.set_hint(hint),
        None => report,
    }
}

/// What a text that is no ID in this encoding probably is.
fn hint_for_text(text: &str, reason: TextError) -> Option<String> {
    let (TextError::Length { encoding, .. } | TextError::Character { encoding, .. }) = reason
    else {
        return None;
    };
    if text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_ok() {
        return Some(format!(
            "If the text is a decimal number, use '{text}'::bigint."
        ));
    }
    let other = Encoding::ALL
        .into_iter()
        .find(|&other| other != encoding && other.decode(text).is_ok())?;
    Some(format!(
        "A text of {} characters is {other}: pass '{other}'.",
        other.width()
    ))
}

pub(super) fn out_of_memory() -> ErrorReport {
    new_report(ERRCODE_OUT_OF_MEMORY, "out of memory")
        .set_detail("A copy of a text could not be allocated.")
}

/// The hint for a text that is not a valid layout.
pub fn layout_hint() -> String {
    let names: Vec<_> = presets().iter().map(|preset| preset.name).collect();
    format!(
        "Use for example \"timestamp:41 node:6 backend:4 sequence:12 tick:1ms \
         epoch:2025-01-01T00:00:00Z\", or one of the presets {}.",
        names.join(", ")
    )
}
