//! The newest minor releases: they reject ALTER COLUMN TYPE where an expression
//! uses the table's row type, and keep an option of their own for each column.
//! Every test runs on the server under test and on another minor release, where
//! there is one.

use std::collections::BTreeSet;

use crate::support::*;

/// The server under test, and one of another minor release.
fn clusters() -> Result<Vec<(Cluster, bool)>> {
    let (tested, other) = (Installation::under_test()?, Installation::other_minor()?);
    let mut installations = vec![tested];
    if installations[0].version != other.version {
        installations.push(other);
    }
    installations
        .into_iter()
        .map(|installation| {
            let cluster = Cluster::builder()
                .installation(installation)
                .conf("snowflake.node_id", 1)
                .start_with_migrate()?;
            let setting = "SELECT current_setting('composite_type_mismatch', true) IS NOT NULL";
            let checks_expressions = cluster.connect()?.value(setting)? == "t";
            Ok((cluster, checks_expressions))
        })
        .collect()
}

/// What uses the row type of the table `t` of its schema.
struct User {
    schema: &'static str,
    setup: &'static str,
    /// A part of the obstacle; empty if every server accepts it.
    named: &'static str,
    remedy: &'static str,
    /// Whether rows are stored or written down, which no online migration keeps.
    holds_rows: bool,
    /// Whether earlier minor releases reject it too.
    is_old: bool,
}

const FUNCTIONS: &str = "
    CREATE FUNCTION takes(a t) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
    CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
    CREATE TABLE o (y text)";

