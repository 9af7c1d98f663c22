//! The library of the new version with the catalog of the earlier one: for as
//! long as an administrator likes, until `ALTER EXTENSION ... UPDATE`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::ids::{self, Tally};
use snowflake_tests::query::{number, value};
use snowflake_tests::server_error::ServerError;

use super::{EARLIER, EARLIER_MARK, UPDATE, create_earlier, earlier_in_use};
use crate::support::{column, refused, run};

#[test]
fn no_id_repeats_after_an_upgrade_of_the_extension() -> Result<()> {
    let (cluster, mut old, mut app) = earlier_in_use()?;
    let mut received = ids::nextval(&mut app, 20_000)?;
    old.batch_execute(UPDATE)?;
    // A session from before and a new one.
    let mut new = cluster.connect_as("app", "old")?;
    for _ in 0..3 {
        received.extend(ids::nextval(&mut app, 10_000)?);
        received.extend(ids::nextval(&mut new, 10_000)?);
    }
    let tally = Tally::of(received);
    println!("upgrade: IDs before and after: {tally}");
    tally.assert_unique();
    Ok(())
}

/// The library may be newer than the extension of a database for as long as the
/// administrator likes: it finds the mark where that version has it.
#[test]
fn no_id_repeats_with_the_catalog_of_the_earlier_version() -> Result<()> {
    let mut cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)")?;
    let mut received = Vec::new();
    let mut reserved = 0;
    for _ in 0..3 {
        let mut session = cluster.connect_to("old")?;
        let ids = ids::nextval(&mut session, 10_000)?;
        assert!(ids[0] > reserved, "{} is below the mark {reserved}", ids[0]);
        received.extend(ids);
        received.extend(ids::fetch(
            &mut session,
            "SELECT * FROM snowflake_nextvals(10000)",
        )?);
        session.batch_execute("COPY t (n) FROM PROGRAM 'seq 5000'")?;
        reserved = number(
            &mut session,
            &format!("SELECT last_value FROM {EARLIER_MARK}"),
        )?;
        let state = "SELECT count(*) FROM snowflake_status WHERE reserved_until > now()";
        assert_eq!(number(&mut session, state)?, 1);
        cluster.kill9_all()?;
        cluster.start()?;
    }
    let mut session = cluster.connect_to("old")?;
    session.batch_execute(UPDATE)?;
    let after = ids::nextval(&mut session, 10_000)?;
    assert!(
        after[0] > reserved,
        "{} is below the mark {reserved}",
        after[0]
    );
    received.extend(after);
    received.extend(ids::fetch(&mut session, "SELECT id FROM t")?);
    let tally = Tally::of(received);
    println!("upgrade: IDs with the catalog of {EARLIER}, 3 x kill -9: {tally}");
    tally.assert_unique();
    Ok(())
}

/// COPY gets IDs in batches through the earlier catalog's functions too.
#[test]
fn copy_inserts_in_batches_with_the_catalog_of_the_earlier_version() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut old = create_earlier(&cluster, "old")?;
    let wal_of_copy = |database: &mut Client, batches: bool| -> Result<i64> {
        database.batch_execute(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint DEFAULT snowflake_nextval(), n int);
             SET snowflake.copy_multi_insert = {batches}"
        ))?;
        let begun = value(database, "SELECT pg_current_wal_insert_lsn()")?;
        database.batch_execute("COPY t (n) FROM PROGRAM 'seq 20000'")?;
        number(
            database,
            &format!("SELECT (pg_current_wal_insert_lsn() - '{begun}')::bigint"),
        )
    };
    let (batched, single) = (wal_of_copy(&mut old, true)?, wal_of_copy(&mut old, false)?);
    old.batch_execute(UPDATE)?;
    let updated = wal_of_copy(&mut old, true)?;
    println!(
        "upgrade: WAL of a COPY of 20,000 rows: {single} bytes row by row, {batched} in batches, {updated} after the update"
    );
    assert!(batched * 10 < single * 8, "{batched} {single}");
    assert!(updated * 10 < single * 8, "{updated} {single}");
    Ok(())
}

