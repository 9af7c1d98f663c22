//! What the server asked of its pages and its log, and was answered, accepted step by step
//! (`snowflake_sim::traced`).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use snowflake_id::Identity;
use snowflake_sim::traced::Acceptor;

use crate::cluster::Cluster;
use crate::ids::Fields;

/// The trace of one server.
pub(super) struct Trace {
    file: BufReader<File>,
    acceptor: Acceptor,
    /// A line whose end is not there yet.
    line: String,
}

impl Trace {
    /// Has a server that was not started write a trace.
    pub(super) fn of(cluster: &mut Cluster, fields: &Fields, node: u32) -> Result<Self> {
        let path: PathBuf = cluster.parent().join("trace");
        File::create(&path)?;
        cluster.os_user().own(&path)?;
        cluster.set_environment("SNOWFLAKE_TEST_TRACE", &path.to_string_lossy());
        let layout = fields.layout.parse().ok().context("a layout")?;
        let identity = Identity::new(layout, node).ok().context("a node number")?;
        Ok(Self {
            file: BufReader::new(File::open(path)?),
            acceptor: Acceptor::new(identity),
            line: String::new(),
        })
    }

    /// Reads what was written since.
    ///
    /// # Errors
    /// The first line that is not accepted.
    pub(super) fn read(&mut self) -> Result<()> {
        while self.file.read_line(&mut self.line)? > 0 && self.line.ends_with('\n') {
            if let Err(why) = self.acceptor.line(self.line.trim_end()) {
                bail!("the trace is not accepted: {why}");
            }
            self.line.clear();
        }
        self.acceptor.tidy();
        Ok(())
    }

    /// What was accepted.
    pub(super) fn report(&self) -> String {
        self.acceptor.to_string()
    }
}
