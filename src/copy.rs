//! The COPY fast path.
//!
//! Core gives up batched inserts where a column's default is volatile, as the
//! function might read the table; `nextval()` alone is exempt. The reason does
//! not hold for `snowflake_nextval()`, so a planner support function replaces
//! it by a stable twin while the defaults of a `COPY … FROM` are prepared:
//!
//! - where the request has no planner behind it (`root` is null): COPY prepares
//!   its defaults alone, while planned statements (also those of triggers, of
//!   functions and of cached plans) have one;
//! - where a COPY FROM is the innermost utility statement that runs;
//! - where that COPY prepares its defaults, which its memory context shows: in
//!   what it calls later, and in the domains that it looks at, expressions are
//!   planned alone, too, and kept for the session;
//! - where the caller may execute both functions: a missing privilege is told
//!   of the function that was written.
//!
//! Which utility statement runs is known from the hook in [`crate::utility`].

use std::ffi::{CStr, c_int};

use parking_lot::Mutex;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::Error;
use crate::pg::{self, Call, Replacement, Simplify, SupportRequest};
use crate::{generator, settings};

/// The name of the twin, in the schema of `snowflake_nextval()`.
const TWIN: &CStr = c"snowflake_copy_nextval";

/// The name of the memory context in which COPY prepares.
const COPY_CONTEXT: &CStr = c"COPY";

/// The name of the one that a domain's checks get, a child of the current one
/// while they are planned.
const DOMAIN_CONTEXT: &CStr = c"Domain constraints";

/// A utility statement that runs.
struct Running {
    is_copy_from: bool,
    /// The transaction's nest level at its beginning.
    level: c_int,
}

/// The utility statements that run, the innermost last. Not a thread-local: that
/// has a destructor, which runs at exit, and callbacks of Postgres run after it.
static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// Begins to watch how transactions end; while libraries are preloaded.
pub fn init() {
    pg::on_transaction_end(at_transaction_end);
    pg::on_subtransaction_end(at_subtransaction_end);
}

/// A statement begins; returns how many run around it.
pub fn begin(is_copy_from: bool) -> usize {
    let level = pg::transaction_nest_level();
    let mut running = RUNNING.lock();
    let depth = running.len();
    running.push(Running {
        is_copy_from,
        level,
    });
    depth
}

/// It has ended, and with it every statement that it had begun.
pub fn end(depth: usize) {
    RUNNING.lock().truncate(depth);
}

fn in_copy_from() -> bool {
    RUNNING.lock().last().is_some_and(|it| it.is_copy_from)
}

/// Statements that an error has ended don't report it themselves.
fn at_transaction_end(event: pg_sys::XactEvent::Type) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_PARALLEL_ABORT};
    if matches!(event, XACT_EVENT_ABORT | XACT_EVENT_PARALLEL_ABORT) {
        RUNNING.lock().clear();
    }
}

/// An error that is caught ends what began in its subtransaction; a COPY around
/// it continues.
fn at_subtransaction_end(event: pg_sys::SubXactEvent::Type) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // Still the level of the inner one.
        let level = pg::transaction_nest_level();
        RUNNING.lock().retain(|it| it.level < level);
    }
}

/// The planner's question what to put in the place of `snowflake_nextval()`.
#[pg_extern(
    immutable,
    parallel_safe,
    sql = r#"
CREATE FUNCTION snowflake_nextval_support(request internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
"#
)]
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

/// Whether the current memory context is a COPY's and no domain is looked at.
fn prepares_defaults() -> bool {
    pg::in_memory_context(COPY_CONTEXT) && !pg::memory_context_has(DOMAIN_CONTEXT)
}

/// The same call of the twin, if it exists and the user may execute both.
fn call_of_twin(request: Simplify<'_>) -> Option<Replacement> {
    let original = request.function();
    let twin = pg::function_in(pg::schema_of_function(original), TWIN)?;
    (pg::may_execute(original) && pg::may_execute(twin))
        .then(|| request.call_of(twin))
        .flatten()
}

/// `snowflake_nextval()` under a name that is marked STABLE, which is only true
/// as far as COPY is concerned; refused anywhere else.
#[pg_extern(stable, parallel_restricted)]
fn snowflake_copy_nextval(call: Call<'_>) -> i64 {
    if !in_copy_from() {
        Error::OnlyInCopy.report();
    }
    match generator::next(|| call.function()) {
        Ok(id) => id.get(),
        Err(error) => error.report(),
    }
}
