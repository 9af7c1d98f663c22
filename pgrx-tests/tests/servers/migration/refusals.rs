//! Obstacles to a migration are named, with what to do about each, before
//! anything is changed; roles without the rights are refused; and neither names
//! nor a search path change what is done.

use snowflake_tests::migration::{contents, migrate_by_psql, plan, widened};

use crate::support::*;

/// A table with an obstacle to its migration, in a schema of its own.
struct Obstacle {
    schema: &'static str,
    setup: &'static str,
    arguments: &'static str,
    /// What the DETAIL contains: the obstacle, and what to do about it.
    parts: &'static [&'static str],
    /// What removes it; empty where nothing does.
    remedy: &'static str,
}

const T: &str = "CREATE TABLE t (id serial PRIMARY KEY, n int);";

#[rustfmt::skip]
const OBSTACLES: &[Obstacle] = &[
    Obstacle { schema: "o01", setup: "CREATE VIEW v AS SELECT id FROM t; CREATE FUNCTION f(v) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TABLE u (x int DEFAULT f(NULL))", arguments: "'o01.t'",
               parts: &["default value for o01.u.x cannot be dropped and created again", "Drop it"], remedy: "ALTER TABLE o01.u ALTER x DROP DEFAULT" },
    Obstacle { schema: "o02", setup: "CREATE VIEW v AS SELECT id FROM t; CREATE TABLE u (x v)", arguments: "'o02.t'",
               parts: &["table o02.u cannot be dropped and created again", "Drop it"], remedy: "DROP TABLE o02.u" },
    Obstacle { schema: "o03", setup: "CREATE VIEW a AS SELECT id FROM t; CREATE VIEW b AS SELECT id FROM a; CREATE OR REPLACE VIEW a AS SELECT t.id FROM t JOIN b USING (id)", arguments: "'o03.t'",
               parts: &["view o03.a depends on itself", "view o03.b depends on itself", "Drop it"], remedy: "DROP VIEW o03.a CASCADE" },
    Obstacle { schema: "o08", setup: "CREATE PUBLICATION o08 FOR TABLE t WHERE (id > 7)", arguments: "'o08.t'",
               parts: &["publication o08 has a WHERE clause that uses column id of o08.t", "ALTER PUBLICATION"], remedy: "ALTER PUBLICATION o08 SET TABLE o08.t" },
    Obstacle { schema: "o09", setup: "CREATE PUBLICATION o09 FOR TABLE t (id)", arguments: "'o09.t'",
               parts: &["publication o09 has a column list that uses column id of o09.t", "ALTER PUBLICATION"], remedy: "DROP PUBLICATION o09" },
    Obstacle { schema: "o10", setup: "CREATE TABLE p (id serial PRIMARY KEY) PARTITION BY RANGE (id)", arguments: "'o10.p'",
               parts: &["column id of o10.p is part of its partition key", "copy the rows to a new table"], remedy: "" },
    Obstacle { schema: "o11", setup: "CREATE TABLE p (id serial, n int) PARTITION BY RANGE (n, (id % 10))", arguments: "'o11.p'",
               parts: &["column id of o11.p is part of its partition key", "copy the rows"], remedy: "" },
    Obstacle { schema: "o12", setup: "CREATE TABLE p (id serial, n int) PARTITION BY LIST (n); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) PARTITION BY HASH (id)", arguments: "'o12.p'",
               parts: &["column id of o12.p1 is part of its partition key", "copy the rows"], remedy: "DROP TABLE o12.p1" },
    Obstacle { schema: "o13", setup: "CREATE TYPE kind AS (id int, n int); CREATE TABLE typed OF kind (PRIMARY KEY (id)); CREATE SEQUENCE s OWNED BY typed.id; ALTER TABLE typed ALTER id SET DEFAULT nextval('o13.s')", arguments: "'o13.typed'",
               parts: &["o13.typed is a typed table", "ALTER TABLE o13.typed NOT OF"], remedy: "ALTER TABLE o13.typed NOT OF" },
    Obstacle { schema: "o14", setup: "CREATE TABLE p (id serial, n int) PARTITION BY LIST (n); CREATE FOREIGN TABLE away PARTITION OF p FOR VALUES IN (1) SERVER elsewhere", arguments: "'o14.p'",
               parts: &["o14.away is a foreign table", "Detach the table"], remedy: "ALTER TABLE o14.p DETACH PARTITION o14.away" },
    Obstacle { schema: "o15", setup: "CREATE DOMAIN small AS int; CREATE SEQUENCE s; CREATE TABLE d (id small PRIMARY KEY DEFAULT nextval('o15.s'))", arguments: "'o15.d'",
               parts: &["column id of o15.d is of the domain o15.small", "base type"], remedy: "ALTER TABLE o15.d ALTER id TYPE int" },
    Obstacle { schema: "o16", setup: "CREATE DOMAIN inner_small AS int; CREATE DOMAIN small AS inner_small; CREATE TABLE r (t_id small REFERENCES t)", arguments: "'o16.t'",
               parts: &["column t_id of o16.r is of the domain o16.small", "base type"], remedy: "ALTER TABLE o16.r ALTER t_id TYPE int" },
    Obstacle { schema: "o18", setup: "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY few ON t USING (n = 1)", arguments: "'o18.t'",
               parts: &["row-level security is forced on the owner of o18.t", "NO FORCE ROW LEVEL SECURITY"], remedy: "ALTER TABLE o18.t NO FORCE ROW LEVEL SECURITY" },
    Obstacle { schema: "o19", setup: "CREATE TABLE p (id serial, n int) PARTITION BY LIST (n); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)", arguments: "'o19.p1', 'id'",
               parts: &["column id of o19.p1 is inherited", "Migrate the table it is inherited from"], remedy: "" },
    Obstacle { schema: "o20", setup: "CREATE TABLE u (x t[]); CREATE DOMAIN rows_of_t AS t; CREATE TYPE deep AS (y rows_of_t); CREATE TABLE v (z deep)", arguments: "'o20.t'",
               parts: &["column x of o20.u uses the row type of o20.t", "column z of o20.v uses the row type of o20.t", "until the column is widened"], remedy: "DROP TABLE o20.u, o20.v" },
    Obstacle { schema: "o21", setup: "CREATE INDEX blooming ON t USING brin (n, id int4_bloom_ops)", arguments: "'o21.t'",
               parts: &["index o21.blooming uses operator class int4_bloom_ops", "after the column is widened"], remedy: "DROP INDEX o21.blooming" },
    Obstacle { schema: "o22", setup: "CREATE TABLE a (id serial); CREATE TABLE b (id int); CREATE TABLE c () INHERITS (a, b)", arguments: "'o22.a'",
               parts: &["column id of o22.c is inherited from several tables", "NO INHERIT"], remedy: "ALTER TABLE o22.c NO INHERIT o22.b" },
    Obstacle { schema: "o23", setup: "CREATE TABLE a (id serial NOT NULL); CREATE TABLE c () INHERITS (a); ALTER TABLE c ALTER id DROP DEFAULT; ALTER TABLE c ALTER id ADD GENERATED ALWAYS AS IDENTITY", arguments: "'o23.a'",
               parts: &["column id of o23.c is an identity column with its own sequence", "DROP IDENTITY"], remedy: "ALTER TABLE o23.c ALTER id DROP IDENTITY" },
    Obstacle { schema: "o24", setup: "CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY); CREATE TABLE j (id int DEFAULT nextval('o24.i_id_seq'))", arguments: "'o24.i'",
               parts: &["default value for column id of table o24.j depends on sequence o24.i_id_seq", "a sequence of its own"], remedy: "DROP TABLE o24.j" },
    Obstacle { schema: "o25", setup: "CREATE TABLE p (id serial, n int NOT NULL, PRIMARY KEY (n, id)) PARTITION BY LIST (n); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); ALTER TABLE p1 REPLICA IDENTITY USING INDEX p1_pkey", arguments: "'o25.p'",
               parts: &["the replica identity of partition o25.p1 is index o25.p1_pkey with column id", "REPLICA IDENTITY FULL"], remedy: "ALTER TABLE o25.p1 REPLICA IDENTITY FULL" },
    Obstacle { schema: "o26", setup: "CREATE TABLE b (id bigserial PRIMARY KEY); INSERT INTO b VALUES (1), (9223372036854775807)", arguments: "'o26.b'",
               parts: &["o26.b has IDs that are not below the first snowflake ID", "9223372036854775807", "smaller IDs"], remedy: "DELETE FROM o26.b WHERE id > 1" },
    Obstacle { schema: "o27", setup: "CREATE TABLE x (id numeric PRIMARY KEY, code text, half bigint GENERATED ALWAYS AS (1) STORED)", arguments: "'o27.x', 'id'",
               parts: &["column id of o27.x is of type numeric", "only smallint, integer and bigint"], remedy: "ALTER TABLE o27.x ALTER id TYPE bigint" },
    Obstacle { schema: "o28", setup: "CREATE TABLE x (id int, half int GENERATED ALWAYS AS (id / 2) STORED)", arguments: "'o28.x', 'half'",
               parts: &["column half of o28.x is generated from other columns", "cannot have a default"], remedy: "" },
];

