//! The errors of the extension and their texts.
//!
//! Modules return [`Error`]. Only [`Error::report`] turns one into an SQLSTATE,
//! a message, a detail and a hint, so that all texts are in one place. They
//! follow PostgreSQL's error style guide: the message is in lower case without
//! a full stop; detail and hint are sentences.
//!
//! Each variant has its text in a function of the same name, in the module of its
//! area. `into_report` names them all, so that none can be without a text.

mod generate;
mod migrate;
mod read;
mod records;
mod start;

use std::borrow::Cow;
use std::collections::TryReserveError;

use pgrx::PgSqlErrorCode::{self, *};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_id::{FieldError, Layout, LayoutError, SnowflakeId, TextError, Time, WallTime};

pub use read::layout_hint;
pub use start::{place, refuse};

/// Why a call fails. Empty lines separate the areas, as in `into_report`.
#[derive(Debug)]
pub enum Error {
    /// An ID was requested, and the library is not preloaded, before PostgreSQL 17.
    #[cfg(not(feature = "dsm_registry"))]
    NotPreloaded,
    /// The layout has node bits, and `snowflake.node_id` is not set.
    NodeNotSet,
    /// The configuration files cannot be read, or PostgreSQL would not load them.
    #[cfg(feature = "dsm_registry")]
    ConfigurationUnreadable,
    /// Another version of the library has made the shared memory, in another form.
    #[cfg(feature = "dsm_registry")]
    OtherLibrary,
    /// Shared memory was not made, and only a restart helps.
    #[cfg(feature = "dsm_registry")]
    MemoryNotMade {
        /// The SQLSTATE of PostgreSQL's error.
        code: PgSqlErrorCode,
        /// Its message.
        message: String,
    },
    /// An ID was requested in a parallel worker of a session that has not loaded the library.
    LeaderWithoutLibrary,
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
    /// The trigger function of watched tables was called in another way.
    WatchIsATrigger,

