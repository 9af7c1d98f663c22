//! An update of a primary, and a promotion of its standby.

use snowflake_tests::next_version::next_version;

use super::fingerprint::assert_same;
use super::{CREATE, PausedUpdate, VERSION, create_database, create_version, start};
use crate::faults::mark::{dense, set_clock};
use crate::support::*;

/// Rows in eight sessions. Returns their IDs.
fn insert(cluster: &Cluster) -> Result<Vec<i64>> {
    let rows = "INSERT INTO rows (n) SELECT 1 FROM generate_series(1, 1000) RETURNING id";
    in_sessions(cluster, "old", 8, |client| ids::fetch(client, rows))
}

/// The IDs fill every second from the first on. The promoted server's clock is set to the
/// time of that first ID. Returns all IDs.
fn update_and_promote(is_protected: bool) -> Result<Tally> {
    let next = next_version()?;
    let builder = Cluster::builder()
        .conf("snowflake.lease", "20s")
        .can_be_copied()
        .movable_clock();
    let primary = start(dense(builder, &SLOW_SLOTS), &next)?;
    let create = create_version("", &next.today);
    let mut app = create_database(&primary, "old", &create)?;
    let table = "CREATE TABLE rows (id bigint DEFAULT snowflake_nextval(), n int)";
    app.run([table])?;
    let mut standby = Cluster::builder()
        .installation(next.installation.clone())
        .movable_clock();
    if !is_protected {
        standby = standby.without_protection("mark");
    }
    let mut standby = standby.prepare_standby_of(&primary)?;
    standby.start()?;

    let mut received = insert(&primary)?;
    standby.catch_up_with(&primary)?;
    let mut reader = standby.connect_to("old")?;
    reader.answers(VERSION, &next.today)?;
    let update = PausedUpdate::begin(&primary)?;
    received.extend(insert(&primary)?);
    update.finish()?;
    received.extend(insert(&primary)?);
    standby.catch_up_with(&primary)?;
    reader.answers(VERSION, &next.next)?;
    reader.refused("SELECT snowflake_nextval()", "25006")?;

    standby.promote()?;
    let first = *received.iter().min().context("no IDs")?;
    set_clock(&standby, SLOW_SLOTS.time_us(first))?;
    received.extend(insert(&standby)?);
    create_database(&standby, "fresh", CREATE)?;
    assert_same(&standby, ("fresh", "old"), "on a promoted standby")?;
    let tally = Tally::of(received);
    println!("upgrade: update and promotion, protected: {is_protected}: {tally}");
    Ok(tally)
}

#[test]
fn a_standby_promoted_after_an_update_repeats_nothing() -> Result<()> {
    update_and_promote(true)?.assert_unique();
    Ok(())
}

#[test]
fn promotions_after_an_update_are_able_to_fail() -> Result<()> {
    update_and_promote(false)?.assert_found_duplicates();
    Ok(())
}
