//! Whose rights a migration has. What a table's owner wrote (checks, functions
//! of indexes, generated columns, triggers, defaults) runs with the owner's
//! rights when a superuser migrates the table, and the functions that do so
//! refuse all roles that do not have those rights anyway.

use std::fmt::Write as _;

use crate::support::*;

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
    // such, and PostgreSQL plans its query over both tables with those rights.
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
    client.answers("SELECT rolsuper FROM pg_roles WHERE rolname = 'app'", "f")?;
    client.batch_execute("DELETE FROM public.seen")?;
    Ok(by_owner)
}

/// Inserts a row of the owner's before and after reverting, which resumes the
/// sequence after 50 rows.
fn revert(client: &mut Client, app: &mut Client, table: &str) -> Result<()> {
    let insert = format!("INSERT INTO s.{table} (n) VALUES (1) RETURNING id");
    app.batch_execute(&insert)?;
    seen(client, "an owner's row")?;
    client.batch_execute(&format!("CALL snowflake_migrate.revert('s.{table}')"))?;
    seen(client, "reverted")?;
    app.answers(&insert, "51")?;
    client.batch_execute("DELETE FROM public.seen")?;
    Ok(())
}

#[test]
fn owners_code_runs_as_the_owner_when_a_superuser_migrates() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let mut app = cluster.connect_as("postgres", "postgres")?;
    client.batch_execute(WITNESSES)?;
    app.batch_execute("SET ROLE app")?;

    create(client, "w", true)?;
    client.batch_execute("CALL snowflake_migrate.run('s.w')")?;
    let rewritten = seen(client, "in a maintenance window")?;
    assert!(rewritten > 0, "no code of the owner's ran");
    revert(client, &mut app, "w")?;

    // So that the backfill need not fire its trigger.
    client.batch_execute("GRANT SET ON PARAMETER session_replication_role TO app")?;
    create(client, "o", false)?;
    online::migrate(client, "'s.o'")?;
    let copied = seen(client, "online")?;
    assert!(copied > 0, "no code of the owner's ran");
    revert(client, &mut app, "o")?;

    // Cancelled before the swap.
    create(client, "b", false)?;
    let steps = online::plan(client, "'s.b'")?;
    client.run(online::statements(&steps[..4]))?;
    client.batch_execute("CALL snowflake_migrate.revert('s.b')")?;
    seen(client, "cancelled")?;
    Ok(())
}

/// The planner runs functions of constants in an index's predicate.
#[test]
fn owners_code_runs_as_the_owner_when_a_superuser_audits() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(WITNESSES)?;
    create(&mut client, "w", true)?;
    client.batch_execute("SELECT * FROM snowflake_audit('s.w')")?;
    seen(&mut client, "audited")?;
    Ok(())
}

/// An identity column, whose sequence is created anew, and a serial whose sequence
/// was dropped: both are the owner's afterwards, with the privileges they had.
#[test]
fn sequences_that_a_superuser_restores_are_the_owners() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE reader; CREATE SCHEMA s AUTHORIZATION app; SET ROLE app;
         CREATE TABLE s.i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY); GRANT SELECT ON SEQUENCE s.i_id_seq TO reader;
         COMMENT ON SEQUENCE s.i_id_seq IS 'kept'; INSERT INTO s.i SELECT FROM generate_series(1, 3);
         CREATE TABLE s.d (id serial PRIMARY KEY); INSERT INTO s.d SELECT FROM generate_series(1, 3);
         RESET ROLE; CALL snowflake_migrate.run('s.i'); CALL snowflake_migrate.run('s.d'); DROP SEQUENCE s.d_id_seq;
         CALL snowflake_migrate.revert('s.i'); CALL snowflake_migrate.revert('s.d')",
    )?;
    for sequence in ["s.i_id_seq", "s.d_id_seq"] {
        let state = format!(
            "SELECT relowner::regrole::text || ' ' || nextval(oid::regclass) FROM pg_class WHERE oid = '{sequence}'::regclass"
        );
        client.answers(&state, "app 4")?;
    }
    client.answers(
        "SELECT has_sequence_privilege('reader', 's.i_id_seq', 'SELECT') || ' ' || obj_description('s.i_id_seq'::regclass)",
        "true kept",
    )?;
    Ok(())
}

