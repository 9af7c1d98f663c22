//! Online migrations beside other servers: a streaming standby, which may hold
//! the copying of rows up, and a subscriber.

use std::sync::atomic::{AtomicBool, Ordering};

use super::run_before;
use crate::support::*;

const TABLES: &str = "CREATE TABLE t (id serial PRIMARY KEY, note text); CREATE TABLE r (n int, t_id int REFERENCES t)";

fn fill(client: &mut Client, rows: usize) -> Result<()> {
    client.batch_execute(&format!(
        "INSERT INTO t (note) SELECT 'n' FROM generate_series(1, {rows}); INSERT INTO r SELECT id, id FROM t; ANALYZE"
    ))?;
    Ok(())
}

fn primary_and_standby() -> Result<(Cluster, Cluster)> {
    let primary = Cluster::builder()
        .can_be_copied()
        .conf("snowflake.node_id", 1)
        .conf("wal_level", "replica")
        .start_with_migrate()?;
    primary.run(TABLES)?;
    let mut standby = Cluster::node(2).prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    primary
        .connect()?
        .wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")?;
    Ok((primary, standby))
}

/// With replay on the standby paused, it waits where it was asked to, and
/// resumes afterwards.
#[test]
fn the_backfill_waits_for_a_standby() -> Result<()> {
    let (primary, standby) = primary_and_standby()?;
    let (mut client, mut there) = (primary.connect()?, standby.connect()?);
    fill(&mut client, 8000)?;
    let columns = online::columns(&mut client)?;
    let rows = online::contents(&mut client, &columns)?;
    standby.catch_up_with(&primary)?;
    run_before(&mut client, "'t'", Step::is_backfill)?;
    there.batch_execute("SELECT pg_wal_replay_pause()")?;
    there.wait_until("SELECT pg_get_wal_replay_pause_state() = 'paused'")?;
    let mut migrating = primary.connect()?;
    let done = "SELECT coalesce(sum(rows_done), 0)::bigint FROM snowflake_migrate.progress";
    thread::scope(|scope| -> Result<()> {
        let running = scope.spawn(|| {
            migrating.batch_execute(
                "CALL snowflake_migrate.backfill('t', batch_size => 500, pause => '200 ms', max_replay_lag => '500 ms')",
            )
        });
        // At least 32 pauses of 0.2 s, in which the standby falls behind.
        client.wait_until(
            "SELECT count(*) = 1 FROM snowflake_migrate.progress WHERE waiting_for LIKE '%: more than 00:00:00.5 behind'",
        )?;
        let stood_at = client.number(done)?;
        ensure!(stood_at < 16_000, "all was done at {stood_at}");
        thread::sleep(Duration::from_millis(500));
        ensure!(!running.is_finished(), "it did not wait for the standby");
        client.answers(done, stood_at)?;
        there.batch_execute("SELECT pg_wal_replay_resume()")?;
        client.batch_execute("CALL snowflake_migrate.pace('t', pause => '0')")?;
        running.join().expect("the session's thread")?;
        Ok(())
    })?;
    online::migrate(&mut client, "'t'")?;
    standby.catch_up_with(&primary)?;
    assert_eq!(online::contents(&mut there, &columns)?, rows);
    Ok(())
}

/// The lag of standbys is visible to members of `pg_monitor`.
#[test]
fn waiting_for_standbys_needs_the_right_to_see_them() -> Result<()> {
    let (primary, _standby) = primary_and_standby()?;
    primary.run(
        "CREATE ROLE keeper LOGIN; GRANT CREATE ON SCHEMA public TO keeper; CREATE TABLE mine (id int PRIMARY KEY); INSERT INTO mine SELECT generate_series(1, 10); ALTER TABLE mine OWNER TO keeper",
    )?;
    let mut keeper = primary.connect_as("keeper", "postgres")?;
    run_before(&mut keeper, "'mine', 'id'", Step::is_backfill)?;
    let call = "CALL snowflake_migrate.backfill('mine', 'id', max_replay_lag => '1 s')";
    let refused = keeper.refused(call, "42501")?;
    assert!(refused.hint.contains("pg_monitor"), "{refused}");
    Ok(())
}

#[test]
fn a_standby_has_the_same_rows_after_each_step() -> Result<()> {
    let (primary, standby) = primary_and_standby()?;
    let (mut client, mut there) = (primary.connect()?, standby.connect()?);
    let client = &mut client;
    fill(client, 2000)?;
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    for step in online::plan(client, "'t'")? {
        client.batch_execute(&step.statement)?;
        standby.catch_up_with(&primary)?;
        assert_eq!(
            online::contents(&mut there, &columns)?,
            rows,
            "after {}",
            step.statement
        );
    }
    assert!(online::plan(client, "'t'")?.is_empty());
    let id = client.number("INSERT INTO t (note) VALUES ('new') RETURNING id")?;
    standby.catch_up_with(&primary)?;
    let new = format!("SELECT count(*) FROM t WHERE id = {id}");
    there.answers(&new, 1)?;
    Ok(())
}

