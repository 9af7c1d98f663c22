//! The processes of the server, by their places among all backends.

use pgrx::pg_sys;

/// Raises an error if too much of the stack is in use; called by what calls itself.
pub fn check_stack() {
    // SAFETY: raises an error, or does nothing.
    unsafe { pg_sys::check_stack_depth() }
}

/// The number of processes that can have a transaction at a time, from the request for
/// shared memory on.
pub fn max_backends() -> usize {
    // SAFETY: set before shared memory is requested, and never changed.
    usize::try_from(unsafe { pg_sys::MaxBackends }).unwrap_or(0)
}

/// The number of a process's place among those of all backends.
fn number_of(process: *mut pg_sys::PGPROC) -> Option<usize> {
    if process.is_null() {
        return None;
    }
    // SAFETY: the places of all processes are one array.
    let number = unsafe { process.offset_from((*pg_sys::ProcGlobal).allProcs) };
    usize::try_from(number)
        .ok()
        .filter(|&number| number < max_backends())
}

/// The number of this process among all backends; `None` in a process that has no
/// transactions.
pub fn backend_number() -> Option<usize> {
    // SAFETY: set once, before the process's first transaction.
    number_of(unsafe { pg_sys::MyProc })
}

/// The number of the backend whose transaction this process takes part in: for a parallel
/// worker its leader's.
pub fn leader_number() -> Option<usize> {
    if !is_parallel_worker() {
        return backend_number();
    }
    // SAFETY: a parallel worker joins its leader's lock group before it does anything
    // else.
    number_of(unsafe { (*pg_sys::MyProc).lockGroupLeader })
}

/// Whether this process works for another one's transaction.
pub fn is_parallel_worker() -> bool {
    // SAFETY: set once, when the process starts.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// The process and the user of a backend; `None` if it has ended.
pub fn backend(number: usize) -> Option<(i32, pg_sys::Oid)> {
    if number >= max_backends() {
        return None;
    }
    // SAFETY: within the array. The fields are plain numbers that other processes may
    // change meanwhile.
    unsafe {
        let process = (*pg_sys::ProcGlobal).allProcs.add(number);
        let pid = (&raw const (*process).pid).read_volatile();
        let user = (&raw const (*process).roleId).read_volatile();
        (pid != 0).then_some((pid, user))
    }
}
