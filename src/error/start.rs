//! The texts for node numbers and for the start of the server.

use std::ffi::CStr;
use std::io;

use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;
use snowflake_id::{SnowflakeId, Time, WallTime};

use super::{new_report, sentence};
use crate::clock::time;
use crate::pg::guc::Source;

pub(super) fn not_preloaded() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        r#"snowflake must be loaded via "shared_preload_libraries""#,
    )
    .set_hint(
        "Add \"shared_preload_libraries = 'snowflake'\" (after a comma if other libraries are \
         listed) and \"snowflake.node_id = 0\" (a different number on each server) to \
         postgresql.conf, then restart the server.",
    )
}

pub(super) fn node_not_set() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "snowflake.node_id is not set",
    )
    .set_detail("Each ID contains the node number of the server that issued it.")
    .set_hint(
        "Add \"snowflake.node_id = 0\" to postgresql.conf and restart the server. If several \
         servers generate IDs, give each one a different number.",
    )
}

pub(super) fn node_conflict(node: u32) -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "this server issues no snowflake IDs because another server has its node number",
    )
    .set_detail(format!(
        "A row with node number {node} came from another server, and snowflake.on_node_conflict is \
         \"stop\"."
    ))
    .set_hint(
        "Give one of the servers another node number. If this server keeps its number, a superuser \
         can run SELECT snowflake_accept_node_id().",
    )
}

pub(super) fn server_file_io(name: &str, error: &io::Error) -> ErrorReport {
    new_report(
        ERRCODE_IO_ERROR,
        format!("could not write file \"{name}\": {error}"),
    )
    .set_detail("The node number was not accepted.")
    .set_hint("Make sure the server can write to its data directory.")
}

pub(super) fn conflict_ahead(id: SnowflakeId, wall: WallTime, at: Time) -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot continue after ID {id}, which is too far ahead of the clock"),
    )
    .set_detail(format!(
        "A row with this ID came from another server. The time of the ID is {at}; the clock shows \
         {}. The limit is snowflake.lease.",
        time(wall)
    ))
    .set_hint(format!(
        "If another server issued the ID, run SELECT snowflake_start_after({id}) first. If the row \
         was written by hand, delete it and run SELECT snowflake_accept_node_id({id})."
    ))
}

pub(super) fn not_the_conflict(id: i64) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("ID {id} cannot be ignored"),
    )
    .set_detail(
        "Only the ID that snowflake_accept_node_id() reports as too far ahead of the clock can be \
         ignored.",
    )
}

pub(super) fn watch_is_a_trigger() -> ErrorReport {
    new_report(
        ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "function \"snowflake_internal.watch\" must be called by an AFTER INSERT trigger for each \
         row",
    )
    .set_hint("Use CALL snowflake_watch(...).")
}

/// A sentence on where a setting is set; empty if that is unknown.
pub fn place(name: &CStr, source: Option<&Source>) -> String {
    let name = name.to_string_lossy();
    match source {
        Some(Source::Line { file, number }) => {
            format!("{name} is set in \"{file}\", line {number}.")
        }
        Some(Source::CommandLine) => format!("{name} is set on the command line."),
        None => String::new(),
    }
}

/// Ends the start of the server because of an invalid setting. With a default in
/// its place, the server would issue other IDs than its configuration demands.
#[cold]
#[track_caller]
pub fn refuse_to_start(message: String, detail: String, place: &str, hint: String) -> ! {
    let detail = format!("{} {place}", sentence(&detail));
    new_report(ERRCODE_INVALID_PARAMETER_VALUE, message)
        .set_detail(detail.trim_end())
        .set_hint(hint)
        .report(PgLogLevel::FATAL);
    unreachable!("a FATAL does not return");
}
