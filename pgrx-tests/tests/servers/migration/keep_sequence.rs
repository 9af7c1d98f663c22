//! Keys that run out: widened while they are in use, and the sequence goes on. The corpus
//! has the shapes of tables; this is what happens to the application meanwhile, which no
//! cheaper tier sees.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI64};

use super::run_before;
use crate::support::*;

/// The last number of an integer.
const END: i64 = 2_147_483_647;
/// Until the key is widened, writers leave this many numbers.
const LEFT: i64 = 500;
const WRITERS: usize = 4;

/// Orders with lines, of a key that has used 99.9 % of its numbers.
fn set_up(client: &mut Client, key: &str) -> Result<()> {
    client.run([
            format!("CREATE TABLE orders (id {key} PRIMARY KEY, note text)"),
            "CREATE TABLE lines (id bigserial PRIMARY KEY, order_id integer NOT NULL REFERENCES orders)".to_owned(),
            "CREATE INDEX ON lines (order_id)".to_owned(),
            "INSERT INTO orders (note) SELECT 'old' FROM generate_series(1, 5000)".to_owned(),
            "INSERT INTO lines (order_id) SELECT id FROM orders".to_owned(),
            format!("SELECT setval(pg_get_serial_sequence('orders', 'id'), {END} - 2140000)"),
            // The rest up to the writers' beginning.
            format!("SELECT setval(pg_get_serial_sequence('orders', 'id'), {END} - 10 * {LEFT})"),
        ],
    )
}

/// Inserts an order and a line of it, again and again. Before the key is wide, it leaves
/// the last numbers alone; afterwards it goes on far beyond them. Returns the number of
/// orders.
fn write(cluster: &Cluster, is_wide: &AtomicBool, last: &AtomicI64) -> Result<i64> {
    let mut client = cluster.connect()?;
    let mut orders = 0;
    loop {
        if !is_wide.load(SeqCst) {
            thread::sleep(Duration::from_millis(5));
            if last.load(SeqCst) > END - LEFT {
                continue;
            }
        } else if last.load(SeqCst) > END + LEFT {
            return Ok(orders);
        }
        let mut transaction = client.transaction()?;
        let id = transaction
            .query_one(
                "INSERT INTO orders (note) VALUES ('new') RETURNING id::bigint",
                &[],
            )?
            .get(0);
        transaction.execute(
            "INSERT INTO lines (order_id) SELECT id FROM orders WHERE id = $1::text::bigint",
            &[&i64::to_string(&id)],
        )?;
        transaction.commit()?;
        last.fetch_max(id, SeqCst);
        orders += 1;
    }
}

fn runs_through_the_end(key: &str) -> Result<()> {
    let cluster = Cluster::builder().without_preload().start_with_migrate()?;
    let mut client = cluster.connect()?;
    set_up(&mut client, key)?;
    let (is_wide, last) = (AtomicBool::new(false), AtomicI64::new(0));
    let orders: i64 = thread::scope(|scope| -> Result<i64> {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| write(&cluster, &is_wide, &last)))
            .collect();
        let migrated = online::migrate(&mut client, "'orders', keep_sequence => true");
        // Writers end in any case.
        is_wide.store(true, SeqCst);
        let mut orders = 0;
        for writer in writers {
            orders += writer.join().expect("a writer")?;
        }
        migrated?;
        Ok(orders)
    })?;
    let beyond = client.number(&format!(
        "SELECT count(*) FROM lines WHERE order_id > {END}"
    ))?;
    client.answers(
        "SELECT count(DISTINCT id) FROM orders WHERE note = 'new'",
        orders,
    )?;
    ensure!(beyond >= LEFT / 2, "{beyond} lines beyond the end");
    println!(
        "keep_sequence, {key}: {orders} orders and as many lines by {WRITERS} sessions, 0 errors, 0 IDs twice, {beyond} of them beyond {END}"
    );
    Ok(())
}

#[test]
fn a_serial_key_runs_through_the_end_of_an_integer_under_load() -> Result<()> {
    runs_through_the_end("serial")
}

#[test]
fn an_identity_runs_through_the_end_of_an_integer_under_load() -> Result<()> {
    runs_through_the_end("integer GENERATED ALWAYS AS IDENTITY")
}

/// Begun to keep the sequence, and cancelled; begun as a migration to snowflake IDs, and
/// ended with the sequence.
#[test]
fn the_end_may_change_on_the_way() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    set_up(client, "serial")?;
    let keeping = "'orders', keep_sequence => true";
    run_before(client, keeping, Step::is_swap)?;
    client.batch_execute("CALL snowflake_migrate.revert('orders')")?;
    let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0 AND NOT attisdropped";
    client.answers(columns, 2)?;
    run_before(client, "'orders'", Step::is_swap)?;
    let swap = online::plan(client, keeping)?;
    assert_eq!(swap.len(), 1, "{swap:?}");
    client.run(online::statements(&swap))?;
    client.answers(
        "INSERT INTO orders (note) VALUES ('next') RETURNING id",
        END - 10 * LEFT + 1,
    )?;
    client.answers(
        "SELECT snowflake_internal.set_boundary_of('orders', 'id') IS NULL",
        "t",
    )?;
    client.refused("CALL snowflake_migrate.revert('orders')", "55000")?;
    Ok(())
}

