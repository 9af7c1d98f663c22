//! Whose rights a migration has. What a table's owner wrote (checks, functions
//! of indexes, generated columns, triggers, defaults) runs with the owner's
//! rights when a superuser migrates the table, and the functions that do so
//! refuse everybody who does not have those rights anyway.

use std::fmt::Write as _;

use anyhow::Result;
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::migration::{number, value};
use snowflake_tests::online;
use snowflake_tests::outcome::refusal;

/// An ordinary role with tables whose expressions note who runs them, and try
/// to make more of it.
const WITNESSES: &str = "
    CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN; CREATE SCHEMA s AUTHORIZATION app; GRANT USAGE ON SCHEMA s TO stranger;
    CREATE TABLE public.seen (who name, what text); GRANT SELECT, INSERT ON public.seen TO PUBLIC;
    SET ROLE app;
    CREATE FUNCTION s.note(what text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO public.seen VALUES (current_user, what);
        EXECUTE 'ALTER ROLE app SUPERUSER';
    EXCEPTION WHEN insufficient_privilege THEN
        INSERT INTO public.seen VALUES (current_user, what);
    END $$;
    CREATE FUNCTION s.fits(n bigint, what text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM s.note(what); RETURN true; END $$;
    CREATE FUNCTION s.same(n bigint, what text) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM s.note(what); RETURN n; END $$;
    CREATE FUNCTION s.fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM s.note('trigger'); RETURN new; END $$;
    CREATE FUNCTION s.defaults() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM s.note('default'); RETURN 7; END $$;
    RESET ROLE;";

/// Makes a table of `app`'s, with checks of the key where its type is changed in
/// place.
fn create(client: &mut Client, name: &str, in_place: bool) -> Result<()> {
    // Online, foreign keys are validated by a statement that a superuser runs as
    // such, and PostgreSQL plans its query over both tables with his rights.
    let (key, reference, index) = if in_place {
        (
            "CHECK (s.fits(id, 'check of the key'))",
            "CHECK (s.fits(t_id, 'check of a reference'))",
            format!("CREATE INDEX ON s.{name} (n) WHERE s.fits(1, 'predicate')"),
        )
    } else {
        ("", "", String::new())
    };
    client.batch_execute(&format!(
        "SET ROLE app;
         CREATE TABLE s.{name} (id serial PRIMARY KEY {key}, n bigint DEFAULT s.defaults() CHECK (s.fits(n, 'check')),
                                g bigint GENERATED ALWAYS AS (s.same(n, 'generated')) STORED);
         CREATE INDEX ON s.{name} (s.same(n, 'index')); {index};
         CREATE TRIGGER fires BEFORE INSERT OR UPDATE ON s.{name} FOR EACH ROW EXECUTE FUNCTION s.fired();
         CREATE TABLE s.{name}_r (t_id int REFERENCES s.{name} {reference});
         INSERT INTO s.{name} (n) SELECT g FROM generate_series(1, 50) AS g;
         INSERT INTO s.{name}_r SELECT id FROM s.{name};
         RESET ROLE; ANALYZE s.{name}, s.{name}_r; DELETE FROM public.seen"
    ))?;
    Ok(())
}

/// Who ran what since the last time.
fn seen(client: &mut Client, when: &str) -> Result<i64> {
    let mut report = String::new();
    let rows = client.query(
        "SELECT who::text, what, count(*) FROM public.seen GROUP BY 1, 2 ORDER BY 1, 2",
        &[],
    )?;
    let (mut by_owner, mut by_others) = (0, 0);
    for row in rows {
        let (who, what, count): (String, String, i64) = (row.get(0), row.get(1), row.get(2));
        let _ = write!(report, "; {what} by {who} {count} times");
        if who == "app" {
            by_owner += count;
        } else {
            by_others += count;
        }
    }
    println!("migration rights: {when}{report}");
    assert_eq!(by_others, 0, "{when}{report}");
    assert_eq!(
        value(
            client,
            "SELECT rolsuper FROM pg_roles WHERE rolname = 'app'"
        )?,
        "f",
        "{when}"
    );
    client.batch_execute("DELETE FROM public.seen")?;
    Ok(by_owner)
}

#[test]
fn a_superuser_lends_nothing() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let mut app = cluster.connect_as("postgres", "postgres")?;
    client.batch_execute(WITNESSES)?;
    app.batch_execute("SET ROLE app")?;

    create(client, "w", true)?;
    client.batch_execute("CALL snowflake_migrate('s.w')")?;
    let rewritten = seen(client, "in a maintenance window")?;
    assert!(rewritten > 0, "nothing was run by anybody");
    app.batch_execute("INSERT INTO s.w (n) VALUES (1)")?;
    seen(client, "an owner's row")?;
    client.batch_execute("CALL snowflake_migrate_revert('s.w')")?;
    seen(client, "reverted")?;
    assert_eq!(
        value(&mut app, "INSERT INTO s.w (n) VALUES (1) RETURNING id")?,
        "51"
    );
    client.batch_execute("DELETE FROM public.seen")?;

    create(client, "o", false)?;
    let steps = online::migrate(client, "'s.o'")?;
    let copied = seen(client, "online")?;
    assert!(copied > 0, "nothing was run by anybody");
    app.batch_execute("INSERT INTO s.o (n) VALUES (1)")?;
    seen(client, "an owner's row")?;
    client.batch_execute("CALL snowflake_migrate_revert('s.o')")?;
    seen(client, "reverted")?;
    assert_eq!(
        value(&mut app, "INSERT INTO s.o (n) VALUES (1) RETURNING id")?,
        "51"
    );
    client.batch_execute("DELETE FROM public.seen")?;

    // Taken back before the swap.
    create(client, "b", false)?;
    for step in online::plan(client, "'s.b'")?.iter().take(4) {
        client.batch_execute(&step.statement)?;
    }
    client.batch_execute("CALL snowflake_migrate_revert('s.b')")?;
    seen(client, "taken back")?;
    println!(
        "migration rights: {rewritten} and {copied} times the owner's functions ran, as the owner; {steps} steps online"
    );
    Ok(())
}

/// The planner runs functions of constants in an index's predicate.
#[test]
fn a_superuser_audits() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(WITNESSES)?;
    create(&mut client, "w", true)?;
    client.batch_execute("SELECT * FROM snowflake_audit('s.w')")?;
    seen(&mut client, "audited")?;
    Ok(())
}

