//! The texts for the extension's own tables, and for the rows of a dump that are
//! restored into them.

use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys::panic::ErrorReport;

use super::new_report;

pub(super) fn records_missing(table: &str) -> ErrorReport {
    new_report(
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("table \"{table}\" is missing or was altered"),
    )
    .set_detail(
        "The table must be in the internal schema of its extension, as that one creates it.",
    )
    .set_hint(
        "If its owner is no superuser any more, use ALTER TABLE ... OWNER TO. \
         Otherwise drop the extension, and create it again.",
    )
}

pub(super) fn null_in_record(table: &str, column: &str) -> ErrorReport {
    new_report(
        ERRCODE_NOT_NULL_VIOLATION,
        format!(
            "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
        ),
    )
}

pub(super) fn too_many_keys(keys: usize, most: usize) -> ErrorReport {
    new_report(
        ERRCODE_PROGRAM_LIMIT_EXCEEDED,
        format!("cannot migrate more than {most} keys together online"),
    )
    .set_detail(format!("{keys} keys are specified."))
    .set_hint("Migrate the tables in several sets.")
}

pub(super) fn keys_differ(targets: usize, columns: usize) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("there are {targets} tables, but {columns} columns"),
    )
}

pub(super) fn invalid_kind(kind: &str) -> ErrorReport {
    new_report(
        ERRCODE_CHECK_VIOLATION,
        format!("invalid kind of default: \"{kind}\""),
    )
    .set_hint(
        "Use \"serial\", \"identity always\", \"identity by default\", \"default\" or \"none\".",
    )
}

pub(super) fn records_guarded(table: &str) -> ErrorReport {
    new_report(
        ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for table {table}"),
    )
    .set_detail("The table holds the state of migrations. Privileges to change it have no effect.")
    .set_hint("Use the extension's functions. Only a superuser can change the table with SQL.")
}

pub(super) fn restore_denied() -> ErrorReport {
    new_report(
        ERRCODE_INSUFFICIENT_PRIVILEGE,
        "permission denied for table restore",
    )
    .set_detail(
        "Rows of this table are those of a restored dump. They raise the mark of the database and \
         record migrations.",
    )
    .set_hint(
        "Restore the dump as the owner of the database or of the extension, or as a superuser.",
    )
}

pub(super) fn restore_is_a_trigger() -> ErrorReport {
    new_report(
        ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "function \"restore_row\" was not called by the trigger of table \"restore\" of its extension",
    )
}

pub(super) fn invalid_restored_record(record: &str) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("unrecognized record in a restored dump: \"{record}\""),
    )
    .set_detail("The records are \"mark\" and \"layout\".")
    .set_hint("Restore a dump of a later version into that version of the extension.")
}
