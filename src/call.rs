//! The call of an SQL function: which one it is, and who may make it.
#![allow(unsafe_code)] // the call's frame, and the current user

use pgrx::pg_sys;

use crate::error::Error;

/// The OID of the SQL function that is running.
pub fn called_function(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Oid {
    // SAFETY: Postgres calls SQL functions with a valid call frame, whose
    // `flinfo` is null only where C code calls the function directly.
    unsafe {
        match (*fcinfo).flinfo.as_ref() {
            Some(flinfo) => flinfo.fn_oid,
            None => pg_sys::InvalidOid,
        }
    }
}

/// Uniqueness rests on these, so a grant is not enough.
pub fn superusers_only(function: &'static str) {
    // SAFETY: reads the current user's properties.
    if !unsafe { pg_sys::superuser() } {
        Error::NotSuperuser(function).report();
    }
}