/// Obstacles since PostgreSQL 18.
#[rustfmt::skip]
const OBSTACLES_OF_18: &[Obstacle] = &[
    Obstacle { schema: "o30", setup: "CREATE TABLE child (PRIMARY KEY (id)) INHERITS (t)", arguments: "'o30.t'",
               parts: &["not-null constraint child_id_not_null of o30.child has another name in the parent o30.t", "RENAME CONSTRAINT child_id_not_null TO t_id_not_null"],
               remedy: "ALTER TABLE o30.child NO INHERIT o30.t; ALTER TABLE o30.child RENAME CONSTRAINT child_id_not_null TO t_id_not_null; ALTER TABLE o30.child INHERIT o30.t" },
];

#[test]
fn obstacles_are_named_with_a_remedy_that_helps() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let of_18 = if cluster.installation().major >= 18 {
        OBSTACLES_OF_18
    } else {
        &[]
    };
    let mut client = cluster.connect_to_new_database("refused")?;
    let client = &mut client;
    client.batch_execute(
        "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
         SET client_min_messages = error",
    )?;
    let obstacles = || OBSTACLES.iter().chain(of_18);
    for Obstacle { schema, setup, .. } in obstacles() {
        client.batch_execute(&format!(
            "CREATE SCHEMA {schema}; SET search_path = {schema}, public"
        ))?;
        client.run([T, setup]).context(*schema)?;
    }
    client.batch_execute("RESET search_path")?;
    let before = schema(&cluster, "refused")?;
    let rows = contents(client)?;
    for Obstacle {
        arguments, parts, ..
    } in obstacles()
    {
        for statement in [
            format!("SELECT * FROM snowflake_migrate.plan({arguments})"),
            format!("CALL snowflake_migrate.run({arguments})"),
            format!("SELECT * FROM snowflake_migrate.plan({arguments}, online => true)"),
        ] {
            let refused = client.refused(&statement, "55000")?;
            assert!(
                refused.message.starts_with("cannot migrate column "),
                "{refused}"
            );
            for part in *parts {
                assert!(
                    refused.detail.contains(part),
                    "{statement}: no {part:?} in: {refused}"
                );
            }
            for line in refused.detail.lines() {
                assert!(
                    line.ends_with('.') && line.contains(". "),
                    "no remedy: {line}"
                );
            }
        }
    }
    assert_same_schema(&before, &schema(&cluster, "refused")?, "refused");
    assert_eq!(contents(client)?, rows);
    client.answers("SELECT count(*) FROM snowflake_migrate_internal.origins", 0)?;
    for Obstacle {
        arguments, remedy, ..
    } in obstacles().filter(|it| !it.remedy.is_empty())
    {
        let call = format!("CALL snowflake_migrate.run({arguments})");
        client.run([*remedy, &call, &call])?;
        assert!(plan(client, arguments)?.is_empty(), "{arguments}");
    }
    Ok(())
}

