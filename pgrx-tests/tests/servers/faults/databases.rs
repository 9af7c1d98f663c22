//! Databases of one server don't repeat each other's IDs, whatever happens to
//! the server, and none carries another one ahead of time.
//!
//! The fault this guards against: slots belong to the server, marks to its
//! databases. After a start, the first ID of a database that was idle knows its
//! own old mark only, and if the clock is behind what another database had
//! reached, it passes through that one's IDs. What the other database had
//! reached (the floor) has to come along with the data by all ways on which the
//! data come: it is a page of its own in the write-ahead log.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use snowflake_tests::ids::ONE_SLOW_SLOT;

use super::mark::{dense, set_clock};
use crate::support::*;

const SESSIONS: usize = 4;

/// How many a session takes afterwards at most, to pass those.
const MOST: usize = 300_000;

/// A layout whose ticks are used up: IDs that pass through the time of others
/// are bound to meet them. In the default one most ticks have room
/// for both.
const DENSE: Fields = ONE_SLOW_SLOT;

/// How many IDs each session takes in the database that is in use: together more than two
/// minutes of the time of this layout.
const EACH: usize = 2_500;

/// A server of node 1 with it.
fn dense_server() -> ClusterBuilder {
    dense(Cluster::node(1), &DENSE)
}

/// The first ID that was made.
fn first(busy: &[i64]) -> Result<i64> {
    busy.iter().min().copied().context("no IDs")
}

/// The file of the floor's page.
const FLOOR: &str = "global/1936617335";

/// Sessions that take IDs until the last one is `enough`.
fn take(
    server: &Cluster,
    database: &str,
    least: usize,
    enough: impl Fn(i64) -> bool + Sync,
) -> Result<Vec<i64>> {
    in_sessions(server, database, SESSIONS, |client| {
        let mut ids = ids::nextval(client, least)?;
        while ids.len() < MOST && ids.last().is_some_and(|&last| !enough(last)) {
            ids.extend(ids::nextval(client, 1_000)?);
        }
        assert_increasing(&ids, "a session");
        Ok(ids)
    })
}

/// Two databases: `busy` is in use, `idle` was used once, a while ago.
fn two_databases(builder: ClusterBuilder) -> Result<Cluster> {
    let server = builder.start()?;
    server.connect_to_new_database("busy")?;
    let mut idle = server.connect_to_new_database("idle")?;
    ids::one(&mut idle)?;
    Ok(server)
}

/// The IDs of `idle` once another server has taken over, or this one after a
/// fault, together with those of `busy` before.
fn judge(
    what: &str,
    protected: bool,
    busy: Vec<i64>,
    server: &Cluster,
    least: usize,
) -> Result<()> {
    let highest = *busy.iter().max().context("no IDs")?;
    let begun = Instant::now();
    let idle = take(server, "idle", least, |last| last > highest)?;
    let took = begun.elapsed();
    let (before, after) = (busy.len(), idle.len());
    let tally = Tally::of([busy, idle].concat());
    println!(
        "databases{}, {what}: {} IDs of one database before, {} of the other one after it, in {:.1} s: {tally}",
        if protected { "" } else { " WITHOUT the floor" },
        grouped(before),
        grouped(after),
        took.as_secs_f64(),
    );
    if protected {
        tally.assert_unique();
    } else {
        tally.assert_found_duplicates();
    }
    Ok(())
}

/// The standby was created before `busy` issued its IDs, has the same node number,
/// and its clock is back at the first of them.
fn promotion(protected: bool) -> Result<()> {
    let mut taker = Cluster::builder().movable_clock();
    if !protected {
        taker = taker.without_protection("mark");
    }
    let primary = two_databases(dense_server().can_be_copied())?;
    let mut standby = taker.prepare_standby_of(&primary)?;
    standby.start()?;
    let busy = take(&primary, "busy", EACH, |_| true)?;
    standby.catch_up_with(&primary)?;
    standby.promote()?;
    set_clock(&standby, DENSE.time_us(first(&busy)?))?;
    judge(
        "promotion with the clock back",
        protected,
        busy,
        &standby,
        EACH,
    )
}

#[test]
fn no_id_repeats_across_databases_after_a_promotion_with_full_ticks() -> Result<()> {
    promotion(true)
}

