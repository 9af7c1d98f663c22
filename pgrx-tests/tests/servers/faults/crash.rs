//! No ID is repeated after a crash, whether the transaction that received it was
//! committed, rolled back or never finished: a client may have printed it,
//! sent it on or used it as a key elsewhere.
//!
//! What a generator remembers in memory is gone after `kill -9`. The clock
//! covers for that only while IDs are not ahead of it. So with each fault these
//! tests set the clock back to the first ID that was made before it, of IDs that
//! leave no gaps ([`SLOW_SLOTS`]). On a server that doesn't obey the mark
//! (`snowflake.unprotected = 'mark'`) the same test must find duplicates.
//!
//! What is killed are processes. The kernel keeps what they wrote, so these
//! servers run with `fsync = off`; [`super::disk`] loses what was not flushed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rand::RngExt;

use super::mark::{dense, set_clock};
use crate::support::*;

const SESSIONS: usize = 8;

/// How long the sessions may take to get their IDs.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many IDs each of them has received when the fault comes: together minutes of
/// the layout's time.
const LEAST: usize = 1_500;

const DATABASES: [&str; 2] = ["first", "second"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// SIGKILL of the postmaster and everything below it.
    KillAll,
    /// SIGKILL of one backend: Postgres initialises shared memory anew.
    KillBackend,
    /// A stop without a checkpoint.
    ImmediateStop,
    /// A stop in order, which is no fault, and must not be one.
    CleanStop,
}

/// What clients did with the IDs of one session.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Commit,
    RollBack,
    NeverFinish,
    Runs,
}

const MODES: [Mode; 4] = [Mode::Commit, Mode::RollBack, Mode::NeverFinish, Mode::Runs];

/// What one session had received when its server went away.
struct Loot {
    database: usize,
    received: Vec<i64>,
    committed: Vec<i64>,
    pid: i32,
}

/// What the sessions and the thread that brings about the fault share.
#[derive(Default)]
struct Progress {
    fault_is_due: AtomicBool,
    /// How many IDs each session has received.
    received: [AtomicUsize; SESSIONS],
}

impl Progress {
    fn least(&self) -> usize {
        self.received
            .iter()
            .map(|received| received.load(Ordering::SeqCst))
            .min()
            .unwrap_or(0)
    }
}

/// One statement or transaction of a session.
fn turn(mode: Mode, client: &mut Client, loot: &mut Loot) -> Result<()> {
    let insert =
        "INSERT INTO rows SELECT snowflake_nextval() FROM generate_series(1, 300) RETURNING id";
    match mode {
        Mode::Commit => {
            client.batch_execute("BEGIN")?;
            let first = loot.received.len();
            ids::fetch_into(client, insert, &mut loot.received)?;
            client.batch_execute("COMMIT")?;
            loot.committed.extend(&loot.received[first..]);
        }
        Mode::RollBack => {
            client.batch_execute("BEGIN")?;
            ids::fetch_into(client, insert, &mut loot.received)?;
            client.batch_execute("ROLLBACK")?;
        }
        Mode::NeverFinish => {
            if loot.received.is_empty() {
                client.batch_execute("BEGIN")?;
            }
            ids::fetch_into(client, insert, &mut loot.received)?;
        }
        Mode::Runs => {
            let run = "SELECT * FROM snowflake_nextvals(500)";
            ids::fetch_into(client, run, &mut loot.received)?;
        }
    }
    Ok(())
}

/// Takes IDs until the server goes away.
fn plunder(
    cluster: &Cluster,
    number: usize,
    pid: &std::sync::mpsc::Sender<i32>,
    progress: &Progress,
) -> Result<Loot> {
    let (database, mode) = (number % 2, MODES[number / 2]);
    let mut client = cluster.connect_to(DATABASES[database])?;
    let mut loot = Loot {
        database,
        received: Vec::new(),
        committed: Vec::new(),
        pid: ids::backend_pid(&mut client)?,
    };
    pid.send(loot.pid)?;
    loop {
        if let Err(error) = turn(mode, &mut client, &mut loot) {
            if !progress.fault_is_due.load(Ordering::SeqCst) {
                return Err(error.context(format!("{mode:?} failed before the fault")));
            }
            assert_increasing(&loot.received, "a session");
            return Ok(loot);
        }
        progress.received[number].store(loot.received.len(), Ordering::SeqCst);
    }
}

fn builder() -> ClusterBuilder {
    let builder = Cluster::node(1)
        .conf("snowflake.lease", "20s")
        .movable_clock();
    dense(builder, &SLOW_SLOTS)
}

fn with_databases(builder: ClusterBuilder) -> Result<Cluster> {
    let cluster = builder.start()?;
    for database in DATABASES {
        cluster
            .connect_to_new_database(database)?
            .batch_execute("CREATE TABLE rows (id bigint PRIMARY KEY)")?;
    }
    Ok(cluster)
}

/// Brings a fault about; a server that was stopped is not started again.
fn strike(cluster: &Cluster, fault: Fault, pids: &[i32]) -> Result<()> {
    match fault {
        Fault::KillBackend => {
            let victim = pids[rand::rng().random_range(0..pids.len())];
            cluster.kill9_backend(victim)
        }
        Fault::KillAll => processes::kill9_tree(cluster.pid()?).map(|_| ()),
        Fault::ImmediateStop => processes::send(cluster.pid()?, Stop::Immediate.signal()),
        Fault::CleanStop => processes::send(cluster.pid()?, Stop::Fast.signal()),
    }
}

