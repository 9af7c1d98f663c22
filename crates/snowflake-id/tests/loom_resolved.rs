//! Every interleaving of transactions that draw IDs and of a reader that asks up to where nothing
//! is missing.
//!
//! A row that is below the answer and that the reader does not see has been lost. Each protection
//! is taken away once, and the model has to find a loss then.
//!
//! `RUSTFLAGS='--cfg loom' cargo test -p pg-snowflake-id --release --test loom_resolved`

#![cfg(loom)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed as Counted};

use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;
use snowflake_id::resolved::removable::{READER_FENCE, REMOVED, WRITER_FENCE};
use snowflake_id::resolved::{OpenTransaction, Promise, resolve};
use snowflake_id::{Allowance, Answer, Identity, Layout, Slot, SnowflakeId, Tick};

const DATABASE: u32 = 5;

/// What a writer or the reader does differently when a protection is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The bound is published after the ID was drawn.
    EarlyBound,
    /// The promise is not read after the bound was published.
    Promise,
    /// The bound is cleared before the transaction ends.
    LateEnd,
    /// The word that several processes write gets the ID of one of them.
    SharedBound,
    /// The bound leaves the backend before the prepared transaction has it.
    HandingOn,
    /// The reader's snapshot is older than its question.
    Snapshot,
    WriterFence,
    ReaderFence,
}

/// One run of the model has these threads.
#[derive(Clone, Copy, Debug)]
struct Scene {
    /// The clocks of the writers, one ID each; each writer has a slot of its own.
    writers: &'static [u64],
    /// Whether they draw for one transaction, as the leader and its parallel workers.
    are_one: bool,
    /// Whether the first one is prepared, and ended by another process.
    is_prepared: bool,
    /// The reader's clock at each of its questions.
    questions: &'static [u64],
}

struct Server {
    layout: Layout,
    promise: Promise,
    slots: Vec<Slot>,
    transactions: Vec<OpenTransaction>,
    /// Whether each writer's transaction has ended for all others.
    ended: Vec<AtomicBool>,
}

impl Server {
    fn first_of(&self, tick: u64) -> SnowflakeId {
        self.layout.first_id_of(Tick::new(tick))
    }

    fn draw(&self, writer: usize, now: Tick) -> SnowflakeId {
        let allowance = Allowance {
            now,
            max_borrow: 4,
            reserved: Tick::new(30),
        };
        let identity = Identity::new(self.layout, 0).unwrap();
        match self.slots[writer].next(self.layout.sequence_bits(), allowance) {
            Answer::Issued(run) => identity.id(writer as u32, run.tick, run.first),
            other => panic!("{other:?}"),
        }
    }

    /// A transaction with one ID; returns it.
    fn write(&self, scene: Scene, writer: usize, without: Without) -> SnowflakeId {
        let word = &self.transactions[if scene.are_one { 0 } else { writer }];
        let now = scene.writers[writer];
        let present = self.first_of(now);
        if without == Without::EarlyBound {
            let id = self.draw(writer, Tick::new(now));
            let _ = word.begin(&self.promise, DATABASE, id, false);
            self.end(scene, writer, without);
            return id;
        }
        let is_parallel = scene.are_one && without != Without::SharedBound;
        let opening = word.begin(&self.promise, DATABASE, present, is_parallel);
        let least = if without == Without::Promise {
            present
        } else {
            opening.least
        };
        let id = self.draw(writer, self.layout.tick_of(least));
        assert!(without != Without::Nothing || id >= opening.least);
        word.drew(opening, id);
        if !scene.are_one {
            self.end(scene, writer, without);
        }
        id
    }

    fn end(&self, scene: Scene, writer: usize, without: Without) {
        let word = &self.transactions[writer];
        if scene.is_prepared && writer == 0 {
            let prepared = self.transactions.last().unwrap();
            let bound = word.first_id(DATABASE).unwrap();
            if without == Without::HandingOn {
                word.end();
            }
            prepared.take(DATABASE, bound);
            if without != Without::HandingOn {
                word.end();
            }
            self.ended[writer].store(true, Release);
            prepared.end();
            return;
        }
        if without == Without::LateEnd {
            word.end();
        }
        self.ended[writer].store(true, Release);
        word.end();
    }

    /// Who had ended for the reader's snapshot.
    fn snapshot(&self) -> Vec<bool> {
        self.ended.iter().map(|ended| ended.load(Acquire)).collect()
    }

