//! The clients that insert.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use snowflake_tests::Server;
use snowflake_tests::ids::grouped;

use crate::scenes::DATABASE;

pub const CLIENTS: &str = "8";

/// What each of them runs.
pub const INSERT: &str = "INSERT INTO orders (note) VALUES ('by pgbench');";

/// `pgbench` with the clients, to run for so many seconds.
pub fn pgbench(server: &Server, seconds: &str) -> Result<Command> {
    let script = server.data().with_file_name("insert.sql");
    fs::write(&script, format!("{INSERT}\n"))
        .with_context(|| format!("writing {}", script.display()))?;
    let mut command = server.client_command("pgbench", DATABASE);
    command
        .args(["--client", CLIENTS, "--jobs", "2", "--time", seconds])
        .args(["--no-vacuum", "--protocol", "prepared", "--file"])
        .arg(script);
    Ok(command)
}

/// Runs the clients. Returns the inserts a second, as `pgbench` measured them.
pub fn rate(server: &Server, seconds: &str) -> Result<String> {
    let output = pgbench(server, seconds)?
        .output()
        .context("running pgbench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "pgbench failed:\n{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let rate = text
        .lines()
        .find_map(|line| line.strip_prefix("tps = "))
        .and_then(|rest| rest.split(['.', ' ']).next())
        .and_then(|digits| digits.parse::<u64>().ok())
        .with_context(|| format!("no rate in the output of pgbench:\n{text}"))?;
    Ok(grouped(rate))
}
