//! Online migrations beside other servers: a streaming standby, which may hold
//! the copying of rows up, and a subscriber.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::migration::{number, value};
use snowflake_tests::online::{self, Step};
use snowflake_tests::outcome::refusal;
use snowflake_tests::{Cluster, Server};

fn wait_until(client: &mut Client, query: &str) -> Result<()> {
    let begun = Instant::now();
    while value(client, query)? != "t" {
        ensure!(begun.elapsed() < Duration::from_secs(30), "never: {query}");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Reads and compares on the standby at each step; with its replay paused, the
/// backfill waits where it was told to, and goes on afterwards.
#[test]
fn a_streaming_standby() -> Result<()> {
    let primary = Cluster::builder()
        .can_be_copied()
        .conf("snowflake.node_id", 1)
        .conf("wal_level", "replica")
        .start_with_extension()?;
    let mut client = primary.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, note text); CREATE TABLE r (n int, t_id int REFERENCES t);
         INSERT INTO t (note) SELECT 'n' FROM generate_series(1, 8000); INSERT INTO r SELECT id, id FROM t; ANALYZE",
    )?;
    let mut standby = Cluster::builder()
        .conf("snowflake.node_id", 2)
        .prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let mut there = standby.connect()?;
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    wait_until(
        client,
        "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'",
    )?;

    let steps = online::plan(client, "'t'")?;
    let backfill = steps
        .iter()
        .position(Step::is_backfill)
        .context("no backfill")?;
    for step in &steps[..backfill] {
        client.batch_execute(&step.statement)?;
    }
    // Replay stands still: so does the copying of rows, until it goes on.
    there.batch_execute("SELECT pg_wal_replay_pause()")?;
    wait_until(
        &mut there,
        "SELECT pg_get_wal_replay_pause_state() = 'paused'",
    )?;
    let mut migrating = primary.connect()?;
    let done = "SELECT coalesce(sum(rows_done), 0)::bigint FROM snowflake_migrations";
    let (stood_at, waited) = thread::scope(|scope| -> Result<(i64, Duration)> {
        let running = scope.spawn(|| {
            migrating.batch_execute(
                "CALL snowflake_migrate_backfill('t', batch_size => 500, pause => '20 ms', max_replay_lag => '500 ms')",
            )
        });
        let begun = Instant::now();
        let mut last = (-1, Instant::now());
        // Until there is no progress for much longer than a batch takes.
        while last.1.elapsed() < Duration::from_secs(2) {
            let now = number(client, done)?;
            if now != last.0 {
                last = (now, Instant::now());
            }
            ensure!(!running.is_finished(), "it did not wait for the standby");
            ensure!(
                begun.elapsed() < Duration::from_secs(30),
                "it goes on and on"
            );
            thread::sleep(Duration::from_millis(20));
        }
        ensure!(last.0 < 16_000, "all was done at {}", last.0);
        there.batch_execute("SELECT pg_wal_replay_resume()")?;
        let resumed = Instant::now();
        running.join().expect("the session's thread")?;
        Ok((last.0, resumed.elapsed()))
    })?;
    // Who may not see how far standbys are is told so.
    client.batch_execute(
        "CREATE ROLE keeper LOGIN; GRANT CREATE ON SCHEMA public TO keeper; CREATE TABLE mine (id int PRIMARY KEY); INSERT INTO mine SELECT generate_series(1, 10); ALTER TABLE mine OWNER TO keeper",
    )?;
    let mut keeper = primary.connect_as("keeper", "postgres")?;
    let first = online::plan(&mut keeper, "'mine', 'id'")?;
    for step in first.iter().take_while(|step| !step.is_backfill()) {
        keeper.batch_execute(&step.statement)?;
    }
    let refused = refusal(
        &mut keeper,
        "CALL snowflake_migrate_backfill('mine', 'id', max_replay_lag => '1 s')",
    )?;
    assert_eq!(refused.sqlstate, "42501", "{refused}");
    assert!(refused.hint.contains("pg_monitor"), "{refused}");

    let mut compared = 0;
    let left = online::plan(client, "'t'")?;
    for step in &left {
        client.batch_execute(&step.statement)?;
        standby.catch_up_with(&primary)?;
        assert_eq!(
            online::contents(&mut there, &columns)?,
            rows,
            "after {}",
            step.statement
        );
        compared += 1;
    }
    assert!(online::plan(client, "'t'")?.is_empty());
    let id = number(client, "INSERT INTO t (note) VALUES ('new') RETURNING id")?;
    standby.catch_up_with(&primary)?;
    assert_eq!(
        number(
            &mut there,
            &format!("SELECT count(*) FROM t WHERE id = {id}")
        )?,
        1
    );
    // It takes over in the midst of it all the same.
    client.batch_execute("CREATE TABLE later (id serial PRIMARY KEY); INSERT INTO later SELECT FROM generate_series(1, 500)")?;
    let steps = online::plan(client, "'later'")?;
    let backfill = steps
        .iter()
        .position(Step::is_backfill)
        .context("no backfill")?;
    for step in &steps[..=backfill] {
        client.batch_execute(&step.statement)?;
    }
    standby.catch_up_with(&primary)?;
    standby.promote()?;
    let count = online::migrate(&mut there, "'later'")?;
    assert_eq!(number(&mut there, "SELECT count(*) FROM later")?, 500);
    let after = number(&mut there, "INSERT INTO later DEFAULT VALUES RETURNING id")?;
    assert!(after > 1 << 50, "{after}");
    println!(
        "online servers: with replay paused the backfill stood at {stood_at} of 16000 rows, and ended {waited:.1?} after it went on; \
         the same rows on the standby after each of {compared} steps; promoted in the middle, it ran the other {count} statements"
    );
    Ok(())
}

