//! An upgrade of a primary and its standby, the standby's library first, and a
//! promotion before or after `ALTER EXTENSION ... UPDATE`; and an update that is
//! killed.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::{self, Tally, grouped};
use snowflake_tests::query::{number, value};
use snowflake_tests::{Cluster, Installation, Stop};

use super::fingerprint::assert_same;
use super::{EARLIER, IS_UPDATED, UPDATE, create_earlier, create_extension};
use crate::faults::failover::{BEHIND, Protection, promote, table, while_written_to};
use crate::support::{refused, wait_until};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Promotion {
    BeforeTheUpdate,
    AfterTheUpdate,
}

/// The primary and the standby start with the former library (if there is one to
/// test with) and 0.1.0's objects. The standby's clock is 30 s behind, and each
/// session drives its IDs ahead of the primary's by ten seconds.
fn upgrade_and_promote(promotion: Promotion, protection: Protection) -> Result<()> {
    let is_safe = protection == Protection::On;
    let former = if is_safe {
        Installation::former()?
    } else {
        Installation::unprotected()?
    };
    let new = if is_safe {
        Installation::under_test()?
    } else {
        Installation::unprotected()?
    };
    let mut primary = protection.source()?.installation(former.clone()).start()?;
    let mut client = primary.connect()?;
    create_extension(&mut client)?;
    protection.create_table(&mut client)?;
    ids::fetch(
        &mut client,
        "INSERT INTO rows (note) SELECT 'row' FROM generate_series(1, 2000) RETURNING id",
    )?;
    let library = value(&mut client, "SELECT version FROM snowflake_status")?;
    drop(client);

    // The former library knows no unprotected mode; its settings come later.
    let mut standby = if is_safe {
        let builder = Cluster::builder().movable_clock().installation(former);
        builder.prepare_standby_of(&primary)?
    } else {
        protection.taker()?.prepare_standby_of(&primary)?
    };
    standby.clock().set_offset(Offset::back(BEHIND))?;
    standby.start()?;
    standby.catch_up_with(&primary)?;

    // The standby first, while the primary is written to.
    let ((), first) = while_written_to(&primary, || {
        standby.stop(Stop::Fast)?;
        standby.set_installation(new.clone());
        standby.start()
    })?;
    standby.catch_up_with(&primary)?;
    let mut reader = standby.connect()?;
    assert_eq!(value(&mut reader, IS_UPDATED)?, "f");
    let replaced = value(&mut reader, "SELECT version FROM snowflake_status")?;
    let decoded = "SELECT count(*) FROM rows, snowflake_decode(id) AS d WHERE d.node_id = 1";
    let read = number(&mut reader, decoded)?;
    ensure!(read > 10_000, "{read}");
    refused(&mut reader, "SELECT snowflake_nextval()", "25006")?;
    drop(reader);

    primary.stop(Stop::Fast)?;
    primary.set_installation(new);
    primary.start()?;
    let mut second = Vec::new();
    if promotion == Promotion::AfterTheUpdate {
        let begun = Instant::now();
        let (took, written) = while_written_to(&primary, || {
            let begun = Instant::now();
            primary.connect()?.batch_execute(UPDATE)?;
            Ok(begun.elapsed())
        })?;
        second = written;
        standby.catch_up_with(&primary)?;
        let mut reader = standby.connect()?;
        assert_eq!(value(&mut reader, IS_UPDATED)?, "t");
        ensure!(number(&mut reader, decoded)? > read);
        refused(&mut reader, "SELECT snowflake_nextval()", "25006")?;
        println!(
            "upgrade: updated in {:.0} ms beside 8 writing sessions, replayed ({:.0} ms in all)",
            took.as_secs_f64() * 1e3,
            begun.elapsed().as_secs_f64() * 1e3
        );
    }
    let before: Vec<i64> = [first, second].concat();
    let what = match promotion {
        Promotion::BeforeTheUpdate => {
            "promotion of an upgraded standby, objects of the earlier version"
        }
        Promotion::AfterTheUpdate => "promotion of an upgraded standby, after the update",
    };
    println!(
        "upgrade: library {library}, then {replaced}: {} IDs written until the promotion",
        grouped(before.len())
    );
    let mut all = promote(what, &primary, &standby, protection)?;
    if !is_safe {
        return Ok(());
    }
    let mut promoted = standby.connect()?;
    if promotion == Promotion::BeforeTheUpdate {
        promoted.batch_execute(UPDATE)?;
    }
    assert_eq!(value(&mut promoted, IS_UPDATED)?, "t");
    all.extend(ids::nextval(&mut promoted, 10_000)?);
    let tally = Tally::of(all);
    println!("upgrade, {what}: {tally}");
    tally.assert_unique();
    // A row of the table is in the list once, so this is what was lost, if any.
    let rows = table(&standby, "postgres")?;
    ensure!(
        rows.len() > before.len(),
        "rows are missing: {} of {}",
        rows.len(),
        before.len()
    );
    standby.connect()?.batch_execute("CREATE DATABASE fresh")?;
    standby
        .connect_to("fresh")?
        .batch_execute("CREATE EXTENSION snowflake")?;
    assert_same(&standby, ("fresh", "postgres"), "on a promoted standby")?;
    Ok(())
}