#[test]
fn no_id_repeats_across_databases_is_able_to_fail() -> Result<()> {
    promotion(false)
}

/// A base backup that is started by itself: no promotion, the same timeline. It
/// was running while `busy` issued IDs.
#[test]
fn no_id_repeats_across_databases_in_a_base_backup() -> Result<()> {
    let source = two_databases(dense_server().can_be_copied())?;
    let mut busy = take(&source, "busy", EACH, |_| true)?;
    let stop = AtomicBool::new(false);
    let (more, mut copy) = std::thread::scope(|scope| -> Result<_> {
        let over = SetOnDrop(&stop);
        let busy = scope.spawn(|| {
            in_sessions(&source, "busy", SESSIONS, |client| {
                let mut ids = ids::nextval(client, 10)?;
                while !stop.load(Ordering::SeqCst) {
                    ids.extend(ids::nextval(client, 10)?);
                    std::thread::sleep(Duration::from_millis(50));
                }
                Ok(ids)
            })
        });
        let copy = Cluster::builder().movable_clock().prepare_copy_of(&source);
        drop(over);
        Ok((busy.join().expect("the sessions")?, copy?))
    })?;
    busy.extend(more);
    let back_to = DENSE.time_us(first(&busy)?);
    set_clock(&copy, back_to)?;
    copy.start()?;
    set_clock(&copy, back_to)?;
    // What is in the copy: `busy` itself must not repeat it either, but it is no
    // row there, so what its mark says is the judge.
    let bound: i64 = copy
        .connect_to("busy")?
        .query_one("SELECT last_value FROM snowflake_internal.mark", &[])?
        .get(0);
    let known: Vec<i64> = busy.into_iter().filter(|&id| id < bound).collect();
    ensure!(!known.is_empty(), "the copy knows none of the IDs");
    judge("a base backup", true, known, &copy, EACH)
}

/// A file that cannot be read changes nothing, however often it is tried, and
/// nothing is issued; as soon as it can be, all is as before.
#[test]
fn a_floor_that_cannot_be_read_changes_nothing() -> Result<()> {
    /// By each of eight sessions.
    const CALLS: usize = 125;
    let mut server = two_databases(Cluster::node(1))?;
    let mut received = take(&server, "busy", 5_000, |_| true)?;
    server.stop(Stop::Fast)?;
    let file = server.data().join(FLOOR);
    let aside = server.data().join("aside");
    let existed = file.exists();
    if existed {
        fs::rename(&file, &aside)?;
    }
    fs::create_dir(&file)?;
    server.start()?;
    let marks = |server: &Cluster| -> Result<Vec<i64>> {
        ["busy", "idle"]
            .iter()
            .map(|database| {
                let sql = "SELECT last_value FROM snowflake_internal.mark";
                Ok(server.connect_to(database)?.query_one(sql, &[])?.get(0))
            })
            .collect()
    };
    let before = marks(&server)?;
    let refusals: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let server = &server;
                scope.spawn(move || -> Result<usize> {
                    let database = ["busy", "idle"][number % 2];
                    let mut client = server.connect_to(database)?;
                    for _ in 0..CALLS {
                        let refused = client.expect_error("SELECT snowflake_nextval()")?;
                        ensure!(!refused.sqlstate.starts_with("XX000"), "{refused}");
                    }
                    Ok(CALLS)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a session's thread"))
            .sum::<Result<usize>>()
    })?;
    assert_eq!(marks(&server)?, before, "the refused calls moved a mark");

    fs::remove_dir(&file)?;
    if existed {
        fs::rename(&aside, &file)?;
    }
    let mut client = server.connect_to("idle")?;
    let id = ids::one(&mut client)?;
    let lead = DEFAULT.lead_ms(id);
    received.push(id);
    received.extend(take(&server, "busy", 5_000, |_| true)?);
    let tally = Tally::of(received);
    println!(
        "databases: {FLOOR} not readable: {} calls refused, afterwards {lead} ms ahead of the clock: {tally}",
        grouped(refusals)
    );
    tally.assert_unique();
    // A restart begins a lease ahead of the last ID, less the time that has passed
    // since; that one was at most max_borrow ahead.
    ensure!(lead <= 3_000, "{lead} ms ahead of the clock");
    Ok(())
}