/// Those that no state of a table makes succeed in this way: they are called by
/// the server or by others with what these have prepared, in a transaction of
/// their own, or for partitioned tables. Other tests use them.
const REFUSED: &[&str] = &[
    "snowflake_copy_nextval",
    "snowflake_nextval_support",
    "snowflake_origins_stay",
    "snowflake_shadow",
    "snowflake_partition_ddl",
    "snowflake_migrate_backfill",
    "snowflake_migration_check",
    "snowflake_migration_require_ready",
    "snowflake_migration_swap",
    "snowflake_migration_swap_under_lock",
    "snowflake_migration_restore_identity",
    "snowflake_migration_restore_sequence",
];

/// One call of a routine of the earlier version, with a value for each argument.
/// Those that make sense in the state of the tables do something; others are
/// refused.
fn call(routine: &Routine, table: &str) -> Option<String> {
    let mut arguments = Vec::new();
    for (kind, name) in routine.types.iter().zip(&routine.names) {
        arguments.push(match (kind.as_str(), name.as_str()) {
            ("internal", _) => return None,
            ("regclass", "sequence") => {
                "pg_get_serial_sequence('own.s', 'id')::regclass".to_owned()
            }
            ("regclass", _) => format!("'{table}'::regclass"),
            ("regclass[]", _) => format!("ARRAY['{table}'::regclass]"),
            ("name", "original") => "'id'::name".to_owned(),
            ("name", _) => "'id'::name".to_owned(),
            ("text", "layout") => "'twitter'".to_owned(),
            ("text", "mode") => "'ACCESS EXCLUSIVE'".to_owned(),
            ("text", "kind") => "'column'".to_owned(),
            ("text", "encoding") => "'base32'".to_owned(),
            ("text", "body") => "'BEGIN END'".to_owned(),
            ("text", "text" | "encoded") => "'0000000000000'".to_owned(),
            ("text", _) => "''".to_owned(),
            ("text[]", _) => "'{}'::text[]".to_owned(),
            ("bigint", _) => "250371952475230209".to_owned(),
            ("integer" | "smallint", _) => "3".to_owned(),
            ("smallint[]", _) => "'{1}'::smallint[]".to_owned(),
            ("boolean", _) => "false".to_owned(),
            ("oid", _) => "'int4'::regtype::oid".to_owned(),
            ("jsonb", _) => "'{}'::jsonb".to_owned(),
            ("interval", _) => "'1 second'::interval".to_owned(),
            ("timestamp with time zone", _) => "now()".to_owned(),
            ("pg_lsn", _) => "'0/0'::pg_lsn".to_owned(),
            ("snowflake_origins", _) => "(SELECT o FROM snowflake_origins AS o LIMIT 1)".to_owned(),
            ("snowflake_progress", _) => {
                "(SELECT p FROM snowflake_progress AS p LIMIT 1)".to_owned()
            }
            (kind, _) => format!("NULL::{kind}"),
        });
    }
    let arguments = arguments.join(", ");
    Some(if routine.is_procedure {
        format!("CALL {}({arguments})", routine.name)
    } else {
        format!("SELECT * FROM {}({arguments})", routine.name)
    })
}

/// A function or procedure of the extension.
struct Routine {
    name: String,
    types: Vec<String>,
    names: Vec<String>,
    is_procedure: bool,
}

fn routines(client: &mut Client) -> Result<Vec<Routine>> {
    let rows = client.query(
        "SELECT p.oid::regproc::text, ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS u (t, n) ORDER BY n),
                ARRAY(SELECT coalesce(a.name, '') FROM generate_series(1, p.pronargs) AS n
                      LEFT JOIN LATERAL (SELECT p.proargnames[n] AS name) AS a ON true ORDER BY n), p.prokind = 'p'
         FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
         JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid AND e.extname = 'snowflake'
         ORDER BY p.oid",
        &[],
    )?;
    Ok(rows
        .iter()
        .map(|row| Routine {
            name: row.get(0),
            types: row.get(1),
            names: row.get(2),
            is_procedure: row.get(3),
        })
        .collect())
}