/// An identity column, whose sequence is made anew, and a serial whose sequence
/// was dropped: both are the owner's afterwards, with the privileges they had.
#[test]
fn what_a_superuser_puts_back_is_the_owners() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE reader; CREATE SCHEMA s AUTHORIZATION app; SET ROLE app;
         CREATE TABLE s.i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY); GRANT SELECT ON SEQUENCE s.i_id_seq TO reader;
         COMMENT ON SEQUENCE s.i_id_seq IS 'kept'; INSERT INTO s.i SELECT FROM generate_series(1, 3);
         CREATE TABLE s.d (id serial PRIMARY KEY); INSERT INTO s.d SELECT FROM generate_series(1, 3);
         RESET ROLE; CALL snowflake_migrate('s.i'); CALL snowflake_migrate('s.d'); DROP SEQUENCE s.d_id_seq;
         CALL snowflake_migrate_revert('s.i'); CALL snowflake_migrate_revert('s.d')",
    )?;
    for sequence in ["s.i_id_seq", "s.d_id_seq"] {
        assert_eq!(
            value(
                client,
                &format!(
                    "SELECT relowner::regrole FROM pg_class WHERE oid = '{sequence}'::regclass"
                )
            )?,
            "app"
        );
        assert_eq!(
            value(client, &format!("SELECT nextval('{sequence}')"))?,
            "4"
        );
    }
    assert_eq!(
        value(
            client,
            "SELECT has_sequence_privilege('reader', 's.i_id_seq', 'SELECT') || ' ' || obj_description('s.i_id_seq'::regclass)"
        )?,
        "true kept"
    );
    Ok(())
}

