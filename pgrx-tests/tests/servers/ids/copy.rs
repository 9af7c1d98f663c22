//! COPY inserts rows in batches though `snowflake_nextval()` (or `snowflake_id()`) is a default, and
//! nothing of what that takes is left behind: not in a cached plan, not in a
//! table's default, not in the session after an error.
//!
//! Whether rows went in in batches is read from the write-ahead log, with
//! `pg_walinspect`: a batch is one record there.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::*;

/// A table with the default on `id`, and a scratch one beside it.
const TABLES: &str = "
    CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int);
    CREATE TABLE other (id bigint NOT NULL DEFAULT snowflake_nextval(), v int)";

/// A server with the extension and the means to look into its log.
fn server() -> Result<Cluster> {
    let cluster = Cluster::with_extension()?;
    cluster.run("CREATE EXTENSION pg_walinspect")?;
    Ok(cluster)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Batched,
    OneByOne,
}

/// How rows went into a table and its partitions.
#[derive(Debug, Clone, Copy)]
struct Records {
    batches: i64,
    rows: i64,
}

impl Records {
    /// The records since `from`.
    fn since(client: &mut Client, from: &str, table: &str) -> Result<Self> {
        let row = client.query_one(
            &format!(
                "WITH files AS (
                     SELECT pg_relation_filenode('{table}') AS file
                     UNION
                     SELECT pg_relation_filenode(relid) FROM pg_partition_tree('{table}'))
                 SELECT count(*) FILTER (WHERE resource_manager = 'Heap2'
                                           AND record_type LIKE 'MULTI_INSERT%'),
                        count(*) FILTER (WHERE resource_manager = 'Heap'
                                           AND record_type LIKE 'INSERT%')
                 FROM pg_get_wal_records_info('{from}', pg_current_wal_flush_lsn())
                 JOIN files ON block_ref LIKE '%/' || file || ' %'"
            ),
            &[],
        )?;
        Ok(Self {
            batches: row.get(0),
            rows: row.get(1),
        })
    }

    fn assert(self, how: How, what: &str) {
        match how {
            How::Batched => assert!(self.batches > 0 && self.rows == 0, "{what}: {self:?}"),
            How::OneByOne => assert!(self.batches == 0 && self.rows > 0, "{what}: {self:?}"),
        }
    }
}

fn here(client: &mut Client) -> Result<String> {
    Ok(client
        .text("SELECT pg_current_wal_insert_lsn()")?
        .unwrap_or_default())
}

/// Runs something that copies `rows` rows into a table, and looks at them.
fn copied(
    client: &mut Client,
    what: &str,
    table: &str,
    rows: i64,
    how: How,
    run: impl FnOnce(&mut Client) -> Result<()>,
) -> Result<()> {
    let count = format!("SELECT count(*), count(DISTINCT id), count(id) FROM {table}");
    let before: i64 = client.query_one(&count, &[])?.get(0);
    let from = here(client)?;
    run(client).with_context(|| what.to_owned())?;
    Records::since(client, &from, table)
        .with_context(|| what.to_owned())?
        .assert(how, what);
    let row = client.query_one(&count, &[])?;
    let total = before + rows;
    assert_eq!(row.get::<_, i64>(0), total, "{what}: rows");
    assert_eq!(row.get::<_, i64>(1), total, "{what}: distinct IDs");
    assert_eq!(row.get::<_, i64>(2), total, "{what}: IDs that are not null");
    nothing_is_left(client, what)?;
    println!(
        "copy: {what}: {} IDs, all distinct, {how:?}",
        grouped(u64::try_from(rows)?)
    );
    Ok(())
}

/// The same, where a client sends the rows.
fn sent(client: &mut Client, what: &str, table: &str, rows: i32, how: How) -> Result<()> {
    copied(client, what, table, rows.into(), how, |c| {
        send(c, &format!("COPY {table} (v) FROM STDIN"), 0..rows)
    })
}

/// The session generates IDs as before, and the function that COPY calls is
/// refused.
fn nothing_is_left(client: &mut Client, what: &str) -> Result<()> {
    let mut ids = vec![ids::one(client)?];
    client.batch_execute(
        "CREATE TEMP TABLE afterwards AS SELECT generate_series(1, 10) AS v;
         ALTER TABLE afterwards ADD COLUMN id bigint DEFAULT snowflake_nextval();
         INSERT INTO afterwards (v) SELECT generate_series(11, 20);
         INSERT INTO afterwards (v) VALUES (21);
         CREATE TEMP TABLE alike (LIKE afterwards INCLUDING DEFAULTS);
         INSERT INTO alike (v) VALUES (1)",
    )?;
    ids.extend(ids::fetch(
        client,
        "SELECT id FROM afterwards UNION ALL SELECT id FROM alike",
    )?);
    ids.push(ids::one(client)?);
    let tally = Tally::of(ids);
    assert_eq!(tally.ids, 24, "{what}");
    assert_eq!(tally.duplicates, 0, "{what}: afterwards: {tally}");
    assert_no_copy_default(client, what)?;
    client.batch_execute("DROP TABLE afterwards, alike")?;
    client.refused("SELECT snowflake_internal.copy_nextval()", "0A000")?;
    Ok(())
}

/// No default of any table has become the other function.
fn assert_no_copy_default(client: &mut Client, what: &str) -> Result<()> {
    let defaults = client
        .text(
            "SELECT count(*) FILTER (WHERE pg_get_expr(adbin, adrelid) LIKE '%copy_nextval%')
                || ' of ' || count(*) FROM pg_attrdef",
        )?
        .unwrap_or_default();
    assert!(defaults.starts_with("0 of "), "{what}: {defaults}");
    Ok(())
}

/// Sends the numbers of a range as lines.
fn send(client: &mut Client, copy: &str, numbers: std::ops::Range<i32>) -> Result<()> {
    let mut lines = String::new();
    for number in numbers {
        lines.push_str(&format!("{number}\n"));
    }
    send_text(client, copy, &lines)
}

fn send_text(client: &mut Client, copy: &str, lines: &str) -> Result<()> {
    let mut writer = client.copy_in(copy)?;
    writer.write_all(lines.as_bytes())?;
    writer.finish()?;
    Ok(())
}

/// What a COPY that must fail answered.
fn refused_copy(client: &mut Client, copy: &str, lines: &str) -> Result<ServerError> {
    if !copy.contains("STDIN") {
        return client.expect_error(copy);
    }
    let outcome = client.copy_in(copy).and_then(|mut writer| {
        // A broken pipe to a server that gave up shows in `finish`.
        let _ = writer.write_all(lines.as_bytes());
        writer.finish()
    });
    match outcome {
        Ok(rows) => anyhow::bail!("{copy} should have failed, and took {rows} rows"),
        Err(error) => ServerError::from_error(error),
    }
}

/// A file that the server can read.
fn file(cluster: &Cluster, name: &str, contents: &str) -> Result<String> {
    let path = cluster.data().join(name);
    std::fs::write(&path, contents)?;
    Ok(path.display().to_string())
}

