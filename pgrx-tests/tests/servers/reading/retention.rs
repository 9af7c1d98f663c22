//! Deleting by time: the printed recipes delete no rows whose numbers have no time, such as
//! those from before a migration, wherever the table went.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::document;
use snowflake_tests::migration::psql;
use snowflake_tests::online;
use snowflake_tests::query::{number, value};

use crate::support::{publisher_and_subscriber, refused, subscribe, wait_until};

const OLD_ROWS: i64 = 100_000;
/// Without an index, the function is called for each row.
const FEW_ROWS: i64 = 1_000;
const AGED_ROWS: i64 = 1_000;

/// The recipe, as README.md prints it.
const RECIPE: &str = "DELETE FROM orders WHERE id >= snowflake_id_boundary('orders') AND id < snowflake_min_id(now() - interval '90 days')";
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
        refused(client, RECIPE, "55000")?;
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
                        "statements that delete rows by time must also require id >= snowflake_id_boundary('public.orders', 'id')"
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
    }
    Ok(())
}

/// Old rows are in the table, and aged ones, which the recipe must delete where it answers.
fn insert_old(client: &mut Client, rows: i64) -> Result<()> {
    client.batch_execute(&format!(
        "INSERT INTO orders (id, note) SELECT n, 'old' FROM generate_series(1, {rows}) AS n"
    ))?;
    Ok(())
}

/// What the recipe deletes. If it is refused, the boundary is set as the hint says.
fn retain(what: &str, client: &mut Client, is_refused: bool) -> Result<()> {
    let before = rows(client)?;
    if is_refused {
        let refusal = refused(client, RECIPE, "55000")?;
        assert_eq!(rows(client)?, before);
        ensure!(
            refusal.message
                == "it is not known which rows of table \"orders\" are older than its snowflake IDs",
            "{what}: {refusal}"
        );
        let (_, remedy) = refusal.hint.split_once(" run ").context("no remedy")?;
        let (remedy, _) = remedy.split_once(". ").context("no end")?;
        client.batch_execute(remedy)?;
    }
    let deleted = client.execute(RECIPE, &[])? as i64;
    assert_eq!(deleted, before.1, "{what}");
    assert_eq!(rows(client)?, (before.0, 0, before.2), "{what}");
    println!(
        "retention: {what}: refused first: {is_refused}; {deleted} aged rows deleted, 0 of {} old rows lost",
        before.0
    );
    Ok(())
}

/// Where the record of a migration by the table's OID would be lost, and where there is none.
#[test]
fn the_recipe_loses_no_old_row_wherever_the_table_went() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut admin = cluster.connect()?;
    for database in ["migrated", "restored", "other"] {
        admin.batch_execute(&format!("CREATE DATABASE {database}"))?;
    }
    let mut client = cluster.connect_to("other")?;
    let client = &mut client;
    client.batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    let mut of_kind = |what, table: &str, is_refused| {
        client.batch_execute(table)?;
        insert_old(client, FEW_ROWS)?;
        insert_aged(client)?;
        retain(what, client, is_refused)?;
        client.batch_execute("DROP TABLE orders CASCADE")?;
        anyhow::Ok(())
    };
    let keyed =
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)";
    of_kind("a default set by hand", keyed, true)?;
    of_kind(
        "rows copied into partitions",
        &format!("{keyed} PARTITION BY RANGE (id); CREATE TABLE first PARTITION OF orders FOR VALUES FROM (0) TO (501);
                  CREATE TABLE other PARTITION OF orders DEFAULT"),
        true,
    )?;
    of_kind(
        "a child table",
        "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), note text); CREATE INDEX ON orders (id);
         CREATE TABLE child (PRIMARY KEY (id)) INHERITS (orders)",
        true,
    )?;
    of_kind(
        "no index",
        "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), note text)",
        true,
    )?;
    of_kind(
        "an index of a part",
        "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), note text); CREATE INDEX ON orders (id) WHERE id > 1000000;
         CREATE INDEX ON orders USING hash (id); CREATE INDEX ON orders (note, id); CREATE INDEX ON orders (abs(id))",
        true,
    )?;

    // What leaves a table with a boundary, or takes it away.
    let mut migrated = cluster.connect_to("migrated")?;
    let migrated = &mut migrated;
    migrated.batch_execute(
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate;
         CREATE TABLE orders (id bigserial PRIMARY KEY, note text)",
    )?;
    insert_old(migrated, FEW_ROWS)?;
    migrated.batch_execute(&format!(
        "SELECT setval('orders_id_seq', {FEW_ROWS}); CALL snowflake_migrate.run('orders')"
    ))?;
    insert_aged(migrated)?;
    let dump = cluster.dump("migrated", &["-t", "orders", "-Fc"])?;
    migrated.batch_execute(
        "CREATE SCHEMA former; ALTER TABLE orders SET SCHEMA former;
         CREATE TABLE orders (LIKE former.orders INCLUDING ALL); INSERT INTO orders TABLE former.orders",
    )?;
    retain("LIKE … INCLUDING ALL", migrated, false)?;
    migrated
        .batch_execute("DROP TABLE orders CASCADE; ALTER TABLE former.orders SET SCHEMA public")?;
    retain("migrated", migrated, false)?;
    insert_aged(migrated)?;
    migrated.batch_execute("CALL snowflake_migrate.revert('orders')")?;
    migrated.batch_execute("INSERT INTO orders (note) VALUES ('old')")?;
    retain("reverted", migrated, true)?;
    let mut restored = cluster.connect_to("restored")?;
    restored.batch_execute("CREATE EXTENSION snowflake")?;
    cluster.restore(&dump, "pg_restore", "postgres", "restored", &["-1"])?;
    retain("pg_dump -t", &mut restored, false)?;

    // Numbers that are no IDs of this layout, and those that look like some.
    for (what, numbers) in [
        ("negative numbers", "-n"),
        ("random numbers", "('x' || md5(n::text))::bit(63)::bigint"),
        (
            "IDs of another layout",
            "snowflake_compose(now() - interval '2 years' + n * interval '1 ms', 1, 0, 0, 'twitter')",
        ),
    ] {
        client.batch_execute(&format!(
            "{keyed}; INSERT INTO orders SELECT {numbers}, 'old' FROM generate_series(1, {FEW_ROWS}) AS n"
        ))?;
        insert_aged(client)?;
        let refusal = refused(client, RECIPE, "55000")?;
        assert_eq!(rows(client)?, (FEW_ROWS, AGED_ROWS, AGED_ROWS), "{what}");
        println!("retention: {what}: refused: {}", refusal.detail);
        client.batch_execute("DROP TABLE orders CASCADE")?;
    }

    // Without old rows, nothing is refused.
    client.batch_execute(keyed)?;
    insert_aged(client)?;
    retain("a new table", client, false)?;
    client.batch_execute(
        "ALTER TABLE orders ALTER id DROP DEFAULT; INSERT INTO orders VALUES (7, 'old')",
    )?;
    let refusal = refused(
        client,
        "SELECT snowflake_id_boundary('orders', 'id')",
        "55000",
    )?;
    ensure!(refusal.detail.contains("has numbers below"), "{refusal}");
    Ok(())
}

