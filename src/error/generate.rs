//! The texts for generating IDs: the mark, the clocks and the waits.

use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys::panic::ErrorReport;
use snowflake_id::{Time, WallTime};

use super::new_report;
use crate::clock::time;

pub(super) fn resolved_with_citus(function: &str) -> ErrorReport {
    new_report(
        ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("{function}() is not supported in a database of Citus"),
    )
    .set_detail(
        "A transaction can end on the node that has generated its IDs before its rows are visible on \
         the others.",
    )
    .set_hint(
        "Call snowflake_cluster_resolved_id() in a statement of its own, and pass its result to the \
         query.",
    )
}

pub(super) fn in_recovery() -> ErrorReport {
    new_report(
        ERRCODE_READ_ONLY_SQL_TRANSACTION,
        "cannot generate snowflake IDs during recovery",
    )
    .set_detail("IDs are reserved in the write-ahead log, which a standby cannot write.")
    .set_hint("Run the statement on the primary.")
}

pub(super) fn resolved_in_recovery() -> ErrorReport {
    new_report(
        ERRCODE_FEATURE_NOT_SUPPORTED,
        "cannot determine the resolved ID during recovery",
    )
    .set_detail("Only the primary knows which transactions have generated IDs and are still open.")
    .set_hint(
        "Run SELECT snowflake_resolved_id(), pg_current_wal_insert_lsn() on the primary. Use that \
         ID here when pg_last_wal_replay_lsn() has reached that position.",
    )
}

pub(super) fn mark_missing() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        r#"sequence "snowflake_internal.mark" is missing"#,
    )
    .set_detail("This sequence records the time that is reserved for IDs.")
    .set_hint("Create the extension with CREATE EXTENSION snowflake.")
}

pub(super) fn mark_not_permanent() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        r#"sequence "snowflake_internal.mark" is not permanent"#,
    )
    .set_detail("A crash resets a temporary or unlogged sequence, and IDs would repeat.")
    .set_hint("Run ALTER SEQUENCE snowflake_internal.mark SET LOGGED.")
}

pub(super) fn layout_table_locked() -> ErrorReport {
    new_report(
        ERRCODE_LOCK_NOT_AVAILABLE,
        r#"could not obtain lock on relation "snowflake_internal.accepted_layout""#,
    )
    .set_hint("Try again when no other session uses the table.")
}

pub(super) fn mark_locked(waited_ms: i64) -> ErrorReport {
    new_report(
        ERRCODE_LOCK_NOT_AVAILABLE,
        "could not reserve time for snowflake IDs",
    )
    .set_detail(format!(
        "Another session holds or awaits a lock on sequence \"snowflake_internal.mark\". This \
         session has waited for {waited_ms} ms."
    ))
    .set_hint(
        "Find the other session in pg_locks. The wait is limited to snowflake.max_wait, but to no \
         less than 100 ms.",
    )
}

pub(super) fn mark_set_ahead(wall: WallTime, set_to: WallTime) -> ErrorReport {
    new_report(
        ERRCODE_SYSTEM_ERROR,
        r#"sequence "snowflake_internal.mark" was set ahead of the clock"#,
    )
    .set_detail(format!(
        "IDs up to {} may exist in this database; the clock shows {}.",
        time(set_to),
        time(wall)
    ))
    .set_hint(
        "IDs are available again when the clock reaches that time. To continue now, a superuser \
         can run SELECT snowflake_start_after(last_value - 1) FROM snowflake_internal.mark; this \
         moves the IDs of all databases of the server to that time.",
    )
}

pub(super) fn floor_damaged(file: u32) -> ErrorReport {
    new_report(
        ERRCODE_DATA_CORRUPTED,
        format!("file \"global/{file}\" is damaged"),
    )
    .set_detail(
        "The file records the time up to which the databases of this server had reserved IDs \
         before the server was started.",
    )
    .set_hint(
        "If the clock has not been set back since then, stop the server, remove the file from the \
         data directory, and start the server.",
    )
}

