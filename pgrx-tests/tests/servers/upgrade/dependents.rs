//! Objects of applications that use the extension's, privileges that were
//! granted on them, several databases: what an update finds in a database in use.

use anyhow::Result;
use snowflake_tests::Cluster;
use snowflake_tests::ids::{self, Tally};
use snowflake_tests::migration::dump;
use snowflake_tests::query::{number, value};

use super::{EARLIER_MARK, IS_UPDATED, UPDATE, create_earlier};
use crate::support::{column, refused, run};

/// What applications have made of the earlier version's objects, by name and by
/// OID, in every way that PostgreSQL records.
const USED: &str = "
    CREATE TABLE own.t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int,
                        created timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED,
                        CHECK (snowflake_node_id(id, 'default') < 64));
    CREATE INDEX ON own.t (snowflake_to_text(id));
    CREATE TABLE own.p (id bigint DEFAULT snowflake_nextval(), n int) PARTITION BY RANGE (id);
    CREATE TABLE own.p1 PARTITION OF own.p DEFAULT;
    CREATE VIEW own.v_migrations AS SELECT * FROM snowflake_migrations;
    CREATE VIEW own.v_step AS SELECT m.step, m.time_left FROM snowflake_migrations AS m;
    CREATE VIEW own.v_serial AS SELECT * FROM snowflake_serial_columns;
    CREATE VIEW own.v_status AS SELECT s.ids, l.name FROM snowflake_status AS s, snowflake_layouts AS l, snowflake_stat_slots AS t WHERE t.backend_id = 0;
    CREATE VIEW own.v_mark AS SELECT last_value FROM snowflake_mark;
    CREATE VIEW own.v_progress AS SELECT rows_done FROM snowflake_progress;
    CREATE VIEW own.v_origins AS SELECT * FROM snowflake_origins;
    CREATE VIEW own.v_decoded AS SELECT d.* FROM own.t, snowflake_decode(t.id) AS d;
    CREATE VIEW own.v_between AS SELECT * FROM own.t WHERE snowflake_between(id, '2025-01-01', '2030-01-01');
    CREATE MATERIALIZED VIEW own.m AS SELECT snowflake_timestamp(id) AS at FROM own.t;
    CREATE FUNCTION own.make() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT snowflake_nextval(); END;
    CREATE FUNCTION own.plan() RETURNS SETOF text LANGUAGE sql BEGIN ATOMIC SELECT statement FROM snowflake_migration_plan('own.t'); END;
    CREATE TABLE own.s (id serial PRIMARY KEY, n int);
    CREATE PROCEDURE own.migrate() LANGUAGE plpgsql AS 'BEGIN CALL snowflake_migrate(''own.s''); END';
    INSERT INTO own.t (n) SELECT 1 FROM generate_series(1, 100); INSERT INTO own.p (n) SELECT 1 FROM generate_series(1, 100)";