    /// The answer, and the snapshot for which it is to hold.
    fn ask(&self, now: u64, without: Without) -> (SnowflakeId, Vec<bool>) {
        let before = self.snapshot();
        let answer = resolve(
            &self.promise,
            &self.transactions,
            DATABASE,
            self.first_of(now),
        );
        if without == Without::Snapshot {
            (answer, before)
        } else {
            (answer, self.snapshot())
        }
    }
}

/// All interleavings; returns how many there were.
fn explore(scene: Scene, without: Without, preemptions: Option<usize>) -> usize {
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&executions);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        counted.fetch_add(1, Counted);
        let writers = scene.writers.len();
        let server = Arc::new(Server {
            layout: "timestamp:41 backend:2 sequence:2".parse().unwrap(),
            promise: Promise::default(),
            slots: (0..writers).map(|_| Slot::new()).collect(),
            transactions: (0..=writers).map(|_| OpenTransaction::default()).collect(),
            ended: (0..writers).map(|_| AtomicBool::new(false)).collect(),
        });
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                let server = Arc::clone(&server);
                thread::spawn(move || server.write(scene, writer, without))
            })
            .collect();
        let answers: Vec<_> = scene
            .questions
            .iter()
            .map(|&now| server.ask(now, without))
            .collect();
        let ids: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        for (answer, seen) in answers {
            for (id, seen) in ids.iter().zip(seen) {
                assert!(*id >= answer || seen, "lost: {id} is below {answer}");
            }
        }
        if scene.are_one {
            // The leader ends it, after the workers.
            let answer = server.ask(20, without).0;
            assert!(ids.iter().all(|&id| id >= answer), "{ids:?} below {answer}");
        }
    });
    executions.load(Counted)
}

/// The removed fence is one for all threads, so one scene at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn holds(name: &str, scene: Scene, preemptions: Option<usize>) {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    let executions = explore(scene, Without::Nothing, preemptions);
    println!("{name}: {executions} interleavings, nothing lost");
}

/// The model finds a loss when this protection is taken away.
fn fails(without: Without, scene: Scene) {
    let _one = ONE_AT_A_TIME.lock().unwrap();
    REMOVED.store(
        match without {
            Without::WriterFence => WRITER_FENCE,
            Without::ReaderFence => READER_FENCE,
            _ => 0,
        },
        Counted,
    );
    let found = catch_unwind(AssertUnwindSafe(|| explore(scene, without, None)));
    REMOVED.store(0, Counted);
    let Err(reason) = found else {
        panic!("without {without:?}, no loss was found");
    };
    let reason = reason
        .downcast_ref::<String>()
        .cloned()
        .unwrap_or_else(|| "?".into());
    assert!(reason.contains("below"), "{reason}");
    println!("without {without:?}: {reason}");
}

const ONE_WRITER: Scene = Scene {
    writers: &[1],
    are_one: false,
    is_prepared: false,
    questions: &[3],
};

#[test]
fn one_transaction_and_a_reader() {
    holds("a writer, a question", ONE_WRITER, None);
    let twice = Scene {
        questions: &[2, 5],
        ..ONE_WRITER
    };
    holds("a writer, two questions", twice, None);
}

#[test]
fn two_transactions_and_a_reader() {
    let two = Scene {
        writers: &[1, 4],
        ..ONE_WRITER
    };
    holds("two writers, a question", two, Some(3));
    let twice = Scene {
        questions: &[4, 2],
        ..two
    };
    holds(
        "two writers, two questions, clocks that step",
        twice,
        Some(2),
    );
}

#[test]
fn parallel_workers_share_the_word_of_their_leader() {
    let shared = Scene {
        writers: &[3, 1],
        are_one: true,
        questions: &[4],
        ..ONE_WRITER
    };
    holds("a leader and a worker", shared, Some(3));
}

#[test]
fn a_prepared_transaction_takes_the_bound() {
    let prepared = Scene {
        is_prepared: true,
        ..ONE_WRITER
    };
    holds("a prepared transaction", prepared, None);
}

#[test]
fn each_protection_is_needed() {
    for without in [
        Without::EarlyBound,
        Without::Promise,
        Without::LateEnd,
        Without::Snapshot,
        Without::WriterFence,
        Without::ReaderFence,
    ] {
        fails(without, ONE_WRITER);
    }
    let prepared = Scene {
        is_prepared: true,
        ..ONE_WRITER
    };
    fails(Without::HandingOn, prepared);
    let shared = Scene {
        writers: &[3, 1],
        are_one: true,
        ..ONE_WRITER
    };
    fails(Without::SharedBound, shared);
}
