//! Online migrations beside writers: `make online-load SCALE=… ORDERS=…`.
//!
//! The exit code is 0 only if nothing was lost, no writer received another error
//! than 0A000 for a prepared statement, and none waited for a second.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use snowflake_tests::online_load::{self, Protocol, Size};
use snowflake_tests::{Cluster, time_limit};

/// Migrates two keys beside writers, once for each protocol.
#[derive(Parser)]
struct Arguments {
    /// pgbench's scale factor, of 100,000 accounts each.
    #[arg(long, default_value_t = 20)]
    scale: u32,

    /// Orders, each with one line.
    #[arg(long, default_value_t = 1_000_000)]
    orders: u32,

    /// How long the idle transactions last, in seconds.
    #[arg(long, default_value_t = 30)]
    idle: u64,

    /// How long the writers work before and after the migrations, in seconds.
    #[arg(long, default_value_t = 10)]
    alone: u64,

    /// How long a writer may wait at most, in milliseconds.
    #[arg(long, default_value_t = 1_000)]
    stall: u64,

    /// How long one run may take, in minutes.
    #[arg(long, default_value_t = 60)]
    limit: u64,

    /// Only widen the keys, and keep their sequences.
    #[arg(long)]
    keep_sequence: bool,

    /// Where to write a picture of the last run's latencies, as SVG.
    #[arg(long)]
    picture: Option<PathBuf>,

    /// Only this protocol: simple or prepared.
    #[arg(long)]
    protocol: Option<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let size = Size {
        scale: arguments.scale,
        orders: arguments.orders,
        idle: Duration::from_secs(arguments.idle),
        alone: Duration::from_secs(arguments.alone),
        keep_sequence: arguments.keep_sequence,
        durable: true,
        sabotage: None,
    };
    let allowed = Duration::from_millis(arguments.stall);
    let limit = Duration::from_secs(arguments.limit * 60).max(time_limit::DEFAULT);
    let mut reports = Vec::new();
    for protocol in [Protocol::Simple, Protocol::Prepared] {
        let name = protocol.name();
        if arguments.protocol.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        println!(
            "online load ({name}): pgbench at scale {}, {} orders, idle transactions of {} s",
            size.scale, size.orders, arguments.idle
        );
        let report = online_load::run(
            Cluster::builder().time_limit(limit),
            size,
            protocol,
            |line| println!("online load ({name}): {line}"),
        )?;
        println!("{report}");
        reports.push(report);
    }
    ensure!(!reports.is_empty(), "--protocol is simple or prepared");
    if let (Some(path), Some(report)) = (&arguments.picture, reports.last()) {
        std::fs::write(path, report.picture()?)
            .with_context(|| format!("writing {}", path.display()))?;
    }
    for report in &reports {
        report.verdict()?;
        ensure!(
            report.longest.took < allowed,
            "a writer waited for {:?} ({})",
            report.longest.took,
            report.longest_during
        );
    }
    Ok(())
}