    /// This function was called in a database of Citus.
    ResolvedWithCitus(&'static str),
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
    /// The number is that of the file.
    FloorDamaged(u32),
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
    /// The wait for an ID would be longer than `snowflake.max_wait`.
    WaitTooLong {
        /// The wall clock.
        wall: WallTime,
        /// The time of the next available ID.
        next: WallTime,
        /// The length of the wait, milliseconds.
        needed_ms: i64,
        /// `snowflake.max_wait`, milliseconds.
        max_wait_ms: i64,
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
    /// A role that is not a superuser called a function for superusers.
    NotSuperuser(&'static str),
    /// COPY's function was called directly.
    OnlyInCopy,
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
    /// The layout has no ID with this time.
    TimeOutsideLayout {
        /// The time.
        at: String,
        /// The layout.
        layout: Layout,
    },
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

    /// The relation does not exist.
    NoRelation(pg_sys::Oid),
    /// The relation cannot be locked as a table.
    NotATable(String),
    /// The caller does not have the privileges of the table's owner.
    NotOwner(String),
    /// The caller may not lock this table.
    LockDenied(String),
    /// The caller cannot run statements as this role.
    RoleDenied(String),
    /// Migrations do not use this lock mode.
    InvalidLockMode(String),
    /// A trigger has no such state.
    InvalidTriggerState(String),
    /// The statement to run is NULL.
    NullStatement,
    /// A statement that alters no table.
    NotAnAlteration,
    /// The client of a step that waits is gone.
    ClientGone,
    /// A statement's table is not the one that was meant when the statement was made.
    NameMoved(String),
    /// A search path that is not a list of names.
    InvalidSearchPath(String),
    /// The session's search path is too long.
    SearchPathTooLong,
    /// The text to run has this number of statements, not one.
    NotOneStatement(i32),
    /// Functions cannot run this statement; SPI's name for the reason.
    StatementRefused(String),
    /// A trial of an expression did not end in its time.
    TrialTooLong,
    /// This trigger function was called directly.
    NotATrigger(&'static str),
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
    /// `snowflake_migrate_internal.origins` does not allow this kind of default.
    InvalidKind(String),
    /// A role that is not a superuser tried to change such a table with SQL.
    RecordsGuarded(String),
    /// A role that owns neither the database nor the extension tried to restore a
    /// row of a dump.
    RestoreDenied,
    /// The trigger function that applies such rows was called for something else.
    RestoreIsATrigger,
    /// There are no such rows.
    InvalidRestoredRecord(String),
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
        match self {
            #[cfg(not(feature = "dsm_registry"))]
            Error::NotPreloaded => start::not_preloaded(),
            Error::NodeNotSet => start::node_not_set(),
            #[cfg(feature = "dsm_registry")]
            Error::ConfigurationUnreadable => start::configuration_unreadable(),
            #[cfg(feature = "dsm_registry")]
            Error::OtherLibrary => start::other_library(),
            #[cfg(feature = "dsm_registry")]
            Error::MemoryNotMade { code, message } => start::memory_not_made(code, &message),
            Error::LeaderWithoutLibrary => start::leader_without_library(),
            Error::NodeConflict(node) => start::node_conflict(node),
            Error::ServerFileIo { name, error } => start::server_file_io(&name, &error),
            Error::ConflictAhead { id, wall, at } => start::conflict_ahead(id, wall, at),
            Error::NotTheConflict(id) => start::not_the_conflict(id),
            Error::WatchIsATrigger => start::watch_is_a_trigger(),

            Error::ResolvedWithCitus(function) => generate::resolved_with_citus(function),
            Error::InRecovery => generate::in_recovery(),
            Error::ResolvedInRecovery => generate::resolved_in_recovery(),
            Error::MarkMissing => generate::mark_missing(),
            Error::MarkNotPermanent => generate::mark_not_permanent(),
            Error::LayoutTableLocked => generate::layout_table_locked(),
            Error::MarkLocked { waited_ms } => generate::mark_locked(waited_ms),
            Error::MarkSetAhead { wall, set_to } => generate::mark_set_ahead(wall, set_to),
            Error::FloorDamaged(file) => generate::floor_damaged(file),
            Error::ClockBehind { wall, reached } => generate::clock_behind(wall, reached),
            Error::ClockAhead { wall, expected } => generate::clock_ahead(wall, expected),
            Error::ClockNotAsExpected { wall, expected } => {
                generate::clock_not_as_expected(wall, expected)
            }
            Error::StartTooFarAhead { id, wall, start } => {
                generate::start_too_far_ahead(id, wall, start)
            }
            Error::WaitTooLong {
                wall,
                next,
                needed_ms,
                max_wait_ms,
            } => generate::wait_too_long(wall, next, needed_ms, max_wait_ms),
            Error::BeforeEpoch { wall, epoch } => generate::before_epoch(wall, epoch),
            Error::PastEnd { end } => generate::past_end(end),
            Error::NotSuperuser(function) => generate::not_superuser(function),
            Error::OnlyInCopy => generate::only_in_copy(),
            Error::NothingIssued => generate::nothing_issued(),
            Error::NegativeCount(count) => generate::negative_count(count),

            Error::ServersOutOfRange(servers) => read::servers_out_of_range(servers),
            Error::InvalidLayout { text, reason } => read::invalid_layout(&text, &reason),
            Error::FieldOutOfRange(error) => read::field_out_of_range(error),
            Error::NegativeId(id) => read::negative_id(id),
            Error::IdOutsideLayout { id, bits } => read::id_outside_layout(id, bits),
            Error::TimeOutsideLayout { at, layout } => read::time_outside_layout(&at, &layout),
            Error::InvalidEncoding(name) => read::invalid_encoding(&name),
            Error::InvalidText { text, reason } => read::invalid_text(&text, reason),
            Error::OutOfMemory => read::out_of_memory(),

            Error::NoRelation(relation) => migrate::no_relation(relation),
            Error::NotATable(relation) => migrate::not_a_table(&relation),
            Error::NotOwner(table) => migrate::not_owner(&table),
            Error::LockDenied(table) => migrate::lock_denied(&table),
            Error::RoleDenied(role) => migrate::role_denied(&role),
            Error::InvalidLockMode(mode) => migrate::invalid_lock_mode(&mode),
            Error::InvalidTriggerState(state) => migrate::invalid_trigger_state(&state),
            Error::NullStatement => migrate::null_statement(),
            Error::NotAnAlteration => migrate::not_an_alteration(),
            Error::ClientGone => migrate::client_gone(),
            Error::NameMoved(name) => migrate::name_moved(&name),
            Error::InvalidSearchPath(path) => migrate::invalid_search_path(&path),
            Error::SearchPathTooLong => migrate::search_path_too_long(),
            Error::NotOneStatement(count) => migrate::not_one_statement(count),
            Error::StatementRefused(code) => migrate::statement_refused(&code),
            Error::TrialTooLong => migrate::trial_too_long(),
            Error::NotATrigger(function) => migrate::not_a_trigger(function),
            Error::WrongTrigger(trigger) => migrate::wrong_trigger(&trigger),
            Error::ShadowArguments(trigger) => migrate::shadow_arguments(&trigger),
            Error::ShadowMissing { table, column } => migrate::shadow_missing(&table, &column),
            Error::ShadowType(column) => migrate::shadow_type(&column),

            Error::RecordsMissing(table) => records::records_missing(table),
            Error::NullInRecord { table, column } => records::null_in_record(table, &column),
            Error::TooManyKeys { keys, most } => records::too_many_keys(keys, most),
            Error::KeysDiffer { targets, columns } => records::keys_differ(targets, columns),
            Error::InvalidKind(kind) => records::invalid_kind(&kind),
            Error::RecordsGuarded(table) => records::records_guarded(&table),
            Error::RestoreDenied => records::restore_denied(),
            Error::RestoreIsATrigger => records::restore_is_a_trigger(),
            Error::InvalidRestoredRecord(record) => records::invalid_restored_record(&record),
        }
    }
}

/// A report without detail and hint. Its location is the caller's.
#[track_caller]
fn new_report(code: PgSqlErrorCode, message: impl Into<Cow<'static, str>>) -> ErrorReport {
    ErrorReport::new(code, message, "snowflake")
}

/// The result of a function that SQL has called. Raises the error, if any.
#[inline]
pub fn or_report<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| error.report())
}

/// A reason of the algorithm crate as a DETAIL: "it has 5 characters" becomes
/// "It has 5 characters." A sentence stays as it is.
fn sentence(reason: &str) -> String {
    let mut rest = reason.trim_end_matches('.').chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).chain(['.']).collect()
}

/// Writes a line to the server's log, with a detail unless it is empty.
pub fn log(message: String, detail: String) {
    let report = new_report(ERRCODE_SUCCESSFUL_COMPLETION, message);
    let report = if detail.is_empty() {
        report
    } else {
        report.set_detail(detail)
    };
    report.report(PgLogLevel::LOG);
}

/// Writes a warning to the server's log and to the session.
pub fn warn(message: String, detail: String, hint: &str) {
    new_report(ERRCODE_WARNING, message)
        .set_detail(detail)
        .set_hint(hint)
        .report(PgLogLevel::WARNING);
}
