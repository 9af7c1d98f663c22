//! A server clock that a test sets while the server runs.
//!
//! `libfaketime` (Debian's package `faketime`) is preloaded into the server. It
//! answers every request for the wall clock with the machine's time plus an
//! offset, which it reads from a file each time. The file is replaced by renaming,
//! so every process of the server sees the clock step at the same moment, and none
//! sees half of it. `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME` do not change
//! (`FAKETIME_DONT_FAKE_MONOTONIC` covers both in libfaketime 0.9.10), as they do
//! not change when a real clock is set. The machine's own clock is not touched.
//!
//! Postgres also reads the clock in its handler of SIGALRM, while any timeout is
//! active; a working session has one every ten seconds. The handler must not
//! interrupt another reading of the clock: `fopen` within `fopen` waits for a lock
//! that is never released, and `malloc` within `malloc` corrupts the heap. So the
//! preloaded library is `libfaketimeMT`, for programs with threads, which blocks
//! signals while it reads the file. A handler can still interrupt a `malloc` of
//! Postgres itself. [`SETTINGS`] therefore disables statement timeouts, and LLVM,
//! whose loading is one long `malloc`.
//!
//! The postmaster of PostgreSQL 15 starts some of its children from a signal
//! handler in the middle of a call that libfaketime has replaced. In those
//! children the clock remains the machine's: background workers (parallel workers
//! too), and what is started after a crash. Sessions are not affected.
//!
//! A reading of the clock takes about five microseconds, instead of a fiftieth of
//! one, because it reads the file. So IDs are generated more slowly.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::ids;
use crate::os_user::OsUser;
use crate::processes;
use crate::server::Server;

/// The settings of a server with such a clock, before the test's own.
pub const SETTINGS: &[(&str, &str)] = &[
    // See above.
    ("jit", "off"),
    // See above. It would also depend on the clock that the test sets, and end a
    // statement when that is set forward. The time limit ends a test that hangs.
    ("statement_timeout", "0"),
];

/// How far a clock is off, or is moved, forward or backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset {
    micros: i64,
}

impl Offset {
    /// The machine's own time.
    pub const NONE: Self = Self { micros: 0 };

    /// Ahead of the machine's time, or later than before.
    pub const fn forward(by: Duration) -> Self {
        Self {
            micros: by.as_micros() as i64,
        }
    }

    /// Behind the machine's time, or earlier than before.
    pub const fn back(by: Duration) -> Self {
        Self {
            micros: -(by.as_micros() as i64),
        }
    }

    /// Microseconds; negative for back.
    pub const fn micros(self) -> i64 {
        self.micros
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.micros.unsigned_abs() as f64 / 1e6;
        let (number, unit) = match seconds {
            ..1.0 => (seconds * 1e3, "ms"),
            ..60.0 => (seconds, "s"),
            ..3_600.0 => (seconds / 60.0, "min"),
            ..172_800.0 => (seconds / 3_600.0, "h"),
            _ => (seconds / 86_400.0, "d"),
        };
        // At most one decimal, and none if it is 0.
        let number = (number * 10.0).round() / 10.0;
        let sign = if self.micros < 0 { '-' } else { '+' };
        write!(formatter, "{sign}{number} {unit}")
    }
}

/// A clock for one server, or several. It starts at the machine's time.
#[derive(Debug)]
pub struct Clock {
    file: PathBuf,
    library: PathBuf,
    /// The user whose servers read it.
    owner: u32,
    offset: AtomicI64,
    versions: AtomicU64,
}

