//! The configuration: which settings it names, and where their values come from.

use std::ffi::{CStr, CString, c_int};
use std::slice;

use pgrx::pg_sys;

/// Where the value of a setting comes from.
pub enum Source {
    /// This line of a configuration file.
    Line {
        /// The file.
        file: String,
        /// The number of the line.
        number: c_int,
    },
    /// An argument of the server program.
    CommandLine,
}

/// Where the value of a setting comes from, placeholders included; `None` if it is
/// neither of these. A value that Postgres refused has no source once the setting is
/// defined.
pub fn source_of(name: &CStr) -> Option<Source> {
    all().into_iter().find_map(|setting| {
        // SAFETY: Postgres keeps a record while its setting is neither defined nor removed.
        // Its texts are nul-terminated, the file is null if there is none.
        unsafe {
            let known = CStr::from_ptr((*setting).name).to_bytes();
            if !known.eq_ignore_ascii_case(name.to_bytes()) {
                return None;
            }
            // The file is kept also where the command line has another value.
            match (*setting).source {
                pg_sys::GucSource::PGC_S_ARGV => Some(Source::CommandLine),
                pg_sys::GucSource::PGC_S_FILE if !(*setting).sourcefile.is_null() => {
                    let file = CStr::from_ptr((*setting).sourcefile);
                    Some(Source::Line {
                        file: file.to_string_lossy().into_owned(),
                        number: (*setting).sourceline,
                    })
                }
                _ => None,
            }
        }
    })
}

/// The names of the custom settings that are configured but not defined.
pub fn placeholders() -> Vec<CString> {
    all()
        .into_iter()
        .filter_map(|setting| {
            // SAFETY: as in `source_of`.
            unsafe {
                let is_placeholder =
                    (*setting).flags & pg_sys::GUC_CUSTOM_PLACEHOLDER as c_int != 0;
                is_placeholder.then(|| CStr::from_ptr((*setting).name).to_owned())
            }
        })
        .collect()
}

/// Every setting that Postgres knows, placeholders included.
#[cfg(feature = "pg15")]
fn all() -> Vec<*mut pg_sys::config_generic> {
    // SAFETY: Postgres' own array, which has as many elements as it says.
    unsafe {
        let count = pg_sys::GetNumConfigOptions();
        slice::from_raw_parts(pg_sys::get_guc_variables(), count as usize).to_vec()
    }
}

/// Every setting that Postgres knows, placeholders included.
#[cfg(not(feature = "pg15"))]
fn all() -> Vec<*mut pg_sys::config_generic> {
    let mut count = 0;
    // SAFETY: an allocated array, which has as many elements as it says.
    unsafe {
        let array = pg_sys::get_guc_variables(&mut count);
        let settings = slice::from_raw_parts(array, count as usize).to_vec();
        pg_sys::pfree(array.cast());
        settings
    }
}
