//! A schema with 150 keys whose tables reference one another: in one plan, each
//! table is rewritten once, or copied once online.

use std::collections::BTreeMap;

use snowflake_tests::corpus::{Many, many};
use snowflake_tests::migration::foreign_keys;

use crate::support::*;

/// A server with a database of those tables.
fn start(tables: &Many) -> Result<Cluster> {
    let cluster = Cluster::node(1)
        // All tables are rewritten in one transaction.
        .conf("max_locks_per_transaction", 512)
        .start_with_migrate()?;
    let mut client = cluster.connect_to_new_database("one_plan")?;
    client.batch_execute(&tables.setup)?;
    // PostgreSQL calls it for each table that it rewrites.
    client.batch_execute(
        "CREATE TABLE rewritten (name text);
         CREATE FUNCTION note_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.rewritten VALUES (pg_event_trigger_table_rewrite_oid()::regclass::text); END $$;
         CREATE EVENT TRIGGER noting ON table_rewrite EXECUTE FUNCTION note_rewrite()",
    )?;
    Ok(cluster)
}

/// The keys' tables as arguments.
fn arguments(keys: &[String]) -> String {
    format!("'{}', also => '{{{}}}'", keys[0], keys[1..].join(","))
}

/// The plan of several keys.
fn plan(client: &mut Client, keys: &[String], online: bool) -> Result<Vec<Step>> {
    online::plan_for(client, &arguments(keys), online).context("the plan")
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
        let id = client.number(&format!(
            "INSERT INTO {key} (note) VALUES ('new') RETURNING id"
        ))?;
        ensure!(id > 1 << 40, "{key}: {id} is no snowflake ID");
    }
    Ok(())
}

#[test]
fn a_hundred_and_fifty_keys_rewrite_each_table_once() -> Result<()> {
    let tables = many(150, tier::size(50, 1000));
    let cluster = start(&tables)?;
    let mut client = cluster.connect_to("one_plan")?;
    let client = &mut client;
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    let keys = foreign_keys(client)?;
    let before = narrow(client)?;
    assert_eq!(keys.0, i64::try_from(tables.foreign_keys)?);

    let steps = plan(client, &tables.keys, false)?;
    assert!(!plan(client, &tables.keys, true)?.is_empty());
    let planned = steps.iter().filter(|step| step.rewrites).count();
    let call = format!("CALL snowflake_migrate.run({})", arguments(&tables.keys));
    // The second time for the steps that drop the former sequences.
    client.run([&call, &call])?;
    let rewritten: Vec<String> = client.column("SELECT name FROM rewritten")?;
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
    let left = plan(client, &tables.keys, false)?;
    assert!(
        left.is_empty(),
        "left to do: {:?}",
        online::statements(&left)
    );
    insert_everywhere(client, &tables.keys)?;

    Ok(())
}

/// How many rows of each table were updated, as the server counts them.
fn updated(client: &mut Client, tables: &[String], at_least: i64) -> Result<BTreeMap<String, i64>> {
    let query = format!(
        "SELECT coalesce(sum(n_tup_upd), 0) >= {at_least} FROM pg_stat_user_tables WHERE relname = ANY ('{{{}}}')",
        tables.join(",")
    );
    client.wait_until(&query)?;
    let mut found = BTreeMap::new();
    for table in tables {
        let query = format!("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = '{table}'");
        found.insert(table.clone(), client.number(&query)?);
    }
    Ok(found)
}

#[test]
fn twelve_keys_online_copy_each_table_once() -> Result<()> {
    let rows_each: i64 = tier::size(500, 3000);
    let tables = many(12, usize::try_from(rows_each)?);
    let cluster = start(&tables)?;
    let mut session = cluster.connect_to("one_plan")?;
    let client = &mut session;
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    let keys = foreign_keys(client)?;
    let (_, narrow_tables) = narrow(client)?;
    let before = schema(&cluster, "one_plan")?;

    // Cancelled in the middle, by any of its keys.
    let steps = plan(client, &tables.keys, true)?;
    let middle = steps.iter().position(Step::is_swap).context("no swap")?;
    assert_eq!(steps.iter().filter(|step| step.is_backfill()).count(), 1);
    client.run(online::statements(&steps[..middle]))?;
    client.batch_execute(&format!(
        "CALL snowflake_migrate.revert('{}')",
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

    // What the session has counted until now is written first.
    client.batch_execute("SELECT pg_stat_force_next_flush()")?;
    client.batch_execute("SELECT pg_stat_reset()")?;
    let steps = plan(client, &tables.keys, true)?;
    client.run(online::statements(&steps))?;
    client.batch_execute("SELECT pg_stat_force_next_flush()")?;
    let wanted = rows_each * narrow_tables;
    let counts = updated(client, &tables.tables, wanted)?;
    for (table, count) in &counts {
        assert!(
            *count <= rows_each,
            "{count} rows of {table} were written, which has {rows_each}"
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
    client.answers("SELECT count(*) FROM rewritten", 0)?;
    insert_everywhere(client, &tables.keys)?;

    for key in &tables.keys {
        client.batch_execute(&format!("CALL snowflake_migrate.revert('{key}')"))?;
        let id = client.number(&format!(
            "INSERT INTO {key} (note) VALUES ('old') RETURNING id"
        ))?;
        assert_eq!(id, rows_each + 1, "{key}");
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