impl Clock {
    /// A clock whose file is in `directory`, which the OS user can read.
    pub fn new(directory: &Path, os_user: &OsUser) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let clock = Self {
            file: directory.join(format!("clock.{number}")),
            library: library()?,
            owner: fs::metadata(directory)
                .with_context(|| format!("looking at {}", directory.display()))?
                .uid(),
            offset: AtomicI64::new(0),
            versions: AtomicU64::new(0),
        };
        clock.set_offset(Offset::NONE)?;
        os_user.own(&clock.file)?;
        Ok(clock)
    }

    /// Makes the server use this clock from its next start on. Its data directory
    /// may be a copy of another server's.
    pub fn drive(&self, server: &mut Server) {
        for (name, value) in self.environment() {
            server.set_environment(name, &value);
        }
    }

    /// The environment of a process that uses this clock.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            // The times of files do not change either. To change them,
            // libfaketime uses a semaphore that all processes of the server
            // share: one that is killed while it holds it would stop all others.
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
    }

    /// Sets the clock to the machine's time plus `offset`.
    pub fn set_offset(&self, offset: Offset) -> Result<()> {
        // Each change has its own file name, so that two threads can set the
        // clock at the same time.
        let version = self.versions.fetch_add(1, Ordering::SeqCst);
        let new = self.file.with_extension(format!("new.{version}"));
        let sign = if offset.micros < 0 { '-' } else { '+' };
        let micros = offset.micros.unsigned_abs();
        let text = format!("{sign}{}.{:06}\n", micros / 1_000_000, micros % 1_000_000);
        fs::write(&new, text).with_context(|| format!("writing {}", new.display()))?;
        fs::set_permissions(&new, Permissions::from_mode(0o644))?;
        self.offset.store(offset.micros, Ordering::SeqCst);
        fs::rename(&new, &self.file).with_context(|| format!("writing {}", self.file.display()))
    }

    /// Moves the clock from its present offset.
    pub fn step(&self, by: Offset) -> Result<()> {
        let now = self.offset.load(Ordering::SeqCst);
        self.set_offset(Offset {
            micros: now + by.micros,
        })
    }

    /// Its present offset.
    pub fn offset(&self) -> Offset {
        Offset {
            micros: self.offset.load(Ordering::SeqCst),
        }
    }

    /// Its time, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        ids::now_us() + self.offset().micros
    }
}

impl Drop for Clock {
    /// libfaketime has a semaphore and a piece of shared memory for each tree of
    /// processes, named by the number of the first, and removes them at an orderly
    /// end. Those of killed processes are removed here.
    fn drop(&mut self) {
        let Ok(entries) = fs::read_dir("/dev/shm") else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| {
                name.strip_prefix("faketime_shm_")
                    .or_else(|| name.strip_prefix("sem.faketime_sem_"))
            });
            let Some(Ok(pid)) = number.map(str::parse) else {
                continue;
            };
            let is_ours = entry.metadata().is_ok_and(|file| file.uid() == self.owner);
            if is_ours && !processes::is_alive(pid) {
                // Another test's clock may have removed it already.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The path of libfaketime.
fn library() -> Result<PathBuf> {
    let mut places = vec![
        PathBuf::from("/usr/lib"),
        PathBuf::from("/usr/lib64"),
        PathBuf::from("/usr/local/lib"),
    ];
    // Debian's directories for each architecture.
    if let Ok(entries) = fs::read_dir("/usr/lib") {
        places.extend(entries.flatten().map(|entry| entry.path()));
    }
    places
        .iter()
        .map(|place| place.join("faketime/libfaketimeMT.so.1"))
        .find(|file| file.exists())
        .context(
            "libfaketimeMT.so.1, with which tests set a server's clock, is not installed \
             (Debian's package is \"faketime\")",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_the_unit_that_fits() {
        let texts: Vec<String> = [
            Offset::back(Duration::from_millis(500)),
            Offset::back(Duration::from_secs(3)),
            Offset::forward(Duration::from_secs(20 * 3_600)),
            Offset::back(Duration::from_secs(366 * 86_400)),
        ]
        .iter()
        .map(Offset::to_string)
        .collect();
        assert_eq!(texts, ["-500 ms", "-3 s", "+20 h", "-366 d"]);
    }
}
