//! A time limit for servers.
//!
//! A test that hangs reports nothing and delays everything after it. So each
//! [`Cluster`](crate::Cluster) has a time limit, and a thread that waits for it.
//! When the limit is exceeded, the thread prints what the processes do, on
//! standard error itself, which no test captures. Then it ends the server's
//! processes with SIGKILL, repeatedly if new ones start. Calls that waited for the
//! server return with an error. The test fails in any case, because the cluster
//! panics when it is dropped. If the test hangs elsewhere, its process is ended.
//! (The reaper of [`scratch`](crate::scratch) then ends all servers.)

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::processes;
use crate::server::tail;

/// The limit if the builder sets no other: several times the duration of the
/// longest test on two busy processors.
pub const DEFAULT: Duration = Duration::from_secs(300);

/// How long a test may continue without its server before its process is ended.
const GRACE: Duration = Duration::from_secs(60);

/// How long collecting stacks may take, for one process and for all.
const STACK: Duration = Duration::from_secs(20);
const STACKS: Duration = Duration::from_secs(60);

/// How often newly started processes are searched for.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often it is checked whether the limit was shortened.
const CHECK: Duration = Duration::from_millis(500);

/// Since when another limit holds, that limit, and what holds instead of [`GRACE`].
static SHORTENED: OnceLock<(Instant, Duration, Duration)> = OnceLock::new();

/// The exit code of a process whose tests have failed.
const TESTS_FAILED: i32 = 101;

/// The time limit of one server.
#[derive(Debug)]
pub struct TimeLimit {
    /// Dropped when the server has ended.
    server: Option<Sender<()>>,
    thread: Option<JoinHandle<bool>>,
}

/// Limits the time of all servers of this process, from now on, and how long a test may
/// then continue without its server. For the test of the limit itself: how long a
/// server takes to start does not matter. Only the first call has an effect.
pub fn shorten(limit: Duration, grace: Duration) {
    let _ = SHORTENED.set((Instant::now(), limit, grace));
}

/// What the thread needs.
struct Watched {
    test: String,
    limit: Duration,
    data: PathBuf,
    log: PathBuf,
}

impl TimeLimit {
    /// Limits the time of the server in `data`, a path without symbolic links that
    /// may not exist yet, for the test that calls it.
    pub fn new(limit: Duration, data: &Path, log: &Path) -> Self {
        let watched = Watched {
            test: std::thread::current()
                .name()
                .unwrap_or("without a name")
                .to_owned(),
            limit,
            data: data.to_owned(),
            log: log.to_owned(),
        };
        let (server, over) = channel();
        Self {
            server: Some(server),
            thread: Some(std::thread::spawn(move || watched.watch(&over))),
        }
    }

    /// Ends the thread. Returns whether the limit was exceeded.
    pub fn end(&mut self) -> bool {
        self.server = None;
        self.thread
            .take()
            .is_some_and(|thread| thread.join().unwrap_or(true))
    }
}

impl Watched {
    /// Returns when the server has ended, and whether the limit was exceeded.
    fn watch(&self, over: &Receiver<()>) -> bool {
        let begun = Instant::now();
        let (limit, grace) = loop {
            let (since, limit, grace) =
                SHORTENED
                    .get()
                    .copied()
                    .unwrap_or((begun, self.limit, GRACE.min(self.limit)));
            let Some(left) = limit.checked_sub(since.elapsed()) else {
                break (limit, grace);
            };
            if is_over(over, left.min(CHECK)) {
                return false;
            }
        };
        say(&self.report(limit));
        say(&self.stacks());
        let begun = Instant::now();
        loop {
            for pid in processes::in_directory(&self.data) {
                // It may have ended already.
                let _ = processes::send(pid, Signal::SIGKILL);
            }
            if is_over(over, INTERVAL) {
                return true;
            }
            if begun.elapsed() > grace {
                say(&format!(
                    "The test \"{}\" continues without its server. All tests of this process end here.\n",
                    self.test
                ));
                std::process::exit(TESTS_FAILED);
            }
        }
    }

    fn report(&self, limit: Duration) -> String {
        let mut text = format!(
            "\nThe server of the test \"{}\" exceeded its limit of {:?}; its processes in {} are ended:\n",
            self.test,
            limit,
            self.data.display()
        );
        for pid in processes::in_directory(&self.data) {
            let _ = writeln!(text, "  {}", processes::description(pid));
        }
        let log = fs::read(&self.log).unwrap_or_default();
        let _ = write!(
            text,
            "the end of the server's log:\n{}",
            tail(&String::from_utf8_lossy(&log), 40)
        );
        text
    }

    /// The stacks of the test's process and of the server's, if `gdb` is installed
    /// and permitted to read them.
    fn stacks(&self) -> String {
        let begun = Instant::now();
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let mut text = String::new();
        for pid in std::iter::once(own).chain(processes::in_directory(&self.data)) {
            if begun.elapsed() > STACKS {
                break;
            }
            if let Some(stack) = stack(pid) {
                let _ = writeln!(text, "stack of {}:\n{stack}", processes::description(pid));
            }
        }
        text
    }
}

fn is_over(over: &Receiver<()>, wait: Duration) -> bool {
    over.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn stack(pid: i32) -> Option<String> {
    // Into a file: while gdb holds this process, no thread of it could empty a
    // pipe.
    let file = tempfile::NamedTempFile::new().ok()?;
    let output: File = file.reopen().ok()?;
    Command::new("timeout")
        .args(["-s", "KILL", &STACK.as_secs().to_string()])
        .args(["gdb", "-nx", "-batch", "-ex", "thread apply all bt 20"])
        .args(["-p", &pid.to_string()])
        .env_remove("DEBUGINFOD_URLS")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let bytes = fs::read(file.path()).ok()?;
    let frames: String = String::from_utf8_lossy(&bytes)
        .lines()
        .filter(|line| line.starts_with('#') || line.starts_with("Thread"))
        .flat_map(|line| ["  | ", line, "\n"].map(str::to_owned))
        .collect();
    (!frames.is_empty()).then_some(frames)
}
