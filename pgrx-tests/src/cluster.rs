//! A throwaway server for one test.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use snowflake_tests::Cluster;
//!
//! let cluster = Cluster::node(1).start()?;
//! let mut client = cluster.connect()?;
//! client.batch_execute("CREATE EXTENSION snowflake")?;
//! # Ok(())
//! # }
//! ```

mod builder;
mod template;

use std::ops::{Deref, DerefMut};

use anyhow::Result;
use postgres::Client;

use crate::clock::Clock;
use crate::ids;
use crate::scratch::Scratch;
use crate::server::{Server, Stop, tail};
use crate::time_limit::TimeLimit;

use template::Template;

pub use builder::ClusterBuilder;

/// A running server in a private directory. It is stopped and removed when it
/// goes out of scope, and also if the test panics or its process is killed. A
/// server that exceeds its time limit is ended, and its test fails.
#[derive(Debug)]
pub struct Cluster {
    time_limit: TimeLimit,
    // The order matters: the server ends before its clock and its directory.
    server: Server,
    clock: Option<Clock>,
    template: Template,
    _scratch: Scratch,
}

impl Cluster {
    /// A server of the tree under test that preloads the extension.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// The same with this node number.
    pub fn node(number: impl ToString) -> ClusterBuilder {
        Self::builder().conf("snowflake.node_id", number)
    }

    /// A server with node number 1 and the extension in the database `postgres`:
    /// what most tests need.
    pub fn with_extension() -> Result<Self> {
        Self::node(1).start_with_extension()
    }

    /// The same with the tool that migrates tables.
    pub fn with_migrate() -> Result<Self> {
        Self::node(1).start_with_migrate()
    }

    /// The same with all extensions.
    pub fn with_partitions() -> Result<Self> {
        let cluster = Self::with_migrate()?;
        cluster.run("CREATE EXTENSION snowflake_partitions")?;
        Ok(cluster)
    }

    /// The clock of a server that was built with
    /// [`movable_clock`](ClusterBuilder::movable_clock) or
    /// [`faketime`](ClusterBuilder::faketime).
    ///
    /// # Panics
    /// If it was built without one.
    pub fn clock(&self) -> &Clock {
        self.clock
            .as_ref()
            .expect("this server was built without a movable clock")
    }

    /// True time, microseconds since 1970: the machine's, and what this server's
    /// clock was made to pass.
    pub fn true_us(&self) -> i64 {
        self.clock.as_ref().map_or_else(ids::now_us, Clock::true_us)
    }

    /// Creates a database with the extensions that the server was started with, or with
    /// `snowflake`, and connects to it.
    pub fn connect_to_new_database(&self, name: &str) -> Result<Client> {
        self.run(&format!("CREATE DATABASE {name}"))?;
        let mut client = self.connect_to(name)?;
        let extensions = match self.template {
            Template::WithMigrate => self.template,
            Template::Empty | Template::WithExtension => Template::WithExtension,
        };
        client.batch_execute(extensions.extensions())?;
        Ok(client)
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
        let lived_too_long = self.time_limit.end();
        if std::thread::panicking()
            && let Ok(log) = self.log()
        {
            eprintln!("the end of the server's log:\n{}", tail(&log, 40));
        }
        // A server that was killed leaves shared memory outside of its
        // directory. Postgres removes that when it starts.
        if !self.is_running() && self.data().join("postmaster.pid").exists() {
            let _ = self.start();
        }
        if self.is_running() {
            // If it does not stop in time, the directory's reaper ends it.
            let _ = self.stop(Stop::Immediate);
        }
        assert!(
            !lived_too_long || std::thread::panicking(),
            "the server exceeded its time limit and was ended; the output above shows its processes"
        );
    }
}
