//! A zoo of tables that a sequence feeds, each migrated to snowflake IDs and
//! back, twice, by an ordinary owner, through `CALL` and through psql's
//! `\gexec`; dumped and restored in between. The schema is compared as
//! `pg_dump` writes it, the rows by their checksums.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::migration::{
    assert_same_schema, contents, dump, foreign_keys, migrate_by_psql, number, plan, psql, schema,
    value, widened,
};
use snowflake_tests::outcome::refusal;
use snowflake_tests::zoo::{ZOO, check_violations};
use snowflake_tests::{Cluster, zoo};

/// The smallest ID that a server could make now: of the default layout's
/// present millisecond.
fn first_id(client: &mut Client) -> Result<i64> {
    number(
        client,
        "SELECT snowflake_min_id(date_trunc('milliseconds', now()))",
    )
}

/// Migrates every animal, the even or the odd ones through psql. Rows stay,
/// and new ones get snowflake IDs. Returns how many went through psql.
fn migrate_all(cluster: &Cluster, client: &mut Client, by_psql: usize) -> Result<usize> {
    let before = contents(client)?;
    let mut through_psql = 0;
    for (position, animal) in ZOO.iter().enumerate() {
        let name = animal.name;
        if position % 2 == by_psql {
            migrate_by_psql(cluster, "keeper", "zoo", animal.arguments)
                .with_context(|| name.to_owned())?;
            through_psql += 1;
        } else {
            client
                .batch_execute(&format!("CALL snowflake_migrate({})", animal.arguments))
                .with_context(|| name.to_owned())?;
        }
        let left = plan(client, animal.arguments)?;
        assert!(left.is_empty(), "{name}: left to do: {left:?}");
    }
    assert_eq!(contents(client)?, before, "rows changed");
    for animal in ZOO {
        let name = animal.name;
        let first = first_id(client)?;
        let id = number(client, animal.insert).with_context(|| name.to_owned())?;
        assert!(id >= first, "{name}: {id} is below {first}");
        // Nothing to do, and nothing done.
        client.batch_execute(&format!("CALL snowflake_migrate({})", animal.arguments))?;
    }
    Ok(through_psql)
}

/// The way back for every animal; `round` is how often it went before.
fn revert_all(client: &mut Client, round: i64) -> Result<()> {
    let before = contents(client)?;
    for animal in ZOO {
        client
            .batch_execute(&format!(
                "CALL snowflake_migrate_revert({})",
                animal.arguments
            ))
            .with_context(|| animal.name.to_owned())?;
    }
    assert_eq!(contents(client)?, before, "rows changed");
    for animal in ZOO {
        if let Some((next, step, taken)) = animal.next {
            for n in 0..2 {
                let id = number(client, animal.insert).with_context(|| animal.name.to_owned())?;
                assert_eq!(
                    id,
                    next + (taken * round + n) * step,
                    "{}, round {round}",
                    animal.name
                );
            }
        }
        let refusal = refusal(
            client,
            &format!("CALL snowflake_migrate_revert({})", animal.arguments),
        )?;
        assert_eq!(refusal.sqlstate, "55000", "{}: {refusal}", animal.name);
    }
    Ok(())
}

/// The zoo's database in a new one, through `pg_dump`.
fn restore(cluster: &Cluster, name: &str) -> Result<()> {
    let mut client = cluster.connect()?;
    client.batch_execute(&format!("CREATE DATABASE {name}"))?;
    client.batch_execute(&format!("GRANT CREATE ON DATABASE {name} TO keeper"))?;
    let written = psql(cluster, "postgres", name, &dump(cluster, "zoo", &[])?, true)?;
    ensure!(written.success, "restoring {name}: {}", written.errors);
    Ok(())
}

#[test]
fn a_zoo_there_and_back_twice() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut keeper = zoo::populate(&cluster, "zoo")?;
    let mut client = cluster.connect_to("zoo")?;
    let listed = number(&mut keeper, "SELECT count(*) FROM snowflake_serial_columns")?;
    let columns: Vec<_> = ZOO.iter().flat_map(|it| it.widened).copied().collect();
    let before = schema(&cluster, "zoo")?;
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
        ZOO.len(),
        columns.len(),
        keys.0
    );

    // Dumped and restored on the way.
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
        ZOO.len()
    );

    revert_all(&mut keeper, 0)?;
    assert_same_schema(&expected, &schema(&cluster, "zoo")?, "reverted");
    check_violations(&mut keeper, "reverted")?;
    assert_eq!(
        number(&mut keeper, "SELECT count(*) FROM snowflake_serial_columns")?,
        listed
    );
    println!(
        "migration: all {} reverted: the same schema, the sequences' next numbers given, {listed} columns fed by sequences",
        ZOO.len()
    );

    migrate_all(&cluster, &mut keeper, 1)?;
    revert_all(&mut keeper, 1)?;
    assert_same_schema(&expected, &schema(&cluster, "zoo")?, "reverted again");
    assert_eq!(foreign_keys(&mut client)?, keys);
    println!("migration: all {} there and back a second time", ZOO.len());
    value(
        &mut keeper,
        "SELECT count(*) FROM \"\"\"; drop table x --\".x",
    )?;
    Ok(())
}

