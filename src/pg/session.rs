//! The session: its user, its database and its state.
//!
//! What is safe about each block: it reads a variable that Postgres sets before any code
//! of the library runs in the process, and that only this thread changes, or calls a
//! function that does no more and is guarded by pgrx.
#![allow(clippy::undocumented_unsafe_blocks)] // the contract above

use pgrx::pg_sys;

/// The current user.
pub fn current_user() -> pg_sys::Oid {
    unsafe { pg_sys::GetUserId() }
}

/// Whether the current user is a superuser.
pub fn is_superuser() -> bool {
    unsafe { pg_sys::superuser() }
}

/// The number of this process.
pub fn process_id() -> u32 {
    unsafe { pg_sys::MyProcPid }.unsigned_abs()
}

/// The database of this process.
pub fn database() -> pg_sys::Oid {
    unsafe { pg_sys::MyDatabaseId }
}

/// Whether the database's encoding is UTF-8.
pub fn is_utf8_database() -> bool {
    unsafe { pg_sys::GetDatabaseEncoding() == pg_sys::pg_enc::PG_UTF8 as i32 }
}

/// Whether this process writes what logical replication has received.
pub fn is_logical_worker() -> bool {
    unsafe { pg_sys::IsLogicalWorker() }
}

/// Whether this session writes rows that come from another server, as logical
/// replication does. Only privileged roles can set it.
pub fn is_replica_session() -> bool {
    unsafe { pg_sys::SessionReplicationRole == pg_sys::SESSION_REPLICATION_ROLE_REPLICA as i32 }
}

/// Forgets what would be the CONTEXT of an error that is raised next: what the functions
/// around this one add to it. Whatever catches an error sets it back.
pub fn forget_error_context() {
    // SAFETY: this thread's list of callbacks, which PG_TRY and the server's main loop set
    // back when they catch the error.
    unsafe { pg_sys::error_context_stack = std::ptr::null_mut() };
}

/// The number of an SQLSTATE, six bits a character, as `MAKE_SQLSTATE` of PostgreSQL's
/// headers makes it.
pub fn sqlstate_number(code: &[u8]) -> i32 {
    let digits = code.iter().take(5).enumerate();
    digits.fold(0, |number, (place, &digit)| {
        number | i32::from(digit.wrapping_sub(b'0') & 0x3f) << (6 * place)
    })
}

unsafe extern "C-unwind" {
    // Not in pgrx's bindings. It raises no error.
    fn pq_check_connection() -> bool;
}

/// Whether the client is still connected, as far as the system can tell; `true` in a
/// process without a client.
pub fn has_client() -> bool {
    unsafe { pg_sys::MyProcPort.is_null() || pq_check_connection() }
}
