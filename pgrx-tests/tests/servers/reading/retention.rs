//! Deleting by time: the printed recipes keep the rows that are older than a
//! migration, whose numbers have no time, also on a subscriber and in partitions.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::document;
use snowflake_tests::migration::psql;
use snowflake_tests::online;
use snowflake_tests::query::{number, value};

use crate::support::{publisher_and_subscriber, refused, subscribe, wait_until};

const OLD_ROWS: i64 = 100_000;
const AGED_ROWS: i64 = 1_000;

/// The recipe, as README.md prints it.
const RECIPE: &str = "DELETE FROM orders WHERE id >= snowflake_first_id('orders') AND id < snowflake_min_id(now() - interval '90 days')";
/// The one that it printed before.
const WITHOUT_BOUNDARY: &str =
    "DELETE FROM orders WHERE id < snowflake_min_id(now() - interval '90 days')";

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

#[test]
fn the_recipe_keeps_the_rows_that_are_older_than_a_migration() -> Result<()> {
    document::require("README.md", RECIPE)?;
    document::require("docs/reading.md", RECIPE)?;
    for is_online in [false, true] {
        let cluster = Cluster::with_migrate()?;
        let mut client = cluster.connect()?;
        let client = &mut client;
        client.batch_execute(&format!(
            "CREATE TABLE orders (id serial PRIMARY KEY, note text);
             INSERT INTO orders (note) SELECT 'old' FROM generate_series(1, {OLD_ROWS})"
        ))?;
        assert_eq!(number(client, "SELECT snowflake_first_id('orders')")?, 0);
        if is_online {
            online::migrate(client, "'orders'")?;
        } else {
            let said = psql(
                &cluster,
                "postgres",
                "postgres",
                "CALL snowflake_migrate.run('orders')",
                true,
            )?;
            ensure!(
                said.success
                    && said.errors.contains(
                        "statements that delete rows by time must also require id >= snowflake_first_id('public.orders', 'id')"
                    ),
                "{said:?}"
            );
        }
        insert_aged(client)?;
        assert_eq!(client.execute(RECIPE, &[])? as i64, AGED_ROWS);
        assert_eq!(rows(client)?, (OLD_ROWS, 0, AGED_ROWS));
        assert_eq!(client.execute(RECIPE, &[])?, 0);
        let lost = client.execute(WITHOUT_BOUNDARY, &[])? as i64;
        assert_eq!(lost, OLD_ROWS);
        assert_eq!(rows(client)?, (0, 0, AGED_ROWS));
        println!(
            "retention: online: {is_online}: {AGED_ROWS} aged rows deleted, 0 of {OLD_ROWS} old rows; without the boundary {lost} old rows"
        );
        // After reverting, new rows have numbers without a time again.
        let first = number(client, "SELECT snowflake_first_id('orders')")?;
        client.batch_execute("CALL snowflake_migrate.revert('orders')")?;
        assert_eq!(
            number(client, "SELECT snowflake_first_id('orders')")?,
            first
        );
    }
    Ok(())
}

#[test]
fn a_subscriber_keeps_old_rows_once_the_boundary_is_recorded() -> Result<()> {
    let (publisher, subscriber) = publisher_and_subscriber()?;
    let (mut here, mut there) = (publisher.connect()?, subscriber.connect()?);
    here.batch_execute(&format!(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, note text);
         INSERT INTO orders (note) SELECT 'old' FROM generate_series(1, {OLD_ROWS});
         CREATE PUBLICATION of_orders FOR TABLE orders WITH (publish = 'insert')"
    ))?;
    here.batch_execute("CALL snowflake_migrate.run('orders')")?;
    insert_aged(&mut here)?;
    there.batch_execute(
        "CREATE ROLE reader LOGIN;
         CREATE TABLE orders (id bigint PRIMARY KEY, note text)",
    )?;
    subscribe(&mut there, &publisher, "of_orders")?;
    let all = OLD_ROWS + 2 * AGED_ROWS;
    wait_until(&mut there, &format!("SELECT count(*) = {all} FROM orders"))?;

    assert_eq!(
        number(&mut there, "SELECT snowflake_first_id('orders')")?,
        0
    );
    let first = number(&mut here, "SELECT snowflake_first_id('orders')")?;
    let record = |first: i64| format!("SELECT snowflake_record_first_id('orders', 'id', {first})");
    refused(&mut there, &record(-1), "22023")?;
    refused(
        &mut there,
        "SELECT snowflake_record_first_id('orders', 'id', NULL)",
        "22023",
    )?;
    refused(
        &mut there,
        "SELECT snowflake_record_first_id('orders', 'nothing', 1)",
        "42703",
    )?;
    refused(
        &mut subscriber.connect_as("reader", "postgres")?,
        &record(first),
        "42501",
    )?;
    there.batch_execute("BEGIN")?;
    let lost = there.execute(RECIPE, &[])? as i64;
    there.batch_execute("ROLLBACK")?;
    assert_eq!(lost, OLD_ROWS + AGED_ROWS, "before it is recorded");
    for _ in 0..2 {
        there.batch_execute(&record(first))?;
    }
    refused(&mut there, &record(first - 1), "22023")?;
    assert_eq!(
        number(&mut there, "SELECT snowflake_first_id('orders')")?,
        first
    );
    assert_eq!(there.execute(RECIPE, &[])? as i64, AGED_ROWS);
    assert_eq!(rows(&mut there)?, (OLD_ROWS, 0, AGED_ROWS));
    println!(
        "retention: subscriber: {lost} rows deleted before, {AGED_ROWS} after the boundary was recorded"
    );

    // It is no migration that could be reverted, and a migration keeps it.
    refused(
        &mut there,
        "CALL snowflake_migrate.revert('orders')",
        "55000",
    )?;
    there.batch_execute("CALL snowflake_migrate.run('orders', 'id')")?;
    assert_eq!(
        number(&mut there, "SELECT snowflake_first_id('orders')")?,
        first
    );
    refused(&mut there, &record(first + 1), "55000")?;
    refused(&mut here, &record(first + 1), "55000")?;
    there.batch_execute("DROP SUBSCRIPTION of_of_orders")?;
    Ok(())
}

