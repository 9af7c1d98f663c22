//! A server clock that a test sets while the server runs. There are two kinds.
//!
//! The clock of the test build: the extension adds two numbers from a mapped file
//! to what the kernel's clocks show (`src/clock/moved.rs`). It costs nothing, every
//! process of the server sees it, and a test can let time pass, or stand still. The
//! server's own `now()` does not follow it.
//!
//! `libfaketime` (Debian's package `faketime`), to show that the kernel's readings
//! behave the same, and for tests of the server's `now()`. It is preloaded into the server, and
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
//! Postgres itself. [`FAKETIME_SETTINGS`] therefore disables statement timeouts, and
//! LLVM, whose loading is one long `malloc`.
//!
//! The postmaster of PostgreSQL 15 starts some of its children from a signal
//! handler in the middle of a call that libfaketime has replaced. In those
//! children the clock remains the machine's: background workers (parallel workers
//! too), and what is started after a crash. Sessions are not affected.
//!
//! A reading of the clock takes about five microseconds, instead of a fiftieth of
//! one, because it reads the file. So IDs are generated more slowly.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::num::NonZeroUsize;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use nix::time::{ClockId, clock_gettime};

use crate::ids;
use crate::os_user::OsUser;
use crate::processes;
use crate::server::Server;

/// The settings of a server with libfaketime, before the test's own.
pub const FAKETIME_SETTINGS: &[(&str, &str)] = &[
    // See above.
    ("jit", "off"),
    // See above. It would also depend on the clock that the test sets, and end a
    // statement when that is set forward. The time limit ends a test that hangs.
    ("statement_timeout", "0"),
];

/// How far [`Clock::pass`] moves the clocks at once at least, and the pause after it.
const JUMP: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(5);

/// How many jumps a long time is divided into.
const JUMPS: u32 = 200;

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

/// What a clock is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The clock of the test build.
    Mapped,
    /// libfaketime.
    Faketime,
}

/// A clock for one server, or several. It starts at the machine's time.
#[derive(Debug)]
pub struct Clock {
    file: PathBuf,
    source: Source,
    /// True time less the machine's, microseconds.
    passed: &'static AtomicI64,
    /// The wall clock less true time, microseconds.
    offset: &'static AtomicI64,
    /// What the machine's boot clock and wall clock showed when time was made to stand
    /// still; 0 while it passes.
    stopped: [&'static AtomicI64; 2],
    /// The offset at the last start of a server.
    at_start: &'static AtomicI64,
}

#[derive(Debug)]
enum Source {
    Mapped,
    Faketime {
        library: PathBuf,
        /// The user whose servers read the file.
        owner: u32,
        versions: AtomicU64,
    },
}

impl Clock {
    /// A clock whose file is in `directory`, which the OS user can read.
    pub fn new(kind: Kind, directory: &Path, os_user: &OsUser) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = directory.join(format!("clock.{number}"));
        let clock = match kind {
            Kind::Mapped => {
                let [passed, offset, boot, wall, at_start] = map(&file)?;
                Self {
                    file,
                    source: Source::Mapped,
                    passed,
                    offset,
                    stopped: [boot, wall],
                    at_start,
                }
            }
            Kind::Faketime => Self {
                file,
                source: Source::Faketime {
                    library: library()?,
                    owner: fs::metadata(directory)
                        .with_context(|| format!("looking at {}", directory.display()))?
                        .uid(),
                    versions: AtomicU64::new(0),
                },
                passed: Box::leak(Box::default()),
                offset: Box::leak(Box::default()),
                stopped: [Box::leak(Box::default()), Box::leak(Box::default())],
                at_start: Box::leak(Box::default()),
            },
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
        server.keep_at_start(self.offset, self.at_start);
    }

    /// The environment of a process that uses this clock.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let file = self.file.display().to_string();
        match &self.source {
            Source::Mapped => vec![("SNOWFLAKE_TEST_CLOCK", file)],
            Source::Faketime { library, .. } => vec![
                ("LD_PRELOAD", library.display().to_string()),
                ("FAKETIME_TIMESTAMP_FILE", file),
                ("FAKETIME_NO_CACHE", "1".to_owned()),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
                // The times of files do not change either. To change them,
                // libfaketime uses a semaphore that all processes of the server
                // share: one that is killed while it holds it would stop all others.
                ("NO_FAKE_STAT", "1".to_owned()),
            ],
        }
    }

