//! A random mix of clock steps, crashes and restarts against eight sessions that
//! request IDs without a pause: `make soak MINUTES=… SEED=…`.
//!
//! The exit code is 0 only if no ID is repeated, no session's IDs decrease, and no
//! statement fails.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use snowflake_tests::{Cluster, soak};

/// Searches for repeated IDs under a random mix of faults.
#[derive(Parser)]
struct Arguments {
    /// The duration.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,

    /// The seed of the choice of faults; random if it is not given. The same seed
    /// gives the same faults, but not at the same moments.
    #[arg(long)]
    seed: Option<u64>,

    /// How long it is until the next fault at most, seconds; mostly far less.
    #[arg(long, default_value_t = 0.5)]
    longest_pause: f64,

    /// The path of SQLsmith, to run its statements beside the soak.
    #[arg(long)]
    sqlsmith: Option<PathBuf>,

    /// Removes this protection, to see the check fail: slot, mark or clock.
    #[arg(long)]
    without: Option<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("soak: {} minutes, seed {seed}", arguments.minutes);
    let mut builder = Cluster::builder();
    if let Some(protection) = &arguments.without {
        builder = builder.without_protection(protection);
    }
    let options = soak::Options {
        length: Duration::from_secs_f64(60.0 * arguments.minutes),
        seed,
        longest_pause: Duration::from_secs_f64(arguments.longest_pause),
        sqlsmith: arguments.sqlsmith,
    };
    let report = soak::run(builder, options, |line| println!("{line}"))?;
    println!("{report}");
    report.verdict()
}
