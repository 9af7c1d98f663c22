//! PostgreSQL's injection points (utils/injection_point.h).

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

// In every build of PostgreSQL 18; pgrx has no binding for it.
unsafe extern "C-unwind" {
    fn InjectionPointRun(name: *const c_char, argument: *mut c_void);
}

/// Does what is attached to this point. Raises an error if the server was built without them.
pub fn run(point: &CStr) {
    // SAFETY: the name ends with a zero byte, and what tests attach uses no argument. An error of
    // it comes as a panic of Rust, as from pgrx's own bindings.
    unsafe { pg_guard_ffi_boundary(|| InjectionPointRun(point.as_ptr(), ptr::null_mut())) };
}
