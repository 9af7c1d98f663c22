//! The texts for migrations: their statements, their locks and their triggers.

use pgrx::PgSqlErrorCode::*;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::ErrorReport;

use super::new_report;

pub(super) fn no_relation(relation: pg_sys::Oid) -> ErrorReport {
    new_report(
        ERRCODE_UNDEFINED_TABLE,
        format!("relation with OID {} does not exist", relation.to_u32()),
    )
}

pub(super) fn not_a_table(relation: &str) -> ErrorReport {
    new_report(
        ERRCODE_WRONG_OBJECT_TYPE,
        format!("\"{relation}\" is not a table"),
    )
}

pub(super) fn not_owner(table: &str) -> ErrorReport {
    new_report(
        ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("must be owner of table {table}"),
    )
}

pub(super) fn lock_denied(table: &str) -> ErrorReport {
    new_report(
        ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for table {table}"),
    )
}

pub(super) fn role_denied(role: &str) -> ErrorReport {
    new_report(
        ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("must be able to SET ROLE \"{role}\""),
    )
}

pub(super) fn invalid_lock_mode(mode: &str) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid lock mode: \"{mode}\""),
    )
    .set_hint("Use SHARE UPDATE EXCLUSIVE, SHARE ROW EXCLUSIVE or ACCESS EXCLUSIVE.")
}

pub(super) fn invalid_trigger_state(state: &str) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid state of a trigger: \"{state}\""),
    )
    .set_hint("Use O, D, R or A, as in pg_trigger.tgenabled.")
}

pub(super) fn client_gone() -> ErrorReport {
    new_report(ERRCODE_CONNECTION_FAILURE, "connection to client lost")
        .set_detail("The step was waiting for locks. Nothing was changed.")
        .set_hint("Request the plan again.")
}

// No other error has its SQLSTATE, which PL/pgSQL's OTHERS catches.
pub(super) fn trial_too_long() -> ErrorReport {
    new_report(
        ERRCODE_T_R_STATEMENT_COMPLETION_UNKNOWN,
        "the trial took too long",
    )
}

pub(super) fn null_statement() -> ErrorReport {
    new_report(ERRCODE_NULL_VALUE_NOT_ALLOWED, "statement must not be null")
}

pub(super) fn not_an_alteration() -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        "the statement alters no table",
    )
    .set_hint("Pass one ALTER TABLE statement of a plan.")
}

pub(super) fn name_moved(name: &str) -> ErrorReport {
    new_report(
        ERRCODE_T_R_SERIALIZATION_FAILURE,
        format!("\"{name}\" is the name of another relation now"),
    )
    .set_detail(
        "A schema or a table was renamed or replaced while the statement was prepared. Statements \
         with the privileges of a table's owner run on the table that was meant.",
    )
    .set_hint("Run it again.")
}

pub(super) fn invalid_search_path(path: &str) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("invalid search path: \"{path}\""),
    )
    .set_hint("Pass pg_catalog.current_setting('search_path').")
}

pub(super) fn search_path_too_long() -> ErrorReport {
    new_report(ERRCODE_PROGRAM_LIMIT_EXCEEDED, "search_path is too long")
        .set_detail("A migration runs with paths of up to 64 kB.")
        .set_hint("Set search_path to the schemas that the tables' functions need.")
}

pub(super) fn not_one_statement(count: i32) -> ErrorReport {
    new_report(
        ERRCODE_SYNTAX_ERROR,
        format!("text must contain exactly one statement, but contains {count}"),
    )
    .set_detail("The statement runs with the privileges of the table's owner.")
    .set_hint("Run the statements one by one.")
}

pub(super) fn statement_refused(code: &str) -> ErrorReport {
    new_report(
        ERRCODE_FEATURE_NOT_SUPPORTED,
        "cannot run this statement with the privileges of a table's owner",
    )
    .set_detail(format!("SPI returned {code}."))
    .set_hint(
        "COPY from or to a client and statements that end a transaction cannot run in functions.",
    )
}

pub(super) fn not_a_trigger(function: &str) -> ErrorReport {
    new_report(
        ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        format!("function \"{function}\" was not called by trigger manager"),
    )
}

pub(super) fn wrong_trigger(trigger: &str) -> ErrorReport {
    new_report(
        ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        format!("trigger \"{trigger}\" must fire before INSERT or UPDATE for each row"),
    )
    .set_hint("The plan of snowflake_migrate.plan() creates this trigger correctly.")
}

pub(super) fn shadow_arguments(trigger: &str) -> ErrorReport {
    new_report(
        ERRCODE_INVALID_PARAMETER_VALUE,
        format!("trigger \"{trigger}\" must name two columns"),
    )
    .set_detail("The columns are an integer or smallint column and its shadow, a bigint column.")
    .set_hint("The plan of snowflake_migrate.plan() creates this trigger correctly.")
}

pub(super) fn shadow_missing(table: &str, column: &str) -> ErrorReport {
    new_report(
        ERRCODE_UNDEFINED_COLUMN,
        format!("column \"{column}\" of relation \"{table}\" does not exist"),
    )
    .set_detail("The trigger of an ongoing migration depends on this column.")
    .set_hint(
        "If the column was renamed, restore its name. Otherwise cancel the migration with \
         snowflake_migrate.revert().",
    )
}

pub(super) fn shadow_type(column: &str) -> ErrorReport {
    new_report(
        ERRCODE_DATATYPE_MISMATCH,
        format!("column \"{column}\" has the wrong type for a migration"),
    )
    .set_detail("The shadow of an integer or smallint column is a bigint column.")
}
