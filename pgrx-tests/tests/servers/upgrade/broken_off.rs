//! `kill -9` in the middle of an update.

use snowflake_tests::next_version::next_version;

use super::fingerprint::{assert_same, difference, fingerprint};
use super::{
    CREATE, PausedUpdate, UPDATE, VERSION, continue_workload, create_database, create_in_use,
    finish, server, start_workload,
};
use crate::support::*;

/// Of the process of the update, and of the whole server.
#[test]
fn an_update_broken_off_by_kill_9_changes_nothing() -> Result<()> {
    const KILLS: usize = 4;
    let next = next_version()?;
    let mut cluster = server(&next)?;
    drop(create_in_use(&cluster, &next)?);
    let before = fingerprint(&mut cluster.connect_to("old")?)?;
    let workload = start_workload(&cluster)?;
    for kill in 0..KILLS {
        let update = PausedUpdate::begin(&cluster)?;
        if kill % 2 == 0 {
            cluster.kill9_backend(update.pid)?;
        } else {
            cluster.kill9_all()?;
            cluster.start()?;
        }
        let mut admin = cluster.connect_to("old")?;
        admin.answers(VERSION, &next.today)?;
        let changes = difference(&before, &fingerprint(&mut admin)?);
        assert!(changes.is_empty(), "{changes:#?}");
        continue_workload(&workload)?;
    }
    cluster.connect_as("app", "old")?.run([UPDATE])?;
    // What was reported as done is complete.
    cluster.kill9_all()?;
    cluster.start()?;
    continue_workload(&workload)?;
    let mut received = workload.end()?.ids.concat();
    create_database(&cluster, "fresh", CREATE)?;
    assert_same(&cluster, ("fresh", "old"), "after kill -9")?;
    received.push(finish(&mut cluster.connect_as("app", "old")?)?);
    let tally = Tally::of(received);
    println!("upgrade: {KILLS} updates broken off by kill -9: {tally}");
    tally.assert_unique();
    Ok(())
}