/// Where the boundary is missing, that is reported, and `run()` sets it.
#[test]
fn a_default_set_by_hand_gets_its_boundary_from_run() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE orders (id bigserial PRIMARY KEY, note text) PARTITION BY RANGE (id);
         CREATE TABLE first PARTITION OF orders FOR VALUES FROM (0) TO (1000000);
         CREATE TABLE other PARTITION OF orders DEFAULT",
    )?;
    insert_old(client, OLD_ROWS)?;
    client.batch_execute("ALTER TABLE orders ALTER id SET DEFAULT snowflake_nextval()")?;
    insert_aged(client)?;
    assert_eq!(
        value(
            client,
            "SELECT string_agg(concat_ws(' ', table_name, finding, ids, example), ';') FROM snowflake_audit_tables()"
        )?,
        format!("orders numbers below all IDs, and no boundary is set {OLD_ROWS} {OLD_ROWS}")
    );
    let surveyed = "SELECT coalesce(string_agg(concat_ws(' ', table_name, column_name, window_way, online_way, findings[1]), ';'), '') FROM snowflake_migrate.survey()";
    let said = value(client, surveyed)?;
    ensure!(
        said.starts_with("orders id catalog only not needed has snowflake IDs, and older numbers without a boundary"),
        "{said}"
    );
    client.batch_execute("CALL snowflake_migrate.run('orders')")?;
    retain("a default set by hand, then run()", client, false)?;
    assert_eq!(value(client, surveyed)?, "");
    assert_eq!(
        number(client, "SELECT count(*) FROM snowflake_audit_tables()")?
            + number(
                client,
                "SELECT count(*) FROM snowflake_migrate.plan('orders')"
            )?,
        0
    );
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
    let refusal = refused(client, RECIPE, "55000")?;
    assert_eq!(
        refusal.detail,
        "No boundary is set. At an end of the index on column \"id\" are too many deleted rows."
    );
    assert_eq!(refusal.hint, "Try again after a VACUUM of the table.");
    // A snapshot that still has them finds one.
    let refusal = refused(&mut reader, RECIPE, "55000")?;
    ensure!(refusal.detail.contains("has numbers below"), "{refusal}");
    reader.batch_execute("ROLLBACK")?;
    client.batch_execute("VACUUM orders")?;
    assert_eq!(client.execute(RECIPE, &[])? as i64, AGED_ROWS);
    Ok(())
}