/// A default that draws from another role's sequence: its counter is not
/// recorded, and is only ever moved ahead.
#[test]
fn another_roles_sequence_is_neither_recorded_nor_moved_back() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE stranger; GRANT CREATE ON SCHEMA public TO app, stranger; SET ROLE stranger;
         CREATE SEQUENCE secret; SELECT setval('secret', 4711); CREATE SEQUENCE lent; SELECT setval('lent', 100); GRANT ALL ON SEQUENCE lent TO app;
         SET ROLE app; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT nextval('secret')); CREATE TABLE l (id bigint PRIMARY KEY DEFAULT nextval('lent'));
         INSERT INTO l VALUES (DEFAULT); RESET ROLE",
    )?;
    let mut app = cluster.connect_as("app", "postgres")?;
    app.batch_execute("CALL snowflake_migrate.run('t'); CALL snowflake_migrate.run('l')")?;
    client.answers(
        "SELECT count(*) FROM snowflake_migrate_internal.origins AS o WHERE o.sequence_last_value IS NOT NULL OR to_jsonb(o)::text ~ '4711'",
        0,
    )?;
    app.batch_execute("INSERT INTO l VALUES (DEFAULT), (105)")?;
    app.batch_execute("CALL snowflake_migrate.revert('t'); CALL snowflake_migrate.revert('l')")?;
    client.answers("SELECT last_value FROM secret", "4711")?;
    app.answers("INSERT INTO l VALUES (DEFAULT) RETURNING id", "106")?;
    Ok(())
}

/// Functions of the extension's names, in its schema, whose arguments are nearer
/// to what is passed wherever a call leaves it to PostgreSQL to convert it. A role
/// that may create functions there would have them run by a superuser.
#[test]
fn functions_of_nearly_the_same_arguments_are_not_called() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
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
                WHERE (p.proname ~ '^snowflake' OR p.pronamespace = 'snowflake_internal'::regnamespace) AND p.pronargs > 0 AND p.prorettype <> 'internal'::regtype
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
        CALL snowflake_migrate.run('w'::regclass, 'id'::name); CALL snowflake_migrate.revert('w'::regclass, 'id'::name);
        CREATE TABLE o (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO o (n) SELECT generate_series(1, 10);
        CREATE INDEX ON o (n, id); CREATE TABLE o_r (id int REFERENCES o); CREATE TABLE b (LIKE o INCLUDING ALL)"#,
    )?;
    online::migrate(client, "'o'::regclass, 'id'::name")?;
    let steps = online::plan(client, "'b'::regclass, 'id'::name")?;
    client.run(online::statements(&steps[..4]))?;
    client.batch_execute(
        "SELECT * FROM snowflake_migrate.columns; SELECT * FROM snowflake_migrate.progress;
         SELECT * FROM snowflake_audit('o'::regclass, 'id'::name, NULL::integer[], NULL::bigint);
         CALL snowflake_migrate.revert('o'::regclass, 'id'::name); CALL snowflake_migrate.revert('b'::regclass, 'id'::name)",
    )?;
    Ok(())
}

/// A table `t` of `app`'s, one of `stranger`'s, and privileges on all tables.
fn tables() -> Result<(Cluster, Client)> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN; GRANT CREATE ON SCHEMA public TO app; SET ROLE app;
         CREATE TABLE t (id serial PRIMARY KEY); GRANT SELECT ON t TO stranger; RESET ROLE;
         CREATE TABLE own (id serial PRIMARY KEY); ALTER TABLE own OWNER TO stranger;
         GRANT ALL ON ALL TABLES IN SCHEMA public, snowflake_internal TO stranger, app; REVOKE ALL ON t FROM stranger",
    )?;
    Ok((cluster, client))
}

/// A call that records a table's state, with a text that begins another statement.
macro_rules! keep_origin {
    ($table:literal, $kind:literal) => {
        concat!(
            "SELECT snowflake_migrate_internal.keep_origin(ROW(",
            $table,
            ", 'id', ",
            $kind,
            ", 'integer', '0; ALTER ROLE app SUPERUSER; --',
             NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 1, now(), NULL)::snowflake_migrate_internal.origins)"
        )
    };
}

/// Statements that a role is refused, with the SQLSTATE.
fn assert_refused(role: &str, statements: &[(&str, &str)]) -> Result<()> {
    let (cluster, _client) = tables()?;
    for (statement, sqlstate) in statements {
        let mut session = cluster.connect_as(role, "postgres")?;
        session.batch_execute("BEGIN; SAVEPOINT s")?;
        session.refused(statement, sqlstate)?;
        session.batch_execute("ROLLBACK TO s")?;
        let locks: Vec<String> = session.column(
            "SELECT mode FROM pg_locks WHERE relation = 't'::regclass AND pid = pg_backend_pid() AND mode <> 'AccessShareLock'",
        )?;
        assert!(locks.is_empty(), "{role}: {statement}: {locks:?}");
    }
    Ok(())
}