#[test]
fn what_depends_on_the_extension_works_after_the_update() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    cluster
        .connect()?
        .batch_execute("CREATE ROLE app LOGIN; CREATE ROLE reader LOGIN")?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute("CREATE SCHEMA own AUTHORIZATION app")?;
    let mut app = cluster.connect_as("app", "old")?;
    app.batch_execute(USED)?;
    // A session whose plans are of before.
    app.batch_execute("PREPARE one AS INSERT INTO own.t (n) VALUES (2) RETURNING id; PREPARE status AS SELECT * FROM own.v_status; EXECUTE one; EXECUTE status")?;
    let views: Vec<String> = column(
        &mut app,
        "SELECT viewname::text FROM pg_views WHERE schemaname = 'own' ORDER BY 1",
    )?;
    // What was granted and what was revoked.
    old.batch_execute(
        "REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC; GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app;
         REVOKE SELECT ON snowflake_migrations, snowflake_status FROM PUBLIC; GRANT SELECT ON snowflake_migrations, snowflake_status TO app, reader;
         REVOKE EXECUTE ON PROCEDURE snowflake_migrate(regclass, name) FROM PUBLIC; GRANT EXECUTE ON PROCEDURE snowflake_migrate(regclass, name) TO app;
         GRANT EXECUTE ON FUNCTION snowflake_start_after(bigint) TO reader WITH GRANT OPTION; GRANT SELECT ON snowflake_mark TO reader",
    )?;
    old.batch_execute("COMMENT ON EXTENSION snowflake IS 'ours'")?;
    let privileges = "SELECT string_agg(format('%s %s', p.oid::regprocedure, p.proacl), E'\\n' ORDER BY p.oid) FROM pg_proc AS p
        WHERE p.oid IN ('snowflake_nextval()'::regprocedure, 'snowflake_migrate(regclass, name)'::regprocedure, 'snowflake_start_after(bigint)'::regprocedure)
        UNION ALL SELECT string_agg(format('%s %s', c.relkind, c.relacl), E'\\n' ORDER BY c.oid) FROM pg_class AS c
        WHERE c.relname IN ('snowflake_migrations', 'snowflake_status', 'snowflake_mark', 'mark')";
    let before: Vec<String> = column(&mut old, privileges)?;
    let mut received = ids::nextval(&mut app, 1_000)?;
    old.batch_execute(UPDATE)?;
    let after: Vec<String> = column(&mut old, privileges)?;
    assert_eq!(before, after);
    let comment =
        "SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'snowflake'";
    assert_eq!(value(&mut old, comment)?, "ours");

    app.batch_execute(
        "EXECUTE one; EXECUTE status; REFRESH MATERIALIZED VIEW own.m; CALL own.migrate()",
    )?;
    for view in &views {
        if view == "v_origins" {
            // Its owner may no longer read the table.
            refused(&mut app, "SELECT * FROM own.v_origins", "42501")?;
        } else {
            run(&mut app, [format!("SELECT * FROM own.{view}")])?;
        }
    }
    assert_eq!(number(&mut app, "SELECT count(*) FROM own.v_decoded")?, 102);
    assert_eq!(
        value(
            &mut app,
            "SELECT (SELECT last_value FROM own.v_mark) > max(id) FROM own.t"
        )?,
        "t"
    );
    received.extend(ids::fetch(
        &mut app,
        "INSERT INTO own.t (n) SELECT 3 FROM generate_series(1, 1000) RETURNING id",
    )?);
    received.extend(ids::fetch(
        &mut app,
        "INSERT INTO own.p (n) SELECT 3 FROM generate_series(1, 1000) RETURNING id",
    )?);
    received.extend(ids::fetch(
        &mut app,
        "SELECT own.make() FROM generate_series(1, 1000)",
    )?);
    received.extend(ids::fetch(
        &mut app,
        "INSERT INTO own.s (n) VALUES (1) RETURNING id",
    )?);
    let tally = Tally::of(received);
    println!(
        "upgrade: {} views, defaults and functions of an application kept: {tally}",
        views.len()
    );
    tally.assert_unique();
    let mut reader = cluster.connect_as("reader", "old")?;
    refused(&mut reader, "SELECT snowflake_nextval()", "42501")?;
    refused(
        &mut cluster.connect_as("app", "old")?,
        "SELECT snowflake_start_after(1)",
        "42501",
    )?;
    run(
        &mut reader,
        [
            "SELECT * FROM snowflake_migrations",
            "SELECT last_value FROM snowflake_internal.mark",
        ],
    )?;

    // A dump has what was granted and what was revoked, as before.
    let dumped = dump(&cluster, "old", &["--schema-only"])?;
    for statement in [
        "REVOKE ALL ON FUNCTION public.snowflake_nextval() FROM PUBLIC;",
        "GRANT ALL ON FUNCTION public.snowflake_nextval() TO app;",
        "GRANT ALL ON FUNCTION public.snowflake_start_after(id bigint) TO reader WITH GRANT OPTION;",
        "GRANT SELECT ON SEQUENCE snowflake_internal.mark TO reader;",
        "GRANT SELECT ON TABLE public.snowflake_migrations TO reader;",
        "REVOKE SELECT ON TABLE public.snowflake_status FROM PUBLIC;",
    ] {
        assert!(dumped.contains(statement), "{statement}\n{dumped}");
    }
    Ok(())
}

/// An object that uses an internal function stops the update, which names it.
#[test]
fn an_update_names_what_depends_on_functions_that_change() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute(
        "CREATE VIEW first AS SELECT snowflake_migration_first_id() AS id;
         CREATE FUNCTION second() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT snowflake_migration_name('pg_class'); END",
    )?;
    let error = refused(&mut old, UPDATE, "2BP01")?;
    assert_eq!(
        error.message,
        "cannot update extension snowflake because other objects depend on functions that change"
    );
    assert!(
        error.detail.contains(
            "view public.first depends on function public.snowflake_migration_first_id()."
        ),
        "{error}"
    );
    assert!(
        error
            .detail
            .contains("function public.second() depends on function public.snowflake_migration_name(regclass)."),
        "{error}"
    );
    assert!(
        error
            .hint
            .starts_with("Drop these objects, update the extension, and create them again"),
        "{error}"
    );
    assert_eq!(value(&mut old, IS_UPDATED)?, "f");
    number(&mut old, "SELECT snowflake_nextval()")?;
    old.batch_execute("DROP VIEW first; DROP FUNCTION second()")?;
    old.batch_execute(UPDATE)?;
    Ok(())
}

