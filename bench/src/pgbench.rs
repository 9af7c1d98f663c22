//! Many clients: PostgreSQL's own `pgbench`, the same for every contender. It
//! takes a part of the machine for itself.

use std::cell::Cell;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use snowflake_tests::{Cluster, processes};

use crate::peers::Peer;

/// How long it runs.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    Seconds(u64),
    /// So many transactions of each client.
    Transactions(u64),
}

/// What pgbench says of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Transactions a second, the time to connect not counted.
    pub rate: f64,
    /// All transactions.
    pub transactions: u64,
}

/// What the server's processes for clients have used of the processors, seconds:
/// that of the postmaster's children that have ended. What is compared by it
/// does not depend on who else was at work, as a rate does.
pub fn processor_time(cluster: &Cluster) -> Result<f64> {
    let postmaster = cluster.pid()?;
    // A server process ends by itself soon after its client.
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut client = cluster.connect()?;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    while client.query_one(others, &[])?.get::<_, i64>(0) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ticks = children_ticks(&fs::read_to_string(format!("/proc/{postmaster}/stat"))?)
        .context("the postmaster's times")?;
    // What Linux counts in, whatever it measures in.
    const TICKS_A_SECOND: f64 = 100.0;
    Ok(ticks as f64 / TICKS_A_SECOND)
}

/// What a connection that does next to nothing takes of the processors, seconds.
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
    // And the one that looks.
    Ok((processor_time(cluster)? - before) / (CONNECTIONS + 1) as f64)
}

/// `cutime` and `cstime` of `proc_pid_stat(5)`; the name before may hold spaces.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let field = |number: usize| fields.split(' ').nth(number - 3)?.parse::<u64>().ok();
    Some(field(16)? + field(17)?)
}

impl Outcome {
    /// How long it took.
    pub fn seconds(&self) -> f64 {
        self.transactions as f64 / self.rate
    }
}

/// While it lives the server has processors of its own, and `pgbench` others:
/// which of them shares a processor with whom is not left to chance.
#[derive(Debug)]
pub struct Pinned {
    postmaster: i32,
    cores: usize,
}

impl Pinned {
    /// The server has the first half of the processors, `pgbench` the others.
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
            // One that has just ended needs none.
            let _ = affinity(process, first, last);
        }
        affinity(self.postmaster, first, last)
    }

    /// For the document.
    pub fn describe(&self) -> &'static str {
        match self.cores {
            0 | 1 => "Both are on the only processor.",
            _ => "The server has one half of the processors, `pgbench` the other.",
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let last = self.cores - 1;
        // What can't be undone makes later figures worse, not wrong.
        let _ = self.server_on(0, last);
        let _ = affinity(std::process::id().cast_signed(), 0, last);
    }
}

/// Lets a process, and those that it starts from now on, run on these processors.
fn affinity(process: i32, first: usize, last: usize) -> Result<()> {
    let mut processors = CpuSet::new();
    for processor in first..=last {
        processors.set(processor)?;
    }
    sched_setaffinity(Pid::from_raw(process), &processors)?;
    Ok(())
}

/// How often a table's key refused an ID that came twice. Such a run ends early
/// and tells nothing of the time.
#[derive(Debug, Default)]
pub struct Repeats(Cell<usize>);

impl Repeats {
    /// `None` for a run that ended so. Only a contender that does not claim that
    /// its IDs are unique may have one.
    pub fn sieve(&self, peer: Peer, outcome: Result<Outcome>) -> Result<Option<Outcome>> {
        match outcome {
            Err(error)
                if peer == Peer::PlPgSql && error.to_string().contains("duplicate key value") =>
            {
                self.0.set(self.0.get() + 1);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// What became of them, for the document.
    pub fn describe(&self) -> Option<String> {
        let runs = match self.0.get() {
            0 => return None,
            1 => "A run".to_owned(),
            more => format!("{more} runs"),
        };
        Some(format!(
            "{runs} of {} ended before time: an ID came twice, and the primary key refused it.",
            Peer::PlPgSql.name()
        ))
    }
}

/// Runs a script of one prepared statement in `clients` sessions at once, with
/// settings of these sessions.
pub fn pgbench(
    cluster: &Cluster,
    script: &str,
    clients: usize,
    until: Until,
    settings: &[(&str, &str)],
) -> Result<Outcome> {
    let mut outcomes = pgbench_at_once(cluster, &[(script, clients, until)], settings)?;
    outcomes.pop().context("an outcome")
}

/// The same with several scripts at the same time, each in so many sessions.
pub fn pgbench_at_once(
    cluster: &Cluster,
    scripts: &[(&str, usize, Until)],
    settings: &[(&str, &str)],
) -> Result<Vec<Outcome>> {
    let directory = cluster.data().parent().context("the data directory's")?;
    let cores = std::thread::available_parallelism()?.get();
    let options: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("-c {name}={value}"))
        .collect();
    let mut running = Vec::new();
    for (number, (script, clients, until)) in scripts.iter().enumerate() {
        let file = directory.join(format!("pgbench-{number}.sql"));
        fs::write(&file, format!("{script};\n")).context("writing pgbench's script")?;
        let mut command = cluster.client_command("pgbench", "postgres");
        command
            .args(["--no-vacuum", "--protocol=prepared"])
            .args(["--client", &clients.to_string()])
            .args(["--jobs", &cores.min(*clients).to_string()])
            .arg("--file")
            .arg(&file)
            .env("PGOPTIONS", options.join(" "))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match until {
            Until::Seconds(seconds) => command.args(["--time", &seconds.to_string()]),
            Until::Transactions(count) => command.args(["--transactions", &count.to_string()]),
        };
        running.push(command.spawn().context("running pgbench")?);
    }
    let mut outcomes = Vec::new();
    for pgbench in running {
        let output = pgbench.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success(),
            "pgbench failed:\n{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        outcomes.push(parse(&said).with_context(|| format!("pgbench said:\n{said}"))?);
    }
    Ok(outcomes)
}

fn parse(said: &str) -> Option<Outcome> {
    let after = |start: &str| said.lines().find_map(|line| line.strip_prefix(start));
    let transactions = after("number of transactions actually processed: ")?;
    Some(Outcome {
        rate: after("tps = ")?.split_whitespace().next()?.parse().ok()?,
        // `1000/1000` where their number was given.
        transactions: transactions.split('/').next()?.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_without_connecting() {
        let said = "transaction type: x.sql\n\
                    number of transactions actually processed: 300/300\n\
                    number of failed transactions: 0 (0.000%)\n\
                    latency average = 1.0 ms\n\
                    initial connection time = 5.0 ms\n\
                    tps = 1234.5 (without initial connection time)\n";
        let outcome = Outcome {
            rate: 1234.5,
            transactions: 300,
        };
        assert_eq!(parse(said), Some(outcome));
        assert_eq!(parse("tps = 1\n"), None);
    }

    #[test]
    fn times_of_the_children_are_found_behind_a_name_with_spaces() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 70 8 20 0 1 0 100";
        assert_eq!(children_ticks(stat), Some(78));
    }
}