fn numbers(count: i32) -> String {
    (1..=count).map(|number| format!("{number}\n")).collect()
}

/// The COPY that most tests run.
const COPY: &str = "COPY t (v) FROM STDIN";

/// Forms of COPY: how many rows of 2,500 go in, how, and by which statements. `@` is a file of the
/// server with the same lines.
#[rustfmt::skip]
const FORMS: &[(&str, i64, How, &[&str])] = &[
    ("lines from the client", 2_500, How::Batched, &[COPY]),
    ("a file of the server", 2_500, How::Batched, &["COPY t (v) FROM '@'"]),
    ("a program's output", 2_000, How::Batched, &["COPY t (v) FROM PROGRAM 'seq 2000'"]),
    ("WHERE", 625, How::Batched, &["COPY t (v) FROM STDIN WHERE v % 4 = 0"]),
    ("IDs in WHERE", 2_500, How::OneByOne, &["COPY t (v) FROM STDIN WHERE snowflake_nextval() > v"]),
    ("CSV with a header", 2_499, How::Batched, &["COPY t (v) FROM STDIN (FORMAT csv, HEADER)"]),
    ("binary", 1_000, How::Batched, &[
        "COPY (SELECT generate_series(1, 1000)) TO '@.binary' (FORMAT binary)",
        "COPY t (v) FROM '@.binary' (FORMAT binary)",
    ]),
    ("IDs in the input", 2_500, How::Batched, &["COPY t (id) FROM STDIN"]),
    ("switched off", 2_500, How::OneByOne, &["SET snowflake.copy_multi_insert = off", COPY]),
    ("reset", 2_500, How::Batched, &["RESET snowflake.copy_multi_insert", COPY]),
    ("SET LOCAL ... = off", 2_500, How::OneByOne, &[
        "BEGIN; SET LOCAL snowflake.copy_multi_insert = off", COPY, "COMMIT",
    ]),
    ("after the SET LOCAL", 2_500, How::Batched, &[COPY]),
    ("two in a transaction", 5_000, How::Batched, &["BEGIN", COPY, COPY, "COMMIT"]),
    ("a subtransaction", 2_500, How::Batched, &["BEGIN; SAVEPOINT s", COPY, "RELEASE s; COMMIT"]),
    ("a DO block", 2_500, How::Batched, &["DO $$ BEGIN COPY t (v) FROM '@'; END $$"]),
    ("functions", 7_500, How::Batched, &[
        "CREATE FUNCTION load() RETURNS void LANGUAGE plpgsql AS $$ BEGIN COPY t (v) FROM '@'; END $$;
         CREATE FUNCTION load_sql() RETURNS void LANGUAGE sql AS $$ COPY t (v) FROM '@' $$",
        "SELECT load(); SELECT load(); SELECT load_sql()",
    ]),
    ("a procedure that commits", 5_000, How::Batched, &[
        "CREATE PROCEDURE load_and_commit() LANGUAGE plpgsql AS $$ BEGIN
             COPY t (v) FROM '@'; COMMIT; COPY t (v) FROM '@'; ROLLBACK; COPY t (v) FROM '@';
         END $$",
        "CALL load_and_commit()",
    ]),
];

#[test]
fn every_form_of_copy_inserts_in_batches() -> Result<()> {
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(TABLES)?;
    let path = file(&cluster, "numbers", &numbers(2_500))?;
    for &(what, rows, how, statements) in FORMS {
        copied(client, what, "t", rows, how, |c| {
            for statement in statements {
                if statement.contains("STDIN") {
                    send(c, statement, 1..2_501)?;
                } else {
                    c.batch_execute(&statement.replace('@', &path))?;
                }
            }
            Ok(())
        })?;
    }
    sent(client, "no key", "other", 2_500, How::Batched)?;
    client.batch_execute("CREATE TABLE frozen (LIKE t INCLUDING ALL)")?;
    copied(client, "FREEZE", "frozen", 2_500, How::Batched, |c| {
        c.batch_execute("BEGIN; TRUNCATE frozen")?;
        send(c, "COPY frozen (v) FROM STDIN (FREEZE)", 0..2_500)?;
        Ok(c.batch_execute("COMMIT")?)
    })?;
    copied(client, "psql's \\copy", "t", 2_500, How::Batched, |_| {
        let output = cluster
            .client_command("psql", "postgres")
            .args(["-X", "-v", "ON_ERROR_STOP=1", "-qAt"])
            .args(["-c", &format!("\\copy t (v) from '{path}'")])
            .args(["-c", "SELECT snowflake_nextval() <> snowflake_nextval()"])
            .stdin(Stdio::null())
            .output()?;
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "t");
        ensure!(output.status.success(), "{output:?}");
        Ok(())
    })
}

