//! A session that writes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::{Client, Config};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::shared::{Prepared, Shared, pid_of};
use super::transaction::{Ended, Kind, Transaction};
use crate::server_error::ServerError;

/// How many prepared transactions there may be at the same time, so that
/// `max_prepared_transactions` is not reached.
const MOST_PREPARED: usize = 12;

/// How long a transaction stays prepared or is idle at most, in phases of this
/// length that alternate. Old transactions hold the bound back. Only without them
/// do the readers meet the transactions that begin and end while they read.
const PHASES: [(Duration, Duration); 2] = [
    (Duration::from_secs(3), Duration::from_millis(10)),
    (Duration::from_secs(1), Duration::from_millis(1_000)),
];

/// What became of the transactions of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    /// Those that were committed.
    pub committed: u64,
    /// Those that were rolled back on purpose.
    pub rolled_back: u64,
    /// Those that a fault ended, or that received an error.
    pub failed: u64,
    /// The rows of those that were committed; of a prepared transaction, when it
    /// was prepared.
    pub rows: u64,
}

/// The counts of all writers.
pub(super) fn total(writers: Vec<BTreeMap<Kind, Count>>) -> BTreeMap<Kind, Count> {
    let mut total: BTreeMap<Kind, Count> = BTreeMap::new();
    for (kind, count) in writers.into_iter().flatten() {
        let sum = total.entry(kind).or_default();
        sum.committed += count.committed;
        sum.rolled_back += count.rolled_back;
        sum.failed += count.failed;
        sum.rows += count.rows;
    }
    total
}

/// A session that writes.
pub(super) struct Writer<'a> {
    shared: &'a Shared,
    number: usize,
    config: Config,
    random: StdRng,
    counts: BTreeMap<Kind, Count>,
    /// For names of prepared transactions.
    transactions: u64,
    begun: Instant,
}

impl<'a> Writer<'a> {
    pub(super) fn new(shared: &'a Shared, number: usize, config: Config, seed: u64) -> Self {
        Self {
            shared,
            number,
            config,
            random: StdRng::seed_from_u64(seed.wrapping_add(1_000 + number as u64)),
            counts: BTreeMap::new(),
            transactions: 0,
            begun: Instant::now(),
        }
    }

    /// Runs transactions until the writers are stopped.
    pub(super) fn run(mut self) -> Result<BTreeMap<Kind, Count>> {
        let is_stopped = || self.shared.writers_are_stopped();
        while let Some(mut client) = self.shared.connect(&self.config, is_stopped)? {
            self.shared.set_pid(self.number, pid_of(&mut client));
            while !is_stopped() && !client.is_closed() {
                self.shared.wait_for_readers();
                if let Some(prepared) = self.shared.take_due() {
                    self.end_prepared(&mut client, prepared);
                } else {
                    self.transaction(&mut client);
                }
            }
            self.shared.set_pid(self.number, 0);
        }
        Ok(self.counts)
    }

    fn transaction(&mut self, client: &mut Client) {
        let mut kind = Kind::choose(&mut self.random);
        if kind == Kind::Prepared && self.shared.prepared_now() >= MOST_PREPARED {
            kind = Kind::SingleRow;
        }
        self.transactions += 1;
        let gid = format!("{} {}", self.number, self.transactions);
        let most_idle = self.most_idle();
        let mut transaction = Transaction {
            client,
            random: &mut self.random,
            writer: self.number,
            kind,
            most_idle,
        };
        let outcome = transaction.run(&gid);
        let count = self.counts.entry(kind).or_default();
        match outcome {
            Ok(Ended::Committed(rows)) => {
                count.committed += 1;
                count.rows += rows;
                self.shared.count_commit(self.number, rows);
            }
            Ok(Ended::RolledBack) => count.rolled_back += 1,
            Ok(Ended::Prepared(rows)) => {
                count.committed += 1;
                count.rows += rows;
                self.add_prepared(gid, rows);
            }
            Err(error) => {
                count.failed += 1;
                self.shared.count_error(client, kind.name(), &error);
                if kind == Kind::Prepared {
                    // It may be prepared nevertheless. Its rows are not known.
                    self.add_prepared(gid, 0);
                }
            }
        }
    }

    /// How long a transaction may be idle in the present phase.
    fn most_idle(&self) -> Duration {
        let [(short, least), (long, most)] = PHASES;
        let both = (short + long).as_millis();
        let is_short = self.begun.elapsed().as_millis() % both < short.as_millis();
        if is_short { least } else { most }
    }

    fn add_prepared(&mut self, gid: String, rows: u64) {
        let share: f64 = self.random.random();
        self.shared.add_prepared(Prepared {
            gid,
            rows,
            due: Instant::now() + self.most_idle().mul_f64(share * share),
            commit: self.random.random_bool(0.7),
        });
    }

    /// Ends a transaction that this or another session has prepared.
    fn end_prepared(&mut self, client: &mut Client, prepared: Prepared) {
        let gid = &prepared.gid;
        let verb = if prepared.commit {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        let outcome = client.batch_execute(&format!("{verb} PREPARED '{gid}'"));
        let Err(error) = outcome else {
            let is_own = gid.split(' ').next() == Some(&self.number.to_string());
            self.shared.count_prepared(|counts| {
                counts.by_another += u64::from(!is_own);
                match prepared.commit {
                    true => counts.committed += 1,
                    false => counts.rolled_back += 1,
                }
            });
            if prepared.commit {
                self.shared.count_commit(self.number, prepared.rows);
            }
            return;
        };
        let error = anyhow::Error::from(error);
        let sqlstate = ServerError::in_chain(&error).map(|it| it.sqlstate);
        match sqlstate.as_deref() {
            // It was never prepared, or a session that a fault ended had ended it.
            Some("42704") => {}
            // "is busy": the session that prepared it has not left it yet.
            Some("55000") => self.shared.add_prepared(prepared),
            _ => {
                self.shared.count_error(client, verb, &error);
                self.shared.add_prepared(prepared);
            }
        }
    }
}
