//! Processor time of the server, and on which processors it runs.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use snowflake_tests::{Cluster, processes, wait};

use crate::pgbench::{Until, pgbench};

/// The processor time of the server's processes for clients, in seconds: that of
/// the postmaster's children that have ended. Unlike a rate, it does not depend on
/// other programs on the machine.
pub fn processor_time(cluster: &Cluster) -> Result<f64> {
    let postmaster = cluster.pid()?;
    let mut client = cluster.connect()?;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    // A server process ends soon after its client. If one does not, its time is
    // missing from this measurement.
    let _ = wait::until(
        "the clients' processes to end",
        Duration::from_secs(2),
        || Ok(client.query_one(others, &[])?.get::<_, i64>(0) == 0),
    );
    let ticks = children_ticks(&fs::read_to_string(format!("/proc/{postmaster}/stat"))?)
        .context("the postmaster's times")?;
    // The unit in `/proc` on every Linux.
    const TICKS_A_SECOND: f64 = 100.0;
    Ok(ticks as f64 / TICKS_A_SECOND)
}

/// The processor time of a connection that does almost nothing, in seconds.
pub fn connection_time(cluster: &Cluster) -> Result<f64> {
    const CONNECTIONS: usize = 50;
    let before = processor_time(cluster)?;
    pgbench(
        cluster,
        "SELECT 1",
        CONNECTIONS,
        Until::Transactions(1),
        &[],
    )?;
    // Including the connection that waits for the others.
    Ok((processor_time(cluster)? - before) / (CONNECTIONS + 1) as f64)
}

/// `cutime` and `cstime` of `proc_pid_stat(5)`. The name before them may contain
/// spaces.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let field = |number: usize| fields.split(' ').nth(number - 3)?.parse::<u64>().ok();
    Some(field(16)? + field(17)?)
}

/// While this exists, the server and `pgbench` run on different processors, so
/// that the scheduler does not decide which processes share one.
#[derive(Debug)]
pub struct Pinned {
    postmaster: i32,
    cores: usize,
}

impl Pinned {
    /// The server gets the first half of the processors, `pgbench` the others.
    pub fn apart(cluster: &Cluster) -> Result<Self> {
        let pinned = Self {
            postmaster: cluster.pid()?,
            cores: std::thread::available_parallelism()?.get(),
        };
        if pinned.cores > 1 {
            pinned.server_on(0, pinned.cores / 2 - 1)?;
            affinity(
                std::process::id().cast_signed(),
                pinned.cores / 2,
                pinned.cores - 1,
            )?;
        }
        Ok(pinned)
    }

    fn server_on(&self, first: usize, last: usize) -> Result<()> {
        for process in processes::descendants(self.postmaster) {
            // It may have ended already.
            let _ = affinity(process, first, last);
        }
        affinity(self.postmaster, first, last)
    }

    /// For the document.
    pub fn describe(&self) -> &'static str {
        match self.cores {
            0 | 1 => "Both run on the only processor.",
            _ => "The server runs on one half of the processors, `pgbench` on the other.",
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let last = self.cores - 1;
        // If this fails, later figures are worse, but not wrong.
        let _ = self.server_on(0, last);
        let _ = affinity(std::process::id().cast_signed(), 0, last);
    }
}

/// Lets a process, and those that it starts later, run on these processors only.
fn affinity(process: i32, first: usize, last: usize) -> Result<()> {
    let mut processors = CpuSet::new();
    for processor in first..=last {
        processors.set(processor)?;
    }
    sched_setaffinity(Pid::from_raw(process), &processors)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_children_are_found_behind_a_name_with_spaces() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 70 8 20 0 1 0 100";
        assert_eq!(children_ticks(stat), Some(78));
    }
}
