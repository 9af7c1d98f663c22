//! The writers that are clients of `pgbench`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};

use super::report::Stall;
use super::{NOTICED, OWNER, Protocol, Size};
use crate::cluster::Cluster;
use crate::scratch::Scratch;
use crate::server::Server;

/// How long one run of `pgbench` lasts, in seconds. The next one follows at once.
const SLICE: u64 = 10;

/// Inserts an order with a line, keeps their IDs in the same transaction, and
/// updates an order that existed before.
const ORDER_SCRIPT: &str = "\
\\set quantity random(1, 9)
\\set old random(1, :orders)
BEGIN;
INSERT INTO orders (customer, note) VALUES (:client_id, 'pgbench') RETURNING id AS order_id \\gset
INSERT INTO order_lines (order_id, quantity) VALUES (:order_id, :quantity) RETURNING id AS line_id \\gset
INSERT INTO received (order_id, line_id) VALUES (:order_id, :line_id);
SELECT note FROM orders WHERE id = :order_id;
UPDATE orders SET total = total + 1 WHERE id = :old;
COMMIT;
";

/// `pgbench` as the tables' owner.
pub(super) fn pgbench(server: &Server) -> Command {
    let mut command = server.client_command("pgbench", OWNER);
    command.env("PGUSER", OWNER);
    command
}

/// The script of all clients, and the directory of their logs.
pub(super) struct Pgbench<'a> {
    cluster: &'a Cluster,
    size: Size,
    protocol: Protocol,
    script: PathBuf,
    logs: PathBuf,
    _scratch: Scratch,
}

impl<'a> Pgbench<'a> {
    pub(super) fn new(cluster: &'a Cluster, size: Size, protocol: Protocol) -> Result<Self> {
        let scratch = Scratch::new(cluster.os_user())?;
        let script = scratch.path().join("orders.sql");
        fs::write(&script, ORDER_SCRIPT)?;
        Ok(Self {
            cluster,
            size,
            protocol,
            script,
            logs: scratch.subdirectory("logs", cluster.os_user())?,
            _scratch: scratch,
        })
    }

    /// Runs one client again and again until it is stopped. Returns how often it
    /// ended at an error.
    pub(super) fn client(&self, client: usize, stop: &AtomicBool) -> Result<usize> {
        let mut aborts = 0;
        let mut run = 0;
        while !stop.load(Ordering::SeqCst) {
            run += 1;
            let mut file = self.script.as_os_str().to_owned();
            file.push("@7");
            let seconds = SLICE.min(self.size.alone.as_secs().max(1)).to_string();
            let output = pgbench(self.cluster)
                .args(["-n", "-c", "1", "-j", "1", "-T", &seconds])
                .args(["-M", self.protocol.name()])
                .arg("-D")
                .arg(format!("orders={}", self.size.orders))
                .arg("-f")
                .arg(file)
                .args(["-b", "tpcb-like@3", "-l", "--log-prefix"])
                .arg(self.logs.join(format!("{client}-{run}")))
                .output()
                .context("running pgbench")?;
            let errors = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                ensure!(
                    errors.contains("aborted in command"),
                    "pgbench failed: {errors}"
                );
                aborts += 1;
            }
        }
        Ok(aborts)
    }

    /// What the clients logged.
    pub(super) fn read_logs(&self) -> Result<Logged> {
        let mut logged = Logged::default();
        for entry in fs::read_dir(&self.logs)? {
            logged.read(&entry?.path())?;
        }
        Ok(logged)
    }
}

/// What the clients logged.
#[derive(Default)]
pub(super) struct Logged {
    /// The transactions of each script.
    pub(super) transactions: [i64; 2],
    /// Those that took long.
    pub(super) stalls: Vec<Stall>,
    /// When each transaction ended, and how long it took.
    pub(super) latencies: Vec<(SystemTime, Duration)>,
}

impl Logged {
    fn read(&mut self, path: &Path) -> Result<()> {
        for line in fs::read_to_string(path)?.lines() {
            // Client, number, microseconds, script, and the time of its end. A
            // failed transaction has no time. Its error is in the server's log.
            if line.split(' ').nth(2) == Some("failed") {
                continue;
            }
            let fields: Vec<u64> = line
                .split(' ')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .with_context(|| format!("{}: {line}", path.display()))?;
            let [_, _, micros, script, seconds, rest] = fields[..] else {
                bail!("{}: {line}", path.display());
            };
            self.transactions[usize::try_from(script)?] += 1;
            let took = Duration::from_micros(micros);
            let ended =
                SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(rest);
            self.latencies.push((ended, took));
            if took >= NOTICED {
                self.stalls.push(Stall {
                    took,
                    whose: "a transaction of pgbench",
                    ended,
                });
            }
        }
        Ok(())
    }
}
