//! Sessions that insert what arrives, as the apply workers of logical replication.

use std::sync::{Condvar, Mutex};

use anyhow::{Context, Result, ensure};
use snowflake_tests::Cluster;

use super::stream::Transaction;

/// A transaction begins only when those that arrived this much earlier have been
/// committed. Without this limit, sessions that are faster than the true time
/// would pass each other by as much as they like.
const APPLY_MICROS: u64 = 5_000;

/// The most sessions. A session has one source, or several if there are more.
const MOST_SESSIONS: u32 = 64;

/// Inserts the transactions with `insert`, whose parameter is an array of keys. Each source has its
/// session.
pub fn apply(
    cluster: &Cluster,
    insert: &str,
    sources: u32,
    arrivals: &[Transaction],
) -> Result<()> {
    let sessions = sources.min(MOST_SESSIONS);
    let gate = Gate::new(arrivals.iter().map(|one| one.arrives).collect());
    std::thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..sessions)
            .map(|session| {
                let gate = &gate;
                let of_session = move |one: &Transaction| one.server % sessions == session;
                scope.spawn(move || -> Result<()> {
                    let mut failure = Failure(Some(gate));
                    let mut client = cluster.connect()?;
                    // As in apply workers of subscriptions, by default.
                    client.batch_execute("SET synchronous_commit = off")?;
                    let insert = client.prepare(insert)?;
                    for (which, one) in arrivals.iter().enumerate() {
                        if of_session(one) {
                            ensure!(gate.wait_for_turn(which), "another session failed");
                            let inserted = client.execute(&insert, &[&one.ids])?;
                            ensure!(inserted == one.ids.len() as u64, "{inserted} rows");
                            gate.committed(which);
                        }
                    }
                    failure.0 = None;
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().ok().context("a session panicked")??;
        }
        Ok(())
    })
}

/// Which transactions have been committed.
struct Gate {
    arrivals: Vec<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    committed: Vec<bool>,
    /// The first one that is not committed.
    first: usize,
    /// Whether a session has failed.
    failed: bool,
}

impl Gate {
    fn new(arrivals: Vec<u64>) -> Self {
        let state = State {
            committed: vec![false; arrivals.len()],
            first: 0,
            failed: false,
        };
        Self {
            arrivals,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits until this transaction may begin. False if a session has failed.
    fn wait_for_turn(&self, which: usize) -> bool {
        let must_wait = |state: &mut State| {
            !state.failed
                && state.first < which
                && self.arrivals[state.first] + APPLY_MICROS <= self.arrivals[which]
        };
        let locked = self.state.lock().expect("no session panics with it");
        let waited = self.changed.wait_while(locked, must_wait);
        !waited.expect("no session panics with it").failed
    }

    fn committed(&self, which: usize) {
        let mut state = self.state.lock().expect("no session panics with it");
        state.committed[which] = true;
        let before = state.first;
        while state.committed.get(state.first) == Some(&true) {
            state.first += 1;
        }
        if state.first != before {
            self.changed.notify_all();
        }
    }
}

/// Ends the waits of the other sessions, unless it was disarmed.
struct Failure<'a>(Option<&'a Gate>);

impl Drop for Failure<'_> {
    fn drop(&mut self) {
        let Some(gate) = self.0 else { return };
        if let Ok(mut state) = gate.state.lock() {
            state.failed = true;
        }
        gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_waits_for_those_that_arrived_long_before() {
        let gate = Gate::new(vec![0, 1, APPLY_MICROS, APPLY_MICROS + 1]);
        assert!(gate.wait_for_turn(0) && gate.wait_for_turn(1));
        gate.committed(1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for_turn(2));
            gate.committed(0);
            assert!(waiting.join().unwrap());
        });
        // The first that is not committed is now the third.
        assert!(gate.wait_for_turn(3));
    }
}
