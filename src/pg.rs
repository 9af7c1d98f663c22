//! Postgres' C interface behind safe functions and types.
//!
//! The other modules call these, so that few of them open `unsafe`. This one
//! knows none of them. It is by subject: the SQL function that is called
//! ([`Call`]), texts, row types, triggers, callbacks, the planner, the catalog,
//! tables, and statements with a role's rights.
//!
//! What makes these wrappers safe:
//!
//! - They run in a server process, in its only thread: the extension starts no
//!   thread, and pgrx refuses calls from another one.
//! - SQL declares a function with the argument and result types of the Rust
//!   function, as pgrx's own types require it too.
//! - What lives as long as a call has the call's lifetime, and what is opened is
//!   closed by its type. If an error of Postgres passes through, closing is left
//!   to the end of the transaction, as in C.
#![allow(unsafe_code)] // calls C and reads what it lays out

mod call;
mod callbacks;
mod catalog;
mod composite;
mod meaning;
mod parse;
mod planner;
mod record;
mod relation;
mod rights;
mod sequence;
mod table;
mod text;
mod transaction;
mod trigger;

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{IntoDatum, check_for_interrupts, direct_function_call, pg_sys};
use snowflake_id::WallTime;

/// 2000-01-01T00:00:00Z, the epoch of Postgres' times, in microseconds since 1970.
pub const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

pub use call::Call;
pub use callbacks::{
    NewIndex, Statement, WatchStatements, before_exit, on_relation_change, on_subtransaction_end,
    on_transaction_end, transaction_nest_level, watch_statements,
};
pub use catalog::{
    Class, column_number, extension_named, extension_of, function_in, has_privilege_on,
    has_rights_of, lock_object, lock_relation, may_become, may_execute, may_read_column,
    may_see_activity_of, may_see_settings, may_set_replication_role, owns_database, owns_extension,
    qualified_name, relation_in, result_type_of, role_name, schema_named,
};
pub use composite::{Composite, CompositeResult};
pub use meaning::{Meaning, altered_table, inherits_from, pin_schema};
pub use parse::{NameKind, literal, plain_names, quoted};
pub use planner::{Replacement, Simplify, SupportRequest, in_memory_context, memory_context_has};
pub use record::{Record, RecordType, Scalar};
pub use relation::{Column, Mode, Relation, Row};
pub use rights::{SearchPath, TextArray, count_statements, first_row, with_rights_of};
pub use sequence::{Sequence, sequence_data};
pub use table::{CopiedRows, Table, Unfit};
pub use text::{AsciiText, EncodedText, Name, Names, OwnText, Text};
pub use transaction::{
    backend, backend_number, database, is_in_parallel_mode, is_running, leader_number,
    max_backends, max_prepared_transactions, moment_now, moment_of_statement,
    prepared_transactions, transaction_id,
};
pub use trigger::{Trigger, TriggerResult, set_state as set_trigger_state, triggers_of};

/// Declares what an argument's or a result's type is called in SQL.
macro_rules! sql_type {
    (argument $type:ty, $argument:expr) => {
        $crate::pg::sql_type!($type, Ok($argument), Err(ReturnsError::Datum), "argument");
    };
    (result $type:ty, $result:literal) => {
        $crate::pg::sql_type!(
            $type,
            Err(ArgumentError::Datum),
            Ok(ReturnsRef::One(SqlMappingRef::As($result))),
            $result
        );
    };
    ($type:ty, $argument:expr, $result:expr, $ident:literal) => {
        // SAFETY: the type reads or builds values of this SQL type.
        unsafe impl SqlTranslatable for $type {
            const TYPE_IDENT: &'static str = $ident;
            const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
            const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = $argument;
            const RETURN_SQL: Result<ReturnsRef, ReturnsError> = $result;
        }
    };
}
use sql_type;

