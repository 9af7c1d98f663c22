//! Sample tables that a sequence feeds, each migrated to snowflake IDs and
//! back, twice, by an ordinary owner, through `CALL` and through psql's
//! `\gexec`; dumped and restored in between. The schema is compared as
//! `pg_dump` writes it, the rows by their checksums.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::migration::{
    assert_same_schema, contents, dump, foreign_keys, migrate_by_psql, plan, psql, schema, widened,
};
use snowflake_tests::online;
use snowflake_tests::query::{number, value};
use snowflake_tests::sample_tables::{SAMPLE_TABLES, SampleTable, check_violations};
use snowflake_tests::{Cluster, sample_tables};

use super::{held_locks, lock_mode};
use crate::support::{column, refused, run};

/// Inserts a row, whose ID has to be one that a server could issue now.
pub(super) fn insert_new(client: &mut Client, sample: &SampleTable) -> Result<()> {
    let name = sample.name;
    // Of the default layout's present millisecond.
    let first = "SELECT snowflake_min_id(date_trunc('milliseconds', now()))";
    let first = number(client, first)?;
    let id = number(client, sample.insert).context(name)?;
    assert!(id >= first, "{name}: {id} is below {first}");
    Ok(())
}

/// Inserts two rows, which get the next numbers of the sequence. `round` is how
/// often the table was reverted before.
pub(super) fn insert_old(client: &mut Client, sample: &SampleTable, round: i64) -> Result<()> {
    let name = sample.name;
    if let Some((next, step, taken)) = sample.next {
        for n in 0..2 {
            let id = number(client, sample.insert).context(name)?;
            assert_eq!(
                id,
                next + (taken * round + n) * step,
                "{name}, round {round}"
            );
        }
    }
    Ok(())
}

/// Migrates every sample, the even or the odd ones through psql. Rows stay,
/// and new ones get snowflake IDs. Returns how many went through psql.
fn migrate_all(cluster: &Cluster, client: &mut Client, by_psql: usize) -> Result<usize> {
    let before = contents(client)?;
    let mut through_psql = 0;
    for (position, sample) in SAMPLE_TABLES.iter().enumerate() {
        let name = sample.name;
        if position % 2 == by_psql {
            migrate_by_psql(cluster, "keeper", "samples", sample.arguments).context(name)?;
            through_psql += 1;
        } else {
            client
                .batch_execute(&format!("CALL snowflake_migrate({})", sample.arguments))
                .context(name)?;
        }
        let left = plan(client, sample.arguments)?;
        assert!(left.is_empty(), "{name}: left to do: {left:?}");
    }
    assert_eq!(contents(client)?, before, "rows changed");
    for sample in SAMPLE_TABLES {
        insert_new(client, sample)?;
        // There is nothing to do, and nothing is done.
        client.batch_execute(&format!("CALL snowflake_migrate({})", sample.arguments))?;
    }
    Ok(through_psql)
}

/// Reverts every sample; `round` is how often they were reverted before.
fn revert_all(client: &mut Client, round: i64) -> Result<()> {
    let before = contents(client)?;
    for sample in SAMPLE_TABLES {
        client
            .batch_execute(&format!(
                "CALL snowflake_migrate_revert({})",
                sample.arguments
            ))
            .context(sample.name)?;
    }
    assert_eq!(contents(client)?, before, "rows changed");
    for sample in SAMPLE_TABLES {
        insert_old(client, sample, round)?;
        let revert = format!("CALL snowflake_migrate_revert({})", sample.arguments);
        refused(client, &revert, "55000").context(sample.name)?;
    }
    Ok(())
}

/// The sample tables' database in a new one, through `pg_dump`.
fn restore(cluster: &Cluster, name: &str) -> Result<()> {
    let mut client = cluster.connect()?;
    client.batch_execute(&format!("CREATE DATABASE {name}"))?;
    client.batch_execute(&format!("GRANT CREATE ON DATABASE {name} TO keeper"))?;
    let written = psql(
        cluster,
        "postgres",
        name,
        &dump(cluster, "samples", &[])?,
        true,
    )?;
    ensure!(written.success, "restoring {name}: {}", written.errors);
    Ok(())
}

