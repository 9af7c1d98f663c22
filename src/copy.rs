//! The COPY fast path.
//!
//! COPY inserts rows one by one if a column's default is volatile, because the
//! function might read the table. PostgreSQL exempts `nextval()` alone. The
//! reason does not apply to `snowflake_nextval()` and `snowflake_id()`. So a planner
//! support function replaces them by a stable twin while a `COPY … FROM` prepares its defaults. All
//! of these conditions must hold:
//!
//! - An expression is planned alone (`root` is null), as COPY does with its
//!   defaults. Statements have a planner, also those of triggers, of functions
//!   and of cached plans.
//! - A COPY FROM is the innermost utility statement that runs.
//! - That COPY is preparing its defaults, as its memory context shows. The
//!   functions that it calls later, and the domains that it reads, plan
//!   expressions alone too, and keep them for the session.
//! - The caller may execute both functions. Otherwise the error would name a
//!   function that the user has not written.
//!
//! The hook in [`crate::utility`] reports which utility statement runs; of the one that has
//! loaded the library, the portal knows.

use std::ffi::{CStr, c_int};

use parking_lot::Mutex;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::catalog::Symbol;
use crate::error::Error;
use crate::pg;
use crate::pg::callbacks::Statement;
use crate::pg::planner::{Replacement, Simplify, SupportRequest};
use crate::{catalog, generator, settings};

/// The twin.
const TWIN: Symbol = (c"copy_nextval", c"snowflake_copy_nextval_wrapper");

/// The name of the memory context in which COPY prepares its defaults.
const COPY_CONTEXT: &CStr = c"COPY";

/// The name of the memory context in which a domain's checks are planned: a child
/// of the current one.
const DOMAIN_CONTEXT: &CStr = c"Domain constraints";

/// A utility statement that runs.
struct RunningStatement {
    is_copy_from: bool,
    /// The transaction's nest level at its beginning.
    level: c_int,
}

/// The utility statements that run, the innermost last. A thread-local would have
/// a destructor, which runs at exit, before callbacks of Postgres.
static RUNNING: Mutex<Vec<RunningStatement>> = Mutex::new(Vec::new());

/// Starts to watch how transactions end.
pub fn init() {
    pg::callbacks::on_transaction_end(at_transaction_end);
    pg::callbacks::on_subtransaction_end(at_subtransaction_end);
}

/// Called when a statement starts. Returns how many run around it.
pub fn begin(is_copy_from: bool) -> usize {
    let level = pg::transaction::nest_level();
    let mut running = RUNNING.lock();
    let depth = running.len();
    running.push(RunningStatement {
        is_copy_from,
        level,
    });
    depth
}

/// Called when a statement ends, with the number that [`begin`] returned. The
/// statements inside it have ended too.
pub fn end(depth: usize) {
    RUNNING.lock().truncate(depth);
}

fn in_copy_from() -> bool {
    if let Some(innermost) = RUNNING.lock().last() {
        return innermost.is_copy_from;
    }
    // A statement that has loaded the library is not among them.
    Statement::of_client().is_some_and(Statement::is_copy_from)
}

/// [`end`] is not called for statements that fail.
fn at_transaction_end(event: pg_sys::XactEvent::Type) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_PARALLEL_ABORT};
    if matches!(event, XACT_EVENT_ABORT | XACT_EVENT_PARALLEL_ABORT) {
        RUNNING.lock().clear();
    }
}

/// An error that is caught ends the statements of its subtransaction. A COPY
/// around it continues.
fn at_subtransaction_end(event: pg_sys::SubXactEvent::Type) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // Still the level of the inner transaction.
        let level = pg::transaction::nest_level();
        RUNNING.lock().retain(|it| it.level < level);
    }
}

/// Tells the planner by what to replace a call of `snowflake_nextval()` or
/// `snowflake_id()`.
#[pg_extern(sql = false)]
fn snowflake_nextval_support(request: SupportRequest<'_>) -> Replacement {
    request
        .simplify()
        .filter(|request| {
            !request.is_in_statement()
                && in_copy_from()
                && settings::copy_multi_insert()
                && prepares_defaults()
        })
        .and_then(call_of_twin)
        .unwrap_or_else(Replacement::none)
}

/// Whether the current memory context is a COPY's, and no domain is planned.
fn prepares_defaults() -> bool {
    pg::planner::in_memory_context(COPY_CONTEXT) && !pg::planner::memory_context_has(DOMAIN_CONTEXT)
}

/// The same call of the twin, if it exists and the user may execute both.
fn call_of_twin(request: Simplify<'_>) -> Option<Replacement> {
    let original = request.function();
    let twin = catalog::function(TWIN)?;
    (pg::privileges::may_execute(original) && pg::privileges::may_execute(twin))
        .then(|| request.call_of(twin))
        .flatten()
}

/// `snowflake_nextval()` under a name that is marked STABLE. That is true for COPY
/// only, so it fails in every other statement.
#[pg_extern(sql = false)]
fn snowflake_copy_nextval() -> i64 {
    if !in_copy_from() {
        Error::OnlyInCopy.report();
    }
    match generator::next() {
        Ok(id) => id.get(),
        Err(error) => error.report(),
    }
}
