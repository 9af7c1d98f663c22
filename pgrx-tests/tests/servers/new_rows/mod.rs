//! Reading new rows by key: `snowflake_resolved_id()`.

mod answers;
mod failover;
mod heartbeat;
mod holders;
mod load;
mod restarts;
mod rights;
mod standby;

use crate::support::*;

/// A table whose rows are read by key.
const TABLE: &str =
    "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)";

/// What the reader's query of docs/reading.md has, and no other block there.
const PRINTED_QUERY: &str =
    "SELECT * FROM orders\nWHERE id > 249431905924104192 AND id < snowflake_resolved_id()";
/// The position in it.
const PRINTED_ID: &str = "249431905924104192";

fn builder() -> ClusterBuilder {
    Cluster::node(1).conf("max_prepared_transactions", 8)
}

/// A server with [`TABLE`].
fn server(builder: ClusterBuilder) -> Result<Cluster> {
    let server = builder.start_with_extension()?;
    server.run(TABLE)?;
    Ok(server)
}

/// What `snowflake_resolved_id()` returns.
fn resolved_id(client: &mut Client) -> Result<Option<i64>> {
    Ok(client
        .query_one("SELECT snowflake_resolved_id()", &[])?
        .get(0))
}

/// The ID of a new row.
fn insert(client: &mut Client, note: &str) -> Result<i64> {
    let row = client.query_one(
        "INSERT INTO events (note) VALUES ($1) RETURNING id",
        &[&note],
    )?;
    Ok(row.get(0))
}

/// The notes of the rows that the recipe returns after `last`.
fn new_rows(client: &mut Client, last: i64) -> Result<Vec<String>> {
    let rows = client.query(
        "SELECT note FROM events WHERE id > $1 AND id < snowflake_resolved_id() ORDER BY id",
        &[&last],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Waits until the recipe returns these notes.
fn wait_for_rows(client: &mut Client, notes: &[&str]) -> Result<()> {
    snowflake_tests::wait::until(
        format!("{notes:?} can be read"),
        std::time::Duration::from_secs(60),
        || Ok(new_rows(client, 0)? == notes),
    )
}

/// Waits until an ID of this moment would be read, if nothing holds it back.
fn wait_for_next_tick(client: &mut Client) -> Result<()> {
    client.batch_execute("SELECT pg_sleep(0.02)")?;
    Ok(())
}