#[test]
fn tables_of_all_kinds_are_migrated_and_reverted_twice() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut keeper = sample_tables::populate(&cluster, "samples")?;
    let mut client = cluster.connect_to("samples")?;
    let listed = number(&mut keeper, "SELECT count(*) FROM snowflake_serial_columns")?;
    let columns: Vec<_> = SAMPLE_TABLES
        .iter()
        .flat_map(|it| it.widened)
        .copied()
        .collect();
    let before = schema(&cluster, "samples")?;
    let expected = widened(&before, &columns)?;
    let keys = foreign_keys(&mut client)?;
    let violations = check_violations(&mut keeper, "before")?;
    let rows: i64 = contents(&mut client)?.values().map(|(rows, _)| rows).sum();

    let through_psql = migrate_all(&cluster, &mut keeper, 0)?;
    assert_eq!(foreign_keys(&mut client)?, keys);
    check_violations(&mut keeper, "migrated")?;
    println!(
        "migration: {} kinds of tables migrated by their owner, {through_psql} of them through psql's \\gexec; \
         {} columns widened, {rows} rows as before, {} foreign keys, {violations} violating rows refused",
        SAMPLE_TABLES.len(),
        columns.len(),
        keys.0
    );

    // Dumped and restored while migrated.
    restore(&cluster, "copy")?;
    let mut copy = cluster.connect_as("keeper", "copy")?;
    revert_all(&mut copy, 0)?;
    assert_same_schema(
        &expected,
        &schema(&cluster, "copy")?,
        "reverted after a restore",
    );
    println!(
        "migration: all {} dumped, restored and reverted there: the same schema but for what was widened",
        SAMPLE_TABLES.len()
    );

    revert_all(&mut keeper, 0)?;
    assert_same_schema(&expected, &schema(&cluster, "samples")?, "reverted");
    check_violations(&mut keeper, "reverted")?;
    assert_eq!(
        number(&mut keeper, "SELECT count(*) FROM snowflake_serial_columns")?,
        listed
    );
    println!(
        "migration: all {} reverted: the same schema, the sequences' next numbers given, {listed} columns fed by sequences",
        SAMPLE_TABLES.len()
    );

    migrate_all(&cluster, &mut keeper, 1)?;
    revert_all(&mut keeper, 1)?;
    assert_same_schema(&expected, &schema(&cluster, "samples")?, "reverted again");
    assert_eq!(foreign_keys(&mut client)?, keys);
    println!(
        "migration: all {} migrated and reverted a second time",
        SAMPLE_TABLES.len()
    );
    value(
        &mut keeper,
        "SELECT count(*) FROM \"\"\"; drop table x --\".x",
    )?;
    Ok(())
}

#[test]
fn columns_fed_by_sequences_are_listed() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE keeper LOGIN; CREATE SCHEMA \"My Schema\"; CREATE SEQUENCE shared; CREATE DOMAIN small AS int; CREATE DOMAIN smaller AS small;
         CREATE TABLE a (id serial PRIMARY KEY); SELECT setval('a_id_seq', 1975684956);
         CREATE TABLE b (id smallserial, big bigserial); SELECT setval('b_id_seq', 16384);
         CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY UNIQUE, n int GENERATED BY DEFAULT AS IDENTITY (INCREMENT -1)); INSERT INTO c SELECT FROM generate_series(1, 4); SELECT setval('c_n_seq', -2147483648);
         CREATE TABLE d (id bigint DEFAULT nextval('shared'), e bigint DEFAULT nextval('shared') + 7, plain int DEFAULT 7, hidden int DEFAULT nextval('shared'::text));
         CREATE TABLE \"My Schema\".\"My Table\" (\"Id\" serial, a_id int REFERENCES a, c_id int REFERENCES c (id));
         CREATE TABLE p (id serial, day int, PRIMARY KEY (id, day)) PARTITION BY LIST (day); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         CREATE TABLE r (p_id int, p_day int, FOREIGN KEY (p_id, p_day) REFERENCES p, self serial UNIQUE, other int REFERENCES r (self));
         CREATE TABLE o (id serial); CREATE TABLE o1 () INHERITS (o); CREATE TABLE o2 (id serial) INHERITS (o);
         CREATE TABLE s (id smaller DEFAULT nextval('shared')); SELECT setval('shared', 1073741824);
         CREATE TEMP TABLE mine (id serial)",
    )?;
    let mut theirs = cluster.connect()?;
    theirs.batch_execute("CREATE TEMP TABLE theirs (id serial)")?;
    let list = "SELECT concat_ws('|', table_name, column_name, data_type, kind, sequence, coalesce(last_value::text, '-'),
                                 coalesce(percent_used::text, '-'), referenced_by)
                FROM snowflake_serial_columns ORDER BY 1";
    let rows: Vec<String> = column(client, list)?;
    let expected = [
        "My Table|Id|integer|serial|\"My Schema\".\"My Table_Id_seq\"|-|-|{}",
        "a|id|integer|serial|a_id_seq|1975684956|92.00|{\"\\\"My Schema\\\".\\\"My Table\\\".a_id\"}",
        "b|big|bigint|serial|b_big_seq|-|-|{}",
        "b|id|smallint|serial|b_id_seq|16384|50.00|{}",
        "c|id|integer|identity always|c_id_seq|4|0.00|{\"\\\"My Schema\\\".\\\"My Table\\\".c_id\"}",
        "c|n|integer|identity by default|c_n_seq|-2147483648|100.00|{}",
        "d|e|bigint|default|shared|1073741824|0.00|{}",
        "d|id|bigint|default|shared|1073741824|0.00|{}",
        "mine|id|integer|serial|mine_id_seq|-|-|{}",
        "o2|id|integer|serial|o2_id_seq|-|-|{}",
        "o|id|integer|serial|o_id_seq|-|-|{}",
        "p|id|integer|serial|p_id_seq|-|-|{r.p_id}",
        "r|self|integer|serial|r_self_seq|-|-|{r.other}",
        "s|id|smaller|default|shared|1073741824|50.00|{}",
    ];
    assert_eq!(rows, expected);
    // A role without privileges sees the columns, and no numbers.
    let mut keeper = cluster.connect_as("keeper", "postgres")?;
    let rows = keeper.query(
        "SELECT table_name::text, last_value, percent_used::text FROM snowflake_serial_columns",
        &[],
    )?;
    assert_eq!(rows.len(), expected.len() - 1);
    for row in &rows {
        let (table, last, percent): (String, Option<i64>, Option<String>) =
            (row.get(0), row.get(1), row.get(2));
        assert_eq!((last, percent), (None, None), "{table}");
    }
    println!(
        "migration: {} columns fed by sequences listed, with what is used of their types; {} without privileges",
        expected.len(),
        rows.len()
    );
    Ok(())
}

