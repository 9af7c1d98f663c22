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
#![allow(unsafe_code)] // callbacks and the planner's nodes

use std::ffi::{CStr, c_int, c_void};

use parking_lot::Mutex;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::prelude::*;
use pgrx::{is_a, pg_guard, pg_sys};

use crate::call::called_function;
use crate::error::Error;
use crate::{catalog, generator, settings};

/// The name of the twin.
const TWIN: &CStr = c"copy_nextval";

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

/// Begins to look at how transactions end; while libraries are preloaded.
pub fn init() {
    // SAFETY: the callbacks live as long as the library.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    }
}

/// Whether a utility statement is a `COPY ... FROM`.
///
/// # Safety
/// It is a node.
pub unsafe fn is_copy_from(utility: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag says what the node is.
    unsafe {
        is_a(utility, pg_sys::NodeTag::T_CopyStmt) && (*utility.cast::<pg_sys::CopyStmt>()).is_from
    }
}

/// A statement begins; answers how many run around it.
pub fn begin(is_copy_from: bool) -> usize {
    // SAFETY: reads the state of the transaction.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    let mut running = RUNNING.lock();
    let depth = running.len();
    running.push(Running {
        is_copy_from,
        level,
    });
    depth
}

/// It has ended, and with it whatever it had begun.
pub fn end(depth: usize) {
    RUNNING.lock().truncate(depth);
}

fn in_copy_from() -> bool {
    RUNNING.lock().last().is_some_and(|it| it.is_copy_from)
}

/// Statements that an error has ended don't say so themselves.
#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut c_void,
) {
    use pg_sys::XactEvent::{XACT_EVENT_ABORT, XACT_EVENT_PARALLEL_ABORT};
    if matches!(event, XACT_EVENT_ABORT | XACT_EVENT_PARALLEL_ABORT) {
        RUNNING.lock().clear();
    }
}

/// An error that is caught ends what began in its subtransaction; a COPY
/// around that goes on.
#[pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: reads the state of the transaction, still the inner one's.
        let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
        RUNNING.lock().retain(|it| it.level < level);
    }
}

/// What a planner support function returns: an expression, or null for "no".
struct Replacement(*mut pg_sys::Node);

/// The planner's question what to put in the place of `snowflake_nextval()`.
#[pg_extern(
    immutable,
    parallel_safe,
    sql = r#"
CREATE FUNCTION snowflake_internal.nextval_support(request internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.nextval_support(request internal) IS
    'Planner support function of snowflake_nextval()';
"#
)]
fn snowflake_nextval_support(fcinfo: pg_sys::FunctionCallInfo) -> Replacement {
    // SAFETY: support functions are called with a node as their only argument;
    // the tag says which one.
    unsafe {
        let arguments = (*fcinfo).args.as_slice((*fcinfo).nargs as usize);
        let request: *mut pg_sys::Node = arguments[0].value.cast_mut_ptr();
        if !is_a(request, pg_sys::NodeTag::T_SupportRequestSimplify) {
            return Replacement(std::ptr::null_mut());
        }
        let request = &*request.cast::<pg_sys::SupportRequestSimplify>();
        if !request.root.is_null()
            || !in_copy_from()
            || !settings::copy_multi_insert()
            || !prepares_defaults()
        {
            return Replacement(std::ptr::null_mut());
        }
        Replacement(twin_of(request.fcall).unwrap_or(std::ptr::null_mut()))
    }
}

/// Whether the current memory context is a COPY's and no domain is looked at.
unsafe fn prepares_defaults() -> bool {
    // SAFETY: contexts that live, and their names, which are constants.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let mut child = (*context).firstchild;
        while !child.is_null() {
            if CStr::from_ptr((*child).name) == DOMAIN_CONTEXT {
                return false;
            }
            child = (*child).nextchild;
        }
        CStr::from_ptr((*context).name) == COPY_CONTEXT
    }
}

/// The same call of the twin, where there is one and the user may execute both.
unsafe fn twin_of(call: *mut pg_sys::FuncExpr) -> Option<*mut pg_sys::Node> {
    // SAFETY: the call is the one that is being simplified; the copy belongs to
    // the caller's memory context.
    unsafe {
        let original = (*call).funcid;
        let twin = catalog::function_without_arguments(original, TWIN)?;
        if !may_execute(original) || !may_execute(twin) {
            return None;
        }
        let copy: *mut pg_sys::FuncExpr = pg_sys::copyObjectImpl(call.cast()).cast();
        (*copy).funcid = twin;
        Some(copy.cast())
    }
}

#[cfg(feature = "pg15")]
unsafe fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: looks privileges up.
    unsafe {
        pg_sys::pg_proc_aclcheck(function, pg_sys::GetUserId(), pg_sys::ACL_EXECUTE)
            == pg_sys::AclResult::ACLCHECK_OK
    }
}

#[cfg(not(feature = "pg15"))]
unsafe fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: looks privileges up.
    unsafe {
        pg_sys::object_aclcheck(
            pg_sys::ProcedureRelationId,
            function,
            pg_sys::GetUserId(),
            pg_sys::ACL_EXECUTE.into(),
        ) == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// `snowflake_nextval()` under a name that is marked STABLE, which is only true
/// as far as COPY is concerned; refused anywhere else.
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.copy_nextval() RETURNS bigint
    STRICT STABLE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.copy_nextval() IS
    'Called by COPY in place of snowflake_nextval(), so that it can insert rows in batches';
"#)]
fn snowflake_copy_nextval(fcinfo: pg_sys::FunctionCallInfo) -> i64 {
    if !in_copy_from() {
        Error::OnlyInCopy.report();
    }
    match generator::next(|| called_function(fcinfo)) {
        Ok(id) => id.get(),
        Err(error) => error.report(),
    }
}

// SAFETY: the datum is a node, as a support function's answer has to be.
unsafe impl BoxRet for Replacement {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: null is "no", not an SQL null.
        unsafe { fcinfo.return_raw_datum(pg_sys::Datum::from(self.0)) }
    }
}

// SAFETY: the function that returns it writes its SQL itself.
unsafe impl SqlTranslatable for Replacement {
    const TYPE_IDENT: &'static str = "internal";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Err(ArgumentError::Datum);
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::As("internal")));
}
