//! Starting, stopping and killing a server.

use std::fs::{self, File, OpenOptions};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;

use super::{Server, TIMEOUT};
use crate::processes;
use crate::wait;

/// The ways to shut a server down, as in `pg_ctl stop -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Open transactions are rolled back, sessions end, and a checkpoint is
    /// written.
    Fast,
    /// The server ends at once, without a checkpoint. The next start recovers.
    Immediate,
}

impl Stop {
    /// The postmaster's signal for it.
    pub fn signal(self) -> Signal {
        match self {
            Self::Fast => Signal::SIGINT,
            Self::Immediate => Signal::SIGQUIT,
        }
    }
}

impl Server {
    /// Starts the server and waits until it accepts connections.
    pub fn start(&mut self) -> Result<()> {
        self.spawn()?;
        let started = wait::until("the server to be ready", TIMEOUT, || {
            if let Some(status) = self.reap()? {
                bail!("the server did not start ({status})");
            }
            Ok(self.is_ready())
        });
        match started {
            Ok(()) => Ok(()),
            Err(error) => bail!("{error}; its log:\n{}", self.log_since_start()?),
        }
    }

    /// Starts the server, which must end by itself, and returns what it logged.
    /// A server that accepts connections is an error.
    pub fn start_expecting_failure(&mut self) -> Result<String> {
        self.spawn()?;
        let ended = wait::until("the server to end", TIMEOUT, || {
            if let Some(status) = self.reap()? {
                ensure!(!status.success(), "the server ended with success");
                return Ok(true);
            }
            ensure!(!self.is_ready(), "the server started, but should not have");
            Ok(false)
        });
        let log = self.log_since_start()?;
        if let Err(error) = ended {
            if self.is_running() {
                self.stop(Stop::Immediate)?;
            }
            bail!("{error}; its log:\n{log}");
        }
        Ok(log)
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self, how: Stop) -> Result<()> {
        let pid = self.pid()?;
        let children = processes::descendants(pid);
        processes::send(pid, how.signal())?;
        self.wait_for_end_of(pid, &children)
    }

    /// Waits for the end of a server that was stopped or killed by
    /// [`processes::send`] or [`processes::kill9_tree`]: by a thread that has
    /// no exclusive access to it.
    pub fn wait_for_end(&mut self) -> Result<()> {
        match self.pid() {
            Ok(pid) => self.wait_for_end_of(pid, &processes::descendants(pid)),
            Err(_) => self.wait_for_end_of(0, &[]),
        }
    }

    fn wait_for_end_of(&mut self, pid: i32, children: &[i32]) -> Result<()> {
        wait::until("the server to end", TIMEOUT, || {
            self.reap()?;
            Ok(self.postmaster.is_none()
                && !processes::is_alive(pid)
                && !children.iter().any(|&child| processes::is_alive(child)))
        })
    }

    /// Stops (`Fast`) and starts.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(Stop::Fast)?;
        self.start()
    }

    /// Ends the postmaster and all its children with SIGKILL at once, as a power
    /// failure ends processes. What they had written stays in the kernel's
    /// cache, so `fsync = off` makes no difference to this fault. Returns how
    /// many processes were killed.
    pub fn kill9_all(&mut self) -> Result<usize> {
        let killed = processes::kill9_tree(self.pid()?)?;
        self.wait_for_end()?;
        Ok(killed)
    }

    /// Ends one backend of this server with SIGKILL. Postgres then considers
    /// the shared memory corrupt, ends every session and starts over. Returns
    /// when new connections are accepted again.
    pub fn kill9_backend(&self, backend: i32) -> Result<()> {
        let postmaster = self.pid()?;
        let children = processes::descendants(postmaster);
        ensure!(
            children.contains(&backend),
            "process {backend} is not this server's"
        );
        processes::send(backend, Signal::SIGKILL)?;
        // Before the last of the old backends has ended, a new connection could
        // still reach the old shared memory.
        wait::until("the old backends to end", TIMEOUT, || {
            Ok(!children.iter().any(|&child| {
                processes::is_alive(child)
                    && processes::works_in(child, &self.data)
                    && !outlives_a_crash(child)
            }))
        })?;
        wait::until("the server to accept connections", TIMEOUT, || {
            Ok(self.connect().is_ok())
        })
    }

    /// Makes the server read its configuration files again. When this returns,
    /// every session uses them from its next statement on, because the
    /// postmaster passes the signal on before it accepts the next connection.
    pub fn reload(&self) -> Result<()> {
        let loaded = || -> Result<std::time::SystemTime> {
            Ok(self
                .connect()?
                .query_one("SELECT pg_conf_load_time()", &[])?
                .get(0))
        };
        let before = loaded()?;
        processes::send(self.pid()?, Signal::SIGHUP)?;
        wait::until("the configuration to be read again", TIMEOUT, || {
            Ok(loaded()? != before)
        })
    }

    /// The number of the running postmaster, from `postmaster.pid`. That file
    /// may be left over from a crash, and its number may belong to another
    /// program by now, so the process must work in this data directory.
    pub fn pid(&self) -> Result<i32> {
        let pid = self
            .postmaster_file()
            .and_then(|lines| lines.first()?.trim().parse().ok())
            .context("the server is not running: it has no postmaster.pid")?;
        ensure!(
            processes::works_in(pid, &self.data) && processes::is_alive(pid),
            "the server is not running: process {pid} of its postmaster.pid is not in {}",
            self.data.display()
        );
        Ok(pid)
    }

    /// Whether the postmaster exists.
    pub fn is_running(&self) -> bool {
        self.pid().is_ok()
    }

    fn spawn(&mut self) -> Result<()> {
        ensure!(!self.is_running(), "the server is running already");
        if let Some((from, to)) = self.kept_at_start {
            to.store(from.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("opening the log {}", self.log.display()))?;
        self.log_start = log.metadata()?.len();
        let errors: File = log.try_clone()?;
        // In a session of its own, neither Ctrl-C nor the end of the terminal
        // reaches it.
        let mut command = self.os_user.command("setsid", self.parent());
        if let Some(bytes) = self.memory_limit {
            command.arg("prlimit").arg(format!("--as={bytes}"));
        }
        let child = command
            .arg(self.installation.bin.join("postgres"))
            .arg("-D")
            .arg(&self.data)
            .args(["-p", &self.port.to_string(), "-k"])
            .arg(&self.sockets)
            .args(&self.arguments)
            .envs(&self.environment)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .context("starting postgres")?;
        self.postmaster = Some(child);
        Ok(())
    }

    /// The postmaster's exit status, if it was started here and has ended.
    fn reap(&mut self) -> Result<Option<ExitStatus>> {
        let Some(child) = &mut self.postmaster else {
            return Ok(None);
        };
        let status = child.try_wait()?;
        if status.is_some() {
            self.postmaster = None;
        }
        Ok(status)
    }

    /// Whether `postmaster.pid` is this postmaster's and reports that it accepts
    /// connections (in its eighth line, as `pg_ctl -w` reads it).
    fn is_ready(&self) -> bool {
        let Some(lines) = self.postmaster_file() else {
            return false;
        };
        let own = self.postmaster.as_ref().map(|child| child.id().to_string());
        let is_own = own.is_none_or(|own| lines.first().map(|line| line.trim()) == Some(&own));
        is_own
            && lines
                .get(7)
                .is_some_and(|status| matches!(status.trim(), "ready" | "standby"))
    }

    fn postmaster_file(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    }
}

/// The log collector keeps running through a crash of the others.
fn outlives_a_crash(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|command| command.contains("logger"))
}
