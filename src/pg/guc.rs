//! The configuration: which settings it names, and where their values come from.
//!
//! Before a setting is defined, PostgreSQL keeps a placeholder of its name. In the
//! postmaster that has the configured value ([`placeholders`]). In a session it may have what
//! a role, a database or the client has set, and then hides the configured value. So a library
//! that is loaded in a session reads the files and the server's command line
//! ([`configuration`]).

use std::ffi::{CStr, CString, c_int};
use std::ptr;
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

/// What is configured for a setting.
pub struct Configured {
    /// The setting, as it is written.
    pub name: CString,
    /// The text.
    pub text: CString,
    /// Where it is written.
    pub source: Option<Source>,
}

impl Configured {
    /// Whether the setting has this name.
    pub fn is(&self, name: &CStr) -> bool {
        self.name.to_bytes().eq_ignore_ascii_case(name.to_bytes())
    }
}

/// The custom settings that are not defined.
pub fn placeholders() -> Vec<Configured> {
    let names = all().into_iter().filter_map(|setting| {
        // SAFETY: as in `source_of`.
        unsafe {
            let is_placeholder = (*setting).flags & pg_sys::GUC_CUSTOM_PLACEHOLDER as c_int != 0;
            is_placeholder.then(|| CStr::from_ptr((*setting).name).to_owned())
        }
    });
    names
        .filter_map(|name| {
            // SAFETY: a nul-terminated name; the answer is null or a nul-terminated string that
            // is copied before the next call into Postgres.
            let text = unsafe {
                let text = pg_sys::GetConfigOption(name.as_ptr(), true, false);
                (!text.is_null()).then(|| CStr::from_ptr(text).to_owned())
            };
            Some(Configured {
                text: text?,
                source: source_of(&name),
                name,
            })
        })
        .collect()
}

/// What the configuration files and the server's command line have now, also names that
/// PostgreSQL does not know; a later one counts more. `None` if a file cannot be read or
/// parsed: PostgreSQL would not load it either.
pub fn configuration() -> Option<Vec<Configured>> {
    /// Where other files include none.
    const OUTERMOST: c_int = 0;
    let mut first: *mut pg_sys::ConfigVariable = ptr::null_mut();
    let mut last: *mut pg_sys::ConfigVariable = ptr::null_mut();
    let mut parse = |file: *const std::ffi::c_char, must_exist| {
        // SAFETY: nul-terminated names; the list is allocated in the current memory context.
        // What is wrong is reported to no one: the caller does that.
        unsafe {
            pg_sys::ParseConfigFile(
                file,
                must_exist,
                ptr::null(),
                0,
                OUTERMOST,
                pg_sys::DEBUG3 as c_int,
                &mut first,
                &mut last,
            )
        }
    };
    // SAFETY: set before the server accepts a connection.
    let main_file = unsafe { pg_sys::ConfigFileName };
    if !parse(main_file, true) || !parse(c"postgresql.auto.conf".as_ptr(), false) {
        return None;
    }
    let mut all = Vec::new();
    while !first.is_null() {
        // SAFETY: an element of the list, whose texts are nul-terminated.
        unsafe {
            let line = &*first;
            all.push(Configured {
                name: CStr::from_ptr(line.name).to_owned(),
                text: CStr::from_ptr(line.value).to_owned(),
                source: (!line.filename.is_null()).then(|| Source::Line {
                    file: CStr::from_ptr(line.filename).to_string_lossy().into_owned(),
                    number: line.sourceline,
                }),
            });
            first = line.next;
        }
    }
    all.extend(on_command_line()?);
    Some(all)
}

/// What the command line of the postmaster, or of a single-user server, sets.
fn on_command_line() -> Option<impl Iterator<Item = Configured>> {
    // SAFETY: a plain number, 0 in a server without postmaster.
    let process = match unsafe { pg_sys::PostmasterPid } {
        0 => "self".into(),
        pid => pid.to_string(),
    };
    let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let settings = settings_in_arguments(line.split(|&byte| byte == 0).skip(1));
    Some(settings.into_iter().map(|(name, text)| Configured {
        name,
        text,
        source: Some(Source::CommandLine),
    }))
}

/// The settings that arguments of the server program set: `-c name=value` and
/// `--name=value`, as its `getopt` reads them.
fn settings_in_arguments<'a>(
    mut arguments: impl Iterator<Item = &'a [u8]>,
) -> Vec<(CString, CString)> {
    /// The options that have a value, with those of a single-user server.
    const WITH_VALUE: &[u8] = b"BCDNSWcdfhkprtv";
    let mut settings = Vec::new();
    while let Some(argument) = arguments.next() {
        let assignment = if let Some(long) = argument.strip_prefix(b"--") {
            Some(long)
        } else if let Some(options) = argument.strip_prefix(b"-") {
            // Letters without a value can precede one that has.
            let valued = options
                .iter()
                .position(|letter| WITH_VALUE.contains(letter));
            valued.and_then(|place| {
                let rest = &options[place + 1..];
                let value = if rest.is_empty() {
                    arguments.next()?
                } else {
                    rest
                };
                (options[place] == b'c').then_some(value)
            })
        } else {
            None
        };
        let Some(assignment) = assignment else {
            continue;
        };
        let Some(place) = assignment.iter().position(|&byte| byte == b'=') else {
            continue;
        };
        // A hyphen stands for an underscore.
        let name: Vec<u8> = assignment[..place]
            .iter()
            .map(|&byte| if byte == b'-' { b'_' } else { byte })
            .collect();
        if let (Ok(name), Ok(text)) = (CString::new(name), CString::new(&assignment[place + 1..])) {
            settings.push((name, text));
        }
    }
    settings
}

/// Sets a setting as a reload of the configuration does.
#[cfg(feature = "dsm_registry")]
pub fn apply(configured: &Configured) {
    let source = match configured.source {
        Some(Source::CommandLine) => pg_sys::GucSource::PGC_S_ARGV,
        _ => pg_sys::GucSource::PGC_S_FILE,
    };
    // SAFETY: nul-terminated texts, which are copied. A value that is refused is left out.
    unsafe {
        pg_sys::SetConfigOption(
            configured.name.as_ptr(),
            configured.text.as_ptr(),
            pg_sys::GucContext::PGC_SIGHUP,
            source,
        );
    }
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
