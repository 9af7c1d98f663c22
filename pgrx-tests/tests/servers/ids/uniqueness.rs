//! No ID is repeated, however many backends generate at once.
//!
//! The fault this guards against has been shipped more than once: a generator
//! whose state is the process's own, told apart by `PID % 1024` or the like.
//! Two backends whose PIDs leave the same remainder then make the same IDs in
//! the same millisecond. Small tests miss it, because the PIDs of connections
//! opened one after the other are consecutive and never meet. So these tests
//! make sure that live backends do share a number, count the pairs that did,
//! and fail when there were none.
//!
//! In a full run, each test is run a second time with a slot for every backend
//! in process memory (`snowflake.unprotected = 'slot'`), and must find duplicates.
//! The layout is then one of 16 numbers a tick. A session that gets ahead of the
//! clock has used all of them. So two sessions with the same backend number, of
//! which one begins before the clock has caught up with the other, repeat IDs.

use std::collections::HashSet;
use std::sync::Barrier;

use snowflake_tests::ids::{ONE_SLOT, SHORT_SEQUENCE, pairs_sharing_a_slot};

use crate::support::*;

const CONNECTIONS: usize = 16;

/// The IDs of a connection without the shared slot: a second of
/// [`SHORT_SEQUENCE`].
const UNPROTECTED_IDS_EACH: usize = 16_000;

/// How long sessions wait for the clock. It does not matter to what is tested.
const PATIENT: &str = "SET snowflake.max_wait = '1min'";

/// How long the workers of all leaders may take to start.
const TIMEOUT: Duration = Duration::from_secs(100);

/// Connections opened to choose from: PIDs in a row, so three to each of the
/// default layout's backend numbers.
const OPENED: usize = 48;

/// For parallel workers. Two that share a number are seldom at work in the
/// same millisecond where there are few cores; within a tenth of a second they
/// meet for certain.
const LONG_TICK: Fields = Fields {
    layout: "timestamp:34 node:6 backend:4 sequence:19 tick:100ms",
    bits: &[("node", 6), ("backend", 4), ("sequence", 19)],
    tick_us: 100_000,
    epoch: DEFAULT.epoch,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    On,
    SlotTakenAway,
}

impl Protection {
    fn start(self, fields: &Fields) -> Result<Cluster> {
        let builder = Cluster::node(1)
            .conf("snowflake.layout", fields.layout)
            .conf("max_worker_processes", 80)
            .conf("max_parallel_workers", 80);
        match self {
            Self::On => builder,
            Self::SlotTakenAway => builder.without_protection("slot"),
        }
        .start_with_extension()
    }

    fn judge(self, what: &str, fields: &Fields, pairs: u64, backends: usize, tally: Tally) {
        let build = match self {
            Self::On => "",
            Self::SlotTakenAway => " WITHOUT the shared slot",
        };
        println!(
            "uniqueness{build}, {what}, layout \"{}\": {tally}, {} backends, {} live pairs sharing a slot",
            fields.layout,
            grouped(backends as u64),
            grouped(pairs)
        );
        assert!(pairs > 0, "no two live backends shared a slot: not tested");
        match self {
            Self::On => tally.assert_unique(),
            Self::SlotTakenAway => tally.assert_found_duplicates(),
        }
    }
}

struct Session {
    client: Client,
    pid: i32,
}

