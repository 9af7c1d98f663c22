//! A schema with 150 keys whose tables reference one another: in one plan, each
//! table is rewritten once, or copied once online. Beside it, key by key. And how
//! long plans take.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::corpus::{Many, many};
use snowflake_tests::migration::{assert_same_schema, foreign_keys, schema};
use snowflake_tests::online::{self, Step};
use snowflake_tests::query::{number, value};

use crate::support::{column, run, wait_until};

/// A server with a database of those tables.
fn start(tables: &Many) -> Result<Cluster> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        // All tables are rewritten in one transaction.
        .conf("max_locks_per_transaction", 512)
        .start_with_extension()?;
    let mut client = cluster.connect_to_new_database("one_plan")?;
    client.batch_execute(&tables.setup)?;
    // PostgreSQL calls it for each table that it rewrites.
    client.batch_execute(
        "CREATE TABLE rewritten (name text);
         CREATE FUNCTION note_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.rewritten VALUES (pg_event_trigger_table_rewrite_oid()::regclass::text); END $$;
         CREATE EVENT TRIGGER noting ON table_rewrite EXECUTE FUNCTION note_rewrite()",
    )?;
    drop(client);
    cluster
        .connect()?
        .batch_execute("CREATE DATABASE key_by_key TEMPLATE one_plan")?;
    Ok(cluster)
}

/// The keys' tables as an argument.
fn array(keys: &[String]) -> String {
    format!("'{{{}}}'::regclass[]", keys.join(","))
}

/// The plan of several keys, and how long it took.
fn plan(client: &mut Client, keys: &[String], online: bool) -> Result<(Vec<Step>, Duration)> {
    let begun = Instant::now();
    let query = format!(
        "SELECT step, statement, lock_level, rewrites, in_transaction, note
         FROM snowflake_migration_plan_tables({}, online => {online}) ORDER BY step",
        array(keys)
    );
    let rows = client.query(&query, &[]).context("the plan")?;
    let steps = rows
        .iter()
        .map(|row| Step {
            number: row.get(0),
            statement: row.get(1),
            lock_level: row.get(2),
            rewrites: row.get(3),
            in_transaction: row.get(4),
            note: row.get(5),
        })
        .collect();
    Ok((steps, begun.elapsed()))
}

/// How many narrow columns are left, in how many tables.
fn narrow(client: &mut Client) -> Result<(i64, i64)> {
    let row = client.query_one(
        "SELECT count(*), count(DISTINCT a.attrelid) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
         WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
           AND a.atttypid = 'int4'::regtype AND a.attname LIKE '%id'
           AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')",
        &[],
    )?;
    Ok((row.get(0), row.get(1)))
}

/// Rows that were inserted since have snowflake IDs, in every table with a key.
fn insert_everywhere(client: &mut Client, keys: &[String]) -> Result<()> {
    for key in keys {
        let id = number(
            client,
            &format!("INSERT INTO {key} (note) VALUES ('new') RETURNING id"),
        )?;
        ensure!(id > 1 << 40, "{key}: {id} is no snowflake ID");
    }
    Ok(())
}

