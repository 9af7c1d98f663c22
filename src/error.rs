//! Everything that can go wrong for a user, and how Postgres reports it.
//!
//! Modules return [`Error`]; [`Error::report`] is the only place that turns
//! one into an SQLSTATE, a message, a detail and a hint, so the wording stays
//! in one style (PostgreSQL's error style guide: a lower-case message without
//! a full stop; detail and hint are sentences).

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_id::{FieldError, Layout, LayoutError, TextError, Time, presets};

use crate::clock::unix_time as time;

/// A reason why a call cannot be answered.
#[derive(Debug)]
pub enum Error {
    /// Generating without the library in `shared_preload_libraries`.
    NotPreloaded,
    /// The layout has node bits and `snowflake.node_id` is not set.
    NodeNotSet,
    /// Generating on a standby, or before recovery is over.
    InRecovery,
    /// The sequence `snowflake_mark` is not beside the function that was called.
    MarkMissing,
    /// The mark would not survive a crash or would not reach a standby.
    MarkNotPermanent,
    /// The table that remembers the layout is locked, or is not there.
    LayoutTableLocked,
    /// Another session moves the mark, or has a lock on it, for longer than
    /// may be waited.
    MarkLocked {
        /// How long this call has waited, milliseconds.
        waited_ms: i64,
    },
    /// Somebody has set the mark to more than a lease ahead of the clock.
    MarkSetAhead {
        /// What the clock says, microseconds since 1970.
        wall: i64,
        /// The time that the mark was set to, microseconds since 1970.
        set_to: i64,
    },
    /// The file that keeps the floor does not say what it should.
    FloorDamaged(String),
    /// The file that keeps the floor could not be read or written.
    FloorIo {
        /// The file's name.
        name: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The clock is behind by more than `snowflake.max_clock_step`.
    ClockBehind {
        /// What the clock says, microseconds since 1970.
        wall: i64,
        /// The time up to which IDs may be out already, microseconds since 1970.
        reached: i64,
    },
    /// The clock has jumped ahead by more than `snowflake.max_clock_step`.
    ClockAhead {
        /// What the clock says, microseconds since 1970.
        wall: i64,
        /// What it would say had it not jumped, microseconds since 1970.
        expected: i64,
    },
    /// `snowflake_accept_clock` was given another time than the clock's.
    ClockNotAsExpected {
        /// What the clock says, microseconds since 1970.
        wall: i64,
        /// What it was said to say, microseconds since 1970.
        expected: i64,
    },
    /// `snowflake_start_after` would take IDs too far ahead of the clock.
    StartTooFarAhead {
        /// The ID.
        id: i64,
        /// What the clock says, microseconds since 1970.
        wall: i64,
        /// The time that IDs would start at.
        start: Time,
    },
    /// A function for superusers was called by somebody else.
    NotSuperuser(&'static str),
    /// A wait is bound to take longer than `snowflake.max_wait`.
    WaitTooLong {
        /// What the clock says, microseconds since 1970.
        wall: i64,
        /// The time of the next ID that is free, microseconds since 1970.
        next: i64,
        /// How long the wait would be, milliseconds.
        needed_ms: i64,
        /// `snowflake.max_wait`, milliseconds.
        max_wait_ms: i32,
    },
    /// The clock is before the layout's epoch.
    BeforeEpoch {
        /// What the clock says.
        wall: Time,
        /// The layout's epoch.
        epoch: Time,
    },
    /// The layout's timestamp bits are used up.
    PastEnd {
        /// The first instant that the layout cannot hold.
        end: Time,
    },
    /// COPY's function was called by somebody else.
    OnlyInCopy,
    /// The trigger function of shadow columns was called in another way.
    NotATrigger,
    /// A trigger with that function, by its name, does not fire before rows
    /// are inserted or updated.
    WrongTrigger(String),
    /// A trigger with that function, by its name, does not name two columns.
    ShadowArguments(String),
    /// A column that such a trigger names is not there.
    ShadowMissing {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column that such a trigger names is of another type.
    ShadowType(String),
    /// No ID was made in this session yet.
    NothingIssued,
    /// A count below zero.
    NegativeCount(i32),
    /// A text that is no layout.
    InvalidLayout {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: LayoutError,
    },
    /// A value that does not fit its field.
    FieldOutOfRange(FieldError),
    /// A bigint below zero.
    NegativeId(i64),
    /// An ID with bits above the layout's fields.
    IdOutsideLayout {
        /// The ID.
        id: i64,
        /// The layout's bits.
        bits: u32,
    },
    /// An ID whose time a timestamptz cannot hold.
    TimeOutOfRange(i64),
    /// A time of which the layout has no ID.
    TimeOutsideLayout {
        /// The time.
        at: String,
        /// The layout.
        layout: Layout,
    },
    /// The caller does not have the rights of a table's owner.
    NotOwner(String),
    /// A relation that does not exist, or no longer.
    NoRelation(pg_sys::Oid),
    /// A relation that cannot be locked as a table.
    NotATable(String),
    /// A table that the caller may not lock.
    LockDenied(String),
    /// A lock mode that migrations do not use.
    InvalidLockMode(String),
    /// A statement to run that is NULL.
    NullStatement,
    /// A text that is not exactly one statement.
    NotOneStatement(i32),
    /// A statement that does not run inside functions, by SPI's name for it.
    StatementRefused(String),
    /// A table of records is missing, or is not the one that was made.
    RecordsMissing(&'static str),
    /// A row for such a table without a value that it has to have.
    NullInRecord {
        /// The table.
        table: &'static str,
        /// The column.
        column: String,
    },
    /// A kind of default that `snowflake_origins` does not know.
    InvalidKind(String),
    /// SQL that would change such a table.
    RecordsGuarded(String),
    /// The trigger function that guards them was called in another way.
    GuardIsATrigger,
    /// A name that is no encoding's.
    InvalidEncoding(String),
    /// A text that is no ID.
    InvalidText {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: TextError,
    },
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
                "Add these lines to postgresql.conf and restart the server: \
                 shared_preload_libraries = 'snowflake' (after a comma where other libraries are \
                 listed), and snowflake.node_id = 0 (another number on each server).",
            ),
            Error::NodeNotSet => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake.node_id is not set".into(),
            )
            .set_detail("IDs carry the number of the server that made them.")
            .set_hint(
                "Add \"snowflake.node_id = 0\" to postgresql.conf and restart the server; \
                 where several servers make IDs, give each its own number."
            ),
            Error::InRecovery => new(
                ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot make snowflake IDs during recovery".into(),
            )
            .set_detail("IDs are reserved in the write-ahead log, which a standby cannot write.")
            .set_hint("Run the statement on the primary."),
            Error::MarkMissing => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the sequence snowflake_mark is missing".into(),
            )
            .set_detail("It is looked for in the schema of the function that was called.")
            .set_hint("Create the extension with CREATE EXTENSION snowflake."),
            Error::MarkNotPermanent => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the sequence snowflake_mark is not permanent".into(),
            )
            .set_detail(
                "A temporary or unlogged sequence is reset by a crash, and IDs would repeat.",
            )
            .set_hint(
                "Use ALTER SEQUENCE snowflake_mark SET LOGGED, or create the extension \
                 in a permanent schema.",
            ),
            Error::LayoutTableLocked => new(
                ERRCODE_LOCK_NOT_AVAILABLE,
                "could not lock the table snowflake_accepted_layout".into(),
            )
            .set_hint(
                "Try again when no other session uses it. If there is no such table, run ALTER \
                 EXTENSION snowflake UPDATE.",
            ),
            Error::MarkLocked { waited_ms } => new(
                ERRCODE_LOCK_NOT_AVAILABLE,
                "could not reserve time for snowflake IDs".into(),
            )
            .set_detail(format!(
                "Another session has locked the sequence snowflake_mark, or waits to lock it; this \
                 one has waited for {waited_ms} ms."
            ))
            .set_hint(
                "pg_locks shows which session it is. The wait is as long as snowflake.max_wait, and \
                 at least 100 ms.",
            ),
            Error::MarkSetAhead { wall, set_to } => new(
                ERRCODE_SYSTEM_ERROR,
                "the sequence snowflake_mark was set ahead of the clock".into(),
            )
            .set_detail(format!(
                "IDs up to {} may exist in this database; the clock says {}.",
                time(set_to),
                time(wall)
            ))
            .set_hint(
                "IDs are available again when the clock gets there. To continue now, a superuser \
                 can run SELECT snowflake_start_after(last_value - 1) FROM snowflake_mark; this \
                 takes the IDs of all databases of the server there.",
            ),
            Error::FloorDamaged(name) => new(
                ERRCODE_DATA_CORRUPTED,
                format!("file \"{name}\" is damaged"),
            )
            .set_detail(
                "It holds the time up to which the databases of this server had reserved IDs \
                 before the server was started.",
            )
            .set_hint(
                "If the clock has not been set back since then, stop the server, remove the file \
                 from the data directory, and start the server.",
            ),
            Error::FloorIo { name, error } => new(
                ERRCODE_IO_ERROR,
                format!("could not read file \"{name}\": {error}"),
            )
            .set_detail("IDs cannot be issued until the reservation of earlier ones is known.")
            .set_hint("Make sure the server can read the file in its data directory."),
            Error::ClockBehind { wall, reached } => new(
                ERRCODE_SYSTEM_ERROR,
                "the clock is behind the IDs that may be out already".into(),
            )
            .set_detail(format!(
                "The clock says {}; IDs may be out up to {}.",
                time(wall),
                time(reached)
            ))
            .set_hint(
                "Set the clock right; IDs then go on by themselves. Steps up to \
                 snowflake.max_clock_step are ridden out. If snowflake.layout was changed, set \
                 it back, or take one whose IDs are greater.",
            ),
            Error::ClockAhead { wall, expected } => new(
                ERRCODE_SYSTEM_ERROR,
                "the clock has jumped ahead".into(),
            )
            .set_detail(format!(
                "The clock says {}; by the time since the server's start it should say {}.",
                time(wall),
                time(expected)
            ))
            .set_hint(format!(
                "Set the clock right; IDs then go on by themselves. If it is right, a superuser can \
                 run SELECT snowflake_accept_clock('{}').",
                time(wall)
            )),
            Error::ClockNotAsExpected { wall, expected } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                "the clock does not say what was expected".into(),
            )
            .set_detail(format!(
                "The clock says {}; expected was {}, which may be off by a minute.",
                time(wall),
                time(expected)
            ))
            .set_hint("Compare the server's clock with one that you trust."),
            Error::StartTooFarAhead { id, wall, start } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("{id} is too far ahead of the clock to start after"),
            )
            .set_detail(format!(
                "IDs would start at {start}; the clock says {}.",
                time(wall)
            ))
            .set_hint("The limit is snowflake.max_clock_step."),
            Error::NotSuperuser(function) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for function {function}"),
            )
            .set_detail("That no ID comes twice rests on it.")
            .set_hint("Only a superuser may call it."),
            Error::WaitTooLong {
                wall,
                next,
                needed_ms,
                max_wait_ms,
            } => new(
                ERRCODE_SYSTEM_ERROR,
                format!("the next snowflake ID is free only in {needed_ms} ms"),
            )
            .set_detail(format!(
                "The clock says {}; the IDs before {} are used up; snowflake.max_wait is \
                 {max_wait_ms} ms.",
                time(wall),
                time(next)
            ))
            .set_hint(
                "Raise snowflake.max_borrow or snowflake.max_wait, or use a layout with more \
                 backend or sequence bits."
            ),
            Error::BeforeEpoch { wall, epoch } => new(
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                "the clock is before the epoch of snowflake.layout".into(),
            )
            .set_detail(format!("The clock says {wall}; the epoch is {epoch}."))
            .set_hint("Set the clock right, or use a layout with an earlier epoch."),
            Error::PastEnd { end } => new(
                ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                "the timestamp bits of snowflake.layout are used up".into(),
            )
            .set_detail(format!("The layout holds times before {end}."))
            .set_hint(
                "Use a layout with more timestamp bits, a longer tick or a later epoch, \
                 whose IDs are greater than those that are out.",
            ),
            Error::OnlyInCopy => new(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "snowflake_copy_nextval is called by COPY only".into(),
            )
            .set_hint("Call snowflake_nextval."),
            Error::NotATrigger => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "snowflake_shadow is called by triggers only".into(),
            ),
            Error::WrongTrigger(trigger) => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                format!("trigger \"{trigger}\" has to fire before rows are inserted or updated"),
            )
            .set_hint("snowflake_migration_plan() shows how it is made."),
            Error::ShadowArguments(trigger) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("trigger \"{trigger}\" has to name two columns"),
            )
            .set_detail("They are an integer or smallint column and its shadow, a bigint column.")
            .set_hint("snowflake_migration_plan() shows how it is made."),
            Error::ShadowMissing { table, column } => new(
                ERRCODE_UNDEFINED_COLUMN,
                format!("column \"{column}\" of \"{table}\" does not exist"),
            )
            .set_detail("A trigger of the migration that is under way keeps it, or reads it.")
            .set_hint(
                "If it was renamed, rename it back; else snowflake_migrate_revert() takes the \
                 migration back.",
            ),
            Error::ShadowType(column) => new(
                ERRCODE_DATATYPE_MISMATCH,
                format!("column \"{column}\" is of the wrong type for a migration"),
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
            Error::InvalidLockMode(mode) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid lock mode: \"{mode}\""),
            )
            .set_hint(
                "Write SHARE UPDATE EXCLUSIVE, SHARE ROW EXCLUSIVE or ACCESS EXCLUSIVE.",
            ),
            Error::NullStatement => new(
                ERRCODE_NULL_VALUE_NOT_ALLOWED,
                "the statement to run must not be null".into(),
            ),
            Error::NotOneStatement(count) => new(
                ERRCODE_SYNTAX_ERROR,
                format!("the text must be one statement, but has {count}"),
            )
            .set_detail("It is run with the rights of a table's owner.")
            .set_hint("Run the statements one by one."),
            Error::StatementRefused(code) => new(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot run this statement with the rights of a table's owner".into(),
            )
            .set_detail(format!("The server's answer was {code}."))
            .set_hint(
                "COPY from or to a client, and statements that end a transaction, do not run \
                 in functions.",
            ),
            Error::RecordsMissing(table) => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the table {table} is missing or was altered"),
            )
            .set_detail(
                "It is looked for in the schema of the function that was called, and has to be \
                 as the extension creates it.",
            )
            .set_hint("Create the extension again with CREATE EXTENSION snowflake."),
            Error::NullInRecord { table, column } => new(
                ERRCODE_NOT_NULL_VIOLATION,
                format!(
                    "null value in column \"{column}\" of relation \"{table}\" violates \
                     not-null constraint"
                ),
            ),
            Error::InvalidKind(kind) => new(
                ERRCODE_CHECK_VIOLATION,
                format!("invalid kind of default: \"{kind}\""),
            )
            .set_hint(
                "Write \"serial\", \"identity always\", \"identity by default\", \"default\" \
                 or \"none\".",
            ),
            Error::RecordsGuarded(table) => new(
                ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {table}"),
            )
            .set_detail(
                "The extension keeps in it what a migration has to remember. A privilege to \
                 change it has no effect.",
            )
            .set_hint(
                "Use the functions of the extension. Only a superuser can change its rows by SQL.",
            ),
            Error::GuardIsATrigger => new(
                ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "snowflake_migration_guard is called by triggers only".into(),
            ),
            Error::NothingIssued => new(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake_currval is not yet defined in this session".into(),
            )
            .set_hint("Call snowflake_nextval first."),
            Error::NegativeCount(count) => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("count must not be negative, but is {count}"),
            )
            .set_hint("Ask for 0 or more IDs."),
            Error::InvalidLayout { text, reason } => new(
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid snowflake layout: \"{text}\""),
            )
            .set_detail(reason.to_string())
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
            .set_hint("Name the layout that the ID was made with."),
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
                format!("invalid encoding of snowflake IDs: \"{name}\""),
            )
            .set_hint("Write \"base32\" or \"base62\"."),
            Error::InvalidText { text, reason } => new(
                match reason {
                    TextError::TooLarge { .. } => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                    _ => ERRCODE_INVALID_TEXT_REPRESENTATION,
                },
                match reason {
                    TextError::TooLarge { .. } => format!("\"{text}\" is out of range for a snowflake ID"),
                    _ => format!("invalid text of a snowflake ID: \"{text}\""),
                },
            )
            .set_detail(sentence(&reason.to_string())),
            Error::TimeOutOfRange(id) => new(
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("the time of {id} is out of range for timestamp with time zone"),
            )
            .set_hint("Name the layout that the ID was made with."),
        }
    }
}