#[rustfmt::skip]
const USERS: &[User] = &[
    User { schema: "u01", setup: "CREATE TABLE s (y t)", named: "column y of u01.s uses", remedy: "DROP TABLE s", holds_rows: true, is_old: true },
    User { schema: "u02", setup: "CREATE TABLE s (y t[])", named: "column y of u02.s uses", remedy: "DROP TABLE s", holds_rows: true, is_old: true },
    User { schema: "u03", setup: "CREATE DOMAIN d AS t; CREATE TYPE c AS (z d); CREATE TABLE s (y c)", named: "column y of u03.s uses", remedy: "DROP TABLE s", holds_rows: true, is_old: true },
    User { schema: "u04", setup: "CREATE TYPE r AS RANGE (subtype = t, multirange_type_name = m); CREATE TABLE s (y m)", named: "column y of u04.s uses", remedy: "DROP TABLE s", holds_rows: true, is_old: true },
    User { schema: "u05", setup: "CREATE MATERIALIZED VIEW s AS SELECT NULL::t AS y", named: "column y of u05.s uses", remedy: "DROP MATERIALIZED VIEW s", holds_rows: true, is_old: true },
    User { schema: "u06", setup: "CREATE FOREIGN TABLE s (y t) SERVER elsewhere", named: "column y of u06.s uses", remedy: "DROP FOREIGN TABLE s", holds_rows: true, is_old: false },
    User { schema: "u10", setup: "CREATE FUNCTION f(a t DEFAULT NULL) RETURNS text LANGUAGE sql AS 'SELECT a.x'", named: "function u10.f(u10.t) uses", remedy: "DROP FUNCTION f", holds_rows: false, is_old: false },
    User { schema: "u11", setup: "CREATE FUNCTION f(a t[] DEFAULT NULL, b t DEFAULT NULL) RETURNS t LANGUAGE sql AS 'SELECT b'", named: "function u11.f(u11.t[],u11.t) uses", remedy: "DROP FUNCTION f", holds_rows: false, is_old: false },
    User { schema: "u12", setup: "CREATE FUNCTION f(a text DEFAULT (ROW(1, 'a')::t).x) RETURNS text LANGUAGE sql AS 'SELECT a'", named: "function u12.f(text)", remedy: "DROP FUNCTION f", holds_rows: true, is_old: false },
    User { schema: "u13", setup: "CREATE FUNCTION f(a t) RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT (a).x; END", named: "function u13.f(u13.t) uses", remedy: "DROP FUNCTION f", holds_rows: false, is_old: false },
    User { schema: "u14", setup: "CREATE FUNCTION f() RETURNS bool LANGUAGE sql BEGIN ATOMIC SELECT NULL::t IS NULL; END", named: "function u14.f() uses", remedy: "DROP FUNCTION f", holds_rows: false, is_old: false },
    User { schema: "u15", setup: "CREATE FUNCTION f() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT (ROW(1, 'a')::t).x; END", named: "function u15.f()", remedy: "DROP FUNCTION f", holds_rows: true, is_old: false },
    User { schema: "u20", setup: "CREATE TABLE s (y text CONSTRAINT k CHECK (takes(NULL)))", named: "constraint k on table u20.s uses", remedy: "ALTER TABLE s DROP CONSTRAINT k", holds_rows: false, is_old: false },
    User { schema: "u21", setup: "CREATE TABLE s (y text CONSTRAINT k CHECK ((ROW(1, y)::t).x <> 'a'))", named: "constraint k on table u21.s", remedy: "ALTER TABLE s DROP CONSTRAINT k", holds_rows: true, is_old: false },
    User { schema: "u22", setup: "CREATE TABLE s (y bool DEFAULT takes(NULL))", named: "default value for column y of table u22.s uses", remedy: "ALTER TABLE s ALTER y DROP DEFAULT", holds_rows: false, is_old: false },
    User { schema: "u23", setup: "CREATE TABLE s (y text, z bool GENERATED ALWAYS AS (takes(NULL)) STORED)", named: "default value for column z of table u23.s uses", remedy: "ALTER TABLE s DROP z", holds_rows: false, is_old: false },
    User { schema: "u24", setup: "CREATE INDEX i ON o ((takes(NULL)))", named: "index u24.i uses", remedy: "DROP INDEX i", holds_rows: false, is_old: false },
    User { schema: "u25", setup: "CREATE INDEX i ON o (y) WHERE '(1,a)'::t IS NOT NULL", named: "index u25.i", remedy: "DROP INDEX i", holds_rows: true, is_old: false },
    User { schema: "u26", setup: "ALTER TABLE o ADD CONSTRAINT e EXCLUDE USING hash ((takes(NULL)) WITH =)", named: "index u26.e uses", remedy: "ALTER TABLE o DROP CONSTRAINT e", holds_rows: false, is_old: false },
    User { schema: "u27", setup: "CREATE STATISTICS s ON y, (takes(NULL)) FROM o", named: "statistics object u27.s uses", remedy: "DROP STATISTICS s", holds_rows: false, is_old: false },
    User { schema: "u28", setup: "CREATE TABLE s (y text) PARTITION BY LIST (((ROW(1, y)::t).x))", named: "the partition key of u28.s", remedy: "DROP TABLE s", holds_rows: true, is_old: false },
    User { schema: "u30", setup: "CREATE VIEW v AS SELECT takes(NULL)", named: "view u30.v uses", remedy: "DROP VIEW v", holds_rows: false, is_old: false },
    User { schema: "u31", setup: "CREATE MATERIALIZED VIEW v AS SELECT takes(NULL)", named: "materialized view u31.v uses", remedy: "DROP MATERIALIZED VIEW v", holds_rows: false, is_old: false },
    User { schema: "u32", setup: "CREATE RULE r AS ON INSERT TO o DO ALSO SELECT takes(NULL)", named: "rule r on table u32.o uses", remedy: "DROP RULE r ON o", holds_rows: false, is_old: false },
    User { schema: "u33", setup: "CREATE POLICY p ON o USING (takes(NULL))", named: "policy p on table u33.o uses", remedy: "DROP POLICY p ON o", holds_rows: false, is_old: false },
    User { schema: "u34", setup: "CREATE TRIGGER g BEFORE UPDATE ON o FOR EACH ROW WHEN (takes(NULL)) EXECUTE FUNCTION changed()", named: "trigger g on table u34.o uses", remedy: "DROP TRIGGER g ON o", holds_rows: false, is_old: false },
    User { schema: "u35", setup: "CREATE DOMAIN d AS text CONSTRAINT k CHECK (takes(NULL))", named: "constraint k of domain u35.d uses", remedy: "ALTER DOMAIN d DROP CONSTRAINT k", holds_rows: false, is_old: false },
    User { schema: "u36", setup: "CREATE DOMAIN d AS text DEFAULT (ROW(1, 'a')::t).x", named: "the default of domain u36.d", remedy: "ALTER DOMAIN d DROP DEFAULT", holds_rows: true, is_old: false },
    User { schema: "u37", setup: "CREATE TABLE child () INHERITS (t); CREATE FUNCTION f(a child DEFAULT NULL) RETURNS int LANGUAGE sql AS 'SELECT 1'", named: "function u37.f(u37.child) uses the row type of u37.child", remedy: "DROP FUNCTION f", holds_rows: false, is_old: false },
    // What every server accepts.
    User { schema: "u50", setup: "CREATE FUNCTION f(a t, b t[]) RETURNS SETOF t LANGUAGE sql AS 'SELECT a'", named: "", remedy: "", holds_rows: false, is_old: false },
    User { schema: "u51", setup: "CREATE DOMAIN d AS t CHECK (value IS NOT NULL); CREATE DOMAIN e AS t DEFAULT NULL; CREATE TYPE c AS (y t)", named: "", remedy: "", holds_rows: false, is_old: false },
    User { schema: "u52", setup: "CREATE VIEW v AS SELECT takes(t) FROM t", named: "", remedy: "", holds_rows: false, is_old: false },
    User { schema: "u53", setup: "ALTER TABLE t ADD CHECK (takes(t)); CREATE INDEX i ON t (takes(t))", named: "", remedy: "", holds_rows: false, is_old: false },
    User { schema: "u54", setup: "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW WHEN (old.* IS DISTINCT FROM new.*) EXECUTE FUNCTION changed()", named: "", remedy: "", holds_rows: false, is_old: false },
    User { schema: "u55", setup: "CREATE CAST (t AS bool) WITH FUNCTION takes(t); CREATE FUNCTION same(a t, b t) RETURNS bool LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR === (leftarg = t, rightarg = t, function = same)", named: "", remedy: "", holds_rows: false, is_old: false },
];