#[test]
fn a_hundred_and_fifty_keys_rewrite_each_table_once() -> Result<()> {
    let tables = many(150, 1000);
    let cluster = start(&tables)?;
    let mut client = cluster.connect_to("one_plan")?;
    let client = &mut client;
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    let keys = foreign_keys(client)?;
    let before = narrow(client)?;
    assert_eq!(keys.0, i64::try_from(tables.foreign_keys)?);

    let (steps, took) = plan(client, &tables.keys, false)?;
    let (_, online_took) = plan(client, &tables.keys, true)?;
    let planned = steps.iter().filter(|step| step.rewrites).count();
    let begun = Instant::now();
    client.batch_execute(&format!(
        "CALL snowflake_migrate_tables({})",
        array(&tables.keys)
    ))?;
    let together = begun.elapsed();
    let rewritten: Vec<String> = column(client, "SELECT name FROM rewritten")?;
    let mut once = rewritten.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), rewritten.len(), "a table was rewritten twice");
    assert_eq!(i64::try_from(rewritten.len())?, before.1);
    assert_eq!(planned, rewritten.len());
    assert_eq!(narrow(client)?, (0, 0));
    assert_eq!(foreign_keys(client)?, keys);
    let mut after = online::contents(client, &columns)?;
    after.extend(
        rows.get_key_value("public.rewritten")
            .map(|(name, it)| (name.clone(), it.clone())),
    );
    assert!(after == rows, "rows have changed");
    let (left, _) = plan(client, &tables.keys, false)?;
    assert!(
        left.is_empty(),
        "left to do: {:?}",
        online::statements(&left)
    );
    insert_everywhere(client, &tables.keys)?;
    println!(
        "150 keys in one plan: {} tables, {} columns, {} foreign keys; planned in {took:.2?} (online: {online_took:.2?}); \
         {} steps, {} tables rewritten, each once, in {together:.1?}",
        tables.tables.len(),
        before.0,
        keys.0,
        steps.len(),
        rewritten.len()
    );

    let mut client = cluster.connect_to("key_by_key")?;
    let client = &mut client;
    let begun = Instant::now();
    for key in &tables.keys {
        client.batch_execute(&format!("CALL snowflake_migrate('{key}')"))?;
    }
    let one_by_one = begun.elapsed();
    let rewrites = number(client, "SELECT count(*) FROM rewritten")?;
    assert!(rewrites > before.1, "{rewrites} rewrites");
    assert_eq!(narrow(client)?, (0, 0));
    println!(
        "the same key by key: {rewrites} rewrites in {one_by_one:.1?}, {:.1} times as many, {:.1} times as long",
        rewrites as f64 / rewritten.len() as f64,
        one_by_one.as_secs_f64() / together.as_secs_f64()
    );
    Ok(())
}

/// How many rows of each table were updated, as the server counts them.
fn updated(client: &mut Client, tables: &[String], at_least: i64) -> Result<BTreeMap<String, i64>> {
    let query = format!(
        "SELECT coalesce(sum(n_tup_upd), 0) >= {at_least} FROM pg_stat_user_tables WHERE relname = ANY ('{{{}}}')",
        tables.join(",")
    );
    wait_until(client, &query)?;
    let mut found = BTreeMap::new();
    for table in tables {
        let query = format!("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = '{table}'");
        found.insert(table.clone(), number(client, &query)?);
    }
    Ok(found)
}

