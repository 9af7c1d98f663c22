//! Standbys: they cannot answer, and can use the primary's answer.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use snowflake_tests::query::{text, value};
use snowflake_tests::{Cluster, tier, wait};

use super::{builder, insert, resolved_id, server, wait_for_rows};
use crate::support::{column, refused};

#[test]
fn a_standby_refuses_and_reads_with_the_answer_of_its_primary() -> Result<()> {
    let primary = server(builder().can_be_copied())?;
    let mut standby = Cluster::builder().prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let mut reader = standby.connect()?;
    let error = refused(&mut reader, "SELECT snowflake_resolved_id()", "0A000")?;
    assert!(error.hint.contains("pg_last_wal_replay_lsn()"), "{error}");
    assert_eq!(
        text(
            &mut reader,
            "SELECT resolved_id::text FROM snowflake_status"
        )?,
        None
    );

    let stop = AtomicBool::new(false);
    let (seen, times) = thread::scope(|scope| -> Result<_> {
        for writer in 0..4 {
            let (primary, stop) = (&primary, &stop);
            scope.spawn(move || {
                let mut client = primary.connect().expect("a connection");
                while !stop.load(Relaxed) {
                    client
                        .batch_execute(&format!(
                            "BEGIN; INSERT INTO events (note) VALUES ('a'); SELECT pg_sleep({});
                             INSERT INTO events (note) VALUES ('b'); COMMIT",
                            0.002 * f64::from(writer)
                        ))
                        .expect("two rows");
                }
            });
        }
        let mut read = || -> Result<_> {
            let mut client = primary.connect()?;
            let (mut seen, mut last, mut times) = (BTreeSet::new(), 0_i64, 0);
            while seen.len() < tier::size(500, 3_000) {
                // The recipe of docs/reading.md.
                let row = client.query_one(
                    "SELECT snowflake_resolved_id(), pg_current_wal_lsn()::text",
                    &[],
                )?;
                let (Some(up_to), lsn) = (row.get::<_, Option<i64>>(0), row.get::<_, String>(1))
                else {
                    continue;
                };
                wait::until(
                    "the standby has replayed it",
                    Duration::from_secs(60),
                    || {
                        Ok(value(
                            &mut reader,
                            &format!("SELECT pg_last_wal_replay_lsn() >= '{lsn}'::pg_lsn"),
                        )? == "t")
                    },
                )?;
                let ids: Vec<i64> = column(
                    &mut reader,
                    &format!(
                        "SELECT id FROM events WHERE id > {last} AND id < {up_to} ORDER BY id"
                    ),
                )?;
                last = ids.last().copied().unwrap_or(last);
                seen.extend(ids);
                times += 1;
            }
            Ok((seen, times))
        };
        let result = read();
        stop.store(true, Relaxed);
        result
    })?;
    let last = *seen.last().expect("rows");
    let all: Vec<i64> = column(
        &mut primary.connect()?,
        &format!("SELECT id FROM events WHERE id <= {last} ORDER BY id"),
    )?;
    let lost = all.iter().filter(|id| !seen.contains(id)).count();
    println!(
        "{} rows read on the standby in {times} times, {lost} lost",
        seen.len()
    );
    assert_eq!((lost, all.len()), (0, seen.len()));
    Ok(())
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
    refused(&mut reader, "SELECT snowflake_resolved_id()", "0A000")?;
    standby.promote()?;
    assert_eq!(resolved_id(&mut reader)?, None);
    assert_eq!(
        value(&mut reader, "SELECT gid FROM snowflake_unresolved")?,
        "it"
    );
    reader.batch_execute("COMMIT PREPARED 'it'")?;
    insert(&mut reader, "after")?;
    wait_for_rows(&mut reader, &["first", "prepared", "after"])?;
    Ok(())
}
