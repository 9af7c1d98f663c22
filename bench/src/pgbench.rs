//! Many clients, by PostgreSQL's own `pgbench`.

use std::cell::Cell;
use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use snowflake_tests::Cluster;

use crate::peers::Peer;

/// How long it runs.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    Seconds(u64),
    /// So many transactions of each client.
    Transactions(u64),
}

/// What pgbench reports of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Transactions a second, without the time of connecting.
    pub rate: f64,
    /// All transactions.
    pub transactions: u64,
}

impl Outcome {
    /// How long it took.
    pub fn seconds(&self) -> f64 {
        self.transactions as f64 / self.rate
    }
}

/// How often a table's key rejected a repeated ID. Such a run ends early, and its
/// time is not measured.
#[derive(Debug, Default)]
pub struct Repeats(Cell<usize>);

impl Repeats {
    /// `None` for a run that ended so. Only a contender without unique IDs may have
    /// such a run.
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

    /// A sentence about them, for the document.
    pub fn describe(&self) -> Option<String> {
        let runs = match self.0.get() {
            0 => return None,
            1 => "A run".to_owned(),
            more => format!("{more} runs"),
        };
        Some(format!(
            "{runs} of {} ended early: an ID was repeated, and the primary key rejected it.",
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

/// The same with several scripts at the same time, each in its own sessions.
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
        // `1000/1000` if their number was given.
        transactions: transactions.split('/').next()?.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_excludes_connecting() {
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
}