/// What a plan says of sequences that it cannot widen, or need not.
#[test]
fn sequences_are_widened_where_that_is_allowed() -> Result<()> {
    let cluster = Cluster::builder().without_preload().start_with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.run([
        "CREATE ROLE other",
        "CREATE SEQUENCE others AS integer",
        "ALTER SEQUENCE others OWNER TO other",
        "CREATE TABLE of_other (id integer PRIMARY KEY DEFAULT nextval('others'))",
        "CREATE ROLE app; GRANT USAGE ON SEQUENCE others TO app; ALTER TABLE of_other OWNER TO app",
        "CREATE TABLE wide (id serial PRIMARY KEY)",
        "ALTER TABLE wide ALTER id TYPE bigint",
        "CREATE SEQUENCE bounded AS integer MAXVALUE 5000",
        "CREATE TABLE of_bounded (id integer PRIMARY KEY DEFAULT nextval('bounded'))",
        "CREATE TABLE negative (id serial PRIMARY KEY)",
        "ALTER SEQUENCE negative_id_seq MINVALUE -2147483648 RESTART WITH -2147483648",
        "INSERT INTO negative DEFAULT VALUES",
        "CREATE TABLE parent (id bigint PRIMARY KEY)",
        "CREATE TABLE child (parent_id integer REFERENCES parent)",
    ])?;
    let refused = client
        .expect_error("SELECT * FROM snowflake_migrate.plan('of_other', keep_sequence => true)")?;
    assert_eq!(refused.sqlstate, "42501", "{refused}");
    ensure!(
        refused
            .detail
            .contains("ALTER SEQUENCE public.others AS bigint"),
        "{refused}"
    );
    // Only the sequence is narrow.
    let plan = "SELECT string_agg(statement, ';') FROM snowflake_migrate.plan('wide', keep_sequence => true)";
    ensure!(
        client.value(plan)?.contains("widen_sequence('public.wide'"),
        "{plan}"
    );
    for (table, column) in [
        ("wide", "id"),
        ("of_bounded", "id"),
        ("negative", "id"),
        ("child", "parent_id"),
    ] {
        client.run([format!(
            "CALL snowflake_migrate.run('{table}', '{column}', keep_sequence => true)"
        )])?;
        let left = format!(
            "SELECT count(*) FROM snowflake_migrate.plan('{table}', '{column}', keep_sequence => true)"
        );
        client.answers(&left, 0)?;
        let data_type = format!(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attname = '{column}'"
        );
        client.answers(&data_type, "bigint")?;
    }
    // A bound of its own stays, and is what ends first.
    client.answers(
        "SELECT concat_ws(' ', last_possible, limited_by) FROM snowflake_migrate.columns WHERE table_name = 'of_bounded'",
        "5000 the sequence",
    )?;
    client.answers("INSERT INTO negative DEFAULT VALUES RETURNING id", -END)?;
    Ok(())
}