#[test]
fn senseless_arguments_are_refused() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE bare (id int); CREATE TABLE two (a serial, b serial); CREATE VIEW v AS SELECT 1 AS id;
         CREATE TABLE t (id serial PRIMARY KEY, n int)",
    )?;
    for (arguments, sqlstate) in [
        ("'bare'", "55000"),
        ("'two'", "22023"),
        ("'v'", "42809"),
        ("'t_id_seq'", "42809"),
        ("'t', 'nothing'", "42703"),
        ("'t', 'ctid'", "42703"),
        ("'nowhere'", "42P01"),
        ("0", "42P01"),
        ("4294967295", "42P01"),
        ("NULL", "42P01"),
    ] {
        for statement in [
            format!("SELECT * FROM snowflake_migrate.plan({arguments})"),
            format!("SELECT * FROM snowflake_migrate.plan({arguments}, online => true)"),
            format!("CALL snowflake_migrate.run({arguments})"),
            format!("CALL snowflake_migrate.backfill({arguments})"),
            format!("CALL snowflake_migrate.revert({arguments})"),
        ] {
            client.refused(&statement, sqlstate)?;
        }
    }
    client.refused("CALL snowflake_migrate.revert('t')", "55000")?;
    // Named, either of the two columns can be migrated.
    client.run([
        "CALL snowflake_migrate.run('two', 'b')",
        "CALL snowflake_migrate.run('two', 'a')",
    ])?;
    let migrated =
        "SELECT count(*) FROM snowflake_migrate_internal.origins WHERE target = 'two'::regclass";
    client.answers(migrated, 2)?;
    Ok(())
}

