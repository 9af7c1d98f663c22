//! The errors of the extension and their texts.
//!
//! Modules return [`Error`]. Only [`Error::report`] turns one into an SQLSTATE,
//! a message, a detail and a hint, so that all texts are in one place. They
//! follow PostgreSQL's error style guide: the message is in lower case without
//! a full stop; detail and hint are sentences.

use std::collections::TryReserveError;

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_id::{
    FieldError, Layout, LayoutError, SnowflakeId, TextError, Time, WallTime, presets,
};

use crate::clock::time;

/// Why a call fails.
#[derive(Debug)]
pub enum Error {
    /// An ID was requested, and the library is not preloaded.
    NotPreloaded,
    /// The layout has node bits, and `snowflake.node_id` is not set.
    NodeNotSet,
    /// Another server has this node number, and `snowflake.on_node_conflict` has
    /// stopped this one.
    NodeConflict(u32),
    /// The server's file could not be written.
    ServerFileIo {
        /// The file's name.
        name: String,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// An ID was requested on a standby, or before the end of recovery.
    InRecovery,
    /// The resolved ID was requested on a standby, or before the end of recovery.
    ResolvedInRecovery,
    /// The sequence `snowflake_internal.mark` does not exist.
    MarkMissing,
    /// The mark would not survive a crash, or would not reach a standby.
    MarkNotPermanent,
    /// The table of the accepted layout is locked or does not exist.
    LayoutTableLocked,
    /// Another session held the lock on the mark for longer than this call may
    /// wait.
    MarkLocked {
        /// How long this call has waited, milliseconds.
        waited_ms: i64,
    },
    /// The mark was set by more than a lease ahead of the clock.
    MarkSetAhead {
        /// The wall clock.
        wall: WallTime,
        /// The mark's time.
        set_to: WallTime,
    },
    /// The contents of the floor's file are not valid.
    FloorDamaged,
    /// A statement that alters no table.
    NotAnAlteration,
    /// A statement's table is not the one that was meant when the statement was made.
    NameMoved(String),
    /// The clock is behind by more than `snowflake.max_clock_step`.
    ClockBehind {
        /// The wall clock.
        wall: WallTime,
        /// The time up to which IDs may have been issued.
        reached: WallTime,
    },
    /// The clock has jumped forward by more than `snowflake.max_clock_step`.
    ClockAhead {
        /// The wall clock.
        wall: WallTime,
        /// The time without the jump.
        expected: WallTime,
    },
    /// The time passed to `snowflake_accept_clock` is not the clock's.
    ClockNotAsExpected {
        /// The wall clock.
        wall: WallTime,
        /// The time that was passed.
        expected: WallTime,
    },
    /// `snowflake_start_after` would move IDs too far ahead of the clock.
    StartTooFarAhead {
        /// The ID.
        id: i64,
        /// The wall clock.
        wall: WallTime,
        /// The time at which IDs would start.
        start: Time,
    },
    /// `snowflake_accept_node_id` would move IDs too far ahead of the clock.
    ConflictAhead {
        /// The ID of another server's row.
        id: SnowflakeId,
        /// The wall clock.
        wall: WallTime,
        /// The ID's time.
        at: Time,
    },
    /// The ID passed to `snowflake_accept_node_id` is not the one that it reports.
    NotTheConflict(i64),
    /// A role that is not a superuser called a function for superusers.
    NotSuperuser(&'static str),
    /// The wait for an ID would be longer than `snowflake.max_wait`.
    WaitTooLong {
        /// The wall clock.
        wall: WallTime,
        /// The time of the next available ID.
        next: WallTime,
        /// The length of the wait, milliseconds.
        needed_ms: i64,
        /// `snowflake.max_wait`, milliseconds.
        max_wait_ms: i32,
    },
    /// The clock is before the layout's epoch.
    BeforeEpoch {
        /// The wall clock.
        wall: Time,
        /// The layout's epoch.
        epoch: Time,
    },
    /// The layout's timestamp bits are used up.
    PastEnd {
        /// The first time that the layout cannot represent.
        end: Time,
    },
    /// COPY's function was called directly.
    OnlyInCopy,
    /// The trigger function of watched tables was called in another way.
    WatchIsATrigger,
    /// The trigger function of shadow columns was called directly.
    NotATrigger,
    /// The trigger with this name calls that function and is not a row trigger
    /// that fires before INSERT or UPDATE.
    WrongTrigger(String),
    /// The trigger with this name passes that function other than two columns.
    ShadowArguments(String),
    /// A column that such a trigger names does not exist.
    ShadowMissing {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column that such a trigger names has another type.
    ShadowType(String),
    /// The session has not generated an ID.
    NothingIssued,
    /// A count below zero.
    NegativeCount(i32),
    /// No layout is offered for so many servers.
    ServersOutOfRange(i32),
    /// The text is not a valid layout.
    InvalidLayout {
        /// The text.
        text: String,
        /// The reason.
        reason: LayoutError,
    },
    /// The value does not fit its field.
    FieldOutOfRange(FieldError),
    /// A bigint below zero.
    NegativeId(i64),
    /// The ID has bits above the layout's fields.
    IdOutsideLayout {
        /// The ID.
        id: i64,
        /// The layout's bits.
        bits: u32,
    },
    /// A timestamptz cannot represent the time of this ID.
    TimeOutOfRange(i64),
    /// The layout has no ID with this time.
    TimeOutsideLayout {
        /// The time.
        at: String,
        /// The layout.
        layout: Layout,
    },
    /// The caller does not have the privileges of the table's owner.
    NotOwner(String),
    /// The relation does not exist.
    NoRelation(pg_sys::Oid),
    /// The relation cannot be locked as a table.
    NotATable(String),
    /// The caller may not lock this table.
    LockDenied(String),
    /// The caller cannot run statements as this role.
    RoleDenied(String),
    /// Migrations do not use this lock mode.
    InvalidLockMode(String),
    /// The statement to run is NULL.
    NullStatement,
    /// A trigger has no such state.
    InvalidTriggerState(String),
    /// A search path that is not a list of names.
    InvalidSearchPath(String),
    /// The text to run has this number of statements, not one.
    NotOneStatement(i32),
    /// Functions cannot run this statement; SPI's name for the reason.
    StatementRefused(String),
    /// A table of migrations is missing, or was altered.
    RecordsMissing(&'static str),
    /// A row for such a table has NULL in a column that requires a value.
    NullInRecord {
        /// The table.
        table: &'static str,
        /// The column.
        column: String,
    },
    /// A row of progress names more keys than a migration can have.
    TooManyKeys {
        /// How many it names.
        keys: usize,
        /// How many a migration can have.
        most: usize,
    },
    /// A row of progress does not name one column for each table.
    KeysDiffer {
        /// How many tables it names.
        targets: usize,
        /// How many columns.
        columns: usize,
    },
    /// `snowflake_internal.origins` does not allow this kind of default.
    InvalidKind(String),
    /// A role that is not a superuser tried to change such a table with SQL.
    RecordsGuarded(String),
    /// A role that is not a superuser tried to create a trigger on such a table.
    TriggersGuarded,
    /// The trigger function that guards these tables was called directly.
    GuardIsATrigger,
    /// A role that owns neither the database nor the extension tried to restore a
    /// row of a dump.
    RestoreDenied,
    /// The trigger function that applies such rows was called for something else.
    RestoreIsATrigger,
    /// There are no such rows.
    InvalidRestoredRecord(String),
    /// No encoding has this name.
    InvalidEncoding(String),
    /// The text is not a valid ID.
    InvalidText {
        /// The text.
        text: String,
        /// The reason.
        reason: TextError,
    },
    /// There is no memory for what a text needs.
    OutOfMemory,
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Error::OutOfMemory
    }
}

impl Error {
    /// Raises the error; does not return.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub fn report(self) -> ! {
        self.into_report().report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return");
    }

    fn into_report(self) -> ErrorReport {
        use PgSqlErrorCode::*;
        let new = |code, message: String| ErrorReport::new(code, message, "snowflake");
        match self {
            Error::NotPreloaded => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                r#"snowflake must be loaded via "shared_preload_libraries""#.into(),
            )
            .set_hint(
                "Add \"shared_preload_libraries = 'snowflake'\" (after a comma if other libraries \
                 are listed) and \"snowflake.node_id = 0\" (a different number on each server) \
                 to postgresql.conf, then restart the server.",
            ),
            Error::NodeNotSet => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake.node_id is not set".into(),
            )
            .set_detail("Each ID contains the node number of the server that issued it.")
            .set_hint(
                "Add \"snowflake.node_id = 0\" to postgresql.conf and restart the server. If \
                 several servers generate IDs, give each one a different number.",
            ),
            Error::NodeConflict(node) => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this server issues no snowflake IDs because another server has its node number".into(),
            )
            .set_detail(format!(
                "A row with node number {node} came from another server, and snowflake.on_node_conflict is \
                 \"stop\"."
            ))
            .set_hint(
                "Give one of the servers another node number. If this server keeps its number, a superuser can run \
                 SELECT snowflake_accept_node_id().",
            ),
            Error::ServerFileIo { name, error } => new(
                ERRCODE_IO_ERROR,
                format!("could not write file \"{name}\": {error}"),
            )
            .set_detail("The node number was not accepted.")
            .set_hint("Make sure the server can write to its data directory."),
            Error::WatchIsATrigger => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                r#"function "snowflake_internal.watch" must be called by an AFTER INSERT trigger for each row"#.into(),
            )
            .set_hint("Use CALL snowflake_watch(...)."),
            Error::InRecovery => new(
                ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot generate snowflake IDs during recovery".into(),
            )
            .set_detail("IDs are reserved in the write-ahead log, which a standby cannot write.")
            .set_hint("Run the statement on the primary."),
            Error::ResolvedInRecovery => new(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot determine the resolved ID during recovery".into(),
            )
            .set_detail("Only the primary knows which transactions have generated IDs and are still open.")
            .set_hint(
                "Run SELECT snowflake_resolved_id(), pg_current_wal_insert_lsn() on the primary. Use that ID here when \
                 pg_last_wal_replay_lsn() has reached that position.",
            ),
            Error::MarkMissing => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                r#"sequence "snowflake_internal.mark" is missing"#.into(),
            )
            .set_detail("This sequence records the time that is reserved for IDs.")
            .set_hint("Create the extension with CREATE EXTENSION snowflake."),
            Error::MarkNotPermanent => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                r#"sequence "snowflake_internal.mark" is not permanent"#.into(),
            )
            .set_detail(
                "A crash resets a temporary or unlogged sequence, and IDs would repeat.",
            )
            .set_hint(
                "Run ALTER SEQUENCE snowflake_internal.mark SET LOGGED.",
            ),
            Error::LayoutTableLocked => new(
                ERRCODE_LOCK_NOT_AVAILABLE,
                r#"could not obtain lock on relation "snowflake_internal.accepted_layout""#.into(),
            )
            .set_hint("Try again when no other session uses the table."),
            Error::MarkLocked { waited_ms } => new(
                ERRCODE_LOCK_NOT_AVAILABLE,
                "could not reserve time for snowflake IDs".into(),
            )
            .set_detail(format!(
                "Another session holds or awaits a lock on sequence \"snowflake_internal.mark\". \
                 This session has waited for {waited_ms} ms."
            ))
            .set_hint(
                "Find the other session in pg_locks. The wait is limited to snowflake.max_wait, \
                 but to no less than 100 ms.",
            ),
            Error::MarkSetAhead { wall, set_to } => new(
                ERRCODE_SYSTEM_ERROR,
                r#"sequence "snowflake_internal.mark" was set ahead of the clock"#.into(),
            )
            .set_detail(format!(
                "IDs up to {} may exist in this database; the clock shows {}.",
                time(set_to),
                time(wall)
            ))
            .set_hint(
                "IDs are available again when the clock reaches that time. To continue now, a \
                 superuser can run SELECT snowflake_start_after(last_value - 1) FROM \
                 snowflake_internal.mark; this moves the IDs of all databases of the server to \
                 that time.",
            ),
            Error::FloorDamaged => new(
                ERRCODE_DATA_CORRUPTED,
                format!("file \"global/{}\" is damaged", crate::generator::floor::NUMBER),
            )
            .set_detail(
                "The file records the time up to which the databases of this server had reserved \
                 IDs before the server was started.",
            )
            .set_hint(
                "If the clock has not been set back since then, stop the server, remove the file \
                 from the data directory, and start the server.",
            ),
            Error::NotAnAlteration => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                "the statement alters no table".into(),
            )
            .set_hint("Pass one ALTER TABLE statement of a plan."),
            Error::NameMoved(name) => new(
                ERRCODE_T_R_SERIALIZATION_FAILURE,
                format!("\"{name}\" is the name of another relation now"),
            )
            .set_detail(
                "A schema or a table was renamed or replaced while the statement was prepared. \
                 Statements with the privileges of a table's owner run on the table that was meant.",
            )
            .set_hint("Run it again."),
            Error::ClockBehind { wall, reached } => new(
                ERRCODE_SYSTEM_ERROR,
                "the clock is behind IDs that may already have been issued".into(),
            )
            .set_detail(format!(
                "The clock shows {}; IDs up to {} may have been issued.",
                time(wall),
                time(reached)
            ))
            .set_hint(
                "Correct the clock; IDs are then available again. Clock steps of up to \
                 snowflake.max_clock_step do not interrupt IDs. If snowflake.layout was changed, \
                 restore it, or use a layout whose IDs are greater.",
            ),
            Error::ClockAhead { wall, expected } => new(
                ERRCODE_SYSTEM_ERROR,
                "the clock has jumped forward".into(),
            )
            .set_detail(format!(
                "The clock shows {}; by the time since the server's start it should show {}.",
                time(wall),
                time(expected)
            ))
            .set_hint(format!(
                "Correct the clock; IDs are then available again. If the clock is right, a \
                 superuser can run SELECT snowflake_accept_clock('{}').",
                time(wall)
            )),
            Error::ClockNotAsExpected { wall, expected } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                "the clock does not show the expected time".into(),
            )
            .set_detail(format!(
                "The clock shows {}; the expected time is {}, with a tolerance of one minute.",
                time(wall),
                time(expected)
            ))
            .set_hint("Compare the server's clock with a reliable one."),
            Error::StartTooFarAhead { id, wall, start } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("ID {id} is too far ahead of the clock"),
            )
            .set_detail(format!(
                "IDs would start at {start}; the clock shows {}.",
                time(wall)
            ))
            .set_hint("The limit is snowflake.max_clock_step."),
            Error::ConflictAhead { id, wall, at } => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot continue after ID {id}, which is too far ahead of the clock"),
            )
            .set_detail(format!(
                "A row with this ID came from another server. The time of the ID is {at}; the clock shows {}. The \
                 limit is snowflake.lease.",
                time(wall)
            ))
            .set_hint(format!(
                "If another server issued the ID, run SELECT snowflake_start_after({id}) first. If the row was \
                 written by hand, delete it and run SELECT snowflake_accept_node_id({id})."
            )),
            Error::NotTheConflict(id) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("ID {id} cannot be ignored"),
            )
            .set_detail(
                "Only the ID that snowflake_accept_node_id() reports as too far ahead of the clock can be ignored.",
            ),
            Error::NotSuperuser(function) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for function {function}"),
            )
            .set_detail("This function can affect the uniqueness of IDs.")
            .set_hint("Only a superuser may call it."),
            Error::WaitTooLong {
                wall,
                next,
                needed_ms,
                max_wait_ms,
            } => new(
                ERRCODE_SYSTEM_ERROR,
                format!("no snowflake ID will be available for {needed_ms} ms"),
            )
            .set_detail(format!(
                "The clock shows {}, the IDs before {} are used, and snowflake.max_wait is \
                 {max_wait_ms} ms.",
                time(wall),
                time(next)
            ))
            .set_hint(
                "Increase snowflake.max_borrow or snowflake.max_wait, or use a layout with more \
                 backend or sequence bits.",
            ),
            Error::BeforeEpoch { wall, epoch } => new(
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                "the clock is before the epoch of snowflake.layout".into(),
            )
            .set_detail(format!("The clock shows {wall}; the epoch is {epoch}."))
            .set_hint("Correct the clock, or use a layout with an earlier epoch."),
            Error::PastEnd { end } => new(
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                "the timestamps of snowflake.layout are exhausted".into(),
            )
            .set_detail(format!("The layout cannot represent {end} or later."))
            .set_hint(
                "Use a layout with more timestamp bits, a longer tick or a later epoch. Its IDs \
                 must be greater than the existing ones.",
            ),
            Error::OnlyInCopy => new(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                r#"function "snowflake_internal.copy_nextval" was not called by COPY"#.into(),
            )
            .set_hint("Call snowflake_nextval."),
            Error::NotATrigger => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                r#"function "snowflake_internal.shadow" was not called by trigger manager"#.into(),
            ),
            Error::WrongTrigger(trigger) => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                format!("trigger \"{trigger}\" must fire before INSERT or UPDATE for each row"),
            )
            .set_hint("The plan of snowflake_migration_plan() creates this trigger correctly."),
            Error::ShadowArguments(trigger) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("trigger \"{trigger}\" must name two columns"),
            )
            .set_detail("The columns are an integer or smallint column and its shadow, a bigint column.")
            .set_hint("The plan of snowflake_migration_plan() creates this trigger correctly."),
            Error::ShadowMissing { table, column } => new(
                ERRCODE_UNDEFINED_COLUMN,
                format!("column \"{column}\" of relation \"{table}\" does not exist"),
            )
            .set_detail("The trigger of an ongoing migration depends on this column.")
            .set_hint(
                "If the column was renamed, restore its name. Otherwise cancel the migration with \
                 snowflake_migrate_revert().",
            ),
            Error::ShadowType(column) => new(
                ERRCODE_DATATYPE_MISMATCH,
                format!("column \"{column}\" has the wrong type for a migration"),
            )
            .set_detail("The shadow of an integer or smallint column is a bigint column."),
            Error::NotOwner(table) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("must be owner of table {table}"),
            ),
            Error::NoRelation(relation) => new(
                ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {} does not exist", relation.to_u32()),
            ),
            Error::NotATable(relation) => new(
                ERRCODE_WRONG_OBJECT_TYPE,
                format!("\"{relation}\" is not a table"),
            ),
            Error::LockDenied(table) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {table}"),
            ),
            Error::RoleDenied(role) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("must be able to SET ROLE \"{role}\""),
            ),
            Error::InvalidLockMode(mode) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid lock mode: \"{mode}\""),
            )
            .set_hint(
                "Use SHARE UPDATE EXCLUSIVE, SHARE ROW EXCLUSIVE or ACCESS EXCLUSIVE.",
            ),
            Error::NullStatement => new(
                ERRCODE_NULL_VALUE_NOT_ALLOWED,
                "statement must not be null".into(),
            ),
            Error::InvalidTriggerState(state) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid state of a trigger: \"{state}\""),
            )
            .set_hint("Use O, D, R or A, as in pg_trigger.tgenabled."),
            Error::InvalidSearchPath(path) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid search path: \"{path}\""),
            )
            .set_hint("Pass pg_catalog.current_setting('search_path')."),
            Error::NotOneStatement(count) => new(
                ERRCODE_SYNTAX_ERROR,
                format!("text must contain exactly one statement, but contains {count}"),
            )
            .set_detail("The statement runs with the privileges of the table's owner.")
            .set_hint("Run the statements one by one."),
            Error::StatementRefused(code) => new(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot run this statement with the privileges of a table's owner".into(),
            )
            .set_detail(format!("SPI returned {code}."))
            .set_hint(
                "COPY from or to a client and statements that end a transaction cannot run in \
                 functions.",
            ),
            Error::RecordsMissing(table) => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("table \"{table}\" is missing or was altered"),
            )
            .set_detail(
                "The table must be in schema \"snowflake_internal\", as the extension creates it.",
            )
            .set_hint("Create the extension again with CREATE EXTENSION snowflake."),
            Error::NullInRecord { table, column } => new(
                ERRCODE_NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{column}\" of relation \"{table}\" violates \
                     not-null constraint"
                ),
            ),
            Error::TooManyKeys { keys, most } => new(
                ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("cannot migrate more than {most} keys together online"),
            )
            .set_detail(format!("{keys} keys are specified."))
            .set_hint("Migrate the tables in several sets."),
            Error::KeysDiffer { targets, columns } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("there are {targets} tables, but {columns} columns"),
            ),
            Error::InvalidKind(kind) => new(
                ERRCODE_CHECK_VIOLATION,
                format!("invalid kind of default: \"{kind}\""),
            )
            .set_hint(
                "Use \"serial\", \"identity always\", \"identity by default\", \"default\" \
                 or \"none\".",
            ),
            Error::RecordsGuarded(table) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {table}"),
            )
            .set_detail(
                "The table holds the state of migrations. Privileges to change it have no effect.",
            )
            .set_hint(
                "Use the extension's functions. Only a superuser can change the table with SQL.",
            ),
            Error::TriggersGuarded => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                r#"permission denied for tables of extension "snowflake""#.into(),
            )
            .set_detail(
                "A trigger would run with the privileges of each role that changes the table, or \
                 replace the one that guards it. The privilege TRIGGER has no effect.",
            )
            .set_hint("Only a superuser can create triggers on these tables."),
            Error::GuardIsATrigger => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                r#"function "snowflake_internal.migration_guard" was not called by trigger manager"#.into(),
            ),
            Error::RestoreDenied => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                "permission denied for table restore".into(),
            )
            .set_detail(
                "Rows of this table are those of a restored dump. They raise the mark of the \
                 database and record migrations.",
            )
            .set_hint(
                "Restore the dump as the owner of the database or of the extension, or as a \
                 superuser.",
            ),
            Error::RestoreIsATrigger => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "function \"snowflake_internal.restore_row\" was not called by the trigger of \
                 table \"snowflake_internal.restore\""
                    .into(),
            ),
            Error::InvalidRestoredRecord(record) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("unrecognized record in a restored dump: \"{record}\""),
            )
            .set_detail("The records are \"mark\", \"layout\" and \"origin\".")
            .set_hint("Restore a dump of a later version into that version of the extension."),
            Error::NothingIssued => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake_currval is not yet defined in this session".into(),
            )
            .set_hint("Call snowflake_nextval first, or use INSERT ... RETURNING."),
            Error::ServersOutOfRange(servers) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("no layout has node numbers for {servers} servers"),
            )
            .set_detail("The range is 1 to 16777216.")
            .set_hint("Count all servers that may generate IDs: standbys and replacements too."),
            Error::NegativeCount(count) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("count must not be negative, but is {count}"),
            )
            .set_hint("Request 0 or more IDs."),
            Error::InvalidLayout { text, reason } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid snowflake layout: \"{text}\""),
            )
            .set_detail(sentence(&reason.to_string()))
            .set_hint(layout_hint()),
            Error::FieldOutOfRange(error) => new(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "{} {} is out of range for the layout",
                    error.name, error.value
                ),
            )
            .set_detail(format!("The range is 0 to {}.", error.max)),
            Error::NegativeId(id) => new(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is not a snowflake ID"),
            )
            .set_detail("Snowflake IDs are never negative."),
            Error::IdOutsideLayout { id, bits } => new(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{id} is out of range for the layout"),
            )
            .set_detail(format!("IDs of this layout have {bits} bits."))
            .set_hint("Specify the layout that the ID was generated with."),
            Error::TimeOutsideLayout { at, layout } => new(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{at} is out of range for the layout"),
            )
            .set_detail(format!(
                "The layout \"{layout}\" has IDs from {} to {}.",
                layout.epoch(),
                layout.time_of(layout.last_tick())
            )),
            Error::InvalidEncoding(name) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("unrecognized encoding: \"{name}\""),
            )
            .set_hint("Use \"base32\" or \"base62\"."),
            Error::InvalidText { text, reason } => new(
                match reason {
                    TextError::TooLarge { .. } => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                    _ => ERRCODE_INVALID_TEXT_REPRESENTATION,
                },
                match reason {
                    TextError::TooLarge { .. } => format!("\"{text}\" is out of range for a snowflake ID"),
                    _ => format!("invalid input syntax for snowflake ID: \"{text}\""),
                },
            )
            .set_detail(sentence(&reason.to_string())),
            Error::OutOfMemory => new(ERRCODE_OUT_OF_MEMORY, "out of memory".into())
                .set_detail("A copy of a text could not be allocated."),
            Error::TimeOutOfRange(id) => new(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("the time of {id} is out of range for timestamp with time zone"),
            )
            .set_hint("Specify the layout that the ID was generated with."),
        }
    }
}