fn connection(server: &Server) -> String {
    format!(
        "host={} port={} user=postgres dbname=postgres",
        server.sockets().display(),
        server.port()
    )
}

/// Until all that was written by now has been applied.
fn wait_for_subscribers(publisher: &mut Client) -> Result<()> {
    let position = value(publisher, "SELECT pg_current_wal_lsn()")?;
    wait_until(
        publisher,
        &format!(
            "SELECT coalesce(bool_and(replay_lsn >= '{position}'), false) FROM pg_stat_replication"
        ),
    )
}

/// A published table that is migrated online on both sides while rows are
/// written, as the guide says: the subscriber's part of each step first.
#[test]
fn a_published_table() -> Result<()> {
    let start = |node: i32| {
        Cluster::builder()
            .conf("snowflake.node_id", node)
            .conf("wal_level", "logical")
            .start_with_extension()
    };
    let (publisher, subscriber) = (start(1)?, start(2)?);
    let (mut here, mut there) = (publisher.connect()?, subscriber.connect()?);
    let tables = "CREATE TABLE t (id serial PRIMARY KEY, note text); CREATE TABLE r (n int PRIMARY KEY, t_id int REFERENCES t)";
    here.batch_execute(tables)?;
    there.batch_execute(tables)?;
    here.batch_execute("CREATE PUBLICATION both_tables FOR TABLE t, r; INSERT INTO t (note) SELECT 'n' FROM generate_series(1, 2000); INSERT INTO r SELECT id, id FROM t")?;
    there.batch_execute(&format!(
        "CREATE SUBSCRIPTION of_both CONNECTION '{}' PUBLICATION both_tables",
        connection(&publisher)
    ))?;
    wait_until(
        &mut there,
        "SELECT (SELECT count(*) FROM t) = 2000 AND (SELECT count(*) FROM r) = 2000",
    )?;

    // There first, all of it: what arrives meanwhile has its shadows, too.
    let columns = online::columns(&mut here)?;
    let stop = AtomicBool::new(false);
    let mut writer = publisher.connect()?;
    let written = thread::scope(|scope| -> Result<i64> {
        let writing = scope.spawn(|| -> Result<i64> {
            let mut written = 0;
            while !stop.load(Ordering::SeqCst) {
                written += 1;
                writer.batch_execute(&format!(
                    "WITH new AS (INSERT INTO t (note) VALUES ('w') RETURNING id) INSERT INTO r SELECT {}, id FROM new;
                     UPDATE t SET note = 'u' WHERE id = {}; UPDATE r SET t_id = {} WHERE n = {}; DELETE FROM r WHERE n = {}",
                    100_000 + written, 1 + written % 2000, 1 + (written * 7) % 2000, 1 + written % 1000, 1001 + written % 500,
                ))?;
                thread::sleep(Duration::from_millis(3));
            }
            Ok(written)
        });
        let migrated = (|| -> Result<()> {
            // At the subscriber, the keys first.
            online::migrate(&mut there, "'t'").context("at the subscriber")?;
            // Then the columns that the publisher is going to have: its plan
            // says which.
            let steps = online::plan(&mut here, "'t'")?;
            let wanted: Vec<&str> = steps
                .iter()
                .filter_map(|step| step.note.split_once("first at the subscribers, "))
                .map(|(_, statement)| statement)
                .collect();
            ensure!(wanted.len() == 2, "{steps:#?}");
            for statement in &wanted {
                there.batch_execute(statement)?;
            }
            for step in &steps {
                here.batch_execute(&step.statement)
                    .with_context(|| format!("publisher: {}", step.statement))?;
            }
            // When the swap has arrived, they go.
            wait_for_subscribers(&mut here)?;
            for statement in &wanted {
                there.batch_execute(
                    &statement
                        .replace("ADD COLUMN", "DROP COLUMN")
                        .replace(" bigint", ""),
                )?;
            }
            thread::sleep(Duration::from_millis(300));
            Ok(())
        })();
        stop.store(true, Ordering::SeqCst);
        let written = writing.join().expect("the writer's thread")?;
        migrated?;
        Ok(written)
    })?;
    wait_for_subscribers(&mut here)?;
    assert_eq!(
        online::contents(&mut there, &columns)?,
        online::contents(&mut here, &columns)?
    );
    let new = number(&mut there, "SELECT count(*) FROM t WHERE id > 2147483647")?;
    assert!(new > 0, "no new IDs at the subscriber");
    assert_eq!(
        online::columns(&mut there)?["public.t"],
        online::columns(&mut here)?["public.t"]
    );
    assert_eq!(
        number(&mut there, "SELECT count(*) FROM t JOIN r ON r.t_id = t.id")?,
        number(&mut there, "SELECT count(*) FROM r")?
    );
    let errors = number(
        &mut there,
        "SELECT apply_error_count FROM pg_stat_subscription_stats",
    )?;
    assert_eq!(errors, 0, "the subscription has met errors");
    there.batch_execute("DROP SUBSCRIPTION of_both")?;
    println!(
        "online servers: a published table migrated on both sides beside {written} transactions: the same rows, {new} new IDs at the \
         subscriber, which met {errors} errors"
    );
    Ok(())
}