#[test]
fn partitions_with_old_rows_are_not_dropped_by_time() -> Result<()> {
    // As docs/reading.md prints it.
    const EXPIRED: &str = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname)
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'events'::regclass
          AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \\(''(\\d+)''\\)')::bigint
              <= snowflake_min_id(now() - interval '90 days')";
    const BOUNDARY: &str = "
          AND substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\(''(\\d+)''\\)')::bigint
              >= snowflake_first_id('events')";
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(&format!(
        "CREATE ROLE reader LOGIN;
         CREATE TABLE events (id bigserial PRIMARY KEY, note text) PARTITION BY RANGE (id);
         CREATE TABLE events_first PARTITION OF events FOR VALUES FROM (0) TO (50001);
         CREATE TABLE events_second PARTITION OF events FOR VALUES FROM (50001) TO (1000000);
         INSERT INTO events (note) SELECT 'old' FROM generate_series(1, {OLD_ROWS});
         CALL snowflake_migrate.run('events');
         GRANT SELECT ON events_first TO reader"
    ))?;
    client.batch_execute(
        "DO $do$ BEGIN
             EXECUTE format('CREATE TABLE events_aged PARTITION OF events FOR VALUES FROM (%s) TO (%s)',
                            snowflake_min_id(now() - interval '100 days'), snowflake_min_id(now() - interval '99 days'));
             EXECUTE format('CREATE TABLE events_new PARTITION OF events FOR VALUES FROM (%s) TO (%s)',
                            snowflake_min_id(now() - interval '1 day'), snowflake_min_id(now() + interval '1 day'));
         END $do$;
         INSERT INTO events (note) VALUES ('new')",
    )?;
    assert_eq!(
        value(client, EXPIRED)?,
        "events_aged events_first events_second"
    );
    assert_eq!(
        value(client, &format!("{EXPIRED}{BOUNDARY}"))?,
        "events_aged"
    );
    // A partition has its parent's boundary, also for a role that may not read the parent.
    let first = number(client, "SELECT snowflake_first_id('events')")?;
    ensure!(first > OLD_ROWS, "{first}");
    let mut reader = cluster.connect_as("reader", "postgres")?;
    let of_partition = "SELECT snowflake_first_id('events_first')";
    assert_eq!(number(&mut reader, of_partition)?, first);
    refused(&mut reader, "SELECT snowflake_first_id('events')", "42501")?;
    assert_eq!(
        number(client, "SELECT count(*) FROM snowflake_audit_tables()")?,
        0
    );
    println!(
        "retention: partitions: {OLD_ROWS} old rows kept, which the statement without the boundary drops"
    );
    Ok(())
}

#[test]
fn roles_that_may_read_the_column_learn_its_first_id() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE reader LOGIN; CREATE ROLE of_column LOGIN; CREATE ROLE of_other LOGIN; CREATE ROLE owner LOGIN;
         CREATE TABLE t (id bigserial PRIMARY KEY, note text); CREATE TABLE child () INHERITS (t);
         CREATE TABLE apart (id bigint PRIMARY KEY); CREATE VIEW seen AS TABLE t;
         ALTER TABLE t OWNER TO owner; ALTER TABLE child OWNER TO owner; GRANT ALL ON SCHEMA public TO owner;
         INSERT INTO t (note) VALUES ('old'); INSERT INTO child (note) VALUES ('old');
         CALL snowflake_migrate.run('t');
         GRANT SELECT ON t TO reader; GRANT SELECT (id) ON t, child TO of_column; GRANT SELECT (note) ON t TO of_other",
    )?;
    let first = number(client, "SELECT snowflake_first_id('t')")?;
    ensure!(first > 1 << 40, "{first}");
    for role in ["owner", "reader", "of_column"] {
        let mut its = cluster.connect_as(role, "postgres")?;
        for arguments in ["'t'", "'t', 'id'"] {
            let query = format!("SELECT snowflake_first_id({arguments})");
            assert_eq!(number(&mut its, &query)?, first, "{role}");
        }
    }
    for role in ["owner", "of_column"] {
        let mut its = cluster.connect_as(role, "postgres")?;
        assert_eq!(
            number(&mut its, "SELECT snowflake_first_id('child', 'id')")?,
            first
        );
    }
    let mut other = cluster.connect_as("of_other", "postgres")?;
    let denied = refused(&mut other, "SELECT snowflake_first_id('t')", "42501")?;
    assert_eq!(denied.message, "permission denied for table t");
    assert_eq!(
        number(&mut other, "SELECT snowflake_first_id('t', 'note')")?,
        0
    );
    assert_eq!(number(client, "SELECT snowflake_first_id('apart')")?, 0);
    for (arguments, sqlstate) in [
        ("'t', 'nothing'", "42703"),
        ("'t', 'ctid'", "42703"),
        ("'seen'", "42809"),
        ("0", "42P01"),
        ("NULL", "42P01"),
    ] {
        let query = format!("SELECT snowflake_first_id({arguments})");
        refused(client, &query, sqlstate)?;
    }
    Ok(())
}
