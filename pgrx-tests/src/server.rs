//! One data directory and its server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use nix::sys::signal::Signal;
use postgres::{Client, Config, NoTls};

use crate::account::Account;
use crate::installation::Installation;
use crate::processes;

/// How long a start (with crash recovery) or a stop may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the state of a starting or stopping server is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The ways to stop a server in order, after `pg_ctl stop -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Roll back what is open, disconnect, write a checkpoint.
    Fast,
    /// Leave at once, without a checkpoint: the next start is a recovery.
    Immediate,
}

impl Stop {
    /// The signal that asks a postmaster for it.
    pub fn signal(self) -> Signal {
        match self {
            Self::Fast => Signal::SIGINT,
            Self::Immediate => Signal::SIGQUIT,
        }
    }
}

/// A data directory and the server on it, which may or may not be running.
#[derive(Debug)]
pub struct Server {
    installation: Installation,
    account: Account,
    data: PathBuf,
    sockets: PathBuf,
    log: PathBuf,
    port: u16,
    environment: BTreeMap<String, String>,
    /// Options of the next starts, as on `postgres`'s command line.
    arguments: Vec<String>,
    /// The postmaster where this process started it: it must be reaped.
    postmaster: Option<Child>,
    /// Where the last start's part of the log begins.
    log_start: u64,
}

impl Server {
    /// A server on `data`, with its socket in `sockets` and its log in `log`.
    /// The paths must be absolute and free of symbolic links, as the kernel
    /// prints them: a process is known as this server's by them.
    pub fn new(
        installation: Installation,
        account: Account,
        data: PathBuf,
        sockets: PathBuf,
        log: PathBuf,
        port: u16,
    ) -> Self {
        Self {
            installation,
            account,
            data,
            sockets,
            log,
            port,
            environment: BTreeMap::new(),
            arguments: Vec::new(),
            postmaster: None,
            log_start: 0,
        }
    }

