//! Callbacks: at the end of transactions, at the end of the process, and around
//! utility statements.

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;

use parking_lot::Mutex;
use pgrx::{PgList, is_a, pg_guard, pg_sys};

/// Calls `callback` at each event of a transaction's end, from now on.
pub fn on_transaction_end(callback: fn(pg_sys::XactEvent::Type)) {
    // SAFETY: both functions live as long as the library.
    unsafe { pg_sys::RegisterXactCallback(Some(transaction_event), callback as *mut c_void) }
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_event(
    event: pg_sys::XactEvent::Type,
    callback: *mut c_void,
) {
    // SAFETY: what `on_transaction_end` registered.
    let callback: fn(pg_sys::XactEvent::Type) = unsafe { std::mem::transmute(callback) };
    callback(event);
}

/// Calls `callback` at each event of a subtransaction, from now on.
pub fn on_subtransaction_end(callback: fn(pg_sys::SubXactEvent::Type)) {
    // SAFETY: both functions live as long as the library.
    unsafe { pg_sys::RegisterSubXactCallback(Some(subtransaction_event), callback as *mut c_void) }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_event(
    event: pg_sys::SubXactEvent::Type,
    _subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    callback: *mut c_void,
) {
    // SAFETY: what `on_subtransaction_end` registered.
    let callback: fn(pg_sys::SubXactEvent::Type) = unsafe { std::mem::transmute(callback) };
    callback(event);
}

/// Calls `callback` when the process ends, while shared memory is still mapped.
pub fn before_exit(callback: fn()) {
    // SAFETY: both functions live as long as the library.
    unsafe { pg_sys::before_shmem_exit(Some(process_exit), (callback as usize).into()) }
}

#[pg_guard]
unsafe extern "C-unwind" fn process_exit(_code: c_int, callback: pg_sys::Datum) {
    // SAFETY: what `before_exit` registered.
    let callback: fn() = unsafe { std::mem::transmute(callback.cast_mut_ptr::<c_void>()) };
    callback();
}

/// Calls `callback` when the relation cache forgets a relation, from now on; with
/// `InvalidOid` if it forgets all of them.
pub fn on_relation_change(callback: fn(pg_sys::Oid)) {
    // SAFETY: both functions live as long as the library.
    unsafe {
        let argument = (callback as usize).into();
        pg_sys::CacheRegisterRelcacheCallback(Some(relation_change), argument);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_change(callback: pg_sys::Datum, relation: pg_sys::Oid) {
    // SAFETY: what `on_relation_change` registered.
    let callback: fn(pg_sys::Oid) =
        unsafe { std::mem::transmute(callback.cast_mut_ptr::<c_void>()) };
    callback(relation);
}

/// Calls `callback` when the system cache forgets a function, from now on.
pub fn on_function_change(callback: fn()) {
    // SAFETY: both functions live as long as the library.
    unsafe {
        pg_sys::CacheRegisterSyscacheCallback(
            pg_sys::SysCacheIdentifier::PROCOID as c_int,
            Some(function_change),
            (callback as usize).into(),
        );
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn function_change(
    callback: pg_sys::Datum,
    _cache: c_int,
    _hash_value: u32,
) {
    // SAFETY: what `on_function_change` registered.
    let callback: fn() = unsafe { std::mem::transmute(callback.cast_mut_ptr::<c_void>()) };
    callback();
}

/// A utility statement that is about to run.
#[derive(Clone, Copy)]
pub struct Statement<'a> {
    node: *mut pg_sys::Node,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> Statement<'a> {
    /// The statement that the client has sent, if it is a utility statement, while it runs.
    pub fn of_client() -> Option<Statement<'a>> {
        // SAFETY: null, or the portal that is being run, with a list of planned statements.
        unsafe {
            let portal = pg_sys::ActivePortal.as_ref()?;
            let statements = PgList::<pg_sys::PlannedStmt>::from_pg(portal.stmts);
            let node = (*statements.get_ptr(0)?).utilityStmt;
            (!node.is_null()).then_some(Statement {
                node,
                lifetime: PhantomData,
            })
        }
    }

    /// Whether it is a `COPY ... FROM`.
    pub fn is_copy_from(self) -> bool {
        // SAFETY: the tag shows what the node is.
        unsafe {
            is_a(self.node, pg_sys::NodeTag::T_CopyStmt)
                && (*self.node.cast::<pg_sys::CopyStmt>()).is_from
        }
    }

    /// Whether it is a DISCARD that includes sequences.
    pub fn discards_sequences(self) -> bool {
        // SAFETY: the tag shows what the node is.
        unsafe {
            is_a(self.node, pg_sys::NodeTag::T_DiscardStmt)
                && matches!(
                    (*self.node.cast::<pg_sys::DiscardStmt>()).target,
                    pg_sys::DiscardMode::DISCARD_ALL | pg_sys::DiscardMode::DISCARD_SEQUENCES
                )
        }
    }
}

/// What is done before and after each utility statement.
pub trait WatchStatements {
    /// What is known of a statement while it runs. An error drops nothing.
    type Running: Copy;

    /// Called before the statement.
    fn before(statement: Statement<'_>) -> Self::Running;

    /// Called after the statement, unless it failed.
    fn after(running: Self::Running);
}

/// The hook that was installed before this one; `None` before this one is.
static NEXT: Mutex<Option<pg_sys::ProcessUtility_hook_type>> = Mutex::new(None);

unsafe extern "C-unwind" {
    // Not pgrx's, which catches errors and raises them again.
    #[allow(clashing_extern_declarations)]
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        dest: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Watches utility statements from now on. Only the first call has an effect.
pub fn watch_statements<W: WatchStatements>() {
    // SAFETY: a variable of this process, which has one thread.
    unsafe {
        NEXT.lock().get_or_insert_with(|| {
            let before = pg_sys::ProcessUtility_hook;
            pg_sys::ProcessUtility_hook = Some(process_utility::<W>);
            before
        });
    }
}

/// Not guarded by pgrx, and nothing to drop while the statement runs: an error
/// passes it as it passes C, with its context, schema, table and constraint.
unsafe extern "C-unwind" fn process_utility<W: WatchStatements>(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: Postgres calls its hook with a statement to run. The hook before
    // this one, or Postgres itself, is passed what this one was passed.
    unsafe {
        let running = before::<W>((*statement).utilityStmt);
        let next = *NEXT.lock();
        let next = next.flatten().unwrap_or(standard_ProcessUtility);
        next(
            statement,
            query,
            read_only_tree,
            context,
            params,
            environment,
            dest,
            completion,
        );
        after::<W>(running);
    }
}

/// Guarded: what it raises leaves it as an error of Postgres.
#[pg_guard]
unsafe extern "C-unwind" fn before<W: WatchStatements>(node: *mut pg_sys::Node) -> W::Running {
    W::before(Statement {
        node,
        lifetime: PhantomData,
    })
}

/// Guarded as [`before`] is.
#[pg_guard]
unsafe extern "C-unwind" fn after<W: WatchStatements>(running: W::Running) {
    W::after(running);
}