#[test]
fn twelve_keys_online_copy_each_table_once() -> Result<()> {
    const ROWS: i64 = 3000;
    let tables = many(12, usize::try_from(ROWS)?);
    let cluster = start(&tables)?;
    let mut session = cluster.connect_to("one_plan")?;
    let client = &mut session;
    let reset = "SELECT pg_stat_reset()";
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    let keys = foreign_keys(client)?;
    let (narrow_columns, narrow_tables) = narrow(client)?;
    let before = schema(&cluster, "one_plan")?;

    // Cancelled in the middle, by any of its keys.
    let (steps, took) = plan(client, &tables.keys, true)?;
    let middle = steps.iter().position(Step::is_swap).context("no swap")?;
    assert_eq!(steps.iter().filter(|step| step.is_backfill()).count(), 1);
    run(client, online::statements(&steps[..middle]))?;
    client.batch_execute(&format!(
        "CALL snowflake_migrate_revert('{}')",
        tables.keys[5]
    ))?;
    assert_same_schema(
        &online::unordered(&before),
        &online::unordered(&schema(&cluster, "one_plan")?),
        "cancelled",
    );
    assert!(
        online::contents(client, &columns)? == rows,
        "rows have changed"
    );

    client.batch_execute(reset)?;
    let begun = Instant::now();
    let (steps, _) = plan(client, &tables.keys, true)?;
    run(client, online::statements(&steps))?;
    let together = begun.elapsed();
    let wanted = ROWS * narrow_tables;
    let counts = updated(client, &tables.tables, wanted)?;
    for (table, count) in &counts {
        assert!(
            *count <= ROWS,
            "{count} rows of {table} were written, which has {ROWS}"
        );
    }
    let written: i64 = counts.values().sum();
    assert_eq!(written, wanted);
    assert_eq!(narrow(client)?, (0, 0));
    assert_eq!(foreign_keys(client)?, keys);
    assert!(
        online::contents(client, &columns)? == rows,
        "rows have changed"
    );
    assert_eq!(number(client, "SELECT count(*) FROM rewritten")?, 0);
    insert_everywhere(client, &tables.keys)?;

    // The same one after the other, in the other database.
    let mut other = cluster.connect_to("key_by_key")?;
    other.batch_execute(reset)?;
    let begun = Instant::now();
    for key in &tables.keys {
        online::migrate(&mut other, &format!("'{key}'"))?;
    }
    let one_by_one = begun.elapsed();
    let counts = updated(&mut other, &tables.tables, written + 1)?;
    let singly: i64 = counts.values().sum();
    println!(
        "12 keys online in one plan: {narrow_columns} columns of {narrow_tables} tables, {} foreign keys; planned in {took:.2?}, {} steps in {together:.1?}, \
         {written} rows written, {ROWS} of each table; cancelled before that without a trace. \
         Key by key: {singly} rows written in {one_by_one:.1?}, {:.1} times as many",
        keys.0,
        steps.len(),
        singly as f64 / written as f64
    );

    for key in &tables.keys {
        client.batch_execute(&format!("CALL snowflake_migrate_revert('{key}')"))?;
        let id = number(
            client,
            &format!("INSERT INTO {key} (note) VALUES ('old') RETURNING id"),
        )?;
        assert_eq!(id, ROWS + 1, "{key}");
    }
    let wide = before
        .replace("_id integer", "_id bigint")
        .replace("    id integer", "    id bigint");
    assert_same_schema(
        &online::unordered(&wide),
        &online::unordered(&schema(&cluster, "one_plan")?),
        "reverted",
    );
    Ok(())
}

#[test]
fn a_plan_with_sixty_referencing_tables_is_quick() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t SELECT FROM generate_series(1, 1000);
         DO $$ BEGIN FOR i IN 1 .. 60 LOOP
             EXECUTE format('CREATE TABLE r%s (id serial PRIMARY KEY, t_id int REFERENCES t, other_id int REFERENCES t, note text)', i);
             EXECUTE format('CREATE INDEX ON r%s (t_id)', i); EXECUTE format('CREATE UNIQUE INDEX ON r%s (other_id, id)', i);
             EXECUTE format('INSERT INTO r%s (t_id) SELECT id FROM t WHERE id < 50', i);
         END LOOP; END $$; ANALYZE",
    )?;
    let mut figures = Vec::new();
    for online in [false, true] {
        for round in ["first", "again"] {
            let begun = Instant::now();
            let steps = online::plan_for(client, "'t'", online)?;
            figures.push(format!(
                "{} {round}: {:.0?} ({} steps)",
                if online { "online" } else { "window" },
                begun.elapsed(),
                steps.len()
            ));
        }
    }
    // In the middle of an online migration there is more to look at.
    let (steps, last) = super::run_before(client, "'t'", Step::is_swap)?;
    let begun = Instant::now();
    let left = online::plan(client, "'t'")?;
    figures.push(format!(
        "online before the swap: {:.0?} ({} steps)",
        begun.elapsed(),
        left.len()
    ));
    let begun = Instant::now();
    run(client, [&steps[last].statement])?;
    figures.push(format!("the swap: {:.0?}", begun.elapsed()));
    let begun = Instant::now();
    value(client, "SELECT count(*) FROM snowflake_migrations")?;
    figures.push(format!("snowflake_migrations: {:.0?}", begun.elapsed()));
    println!(
        "a key with 60 referencing tables, 120 references: {}",
        figures.join("; ")
    );
    Ok(())
}