fn create(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
         SET client_min_messages = error",
    )?;
    for User { schema, setup, .. } in USERS {
        let table = "CREATE TABLE t (id serial PRIMARY KEY, x text); INSERT INTO t (x) SELECT 'x' || n FROM generate_series(1, 9) AS n";
        client.batch_execute(&format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}, public"
        ))?;
        client.run([table, FUNCTIONS, setup]).context(*schema)?;
    }
    client.batch_execute("RESET search_path")?;
    Ok(())
}

/// The obstacles of a plan; none if it is not rejected.
fn obstacles(client: &mut Client, schema: &str, online: bool) -> Result<String> {
    let query = format!(
        "SELECT obstacle || '. ' || remedy
         FROM snowflake_migrate_internal.plan_kind_obstacles(ARRAY[('{schema}.t', 'id')::snowflake_migrate_internal.key], {online}, false)"
    );
    Ok(client.column::<String>(&query)?.join("\n"))
}

#[test]
fn what_uses_a_row_type_is_named_where_the_server_rejects_it() -> Result<()> {
    for (cluster, checks_expressions) in clusters()? {
        let mut client = cluster.connect_to_new_database("used")?;
        let client = &mut client;
        create(client)?;
        for user in USERS {
            let schema = user.schema;
            let is_named = !user.named.is_empty() && (checks_expressions || user.is_old);
            let found = obstacles(client, schema, false)?;
            assert_eq!(
                found.contains(user.named) && !found.is_empty(),
                is_named,
                "{schema}: {found}"
            );
            // The server itself is the judge.
            client.batch_execute("BEGIN")?;
            let alter = format!("ALTER TABLE {schema}.t ALTER id TYPE bigint");
            match client.batch_execute(&alter) {
                Ok(()) => assert!(!is_named, "{schema} was accepted: {found}"),
                Err(error) => {
                    assert!(is_named, "{schema}: {error:?}");
                    assert!(
                        format!("{error:?}").contains("uses its row type"),
                        "{error:?}"
                    );
                }
            }
            client.batch_execute("ROLLBACK")?;
            if is_named {
                let plan = format!("SELECT * FROM snowflake_migrate.plan('{schema}.t')");
                let refused = client.refused(&plan, "55000")?;
                assert!(refused.detail.contains(user.named), "{refused}");
                for line in refused.detail.lines() {
                    assert!(
                        line.ends_with('.') && line.contains(". "),
                        "no remedy: {line}"
                    );
                }
                client.batch_execute(&format!(
                    "SET search_path = {schema}, public; {}; RESET search_path",
                    user.remedy
                ))?;
            }
            client
                .batch_execute(&format!("CALL snowflake_migrate.run('{schema}.t')"))
                .context(schema)?;
        }
    }
    Ok(())
}

