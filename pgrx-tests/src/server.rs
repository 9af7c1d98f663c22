//! One data directory and its server.

mod lifecycle;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use postgres::{Client, Config, NoTls};

use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::tier;

pub use lifecycle::Stop;

/// How long a start (with crash recovery) or a stop may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A data directory and the server on it, which may or may not be running.
#[derive(Debug)]
pub struct Server {
    installation: Installation,
    os_user: OsUser,
    data: PathBuf,
    sockets: PathBuf,
    log: PathBuf,
    port: u16,
    environment: BTreeMap<String, String>,
    /// Options of the next starts, as on `postgres`'s command line.
    arguments: Vec<String>,
    /// The limit of the memory of each process, bytes.
    memory_limit: Option<u64>,
    /// The postmaster, if this process started it and must reap it.
    postmaster: Option<Child>,
    /// The length of the log at the last start.
    log_start: u64,
    /// A number that is copied to another place before each start.
    kept_at_start: Option<(&'static AtomicI64, &'static AtomicI64)>,
}

impl Server {
    /// A server on `data`, with its socket in `sockets` and its log in `log`.
    /// The paths must be absolute and free of symbolic links, as in `/proc`, by
    /// which this server's processes are recognized.
    pub fn new(
        installation: Installation,
        os_user: OsUser,
        data: PathBuf,
        sockets: PathBuf,
        log: PathBuf,
        port: u16,
    ) -> Self {
        Self {
            installation,
            os_user,
            data,
            sockets,
            log,
            port,
            environment: BTreeMap::new(),
            arguments: Vec::new(),
            memory_limit: None,
            postmaster: None,
            log_start: 0,
            kept_at_start: None,
        }
    }

    /// Copies a number to another place before each start.
    pub fn keep_at_start(&mut self, from: &'static AtomicI64, to: &'static AtomicI64) {
        self.kept_at_start = Some((from, to));
    }

    /// Runs `initdb` without flushes to the disk. Tests kill processes only, and
    /// the kernel keeps what those have written.
    pub fn initdb(&self, arguments: &[&str]) -> Result<()> {
        let output = self
            .os_user
            .command("timeout", self.parent())
            .args(["--kill-after=10", &TIMEOUT.as_secs().to_string()])
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

    /// Adds a setting to `postgresql.conf`, or changes it, because the last line
    /// for a setting is the effective one. The server reads the file at the next
    /// start or [`reload`](Self::reload).
    pub fn set_conf(&self, name: &str, value: impl ToString) -> Result<()> {
        let value = value.to_string().replace('\'', "''");
        self.append_conf("postgresql.conf", &format!("{name} = '{value}'"))
    }

    /// Appends a line to a configuration file of the data directory.
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

    /// Replaces the options on `postgres`'s command line from the next start on.
    pub fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(ToString::to_string).collect();
    }

    /// Limits the address space of each of its processes, from its next start on.
    pub fn set_memory_limit(&mut self, bytes: u64) {
        self.memory_limit = Some(bytes);
    }

    /// Connects as the superuser to the database `postgres`.
    pub fn connect(&self) -> Result<Client> {
        self.connect_to("postgres")
    }

    /// Runs statements in a session of its own.
    pub fn run(&self, sql: &str) -> Result<()> {
        let mut client = self.connect()?;
        client
            .batch_execute(sql)
            .with_context(|| format!("running: {sql}"))
    }

    /// Connects as the superuser.
    pub fn connect_to(&self, database: &str) -> Result<Client> {
        self.connect_as("postgres", database)
    }

    /// Connects as a role.
    pub fn connect_as(&self, user: &str, database: &str) -> Result<Client> {
        let mut client = self
            .config(user, database)
            .connect(NoTls)
            .map_err(|error| anyhow!(error))?;
        if tier::is_without_preload() && self.installation.major >= 17 {
            // Its settings are in this view once it is loaded.
            let loaded = "SELECT EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'snowflake.lease')";
            let is_loaded: bool = client.query_one(loaded, &[])?.get(0);
            ensure!(
                !is_loaded,
                "a session has the library before its first statement"
            );
        }
        Ok(client)
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
            .connect_timeout(TIMEOUT);
        config
    }

    /// A client program of this installation, run by the server's OS user, with
    /// the variables by which it connects to this server.
    pub fn client_command(&self, program: &str, database: &str) -> std::process::Command {
        let mut command = self
            .os_user
            .command(self.installation.client_program(program), self.parent());
        command
            .env("PGHOST", &self.sockets)
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", database);
        command
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

    /// The whole lines of the log from this byte on, and the byte after them.
    pub fn log_after(&self, offset: u64) -> Result<(String, u64)> {
        let mut file = File::open(&self.log)
            .with_context(|| format!("opening the log {}", self.log.display()))?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let lines = bytes.iter().rposition(|&byte| byte == b'\n');
        bytes.truncate(lines.map_or(0, |last| last + 1));
        let end = offset + bytes.len() as u64;
        Ok((String::from_utf8_lossy(&bytes).into_owned(), end))
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The directory of the server's Unix socket.
    pub fn sockets(&self) -> &Path {
        &self.sockets
    }

    /// The port: of TCP, if it is enabled, and in the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The tree the server is started from.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The OS user that the server runs as.
    pub fn os_user(&self) -> &OsUser {
        &self.os_user
    }

    /// The private directory, which has the data directory.
    pub fn parent(&self) -> &Path {
        self.data.parent().unwrap_or(&self.data)
    }
}

/// The end of a log, for the report of a failed test.
pub fn tail(log: &str, lines: usize) -> String {
    let all: Vec<&str> = log.lines().collect();
    let mut text = String::new();
    for line in &all[all.len().saturating_sub(lines)..] {
        let _ = writeln!(text, "  | {line}");
    }
    text
}