#[test]
fn a_server_that_issues_no_ids_migrates_nothing() -> Result<()> {
    for (builder, part) in [
        (Cluster::builder(), "snowflake.node_id is not set"),
        (Cluster::builder().without_preload(), what_is_missing()?),
    ] {
        let cluster = builder.start_with_migrate()?;
        let mut client = cluster.connect()?;
        client.batch_execute("CREATE TABLE t (id serial PRIMARY KEY)")?;
        let before = schema(&cluster, "postgres")?;
        for statement in [
            "SELECT * FROM snowflake_migrate.plan('t')",
            "CALL snowflake_migrate.run('t')",
        ] {
            let refused = client.refused(statement, "55000")?;
            assert!(refused.detail.contains(part), "{refused}");
        }
        assert_same_schema(&before, &schema(&cluster, "postgres")?, part);
    }
    Ok(())
}

/// Tables of `keeper`, some of which tables of `other` reference or are
/// partitions of. `member` and `deputy` are members of `keeper`, the latter
/// without inheriting its privileges.
fn tables_of_keeper() -> Result<(Cluster, Client)> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE keeper LOGIN; CREATE ROLE other LOGIN; CREATE ROLE member LOGIN IN ROLE keeper; CREATE ROLE deputy LOGIN NOINHERIT IN ROLE keeper;
         CREATE SCHEMA k AUTHORIZATION keeper; CREATE SCHEMA hidden AUTHORIZATION other; GRANT USAGE ON SCHEMA k TO PUBLIC;
         SET ROLE keeper; CREATE TABLE k.t (id serial PRIMARY KEY, n int); INSERT INTO k.t DEFAULT VALUES; GRANT ALL ON k.t TO other; GRANT ALL ON SEQUENCE k.t_id_seq TO other;
         CREATE TABLE k.referenced (id serial PRIMARY KEY); GRANT REFERENCES, SELECT ON k.referenced TO other;
         CREATE TABLE k.parted (id serial, n int) PARTITION BY LIST (n);
         CREATE TABLE k.b (id bigserial PRIMARY KEY); GRANT REFERENCES, SELECT ON k.b TO other;
         CREATE TABLE k.seen (id serial PRIMARY KEY); RESET ROLE;
         SET ROLE other; CREATE TABLE hidden.r (t_id int REFERENCES k.referenced); CREATE TABLE hidden.b (t_id int, b_id bigint REFERENCES k.b); RESET ROLE;
         GRANT CREATE ON SCHEMA k TO other; SET ROLE other; CREATE TABLE k.part (id int NOT NULL, n int); RESET ROLE; ALTER TABLE k.parted ATTACH PARTITION k.part FOR VALUES IN (1);
         CREATE SCHEMA closed; ALTER TABLE k.seen SET SCHEMA closed",
    )?;
    Ok((cluster, client))
}