/// A reason of the algorithm crate as a DETAIL: "it has 5 characters" becomes
/// "It has 5 characters."
fn sentence(reason: &str) -> String {
    let mut rest = reason.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
}

/// What a layout looks like, for whoever wrote one that is not.
pub fn layout_hint() -> String {
    let names: Vec<_> = presets().iter().map(|preset| preset.name).collect();
    format!(
        "Write for example \"timestamp:41 node:6 backend:4 sequence:12 tick:1ms \
         epoch:2025-01-01T00:00:00Z\", or one of {}.",
        names.join(", ")
    )
}

/// Stops the server's start: a setting was written that cannot be taken, and
/// going on with a default would make other IDs than the ones asked for.
#[cold]
#[track_caller]
pub fn refuse_to_start(message: String, detail: String, hint: String) -> ! {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        "snowflake",
    )
    .set_detail(detail)
    .set_hint(hint)
    .report(PgLogLevel::FATAL);
    unreachable!("a FATAL does not return");
}

/// Keeps backtraces out of errors. pgrx appends one to the DETAIL of each error
/// of Postgres that passes through, a cancel included, where the server happens
/// to have `RUST_BACKTRACE` in its environment. The standard library decides
/// once, at the first capture, whether to make any; so the first is made here,
/// without that variable's leave.
pub fn forgo_backtraces() {
    const NAME: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(NAME);
    // SAFETY: nobody reads the environment meanwhile. A server process runs one
    // thread where it loads libraries: the postmaster at its start, or a session
    // between two calls of Postgres, which sets variables there itself.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var(NAME, "0");
        let _ = std::backtrace::Backtrace::capture();
        // Other libraries and programs that the server starts have it as it was.
        match before {
            Some(before) => std::env::set_var(NAME, before),
            None => std::env::remove_var(NAME),
        }
    }
}