    /// Sets the wall clock to true time plus `offset`.
    pub fn set_offset(&self, offset: Offset) -> Result<()> {
        self.offset.store(offset.micros, Ordering::SeqCst);
        let Source::Faketime { versions, .. } = &self.source else {
            return Ok(());
        };
        // Each change has its own file name, so that two threads can set the
        // clock at the same time.
        let version = versions.fetch_add(1, Ordering::SeqCst);
        let new = self.file.with_extension(format!("new.{version}"));
        let sign = if offset.micros < 0 { '-' } else { '+' };
        let micros = offset.micros.unsigned_abs();
        let text = format!("{sign}{}.{:06}\n", micros / 1_000_000, micros % 1_000_000);
        fs::write(&new, text).with_context(|| format!("writing {}", new.display()))?;
        fs::set_permissions(&new, Permissions::from_mode(0o644))?;
        fs::rename(&new, &self.file).with_context(|| format!("writing {}", self.file.display()))
    }

    /// Moves the wall clock from its present offset.
    pub fn step(&self, by: Offset) -> Result<()> {
        self.set_offset(Offset {
            micros: self.offset().micros + by.micros,
        })
    }

    /// Its present offset.
    pub fn offset(&self) -> Offset {
        Offset {
            micros: self.offset.load(Ordering::SeqCst),
        }
    }

    /// Lets time pass: true time, the wall clock and the boot clock advance, in
    /// jumps with pauses, so that working sessions see many of them. With
    /// libfaketime, which cannot move the boot clock, it waits.
    pub fn pass(&self, time: Duration) -> Result<()> {
        if matches!(self.source, Source::Faketime { .. }) {
            std::thread::sleep(time);
            return Ok(());
        }
        let mut left = time;
        while !left.is_zero() {
            let jump = left.min(JUMP.max(time / JUMPS));
            self.jump(jump)?;
            left -= jump;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Makes time stand still, but for what is made to pass. Returns what the boot clock
    /// shows. Not with libfaketime.
    ///
    /// # Errors
    /// If the machine's boot clock cannot be read.
    pub fn stop(&self) -> Result<i64> {
        let boot = clock_gettime(ClockId::CLOCK_BOOTTIME)?;
        let boot = boot.tv_sec() * 1_000_000 + boot.tv_nsec() / 1_000;
        let wall = ids::now_us();
        for (number, at) in self.stopped.iter().zip([boot, wall]) {
            number.store(at, Ordering::SeqCst);
        }
        Ok(boot + self.passed.load(Ordering::SeqCst))
    }

    /// Lets time pass at once.
    pub fn jump(&self, time: Duration) -> Result<()> {
        let micros = i64::try_from(time.as_micros())?;
        self.passed.fetch_add(micros, Ordering::SeqCst);
        Ok(())
    }

    /// True time, microseconds since 1970: the machine's, and what was made to pass.
    pub fn true_us(&self) -> i64 {
        let machine = match self.stopped[1].load(Ordering::SeqCst) {
            0 => ids::now_us(),
            stopped => stopped,
        };
        machine + self.passed.load(Ordering::SeqCst)
    }

    /// What the wall clock shows, microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.true_us() + self.offset().micros
    }
}

/// Creates a file with four numbers, and maps it for as long as this process lives.
#[allow(unsafe_code)]
fn map(path: &Path) -> Result<[&'static AtomicI64; 5]> {
    const LENGTH: NonZeroUsize = NonZeroUsize::new(size_of::<[AtomicI64; 5]>()).unwrap();
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("creating {}", path.display()))?;
    file.set_len(LENGTH.get() as u64)?;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, which is never
    // unmapped. It is aligned to a page and as long as the array. Everybody
    // accesses its numbers atomically, and any bits are a number.
    let numbers: &'static [AtomicI64; 5] = unsafe {
        mmap(None, LENGTH, access, MapFlags::MAP_SHARED, &file, 0)?
            .cast()
            .as_ref()
    };
    Ok(numbers.each_ref())
}

impl Drop for Clock {
    /// libfaketime has a semaphore and a piece of shared memory for each tree of
    /// processes, named by the number of the first, and removes them at an orderly
    /// end. Those of killed processes are removed here.
    fn drop(&mut self) {
        let Source::Faketime { owner, .. } = self.source else {
            return;
        };
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
            let is_ours = entry.metadata().is_ok_and(|file| file.uid() == owner);
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