/// What a role is refused with 42501, and parts of the answer.
#[rustfmt::skip]
const DENIED: &[(&str, &str, &[&str])] = &[
    ("other", "SELECT * FROM snowflake_migrate.plan('k.t')", &["must be owner of table k.t", "Run it as a member of keeper"]),
    ("other", "CALL snowflake_migrate.run('k.t')", &["must be owner of table k.t"]),
    ("other", "CALL snowflake_migrate.revert('k.t')", &["must be owner of table t"]),
    ("other", "SELECT snowflake_migrate_internal.record_origin('k.t', 'id')", &["must be owner of table t"]),
    ("other", "SELECT snowflake_migrate_internal.record_reverted('k.t', 'id')", &["must be owner of table t"]),
    ("deputy", "SELECT snowflake_migrate_internal.record_origin('k.t', 'id')", &["must be owner of table t"]),
    ("deputy", "CALL snowflake_migrate.run('k.t')", &["must be owner of table k.t"]),
    ("keeper", "CALL snowflake_migrate.run('k.referenced')",
        &["must be owner of table hidden.r", "permission denied for schema hidden", "GRANT USAGE"]),
    ("keeper", "CALL snowflake_migrate.run('k.parted')", &["must be owner of table k.part"]),
    ("keeper", "CALL snowflake_migrate.run('closed.seen')", &["permission denied for schema closed"]),
    ("keeper", "INSERT INTO snowflake_migrate_internal.origins VALUES ('k.t', 'id', 'none', 'bigint', 'now()')",
        &["permission denied for table origins"]),
    ("keeper", "UPDATE snowflake_migrate_internal.origins SET default_expression = 'now()'", &["permission denied"]),
    ("keeper", "DELETE FROM snowflake_migrate_internal.origins", &["permission denied"]),
    ("keeper", "TRUNCATE snowflake_migrate_internal.origins", &["permission denied"]),
    ("keeper", "MERGE INTO snowflake_migrate_internal.origins AS o USING k.t ON o.target = 'k.t'::regclass WHEN MATCHED THEN DELETE", &["permission denied"]),
];

#[test]
fn roles_without_the_rights_of_the_owner_are_refused() -> Result<()> {
    let (cluster, mut client) = tables_of_keeper()?;
    let before = schema(&cluster, "postgres")?;
    for (role, statement, parts) in DENIED {
        let mut session = cluster.connect_as(role, "postgres")?;
        let answer = session
            .refused(statement, "42501")
            .context(*role)?
            .to_string();
        for part in *parts {
            assert!(
                answer.contains(part),
                "{role}: {statement}: no {part:?} in {answer}"
            );
        }
    }
    assert_same_schema(&before, &schema(&cluster, "postgres")?, "refused");
    client.answers("SELECT count(*) FROM snowflake_migrate_internal.origins", 0)?;
    Ok(())
}

/// A bigint column of another role's table that references it is no obstacle.
#[test]
fn members_of_the_owner_migrate_and_writers_do_not_revert() -> Result<()> {
    let (cluster, _client) = tables_of_keeper()?;
    let mut member = cluster.connect_as("member", "postgres")?;
    member.run([
        "CALL snowflake_migrate.run('k.t')",
        "CALL snowflake_migrate.revert('k.t')",
    ])?;
    migrate_by_psql(&cluster, "keeper", "postgres", "'k.b'")?;
    let mut deputy = cluster.connect_as("deputy", "postgres")?;
    deputy.batch_execute("SET ROLE keeper; CALL snowflake_migrate.run('k.t')")?;
    // A role that may only write cannot revert.
    let mut other = cluster.connect_as("other", "postgres")?;
    other.batch_execute("INSERT INTO k.t DEFAULT VALUES")?;
    for statement in [
        "CALL snowflake_migrate.revert('k.t')",
        "SELECT snowflake_migrate_internal.record_reverted('k.t', 'id')",
    ] {
        other.refused(statement, "42501")?;
    }
    // Called alone, it is refused to a member as well.
    member.refused(
        "SELECT snowflake_migrate_internal.record_reverted('k.t', 'id')",
        "55000",
    )?;
    Ok(())
}

#[test]
fn the_owner_needs_the_rights_to_generate_ids_and_to_create_sequences() -> Result<()> {
    let (cluster, mut client) = tables_of_keeper()?;
    let client = &mut client;
    let mut member = cluster.connect_as("member", "postgres")?;
    client.batch_execute("REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC")?;
    client.batch_execute(
        "SET ROLE keeper; CREATE TABLE k.i (id int GENERATED ALWAYS AS IDENTITY); RESET ROLE",
    )?;
    let denied = member.refused("CALL snowflake_migrate.run('k.i')", "42501")?;
    let detail = "permission denied for function snowflake_nextval";
    assert!(denied.detail.contains(detail), "{denied}");
    client.batch_execute("GRANT EXECUTE ON FUNCTION snowflake_nextval() TO PUBLIC")?;
    member.batch_execute("CALL snowflake_migrate.run('k.i')")?;
    client.batch_execute("REVOKE ALL ON SCHEMA k FROM keeper; ALTER SCHEMA k OWNER TO postgres; GRANT USAGE ON SCHEMA k TO PUBLIC")?;
    let before = schema(&cluster, "postgres")?;
    member.refused("CALL snowflake_migrate.revert('k.i')", "42501")?;
    assert_same_schema(&before, &schema(&cluster, "postgres")?, "reverting refused");
    // A superuser reverts with the rights of the owner, and no others.
    client.refused("CALL snowflake_migrate.revert('k.i')", "42501")?;
    client.batch_execute(
        "GRANT USAGE, CREATE ON SCHEMA k TO keeper; CALL snowflake_migrate.revert('k.i')",
    )?;
    let owner = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'k.i_id_seq'::regclass";
    client.answers(owner, "keeper")?;
    Ok(())
}

