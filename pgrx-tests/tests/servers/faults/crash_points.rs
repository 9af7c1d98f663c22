//! The server is killed at exact places, between two steps of what keeps IDs apart, and
//! not by luck: PostgreSQL's injection points hold a session there (`src/crash_points.rs`
//! of the extension, which has the list).
//!
//! Each place is met three times: the clock stays right; it is set back to the first of the
//! IDs, which leave no gaps ([`SLOW_SLOTS`]); a standby is promoted, with its clock there.
//!
//! The simulator ends servers at these places too. What it cannot show is that the
//! extension's records, flushes and shared memory are what it takes them for.

use super::mark::{dense, set_clock};
use crate::support::*;

/// What a session does that comes to a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It draws more IDs than are reserved.
    Draw,
    /// It draws the first ID after a start.
    DrawAfterStart,
    /// It prepares a transaction with IDs.
    Prepare,
    /// It commits one that was prepared, in a transaction with IDs.
    CommitPrepared,
    /// It commits a transaction with IDs.
    Commit,
}

/// Whether the session of this way has the library: one that commits what another one has
/// prepared loads it only if it is preloaded.
fn is_met(way: Way) -> bool {
    way != Way::CommitPrepared || !tier::is_without_preload()
}

const POINTS: [(&str, Way); 9] = [
    ("snowflake-raise", Way::DrawAfterStart),
    ("snowflake-publish", Way::DrawAfterStart),
    ("snowflake-floor-written", Way::Draw),
    ("snowflake-mark-written", Way::Draw),
    ("snowflake-publish", Way::Draw),
    ("snowflake-prepare", Way::Prepare),
    ("snowflake-prepared", Way::Prepare),
    ("snowflake-after-utility", Way::CommitPrepared),
    ("snowflake-ended", Way::Commit),
];

/// What follows on the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    ClockRight,
    ClockBack,
    Promotion,
}

/// How many IDs a session of each database draws before, and each session after.
const BEFORE: usize = 300;
const AFTER: usize = 500;
const SESSIONS: usize = 4;
const DATABASES: [&str; 2] = ["postgres", "second"];

const ROWS: &str = "CREATE TABLE rows (id bigint NOT NULL DEFAULT snowflake_nextval())";

fn builder() -> ClusterBuilder {
    let builder = Cluster::node(1)
        .conf("snowflake.lease", "20s")
        .conf("max_prepared_transactions", 10)
        .environment("SNOWFLAKE_TEST_POINTS", "1")
        .can_be_copied()
        .movable_clock();
    dense(builder, &SLOW_SLOTS)
}

/// Inserts rows, and returns their IDs.
fn insert(client: &mut Client, rows: usize) -> Result<Vec<i64>> {
    let query = format!(
        "INSERT INTO rows SELECT snowflake_nextval() FROM generate_series(1, {rows}) RETURNING id"
    );
    ids::fetch(client, &query)
}

/// Comes to the place, where the session stays. Returns the IDs that it had received by then.
fn go(way: Way, client: &mut Client) -> Vec<i64> {
    let mut received = Vec::new();
    // The server is killed before the last statement ends.
    let _ =
        match way {
            Way::Draw | Way::DrawAfterStart => {
                let query = "SELECT snowflake_nextval() FROM generate_series(1, 3000)";
                ids::fetch_into(client, query, &mut received)
            }
            Way::Prepare | Way::Commit => client
                .batch_execute("BEGIN")
                .map_err(Into::into)
                .and_then(|()| {
                    received = insert(client, 10)?;
                    let end = if way == Way::Prepare {
                        "PREPARE TRANSACTION 'held'"
                    } else {
                        "COMMIT"
                    };
                    Ok(client.batch_execute(end)?)
                }),
            Way::CommitPrepared => client
                .batch_execute("COMMIT PREPARED 'before'")
                .map_err(Into::into),
        };
    received
}

/// Holds a session at the point and kills the server. Returns what the session had received.
fn kill_at(cluster: &mut Cluster, point: &str, way: Way) -> Result<Vec<i64>> {
    let mut control = cluster.connect()?;
    let mut held = cluster.connect()?;
    control.execute("SELECT injection_points_attach($1, 'wait')", &[&point])?;
    thread::scope(|scope| {
        let session = scope.spawn(move || go(way, &mut held));
        let waits =
            format!("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = '{point}'");
        let come = control.wait_until(&waits);
        cluster.kill9_all()?;
        let received = session.join().ok().context("the session panicked")?;
        come.with_context(|| format!("{point} is not met"))?;
        Ok(received)
    })
}

/// Draws in both databases.
fn draw(cluster: &Cluster) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    for database in DATABASES {
        all.extend(in_sessions(cluster, database, SESSIONS, |client| {
            ids::nextval(client, AFTER)
        })?);
    }
    Ok(all)
}