/// The result of a function that SQL has called. Raises the error, if any.
#[inline]
pub fn or_report<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| error.report())
}

/// A reason of the algorithm crate as a DETAIL: "it has 5 characters" becomes
/// "It has 5 characters." A sentence stays as it is.
pub fn sentence(reason: &str) -> String {
    let mut rest = reason.trim_end_matches('.').chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
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

/// Ends the start of the server because of an invalid setting. With a default in
/// its place, the server would issue other IDs than its configuration demands.
#[cold]
#[track_caller]
pub fn refuse_to_start(message: String, detail: String, hint: String) -> ! {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        "snowflake",
    )
    .set_detail(sentence(&detail))
    .set_hint(hint)
    .report(PgLogLevel::FATAL);
    unreachable!("a FATAL does not return");
}

/// Writes a line to the server's log, with a detail unless it is empty.
pub fn log(message: String, detail: String) {
    let report = ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message,
        "snowflake",
    );
    let report = if detail.is_empty() {
        report
    } else {
        report.set_detail(detail)
    };
    report.report(PgLogLevel::LOG);
}

/// Writes a warning to the server's log and to the session.
pub fn warn(message: String, detail: String, hint: &str) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, "snowflake")
        .set_detail(detail)
        .set_hint(hint)
        .report(PgLogLevel::WARNING);
}