#[test]
#[rustfmt::skip]
fn internal_functions_refuse_tables_of_others() -> Result<()> {
    assert_refused("stranger", &[
        ("SELECT snowflake_internal.run('t', 'SELECT 1')", "42501"),
        ("SELECT snowflake_internal.read('t', 'SELECT id FROM public.t')", "42501"),
        ("SELECT snowflake_migrate_internal.query('t', 'SELECT 1')", "42501"),
        ("SELECT snowflake_internal.lock_table('t', 'ACCESS EXCLUSIVE')", "42501"),
        ("SELECT * FROM snowflake_migrate_internal.sequence_state('t_id_seq', 't')", "42501"),
        ("SELECT snowflake_migrate_internal.progress('t', 'id', 'own')", "42501"),
        ("SELECT snowflake_migrate_internal.progress('own', 'id', 't')", "42501"),
        ("SELECT snowflake_migrate_internal.end_backfill('t', 'id')", "42501"),
        (keep_origin!("'t'", "'serial'"), "42501"),
    ])
}

#[test]
#[rustfmt::skip]
fn internal_functions_refuse_what_is_no_table_lock_or_statement() -> Result<()> {
    assert_refused("app", &[
        // Not existing, or no table.
        ("SELECT snowflake_internal.run(0, 'SELECT 1')", "42P01"),
        ("SELECT snowflake_internal.run(NULL, 'SELECT 1')", "42P01"),
        ("SELECT snowflake_internal.lock_table(4294967295, 'ACCESS EXCLUSIVE')", "42P01"),
        ("SELECT snowflake_internal.lock_table('t_pkey', 'ACCESS EXCLUSIVE')", "42809"),
        ("SELECT snowflake_internal.lock_table('t', 'EXCLUSIVE')", "22023"),
        ("SELECT snowflake_internal.lock_table('t', NULL)", "22023"),
        // Not one statement.
        ("SELECT snowflake_internal.run('t', NULL)", "22004"),
        ("SELECT snowflake_internal.run('t', '')", "42601"),
        ("SELECT snowflake_internal.run('t', 'SELECT 1; SELECT 2')", "42601"),
        ("SELECT snowflake_internal.run('t', 'SELEC 1')", "42601"),
        ("SELECT snowflake_internal.run('t', 'COMMIT')", "0A000"),
        ("SELECT snowflake_internal.run('t', 'COPY t FROM STDIN')", "0A000"),
        ("SELECT snowflake_migrate_internal.query('t', 'DELETE FROM public.t')", "0A000"),
    ])
}

#[test]
#[rustfmt::skip]
fn records_of_migrations_refuse_rows_that_no_migration_writes() -> Result<()> {
    assert_refused("app", &[
        // Rows that the table could not have by SQL.
        (keep_origin!("'t'", "'other'"), "23514"),
        (keep_origin!("'t'", "NULL"), "23502"),
        (keep_origin!("NULL", "'serial'"), "23502"),
        (keep_origin!("0", "'serial'"), "42P01"),
        // Privileges on the tables have no effect.
        ("INSERT INTO snowflake_migrate_internal.origins VALUES ('t', 'id', 'none', 'bigint')", "42501"),
        ("UPDATE snowflake_migrate_internal.origins SET default_expression = 'now()'", "42501"),
        ("DELETE FROM snowflake_migrate_internal.origins", "42501"),
        ("TRUNCATE snowflake_migrate_internal.origins", "42501"),
        ("DELETE FROM snowflake_migrate_internal.progress", "42501"),
        ("TRUNCATE snowflake_migrate_internal.progress", "42501"),
    ])
}

#[test]
fn statements_run_as_the_owner_and_change_no_settings() -> Result<()> {
    let (_cluster, mut client) = tables()?;
    let client = &mut client;
    client.answers(
        "SELECT snowflake_internal.run('t', 'SELECT current_user, current_setting(''search_path''), NULL, set_config(''work_mem'', ''1MB'', false)')::text",
        "{app,\"pg_catalog, pg_temp\",NULL,1MB}",
    )?;
    client.answers(
        "SELECT current_user || ' ' || (current_setting('work_mem') = '1MB')",
        "postgres false",
    )?;
    for statement in [
        "SET ROLE postgres",
        "RESET SESSION AUTHORIZATION",
        "ALTER ROLE app SUPERUSER",
    ] {
        client.refused(
            &format!("SELECT snowflake_internal.run('t', '{statement}')"),
            "42501",
        )?;
    }
    Ok(())
}