/// Sessions that take IDs until each has enough and a fault comes. Returns what each of them received, and how long the fault took.
fn take_until(cluster: &Cluster, fault: Fault) -> Result<(Vec<Loot>, Duration)> {
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let (pids, started) = std::sync::mpsc::channel();
        let threads: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let (pids, progress) = (pids.clone(), &progress);
                scope.spawn(move || plunder(cluster, number, &pids, progress))
            })
            .collect();
        drop(pids);
        let pids: Vec<i32> = started.iter().take(SESSIONS).collect();
        let waiting = Instant::now();
        // A session that has ended says why when it is joined.
        while progress.least() < LEAST
            && waiting.elapsed() < PATIENCE
            && !threads.iter().any(|thread| thread.is_finished())
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A moment that isn't always the same one.
        std::thread::sleep(Duration::from_millis(rand::rng().random_range(0..100)));
        progress.fault_is_due.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        strike(cluster, fault, &pids)?;
        let took = begun.elapsed();
        let loot: Result<Vec<_>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a session's thread"))
            .collect();
        Ok((loot?, took))
    })
}

/// At least a thousand IDs after a fault, on every slot and in both databases.
/// Returns how many, and how long the first took.
fn take_after(cluster: &Cluster, received: &mut [Vec<i64>; 2]) -> Result<(usize, Duration)> {
    let mut first_id = Duration::ZERO;
    let mut after = 0;
    for number in 0..16 {
        let begun = Instant::now();
        let mut client = cluster.connect_to(DATABASES[number % 2])?;
        let mut ids = vec![ids::one(&mut client)?];
        if number == 0 {
            first_id = begun.elapsed();
        }
        let query = "SELECT snowflake_nextval() FROM generate_series(1, 199)";
        ids::fetch_into(&mut client, query, &mut ids)?;
        assert_increasing(&ids, "a session after the fault");
        after += ids.len();
        received[number % 2].extend(ids);
    }
    assert!(after >= 1_000);
    Ok((after, first_id))
}

/// Faults one after another, with sessions in two databases that take IDs up
/// to the moment of each. Returns everything that any client ever received, by
/// database.
fn faults(cluster: &mut Cluster, faults: &[Fault], verify_rows: bool) -> Result<[Vec<i64>; 2]> {
    let mut received: [Vec<i64>; 2] = Default::default();
    let mut committed: [HashSet<i64>; 2] = Default::default();
    for (round, &fault) in faults.iter().enumerate() {
        let (loot, took) = take_until(cluster, fault)?;
        let mut during = 0;
        let mut first_of_round = i64::MAX;
        for loot in loot {
            let first = loot.received.iter().min();
            let first =
                first.with_context(|| format!("the session of process {} got no ID", loot.pid))?;
            first_of_round = first_of_round.min(*first);
            committed[loot.database].extend(loot.committed);
            during += loot.received.len();
            received[loot.database].extend(loot.received);
        }
        assert!(
            during >= SESSIONS * LEAST,
            "round {round}: too few IDs before the fault: {during}"
        );
        let back_to = SLOW_SLOTS.time_us(first_of_round);
        if fault != Fault::KillBackend {
            cluster.wait_for_end()?;
            set_clock(cluster, back_to)?;
            cluster.start()?;
        }
        // However long the start took.
        set_clock(cluster, back_to)?;
        let (after, first_id) = take_after(cluster, &mut received)?;
        println!(
            "crash: round {}, {fault:?} ({} ms): {} IDs up to it, {} after it with the clock back at the first of them, the first within {} ms of connecting",
            round + 1,
            took.as_millis(),
            grouped(during as u64),
            grouped(after as u64),
            first_id.as_millis(),
        );
        if verify_rows {
            for (database, committed) in DATABASES.iter().zip(&committed) {
                let rows = ids::fetch(&mut cluster.connect_to(database)?, "SELECT id FROM rows")?;
                let rows: HashSet<i64> = rows.into_iter().collect();
                assert!(
                    committed.is_subset(&rows),
                    "committed rows are lost: this is no test of IDs any more"
                );
            }
        }
    }
    Ok(received)
}

#[test]
fn no_id_repeats_after_a_crash() -> Result<()> {
    use Fault::{CleanStop, ImmediateStop, KillAll, KillBackend};
    let mut rounds = [KillAll, KillBackend, ImmediateStop, CleanStop].repeat(2);
    // Two of the same kind in a row, too.
    rounds.extend([KillAll, KillAll]);
    rounds.truncate(tier::size(4, rounds.len()));
    let mut cluster = with_databases(builder())?;
    let received = faults(&mut cluster, &rounds, true)?;
    let each = DATABASES.iter().zip(&received);
    let each: Vec<Tally> = each
        .map(|(database, ids)| {
            let tally = Tally::of(ids.clone());
            println!(
                "crash: {} faults, database {database}: {tally}",
                rounds.len()
            );
            tally
        })
        .collect();
    let both = Tally::of(received.concat());
    println!(
        "crash: {} faults, two databases together: {both}",
        rounds.len()
    );
    for tally in each {
        tally.assert_unique();
    }
    both.assert_unique();
    Ok(())
}

#[test]
fn no_id_repeats_after_a_crash_is_able_to_fail() -> Result<()> {
    for fault in [Fault::KillAll, Fault::KillBackend] {
        let mut cluster = with_databases(builder().without_protection("mark"))?;
        // An INSERT may well meet an existing row: leave the tables out.
        for database in DATABASES {
            cluster
                .connect_to(database)?
                .batch_execute("ALTER TABLE rows DROP CONSTRAINT rows_pkey")?;
        }
        let received = faults(&mut cluster, &[fault], false)?;
        let tally = Tally::of(received.concat());
        println!("crash WITHOUT the mark, {fault:?}: {tally}");
        tally.assert_found_duplicates();
    }
    Ok(())
}
