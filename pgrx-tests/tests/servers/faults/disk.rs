//! No ID is repeated when the disk loses what was not flushed, with the server killed and its
//! clock set back. Torn pages, and writes that are there while earlier ones are not, included.
//!
//! The simulator loses what was not flushed too. What it cannot show is that the server
//! flushes: the mark's record with PostgreSQL's log, and the floor's file, which no catalog
//! knows.

use rand::SeedableRng;
use rand::rngs::StdRng;
use snowflake_tests::forgetful_disk::{ForgetfulDisk, Lost};
use snowflake_tests::workload::{Mode, ROWS, Workload};

use super::mark::{dense, set_clock};
use crate::support::*;

const DATABASES: [&str; 2] = ["first", "second"];

/// Without a commit, nothing but the mark has the log flushed.
const MODES: [Mode; 4] = [
    Mode::Calls(100),
    Mode::Runs(100),
    Mode::Calls(100),
    Mode::Calls(100),
];
const WITH_ROWS: [Mode; 4] = [
    Mode::Calls(100),
    Mode::Commit(20),
    Mode::Calls(100),
    Mode::RollBack(20),
];

/// How many IDs come before each kill, and after the last one.
const ENOUGH: usize = 10_000;

fn builder() -> ClusterBuilder {
    let builder = Cluster::node(1)
        .conf("fsync", "on")
        .conf("full_page_writes", "on")
        // Pages of tables are written all the time.
        .conf("shared_buffers", "1MB")
        // Nor does a background process.
        .conf("wal_writer_delay", "10s")
        .conf("wal_writer_flush_after", "1GB")
        .conf("checkpoint_timeout", "30s")
        .movable_clock();
    dense(builder, &SLOW_SLOTS)
}

/// Kills the server that often, at a random moment, and has its clock show the times of its
/// first IDs again.
fn lose(builder: ClusterBuilder, kills: usize, modes: &[Mode]) -> Result<Tally> {
    let mut cluster = builder.start()?;
    let disk = ForgetfulDisk::of(&mut cluster)?;
    for database in DATABASES {
        let mut client = cluster.connect_to_new_database(database)?;
        client.batch_execute(ROWS)?;
    }
    cluster.restart()?;
    let mut random = StdRng::seed_from_u64(1);
    let workload = Workload::start_with_clock(&cluster, &DATABASES, modes, &SLOW_SLOTS)?;
    let began = cluster.true_us();
    let mut lost = Lost::default();
    for _ in 0..kills {
        workload.begin_window();
        workload.wait_for(ENOUGH)?;
        cluster.kill9_all()?;
        lost += disk.lose(&cluster, &mut random)?;
        set_clock(&cluster, began)?;
        cluster.start()?;
        for database in DATABASES {
            // Every page can be read.
            cluster
                .connect_to(database)?
                .number("SELECT count(*) FROM rows")?;
        }
        workload.until(|workload| workload.window().connections >= modes.len())?;
    }
    workload.begin_window();
    workload.wait_for(ENOUGH)?;
    let received = workload.end()?;
    received.assert_in_order();
    println!("disk: {} kills: {lost}", grouped(kills));
    Ok(received.tally())
}

#[test]
fn no_id_repeats_after_a_disk_has_lost_what_was_not_flushed() -> Result<()> {
    let kills = tier::size(3, 20);
    for (name, modes) in [("IDs", MODES), ("IDs and rows", WITH_ROWS)] {
        let tally = lose(builder(), kills, &modes)?;
        println!("disk: {name}: {tally}");
        tally.assert_unique();
    }
    Ok(())
}

#[test]
fn a_disk_that_loses_is_able_to_fail() -> Result<()> {
    let tally = lose(builder().without_protection("flush"), 3, &MODES)?;
    println!("disk: WITHOUT flushing the mark: {tally}");
    tally.assert_found_duplicates();
    Ok(())
}

/// What was flushed is there: otherwise this disk would show nothing.
#[test]
fn a_disk_keeps_what_was_flushed() -> Result<()> {
    let mut cluster = builder().conf("autovacuum", "off").start_with_extension()?;
    let disk = ForgetfulDisk::of(&mut cluster)?;
    cluster.restart()?;
    let mut random = StdRng::seed_from_u64(2);
    let mut rows = 0;
    for round in 0..6 {
        let mut client = cluster.connect()?;
        if round == 0 {
            client.batch_execute("CREATE TABLE kept (id bigint DEFAULT snowflake_nextval())")?;
        }
        if round % 2 == 1 {
            client.batch_execute("CHECKPOINT")?;
        }
        client.batch_execute("INSERT INTO kept SELECT FROM generate_series(1, 5000)")?;
        rows += 5_000;
        client.batch_execute("BEGIN; INSERT INTO kept SELECT FROM generate_series(1, 20000)")?;
        cluster.kill9_all()?;
        let lost = disk.lose(&cluster, &mut random)?;
        println!("disk: {rows} rows are committed; {lost}");
        cluster.start()?;
        let mut client = cluster.connect()?;
        client.answers("SELECT count(*) FROM kept", rows)?;
    }
    Ok(())
}