/// What an application's role was given wholesale is taken back where it could
/// write, even if it was passed on. The new library does not let such grants be
/// made, the former one did: here none is loaded.
#[test]
fn privileges_that_were_passed_on_do_not_stop_the_update() -> Result<()> {
    let mut cluster = Cluster::builder()
        .without_preload()
        .conf("snowflake.node_id", 1)
        .start()?;
    cluster.connect()?.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE ROLE reader LOGIN",
    )?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute(
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO app WITH GRANT OPTION; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app WITH GRANT OPTION;
         GRANT UPDATE (target) ON snowflake_progress TO reader; GRANT SELECT ON snowflake_origins TO reader;
         SET ROLE app; GRANT ALL ON ALL TABLES IN SCHEMA public TO other; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO other, PUBLIC; RESET ROLE",
    )?;
    drop(old);
    cluster.set_conf("shared_preload_libraries", "snowflake")?;
    cluster.restart()?;
    let mut old = cluster.connect_to("old")?;
    old.batch_execute(UPDATE)?;
    let grantees = "SELECT string_agg(DISTINCT coalesce(nullif(p.grantee, 0)::regrole::text, 'PUBLIC') || ' ' || p.privilege_type, ', ')
        FROM pg_class AS c CROSS JOIN LATERAL (
            SELECT * FROM aclexplode(c.relacl)
            UNION ALL SELECT x.* FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
        ) AS p WHERE c.relnamespace = 'snowflake_internal'::regnamespace AND c.relkind IN ('r', 'S') AND c.relname <> 'restore' AND p.grantee <> c.relowner";
    assert_eq!(
        value(&mut old, grantees)?,
        "PUBLIC SELECT, pg_database_owner SELECT"
    );
    let log = cluster.log()?;
    assert!(
        log.contains(
            "roles could write to the extension's tables or to its mark: PUBLIC, app, other, reader"
        ),
        "{log}"
    );
    assert!(
        log.contains("roles can no longer read snowflake_internal.origins: app, other, reader"),
        "{log}"
    );
    // The role can be dropped, and a dump does not name it.
    old.batch_execute(
        "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM app CASCADE; REVOKE ALL ON ALL TABLES IN SCHEMA public FROM other, reader; DROP ROLE other; DROP ROLE reader",
    )?;
    let named = number(
        &mut old,
        "SELECT count(*) FROM pg_init_privs AS i CROSS JOIN LATERAL aclexplode(i.initprivs) AS p
         WHERE p.grantee <> 0 AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = p.grantee)",
    )?;
    assert_eq!(named, 0);
    Ok(())
}

/// Some databases are updated, others are not: each reserves in its own mark.
#[test]
fn no_id_repeats_between_databases_of_both_versions() -> Result<()> {
    let mut cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let names = ["first", "second", "third"];
    for name in names {
        create_earlier(&cluster, name)?;
    }
    cluster.connect_to_new_database("fresh")?;
    let mut received = Vec::new();
    let mut take = |cluster: &Cluster| -> Result<()> {
        for name in ["first", "second", "third", "fresh"] {
            received.extend(ids::nextval(&mut cluster.connect_to(name)?, 5_000)?);
        }
        Ok(())
    };
    for (turn, name) in names.into_iter().enumerate() {
        take(&cluster)?;
        cluster.connect_to(name)?.batch_execute(UPDATE)?;
        take(&cluster)?;
        if turn < 2 {
            cluster.kill9_all()?;
            cluster.start()?;
        } else {
            cluster.restart()?;
        }
        take(&cluster)?;
    }
    let tally = Tally::of(received);
    println!("upgrade: 4 databases of both versions, 2 x kill -9: {tally}");
    tally.assert_unique();
    let earlier = number(
        &mut cluster.connect_to("third")?,
        &format!("SELECT count(*) FROM pg_class WHERE relname = '{EARLIER_MARK}'"),
    )?;
    assert_eq!(earlier, 0);
    Ok(())
}