#[test]
fn online_only_rows_that_are_held_are_obstacles() -> Result<()> {
    for (cluster, _) in clusters()? {
        let mut client = cluster.connect_to_new_database("used")?;
        let client = &mut client;
        create(client)?;
        let mut held = BTreeSet::new();
        for user in USERS {
            let schema = user.schema;
            if user.holds_rows {
                let plan =
                    format!("SELECT * FROM snowflake_migrate.plan('{schema}.t', online => true)");
                let refused = client.refused(&plan, "55000")?;
                assert!(refused.detail.contains(user.named), "{refused}");
                held.insert(schema);
                continue;
            }
            // Obstacles of other kinds: inheritance, an index or a CHECK of rows.
            if ["u37", "u53"].contains(&schema) {
                continue;
            }
            assert_eq!(obstacles(client, schema, true)?, "", "{schema}");
            online::migrate(client, &format!("'{schema}.t'"))?;
        }
        client.answers("SELECT u10.f(NULL) IS NULL AND u14.f()", "t")?;
        client.answers("SELECT u13.f(t) FROM u13.t WHERE id = 3", "x3")?;
        client.answers("SELECT count(*) FROM u30.v, u31.v", 1)?;
        client.batch_execute(
            "INSERT INTO u20.s VALUES ('a'); INSERT INTO u22.s DEFAULT VALUES; INSERT INTO u24.o VALUES ('a');
             UPDATE u34.o SET y = 'b'; UPDATE u54.t SET x = 'b'; INSERT INTO u54.t (x) VALUES ('c')",
        )?;
    }
    Ok(())
}

/// Since the newest minor releases every column has the option `pg_attver`,
/// which SET accepts and ignores, and which earlier releases reject.
#[test]
fn options_of_columns_move_online_without_those_of_the_server() -> Result<()> {
    for (cluster, checks_expressions) in clusters()? {
        let mut client = cluster.connect()?;
        let client = &mut client;
        client.batch_execute(
            "CREATE TABLE t (id serial PRIMARY KEY, x text);
             CREATE TABLE r (id serial PRIMARY KEY, t_id int REFERENCES t);
             ALTER TABLE t ALTER id SET (n_distinct = -1), ALTER id SET STATISTICS 50;
             ALTER TABLE r ALTER t_id SET (n_distinct = 7, n_distinct_inherited = 8);
             INSERT INTO t (x) SELECT 'x' FROM generate_series(1, 100);
             INSERT INTO r (t_id) SELECT n FROM generate_series(1, 100) AS n",
        )?;
        let options = "SELECT string_agg(format('%s.%s %s', a.attrelid::regclass, a.attname, o), ', ' ORDER BY 1)
             FROM pg_attribute AS a CROSS JOIN LATERAL unnest(a.attoptions) AS o
             WHERE a.attrelid IN ('t'::regclass, 'r'::regclass) AND NOT a.attisdropped AND o !~ '^pg_'";
        let before = client.value(options)?;
        client.answers(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 AND attoptions::text ~ 'pg_attver'",
            if checks_expressions { 2 } else { 0 },
        )?;

        let steps = online::plan(client, "'t'")?;
        for step in &steps {
            assert!(!step.statement.contains("pg_att"), "{}", step.statement);
        }
        // Half of the steps, then other options, which the swap has to follow.
        let swap = steps
            .iter()
            .position(|step| step.is_swap())
            .context("no swap")?;
        client.run(online::statements(&steps[..swap]))?;
        assert_eq!(
            online::plan(client, "'t'")?[0].statement,
            steps[swap].statement
        );
        client.answers(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname ~ 'snowflake'",
            1,
        )?;
        client.batch_execute("ALTER TABLE t ALTER id SET (n_distinct = -0.5)")?;
        online::migrate(client, "'t'")?;
        client.answers(
            options,
            before.replace("t.id n_distinct=-1", "t.id n_distinct=-0.5"),
        )?;
        assert!(
            client
                .expect_error("INSERT INTO r (t_id) VALUES (-1)")?
                .sqlstate
                == "23503"
        );
    }
    Ok(())
}