#[test]
fn no_id_repeats_on_a_standby_promoted_before_the_update() -> Result<()> {
    upgrade_and_promote(Promotion::BeforeTheUpdate, Protection::On)
}

#[test]
fn no_id_repeats_on_a_standby_promoted_after_the_update() -> Result<()> {
    upgrade_and_promote(Promotion::AfterTheUpdate, Protection::On)
}

#[test]
fn promotions_after_an_update_are_able_to_fail() -> Result<()> {
    upgrade_and_promote(Promotion::AfterTheUpdate, Protection::MarkTakenAway)
}

/// `kill -9` of the server during the update and right after it, in one database
/// after another, beside sessions that write to the others.
#[test]
fn an_update_that_is_killed_is_done_or_not_begun() -> Result<()> {
    const DATABASES: usize = 6;
    let mut cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let names: Vec<String> = (0..DATABASES).map(|n| format!("old{n}")).collect();
    for name in &names {
        create_earlier(&cluster, name)?.batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)",
        )?;
    }
    let mut received = Vec::new();
    let (mut undone, mut done) = (0, 0);
    let mut usual = Duration::ZERO;
    for (turn, name) in names.iter().enumerate() {
        for other in &names {
            let mut client = cluster.connect_to(other)?;
            received.extend(ids::nextval(&mut client, 2_000)?);
            received.extend(ids::fetch(
                &mut client,
                "INSERT INTO t (n) SELECT 1 FROM generate_series(1, 500) RETURNING id",
            )?);
        }
        let mut updater = cluster.connect_to(name)?;
        let begun = Instant::now();
        if turn == 0 {
            // Right after it. It measures how long the others take, too.
            updater.batch_execute(UPDATE)?;
            usual = begun.elapsed();
            cluster.kill9_all()?;
        } else {
            // At every other turn it waits in the middle, for a view that is read.
            let mut reader = cluster.connect_to(name)?;
            let is_held = turn % 2 == 1;
            if is_held {
                reader.batch_execute("BEGIN; SELECT * FROM snowflake_serial_columns")?;
            }
            let update = thread::spawn(move || updater.batch_execute(UPDATE).is_ok());
            if is_held {
                let waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE query = 'ALTER EXTENSION snowflake UPDATE' AND wait_event_type = 'Lock'";
                wait_until(&mut cluster.connect()?, waits)?;
            } else {
                thread::sleep(usual * u32::try_from(turn - 1)? / u32::try_from(DATABASES)?);
            }
            cluster.kill9_all()?;
            let reported = update.join().expect("the updating thread");
            if reported {
                done += 1;
            }
        }
        cluster.start()?;
        let mut client = cluster.connect_to(name)?;
        if value(&mut client, IS_UPDATED)? == "f" {
            undone += 1;
            // All of the earlier version is there, and works.
            received.extend(ids::nextval(&mut client, 2_000)?);
            let left = number(
                &mut client,
                "SELECT count(*) FROM pg_namespace WHERE nspname = 'snowflake_internal'",
            )?;
            assert_eq!(left, 0);
            client.batch_execute(UPDATE)?;
        }
        received.extend(ids::nextval(&mut client, 2_000)?);
    }
    cluster.connect_to_new_database("fresh")?;
    for name in &names {
        received.extend(ids::nextval(&mut cluster.connect_to(name)?, 2_000)?);
        assert_same(&cluster, ("fresh", name), "killed")?;
    }
    let tally = Tally::of(received);
    println!(
        "upgrade: {DATABASES} updates from {EARLIER}, each killed by kill -9 ({undone} undone, {done} reported done in time): {tally}"
    );
    ensure!(
        undone >= DATABASES / 2,
        "{undone} updates were killed in the middle"
    );
    tally.assert_unique();
    Ok(())
}
