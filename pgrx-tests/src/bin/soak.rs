//! A random mix of clock steps, crashes and restarts against eight sessions
//! that never stop asking for IDs: `make soak SECONDS=… SEED=…`.
//!
//! The exit code is 0 only if no ID came twice.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use snowflake_tests::{Cluster, soak};

/// Looks for an ID that comes twice, under a random mix of faults.
#[derive(Parser)]
struct Arguments {
    /// For how long.
    #[arg(long, default_value_t = 600)]
    seconds: u64,

    /// What the faults are chosen by; a random one where not given. The same
    /// seed gives the same faults, though not at the same instants.
    #[arg(long)]
    seed: Option<u64>,

    /// Takes this protection away, to see it fail: slot, mark or clock.
    #[arg(long)]
    without: Option<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(rand::random);
    println!("soak: {} s, seed {seed}", arguments.seconds);
    let mut builder = Cluster::builder();
    if let Some(protection) = &arguments.without {
        builder = builder.without_protection(protection)?;
    }
    let length = Duration::from_secs(arguments.seconds);
    let report = soak::run(builder, length, seed, |line| println!("{line}"))?;
    println!("{report}");
    report.verdict()
}
