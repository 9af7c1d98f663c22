//! Prints the table of docs/peers.md: `make peers`. The files of further peers may be named.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use snowflake_tests::peers::{Peer, TRIALS};

/// Counts repeated IDs.
#[derive(Parser)]
struct Arguments {
    /// Files of peers; without any, those of the project.
    files: Vec<PathBuf>,
}

fn main() -> Result<()> {
    let mut files = Arguments::parse().files;
    if files.is_empty() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
        files = [
            "snowflake",
            "without_library",
            "nextval",
            "uuidv7",
            "plpgsql",
        ]
        .map(|name| PathBuf::from(format!("{directory}/{name}.sql")))
        .to_vec();
    }
    let names = TRIALS.map(|trial| trial.name);
    println!("| repeated IDs | {} |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(TRIALS.len()));
    for file in files {
        let peer = Peer::read(&file)?;
        let counts = TRIALS
            .iter()
            .map(|trial| Ok(peer.count(trial)?.to_string()));
        let counts = counts.collect::<Result<Vec<_>>>()?;
        println!("| {} | {} |", peer.name, counts.join(" | "));
    }
    Ok(())
}
