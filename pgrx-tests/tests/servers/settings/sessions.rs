//! What the functions of both extensions answer does not depend on the settings of the
//! session that calls them, of its role or of its database.

use crate::support::*;

/// Names, defaults, checks, indexes and views with what a setting could change.
const TABLES: &str = r#"
    CREATE SCHEMA own; SET search_path = own, public;
    CREATE TABLE orders (id serial PRIMARY KEY, note text DEFAULT E'a\\d' CHECK (note <> E'x\\s'), at timestamptz DEFAULT '2026-11-20 00:00+00', f real DEFAULT 1.1);
    CREATE TABLE "odd'\x" ("i\d'" serial PRIMARY KEY, note text);
    CREATE TABLE lines (order_id int REFERENCES orders, order_no int);
    CREATE TABLE history (order_id int);
    CREATE INDEX ON orders (id) WHERE at > '2026-11-21 00:00+00';
    CREATE INDEX ON orders (lower(note || E'\\')) WHERE at > '2026-11-21 00:00+00';
    CREATE VIEW noted AS SELECT id, note FROM orders WHERE note ~ E'^\\w' AND at > '2026-11-19 00:00+00';
    CREATE FUNCTION next_order() RETURNS bigint LANGUAGE sql COST 1234567 AS 'SELECT nextval(''own.orders_id_seq'')';
    CREATE TABLE parts (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
    INSERT INTO orders (note) SELECT 'a' FROM generate_series(1, 20); INSERT INTO lines SELECT id, id FROM orders; ANALYZE; RESET search_path"#;

const CALLS: [&str; 11] = [
    "SELECT * FROM snowflake_migrate.plan('own.orders')",
    "SELECT * FROM snowflake_migrate.plan('own.orders', online => true)",
    r#"SELECT * FROM snowflake_migrate.plan(E'own."odd''\\x"'::regclass)"#,
    "SELECT * FROM snowflake_migrate.ddl('own.orders', online => true, keep_sequence => true)",
    "SELECT * FROM snowflake_migrate.survey('own')",
    "SELECT * FROM snowflake_migrate.unlinked('own.orders')",
    "SELECT * FROM snowflake_migrate.audit()",
    "SELECT * FROM public.snowflake_audit_tables()",
    "SELECT * FROM snowflake_partitions.ddl('own.parts', '2026-03-01 00:00+00', '2026-03-04 00:00+00', '1 day', 'UTC')",
    "SELECT layout, nodes, ids_per_second FROM public.snowflake_layouts_for(4)",
    "SELECT public.snowflake_id_boundary('own.parts')",
];

/// The statements of whole migrations, which are executed and rolled back.
const MIGRATIONS: [&str; 3] = [
    "CALL snowflake_migrate.run('own.orders'); CALL snowflake_migrate.revert('own.orders')",
    "CALL snowflake_migrate.run('own.orders')",
    "CALL snowflake_migrate.run('own.orders', keep_sequence => true)",
];

/// In a push the first ones, which changed answers once.
const SETTINGS: [(&str, &str); 20] = [
    ("standard_conforming_strings", "off"),
    ("extra_float_digits", "-15"),
    ("restrict_nonsystem_relation_kind", "view, foreign-table"),
    ("datestyle", "SQL, DMY"),
    ("search_path", ""),
    ("intervalstyle", "sql_standard"),
    ("backslash_quote", "off"),
    ("bytea_output", "escape"),
    ("array_nulls", "off"),
    ("transform_null_equals", "on"),
    ("check_function_bodies", "off"),
    ("session_replication_role", "replica"),
    ("row_security", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("constraint_exclusion", "on"),
    ("from_collapse_limit", "1"),
    ("timezone", "Asia/Kathmandu"),
    ("jit", "off"),
    ("snowflake.enable_time_ranges", "off"),
];

/// They are printed, but change nothing else.
const PRINTED_SETTINGS: [(&str, &str); 2] = [
    ("quote_all_identifiers", "on"),
    ("default_tablespace", "pg_default"),
];

/// An answer as text, or an error. IDs of this moment are left out, times in the form of
/// the session, and the path of a script for the caller.
fn answer(client: &mut Client, call: &str) -> Result<String> {
    let query = format!(
        "SELECT coalesce(regexp_replace(regexp_replace(string_agg(a::text, chr(10)), '[0-9]{{17,}}', 'ID', 'g'),
                                        'SET search_path = [^;]*;|new rows get snowflake IDs from [^.]*', '', 'g'), '')
         FROM ({call}) AS a"
    );
    match client.query_one(&query, &[]) {
        Ok(row) => Ok(row.get(0)),
        Err(error) => Ok(ServerError::from_error(error)?.to_string()),
    }
}