#[test]
fn a_recorded_row_is_its_owners_and_runs_no_second_statement() -> Result<()> {
    let (cluster, mut client) = tables()?;
    let mut app = cluster.connect_as("app", "postgres")?;
    app.batch_execute(keep_origin!("'t'", "'serial'"))?;
    client.batch_execute("REVOKE ALL ON snowflake_migrate_internal.origins FROM stranger")?;
    let mut stranger = cluster.connect_as("stranger", "postgres")?;
    let hidden = "SELECT snowflake_migrate_internal.origin('t', 'id') IS NULL";
    stranger.answers(hidden, "t")?;
    let kind = "SELECT (snowflake_migrate_internal.origin('t', 'id')).kind";
    app.answers(kind, "serial")?;
    client.batch_execute(
        "ALTER TABLE t ALTER id SET DEFAULT snowflake_nextval(), ALTER id TYPE bigint",
    )?;
    for role in ["postgres", "app"] {
        let mut session = cluster.connect_as(role, "postgres")?;
        session.refused("CALL snowflake_migrate.revert('t', 'id')", "42601")?;
    }
    Ok(())
}

/// Sessions compile trigger functions again, also those that the table's owner could
/// not alter.
#[test]
fn trigger_functions_of_another_role_continue_to_work() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    admin.run(
        "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE SCHEMA s AUTHORIZATION app; CREATE SCHEMA o AUTHORIZATION other;
         GRANT USAGE ON SCHEMA o TO app",
    )?;
    let mut app = Session::connect(&cluster, "app", "postgres")?;
    for session in [&mut admin, &mut app] {
        session.run("SET statement_timeout = '1min'")?;
    }
    Session::connect(&cluster, "other", "postgres")?.run(
        "CREATE FUNCTION o.trg() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE seen bigint; BEGIN seen := NEW.id; RETURN NEW; END $$",
    )?;
    for table in ["s.t", "s.v"] {
        app.run(&format!(
            "CREATE TABLE {table} (id serial PRIMARY KEY, n int);
             CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION o.trg()"
        ))?;
        app.run(&format!("INSERT INTO {table} (n) VALUES (1)"))?;
    }
    let answer = admin.run("CALL snowflake_migrate.run('s.t')")?;
    assert!(!answer.contains("have to reconnect"), "{answer}");
    app.run("INSERT INTO s.t (n) VALUES (2)")?;
    // Nothing remains of what the steps were told.
    admin.client.answers(
        "SELECT coalesce(current_setting('snowflake_migrate_internal.recompiles_later', true), '')",
        "",
    )?;
    // A caller who cannot alter the function sees the reason.
    let answer = app.run("CALL snowflake_migrate.run('s.v')")?;
    for part in [
        "have to reconnect: o.trg()",
        "o.trg(): must be able to act as its owner, other.",
    ] {
        assert!(answer.contains(part), "no {part:?} in {answer}");
    }
    Ok(())
}