pub(super) fn clock_behind(wall: WallTime, reached: WallTime) -> ErrorReport {
    new_report(
        ERRCODE_SYSTEM_ERROR,
        "the clock is behind IDs that may already have been issued",
    )
    .set_detail(format!(
        "The clock shows {}; IDs up to {} may have been issued.",
        time(wall),
        time(reached)
    ))
    .set_hint(
        "Correct the clock; IDs are then available again. Clock steps of up to \
         snowflake.max_clock_step do not interrupt IDs. If snowflake.layout was changed, restore \
         it, or use a layout whose IDs are greater. If the clock is right, IDs of a wrong time \
         were issued: use a new snowflake.node_id, and set the mark to the present time.",
    )
}

pub(super) fn clock_ahead(wall: WallTime, expected: WallTime) -> ErrorReport {
    new_report(ERRCODE_SYSTEM_ERROR, "the clock has jumped forward")
        .set_detail(format!(
            "The clock shows {}; by the time since the server's start it should show {}.",
            time(wall),
            time(expected)
        ))
        .set_hint(format!(
            "Correct the clock; IDs are then available again. If the clock is right, a superuser \
             can run SELECT snowflake_accept_clock('{}').",
            time(wall)
        ))
}

pub(super) fn clock_not_as_expected(wall: WallTime, expected: WallTime) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        "the clock does not show the expected time",
    )
    .set_detail(format!(
        "The clock shows {}; the expected time is {}, with a tolerance of one minute.",
        time(wall),
        time(expected)
    ))
    .set_hint("Compare the server's clock with a reliable one.")
}

pub(super) fn start_too_far_ahead(id: i64, wall: WallTime, start: Time) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("ID {id} is too far ahead of the clock"),
    )
    .set_detail(format!(
        "IDs would start at {start}; the clock shows {}.",
        time(wall)
    ))
    .set_hint("The limit is snowflake.max_clock_step.")
}

pub(super) fn wait_too_long(
    wall: WallTime,
    next: WallTime,
    needed_ms: i64,
    max_wait_ms: i64,
) -> ErrorReport {
    new_report(
        ERRCODE_SYSTEM_ERROR,
        format!("no snowflake ID will be available for {needed_ms} ms"),
    )
    .set_detail(format!(
        "The clock shows {}, the IDs before {} are used, and snowflake.max_wait is {max_wait_ms} \
         ms.",
        time(wall),
        time(next)
    ))
    .set_hint(
        "Increase snowflake.max_borrow or snowflake.max_wait, or use a layout with more backend or \
         sequence bits.",
    )
}

pub(super) fn before_epoch(wall: Time, epoch: Time) -> ErrorReport {
    new_report(
        ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        "the clock is before the epoch of snowflake.layout",
    )
    .set_detail(format!("The clock shows {wall}; the epoch is {epoch}."))
    .set_hint("Correct the clock, or use a layout with an earlier epoch.")
}

pub(super) fn past_end(end: Time) -> ErrorReport {
    new_report(
        ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
        "the timestamps of snowflake.layout are exhausted",
    )
    .set_detail(format!("The layout cannot represent {end} or later."))
    .set_hint(
        "Use a layout with more timestamp bits, a longer tick or a later epoch. Its IDs must be \
         greater than the existing ones.",
    )
}

pub(super) fn not_superuser(function: &str) -> ErrorReport {
    new_report(
        ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for function {function}"),
    )
    .set_detail("This function can affect the uniqueness of IDs.")
    .set_hint("Only a superuser may call it.")
}

pub(super) fn only_in_copy() -> ErrorReport {
    new_report(
        ERRCODE_FEATURE_NOT_SUPPORTED,
        r#"function "snowflake_internal.copy_nextval" was not called by COPY"#,
    )
    .set_hint("Call snowflake_nextval.")
}

pub(super) fn nothing_issued() -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "snowflake_currval is not yet defined in this session",
    )
    .set_hint("Call snowflake_nextval first, or use INSERT ... RETURNING.")
}

pub(super) fn negative_count(count: i32) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("count must not be negative, but is {count}"),
    )
    .set_hint("Request 0 or more IDs.")
}