/// The columns of tables, each with the function somewhere, and how rows go in.
#[rustfmt::skip]
const DEFAULTS: &[(How, &str, &str)] = &[
    (How::Batched, "as_text", "id text DEFAULT snowflake_to_text(snowflake_nextval())"),
    (How::Batched, "in_sum", "id bigint DEFAULT (snowflake_nextval() + 0)"),
    (How::Batched, "in_case", "id bigint DEFAULT CASE WHEN now() IS NOT NULL THEN snowflake_nextval() END"),
    (How::Batched, "in_coalesce", "id bigint DEFAULT coalesce(NULL, snowflake_nextval())"),
    (How::Batched, "in_sql_function", "id bigint DEFAULT fresh()"),
    (How::OneByOne, "in_plpgsql_function", "id bigint DEFAULT opaque()"),
    (How::OneByOne, "beside_another_volatile",
        "id bigint DEFAULT snowflake_nextval(), noise float8 DEFAULT random()"),
    (How::Batched, "beside_nextval", "id bigint DEFAULT snowflake_nextval(), number bigserial"),
    (How::Batched, "of_a_domain", "id key"),
    (How::Batched, "of_numeric", "id numeric DEFAULT snowflake_nextval()"),
    (How::Batched, "with_unique", "id bigint UNIQUE DEFAULT snowflake_nextval()"),
    (How::Batched, "with_checks", "id bigint DEFAULT snowflake_nextval() CHECK (id > 0), CHECK (v < 10000)"),
    (How::Batched, "with_generated", "id bigint DEFAULT snowflake_nextval(),
         twice bigint GENERATED ALWAYS AS (id % 1000 * 2 + v) STORED"),
    (How::Batched, "checked_against_another",
        "id bigint DEFAULT snowflake_nextval(), CHECK (snowflake_nextval() > id)"),
    (How::Batched, "two", "id bigint DEFAULT snowflake_nextval(), second bigint DEFAULT snowflake_nextval()"),
    (How::Batched, "two_names", "id bigint PRIMARY KEY DEFAULT snowflake_id(), second bigint DEFAULT snowflake_nextval()"),
];

/// Functions in which the planner sees the call, and in which it does not.
const FUNCTIONS: &str = "
    CREATE FUNCTION fresh() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_nextval()';
    CREATE FUNCTION opaque() RETURNS bigint LANGUAGE plpgsql AS
        'BEGIN RETURN snowflake_nextval(); END'";

#[test]
fn a_default_of_any_form_is_copied_in_batches() -> Result<()> {
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(&format!(
        "{FUNCTIONS};
         CREATE DOMAIN key AS bigint DEFAULT snowflake_nextval() CHECK (VALUE > 0)"
    ))?;
    for &(how, name, columns) in DEFAULTS {
        client.batch_execute(&format!("CREATE TABLE {name} ({columns}, v int)"))?;
        sent(client, name, name, 1_000, how)?;
        client.batch_execute(&format!("INSERT INTO {name} (v) VALUES (1)"))?;
    }
    let tally = Tally::of(ids::fetch(
        client,
        "SELECT id FROM two UNION ALL SELECT second FROM two
         UNION ALL SELECT id FROM two_names UNION ALL SELECT second FROM two_names",
    )?);
    println!("copy: two columns: {tally}");
    assert_eq!(tally.ids, 4_004);
    tally.assert_unique();

    client.batch_execute(
        "CREATE VIEW seen AS SELECT id, v FROM two;
         ALTER VIEW seen ALTER COLUMN id SET DEFAULT snowflake_nextval();
         CREATE FUNCTION into_two() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO two (id, v) VALUES (NEW.id, NEW.v); RETURN NEW; END $$;
         CREATE TRIGGER instead INSTEAD OF INSERT ON seen
             FOR EACH ROW EXECUTE FUNCTION into_two()",
    )?;
    copied(client, "a view's trigger", "two", 200, How::OneByOne, |c| {
        send(c, "COPY seen (v) FROM STDIN", 0..200)
    })
}

#[test]
fn partitions_are_copied_in_batches() -> Result<()> {
    use How::{Batched, OneByOne};
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(&format!(
        "{FUNCTIONS};
         CREATE TABLE by_v (id bigint DEFAULT snowflake_nextval(), v int) PARTITION BY RANGE (v);
         CREATE TABLE by_v_low PARTITION OF by_v FOR VALUES FROM (0) TO (500);
         CREATE TABLE by_v_high PARTITION OF by_v FOR VALUES FROM (500) TO (1000);
         CREATE TABLE by_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)
             PARTITION BY RANGE (id);
         CREATE TABLE by_id_now PARTITION OF by_id FOR VALUES FROM (1) TO (MAXVALUE);
         CREATE TABLE beside (id bigint DEFAULT snowflake_nextval(), v int);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO beside (v) VALUES (NEW.v); RETURN NEW; END $$;
         CREATE TABLE watched (id bigint DEFAULT snowflake_nextval(), v int) PARTITION BY RANGE (v);
         CREATE TABLE watched_all PARTITION OF watched DEFAULT;
         CREATE TRIGGER note BEFORE INSERT ON watched_all
             FOR EACH ROW EXECUTE FUNCTION note()"
    ))?;
    #[rustfmt::skip]
    let cases = [
        ("by another column", "by_v", 1_000, Batched, ""),
        ("by the ID", "by_id", 1_000, Batched, ""),
        // A partition's own default counts for a COPY into the partition alone.
        ("a partition with a default of its own", "by_v_low", 500, OneByOne, "ALTER TABLE by_v_low ALTER COLUMN id SET DEFAULT opaque()"),
        ("its parent", "by_v", 1_000, Batched, ""),
        ("a partition with an AFTER trigger", "by_v", 1_000, Batched, "CREATE TRIGGER note AFTER INSERT ON by_v_high FOR EACH ROW EXECUTE FUNCTION note()"),
        ("a partition with a BEFORE trigger", "watched", 1_000, OneByOne, ""),
    ];
    for (what, table, rows, how, before) in cases {
        client.batch_execute(before)?;
        sent(client, what, table, rows, how)?;
        client.batch_execute(&format!("INSERT INTO {table} (v) VALUES (1)"))?;
    }
    let tally = Tally::of(ids::fetch(client, "SELECT id FROM beside")?);
    println!("copy: what the partitions' triggers inserted: {tally}");
    assert_eq!(tally.ids, 1_501);
    tally.assert_unique();
    Ok(())
}

/// A domain's check is planned when the domain is first looked at, and kept
/// for the session.
#[test]
fn a_plan_kept_from_a_copy_works_outside_of_it() -> Result<()> {
    let cluster = server()?;
    for (what, definition) in [
        (
            "a checked column beside the default",
            "v checked, id bigint DEFAULT snowflake_nextval()",
        ),
        (
            "a checked column with the default",
            "v int, id checked DEFAULT snowflake_nextval()",
        ),
    ] {
        cluster.run(&format!(
            "DROP TABLE IF EXISTS t; DROP DOMAIN IF EXISTS checked;
             CREATE DOMAIN checked AS bigint CHECK (snowflake_nextval() > 0);
             CREATE TABLE t ({definition})"
        ))?;
        let client = &mut cluster.connect()?;
        sent(client, what, "t", 500, How::Batched)?;
        client
            .batch_execute("SELECT 1::bigint::checked; INSERT INTO t (v) VALUES (1)")
            .with_context(|| format!("after the COPY of {what}"))?;
    }
    // A PL/pgSQL function keeps how it casts, too.
    let client = &mut cluster.connect()?;
    client.batch_execute(
        "CREATE TYPE asking AS (n int);
         CREATE FUNCTION answer(asking) RETURNS bigint LANGUAGE sql AS
             'SELECT snowflake_nextval()';
         CREATE CAST (asking AS bigint) WITH FUNCTION answer(asking) AS ASSIGNMENT;
         CREATE TABLE casting (id bigint DEFAULT snowflake_nextval(), v int, w bigint);
         CREATE FUNCTION cast_one() RETURNS trigger LANGUAGE plpgsql AS
             $$ DECLARE whole bigint; part asking; BEGIN
                 part.n := 1; whole := part; NEW.w := whole; RETURN NEW;
             END $$;
         CREATE TRIGGER cast_one BEFORE INSERT ON casting
             FOR EACH ROW EXECUTE FUNCTION cast_one()",
    )?;
    sent(client, "a cast", "casting", 100, How::OneByOne)?;
    client.batch_execute("INSERT INTO casting (v) VALUES (1)")?;
    let tally = Tally::of(ids::fetch(
        client,
        "SELECT id FROM casting UNION ALL SELECT w FROM casting",
    )?);
    println!("copy: a cast that calls the function: {tally}");
    assert_eq!(tally.ids, 202);
    tally.assert_unique();
    Ok(())
}

