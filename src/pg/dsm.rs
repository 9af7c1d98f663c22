//! Shared memory that is made while the server runs: PostgreSQL 17's registry of named
//! segments. A segment stays until the server ends, or until a backend's crash ends all
//! processes. Its memory is zero when it is new.
//!
//! On 17 and 18 the registry keeps the name of a segment that could not be made, and then
//! no process gets it until the next restart. So a throwaway segment of the same size is
//! made first: where that fails, nothing was named. A process that finds the segment made
//! needs no memory, and must not fail for lack of some. The registry cannot be asked; so
//! the process that makes a segment also registers a wait event, whose names are in the same shared
//! memory and can be listed.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use pgrx::prelude::*;
use pgrx::{PgTryBuilder, pg_guard, pg_sys};

/// Why there is no segment: the error of PostgreSQL. Nothing but an error may follow.
pub struct NotMade {
    /// Its SQLSTATE.
    pub code: PgSqlErrorCode,
    /// Its message.
    pub message: String,
}

/// The names of a segment, and of the wait event that exists if the segment does.
#[derive(Clone, Copy)]
pub struct Names {
    pub segment: &'static CStr,
    pub sign: &'static CStr,
}

/// What fills a new segment; called while the registry is locked. It cannot fail.
static INIT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The segment of this name and size, mapped until the process ends. If there is none, it
/// is made, and filled by `init`, which must not be able to fail. Raises PostgreSQL's error
/// if there is no memory for a new one.
///
/// # Errors
/// [`NotMade`] where only a restart helps: the name has another size, or was not made in
/// full.
pub fn named(names: Names, size: usize, init: fn(*mut c_void)) -> Result<*mut c_void, NotMade> {
    if !exists(names.sign) {
        // SAFETY: made and freed; the error of PostgreSQL, if it cannot be made.
        unsafe { pg_sys::dsm_detach(pg_sys::dsm_create(size, 0)) };
    }
    INIT.store(init as *mut c_void, Relaxed);
    let mut found = false;
    let found_at = &raw mut found;
    // SAFETY: a name of fewer than 64 bytes.
    let start = PgTryBuilder::new(move || unsafe {
        Ok(pg_sys::GetNamedDSMSegment(
            names.segment.as_ptr(),
            size,
            Some(fill),
            found_at,
            #[cfg(feature = "pg19")]
            ptr::null_mut(),
        ))
    })
    .catch_others(|error| match error {
        pg_sys::panic::CaughtError::PostgresError(report)
        | pg_sys::panic::CaughtError::ErrorReport(report) => Err(NotMade {
            code: report.sql_error_code(),
            message: report.message().to_owned(),
        }),
        other => other.rethrow(),
    })
    .execute()?;
    if !found {
        // SAFETY: a name of fewer than 64 bytes.
        unsafe { pg_sys::WaitEventExtensionNew(names.sign.as_ptr()) };
    }
    Ok(start)
}

/// Whether a process has registered this wait event.
fn exists(sign: &CStr) -> bool {
    let mut count: c_int = 0;
    // SAFETY: a new array of as many names.
    unsafe {
        let names = pg_sys::GetWaitEventCustomNames(pg_sys::PG_WAIT_EXTENSION, &mut count);
        let count = usize::try_from(count).unwrap_or(0);
        slice::from_raw_parts(names, count)
            .iter()
            .any(|&name| CStr::from_ptr(name) == sign)
    }
}

#[cfg(not(feature = "pg19"))]
#[pg_guard]
unsafe extern "C-unwind" fn fill(start: *mut c_void) {
    // SAFETY: what `named` has stored.
    unsafe { call_init(start) }
}

#[cfg(feature = "pg19")]
#[pg_guard]
unsafe extern "C-unwind" fn fill(start: *mut c_void, _argument: *mut c_void) {
    // SAFETY: what `named` has stored.
    unsafe { call_init(start) }
}

/// # Safety
/// [`INIT`] is a function.
unsafe fn call_init(start: *mut c_void) {
    // SAFETY: per this function's contract.
    let init: fn(*mut c_void) = unsafe { std::mem::transmute(INIT.load(Relaxed)) };
    init(start);
}

/// A new tranche of locks of this name.
pub fn new_tranche(_name: &'static CStr) -> c_int {
    // SAFETY: a static name.
    unsafe {
        pg_sys::LWLockNewTrancheId(
            #[cfg(feature = "pg19")]
            _name.as_ptr(),
        )
    }
}

/// Gives a tranche its name in this process.
pub fn name_tranche(_number: c_int, _name: &'static CStr) {
    #[cfg(not(feature = "pg19"))]
    // SAFETY: a static name.
    unsafe {
        pg_sys::LWLockRegisterTranche(_number, _name.as_ptr());
    }
}