#[test]
fn only_functions_that_name_a_table_are_compiled_again() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        r#"CREATE TABLE item (id serial PRIMARY KEY); CREATE TABLE "Odd ""i.tem" (id serial PRIMARY KEY);"#,
    )?;
    for (name, body) in [
        ("word", "RETURN (SELECT max(id) FROM item);"),
        ("quoted", r#"RETURN (SELECT max(id) FROM public."item");"#),
        ("upper_case", "RETURN (SELECT max(id) FROM ITEM);"),
        ("dynamic", "EXECUTE 'TABLE item'; RETURN 1;"),
        ("odd", r#"RETURN (SELECT max(id) FROM "Odd ""i.tem");"#),
        ("longer", "RETURN (SELECT max(items.id) FROM items);"),
        (
            "parts",
            "RETURN (SELECT max(item_id + my_item + item2 + item$2) FROM sitem);",
        ),
        (
            "other_odd",
            r#"RETURN (SELECT max(id) FROM "Odd ""ixtem");"#,
        ),
    ] {
        client.batch_execute(&format!(
            "CREATE FUNCTION {name}() RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN {body} END $f$"
        ))?;
    }
    client.batch_execute("CREATE FUNCTION row_type() RETURNS bigint LANGUAGE plpgsql AS $f$ DECLARE r item%ROWTYPE; BEGIN RETURN r.id; END $f$")?;
    for (tables, expected) in [
        (
            "'item'",
            "dynamic() quoted() row_type() upper_case() word()",
        ),
        (r#"'"Odd ""i.tem"'"#, "odd()"),
    ] {
        client.answers(
            &format!(
                "SELECT string_agg(f.function::text, ' ' ORDER BY f.function::text)
                 FROM snowflake_migrate_internal.compiled_functions(ARRAY[{tables}::regclass]) AS f"
            ),
            expected,
        )?;
    }
    Ok(())
}

/// A table of one role that another role's table references, and a view of a third one.
/// Its check sets back the role of whoever runs it.
const THREE_OWNERS: &str = "
    CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE carol LOGIN; CREATE ROLE member LOGIN; GRANT alice, bob, carol TO member;
    CREATE SCHEMA al AUTHORIZATION alice; GRANT USAGE, CREATE ON SCHEMA al TO bob, carol;
    SET ROLE alice;
    CREATE FUNCTION al.chk(i bigint) RETURNS boolean LANGUAGE sql RETURN true;
    CREATE TABLE al.t (id serial PRIMARY KEY, v text, CHECK (al.chk(id))); INSERT INTO al.t (v) VALUES ('a');
    GRANT SELECT, REFERENCES ON al.t TO bob, carol;
    SET ROLE bob; CREATE TABLE al.r (t_id int REFERENCES al.t); INSERT INTO al.r VALUES (1);
    SET ROLE carol; CREATE VIEW al.v AS SELECT id FROM al.t;
    SET ROLE alice;
    CREATE OR REPLACE FUNCTION al.chk(i bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF session_user <> 'alice' THEN
            PERFORM set_config('role', session_user::text, false);
            EXECUTE 'ALTER ROLE alice SUPERUSER';
        END IF;
        RETURN true;
    END $$;
    RESET ROLE;";

/// What `ddl` prints is split by owner, and no part of it runs for another role: its code
/// would have that role's privileges, whatever SET ROLE says.
#[test]
fn each_part_of_a_script_is_refused_to_all_roles_but_its_own() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(THREE_OWNERS)?;
    let is_superuser = "SELECT rolsuper FROM pg_roles WHERE rolname = 'alice'";
    let of_columns = "SELECT string_agg(format('%s.%s %s', attrelid::regclass, attname, atttypid::regtype), ', ' ORDER BY attrelid::regclass::text)
                      FROM pg_attribute WHERE attrelid IN ('al.t'::regclass, 'al.r'::regclass, 'al.v'::regclass) AND attname IN ('id', 't_id')";
    for (online, keep_sequence) in [(false, true), (true, true), (true, false), (false, false)] {
        let script = client.column::<String>(&format!(
            "SELECT statement FROM snowflake_migrate.ddl('al.t', online => {online}, keep_sequence => {keep_sequence})"
        ))?
        .join("\n");
        // Also to one that has set its role or session user.
        for (user, before) in [
            ("postgres", ""),
            ("postgres", "SET ROLE alice;"),
            ("postgres", "SET SESSION AUTHORIZATION alice;"),
            ("postgres", "SET ROLE carol;"),
            ("member", "SET ROLE alice;"),
            ("member", "SET ROLE carol;"),
            ("bob", ""),
        ] {
            let output = psql(
                &cluster,
                user,
                "postgres",
                &format!("{before}\n{script}"),
                false,
            )?;
            assert!(
                !output.success && output.errors.contains("has to be run by role"),
                "{user} {before}: {}",
                output.errors
            );
        }
        client.answers(is_superuser, "f")?;
        client.answers(
            of_columns,
            "al.r.t_id integer, al.t.id integer, al.v.id integer",
        )?;
        // The role of the first part; the others log in where their parts begin.
        let first = script
            .lines()
            .find_map(|line| {
                line.strip_prefix("-- To be run by role ")?
                    .strip_suffix(':')
            })
            .expect("no role");
        let output = psql(&cluster, first, "postgres", &script, false)?;
        assert!(output.success, "{}\n{script}", output.errors);
        client.answers(
            of_columns,
            "al.r.t_id bigint, al.t.id bigint, al.v.id bigint",
        )?;
        client.answers(is_superuser, "f")?;
        client.batch_execute(
            "DROP SCHEMA al CASCADE; DROP OWNED BY alice, bob, carol; DROP ROLE alice, bob, carol, member",
        )?;
        client.batch_execute(THREE_OWNERS)?;
    }
    Ok(())
}
