//! Partitions by time where the clock is wrong. All else has golden files (`partitions`,
//! `partition_ranges`, `partition_retention`).

use crate::support::*;

/// A clock that has jumped ahead drops no partition. A golden file has the machine's clock.
#[test]
fn a_clock_that_has_jumped_ahead_drops_nothing() -> Result<()> {
    let cluster = Cluster::node(1).faketime().start_with_extension()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(
        "CREATE EXTENSION snowflake_partitions;
         CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         SELECT snowflake_partitions.configure('events', '1 day', 'UTC', ahead => '3 days', keep => '30 days')",
    )?;
    client.batch_execute("CALL snowflake_partitions.maintain('events')")?;
    client.batch_execute("INSERT INTO events SELECT FROM generate_series(1, 1000)")?;
    let count = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass";
    let before = client.number(count)?;
    cluster
        .clock()
        .step(Offset::forward(Duration::from_secs(400 * 86_400)))?;
    let client = &mut cluster.connect()?;
    let refused = client.refused("CALL snowflake_partitions.maintain('events')", "55000")?;
    assert!(refused.detail.contains("58000"), "{refused}");
    client.expect_error("SELECT snowflake_partitions.statements('events')")?;
    client.answers("SELECT count(*) FROM events", 1_000)?;
    assert!(client.number(count)? >= before);
    // The clock is right again, and then a year is really over.
    cluster.clock().set_offset(Offset::NONE)?;
    let client = &mut cluster.connect()?;
    client.batch_execute("CALL snowflake_partitions.maintain('events')")?;
    client.answers("SELECT count(*) FROM events", 1_000)?;
    Ok(())
}
