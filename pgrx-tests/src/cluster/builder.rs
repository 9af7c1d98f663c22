//! Settings of a server before it exists.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::Cluster;
use super::template::{Template, copy_template};
use crate::clock::{self, Clock, Kind};
use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::tier;
use crate::time_limit::{self, TimeLimit};

/// The settings of every test's server, before the test's own.
const BASE: &[(&str, &str)] = &[
    // Only a Unix socket, in a directory that no other user can enter: no port
    // that must be free, and no way to reach another server by mistake.
    ("listen_addresses", ""),
    ("max_connections", "120"),
    ("shared_buffers", "64MB"),
    ("log_timezone", "UTC"),
    ("timezone", "UTC"),
    ("log_line_prefix", "%m [%p] "),
    // The faults in tests end processes, not the machine. The kernel keeps what
    // was written, so a flush to the disk would take time and change nothing.
    // Code that waits for a flush of the WAL still waits for the write.
    ("fsync", "off"),
    ("full_page_writes", "off"),
    // As with segments of the usual size.
    ("max_wal_size", "1GB"),
    // A call that does not return fails its test.
    ("statement_timeout", "120s"),
];

/// The properties of a [`Cluster`].
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    installation: Option<Installation>,
    preload: Option<&'static str>,
    conf: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    memory_limit: Option<u64>,
    clock: Option<Kind>,
    time_limit: Duration,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self {
            installation: None,
            preload: Some("snowflake"),
            conf: Vec::new(),
            environment: Vec::new(),
            arguments: Vec::new(),
            memory_limit: None,
            clock: None,
            time_limit: time_limit::DEFAULT,
        }
    }
}

impl ClusterBuilder {
    /// A server of another tree than the one under test.
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = Some(installation);
        self
    }

    /// A server with one protection removed: `slot`, `mark` or `clock`.
    pub fn without_protection(self, protection: &str) -> Self {
        self.conf("snowflake.unprotected", protection)
    }

    /// A server that does not preload the extension.
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

    /// A limit of the address space of each of the server's processes. Beyond it an
    /// allocation fails, as under `vm.overcommit_memory = 2`.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// A server whose clock the test sets, through [`Cluster::clock`].
    pub fn movable_clock(mut self) -> Self {
        self.clock = Some(Kind::Mapped);
        self
    }

    /// The same with libfaketime: the server's `now()` follows it, too.
    pub fn faketime(mut self) -> Self {
        self.clock = Some(Kind::Faketime);
        self
    }

    /// How long it may exist, if the usual time is not enough.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Creates the data directory and starts the server.
    pub fn start(self) -> Result<Cluster> {
        let mut cluster = self.prepare()?;
        cluster.start()?;
        Ok(cluster)
    }

    /// The same, and creates the extension in the database `postgres`.
    pub fn start_with_extension(self) -> Result<Cluster> {
        self.start_from(Template::WithExtension)
    }

    /// The same, with the tool that migrates tables.
    pub fn start_with_migrate(self) -> Result<Cluster> {
        self.start_from(Template::WithMigrate)
    }

    fn start_from(self, template: Template) -> Result<Cluster> {
        let mut cluster = self.prepare_with(|installation, os_user, target| {
            copy_template(template, installation, os_user, target)
        })?;
        cluster.template = template;
        cluster.start()?;
        Ok(cluster)
    }

    /// Creates the data directory with its configuration, and starts nothing.
    pub fn prepare(self) -> Result<Cluster> {
        self.prepare_with(|installation, os_user, target| {
            copy_template(Template::Empty, installation, os_user, target)
        })
    }

    /// The same with a data directory that `fill` creates, for example as a copy
    /// of another server's. The path that `fill` receives does not exist yet. The
    /// settings of this builder follow those in its `postgresql.conf`.
    pub fn prepare_with(
        self,
        fill: impl FnOnce(&Installation, &OsUser, &Path) -> Result<()>,
    ) -> Result<Cluster> {
        let installation = match self.installation {
            Some(installation) => installation,
            None => Installation::under_test()?,
        };
        let os_user = OsUser::for_servers()?;
        let scratch = Scratch::new(&os_user)?;
        let sockets = scratch.subdirectory("s", &os_user)?;
        let data = scratch.path().join("data");
        let log = scratch.path().join("log");
        let time_limit = TimeLimit::new(self.time_limit, &data, &log);
        fill(&installation, &os_user, &data)?;
        let mut server = Server::new(installation, os_user, data, sockets, log, 5432);
        for (name, value) in BASE {
            server.set_conf(name, value)?;
        }
        if self.clock == Some(Kind::Faketime) {
            for (name, value) in clock::FAKETIME_SETTINGS {
                server.set_conf(name, value)?;
            }
        }
        // Before 17 there is no other way.
        let is_late = tier::is_without_preload() && server.installation().major >= 17;
        if let Some(library) = self.preload.filter(|_| !is_late) {
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
        if let Some(bytes) = self.memory_limit {
            server.set_memory_limit(bytes);
        }
        let clock = match self.clock {
            Some(kind) => {
                let clock = Clock::new(kind, scratch.path(), server.os_user())?;
                clock.drive(&mut server);
                Some(clock)
            }
            None => None,
        };
        Ok(Cluster {
            time_limit,
            server,
            clock,
            template: Template::Empty,
            _scratch: scratch,
        })
    }
}