#[test]
fn a_subscriber_keeps_old_rows() -> Result<()> {
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

    // The column has no default that generates IDs, so it is not known which one it is.
    refused(&mut there, RECIPE, "55000")?;
    let first = number(&mut here, "SELECT snowflake_id_boundary('orders')")?;
    let set = |first: i64| format!("SELECT snowflake_set_id_boundary('orders', 'id', {first})");
    refused(&mut there, &set(-1), "22023")?;
    refused(
        &mut there,
        "SELECT snowflake_set_id_boundary('orders', 'id', NULL)",
        "22023",
    )?;
    refused(
        &mut there,
        "SELECT snowflake_set_id_boundary('orders', 'nothing', 1)",
        "42703",
    )?;
    refused(
        &mut subscriber.connect_as("reader", "postgres")?,
        &set(first),
        "42501",
    )?;
    for _ in 0..2 {
        there.batch_execute(&set(first))?;
    }
    refused(&mut there, &set(first - 1), "22023")?;
    assert_eq!(
        number(&mut there, "SELECT snowflake_id_boundary('orders')")?,
        first
    );
    assert_eq!(there.execute(RECIPE, &[])? as i64, AGED_ROWS);
    assert_eq!(rows(&mut there)?, (OLD_ROWS, 0, AGED_ROWS));
    println!(
        "retention: subscriber: refused before the boundary was set, then {AGED_ROWS} aged rows deleted, 0 of {OLD_ROWS} old rows lost"
    );

    // It is no migration that could be reverted, and a migration keeps it.
    refused(
        &mut there,
        "CALL snowflake_migrate.revert('orders')",
        "55000",
    )?;
    there.batch_execute("CALL snowflake_migrate.run('orders', 'id')")?;
    assert_eq!(
        number(&mut there, "SELECT snowflake_id_boundary('orders')")?,
        first
    );
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
              >= snowflake_id_boundary('events')";
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(&format!(
        "CREATE ROLE reader LOGIN;
         CREATE TABLE events (id bigserial PRIMARY KEY, note text) PARTITION BY RANGE (id);
         CREATE TABLE events_first PARTITION OF events FOR VALUES FROM (0) TO (50001);
         CREATE TABLE events_second PARTITION OF events FOR VALUES FROM (50001) TO (1000000);
         INSERT INTO events (note) SELECT 'old' FROM generate_series(1, {OLD_ROWS});
         GRANT SELECT ON events_first TO reader"
    ))?;
    client.batch_execute(
        "DO $do$ BEGIN
             EXECUTE format('CREATE TABLE events_aged PARTITION OF events FOR VALUES FROM (%s) TO (%s)',
                            snowflake_min_id(now() - interval '100 days'), snowflake_min_id(now() - interval '99 days'));
             EXECUTE format('CREATE TABLE events_new PARTITION OF events FOR VALUES FROM (%s) TO (%s)',
                            snowflake_min_id(now() - interval '1 day'), snowflake_min_id(now() + interval '1 day'));
         END $do$;
         CALL snowflake_migrate.run('events');
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
    // So does each of its partitions, also for a role that may not read the parent.
    let first = number(client, "SELECT snowflake_id_boundary('events')")?;
    ensure!(first > OLD_ROWS, "{first}");
    let mut reader = cluster.connect_as("reader", "postgres")?;
    let of_partition = "SELECT snowflake_id_boundary('events_first')";
    assert_eq!(number(&mut reader, of_partition)?, first);
    refused(
        &mut reader,
        "SELECT snowflake_id_boundary('events')",
        "42501",
    )?;
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
fn roles_that_may_read_the_column_learn_its_boundary() -> Result<()> {
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
    let first = number(client, "SELECT snowflake_id_boundary('t')")?;
    ensure!(first > 1 << 40, "{first}");
    for role in ["owner", "reader", "of_column"] {
        let mut its = cluster.connect_as(role, "postgres")?;
        for arguments in ["'t'", "'t', 'id'"] {
            let query = format!("SELECT snowflake_id_boundary({arguments})");
            assert_eq!(number(&mut its, &query)?, first, "{role}");
        }
    }
    for role in ["owner", "of_column"] {
        let mut its = cluster.connect_as(role, "postgres")?;
        assert_eq!(
            number(&mut its, "SELECT snowflake_id_boundary('child', 'id')")?,
            first
        );
    }
    let mut other = cluster.connect_as("of_other", "postgres")?;
    let denied = refused(&mut other, "SELECT snowflake_id_boundary('t')", "42501")?;
    assert_eq!(denied.message, "permission denied for table t");
    // The role may read this column, which is no key.
    refused(
        &mut other,
        "SELECT snowflake_id_boundary('t', 'note')",
        "55000",
    )?;
    assert_eq!(number(client, "SELECT snowflake_id_boundary('apart')")?, 0);
    for (arguments, sqlstate) in [
        ("'t', 'nothing'", "42703"),
        ("'t', 'ctid'", "42703"),
        ("'seen'", "42809"),
        ("0", "42P01"),
        ("NULL", "42P01"),
    ] {
        let query = format!("SELECT snowflake_id_boundary({arguments})");
        refused(client, &query, sqlstate)?;
    }
    Ok(())
}
