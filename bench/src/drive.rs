//! Executes statements, in a session of this program or in many of `pgbench`, and measures.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::{Cluster, wait};

/// What executing a statement many times took.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub executions: u64,
    /// From preparing it to the last, without connecting.
    pub seconds: f64,
    /// The answer of `SELECT count(…)`, or the rows of an INSERT or a COPY; only of a session.
    pub counted: Option<i64>,
}

impl Outcome {
    /// Of `pgbench`'s report.
    fn parse(report: &str) -> Option<Self> {
        let after = |start: &str| report.lines().find_map(|line| line.strip_prefix(start));
        let transactions = after("number of transactions actually processed: ")?;
        // `1000/1000` if their number was given.
        let executions: u64 = transactions.split('/').next()?.trim().parse().ok()?;
        let rate: f64 = after("tps = ")?.split_whitespace().next()?.parse().ok()?;
        Some(Self {
            executions,
            seconds: executions as f64 / rate,
            ..Self::default()
        })
    }
}

/// Prepares a statement and executes it so many times.
pub fn in_session(client: &mut Client, script: &str, executions: u64) -> Result<Outcome> {
    let begun = Instant::now();
    let statement = client.prepare(script)?;
    let mut outcome = Outcome {
        executions,
        ..Outcome::default()
    };
    let counts = script.starts_with("SELECT count(");
    for _ in 0..executions {
        outcome.counted = if counts {
            Some(client.query_one(&statement, &[])?.get(0))
        } else {
            Some(i64::try_from(client.execute(&statement, &[])?)?)
        };
    }
    outcome.seconds = begun.elapsed().as_secs_f64();
    Ok(outcome)
}

/// How long `pgbench` runs.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    Seconds(u64),
    /// So many transactions of each client.
    Transactions(u64),
}

/// Runs a script in that many sessions of `pgbench`.
pub fn in_pgbench(
    cluster: &Cluster,
    script: &str,
    clients: usize,
    length: Length,
    commit: &str,
) -> Result<Outcome> {
    let directory = cluster.data().parent().context("the data directory's")?;
    let file = directory.join("pgbench.sql");
    fs::write(&file, format!("{script};\n")).context("writing pgbench's script")?;
    let jobs = std::thread::available_parallelism()?.get().min(clients);
    let (option, number) = match length {
        Length::Seconds(seconds) => ("--time", seconds),
        Length::Transactions(count) => ("--transactions", count),
    };
    let output = cluster
        .client_command("pgbench", "postgres")
        .args(["--no-vacuum", "--protocol=prepared"])
        .args(["--client", &clients.to_string()])
        .args(["--jobs", &jobs.to_string()])
        .args([option, &number.to_string()])
        .arg("--file")
        .arg(&file)
        .env("PGOPTIONS", format!("-c synchronous_commit={commit}"))
        .output()
        .context("running pgbench")?;
    let report = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "pgbench failed:\n{report}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Outcome::parse(&report).with_context(|| format!("pgbench reported:\n{report}"))
}

/// Bytes of WAL that the server has inserted so far.
pub fn wal_bytes(client: &mut Client) -> Result<f64> {
    let query = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
    Ok(client.query_one(query, &[])?.get(0))
}

/// The processor time of the server's processes for clients that have ended, in seconds, including
/// that of connecting. Unlike a rate, it does not depend on other programs on the machine.
pub fn processor_time(cluster: &Cluster, client: &mut Client) -> Result<f64> {
    let others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'";
    // A server process ends soon after its client. If one does not, its time is missing here.
    let limit = Duration::from_secs(2);
    let _ = wait::until("the clients' processes to end", limit, || {
        Ok(client.query_one(others, &[])?.get::<_, i64>(0) == 0)
    });
    let stat = fs::read_to_string(format!("/proc/{}/stat", cluster.pid()?))?;
    // The unit in `/proc` on every Linux.
    const TICKS_A_SECOND: f64 = 100.0;
    let ticks = children_ticks(&stat).context("the postmaster's times")?;
    Ok(ticks as f64 / TICKS_A_SECOND)
}

/// `cutime` and `cstime` of `proc_pid_stat(5)`. The name before them may contain spaces.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let field = |number: usize| fields.split(' ').nth(number - 3)?.parse::<u64>().ok();
    Some(field(16)? + field(17)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_excludes_connecting() {
        let report = "transaction type: x.sql\n\
                      number of transactions actually processed: 300/300\n\
                      latency average = 1.0 ms\n\
                      initial connection time = 5.0 ms\n\
                      tps = 150.0 (without initial connection time)\n";
        let outcome = Outcome {
            executions: 300,
            seconds: 2.0,
            ..Outcome::default()
        };
        assert_eq!(Outcome::parse(report), Some(outcome));
        assert_eq!(Outcome::parse("tps = 1\n"), None);
    }

    #[test]
    fn times_of_the_children_are_found_behind_a_name_with_spaces() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 70 8 20 0 1 0 100";
        assert_eq!(children_ticks(stat), Some(78));
    }
}
