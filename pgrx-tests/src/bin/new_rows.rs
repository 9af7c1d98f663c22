//! Readers of new rows beside writers and faults: `make new-rows ROWS=… SECONDS=…`.
//!
//! The exit code is 0 only if no reader lost a row, or saw one twice or out of
//! order, and the readers without a bound lost at least one.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use snowflake_tests::Cluster;
use snowflake_tests::new_rows::{self, Bound, Size};

/// Searches for rows that readers of new rows lose.
#[derive(Parser)]
struct Arguments {
    /// How many rows must be committed.
    #[arg(long, default_value_t = 0)]
    rows: u64,

    /// How long the writers work at least.
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// Sessions that write.
    #[arg(long, default_value_t = 16)]
    writers: usize,

    /// The usual pause between two faults, in milliseconds; 0 for no faults.
    #[arg(long, default_value_t = 3_000)]
    pause: u64,

    /// With `synchronous_commit = off`.
    #[arg(long)]
    asynchronous: bool,

    /// What ends the reads: resolved, or clock to see the check fail.
    #[arg(long, default_value = "resolved")]
    bound: String,

    /// The program of `PgBouncer`, for a reader through it.
    #[arg(long, env = "SNOWFLAKE_PGBOUNCER")]
    pgbouncer: Option<PathBuf>,

    /// The seed of all choices; random if it is not given. The same seed gives the
    /// same choices, but not at the same moments.
    #[arg(long)]
    seed: Option<u64>,

    /// How long the run may take, in minutes.
    #[arg(long, default_value_t = 120)]
    limit: u64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let bound = match arguments.bound.as_str() {
        "resolved" => Bound::Resolved,
        "clock" => Bound::Clock,
        other => bail!("--bound is resolved or clock, not {other}"),
    };
    let size = Size {
        writers: arguments.writers,
        rows: arguments.rows,
        length: Duration::from_secs(arguments.seconds),
        pause: (arguments.pause > 0).then(|| Duration::from_millis(arguments.pause)),
        synchronous_commit: !arguments.asynchronous,
        bound,
        pgbouncer: arguments.pgbouncer,
        seed: arguments.seed.unwrap_or_else(rand::random),
    };
    let limit = Duration::from_secs(arguments.limit * 60);
    let report = new_rows::run(Cluster::builder(), &size, limit, |line| {
        println!("new rows: {line}");
    })?;
    println!("{report}");
    report.verdict()
}