#[test]
fn a_promoted_standby_finishes_the_migration() -> Result<()> {
    let (primary, standby) = primary_and_standby()?;
    let mut client = primary.connect()?;
    fill(&mut client, 500)?;
    let (steps, backfill) = run_before(&mut client, "'t'", Step::is_backfill)?;
    client.batch_execute(&steps[backfill].statement)?;
    standby.catch_up_with(&primary)?;
    standby.promote()?;
    let mut there = standby.connect()?;
    assert!(online::migrate(&mut there, "'t'")? > 0);
    there.answers("SELECT count(*) FROM t", 500)?;
    let after = there.number("INSERT INTO t DEFAULT VALUES RETURNING id")?;
    assert!(after > 1 << 50, "{after}");
    Ok(())
}

/// Until all that was written by now has been applied.
fn wait_for_subscribers(publisher: &mut Client) -> Result<()> {
    let position = publisher.value("SELECT pg_current_wal_lsn()")?;
    publisher.wait_until(&format!(
        "SELECT coalesce(bool_and(replay_lsn >= '{position}'), false) FROM pg_stat_replication"
    ))
}

/// Writes to the published tables until it is stopped. Returns how often.
fn write(client: &mut Client, stop: &AtomicBool) -> Result<i64> {
    let mut written = 0;
    while !stop.load(Ordering::SeqCst) {
        written += 1;
        client.batch_execute(&format!(
            "WITH new AS (INSERT INTO t (note) VALUES ('w') RETURNING id) INSERT INTO r SELECT {}, id FROM new;
             UPDATE t SET note = 'u' WHERE id = {}; UPDATE r SET t_id = {} WHERE n = {}; DELETE FROM r WHERE n = {}",
            100_000 + written, 1 + written % 2000, 1 + (written * 7) % 2000, 1 + written % 1000, 1001 + written % 500,
        ))?;
        thread::sleep(Duration::from_millis(3));
    }
    Ok(written)
}

/// As the guide has it: the subscriber's part of each step first, all of it, so
/// that what arrives in the meantime has its shadows, too.
fn migrate_both(here: &mut Client, there: &mut Client) -> Result<()> {
    // At the subscriber, the keys first.
    online::migrate(there, "'t'").context("at the subscriber")?;
    // Then the columns that the publisher is going to have: its plan names them.
    let steps = online::plan(here, "'t'")?;
    let wanted: Vec<&str> = steps
        .iter()
        .filter_map(|step| step.note.split_once("first at the subscribers, "))
        .map(|(_, statement)| statement)
        .collect();
    ensure!(wanted.len() == 2, "{steps:#?}");
    there.run(&wanted)?;
    here.run(online::statements(&steps))
        .context("at the publisher")?;
    // They are dropped when the swap has arrived.
    wait_for_subscribers(here)?;
    for statement in &wanted {
        let dropping = statement
            .replace("ADD COLUMN", "DROP COLUMN")
            .replace(" bigint", "");
        there.batch_execute(&dropping)?;
    }
    there.wait_until("SELECT count(*) > 0 FROM t WHERE id > 2147483647")
}

/// While rows are written.
#[test]
fn a_published_table_is_migrated_on_both_sides() -> Result<()> {
    let (publisher, subscriber) = publisher_and_subscriber()?;
    let (mut here, mut there) = (publisher.connect()?, subscriber.connect()?);
    for client in [&mut here, &mut there] {
        client.run([TABLES, "ALTER TABLE r ADD PRIMARY KEY (n)"])?;
    }
    here.batch_execute("CREATE PUBLICATION both_tables FOR TABLE t, r")?;
    fill(&mut here, 2000)?;
    subscribe(&mut there, &publisher, "both_tables")?;
    there
        .wait_until("SELECT (SELECT count(*) FROM t) = 2000 AND (SELECT count(*) FROM r) = 2000")?;

    let columns = online::columns(&mut here)?;
    let stop = AtomicBool::new(false);
    let mut writer = publisher.connect()?;
    let written = thread::scope(|scope| -> Result<i64> {
        let writing = scope.spawn(|| write(&mut writer, &stop));
        let migrated = migrate_both(&mut here, &mut there);
        stop.store(true, Ordering::SeqCst);
        let written = writing.join().expect("the writer's thread")?;
        migrated?;
        Ok(written)
    })?;
    wait_for_subscribers(&mut here)?;
    let rows = online::contents(&mut here, &columns)?;
    assert_eq!(online::contents(&mut there, &columns)?, rows);
    let new = there.number("SELECT count(*) FROM t WHERE id > 2147483647")?;
    assert!(new > 0, "no new IDs at the subscriber");
    assert_eq!(
        online::columns(&mut there)?["public.t"],
        online::columns(&mut here)?["public.t"]
    );
    let astray = "SELECT count(*) FROM r WHERE NOT EXISTS (SELECT FROM t WHERE t.id = r.t_id)";
    there.answers(astray, 0)?;
    let errors = "SELECT apply_error_count FROM pg_stat_subscription_stats";
    there.answers(errors, 0)?;
    there.batch_execute("DROP SUBSCRIPTION of_both_tables")?;
    println!(
        "online servers: a published table migrated on both sides beside {written} transactions: the same rows, {new} new IDs at the subscriber"
    );
    Ok(())
}
