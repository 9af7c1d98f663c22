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
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;
use rand::RngExt;
use snowflake_tests::ids::{self, DEFAULT, SLOW_SLOTS, Tally, assert_increasing, grouped};
use snowflake_tests::{Cluster, ClusterBuilder, Stop, processes, tier};

use super::mark::{dense, set_clock};

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
    let builder = Cluster::builder()
        .conf("snowflake.node_id", 1)
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
    let rounds = [
        KillAll,
        KillBackend,
        ImmediateStop,
        CleanStop,
        KillAll,
        KillAll,
        KillBackend,
        CleanStop,
        KillAll,
    ];
    let rounds = &rounds[..tier::size(3, rounds.len())];
    let mut cluster = with_databases(builder())?;
    let received = faults(&mut cluster, rounds, true)?;
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

/// `kill -9`, and the clock back at the time of an ID.
fn crash_and_set_back(cluster: &mut Cluster, to: i64) -> Result<()> {
    cluster.kill9_all()?;
    set_clock(cluster, SLOW_SLOTS.time_us(to))?;
    cluster.start()?;
    set_clock(cluster, SLOW_SLOTS.time_us(to))
}

/// The slots are shared by all databases, the mark is each database's own.
/// A database that made nothing while another ran ahead knows little after a
/// crash, and one that is new knows nothing.
#[test]
fn an_idle_database_repeats_no_id_of_another() -> Result<()> {
    let mut cluster = with_databases(builder())?;
    let mut received = ids::nextval(&mut cluster.connect_to("second")?, 10)?;
    let first = received[0];
    for _ in 0..4 {
        // PIDs in a row: every slot.
        let mut client = cluster.connect_to("first")?;
        received.extend(ids::nextval(&mut client, 2_000)?);
    }
    crash_and_set_back(&mut cluster, first)?;
    for _ in 0..8 {
        let mut client = cluster.connect_to("second")?;
        received.extend(ids::nextval(&mut client, 200)?);
    }
    let idle = Tally::of(received.clone());
    println!("crash: an idle database after another's crash: {idle}");
    crash_and_set_back(&mut cluster, first)?;
    cluster.connect_to_new_database("third")?;
    for _ in 0..8 {
        let mut client = cluster.connect_to("third")?;
        received.extend(ids::nextval(&mut client, 200)?);
    }
    let new = Tally::of(received);
    println!("crash: and a new database: {new}");
    idle.assert_unique();
    new.assert_unique();
    Ok(())
}

/// With the default settings: after a crash no session has to wait,
/// and IDs begin no further ahead of the clock than time was reserved. Crashes
/// that follow each other faster than the clock catches up add up.
#[test]
fn no_session_waits_after_a_crash() -> Result<()> {
    let mut cluster = Cluster::with_extension()?;
    let mut received = Vec::new();
    for round in 1..=5 {
        for _ in 0..4 {
            received.extend(ids::nextval(&mut cluster.connect()?, 5_000)?);
        }
        cluster.kill9_all()?;
        cluster.start()?;
        let mut client = cluster.connect()?;
        let begun = Instant::now();
        let first = ids::one(&mut client)?;
        let took = begun.elapsed();
        let lead = DEFAULT.lead_ms(first);
        let begun = Instant::now();
        let more = ids::nextval(&mut client, 1_000)?;
        println!(
            "crash: default settings, round {round}: first ID after {:.1} ms, {lead} ms ahead of the clock, a thousand more in {:.1} ms",
            took.as_secs_f64() * 1e3,
            begun.elapsed().as_secs_f64() * 1e3
        );
        let waits: i64 = client
            .query_one("SELECT waits::int8 FROM snowflake_status", &[])?
            .get(0);
        assert_eq!(waits, 0, "the first ID after {took:?}");
        // A lease of 2 s, reserved from the highest ID's time on, which was at
        // most the 1 s of max_borrow ahead.
        assert!(lead <= round * 3_000, "{lead} ms ahead");
        received.push(first);
        received.extend(more);
    }
    let tally = Tally::of(received);
    println!("crash: default settings, 5 x kill -9: {tally}");
    tally.assert_unique();
    Ok(())
}

/// One start after another without a single ID between them, then one that
/// makes some: nothing is forgotten that wasn't used.
#[test]
fn starts_without_ids_lose_no_reservation() -> Result<()> {
    let mut cluster = with_databases(builder())?;
    let mut received = Vec::new();
    for _ in 0..4 {
        received.extend(ids::nextval(&mut cluster.connect_to("first")?, 2_000)?);
    }
    let highest = *received.iter().max().context("no IDs")?;
    crash_and_set_back(&mut cluster, received[0])?;
    cluster.stop(Stop::Immediate)?;
    cluster.start()?;
    cluster.restart()?;
    set_clock(&cluster, SLOW_SLOTS.time_us(received[0]))?;
    let mut client = cluster.connect_to("first")?;
    let next = ids::nextval(&mut client, 1_000)?;
    // Stronger than "not again": above all there were, on whatever slot.
    assert!(next[0] > highest, "{} came after {highest}", next[0]);
    received.extend(next);
    let tally = Tally::of(received);
    println!("crash: three starts without an ID, then a thousand: {tally}");
    tally.assert_unique();
    Ok(())
}