    /// Runs `initdb`. Durability is not asked for: what is killed in these
    /// tests are processes, and the kernel keeps what they wrote.
    pub fn initdb(&self, arguments: &[&str]) -> Result<()> {
        let output = self
            .account
            .command("timeout", self.parent())
            .args(["--kill-after=10", &PATIENCE.as_secs().to_string()])
            .arg(self.installation.bin.join("initdb"))
            .args(["--username=postgres", "--encoding=UTF8", "--locale=C"])
            .args(["--auth=trust", "--no-sync", "--no-instructions"])
            .args(arguments)
            .arg("-D")
            .arg(&self.data)
            .output()
            .context("running initdb")?;
        ensure!(
            output.status.success(),
            "initdb failed:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Adds a setting to `postgresql.conf`; of several lines for one setting
    /// the last counts, so this also changes one. Read at the next start or
    /// [`reload`](Self::reload).
    pub fn set_conf(&self, name: &str, value: impl ToString) -> Result<()> {
        let value = value.to_string().replace('\'', "''");
        self.append_conf("postgresql.conf", &format!("{name} = '{value}'"))
    }

    /// Adds a line as it stands to a configuration file of the data directory.
    pub fn append_conf(&self, file: &str, line: &str) -> Result<()> {
        let path = self.data.join(file);
        let mut opened = OpenOptions::new()
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        writeln!(opened, "{line}")?;
        Ok(())
    }

    /// Sets an environment variable of the server from its next start on.
    pub fn set_environment(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Takes all of them back, from its next start on.
    pub fn clear_environment(&mut self) {
        self.environment.clear();
    }

    /// Replaces the options on `postgres`'s command line from the next start on.
    pub fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
    }

    /// Starts the server and waits until it takes connections.
    pub fn start(&mut self) -> Result<()> {
        self.spawn()?;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.reap()? {
                bail!(
                    "the server did not start ({status}); its log:\n{}",
                    self.log_since_start()?
                );
            }
            if self.is_ready() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "the server was not ready after {PATIENCE:?}; its log:\n{}",
                self.log_since_start()?
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Starts the server, which must give up by itself, and returns what it
    /// wrote to its log meanwhile. One that comes up is an error.
    pub fn start_expecting_failure(&mut self) -> Result<String> {
        self.spawn()?;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.reap()? {
                ensure!(!status.success(), "the server ended with success");
                return self.log_since_start();
            }
            if self.is_ready() || begun.elapsed() > PATIENCE {
                let log = self.log_since_start()?;
                self.stop(Stop::Immediate)?;
                bail!("the server started, and it should have refused to; its log:\n{log}");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Stops the server and waits for its end.
    pub fn stop(&mut self, how: Stop) -> Result<()> {
        let pid = self.pid()?;
        let children = processes::descendants(pid);
        processes::send(pid, how.signal())?;
        self.wait_for_end_of(pid, &children)
    }

    /// Waits for the end of a server that was told to go, or was killed, by
    /// [`processes::send`] or [`processes::kill9_tree`]: from a thread that
    /// has no exclusive use of it.
    pub fn wait_for_end(&mut self) -> Result<()> {
        match self.pid() {
            Ok(pid) => self.wait_for_end_of(pid, &processes::descendants(pid)),
            Err(_) => self.wait_for_end_of(0, &[]),
        }
    }

    fn wait_for_end_of(&mut self, pid: i32, children: &[i32]) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.reap()?;
            if self.postmaster.is_none()
                && !processes::is_alive(pid)
                && !children.iter().any(|&child| processes::is_alive(child))
            {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "the server was still there {PATIENCE:?} after it was to end"
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Stops (`Fast`) and starts.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(Stop::Fast)?;
        self.start()
    }

    /// Ends the postmaster and all its children with SIGKILL at once: what a
    /// power cut does to processes. What they had written stays in the
    /// kernel's cache, so `fsync = off` makes no difference to this fault.
    /// Returns how many processes it hit.
    pub fn kill9_all(&mut self) -> Result<usize> {
        let killed = processes::kill9_tree(self.pid()?)?;
        self.wait_for_end()?;
        Ok(killed)
    }

    /// Ends one backend of this server with SIGKILL. Postgres then takes the
    /// whole shared memory for spoiled, throws out every session and starts
    /// over. Returns when new connections are taken again.
    pub fn kill9_backend(&self, backend: i32) -> Result<()> {
        let postmaster = self.pid()?;
        let children = processes::descendants(postmaster);
        ensure!(
            children.contains(&backend),
            "process {backend} is not this server's"
        );
        processes::send(backend, Signal::SIGKILL)?;
        // Until the last of its siblings is gone, a connection could still
        // reach the old shared memory.
        let begun = Instant::now();
        while children.iter().any(|&child| {
            processes::is_alive(child)
                // The log collector and its like outlive a crash.
                && processes::works_in(child, &self.data)
                && !self.outlives_a_crash(child)
        }) {
            ensure!(
                begun.elapsed() < PATIENCE,
                "old backends {PATIENCE:?} after the kill"
            );
            std::thread::sleep(LOOK);
        }
        loop {
            match self.connect() {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > PATIENCE => {
                    return Err(error).context("the server did not come back");
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    /// Makes the server read its configuration files again. When this returns,
    /// every session goes by them from its next statement on: the postmaster
    /// passes the signal on before it takes the next connection.
    pub fn reload(&self) -> Result<()> {
        let loaded = || -> Result<std::time::SystemTime> {
            Ok(self
                .connect()?
                .query_one("SELECT pg_conf_load_time()", &[])?
                .get(0))
        };
        let before = loaded()?;
        processes::send(self.pid()?, Signal::SIGHUP)?;
        let begun = Instant::now();
        while loaded()? == before {
            ensure!(
                begun.elapsed() < PATIENCE,
                "the configuration was not read again after {PATIENCE:?}"
            );
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Connects as the superuser to the database `postgres`.
    pub fn connect(&self) -> Result<Client> {
        self.connect_to("postgres")
    }

    /// Connects as the superuser.
    pub fn connect_to(&self, database: &str) -> Result<Client> {
        self.connect_as("postgres", database)
    }

    /// Connects as some role.
    pub fn connect_as(&self, user: &str, database: &str) -> Result<Client> {
        self.config(user, database)
            .connect(NoTls)
            .map_err(|error| anyhow!(error))
    }

    /// How a client reaches this server.
    pub fn config(&self, user: &str, database: &str) -> Config {
        let mut config = Config::new();
        config
            .host_path(&self.sockets)
            .port(self.port)
            .user(user)
            .dbname(database)
            .application_name("snowflake-tests")
            .connect_timeout(PATIENCE);
        config
    }

    /// A client program of this installation with the options that lead it to
    /// this server, as the server's account.
    pub fn client_command(&self, program: &str, database: &str) -> std::process::Command {
        let mut command = self
            .account
            .command(self.installation.client_program(program), self.parent());
        command
            .env("PGHOST", &self.sockets)
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", database);
        command
    }

    /// The number of the running postmaster. From `postmaster.pid`, which may
    /// be left over from a crash and its number taken by a stranger: the
    /// process must work in this data directory.
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

    /// Whether its postmaster is there.
    pub fn is_running(&self) -> bool {
        self.pid().is_ok()
    }

    /// Everything in the log since the last start.
    pub fn log_since_start(&self) -> Result<String> {
        let log = self.log()?;
        let start = usize::try_from(self.log_start)?.min(log.len());
        Ok(log[start..].to_owned())
    }

    /// The whole log.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log)
            .with_context(|| format!("reading the log {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The directory of the server's Unix socket.
    pub fn sockets(&self) -> &Path {
        &self.sockets
    }

    /// The port, on TCP where it is switched on, and in the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The tree the server is started from.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The account the server runs as.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn spawn(&mut self) -> Result<()> {
        ensure!(!self.is_running(), "the server is running already");
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .with_context(|| format!("opening the log {}", self.log.display()))?;
        self.log_start = log.metadata()?.len();
        let errors: File = log.try_clone()?;
        // A session of its own: Ctrl-C and a closed terminal don't reach it.
        let child = self
            .account
            .command("setsid", self.parent())
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

    /// Whether `postmaster.pid` is this postmaster's and says that it takes
    /// connections (its eighth line, as `pg_ctl -w` reads it).
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

    fn outlives_a_crash(&self, pid: i32) -> bool {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|command| command.contains("logger"))
    }

    fn parent(&self) -> &Path {
        self.data.parent().unwrap_or(&self.data)
    }
}

/// The end of a log, for a person whose test has failed.
pub fn tail(log: &str, lines: usize) -> String {
    let all: Vec<&str> = log.lines().collect();
    let mut text = String::new();
    for line in &all[all.len().saturating_sub(lines)..] {
        let _ = writeln!(text, "  | {line}");
    }
    text
}