/// Whether `shared_preload_libraries` is being loaded.
pub fn is_preloading() -> bool {
    // SAFETY: a flag that Postgres sets before it loads libraries.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Whether the current user is a superuser.
pub fn is_superuser() -> bool {
    // SAFETY: reads the current user's properties.
    unsafe { pg_sys::superuser() }
}

/// The current user.
pub fn current_user() -> pg_sys::Oid {
    // SAFETY: reads the state of the session.
    unsafe { pg_sys::GetUserId() }
}

/// Whether the server is in recovery: a standby, or before the end of recovery.
pub fn is_in_recovery() -> bool {
    // SAFETY: reads shared memory only.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Whether a transaction is running.
pub fn is_in_transaction() -> bool {
    // SAFETY: reads the state of this process.
    unsafe { pg_sys::IsTransactionState() }
}

/// The number of this process.
pub fn process_id() -> u32 {
    // SAFETY: set once, when the process starts.
    unsafe { pg_sys::MyProcPid }.unsigned_abs()
}

/// Whether this process writes what logical replication has received.
pub fn is_logical_worker() -> bool {
    // SAFETY: reads the state of the process.
    unsafe { pg_sys::IsLogicalWorker() }
}

/// Whether this session writes rows that come from another server, as logical
/// replication does. Only privileged roles can set it.
pub fn is_replica_session() -> bool {
    // SAFETY: reads a setting.
    unsafe { pg_sys::SessionReplicationRole == pg_sys::SESSION_REPLICATION_ROLE_REPLICA as i32 }
}

/// When the postmaster started.
pub fn started_at() -> WallTime {
    // SAFETY: set when the postmaster starts, and inherited.
    let micros = unsafe { pg_sys::PgStartTime };
    WallTime::from_unix_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS))
}

/// Whether an extension's script runs.
pub fn is_creating_extension() -> bool {
    // SAFETY: a flag of the session.
    unsafe { pg_sys::creating_extension }
}

/// Whether the database's encoding is UTF-8.
pub fn is_utf8_database() -> bool {
    // SAFETY: reads a number that is fixed for the session.
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}

/// Makes what the transaction has written visible to its next command.
pub fn make_writes_visible() {
    // SAFETY: raises an error where it is not allowed.
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Commits, and begins a transaction that has no snapshot yet. The caller is a
/// procedure whose call may commit.
pub fn commit() {
    // SAFETY: connected and finished once. It does what COMMIT in a procedure
    // does, and raises its errors.
    unsafe {
        pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as i32);
        pg_sys::SPI_commit();
        pg_sys::SPI_finish();
    }
}

/// A time as Postgres prints it in this session.
pub fn printed(at: TimestampWithTimeZone) -> String {
    // SAFETY: the output function of the argument's type; its text is copied
    // at once.
    let text: Option<&CStr> =
        unsafe { direct_function_call(pg_sys::timestamptz_out, &[at.into_datum()]) };
    text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// Waits for `ms` milliseconds, or less if the process's latch is set. Raises
/// the error of a cancel, and ends the process if the postmaster has died.
pub fn sleep(ms: i64) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: `MyLatch` is this process's own latch, set up before any SQL runs.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, ms.max(1), wait_event());
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}

/// What `pg_stat_activity.wait_event` shows: an event of its own from
/// PostgreSQL 17 on, `Extension` before.
#[cfg(any(feature = "pg15", feature = "pg16"))]
fn wait_event() -> u32 {
    pg_sys::PG_WAIT_EXTENSION
}

/// What `pg_stat_activity.wait_event` shows: an event of its own from
/// PostgreSQL 17 on, `Extension` before.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn wait_event() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static EVENT: AtomicU32 = AtomicU32::new(0);
    let known = EVENT.load(Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: a static name; the number is the same in every process.
    let event = unsafe { pg_sys::WaitEventExtensionNew(c"SnowflakeWaitForTime".as_ptr()) };
    EVENT.store(event, Relaxed);
    event
}

/// Keeps backtraces out of errors. pgrx appends one to the DETAIL of each error
/// of Postgres that passes through, a cancel included, if the server has
/// `RUST_BACKTRACE` in its environment. The standard library decides once, at
/// the first capture, whether to make any. So the first is made here, with a
/// variable that forbids it.
pub fn forgo_backtraces() {
    const NAME: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(NAME);
    // SAFETY: the process has one thread, so no other one reads the environment.
    unsafe {
        std::env::set_var(NAME, "0");
        let _ = std::backtrace::Backtrace::capture();
        // Other libraries, and programs that the server starts, see no change.
        match before {
            Some(before) => std::env::set_var(NAME, before),
            None => std::env::remove_var(NAME),
        }
    }
}
