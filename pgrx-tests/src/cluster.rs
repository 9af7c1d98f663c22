//! A throwaway server for one test.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use snowflake_tests::Cluster;
//!
//! let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
//! let mut client = cluster.connect()?;
//! client.batch_execute("CREATE EXTENSION snowflake")?;
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::account::Account;
use crate::clock::{self, Clock};
use crate::installation::Installation;
use crate::scratch::Scratch;
use crate::server::{Server, Stop, tail};
use crate::watchdog::{self, Watchdog};

/// What every test's server has, before the test's own settings.
const BASE: &[(&str, &str)] = &[
    // Only its own Unix socket, in a directory nobody else can enter: no port
    // to find free, none to collide with, no way to reach another server.
    ("listen_addresses", ""),
    ("max_connections", "120"),
    ("shared_buffers", "64MB"),
    ("log_timezone", "UTC"),
    ("timezone", "UTC"),
    ("log_line_prefix", "%m [%p] "),
    // Faults here end processes, not the machine: the kernel keeps what was
    // written, so a flush to the disk would cost time and change nothing.
    // Code that waits for a WAL flush still waits for the write.
    ("fsync", "off"),
    ("full_page_writes", "off"),
    // A call that never comes back fails its test instead of hanging it.
    ("statement_timeout", "120s"),
];

/// A running server in a private directory. Stopped and removed when it goes
/// out of scope, also when the test panics or its process is killed. One that
/// lives too long is ended, and its test fails.
#[derive(Debug)]
pub struct Cluster {
    watchdog: Watchdog,
    // The order matters: the server ends before its clock and its directory.
    server: Server,
    clock: Option<Clock>,
    _scratch: Scratch,
}

/// What a [`Cluster`] is to be like.
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    installation: Option<Installation>,
    preload: Option<&'static str>,
    conf: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    movable_clock: bool,
    time_limit: Duration,
}

impl Cluster {
    /// A server of the tree under test that preloads the extension.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            installation: None,
            preload: Some("snowflake"),
            conf: Vec::new(),
            environment: Vec::new(),
            arguments: Vec::new(),
            movable_clock: false,
            time_limit: watchdog::USUAL_LIMIT,
        }
    }

    /// A server with node number 1 and the extension created in the database
    /// `postgres`, which is what most tests want.
    pub fn with_extension() -> Result<Self> {
        Self::builder()
            .conf("snowflake.node_id", 1)
            .start_with_extension()
    }

    /// The clock of a server that was built with
    /// [`movable_clock`](ClusterBuilder::movable_clock).
    ///
    /// # Panics
    /// Where it was not.
    pub fn clock(&self) -> &Clock {
        self.clock
            .as_ref()
            .expect("this server was built without a movable clock")
    }

    /// Connects to a database that is made for it, with the extension.
    pub fn connect_to_new_database(&self, name: &str) -> Result<Client> {
        self.connect()?
            .batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut client = self.connect_to(name)?;
        client.batch_execute("CREATE EXTENSION snowflake")?;
        Ok(client)
    }
}

