//! The texts for node numbers and for the start of the server.

use std::ffi::CStr;
use std::io;

use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;
use snowflake_id::{SnowflakeId, Time, WallTime};

use super::{new_report, sentence};
use crate::clock::time;
use crate::pg;
use crate::pg::guc::Source;
use crate::shared;

#[cfg(not(feature = "dsm_registry"))]
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
    .set_hint(if shared::is_preloaded() {
        "Add \"snowflake.node_id = 0\" to postgresql.conf and restart the server. If several \
         servers generate IDs, give each one a different number."
    } else {
        "As a superuser, run ALTER SYSTEM SET snowflake.node_id = 0, then SELECT pg_reload_conf(). If \
         several servers generate IDs, give each one a different number."
    })
}

#[cfg(feature = "dsm_registry")]
pub(super) fn configuration_unreadable() -> ErrorReport {
    new_report(
        ERRCODE_CONFIG_FILE_ERROR,
        "could not read the layout and the node number from the server's configuration",
    )
    .set_detail("The configuration files contain errors, or cannot be read.")
    .set_hint("A superuser sees the errors in pg_file_settings. Correct them, and try again.")
}

#[cfg(feature = "dsm_registry")]
pub(super) fn other_library() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the version of snowflake was changed while the server was running",
    )
    .set_detail(
        "The shared memory of this server has the form of the former version, which sessions may \
         still use.",
    )
    .set_hint("Restart the server.")
}

#[cfg(feature = "dsm_registry")]
pub(super) fn memory_not_made(code: pgrx::PgSqlErrorCode, message: &str) -> ErrorReport {
    // The core's own check of the size has none.
    let code = match code {
        ERRCODE_INTERNAL_ERROR => ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        code => code,
    };
    new_report(code, "could not make the shared memory of snowflake")
        .set_detail(sentence(message))
        .set_hint(
            "Restart the server. To have the memory from the start on, add snowflake to \
             shared_preload_libraries.",
        )
}

pub(super) fn leader_without_library() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "a parallel worker cannot issue a snowflake ID for a session that has not loaded the library",
    )
    .set_detail("Readers of new rows learn from that session when its transaction has ended.")
    .set_hint(
        "Run LOAD 'snowflake' in the session first, or ALTER DATABASE ... SET \
         session_preload_libraries = 'snowflake'.",
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

/// A sentence on where a setting is set; empty if that is unknown, or not for this role: as
/// in `pg_settings`.
pub fn place(name: &CStr, source: Option<&Source>) -> String {
    let name = name.to_string_lossy();
    match source {
        _ if !pg::server::is_preloading() && !pg::privileges::may_see_settings() => String::new(),
        Some(Source::Line { file, number }) => {
            format!("{name} is set in \"{file}\", line {number}.")
        }
        Some(Source::CommandLine) => format!("{name} is set on the command line."),
        None => String::new(),
    }
}

/// Ends the start of the server, or the call that decides what IDs are made of, because of
/// an invalid setting. With a default in its place, the server would issue other IDs than
/// its configuration demands.
#[cold]
#[track_caller]
pub fn refuse(message: String, detail: String, place: &str, hint: String) -> ! {
    let detail = format!("{} {place}", sentence(&detail));
    let level = if pg::server::is_preloading() {
        PgLogLevel::FATAL
    } else {
        PgLogLevel::ERROR
    };
    new_report(ERRCODE_INVALID_PARAMETER_VALUE, message)
        .set_detail(detail.trim_end())
        .set_hint(hint)
        .report(level);
    unreachable!("an error does not return");
}