/// What a function does whenever it is called, and how many rows of `other`
/// come of it.
#[rustfmt::skip]
const DEEDS: &[(&str, i64, &str)] = &[
    ("inserts", 1, "INSERT INTO other (v) VALUES (0);"),
    ("assigns an ID", 1, "given := snowflake_nextval(); INSERT INTO other VALUES (given, 0);"),
    ("copies by EXECUTE", 3, "EXECUTE 'COPY other (v) FROM ''@three''';"),
    ("copies and inserts in turn", 5, "INSERT INTO other (v) VALUES (0);
         COPY other (v) FROM '@three';
         given := snowflake_nextval(); INSERT INTO other VALUES (given, 0);"),
    ("alters a table", 5, "CREATE TEMP TABLE grown AS SELECT generate_series(1, 5) AS v;
         ALTER TABLE grown ADD COLUMN id bigint DEFAULT snowflake_nextval();
         EXECUTE 'INSERT INTO other SELECT id, v FROM grown';
         DROP TABLE grown;"),
    ("creates a table from IDs", 3, "CREATE TEMP TABLE made AS SELECT snowflake_nextval() AS id FROM generate_series(1, 3);
         EXECUTE 'INSERT INTO other SELECT id, 0 FROM made';
         DROP TABLE made;"),
    ("creates a table with the default", 2, "CREATE TEMP TABLE alike (LIKE other INCLUDING DEFAULTS);
         EXECUTE 'INSERT INTO alike (v) VALUES (1), (2)';
         EXECUTE 'INSERT INTO other SELECT * FROM alike';
         DROP TABLE alike;"),
    ("fails and catches it", 1, "BEGIN
             INSERT INTO other (v) VALUES (0);
             RAISE division_by_zero;
         EXCEPTION WHEN division_by_zero THEN
             INSERT INTO other (v) VALUES (1);
         END;"),
    ("catches a COPY's error", 4, "BEGIN
             COPY other (v) FROM '@broken';
         EXCEPTION WHEN invalid_text_representation THEN
             INSERT INTO other (v) VALUES (1);
         END;
         COPY other (v) FROM '@three';"),
    ("catches an error after a COPY", 1, "BEGIN
             BEGIN
                 COPY other (v) FROM '@three';
                 COPY other (v) FROM '@missing';
             EXCEPTION WHEN division_by_zero THEN
                 NULL;
             END;
         EXCEPTION WHEN undefined_file THEN
             INSERT INTO other (v) VALUES (1);
         END;"),
    ("runs a DO block that copies", 4, "EXECUTE 'DO $do$ BEGIN COPY other (v) FROM ''@three''; END $do$';
         INSERT INTO other (v) VALUES (0);"),
];

/// Where such a function is called from, how rows go in then, and whether it
/// is called for each row.
#[rustfmt::skip]
const PLACES: &[(&str, How, bool, &str)] = &[
    ("an AFTER ROW trigger", How::Batched, true,
        "CREATE TRIGGER act AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION act_as_trigger()"),
    ("a BEFORE ROW trigger", How::OneByOne, true,
        "CREATE TRIGGER act BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION act_as_trigger()"),
    ("a BEFORE STATEMENT trigger", How::Batched, false,
        "CREATE TRIGGER act BEFORE INSERT ON t EXECUTE FUNCTION act_as_trigger()"),
    ("an AFTER STATEMENT trigger", How::Batched, false,
        "CREATE TRIGGER act AFTER INSERT ON t EXECUTE FUNCTION act_as_trigger()"),
    ("a deferred trigger", How::Batched, true,
        "CREATE CONSTRAINT TRIGGER act AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION act_as_trigger()"),
    ("a trigger's WHEN", How::Batched, true,
        "CREATE TRIGGER act AFTER INSERT ON t FOR EACH ROW WHEN (act() AND NEW.id IS NULL)
             EXECUTE FUNCTION act_as_trigger()"),
    ("a CHECK constraint", How::Batched, true, "ALTER TABLE t ADD CHECK (act())"),
    ("a domain's CHECK", How::Batched, true,
        "CREATE DOMAIN acted AS int CHECK (act()); ALTER TABLE t ALTER COLUMN v TYPE acted"),
    ("COPY's WHERE", How::OneByOne, true, ""),
];

#[test]
fn ids_stay_apart_whatever_runs_during_a_copy() -> Result<()> {
    const ROWS: i32 = 8;
    let rows = i64::from(ROWS);
    let cluster = server()?;
    file(&cluster, "three", "1\n2\n3\n")?;
    file(&cluster, "broken", "1\n2\nthree\n")?;
    let directory = format!("{}/", cluster.data().display());
    let mut all = Vec::new();
    for &(place, how, each_row, create) in PLACES {
        let mut seen = 0;
        for &(deed, made, body) in DEEDS {
            let what = format!("{place} that {deed}");
            let body = body.replace('@', &directory);
            let client = &mut cluster.connect()?;
            client
                .batch_execute(&format!(
                    "SET client_min_messages = warning;
                     DROP TABLE IF EXISTS t, other; DROP DOMAIN IF EXISTS acted; {TABLES};
                     CREATE OR REPLACE FUNCTION act() RETURNS boolean LANGUAGE plpgsql AS
                         $f$ DECLARE given bigint; BEGIN {body} RETURN true; END $f$;
                     CREATE OR REPLACE FUNCTION act_as_trigger() RETURNS trigger LANGUAGE plpgsql AS
                         $f$ DECLARE given bigint; BEGIN {body} RETURN NEW; END $f$;
                     {create}"
                ))
                .with_context(|| what.clone())?;
            let copy = if create.is_empty() {
                "COPY t (v) FROM STDIN WHERE act()"
            } else {
                "COPY t (v) FROM STDIN"
            };
            let times = if each_row { rows } else { 1 };
            let counted = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM other)";
            let from = here(client)?;
            send(client, copy, 0..ROWS).with_context(|| what.clone())?;
            Records::since(client, &from, "t")?.assert(how, &what);
            let row = client.query_one(counted, &[])?;
            assert_eq!(row.get::<_, i64>(0), rows, "{what}: rows");
            assert_eq!(row.get::<_, i64>(1), made * times, "{what}: rows beside");
            // The same plans, outside of a COPY, and then in another one.
            client
                .batch_execute("INSERT INTO t (v) VALUES (1)")
                .with_context(|| format!("{what}: an INSERT after the COPY"))?;
            send(client, copy, 0..ROWS).with_context(|| format!("{what}: another COPY"))?;
            let calls = 2 * times + i64::from(!create.is_empty());
            let row = client.query_one(counted, &[])?;
            assert_eq!(row.get::<_, i64>(0), 2 * rows + 1, "{what}: rows");
            assert_eq!(row.get::<_, i64>(1), made * calls, "{what}: rows beside");
            let ids = ids::fetch(client, "SELECT id FROM t UNION ALL SELECT id FROM other")?;
            seen += ids.len();
            all.extend(ids);
            nothing_is_left(client, &what)?;
        }
        println!(
            "copy: {place}: {} deeds, {} IDs, {how:?}",
            DEEDS.len(),
            grouped(u64::try_from(seen)?)
        );
    }
    let tally = Tally::of(all);
    println!("copy: what runs during a COPY: {tally}");
    tally.assert_unique();
    Ok(())
}

/// A COPY that fails: its form, its input, the SQLSTATE.
#[rustfmt::skip]
const FAILING: &[(&str, &str, &str, &str)] = &[
    ("bad input", COPY, "1\n2\nthree\n", "22P02"),
    ("a unique violation", "COPY u (v) FROM STDIN", "1\n2\n1\n", "23505"),
    ("a trigger's error", "COPY fails_after (v) FROM STDIN", "1\n2\n3\n", "22012"),
    ("a BEFORE trigger's error", "COPY fails_before (v) FROM STDIN", "1\n2\n3\n", "22012"),
    ("an error in a trigger's COPY", "COPY fails_nested (v) FROM STDIN", "1\n2\n3\n", "58P01"),
    ("an error in WHERE", "COPY t (v) FROM STDIN WHERE 1 / (v - 2) < 5", "1\n2\n3\n", "22012"),
    ("an error in WHERE before the first row", "COPY t (v) FROM PROGRAM 'echo 1' WHERE v", "", "42804"),
    ("a CHECK", "COPY c (v) FROM STDIN", "1\n2\n-3\n", "23514"),
    ("no partition", "COPY p (v) FROM STDIN", "1\n2\n30\n", "23514"),
    ("no such table", "COPY nowhere (v) FROM PROGRAM 'echo 1'", "", "42P01"),
    ("no such column", "COPY t (w) FROM PROGRAM 'echo 1'", "", "42703"),
    ("no such file", "COPY t (v) FROM '/nowhere/at/all'", "", "58P01"),
];

#[test]
fn nothing_is_left_after_a_copy_that_fails() -> Result<()> {
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(&format!(
        "{TABLES};
         CREATE TABLE u (id bigint DEFAULT snowflake_nextval(), v int UNIQUE);
         CREATE TABLE c (id bigint DEFAULT snowflake_nextval(), v int CHECK (v > 0));
         CREATE TABLE p (id bigint DEFAULT snowflake_nextval(), v int) PARTITION BY RANGE (v);
         CREATE TABLE p_one PARTITION OF p FOR VALUES FROM (0) TO (10);
         CREATE TABLE fails_after (id bigint DEFAULT snowflake_nextval(), v int);
         CREATE TABLE fails_before (LIKE fails_after INCLUDING DEFAULTS);
         CREATE TABLE fails_nested (LIKE fails_after INCLUDING DEFAULTS);
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN
                 INSERT INTO other (v) VALUES (1 / (NEW.v - 2));
                 RETURN NEW;
             END $$;
         CREATE FUNCTION fail_nested() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN COPY other (v) FROM '/nowhere/at/all'; RETURN NEW; END $$;
         CREATE TRIGGER fail AFTER INSERT ON fails_after FOR EACH ROW EXECUTE FUNCTION fail();
         CREATE TRIGGER fail BEFORE INSERT ON fails_before FOR EACH ROW EXECUTE FUNCTION fail();
         CREATE TRIGGER fail AFTER INSERT ON fails_nested
             FOR EACH ROW EXECUTE FUNCTION fail_nested();
         CREATE TABLE grown (v int);
         INSERT INTO grown SELECT generate_series(1, 50)"
    ))?;
    for &(what, copy, lines, state) in FAILING {
        let fail = |client: &mut Client| -> Result<()> {
            let refused = refused_copy(client, copy, lines)?;
            assert_eq!(refused.sqlstate, state, "{what}: {refused}");
            Ok(())
        };
        next_statements(client, what, fail)?;
        fail(client)?;
        let refused = client.expect_error("SELECT snowflake_internal.copy_nextval()")?;
        assert_eq!(refused.sqlstate, "0A000", "{what}: {refused}");

        // In a subtransaction that is rolled back, between two that are kept.
        client.batch_execute("TRUNCATE t; BEGIN")?;
        send(client, COPY, 0..20)?;
        client.batch_execute("SAVEPOINT s")?;
        send(client, COPY, 0..20)?;
        fail(client)?;
        client.batch_execute("ROLLBACK TO s")?;
        client.batch_execute(
            "ALTER TABLE grown ADD COLUMN id bigint UNIQUE DEFAULT snowflake_nextval();
             ALTER TABLE grown DROP COLUMN id;
             INSERT INTO t (v) VALUES (1)",
        )?;
        send(client, COPY, 0..20)?;
        client.batch_execute("COMMIT")?;
        client.answers("SELECT count(DISTINCT id) FROM t", "41")?;
        nothing_is_left(client, what)?;
        sent(client, &format!("after {what}"), "t", 50, How::Batched)?;
    }
    Ok(())
}

/// The very next statement, where what was left behind would show.
fn next_statements(
    client: &mut Client,
    what: &str,
    fail: impl Fn(&mut Client) -> Result<()>,
) -> Result<()> {
    for next in [
        "ALTER TABLE grown ADD COLUMN id bigint DEFAULT snowflake_nextval()",
        "CREATE TABLE alike (LIKE other INCLUDING DEFAULTS); INSERT INTO alike (v) VALUES (1)",
        "INSERT INTO other (v) VALUES (1)",
        "SELECT snowflake_nextval()",
        "DO $$ BEGIN PERFORM snowflake_nextval(); INSERT INTO other (v) VALUES (1); END $$",
    ] {
        fail(client)?;
        client
            .batch_execute(next)
            .with_context(|| format!("{what}, then {next}"))?;
        if next.starts_with("ALTER") {
            client.answers("SELECT count(DISTINCT id) FROM grown", "50")?;
            client.batch_execute("ALTER TABLE grown DROP COLUMN id")?;
        }
        assert_no_copy_default(client, what)?;
        client.batch_execute("DROP TABLE IF EXISTS alike")?;
    }
    Ok(())
}

#[test]
fn nothing_is_left_after_a_copy_that_is_cancelled_or_abandoned() -> Result<()> {
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    let other = &mut cluster.connect()?;
    client.batch_execute(TABLES)?;
    let pid = ids::backend_pid(client)?;

    let mut writer = client.copy_in(COPY)?;
    writer.write_all(numbers(20_000).as_bytes())?;
    writer.flush()?;
    let waiting = format!(
        "SELECT coalesce(bool_or(wait_event = 'ClientRead' AND state = 'active'), false)
         FROM pg_stat_activity WHERE pid = {pid}"
    );
    other.wait_until(&waiting)?;
    let cancelled: bool = other
        .query_one("SELECT pg_cancel_backend($1)", &[&pid])?
        .get(0);
    assert!(cancelled);
    // A COPY that waits for its client sees it with the next line.
    writer.write_all(numbers(20_000).as_bytes())?;
    let error = writer.finish().expect_err("it was cancelled");
    let refused = ServerError::from_error(error)?;
    assert_eq!(refused.sqlstate, "57014", "{refused}");
    nothing_is_left(client, "cancelled")?;
    sent(client, "after a cancel", "t", 100, How::Batched)?;

    // What the client gives up itself: CopyFail.
    let mut writer = client.copy_in(COPY)?;
    writer.write_all(numbers(5_000).as_bytes())?;
    drop(writer);
    sent(client, "after a CopyFail", "t", 100, How::Batched)?;

    // A client that is gone in the middle.
    let mut psql = cluster
        .client_command("psql", "postgres")
        .args(["-Xq", "-c", "\\copy t (v) from pstdin"])
        .env("PGAPPNAME", "leaving")
        .stdin(Stdio::piped())
        .spawn()?;
    let mut input = psql.stdin.take().context("its input is a pipe")?;
    input.write_all(numbers(20_000).as_bytes())?;
    input.flush()?;
    other.wait_until(
        "SELECT coalesce(bool_or(wait_event = 'ClientRead' AND query LIKE 'COPY%'), false)
         FROM pg_stat_activity WHERE application_name = 'leaving'",
    )?;
    psql.kill()?;
    psql.wait()?;
    other.wait_until(
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'leaving'",
    )?;
    other.answers("SELECT count(*) FROM t", "200")?;
    nothing_is_left(other, "beside a client that has gone")?;
    Ok(())
}

#[test]
fn a_refusal_names_the_function_that_was_written() -> Result<()> {
    let cluster = server()?;
    let owner = &mut cluster.connect()?;
    owner.batch_execute(&format!(
        "{TABLES};
         CREATE ROLE loader LOGIN;
         CREATE ROLE keeper LOGIN;
         GRANT INSERT, SELECT ON t TO loader;
         ALTER TABLE t OWNER TO keeper"
    ))?;
    let loader = || cluster.connect_as("loader", "postgres");
    let load = |how: How, what: &str| -> Result<()> {
        let from = here(&mut cluster.connect()?)?;
        send(&mut loader()?, COPY, 0..100)?;
        let records = Records::since(&mut cluster.connect()?, &from, "t")?;
        records.assert(how, what);
        Ok(())
    };
    load(How::Batched, "a role that is not the owner")?;

    owner.batch_execute(
        "REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_nextval() FROM PUBLIC",
    )?;
    load(How::OneByOne, "a role that may not execute copy_nextval")?;
    owner.batch_execute("GRANT EXECUTE ON FUNCTION snowflake_internal.copy_nextval() TO loader")?;
    load(How::Batched, "a role that may execute copy_nextval again")?;

    owner.batch_execute("REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC")?;
    let message = "permission denied for function snowflake_nextval";
    let mut refusals = 0;
    for grants in [
        "GRANT EXECUTE ON FUNCTION snowflake_internal.copy_nextval() TO loader",
        "REVOKE EXECUTE ON FUNCTION snowflake_internal.copy_nextval() FROM loader",
    ] {
        owner.batch_execute(grants)?;
        let refused = refused_copy(&mut loader()?, COPY, "1\n")?;
        assert_eq!(refused.sqlstate, "42501", "{refused}");
        assert_eq!(refused.message, message);
        let refused = loader()?.expect_error("INSERT INTO t (v) VALUES (1)")?;
        assert_eq!(refused.sqlstate, "42501", "{refused}");
        assert_eq!(refused.message, message);
        refusals += 2;
    }
    // The owner of a function that copies with its own rights.
    owner.batch_execute(
        "CREATE FUNCTION load() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS
             $$ BEGIN COPY t (v) FROM PROGRAM 'seq 100'; END $$",
    )?;
    let from = here(owner)?;
    let mut session = loader()?;
    // Where the library is not preloaded, this loads it: a COPY in a function that is a session's
    // first statement inserts rows one by one.
    session.batch_execute("SELECT snowflake_timestamp(1)")?;
    session.batch_execute("SELECT load()")?;
    Records::since(owner, &from, "t")?.assert(How::Batched, "SECURITY DEFINER");
    let tally = Tally::of(ids::fetch(owner, "SELECT id FROM t")?);
    println!("copy: {refusals} refusals name snowflake_nextval; {tally}");
    assert_eq!(tally.ids, 400);
    tally.assert_unique();
    nothing_is_left(owner, "privileges")
}

#[test]
fn copy_works_beside_the_hook_of_another_extension() -> Result<()> {
    let probe = Cluster::builder().prepare()?;
    let control = probe
        .installation()
        .extensions
        .join("pg_stat_statements.control");
    drop(probe);
    if !control.exists() {
        println!("copy: pg_stat_statements is not installed: skipped");
        return Ok(());
    }
    for libraries in [
        "pg_stat_statements, snowflake",
        "snowflake, pg_stat_statements",
    ] {
        let cluster = Cluster::builder()
            .without_preload()
            .conf("snowflake.node_id", 1)
            .conf("shared_preload_libraries", libraries)
            .conf("pg_stat_statements.track", "all")
            .start_with_extension()?;
        let client = &mut cluster.connect()?;
        client.batch_execute(&format!(
            "CREATE EXTENSION pg_walinspect; CREATE EXTENSION pg_stat_statements; {TABLES};
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN COPY other (v) FROM PROGRAM 'seq 3'; RETURN NEW; END $$;
             SELECT pg_stat_statements_reset()"
        ))?;
        sent(client, libraries, "t", 1_000, How::Batched)?;
        client.batch_execute("CREATE TRIGGER note AFTER INSERT ON t EXECUTE FUNCTION note()")?;
        send(client, COPY, 0..1_000)?;
        let refused = refused_copy(client, COPY, "three\n")?;
        assert_eq!(refused.sqlstate, "22P02", "{refused}");
        client.batch_execute("DISCARD SEQUENCES")?;
        for (like, calls, rows) in [
            (COPY, 2, 2_000),
            ("COPY other (v) FROM PROGRAM%", 1, 3),
            ("CREATE TRIGGER note%", 1, 0),
            ("DISCARD SEQUENCES", 1, 0),
        ] {
            let row = client.query_one(
                "SELECT coalesce(sum(calls), 0)::bigint, coalesce(sum(rows), 0)::bigint
                 FROM pg_stat_statements WHERE query LIKE $1",
                &[&like],
            )?;
            let tracked: (i64, i64) = (row.get(0), row.get(1));
            assert_eq!(tracked, (calls, rows), "{libraries}: {like}");
        }
        nothing_is_left(client, libraries)?;
    }
    Ok(())
}

/// Statements that fail, each in its own way.
const REFUSED: &[&str] = &[
    "ALTER TABLE data ADD CONSTRAINT small CHECK (v < 3)",
    "ALTER TABLE data ADD CONSTRAINT known FOREIGN KEY (v) REFERENCES named (v)",
    "ALTER TABLE data ALTER COLUMN w SET NOT NULL",
    "ALTER TABLE data ALTER COLUMN note TYPE int USING note::int",
    "CREATE UNIQUE INDEX one_each ON data (same)",
    "CREATE INDEX dividing ON data ((1 / (v - 3)))",
    "COPY data (v) FROM PROGRAM 'printf \"1\\ntwo\\n\"'",
    "COPY named (v, w) FROM PROGRAM 'printf \"11\\t1\\n12\\t\\\\N\\n\"'",
    "COPY named (v, w) FROM PROGRAM 'printf \"13\\t1\\n1\\t1\\n\"'",
    "COPY data (v, w) FROM PROGRAM 'printf \"13\\t1\\n1\\n\"'",
    "COPY data (v) FROM PROGRAM 'seq 5' WHERE 1 / (v - 3) < 2",
    "COPY data TO '/nowhere/at/all'",
    "DROP TABLE data",
    "DROP FUNCTION inner_one(int)",
    "DO $$ BEGIN PERFORM outer_one(0); END $$",
    "EXECUTE dividing",
    "CALL proceed(0)",
    "REFRESH MATERIALIZED VIEW kept",
    "CREATE TABLE data (v int)",
    "CREATE TABLE made AS SELECT 1 / (v - 3) FROM data",
    "CREATE DOMAIN bad AS int DEFAULT 'x' CHECK (VALUE > 'y')",
    "EXPLAIN ANALYZE SELECT outer_one(0)",
    "FETCH FROM nowhere",
    "SELECT 1 / 0",
    "INSERT INTO named VALUES (1, 1)",
    "VACUUM nowhere",
    "SET statement_timeout = 'x'",
    "GRANT SELECT ON data TO nobody_here",
    "LOAD 'no_such_library'",
];

#[test]
fn errors_of_other_statements_keep_their_fields() -> Result<()> {
    let mut answers: Vec<Vec<String>> = Vec::new();
    for builder in [Cluster::builder().without_preload(), Cluster::node(1)] {
        let cluster = builder.start()?;
        let client = &mut cluster.connect()?;
        client.batch_execute(
            "CREATE TABLE data (v int, w int, same int DEFAULT 1, note text DEFAULT 'n');
             INSERT INTO data (v) SELECT generate_series(1, 5);
             CREATE TABLE named (v int PRIMARY KEY, w int NOT NULL);
             INSERT INTO named VALUES (1, 1);
             CREATE VIEW seen AS SELECT v FROM data;
             CREATE FUNCTION inner_one(n int) RETURNS int LANGUAGE plpgsql AS
                 $$ BEGIN RETURN 1 / n; END $$;
             CREATE FUNCTION outer_one(n int) RETURNS int LANGUAGE plpgsql AS
                 $$ BEGIN EXECUTE 'SELECT inner_one($1)' USING n; RETURN 1; END $$;
             CREATE PROCEDURE proceed(n int) LANGUAGE plpgsql AS
                 $$ BEGIN
                     EXECUTE format('DO %L', format('BEGIN PERFORM outer_one(%s); END', n));
                 END $$;
             CREATE VIEW calling AS SELECT inner_one(1);
             CREATE MATERIALIZED VIEW kept AS SELECT inner_one(v) FROM data;
             INSERT INTO data (v) VALUES (0);
             PREPARE dividing AS SELECT 1 / v FROM generate_series(0, 3) AS v",
        )?;
        let mut fields = Vec::new();
        for &statement in REFUSED {
            let error = client
                .simple_query(statement)
                .err()
                .with_context(|| format!("this should have been refused: {statement}"))?;
            let error = error.as_db_error().context("no answer of the server")?;
            fields.push(format!(
                "{} {} {:?}\n detail {:?}\n hint {:?}\n context {:?}\n {:?} {:?} {:?} {:?} {:?}\n position {:?}\n from {:?} {:?} {:?}",
                error.severity(),
                error.code().code(),
                error.message(),
                error.detail(),
                error.hint(),
                error.where_(),
                error.schema(),
                error.table(),
                error.column(),
                error.datatype(),
                error.constraint(),
                error.position(),
                error.file(),
                error.line(),
                error.routine(),
            ));
        }
        answers.push(fields);
    }
    let (mut with_context, mut with_table, mut with_constraint) = (0, 0, 0);
    for (index, &statement) in REFUSED.iter().enumerate() {
        assert_eq!(answers[0][index], answers[1][index], "{statement}");
        let fields = &answers[1][index];
        with_context += usize::from(!fields.contains("context None"));
        with_table += usize::from(fields.contains("Some(\"public\") Some("));
        with_constraint += usize::from(fields.contains("None Some(\"small\")"))
            + usize::from(fields.contains("Some(\"one_each\")"));
    }
    let copy = answers[1]
        .iter()
        .find(|fields| fields.contains("COPY data, line 2, column v"));
    assert!(copy.is_some(), "a COPY's context is missing: {answers:?}");
    assert!(with_context >= 8 && with_table >= 4 && with_constraint == 2);
    Ok(())
}

#[test]
fn discard_forgets_the_last_id() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let client = &mut cluster.connect()?;
    for (statement, forgets) in [
        ("DISCARD ALL", true),
        ("DISCARD SEQUENCES", true),
        ("DISCARD PLANS", false),
        ("DISCARD TEMP", false),
        ("RESET ALL", false),
        ("DEALLOCATE ALL", false),
        ("DO $$ BEGIN EXECUTE 'DISCARD SEQUENCES'; END $$", true),
        ("BEGIN; DISCARD SEQUENCES; COMMIT", true),
    ] {
        let id = ids::one(client)?;
        client.batch_execute(statement)?;
        if forgets {
            let refused = client.expect_error("SELECT snowflake_currval()")?;
            assert_eq!(refused.sqlstate, "55000", "{statement}: {refused}");
        } else {
            let last: i64 = client.query_one("SELECT snowflake_currval()", &[])?.get(0);
            assert_eq!(last, id, "{statement}");
        }
        let next = ids::one(client)?;
        assert!(next > id, "{statement}: {next} came after {id}");
    }
    // In a transaction block DISCARD ALL is refused, and forgets nothing.
    let id = ids::one(client)?;
    client.batch_execute("BEGIN")?;
    assert_eq!(client.expect_error("DISCARD ALL")?.sqlstate, "25001");
    client.batch_execute("ROLLBACK")?;
    let last: i64 = client.query_one("SELECT snowflake_currval()", &[])?.get(0);
    assert_eq!(last, id);
    Ok(())
}

#[test]
fn only_copy_may_call_the_function_it_calls() -> Result<()> {
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(&format!(
        "{TABLES};
         CREATE TABLE wrong (id bigint DEFAULT snowflake_internal.copy_nextval(), v int);
         CREATE FUNCTION wrong_sql() RETURNS bigint LANGUAGE sql AS
             'SELECT snowflake_internal.copy_nextval()';
         CREATE FUNCTION wrong_plpgsql() RETURNS bigint LANGUAGE plpgsql AS
             'BEGIN RETURN snowflake_internal.copy_nextval(); END';
         PREPARE wrong AS SELECT snowflake_internal.copy_nextval()"
    ))?;
    let statements = [
        "SELECT snowflake_internal.copy_nextval()",
        "SELECT snowflake_internal.copy_nextval() FROM generate_series(1, 3)",
        "VALUES (snowflake_internal.copy_nextval())",
        "INSERT INTO wrong (v) VALUES (1)",
        "INSERT INTO t VALUES (snowflake_internal.copy_nextval(), 1)",
        "SELECT wrong_sql()",
        "SELECT wrong_plpgsql()",
        "DO 'BEGIN PERFORM snowflake_internal.copy_nextval(); END'",
        "EXECUTE wrong",
        "CREATE TABLE made AS SELECT snowflake_internal.copy_nextval()",
        "ALTER TABLE t ADD COLUMN w bigint DEFAULT snowflake_internal.copy_nextval()",
        "COPY (SELECT snowflake_internal.copy_nextval()) TO STDOUT",
        "COPY (SELECT 1 WHERE snowflake_internal.copy_nextval() > 0) TO PROGRAM 'cat > /dev/null'",
    ];
    client.batch_execute("INSERT INTO t (v) VALUES (1)")?;
    for statement in statements {
        let refused = if statement.contains("STDOUT") {
            let mut reader = client.copy_out(statement)?;
            let error = reader.read_to_end(&mut Vec::new()).expect_err("refused");
            let error = error.into_inner().and_then(|it| it.downcast().ok());
            ServerError::from_error(*error.context("the server's error")?)?
        } else {
            client.expect_error(statement)?
        };
        assert_eq!(refused.sqlstate, "0A000", "{statement}: {refused}");
        assert_eq!(
            refused.message, "function \"snowflake_internal.copy_nextval\" was not called by COPY",
            "{statement}"
        );
        assert_eq!(refused.hint, "Call snowflake_nextval.", "{statement}");
    }
    // A COPY runs, but another statement in it.
    client.batch_execute(
        "CREATE FUNCTION create_in_copy() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN
                 CREATE TEMP TABLE made AS SELECT snowflake_internal.copy_nextval();
                 RETURN NEW;
             END $$;
         CREATE TRIGGER act AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION create_in_copy()",
    )?;
    let refused = refused_copy(client, COPY, "1\n")?;
    assert_eq!(refused.sqlstate, "0A000", "{refused}");
    Ok(())
}

#[test]
fn copy_works_in_any_schema_and_is_refused_without_preload() -> Result<()> {
    let cluster = Cluster::builder().without_preload().start()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(&format!("CREATE EXTENSION snowflake; {TABLES}"))?;
    for _ in 0..2 {
        let refused = refused_copy(client, COPY, "1\n2\n")?;
        assert_eq!(refused.sqlstate, "55000", "{refused}");
        assert!(refused.hint.contains(what_is_missing()?), "{refused}");
        let refused = client.expect_error("INSERT INTO t (v) VALUES (1)")?;
        assert_eq!(refused.sqlstate, "55000", "{refused}");
    }
    send_text(client, "COPY t (id, v) FROM STDIN", "1\t1\n2\t2\n")?;
    drop(cluster);

    let cluster = Cluster::node(1).start()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(
        "CREATE EXTENSION pg_walinspect;
         CREATE SCHEMA s;
         CREATE EXTENSION snowflake SCHEMA s;
         SET search_path = public, s",
    )?;
    client.batch_execute(TABLES)?;
    sent(client, "in another schema", "t", 500, How::Batched)?;
    let path = "not on the path";
    let from = here(client)?;
    client.batch_execute("SET search_path = ''")?;
    send(client, "COPY public.t (v) FROM STDIN", 0..500)?;
    client.batch_execute("SET search_path = public, s")?;
    Records::since(client, &from, "t")?.assert(How::Batched, path);

    for time in 1..=2 {
        client.batch_execute(
            "DROP EXTENSION snowflake CASCADE;
             CREATE EXTENSION snowflake SCHEMA s;
             ALTER TABLE t ALTER COLUMN id SET DEFAULT s.snowflake_nextval();
             ALTER TABLE other ALTER COLUMN id SET DEFAULT s.snowflake_nextval()",
        )?;
        let what = format!("dropped and created again, {time}");
        sent(client, &what, "t", 500, How::Batched)?;
    }
    // Without that function the one of the default is called.
    client.batch_execute(
        "ALTER EXTENSION snowflake DROP FUNCTION snowflake_internal.copy_nextval();
         DROP FUNCTION snowflake_internal.copy_nextval()",
    )?;
    let from = here(client)?;
    send(client, COPY, 0..500)?;
    Records::since(client, &from, "t")?.assert(How::OneByOne, "no copy_nextval");
    let tally = Tally::of(ids::fetch(client, "SELECT id FROM t")?);
    println!("copy: in another schema: {tally}");
    assert_eq!(tally.ids, 2_500);
    tally.assert_unique();
    Ok(())
}

#[test]
fn four_sessions_copy_in_batches_at_once() -> Result<()> {
    const SESSIONS: usize = 4;
    let rows_each: i32 = tier::size(50_000, 200_000);
    let cluster = server()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(TABLES)?;
    let path = file(&cluster, "numbers", &numbers(rows_each))?;
    let from = here(client)?;
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let config = cluster.config("postgres", "postgres");
            let copy = format!("COPY t (v) FROM '{path}'");
            sessions.push(scope.spawn(move || -> Result<i64> {
                let mut client = config.connect(NoTls)?;
                client.batch_execute(&copy)?;
                ids::one(&mut client)
            }));
        }
        for session in sessions {
            session.join().expect("the thread ends")?;
        }
        Ok(())
    })?;
    let took = begun.elapsed();
    let tally = Tally::of(ids::fetch(client, "SELECT id FROM t")?);
    // Records of whole kinds: quicker than one by one, and the catalogs get few.
    let row = client.query_one(
        &format!(
            r#"SELECT coalesce(sum(count) FILTER (WHERE kind LIKE 'Heap2/MULTI_INSERT%'), 0)::bigint,
                      coalesce(sum(count) FILTER (WHERE kind LIKE 'Heap/INSERT%'), 0)::bigint
               FROM pg_get_wal_stats('{from}', pg_current_wal_flush_lsn(), true)
                    AS s (kind, count)"#
        ),
        &[],
    )?;
    let (batches, one_by_one): (i64, i64) = (row.get(0), row.get(1));
    assert!(
        batches > i64::from(rows_each) / 200 && one_by_one < 100,
        "{batches} batches, {one_by_one} rows one by one"
    );
    println!("copy: {SESSIONS} sessions at once, {batches} batches, {took:.1?}: {tally}");
    assert_eq!(tally.ids, SESSIONS * usize::try_from(rows_each)?);
    tally.assert_unique();
    Ok(())
}