/// A default that draws from another role's sequence: its counter is not written
/// down, and is only ever moved ahead.
#[test]
fn a_strangers_sequence() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE stranger; GRANT CREATE ON SCHEMA public TO app, stranger; SET ROLE stranger;
         CREATE SEQUENCE secret; SELECT setval('secret', 4711); CREATE SEQUENCE lent; SELECT setval('lent', 100); GRANT ALL ON SEQUENCE lent TO app;
         SET ROLE app; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT nextval('secret')); CREATE TABLE l (id bigint PRIMARY KEY DEFAULT nextval('lent'));
         INSERT INTO l VALUES (DEFAULT); RESET ROLE",
    )?;
    let mut app = cluster.connect_as("app", "postgres")?;
    app.batch_execute("CALL snowflake_migrate('t'); CALL snowflake_migrate('l')")?;
    assert_eq!(
        number(
            client,
            "SELECT count(*) FROM snowflake_origins AS o WHERE o.sequence_last_value IS NOT NULL OR to_jsonb(o)::text ~ '4711'"
        )?,
        0
    );
    app.batch_execute("INSERT INTO l VALUES (DEFAULT), (105)")?;
    app.batch_execute("CALL snowflake_migrate_revert('t'); CALL snowflake_migrate_revert('l')")?;
    assert_eq!(value(client, "SELECT last_value FROM secret")?, "4711");
    assert_eq!(
        value(&mut app, "INSERT INTO l VALUES (DEFAULT) RETURNING id")?,
        "106"
    );
    Ok(())
}

/// Functions of the extension's names, in its schema, whose arguments are nearer
/// to what is passed wherever a call leaves it to PostgreSQL to convert it. Who
/// may create functions there would have them run by a superuser.
#[test]
fn functions_of_nearly_the_same_arguments() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        r#"CREATE TABLE planted (signature text);
        DO $do$
        DECLARE
            near CONSTANT jsonb := '{"regclass": ["oid", "text", "bigint"], "name": ["text", "varchar"], "text": ["name", "varchar"],
                "bigint": ["integer", "numeric", "smallint"], "integer": ["bigint", "smallint", "numeric"],
                "timestamp with time zone": ["date", "timestamp", "text"], "oid": ["regclass", "regtype", "bigint", "integer", "regproc"],
                "interval": ["text"], "jsonb": ["json", "text"], "smallint[]": ["integer[]", "text"],
                "regclass[]": ["oid[]", "text", "text[]"], "text[]": ["name[]", "text"]}';
            it record;
            other text;
            arguments text[];
        BEGIN
            FOR it IN
                SELECT p.proname, ARRAY(SELECT format_type(t.oid, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS t (oid, place)
                                        ORDER BY t.place) AS types
                FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
                WHERE p.proname ~ '^snowflake' AND p.pronargs > 0 AND p.prorettype <> 'internal'::regtype
            LOOP
                FOR place IN 1 .. cardinality(it.types) LOOP
                    FOR other IN SELECT jsonb_array_elements_text(near -> it.types[place]) LOOP
                        FOR is_everywhere IN 0 .. 1 LOOP
                            arguments := it.types;
                            IF is_everywhere = 1 THEN
                                SELECT array_agg(coalesce(near -> t.type ->> 0, t.type) ORDER BY t.place) INTO arguments
                                FROM unnest(it.types) WITH ORDINALITY AS t (type, place);
                            END IF;
                            arguments[place] := other;
                            BEGIN
                                EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS boolean LANGUAGE plpgsql AS
                                    $x$ BEGIN RAISE EXCEPTION ''sprung''; END $x$', it.proname, array_to_string(arguments, ', '));
                                INSERT INTO planted VALUES (it.proname || array_to_string(arguments, ', '));
                            EXCEPTION WHEN duplicate_function THEN NULL;
                            END;
                        END LOOP;
                    END LOOP;
                END LOOP;
            END LOOP;
        END $do$;
        CREATE TABLE w (id serial PRIMARY KEY); INSERT INTO w SELECT FROM generate_series(1, 10); CREATE TABLE w_r (id int REFERENCES w);
        CALL snowflake_migrate('w'::regclass, 'id'::name); CALL snowflake_migrate_revert('w'::regclass, 'id'::name);
        CREATE TABLE o (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO o (n) SELECT generate_series(1, 10);
        CREATE INDEX ON o (n, id); CREATE TABLE o_r (id int REFERENCES o); CREATE TABLE b (LIKE o INCLUDING ALL)"#,
    )?;
    online::migrate(client, "'o'::regclass, 'id'::name")?;
    for step in online::plan(client, "'b'::regclass, 'id'::name")?
        .iter()
        .take(4)
    {
        client.batch_execute(&step.statement)?;
    }
    client.batch_execute(
        "SELECT * FROM snowflake_serial_columns; SELECT * FROM snowflake_migrations;
         SELECT * FROM snowflake_audit('o'::regclass, 'id'::name, NULL::integer[], NULL::bigint);
         CALL snowflake_migrate_revert('o'::regclass, 'id'::name); CALL snowflake_migrate_revert('b'::regclass, 'id'::name)",
    )?;
    println!(
        "migration rights: past {} functions of nearly the same arguments",
        number(client, "SELECT count(*) FROM planted")?
    );
    Ok(())
}