/// The first ID of some.
fn first(ids: &[i64]) -> Result<i64> {
    ids.iter().min().copied().context("no IDs")
}

/// One place, on a server that is running. Returns the IDs that may not come again, and with
/// them those that came afterwards.
fn meet(cluster: &mut Cluster, point: &str, way: Way, then: Then) -> Result<Vec<i64>> {
    let mut received = Vec::new();
    for database in DATABASES {
        received.extend(insert(&mut cluster.connect_to(database)?, BEFORE)?);
    }
    if way == Way::CommitPrepared {
        let mut client = cluster.connect()?;
        client.batch_execute("BEGIN")?;
        received.extend(insert(&mut client, 10)?);
        client.batch_execute("PREPARE TRANSACTION 'before'")?;
    }
    if way == Way::DrawAfterStart {
        cluster.restart()?;
    }
    let standby = if then == Then::Promotion {
        // Where IDs are drawn later, they are above those that were replicated.
        let mut standby = Cluster::builder()
            .environment("SNOWFLAKE_TEST_POINTS", "1")
            .movable_clock()
            .prepare_standby_of(cluster)?;
        standby.start()?;
        standby.catch_up_with(cluster)?;
        Some(standby)
    } else {
        None
    };
    received.extend(kill_at(cluster, point, way)?);
    let from = SLOW_SLOTS.time_us(first(&received)?);
    match standby {
        Some(standby) => {
            set_clock(&standby, from)?;
            standby.promote()?;
            let mut all = rows_of(&standby)?;
            ensure!(all.len() >= DATABASES.len() * BEFORE, "{} rows", all.len());
            all.extend(draw(&standby)?);
            finish_prepared(&standby)?;
            cluster.start()?;
            finish_prepared(cluster)?;
            Ok(all)
        }
        None => {
            if then == Then::ClockBack {
                set_clock(cluster, from)?;
            }
            cluster.start()?;
            if then == Then::ClockBack {
                // However long the start took.
                set_clock(cluster, from)?;
            }
            received.extend(draw(cluster)?);
            finish_prepared(cluster)?;
            Ok(received)
        }
    }
}

/// Commits what is prepared; no row may be there twice.
fn finish_prepared(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.connect()?;
    for prepared in client.column::<String>("SELECT gid FROM pg_prepared_xacts")? {
        client.batch_execute(&format!("COMMIT PREPARED '{prepared}'"))?;
    }
    let twice = "SELECT count(*) - count(DISTINCT id) FROM rows";
    ensure!(client.number(twice)? == 0, "rows have the same ID");
    Ok(())
}

fn rows_of(cluster: &Cluster) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    for database in DATABASES {
        all.extend(ids::fetch(
            &mut cluster.connect_to(database)?,
            "SELECT id FROM rows",
        )?);
    }
    Ok(all)
}

/// These places, one after the other on one server.
fn at_points(builder: ClusterBuilder, points: &[(&str, Way)], then: Then) -> Result<Tally> {
    let mut cluster = builder.start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE EXTENSION injection_points")?;
    client.batch_execute(ROWS)?;
    cluster
        .connect_to_new_database(DATABASES[1])?
        .batch_execute(ROWS)?;
    drop(client);
    let mut sum = Tally::of(Vec::new());
    for &(point, way) in points.iter().filter(|(_, way)| is_met(*way)) {
        let tally = Tally::of(meet(&mut cluster, point, way, then)?);
        println!("crash_points: {then:?}: killed at {point}: {tally}");
        sum.ids += tally.ids;
        sum.duplicates += tally.duplicates;
        sum.example = sum.example.or(tally.example);
    }
    println!(
        "crash_points: {then:?}: {} places, {sum}",
        grouped(points.len())
    );
    Ok(sum)
}

#[test]
fn no_id_repeats_after_a_kill_at_each_point() -> Result<()> {
    at_points(builder(), &POINTS, Then::ClockRight)?.assert_unique();
    Ok(())
}

#[test]
fn no_id_repeats_after_a_kill_at_each_point_and_the_clock_back() -> Result<()> {
    at_points(builder(), &POINTS, Then::ClockBack)?.assert_unique();
    Ok(())
}

#[test]
fn no_id_repeats_after_a_kill_at_each_point_and_a_promotion() -> Result<()> {
    at_points(builder(), &POINTS, Then::Promotion)?.assert_unique();
    Ok(())
}

#[test]
fn kills_at_points_are_able_to_fail() -> Result<()> {
    // Without the mark, no slot is raised after a start.
    let unprotected = builder().without_protection("mark");
    at_points(unprotected, &POINTS[2..], Then::ClockBack)?.assert_found_duplicates();
    Ok(())
}
