//! Deleting by time deletes no rows whose numbers have no time, on a subscriber and beside an
//! older snapshot. Tables of all kinds are in the golden file `boundary`.

use crate::support::*;

const OLD_ROWS: i64 = 100_000;
const AGED_ROWS: i64 = 1_000;

/// The recipe, as README.md and docs/reading.md print it.
const RECIPE: &str = "DELETE FROM orders WHERE id >= snowflake_id_boundary('orders') AND id < snowflake_min_id(now() - interval '90 days')";

/// Rows of 91 days ago and later, which no migration has touched.
fn insert_aged(client: &mut Client) -> Result<()> {
    client.batch_execute(&format!(
        "INSERT INTO orders (id, note)
         SELECT snowflake_compose(now() - interval '91 days' + n * interval '1 ms', 1, 0, 0), 'aged'
         FROM generate_series(1, {AGED_ROWS}) AS n;
         INSERT INTO orders (note) SELECT 'new' FROM generate_series(1, {AGED_ROWS})"
    ))?;
    Ok(())
}

/// How many old, aged and new rows there are.
fn rows(client: &mut Client) -> Result<(i64, i64, i64)> {
    let row = client.query_one(
        "SELECT count(*) FILTER (WHERE note = 'old'), count(*) FILTER (WHERE note = 'aged'),
                count(*) FILTER (WHERE note = 'new') FROM orders",
        &[],
    )?;
    Ok((row.get(0), row.get(1), row.get(2)))
}

/// Old rows are in the table, and aged ones, which the recipe must delete where it answers.
fn insert_old(client: &mut Client, rows: i64) -> Result<()> {
    client.batch_execute(&format!(
        "INSERT INTO orders (id, note) SELECT n, 'old' FROM generate_series(1, {rows}) AS n"
    ))?;
    Ok(())
}

/// After a mass DELETE at the low end, the look takes as long as before, or is refused.
#[test]
fn deleted_rows_at_the_ends_of_the_index_are_not_read_for_long() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), note text) WITH (autovacuum_enabled = off);
         CREATE INDEX ON orders (id DESC NULLS FIRST)"
    )?;
    insert_old(client, OLD_ROWS)?;
    client.batch_execute("INSERT INTO orders VALUES (NULL, 'none')")?;
    insert_aged(client)?;
    // The open transaction keeps the index from learning that the rows are dead.
    let mut reader = cluster.connect()?;
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")?;
    client.batch_execute("DELETE FROM orders WHERE note = 'old'")?;
    let refusal = client.refused(RECIPE, "55000")?;
    assert_eq!(
        refusal.detail,
        "No boundary is set. At an end of the index on column \"id\" are too many deleted rows."
    );
    assert_eq!(refusal.hint, "Try again after a VACUUM of the table.");
    // A snapshot that still has them finds one.
    let refusal = reader.refused(RECIPE, "55000")?;
    ensure!(refusal.detail.contains("has numbers below"), "{refusal}");
    reader.batch_execute("ROLLBACK")?;
    client.batch_execute("VACUUM orders")?;
    assert_eq!(client.execute(RECIPE, &[])? as i64, AGED_ROWS);
    Ok(())
}

#[test]
fn a_subscriber_keeps_old_rows() -> Result<()> {
    document::require("README.md", RECIPE)?;
    document::require("docs/reading.md", RECIPE)?;
    let (publisher, subscriber) = publisher_and_subscriber()?;
    let (mut here, mut there) = (publisher.connect()?, subscriber.connect()?);
    here.batch_execute(&format!(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, note text);
         INSERT INTO orders (note) SELECT 'old' FROM generate_series(1, {OLD_ROWS});
         CREATE PUBLICATION of_orders FOR TABLE orders WITH (publish = 'insert')"
    ))?;
    here.batch_execute("CALL snowflake_migrate.run('orders')")?;
    insert_aged(&mut here)?;
    there.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY, note text)")?;
    subscribe(&mut there, &publisher, "of_orders")?;
    let all = OLD_ROWS + 2 * AGED_ROWS;
    there.wait_until(&format!("SELECT count(*) = {all} FROM orders"))?;

    // The column has no default that generates IDs, so it is not known which one it is.
    there.refused(RECIPE, "55000")?;
    let first = here.number("SELECT snowflake_id_boundary('orders')")?;
    there.batch_execute(&format!(
        "SELECT snowflake_set_id_boundary('orders', 'id', {first})"
    ))?;
    there.answers("SELECT snowflake_id_boundary('orders')", first)?;
    assert_eq!(there.execute(RECIPE, &[])? as i64, AGED_ROWS);
    assert_eq!(rows(&mut there)?, (OLD_ROWS, 0, AGED_ROWS));
    println!(
        "retention: subscriber: refused before the boundary was set, then {AGED_ROWS} aged rows deleted, 0 of {OLD_ROWS} old rows lost"
    );

    // It is no migration that could be reverted, and a migration keeps it.
    there.refused("CALL snowflake_migrate.revert('orders')", "55000")?;
    there.batch_execute("CALL snowflake_migrate.run('orders', 'id')")?;
    there.answers("SELECT snowflake_id_boundary('orders')", first)?;
    there.batch_execute("DROP SUBSCRIPTION of_of_orders")?;
    Ok(())
}
