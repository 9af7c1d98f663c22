//! Shows a person what the extension does: `demo start` sets up a throwaway
//! server, lets 8 clients insert at the same time, kills the server in the
//! middle of it, sets its clock back, and leaves it running. `demo stop` ends
//! and removes it.
//!
//! The server is in `$SNOWFLAKE_CACHE/demo` and outlives this program. It is the
//! only server that this program ends: the process in that directory's own
//! `postmaster.pid`, if that process works there.
//!
//! - [`server`]: the server's directory and configuration
//! - [`scenes`]: what is shown, in order
//! - [`pgbench`]: the clients that insert
//! - [`mod@print`]: headings and tables

mod pgbench;
mod print;
mod scenes;
mod server;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use snowflake_tests::Installation;

/// Shows the snowflake extension on a throwaway server.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// The pg_config of a PostgreSQL tree with the extension.
    #[arg(long, env = "PG_CONFIG")]
    pg_config: PathBuf,

    /// Where the demo keeps its server, in a directory `demo`.
    #[arg(long, env = "SNOWFLAKE_CACHE")]
    cache: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Sets the server up, shows it, and leaves it running.
    Start,
    /// Stops the server and removes it.
    Stop,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let installation = Installation::from_pg_config(&arguments.pg_config)?;
    fs::create_dir_all(&arguments.cache)
        .with_context(|| format!("creating {}", arguments.cache.display()))?;
    let directory = arguments.cache.canonicalize()?.join("demo");
    match arguments.command {
        Command::Start => {
            if server::remove(installation.clone(), &directory)? {
                println!("An earlier demo has been stopped and removed.");
            }
            server::run(installation, &directory, scenes::play)
        }
        Command::Stop => {
            if server::remove(installation, &directory)? {
                println!("The demo's server has been stopped and removed.");
            } else {
                println!("No demo is running.");
            }
            Ok(())
        }
    }
}