/// A table, its last value, and what the view says: the share that is used, and what ends
/// first. Half-done migrations are among them.
#[rustfmt::skip]
const SHAPES: &[(&str, &str, i64, &str)] = &[
    ("serial", "CREATE TABLE # (id serial PRIMARY KEY)", 2_000_000_000, "93.13 the type of id"),
    ("bigserial", "CREATE TABLE # (id bigserial PRIMARY KEY)", 2_000_000_000, "0.00 the type of id"),
    ("smallserial", "CREATE TABLE # (id smallserial PRIMARY KEY)", 30_000, "91.56 the type of id"),
    ("referenced_by_integer",
        "CREATE TABLE # (id bigserial PRIMARY KEY); CREATE TABLE of_integer (r integer REFERENCES #)", 2_000_000_000, "93.13 the type of of_integer.r"),
    ("referenced_by_smallint",
        "CREATE TABLE # (id serial PRIMARY KEY); CREATE TABLE of_small (r smallint REFERENCES #); CREATE TABLE of_int (r int REFERENCES #)", 30_000, "91.56 the type of of_small.r"),
    ("bounded", "CREATE TABLE # (id serial PRIMARY KEY); ALTER SEQUENCE #_id_seq MAXVALUE 1000", 950, "95.00 the sequence"),
    ("bounded_far",
        "CREATE TABLE # (id bigserial PRIMARY KEY); ALTER SEQUENCE #_id_seq MAXVALUE 2147483647", 2_000_000_000, "93.13 the sequence"),
    ("cycling", "CREATE TABLE # (id serial PRIMARY KEY); ALTER SEQUENCE #_id_seq MAXVALUE 1000 CYCLE", 500, "50.00 the sequence"),
    ("descending",
        "CREATE TABLE # (id int GENERATED ALWAYS AS IDENTITY (INCREMENT -1) PRIMARY KEY)", -2_000_000_000, "93.13 the type of id"),
    ("descending_bounded",
        "CREATE TABLE # (id int GENERATED ALWAYS AS IDENTITY (INCREMENT -1 MINVALUE -100) PRIMARY KEY)", -90, "90.00 the sequence"),
    ("identity", "CREATE TABLE # (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)", 1_073_741_824, "50.00 the type of id"),
    ("identity_bounded",
        "CREATE TABLE # (id bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 4000000000) PRIMARY KEY)", 3_000_000_000, "75.00 the sequence"),
    ("of_a_domain",
        "CREATE DOMAIN key AS int; CREATE SEQUENCE #_id_seq; CREATE TABLE # (id key PRIMARY KEY DEFAULT nextval('#_id_seq'))", 2_000_000_000, "93.13 the type of id"),
    ("of_a_wide_sequence",
        "CREATE SEQUENCE #_id_seq; CREATE TABLE # (id int PRIMARY KEY DEFAULT nextval('#_id_seq'))", 2_000_000_000, "93.13 the type of id"),
    ("sequence_left_behind",
        "CREATE TABLE # (id serial PRIMARY KEY); ALTER TABLE # ALTER id TYPE bigint", 2_000_000_000, "93.13 the sequence"),
    ("reference_left_behind",
        "CREATE TABLE # (id serial PRIMARY KEY); CREATE TABLE behind (r int REFERENCES #); ALTER TABLE # ALTER id TYPE bigint; ALTER SEQUENCE #_id_seq AS bigint", 2_000_000_000, "93.13 the type of behind.r"),
    ("partitioned",
        "CREATE TABLE # (id serial, n int) PARTITION BY LIST (n); CREATE TABLE part PARTITION OF # DEFAULT", 2_000_000_000, "93.13 the type of id"),
    ("of_a_numeric_column",
        "CREATE SEQUENCE #_id_seq MAXVALUE 200; CREATE TABLE # (id numeric DEFAULT nextval('#_id_seq'))", 100, "50.00 the sequence"),
    ("shared",
        "CREATE SEQUENCE #_id_seq; CREATE TABLE # (id int PRIMARY KEY DEFAULT nextval('#_id_seq'))", 1_073_741_824, "50.00 the type of id"),
    ("tree", "CREATE TABLE # (id bigserial PRIMARY KEY, parent int REFERENCES #)", 2_000_000_000, "93.13 the type of tree.parent"),
];

#[test]
fn what_ends_first_is_known_for_every_shape() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute("CREATE ROLE reader LOGIN")?;
    for (name, setup, last, expected) in SHAPES {
        let said = format!(
            "SELECT concat_ws(' ', percent_used, limited_by) FROM snowflake_migrate.columns WHERE table_name = '{name}'"
        );
        client.batch_execute(&setup.replace('#', name))?;
        let unused = "SELECT count(*) FROM snowflake_migrate.columns WHERE coalesce(percent_used, days_left) IS NOT NULL";
        client.answers(&format!("{unused} AND table_name = '{name}'"), 0)?;
        client.batch_execute(&format!("SELECT setval('{name}_id_seq', {last})"))?;
        client.answers(&said, *expected)?;
        // Who may not read the sequence learns what may end, not how far it is.
        let mut reader = cluster.connect_as("reader", "postgres")?;
        let (_, limit) = expected.split_once(' ').unwrap_or_default();
        reader.answers(&said, limit)?;
    }
    // The rate of inserts since a known reset.
    let days = "SELECT days_left::text FROM snowflake_migrate.columns WHERE table_name = 'serial'";
    client.batch_execute("SELECT pg_stat_reset()")?;
    assert_eq!(client.text(days)?, None);
    client.run([
        "INSERT INTO serial SELECT FROM generate_series(1, 10000)",
        "SELECT pg_stat_force_next_flush()",
    ])?;
    let expected = "SELECT floor((2147483647 - 2000010000) / (10000 * 86400 / extract(epoch FROM now() - stats_reset)))
                    FROM pg_stat_database WHERE datname = current_database()";
    let row = client.query_one(
        &format!("SELECT abs(({days})::numeric - ({expected})) <= 1"),
        &[],
    )?;
    ensure!(row.get::<_, bool>(0), "days_left");
    Ok(())
}
