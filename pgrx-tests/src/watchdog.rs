//! An end for servers that live too long.
//!
//! A test that hangs says nothing, and holds up everything after it. So each
//! [`Cluster`](crate::Cluster) has a time limit and a thread that waits for
//! it. When the time is up, the thread shows what there is to see (on standard
//! error itself, which no test captures) and ends the server's processes with
//! SIGKILL, as often as some are started: calls that waited for the server
//! return with an error. Whatever the test makes of that, it fails, as the
//! cluster panics when it is dropped. A test that hangs elsewhere is ended with
//! its process. (What becomes of servers then is [`scratch`](crate::scratch)'s.)

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::processes;
use crate::server::tail;

/// How long a cluster may live, if its builder says nothing else: several
/// times what the longest test takes on two cores that others use, too.
pub const USUAL_LIMIT: Duration = Duration::from_secs(300);

/// How long a test may go on without its server before its process is ended.
const GRACE: Duration = Duration::from_secs(60);

/// How long collecting stacks may take, of one process and of all.
const STACK: Duration = Duration::from_secs(20);
const STACKS: Duration = Duration::from_secs(60);

/// How often processes are looked for that were started after the end.
const LOOK: Duration = Duration::from_millis(100);

/// The exit code of a process whose tests have failed.
const TESTS_FAILED: i32 = 101;

/// Waits for the end of one server's time.
#[derive(Debug)]
pub struct Watchdog {
    /// Dropped when the server's life is over.
    life: Option<Sender<()>>,
    thread: Option<JoinHandle<bool>>,
}

/// What the thread knows.
struct Watched {
    test: String,
    limit: Duration,
    data: PathBuf,
    log: PathBuf,
}

impl Watchdog {
    /// Watches the server in `data`, a directory without symbolic links that
    /// may not exist yet, on behalf of the test that calls it.
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
        let (life, over) = channel();
        Self {
            life: Some(life),
            thread: Some(std::thread::spawn(move || watched.watch(&over))),
        }
    }

    /// Stops watching; says whether the time was up.
    pub fn end(&mut self) -> bool {
        self.life = None;
        self.thread
            .take()
            .is_some_and(|thread| thread.join().unwrap_or(true))
    }
}

impl Watched {
    /// Returns when the server's life is over; says whether the time was up.
    fn watch(&self, over: &Receiver<()>) -> bool {
        if is_over(over, self.limit) {
            return false;
        }
        say(&self.report());
        say(&self.stacks());
        let begun = Instant::now();
        loop {
            for pid in processes::in_directory(&self.data) {
                // One that is gone already is what is wanted.
                let _ = processes::send(pid, Signal::SIGKILL);
            }
            if is_over(over, LOOK) {
                return true;
            }
            if begun.elapsed() > self.limit.min(GRACE) {
                say(&format!(
                    "The test \"{}\" goes on without its server. All tests of this process end here.\n",
                    self.test
                ));
                std::process::exit(TESTS_FAILED);
            }
        }
    }

    fn report(&self) -> String {
        let mut text = format!(
            "\nThe server of the test \"{}\" was there for longer than {:?}; its processes in {} are ended:\n",
            self.test,
            self.limit,
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

    /// What each process is doing, the test's own first, where there is a `gdb`
    /// that may look.
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
    // Into a file: as long as gdb looks at this process, nobody here would
    // empty a pipe.
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