/// Functions in a schema on the search path that note when they are called:
/// name, arguments and result.
const TRAPS: &[(&str, &str, &str)] = &[
    ("format", "text, VARIADIC text[]", "text"),
    ("format", "text", "text"),
    ("quote_ident", "text", "text"),
    ("quote_ident", "name", "text"),
    ("now", "", "timestamptz"),
    ("count", "int", "bigint"),
    ("current_setting", "text", "text"),
    ("set_config", "text, text, boolean", "text"),
    ("pg_has_role", "oid, text", "boolean"),
    ("pg_has_role", "name, oid, text", "boolean"),
    ("pg_get_userbyid", "oid", "name"),
    ("setval", "regclass, bigint", "bigint"),
    ("nextval", "regclass", "bigint"),
    ("to_regclass", "text", "regclass"),
    ("pg_sequence_last_value", "regclass", "bigint"),
    ("strpos", "text, text", "int"),
    ("snowflake_nextval", "", "bigint"),
    ("migration_check", "regclass, name", "void"),
    ("migration_record_origin", "regclass, name", "void"),
];

const OTHER_TRAPS: &str = "
    CREATE FUNCTION trap.same(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT trap.spring(''='') IS NULL';
    CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = trap.same);
    CREATE FUNCTION trap.joined(text, text) RETURNS text LANGUAGE sql AS 'SELECT trap.spring(''||'')';
    CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.joined);
    CREATE TABLE trap.pg_class (oid oid, relname name, relkind \"char\"); CREATE TABLE trap.pg_attribute (attrelid oid);
    CREATE TABLE trap.pg_depend (objid oid); CREATE TABLE trap.origins (target oid); CREATE TABLE trap.t (id int); CREATE TABLE trap.r (t_id int);
    CREATE DOMAIN trap.regclass AS pg_catalog.regclass CHECK (false); CREATE DOMAIN trap.name AS pg_catalog.name CHECK (false);
    CREATE DOMAIN trap.text AS pg_catalog.text CHECK (false); CREATE DOMAIN trap.int8 AS pg_catalog.int8 CHECK (false);
    CREATE TEMP TABLE pg_class (oid oid); CREATE TEMP TABLE pg_attribute (attrelid oid); CREATE TEMP TABLE pg_constraint (oid oid);
    -- Nearer to two literals than the real ones, where others may create functions.
    CREATE FUNCTION snowflake_migrate_internal.check_switch(text, text) RETURNS void LANGUAGE sql AS 'SELECT trap.spring(''check'')';
    CREATE FUNCTION snowflake_migrate_internal.record_origin(text, text) RETURNS void LANGUAGE sql AS 'SELECT trap.spring(''remember'')'";

const TRAPPED: &str = "SET search_path = pg_temp, trap, pg_catalog, public";

fn set_traps(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE public.sprung (by pg_catalog.text); CREATE SCHEMA trap;
         CREATE FUNCTION trap.spring(what pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql AS
         $$ BEGIN INSERT INTO public.sprung VALUES (what); RETURN what; END $$",
    )?;
    for (name, arguments, result) in TRAPS {
        client.batch_execute(&format!(
            "CREATE FUNCTION trap.{name}({arguments}) RETURNS {result} LANGUAGE sql AS 'SELECT trap.spring(''{name}''); SELECT NULL::{result}'"
        ))?;
    }
    client.run([OTHER_TRAPS, TRAPPED])?;
    // The traps work: the same names do spring them by the path.
    client.batch_execute(
        "BEGIN; SELECT strpos('a'::pg_catalog.text, 'b'::pg_catalog.text); SELECT now()",
    )?;
    client.answers(SPRUNG, 2)?;
    client.batch_execute("ROLLBACK")?;
    Ok(())
}

const SPRUNG: &str = "SELECT pg_catalog.count(*) FROM public.sprung";

#[test]
fn a_search_path_with_traps_changes_nothing() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE public.t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO public.t (n) VALUES (1), (2);
         CREATE TABLE public.r (t_id int REFERENCES public.t); INSERT INTO public.r VALUES (1);
         COMMENT ON SEQUENCE public.t_id_seq IS 'kept'",
    )?;
    let before = schema(&cluster, "postgres")?;
    set_traps(client)?;
    for round in 0..2 {
        let statements: Vec<String> = client.column(
            "SELECT statement::pg_catalog.text FROM snowflake_migrate.plan('public.t') WHERE statement IS NOT NULL",
        )?;
        assert_eq!(statements.len(), 6, "{statements:?}");
        if round == 0 {
            client.run(&statements)?;
        } else {
            client.batch_execute("CALL snowflake_migrate.run('public.t')")?;
        }
        client.batch_execute("INSERT INTO public.t (n) VALUES (3); CALL snowflake_migrate.revert('public.t'); SET search_path = public")?;
        client.answers(SPRUNG, 0)?;
        client.answers("INSERT INTO t (n) VALUES (4) RETURNING id", 3 + round)?;
        // Narrow again, for the next round.
        client.batch_execute(
            "DELETE FROM t WHERE id > 2147483647; ALTER TABLE t ALTER id TYPE int; ALTER TABLE r ALTER t_id TYPE int",
        )?;
        client.batch_execute(TRAPPED)?;
    }
    client.batch_execute(
        "DROP FUNCTION snowflake_migrate_internal.check_switch(pg_catalog.text, pg_catalog.text), snowflake_migrate_internal.record_origin(pg_catalog.text, pg_catalog.text);
         SET search_path = public; SET client_min_messages = error; DROP SCHEMA trap CASCADE",
    )?;
    let expected = widened(&before, &[("public.t", "id"), ("public.r", "t_id")])?;
    let after = schema(&cluster, "postgres")?;
    // Without the table of the traps.
    let without = |text: &str| {
        text.lines()
            .filter(|line| line.contains("public.t") || line.contains("public.r "))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_same_schema(&without(&expected), &without(&after), "past the traps");
    Ok(())
}