#[test]
fn what_there_is_to_migrate() -> Result<()> {
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
    let rows: Vec<String> = client
        .query(list, &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
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
    // Who may read nothing sees what there is, and no numbers.
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

#[test]
fn what_the_plan_says() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE SEQUENCE s; CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('s') CONSTRAINT sane CHECK (id > 0));
         CREATE TABLE u (id int DEFAULT nextval('s'), t_id int REFERENCES t); INSERT INTO t SELECT FROM generate_series(1, 1000);
         CREATE TABLE b (id bigserial PRIMARY KEY)",
    )?;
    let steps = client.query(
        "SELECT step, split_part(statement, ' ', 1), lock_level, rewrites, in_transaction, note FROM snowflake_migration_plan('t')",
        &[],
    )?;
    let found: Vec<(i32, String, String, bool, bool)> = steps
        .iter()
        .map(|row| {
            let statement: String = row.get(1);
            let first = statement.lines().next().unwrap_or_default().to_owned();
            (row.get(0), first, row.get(2), row.get(3), row.get(4))
        })
        .collect();
    let expected: Vec<_> = [
        ("SELECT", "SHARE UPDATE EXCLUSIVE", false),
        ("ALTER", "ACCESS EXCLUSIVE", true),
        ("ALTER", "ACCESS EXCLUSIVE", true),
        ("DO", "ACCESS EXCLUSIVE", false),
        ("ANALYZE", "SHARE UPDATE EXCLUSIVE", false),
        ("ANALYZE", "SHARE UPDATE EXCLUSIVE", false),
    ]
    .iter()
    .zip(1..)
    .map(|((statement, lock, rewrites), step)| {
        (
            step,
            (*statement).to_owned(),
            (*lock).to_owned(),
            *rewrites,
            true,
        )
    })
    .collect();
    assert_eq!(found, expected);
    let notes: Vec<String> = steps.iter().map(|row| row.get(5)).collect();
    for part in [
        "2^53",
        "integer",
        "first moments after the epoch",
        "goes on feeding public.u.id",
        "check constraints sane",
    ] {
        assert!(notes[3].contains(part), "no {part:?} in {}", notes[3]);
    }
    assert!(
        notes[1].contains("kB") && notes[1].contains("WAL"),
        "{}",
        notes[1]
    );
    // A bigint changes its default only.
    let of_big = plan(client, "'b'")?;
    assert_eq!(of_big.len(), 2, "{of_big:?}");
    // The locks are those that it says, of the ones that stand in others' way.
    let mut locks = 0;
    for row in client.query(
        "SELECT statement, lock_level FROM snowflake_migration_plan('t')",
        &[],
    )? {
        let (statement, level): (String, String) = (row.get(0), row.get(1));
        client.batch_execute("BEGIN")?;
        client.batch_execute(&statement)?;
        let held: Vec<String> = client
            .query(
                "SELECT DISTINCT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('t'::regclass, 'u'::regclass) AND granted",
                &[],
            )?
            .iter()
            .map(|row| row.get(0))
            .collect();
        client.batch_execute("COMMIT")?;
        let wanted = format!(
            "{}Lock",
            level
                .split(' ')
                .map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase()))
                .collect::<String>()
        );
        assert!(
            held.contains(&wanted),
            "{statement}: {held:?}, not {wanted}"
        );
        assert!(
            wanted == "AccessExclusiveLock" || !held.contains(&"AccessExclusiveLock".to_owned()),
            "{statement}: {held:?}"
        );
        locks += 1;
    }
    // The new columns have statistics; one that came since is widened too.
    let analyzed = number(
        client,
        "SELECT count(*) FROM pg_stats WHERE tablename = 't' AND attname = 'id'",
    )?;
    assert_eq!(analyzed, 1);
    client.batch_execute(
        "CREATE TABLE late (t_id int REFERENCES t); CREATE VIEW seen AS SELECT t_id FROM late",
    )?;
    let refused = refusal(client, "SELECT snowflake_migration_plan('t')")?;
    assert!(
        refused.detail.contains("view public.seen") || refused.detail.contains("view seen"),
        "{refused}"
    );
    client.batch_execute("DROP VIEW seen")?;
    assert_eq!(plan(client, "'t'")?.len(), 2);
    client.batch_execute("CALL snowflake_migrate('t')")?;
    assert!(plan(client, "'t'")?.is_empty());
    println!(
        "migration: a plan of {} steps with its notes, {locks} of its locks seen",
        expected.len()
    );
    Ok(())
}