/// Migrates, and returns what is there then, as `before_look` has it shown.
fn migrated(client: &mut Client, statements: &str, before_look: &str) -> Result<String> {
    let mut transaction = client.transaction()?;
    let migrated = transaction
        .batch_execute(statements)
        .and_then(|()| transaction.batch_execute(before_look));
    let state = match migrated {
        Ok(()) => transaction
            .query_one(
                "SELECT (SELECT string_agg(concat_ws(' ', a.attname, a.atttypid::regtype, pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attname)
                         FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                         WHERE a.attrelid = 'own.orders'::regclass AND a.attnum > 0 AND NOT a.attisdropped)
                     || (SELECT concat(count(*), md5(pg_get_viewdef('own.noted'::regclass))) FROM own.noted)
                     || (SELECT procost::numeric FROM pg_proc WHERE oid = 'own.next_order()'::regprocedure)",
                &[],
            )?
            .get(0),
        Err(error) => ServerError::from_error(error)?.to_string(),
    };
    transaction.rollback()?;
    Ok(state)
}

/// What is printed depends on the session, but not what is meant: so answers are compared
/// in a session with the defaults where times are in them.
#[test]
fn answers_do_not_depend_on_the_sessions_settings() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let mut expected = Vec::new();
    for call in CALLS {
        expected.push(answer(&mut client, call)?);
    }
    for statements in MIGRATIONS {
        expected.push(migrated(&mut client, statements, "")?);
    }
    let mut differences = Vec::new();
    let asked = &SETTINGS[..tier::size(6, SETTINGS.len())];
    for (name, setting) in asked.iter().chain(&PRINTED_SETTINGS) {
        let known = format!("SELECT count(*) > 0 FROM pg_settings WHERE lower(name) = '{name}'");
        if client.value(&known)? != "t" {
            continue;
        }
        let former = client.value(&format!("SELECT quote_literal(current_setting('{name}'))"))?;
        let as_before = format!("SELECT set_config('{name}', {former}, true)");
        // As that of a database: it holds from the session's beginning.
        let set = format!("ALTER DATABASE postgres SET {name} = '{setting}'");
        if let Err(error) = client.batch_execute(&set) {
            // PostgreSQL 19 has standard strings only.
            let error = ServerError::from_error(error)?;
            ensure!(error.sqlstate == "0A000", "{set}: {error}");
            continue;
        }
        let mut other = cluster.connect()?;
        client.batch_execute(&format!("ALTER DATABASE postgres RESET {name}"))?;
        let mut answers = Vec::new();
        for call in CALLS {
            answers.push(answer(&mut other, call)?);
        }
        for statements in MIGRATIONS {
            let state = migrated(&mut other, statements, &as_before)?;
            answers.push(state);
        }
        for ((call, expected), answer) in
            CALLS.iter().chain(&MIGRATIONS).zip(&expected).zip(&answers)
        {
            if PRINTED_SETTINGS.contains(&(name, setting)) && !MIGRATIONS.contains(call) {
                continue;
            }
            if expected != answer {
                differences.push(format!(
                    "{name} = {setting}: {call}:\n{expected}\nbut\n{answer}"
                ));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} answers differ:\n{}",
        differences.len(),
        differences.join("\n\n")
    );
    Ok(())
}