/// Opens more connections than needed and keeps those that share a slot.
fn sessions_that_share(cluster: &Cluster, fields: &Fields) -> Result<Vec<Session>> {
    let mut opened = Vec::with_capacity(OPENED);
    for _ in 0..OPENED {
        let mut client = cluster.connect()?;
        let pid = ids::backend_pid(&mut client)?;
        opened.push(Session { client, pid });
    }
    let slot = |session: &Session| i64::from(session.pid) % fields.values("backend");
    opened.sort_by_key(slot);
    let mut groups: Vec<Vec<Session>> = Vec::new();
    for session in opened {
        match groups.last_mut() {
            Some(group) if slot(&group[0]) == slot(&session) => group.push(session),
            _ => groups.push(vec![session]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    Ok(groups.into_iter().flatten().take(CONNECTIONS).collect())
}

/// 16 connections at once, each with many IDs, call by call and in runs.
fn at_once(fields: &Fields, protection: Protection) -> Result<()> {
    let ids_each = match protection {
        Protection::On => tier::size(60_000, 250_000),
        Protection::SlotTakenAway => UNPROTECTED_IDS_EACH,
    };
    let chunk = ids_each / 10;
    let cluster = protection.start(fields)?;
    let sessions = sessions_that_share(&cluster, fields)?;
    ensure!(sessions.len() == CONNECTIONS);
    let pids: Vec<i32> = sessions.iter().map(|session| session.pid).collect();
    let pairs = pairs_sharing_a_slot(&pids, fields);
    let barrier = Barrier::new(CONNECTIONS);
    let lists = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|mut session| {
                let barrier = &barrier;
                scope.spawn(move || -> Result<Vec<i64>> {
                    let mut received = Vec::with_capacity(ids_each);
                    let calls =
                        format!("SELECT snowflake_nextval() FROM generate_series(1, {chunk})");
                    let run = format!("SELECT * FROM snowflake_nextvals({chunk})");
                    let patient = session.client.batch_execute(PATIENT);
                    barrier.wait();
                    patient?;
                    let mut chunks = 0;
                    while received.len() < ids_each {
                        // One in five by runs, so that both ways meet on a slot.
                        let query = if chunks % 5 == 4 { &run } else { &calls };
                        ids::fetch_into(&mut session.client, query, &mut received)?;
                        chunks += 1;
                    }
                    let backend = i64::from(session.pid) % fields.values("backend");
                    for &id in &received {
                        // In bulk all share a slot, unless each has one of its own.
                        if protection == Protection::SlotTakenAway {
                            assert_eq!(fields.field(id, "backend"), backend, "ID {id}");
                        }
                        assert_eq!(fields.field(id, "node"), 1, "ID {id}");
                    }
                    assert_increasing(&received, "one session");
                    Ok(received)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a session's thread"))
            .collect::<Result<Vec<_>>>()
    })?;
    let tally = Tally::of(lists.concat());
    assert!(tally.ids >= CONNECTIONS * ids_each);
    protection.judge("at once", fields, pairs, CONNECTIONS, tally);
    Ok(())
}

const WORKERS: usize = 4;

/// The query of a run: each of its workers stops at a gate until that is opened, so
/// that the workers of all leaders live at once.
fn query_of(run: usize) -> String {
    format!("SELECT snowflake_nextval() FROM many WHERE n % 1000 <> 0 OR opened({run})")
}

/// Opens the gate of a run.
fn open(client: &mut Client, run: usize) -> Result<()> {
    client.batch_execute(&format!("SELECT setval('gate', {run})"))?;
    Ok(())
}

/// Creates a table and the gate. Returns settings under which [`query_of`] scans the
/// table in workers.
fn in_workers(cluster: &Cluster, rows: usize) -> Result<String> {
    let mut client = cluster.connect()?;
    // The value of a sequence is seen at once, whatever snapshot the reader has.
    client.batch_execute(&format!(
        "CREATE TABLE many (n int) WITH (parallel_workers = {WORKERS});
         INSERT INTO many SELECT generate_series(1, {rows});
         CREATE SEQUENCE gate MINVALUE 0;
         CREATE FUNCTION opened(run int) RETURNS boolean LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
         BEGIN
             WHILE (SELECT last_value FROM gate) < run LOOP PERFORM pg_sleep(0.002); END LOOP;
             RETURN true;
         END $$;
         ANALYZE many"
    ))?;
    let force = if cluster.installation().major >= 16 {
        "debug_parallel_query"
    } else {
        "force_parallel_mode"
    };
    let settings = format!(
        "{PATIENT};
         SET {force} = on;
         SET parallel_setup_cost = 0;
         SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = {WORKERS};
         SET parallel_leader_participation = off;"
    );
    client.batch_execute(&settings)?;
    let query = query_of(0);
    // The workers call it, and not the leader above them.
    let explain = format!("EXPLAIN (ANALYZE, VERBOSE, COSTS off, TIMING off) {query}");
    let plan = client.column::<String>(&explain)?.join("\n");
    assert!(
        plan.contains(&format!("Workers Launched: {WORKERS}")),
        "{plan}"
    );
    let (_, below_gather) = plan.split_once("->").context("nothing below the Gather")?;
    assert!(
        below_gather.contains("Output: snowflake_nextval()"),
        "{plan}"
    );
    Ok(settings)
}

/// Waits until as many parallel workers live at once. Returns their processes.
fn wait_for_workers(observer: &mut Client, workers: usize) -> Result<Vec<i32>> {
    let mut pids = Vec::new();
    wait::until(format!("{workers} parallel workers"), TIMEOUT, || {
        pids = observer
            .column("SELECT pid FROM pg_stat_activity WHERE backend_type = 'parallel worker'")?;
        Ok(pids.len() >= workers)
    })?;
    Ok(pids)
}

/// Several sessions whose queries run in parallel workers. A worker is a
/// process of its own, with its own PID and so its own slot, that lives for
/// one query. In each run they wait for each other: 24 backends on 16 numbers.
fn parallel_workers(fields: &Fields, protection: Protection) -> Result<()> {
    const LEADERS: usize = 6;
    const ROWS: usize = 25_000;
    let runs: usize = tier::size(4, 8);

    let cluster = protection.start(fields)?;
    let mut observer = cluster.connect()?;
    let settings = in_workers(&cluster, ROWS)?;
    let (ids, pids, pairs) = std::thread::scope(|scope| -> Result<_> {
        let leaders = scope.spawn(|| {
            in_sessions(&cluster, "postgres", LEADERS, |client| {
                client.batch_execute(&settings)?;
                let mut received = Vec::new();
                for run in 1..=runs {
                    ids::fetch_into(client, &query_of(run), &mut received)?;
                }
                Ok(received)
            })
        });
        let mut met = || -> Result<_> {
            let (mut pids, mut pairs) = (HashSet::new(), 0);
            for run in 1..=runs {
                let live = wait_for_workers(&mut observer, LEADERS * WORKERS)?;
                pairs += pairs_sharing_a_slot(&live, fields);
                pids.extend(live);
                open(&mut observer, run)?;
            }
            Ok((pids, pairs))
        };
        let met = met();
        // Also after an error: the leaders end.
        open(&mut observer, runs)?;
        let ids = leaders.join().expect("the leaders' thread")?;
        let (pids, pairs) = met?;
        Ok((ids, pids, pairs))
    })?;
    assert_eq!(ids.len(), LEADERS * runs * ROWS);
    let numbers: HashSet<i64> = ids.iter().map(|&id| fields.field(id, "backend")).collect();
    assert!(
        fields.values("backend") == 1 || numbers.len() > WORKERS,
        "only {} backend numbers: the workers generated no IDs",
        numbers.len()
    );
    let backends = pids.len();
    protection.judge("parallel workers", fields, pairs, backends, Tally::of(ids));
    Ok(())
}

#[test]
fn no_id_repeats_in_sixteen_connections() -> Result<()> {
    at_once(&DEFAULT, Protection::On)
}

#[test]
fn no_id_repeats_in_sixteen_connections_on_one_slot() -> Result<()> {
    at_once(&ONE_SLOT, Protection::On)
}

#[test]
fn no_id_repeats_in_sixteen_connections_is_able_to_fail() -> Result<()> {
    at_once(&SHORT_SEQUENCE, Protection::SlotTakenAway)
}

#[test]
fn no_id_repeats_in_workers_of_parallel_queries() -> Result<()> {
    parallel_workers(&DEFAULT, Protection::On)
}

#[test]
fn no_id_repeats_in_workers_of_parallel_queries_on_one_slot() -> Result<()> {
    parallel_workers(&ONE_SLOT, Protection::On)
}

#[test]
fn no_id_repeats_in_workers_of_parallel_queries_with_a_long_tick() -> Result<()> {
    parallel_workers(&LONG_TICK, Protection::On)
}

#[test]
fn no_id_repeats_in_workers_of_parallel_queries_is_able_to_fail() -> Result<()> {
    parallel_workers(&SHORT_SEQUENCE, Protection::SlotTakenAway)
}
