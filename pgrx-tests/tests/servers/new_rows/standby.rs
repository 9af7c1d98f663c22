//! Standbys: they cannot answer, and can use the primary's answer.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::{builder, insert, resolved_id, server, wait_for_rows};
use crate::support::*;

/// The position of the recipe in docs/reading.md.
const INSERTED: &str = "pg_current_wal_insert_lsn()";

/// What a reader on a standby has read.
struct Found {
    read: usize,
    lost: usize,
    /// How often it asked the primary.
    times: u32,
}

/// Reads on the standby, beside writers on the primary, up to the answers of the primary,
/// as soon as the standby has replayed `position`.
fn read_on_standby(
    primary: &Cluster,
    reader: &mut Client,
    position: &str,
    rows: usize,
) -> Result<Found> {
    // More rows in a full run, in as many transactions.
    let batch = tier::size(1, 10);
    let stop = AtomicBool::new(false);
    let (seen, begun_at, times) = thread::scope(|scope| -> Result<_> {
        let _stop = SetOnDrop(&stop);
        for writer in 0..4 {
            let stop = &stop;
            scope.spawn(move || {
                let mut client = primary.connect().expect("a connection");
                while !stop.load(Relaxed) {
                    client
                        .batch_execute(&format!(
                            "BEGIN; INSERT INTO events (note) VALUES ('a'); SELECT pg_sleep({});
                             INSERT INTO events (note) SELECT 'b' FROM generate_series(1, {batch}); COMMIT",
                            0.002 * f64::from(writer)
                        ))
                        .expect("two rows");
                }
            });
        }
        let mut client = primary.connect()?;
        let begun_at = client.number("SELECT coalesce(max(id), 0) FROM events")?;
        let (mut seen, mut last, mut times) = (BTreeSet::new(), begun_at, 0);
        while seen.len() < rows {
            let row = client.query_one(
                &format!("SELECT snowflake_resolved_id(), {position}::text"),
                &[],
            )?;
            let (Some(up_to), lsn) = (row.get::<_, Option<i64>>(0), row.get::<_, String>(1)) else {
                continue;
            };
            wait_for_replay(reader, &lsn, Duration::from_secs(60))?;
            let ids: Vec<i64> = reader.column(&format!(
                "SELECT id FROM events WHERE id > {last} AND id < {up_to} ORDER BY id"
            ))?;
            last = ids.last().copied().unwrap_or(last);
            seen.extend(ids);
            times += 1;
        }
        Ok((seen, begun_at, times))
    })?;
    let last = *seen.last().context("rows")?;
    let all: Vec<i64> = primary.connect()?.column(&format!(
        "SELECT id FROM events WHERE id > {begun_at} AND id <= {last} ORDER BY id"
    ))?;
    Ok(Found {
        read: seen.len(),
        lost: all.iter().filter(|id| !seen.contains(id)).count(),
        times,
    })
}

fn wait_for_replay(reader: &mut Client, lsn: &str, limit: Duration) -> Result<()> {
    wait::until("the standby has replayed it", limit, || {
        Ok(reader.value(&format!(
            "SELECT pg_last_wal_replay_lsn() >= '{lsn}'::pg_lsn"
        ))? == "t")
    })
}

#[test]
fn a_standby_refuses_and_reads_with_the_answer_of_its_primary() -> Result<()> {
    document::require(
        "docs/reading.md",
        &format!("SELECT snowflake_resolved_id(), {INSERTED};"),
    )?;
    let primary = server(builder().can_be_copied())?;
    let mut standby = Cluster::builder().prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let mut reader = standby.connect()?;
    for ask in ["snowflake_resolved_id()", "snowflake_advance_resolved_id()"] {
        let error = reader.refused(&format!("SELECT {ask}"), "0A000")?;
        assert!(error.hint.contains(INSERTED), "{error}");
        assert!(error.hint.contains("pg_last_wal_replay_lsn()"), "{error}");
    }
    assert_eq!(
        reader.text("SELECT resolved_id::text FROM snowflake_status")?,
        None
    );
    let rows = tier::size(500, 100_000);
    let Found { read, lost, times } = read_on_standby(&primary, &mut reader, INSERTED, rows)?;
    println!("{read} rows read on the standby in {times} times, {lost} lost");
    assert_eq!(lost, 0);

    // The other way of the guide waits for no later record, also while the primary is idle.
    let row = primary.connect()?.query_one(
        "SELECT snowflake_resolved_id(), pg_logical_emit_message(true, 'snowflake', '')::text",
        &[],
    )?;
    wait_for_replay(&mut reader, row.get(1), Duration::from_secs(60))?;
    Ok(())
}

/// Rows are visible on the primary, and below the answer, before their commit is written.
#[test]
fn a_standby_of_asynchronous_commits_is_read_up_to_the_inserted_position() -> Result<()> {
    let primary = server(builder().can_be_copied().conf("synchronous_commit", "off"))?;
    let mut standby = Cluster::builder().prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let mut reader = standby.connect()?;
    let rows = tier::size(2_000, 100_000);
    for position in ["pg_current_wal_lsn()", INSERTED] {
        let Found { read, lost, times } = read_on_standby(&primary, &mut reader, position, rows)?;
        println!("{position}: {read} rows read on the standby in {times} times, {lost} lost");
        // Whether the lower position loses rows depends on when the log is written.
        if position == INSERTED {
            assert_eq!(lost, 0);
        }
    }
    let tried = rows_until_one_is_lost(&primary, &mut reader)?;
    println!("pg_current_wal_lsn(), the log being written every 10 s: row {tried} lost");
    Ok(())
}

/// Inserts rows until one is missing on the standby, below the answer of the primary, when
/// it has replayed what the primary has written. Fails after 10,000 rows.
fn rows_until_one_is_lost(primary: &Cluster, reader: &mut Client) -> Result<usize> {
    let mut client = primary.connect()?;
    client.batch_execute("ALTER SYSTEM SET wal_writer_delay = '10s'")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait::until("the setting", Duration::from_secs(60), || {
        Ok(primary.connect()?.value("SHOW wal_writer_delay")? == "10s")
    })?;
    for tried in 1..=10_000 {
        let id = client.number("INSERT INTO events (note) VALUES ('late') RETURNING id")?;
        let row = client.query_one(
            "SELECT snowflake_resolved_id(), pg_current_wal_lsn()::text",
            &[],
        )?;
        let up_to: Option<i64> = row.get(0);
        wait_for_replay(reader, row.get(1), Duration::from_secs(60))?;
        let found = reader.number(&format!("SELECT count(*) FROM events WHERE id = {id}"))?;
        if found == 0 && up_to > Some(id) {
            return Ok(tried);
        }
    }
    bail!("the lower position loses no row")
}

#[test]
fn a_promoted_standby_answers_once_what_was_prepared_has_ended() -> Result<()> {
    let primary = server(builder().can_be_copied())?;
    let mut client = primary.connect()?;
    insert(&mut client, "first")?;
    client.batch_execute(
        "BEGIN; INSERT INTO events (note) VALUES ('prepared'); PREPARE TRANSACTION 'it'",
    )?;
    let mut standby = Cluster::builder().prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let mut reader = standby.connect()?;
    reader.refused("SELECT snowflake_resolved_id()", "0A000")?;
    standby.promote()?;
    assert_eq!(resolved_id(&mut reader)?, None);
    reader.answers("SELECT gid FROM snowflake_unresolved", "it")?;
    reader.batch_execute("COMMIT PREPARED 'it'")?;
    insert(&mut reader, "after")?;
    wait_for_rows(&mut reader, &["first", "prepared", "after"])?;
    Ok(())
}