impl ClusterBuilder {
    /// A server of another tree than the one under test.
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = Some(installation);
        self
    }

    /// A server of the tree with the unprotected build, with one protection
    /// taken away: `slot`, `mark` or `clock`.
    pub fn without_protection(self, protection: &str) -> Result<Self> {
        Ok(self
            .installation(Installation::unprotected()?)
            .conf("snowflake.unprotected", protection))
    }

    /// A server that doesn't preload the extension.
    pub fn without_preload(mut self) -> Self {
        self.preload = None;
        self
    }

    /// A line of `postgresql.conf`.
    pub fn conf(mut self, name: &str, value: impl ToString) -> Self {
        self.conf.push((name.to_owned(), value.to_string()));
        self
    }

    /// An environment variable of the server.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// An option on the server's command line.
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// A server whose clock the test moves, through [`Cluster::clock`].
    pub fn movable_clock(mut self) -> Self {
        self.movable_clock = true;
        self
    }

    /// How long it may live, where the usual time is not enough.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Makes the data directory and starts the server.
    pub fn start(self) -> Result<Cluster> {
        let mut cluster = self.prepare()?;
        cluster.start()?;
        Ok(cluster)
    }

    /// The same, and creates the extension in the database `postgres`.
    pub fn start_with_extension(self) -> Result<Cluster> {
        let cluster = self.start()?;
        cluster
            .connect()?
            .batch_execute("CREATE EXTENSION snowflake")?;
        Ok(cluster)
    }

    /// Makes the data directory with its configuration, and starts nothing.
    pub fn prepare(self) -> Result<Cluster> {
        self.prepare_with(copy_template)
    }

    /// The same with a data directory that `fill` makes: a copy of another
    /// server's, say. The path it is given does not exist yet. Settings of
    /// this builder come after what its `postgresql.conf` says.
    pub fn prepare_with(
        self,
        fill: impl FnOnce(&Installation, &Account, &Path) -> Result<()>,
    ) -> Result<Cluster> {
        let installation = match self.installation {
            Some(installation) => installation,
            None => Installation::under_test()?,
        };
        let account = Account::for_servers()?;
        let scratch = Scratch::new(&account)?;
        let sockets = scratch.subdirectory("s", &account)?;
        let data = scratch.path().join("data");
        let log = scratch.path().join("log");
        let watchdog = Watchdog::new(self.time_limit, &data, &log);
        fill(&installation, &account, &data)?;
        let mut server = Server::new(installation, account, data, sockets, log, 5432);
        for (name, value) in BASE {
            server.set_conf(name, value)?;
        }
        if self.movable_clock {
            for (name, value) in clock::SETTINGS {
                server.set_conf(name, value)?;
            }
        }
        if let Some(library) = self.preload {
            server.set_conf("shared_preload_libraries", library)?;
        }
        for (name, value) in &self.conf {
            server.set_conf(name, value)?;
        }
        for (name, value) in &self.environment {
            server.set_environment(name, value);
        }
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        server.set_arguments(&arguments);
        let clock = if self.movable_clock {
            let clock = Clock::new(scratch.path(), server.account())?;
            clock.drive(&mut server);
            Some(clock)
        } else {
            None
        };
        Ok(Cluster {
            watchdog,
            server,
            clock,
            _scratch: scratch,
        })
    }
}

impl Deref for Cluster {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl DerefMut for Cluster {
    fn deref_mut(&mut self) -> &mut Server {
        &mut self.server
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let lived_too_long = self.watchdog.end();
        if std::thread::panicking()
            && let Ok(log) = self.log()
        {
            eprintln!("the end of the server's log:\n{}", tail(&log, 40));
        }
        // A server that was killed has left shared memory behind, outside of
        // its directory. Postgres itself knows best which, and removes it when
        // it starts.
        if !self.is_running() && self.data().join("postmaster.pid").exists() {
            let _ = self.start();
        }
        if self.is_running() {
            // What doesn't stop in time, the directory's watchdog ends.
            let _ = self.stop(Stop::Immediate);
        }
        assert!(
            !lived_too_long || std::thread::panicking(),
            "the server lived too long and was ended; what it was doing is above"
        );
    }
}

/// A data directory fresh from `initdb` for each tree, made once a test
/// process and copied: `initdb` is most of the cost of a small test, and
/// several seconds of it in a server with assertions.
static TEMPLATES: LazyLock<Mutex<HashMap<PathBuf, Scratch>>> = LazyLock::new(Mutex::default);

fn copy_template(installation: &Installation, account: &Account, target: &Path) -> Result<()> {
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    let template = match templates.get(&installation.bin) {
        Some(scratch) => scratch.path().join("data"),
        None => {
            let scratch = Scratch::new(account)?;
            let data = scratch.path().join("data");
            Server::new(
                installation.clone(),
                account.clone(),
                data.clone(),
                scratch.path().to_owned(),
                scratch.path().join("log"),
                5432,
            )
            .initdb(&[])?;
            templates.insert(installation.bin.clone(), scratch);
            data
        }
    };
    let status = Command::new("cp")
        .arg("-a")
        .arg(template)
        .arg(target)
        .status()
        .context("copying a fresh data directory")?;
    ensure!(status.success(), "copying a fresh data directory failed");
    Ok(())
}