/// Every function and procedure of the earlier version, for tables in every state
/// of a migration.
#[test]
fn no_function_of_the_earlier_version_breaks_with_the_new_library() -> Result<()> {
    let (cluster, mut old, mut app) = earlier_in_use()?;
    // A serial column, and one that is half migrated in a maintenance window.
    app.batch_execute(
        "CREATE TABLE own.s (id serial PRIMARY KEY, n int); INSERT INTO own.s (n) VALUES (1), (2);
         CREATE TABLE own.h (id serial PRIMARY KEY, n int); INSERT INTO own.h (n) VALUES (1), (2)",
    )?;
    let plan: Vec<String> = column(
        &mut app,
        "SELECT statement FROM snowflake_migration_plan('own.h') ORDER BY step",
    )?;
    run(&mut app, &plan[..1])?;
    let mut received = ids::nextval(&mut app, 1_000)?;
    let routines = routines(&mut old)?;
    assert!(routines.len() > 100, "{}", routines.len());
    let (mut calls, mut succeeded) = (0, BTreeSet::new());
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    for user in ["postgres", "app"] {
        for table in ["own.s", "own.h", "own.t", "own.i", "own.o"] {
            let mut session = cluster.connect_as(user, "old")?;
            session.batch_execute(
                "SET search_path = public; SET statement_timeout = '10s'; SET lock_timeout = '1s'",
            )?;
            received.extend(ids::nextval(&mut session, 1_000)?);
            for routine in &routines {
                let Some(call) = call(routine, table) else {
                    continue;
                };
                calls += 1;
                // A procedure that ends transactions is refused in this one.
                session.batch_execute("BEGIN")?;
                match session.simple_query(&call) {
                    Ok(_) => {
                        succeeded.insert(routine.name.clone());
                    }
                    Err(error) => {
                        let error = ServerError::from_error(error)
                            .with_context(|| format!("as {user}: {call}: the session broke"))?;
                        ensure!(
                            !error.sqlstate.starts_with("XX"),
                            "as {user}: {call}: {error}"
                        );
                        *refusals
                            .entry(format!("{} {}", error.sqlstate, routine.name))
                            .or_default() += 1;
                    }
                }
                session.batch_execute("ROLLBACK")?;
            }
            received.extend(ids::nextval(&mut session, 1_000)?);
        }
    }
    let never: BTreeSet<&str> = routines
        .iter()
        .map(|routine| routine.name.as_str())
        .filter(|name| !succeeded.contains(*name))
        .collect();
    println!(
        "upgrade: {calls} calls of the {} routines of {EARLIER}: {} names succeed, {} are always refused; refusals: {refusals:?}",
        routines.len(),
        succeeded.len(),
        never.len()
    );
    assert_eq!(never, REFUSED.iter().copied().collect());
    let log = cluster.log()?;
    ensure!(
        !log.contains("terminated by signal") && !log.contains("PANIC"),
        "{log}"
    );
    old.batch_execute(UPDATE)?;
    received.extend(ids::nextval(&mut old, 10_000)?);
    let tally = Tally::of(received);
    println!("upgrade: IDs between these calls: {tally}");
    tally.assert_unique();
    Ok(())
}

/// What a version does not have is refused as such: the statement that brings
/// it is in the documents.
#[test]
fn the_answers_are_those_of_the_new_version() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut old = create_earlier(&cluster, "old")?;
    let mut fresh = cluster.connect_to_new_database("fresh")?;
    let queries = [
        "SELECT snowflake_decode(250371952475230209)::text",
        "SELECT snowflake_decode(1541815603606036480, 'twitter')::text",
        "SELECT snowflake_explain(1541815603606036480, 'twitter')",
        "SELECT snowflake_timestamp(250371952475230209)::text",
        "SELECT snowflake_min_id('2026-11-22')::text",
        "SELECT snowflake_max_id('2026-11-22', 'discord')::text",
        "SELECT snowflake_compose('2026-11-22', 1, 2, 3)::text",
        "SELECT snowflake_to_text(250371952475230209)",
        "SELECT snowflake_from_text(snowflake_to_text(250371952475230209))::text",
        "SELECT string_agg(l::text, ',') FROM snowflake_layouts AS l",
        "SELECT layout FROM snowflake_status",
        "SELECT (SELECT count(*) FROM snowflake_stat_slots)::text",
    ];
    for query in queries {
        assert_eq!(
            value(&mut old, query)?,
            value(&mut fresh, query)?,
            "{query}"
        );
    }
    refused(&mut old, "SELECT snowflake_copy_nextval()", "0A000")?;
    for missing in ["snowflake_accept_layout()", "snowflake_migration_survey()"] {
        refused(&mut old, &format!("SELECT {missing}"), "42883")?;
    }
    Ok(())
}