#[test]
fn tables_are_migrated_with_the_extension_in_a_schema_of_its_own() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run("CREATE DATABASE apart")?;
    let mut client = cluster.connect_to("apart")?;
    let client = &mut client;
    client.batch_execute(
        "CREATE SCHEMA \"100 %s\"; CREATE EXTENSION snowflake SCHEMA \"100 %s\"; CREATE EXTENSION snowflake_migrate;
         CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t VALUES (DEFAULT); CREATE TEMP TABLE tt (id int GENERATED ALWAYS AS IDENTITY); INSERT INTO tt VALUES (DEFAULT);
         CREATE TABLE public.tt (id int)",
    )?;
    for table in ["t", "tt"] {
        let insert = format!("INSERT INTO {table} VALUES (DEFAULT) RETURNING id");
        for _ in 0..2 {
            client.batch_execute(&format!("CALL snowflake_migrate.run('{table}')"))?;
            assert!(client.number(&insert)? > 1 << 40);
            client.batch_execute(&format!("CALL snowflake_migrate.revert('{table}')"))?;
        }
        client.answers(&insert, 2)?;
    }
    Ok(())
}

/// A role that may create functions in the extension's schema has one of the same
/// name there, for texts, which literals without a type would prefer.
#[test]
fn functions_of_the_same_name_in_the_extensions_schema_are_not_called() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    for name in [
        "snowflake_min_id",
        "snowflake_max_id",
        "snowflake_max_id_before",
    ] {
        client.batch_execute(&format!(
            "CREATE FUNCTION {name}(text) RETURNS bigint LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'sprung by %', current_user; END $$"
        ))?;
    }
    let sprung = client.refused("SELECT snowflake_min_id('2026-01-01')", "P0001")?;
    assert!(sprung.message.starts_with("sprung by"), "{sprung}");
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t SELECT FROM generate_series(1, 10);
         CALL snowflake_migrate.run('t'); INSERT INTO t DEFAULT VALUES;
         SELECT * FROM snowflake_audit('t'); CALL snowflake_migrate.revert('t');
         CREATE TABLE p (id bigint) PARTITION BY RANGE (id);
         SELECT * FROM snowflake_partitions.ddl('p', '2026-01-01', '2026-02-01', '1 day');
         SELECT snowflake_between(1, '2026-01-01', '2026-02-01')",
    )?;
    Ok(())
}