#[test]
fn the_functions_behind_it() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN; GRANT CREATE ON SCHEMA public TO app; SET ROLE app;
         CREATE TABLE t (id serial PRIMARY KEY); GRANT SELECT ON t TO stranger; RESET ROLE;
         CREATE TABLE own (id serial PRIMARY KEY); ALTER TABLE own OWNER TO stranger;
         GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger, app; REVOKE ALL ON t FROM stranger",
    )?;
    let row = |table: &str, kind: &str| {
        format!(
            "SELECT snowflake_migration_keep_origin(ROW({table}, 'id', {kind}, 'integer', '0; ALTER ROLE app SUPERUSER; --',
                 NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 1, now(), NULL)::snowflake_origins)"
        )
    };
    let mut refused = 0;
    for (role, statement, sqlstate) in [
        // Whose the table is.
        (
            "stranger",
            "SELECT snowflake_migration_run('t', 'SELECT 1')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT snowflake_migration_read('t', 'SELECT id FROM public.t')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT snowflake_migration_query('t', 'SELECT 1')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT snowflake_migration_lock_table('t', 'ACCESS EXCLUSIVE')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT * FROM snowflake_migration_sequence_state('t_id_seq', 't')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT snowflake_migration_progress('t', 'id', 'own')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT snowflake_migration_progress('own', 'id', 't')".to_owned(),
            "42501",
        ),
        (
            "stranger",
            "SELECT snowflake_migration_end('t', 'id')".to_owned(),
            "42501",
        ),
        ("stranger", row("'t'", "'serial'"), "42501"),
        // What is not there, or is no table.
        (
            "app",
            "SELECT snowflake_migration_run(0, 'SELECT 1')".to_owned(),
            "42P01",
        ),
        (
            "app",
            "SELECT snowflake_migration_run(NULL, 'SELECT 1')".to_owned(),
            "42P01",
        ),
        (
            "app",
            "SELECT snowflake_migration_lock_table(4294967295, 'ACCESS EXCLUSIVE')".to_owned(),
            "42P01",
        ),
        (
            "app",
            "SELECT snowflake_migration_lock_table('t_id_seq', 'ACCESS EXCLUSIVE')".to_owned(),
            "42809",
        ),
        (
            "app",
            "SELECT snowflake_migration_lock_table('t', 'EXCLUSIVE')".to_owned(),
            "22023",
        ),
        (
            "app",
            "SELECT snowflake_migration_lock_table('t', NULL)".to_owned(),
            "22023",
        ),
        // What is not one statement.
        (
            "app",
            "SELECT snowflake_migration_run('t', NULL)".to_owned(),
            "22004",
        ),
        (
            "app",
            "SELECT snowflake_migration_run('t', '')".to_owned(),
            "42601",
        ),
        (
            "app",
            "SELECT snowflake_migration_run('t', 'SELECT 1; SELECT 2')".to_owned(),
            "42601",
        ),
        (
            "app",
            "SELECT snowflake_migration_run('t', 'SELEC 1')".to_owned(),
            "42601",
        ),
        (
            "app",
            "SELECT snowflake_migration_run('t', 'COMMIT')".to_owned(),
            "0A000",
        ),
        (
            "app",
            "SELECT snowflake_migration_run('t', 'COPY t FROM STDIN')".to_owned(),
            "0A000",
        ),
        (
            "app",
            "SELECT snowflake_migration_query('t', 'DELETE FROM public.t')".to_owned(),
            "0A000",
        ),
        // Rows that the table could not have by SQL.
        ("app", row("'t'", "'other'"), "23514"),
        ("app", row("'t'", "NULL"), "23502"),
        ("app", row("NULL", "'serial'"), "23502"),
        ("app", row("0", "'serial'"), "42P01"),
        // Privileges on the tables have no effect.
        (
            "app",
            "INSERT INTO snowflake_origins VALUES ('t', 'id', 'none', 'bigint')".to_owned(),
            "42501",
        ),
        (
            "app",
            "UPDATE snowflake_origins SET default_expression = 'now()'".to_owned(),
            "42501",
        ),
        ("app", "DELETE FROM snowflake_origins".to_owned(), "42501"),
        ("app", "TRUNCATE snowflake_origins".to_owned(), "42501"),
        ("app", "DELETE FROM snowflake_progress".to_owned(), "42501"),
        ("app", "TRUNCATE snowflake_progress".to_owned(), "42501"),
    ] {
        let mut session = cluster.connect_as(role, "postgres")?;
        session.batch_execute("BEGIN; SAVEPOINT s")?;
        let refusal = refusal(&mut session, &statement)?;
        assert_eq!(refusal.sqlstate, sqlstate, "{role}: {statement}: {refusal}");
        session.batch_execute("ROLLBACK TO s")?;
        assert_eq!(
            number(
                &mut session,
                "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode <> 'AccessShareLock'"
            )?,
            0,
            "{role}: {statement}"
        );
        refused += 1;
    }
    // As the owner, under a restriction, and with the settings of before.
    let mut session = cluster.connect()?;
    assert_eq!(
        value(
            &mut session,
            "SELECT snowflake_migration_run('t', 'SELECT current_user, current_setting(''search_path''), NULL, set_config(''work_mem'', ''1MB'', false)')::text"
        )?,
        "{app,\"pg_catalog, pg_temp\",NULL,1MB}"
    );
    assert_eq!(
        value(
            &mut session,
            "SELECT current_user || ' ' || (current_setting('work_mem') = '1MB')"
        )?,
        "postgres false"
    );
    for statement in [
        "SET ROLE postgres",
        "RESET SESSION AUTHORIZATION",
        "ALTER ROLE app SUPERUSER",
    ] {
        let refusal = refusal(
            &mut session,
            &format!("SELECT snowflake_migration_run('t', '{statement}')"),
        )?;
        assert_eq!(refusal.sqlstate, "42501", "{statement}: {refusal}");
        refused += 1;
    }
    // One's own row is nobody else's to see.
    let mut app = cluster.connect_as("app", "postgres")?;
    app.batch_execute(&row("'t'", "'serial'"))?;
    client.batch_execute("REVOKE ALL ON snowflake_origins FROM stranger")?;
    let mut stranger = cluster.connect_as("stranger", "postgres")?;
    assert_eq!(
        value(
            &mut stranger,
            "SELECT snowflake_migration_origin('t', 'id') IS NULL"
        )?,
        "t"
    );
    assert_eq!(
        value(
            &mut app,
            "SELECT (snowflake_migration_origin('t', 'id')).kind"
        )?,
        "serial"
    );
    // A text that begins another statement goes nowhere.
    client.batch_execute(
        "ALTER TABLE t ALTER id SET DEFAULT snowflake_nextval(), ALTER id TYPE bigint",
    )?;
    for role in ["postgres", "app"] {
        let mut session = cluster.connect_as(role, "postgres")?;
        let refusal = refusal(&mut session, "CALL snowflake_migrate_revert('t', 'id')")?;
        assert_eq!(refusal.sqlstate, "42601", "{refusal}");
        refused += 1;
    }
    println!("migration rights: {refused} calls refused, with the SQLSTATE that they have");
    Ok(())
}