/// A key that is fed by a default, a table that references it, and a bigint key.
const PLANNED: &str =
    "CREATE SEQUENCE s; CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('s') CONSTRAINT sane CHECK (id > 0));
     CREATE TABLE u (id int DEFAULT nextval('s'), t_id int REFERENCES t); INSERT INTO t SELECT FROM generate_series(1, 1000);
     CREATE TABLE b (id bigserial PRIMARY KEY)";

#[test]
fn a_plans_note_does_not_list_partitions_whose_defaults_change() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE p (id bigserial, k int) PARTITION BY RANGE (k);
         CREATE TABLE p_0 PARTITION OF p FOR VALUES FROM (0) TO (10);
         CREATE TABLE other (id bigint DEFAULT nextval('p_id_seq'))",
    )?;
    let steps = online::plan_for(client, "'p'", false)?;
    let note = &steps[steps.len() - 1].note;
    assert!(
        note.ends_with("The sequence is still used by public.other.id"),
        "{note}"
    );
    client.batch_execute("CALL snowflake_migrate('p'); INSERT INTO p_0 (k) VALUES (1)")?;
    let id: i64 = client.query_one("SELECT id FROM p_0", &[])?.get(0);
    assert!(id > 1 << 40, "{id}");
    Ok(())
}

#[test]
fn a_plan_describes_its_steps() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(PLANNED)?;
    let steps = online::plan_for(client, "'t'", false)?;
    let found: Vec<_> = steps
        .iter()
        .map(|it| {
            let first = it.statement.split([' ', '\n']).next().unwrap_or_default();
            (
                it.number,
                first,
                it.lock_level.as_str(),
                it.rewrites,
                it.in_transaction,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (1, "SELECT", "SHARE UPDATE EXCLUSIVE", false, true),
            (2, "ALTER", "ACCESS EXCLUSIVE", true, true),
            (3, "ALTER", "ACCESS EXCLUSIVE", true, true),
            (4, "DO", "ACCESS EXCLUSIVE", false, true),
            (5, "ANALYZE", "SHARE UPDATE EXCLUSIVE", false, true),
            (6, "ANALYZE", "SHARE UPDATE EXCLUSIVE", false, true),
        ]
    );
    for part in [
        "2^53",
        "integer",
        "first moments after the epoch",
        "sequence is still used by public.u.id",
        "check constraints sane",
    ] {
        assert!(
            steps[3].note.contains(part),
            "no {part:?} in {}",
            steps[3].note
        );
    }
    let note = &steps[1].note;
    assert!(note.contains("kB") && note.contains("WAL"), "{note}");
    // A bigint changes its default only.
    let of_big = plan(client, "'b'")?;
    assert_eq!(of_big.len(), 2, "{of_big:?}");
    Ok(())
}

#[test]
fn a_plans_steps_take_the_locks_that_it_names() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(PLANNED)?;
    for step in online::plan_for(client, "'t'", false)? {
        run(client, ["BEGIN", &step.statement])?;
        let held = held_locks(client, "public")?;
        client.batch_execute("COMMIT")?;
        let wanted = lock_mode(&step.lock_level);
        assert!(
            held.contains(&wanted),
            "{}: {held:?}, not {wanted}",
            step.statement
        );
        let strongest = "AccessExclusiveLock".to_owned();
        assert!(
            wanted == strongest || !held.contains(&strongest),
            "{}: {held:?}",
            step.statement
        );
    }
    // The new columns have statistics.
    let analyzed = "SELECT count(*) FROM pg_stats WHERE tablename = 't' AND attname = 'id'";
    assert_eq!(number(client, analyzed)?, 1);
    Ok(())
}

#[test]
fn a_table_that_references_a_migrated_one_later_is_widened_too() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(PLANNED)?;
    client.batch_execute(
        "CALL snowflake_migrate('t'); CREATE TABLE late (t_id int REFERENCES t);
         CREATE VIEW seen AS SELECT t_id FROM late",
    )?;
    let note = "SELECT count(*) FROM snowflake_migration_plan('t') WHERE note LIKE '%drops and re-creates view public.seen%'";
    assert_eq!(number(client, note)?, 1);
    assert_eq!(plan(client, "'t'")?.len(), 2);
    client.batch_execute("CALL snowflake_migrate('t')")?;
    assert!(plan(client, "'t'")?.is_empty());
    Ok(())
}
