//! Sessions that insert what arrives, as the apply workers of logical replication.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;

use super::stream::Transaction;

/// A transaction begins only when those that arrived this much earlier have been
/// committed. Without this limit, sessions that are faster than the true time
/// would pass each other by as much as they like.
pub const APPLY_MICROS: u64 = 5_000;

/// The most sessions. A session has one source, or several if there are more.
pub const MOST_SESSIONS: u32 = 64;

/// Inserts the transactions with `insert`, whose parameter is an array of keys.
/// Each source has its session.
pub fn apply(
    cluster: &Cluster,
    insert: &str,
    sources: u32,
    arrivals: &[Transaction],
) -> Result<()> {
    let sessions = sources.min(MOST_SESSIONS) as usize;
    let gate = Gate::new(arrivals.iter().map(|one| one.arrives).collect());
    std::thread::scope(|scope| -> Result<()> {
        let mut queues = Vec::new();
        let mut workers = Vec::new();
        for _ in 0..sessions {
            let (queue, work) = channel();
            queues.push(queue);
            let mut session = connect(cluster)?;
            let gate = &gate;
            workers.push(scope.spawn(move || -> Result<()> {
                let _ends = Ends(gate);
                insert_all(&mut session, insert, arrivals, &work, gate)
            }));
        }
        let mut handed_out = 0;
        while handed_out < arrivals.len() && gate.wait_for_turn(handed_out) {
            let queue = &queues[arrivals[handed_out].server as usize % sessions];
            if queue.send(handed_out).is_err() {
                break;
            }
            handed_out += 1;
        }
        drop(queues);
        for worker in workers {
            worker.join().ok().context("a session panicked")??;
        }
        ensure!(handed_out == arrivals.len(), "a session ended early");
        Ok(())
    })
}

fn connect(cluster: &Cluster) -> Result<Client> {
    let mut session = cluster.connect()?;
    // As in apply workers of subscriptions, by default.
    session.batch_execute("SET synchronous_commit = off")?;
    Ok(session)
}

fn insert_all(
    session: &mut Client,
    insert: &str,
    arrivals: &[Transaction],
    work: &Receiver<usize>,
    gate: &Gate,
) -> Result<()> {
    let insert = session.prepare(insert)?;
    for which in work {
        let ids = &arrivals[which].ids;
        let inserted = session.execute(&insert, &[ids])?;
        ensure!(
            inserted == ids.len() as u64,
            "{inserted} rows were inserted, not {}",
            ids.len()
        );
        gate.committed(which);
    }
    Ok(())
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
    /// Whether a session has ended.
    ended: bool,
}

impl Gate {
    fn new(arrivals: Vec<u64>) -> Self {
        let state = State {
            committed: vec![false; arrivals.len()],
            first: 0,
            ended: false,
        };
        Self {
            arrivals,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits until this transaction may begin. False if a session has ended.
    fn wait_for_turn(&self, which: usize) -> bool {
        let must_wait = |state: &mut State| {
            !state.ended
                && state.first < which
                && self.arrivals[state.first] + APPLY_MICROS <= self.arrivals[which]
        };
        let locked = self.state.lock().expect("no session panics with it");
        let waited = self.changed.wait_while(locked, must_wait);
        !waited.expect("no session panics with it").ended
    }

    fn committed(&self, which: usize) {
        let mut state = self.state.lock().expect("no session panics with it");
        state.committed[which] = true;
        while state.committed.get(state.first) == Some(&true) {
            state.first += 1;
        }
        self.changed.notify_all();
    }
}

/// Reports the end of a session, also of one that failed.
struct Ends<'a>(&'a Gate);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.ended = true;
        }
        self.0.changed.notify_all();
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

    #[test]
    fn nothing_waits_for_a_session_that_has_ended() {
        let gate = Gate::new(vec![0, APPLY_MICROS]);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for_turn(1));
            drop(Ends(&gate));
            assert!(!waiting.join().unwrap());
        });
    }
}
