//! Memory that ends is an error of one session. A process that aborts ends all others.
//!
//! No cheaper tier sees this: a test within a session, and the regression tests, have a
//! server without a limit, where every allocation succeeds. What shows the mistake is that
//! the server ends.

use crate::support::*;

/// Bytes of each text, and of memory: PostgreSQL itself takes several copies of some.
const TEXT_BYTES: usize = 20_000_000;
const MEMORY_LIMIT_BYTES: u64 = 1_000_000_000;

/// What the texts repeat.
const PIECES: [&str; 6] = ["+", "'", "$a$ ", "\"", "a,", "f(new.a,"];

/// An argument of a type, where it is no text.
fn argument(type_name: &str) -> &'static str {
    match type_name {
        "regclass" => "'g.t'::regclass",
        "oid" => "'guest'::regrole::oid",
        "name" => "'id'::name",
        "name[]" => "ARRAY['id']::name[]",
        "regclass[]" => "ARRAY['g.t']::regclass[]",
        "snowflake_migrate_internal.key[]" => {
            "ARRAY[('g.t', 'id')::snowflake_migrate_internal.key]"
        }
        "bigint" => "1::bigint",
        "integer" => "1::integer",
        "boolean" => "true",
        "timestamp with time zone" => "now()",
        "interval" => "'1 day'::interval",
        "jsonb" => "'{}'::jsonb",
        _ => "NULL",
    }
}

#[test]
fn a_text_of_any_length_ends_no_other_session() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("jit", "off")
        .conf("log_min_messages", "fatal")
        .memory_limit(MEMORY_LIMIT_BYTES)
        .time_limit(Duration::from_secs(1800))
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE guest LOGIN; CREATE SCHEMA g AUTHORIZATION guest;
         CREATE TABLE victim (id serial PRIMARY KEY);
         CREATE FUNCTION attempt(statement text) RETURNS text LANGUAGE plpgsql AS $f$
         BEGIN
             EXECUTE statement;
             RETURN '00000';
         EXCEPTION WHEN OTHERS THEN
             RETURN SQLSTATE;
         END $f$",
    )?;
    let mut guest = cluster.connect_as("guest", "postgres")?;
    guest
        .batch_execute("CREATE TABLE g.t (id serial PRIMARY KEY); SET statement_timeout = '5s'")?;
    let pid = client.number("SELECT pg_backend_pid()")?;
    let begun = client.value("SELECT pg_postmaster_start_time()")?;

    let functions = client.query(
        "SELECT format('%s', p.oid::regproc), p.prokind = 'p', ARRAY(SELECT format_type(a.type, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, place) ORDER BY place)
         FROM pg_proc AS p
         JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
         JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname IN ('snowflake', 'snowflake_migrate')
         WHERE 'text'::regtype = ANY (p.proargtypes) ORDER BY p.oid",
        &[],
    )?;
    ensure!(functions.len() > 20, "{} functions", functions.len());
    for row in &functions {
        let (name, is_procedure): (String, bool) = (row.get(0), row.get(1));
        let types: Vec<String> = row.get(2);
        for piece in PIECES {
            let text = format!("repeat($p${piece}$p$, {})", TEXT_BYTES / piece.len());
            let arguments: Vec<&str> = types
                .iter()
                .map(|it| {
                    if it == "text" {
                        text.as_str()
                    } else {
                        argument(it)
                    }
                })
                .collect();
            let verb = if is_procedure { "CALL" } else { "SELECT" };
            let call = format!("{verb} {name}({})", arguments.join(", "));
            let attempt = format!("SELECT attempt($call${call}$call$)");
            if let Err(error) = guest.value(&attempt) {
                // Its time may have ended, but not the session.
                ensure!(!guest.is_closed(), "{call}: {error:#}");
                guest.value("SELECT 1")?;
            }
        }
    }

    // Settings of any length.
    guest.run([
        "RESET statement_timeout".to_owned(),
        format!("SELECT set_config('search_path', repeat('a,', {TEXT_BYTES} / 20) || 'g', false)"),
    ])?;
    for call in [
        "CALL snowflake_migrate.run('g.t')",
        "SELECT snowflake_migrate_internal.alter('ALTER TABLE g.t ALTER COLUMN id TYPE bigint')",
    ] {
        let error = guest.expect_error(call)?;
        ensure!(
            ["22023", "54000"].contains(&error.sqlstate.as_str()),
            "{call}: {error}"
        );
    }
    // Tables that inherit on many levels, on each of them from both of the one above.
    guest.run([
            "SET search_path = g; CREATE TABLE a0 (id bigint); CREATE TABLE b0 (id bigint)",
            "DO $$ BEGIN FOR n IN 1 .. 40 LOOP
                 EXECUTE format('CREATE TABLE a%1$s () INHERITS (a%2$s, b%2$s); CREATE TABLE b%1$s () INHERITS (a%2$s, b%2$s)', n, n - 1);
             END LOOP; END $$",
            "SELECT public.snowflake_set_id_boundary('a0', 'id', 1)",
            "SET statement_timeout = '20s'",
        ],
    )?;
    guest.answers("SELECT public.snowflake_id_boundary('b40', 'id')", 1)?;

    // A superuser's plan beside functions of such a role.
    guest.run([
            "RESET statement_timeout; SET check_function_bodies = off".to_owned(),
            format!(
                "DO $do$ BEGIN EXECUTE format('CREATE FUNCTION g.f() RETURNS int LANGUAGE plpgsql AS %L',
                     'BEGIN PERFORM currval(''victim_id_seq''); ' || repeat('+', {TEXT_BYTES})); END $do$"
            ),
        ],
    )?;
    let notes =
        client.value("SELECT string_agg(note, ' ') FROM snowflake_migrate.plan('victim')")?;
    ensure!(
        notes.contains("function g.f() was not searched, because its body is larger than 1 MB"),
        "{notes}"
    );

    client.answers("SELECT pg_backend_pid()", pid)?;
    client.answers("SELECT pg_postmaster_start_time()", begun)?;
    Ok(())
}

/// A message shows the beginning of a long argument.
#[test]
fn messages_are_short_whatever_the_argument() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    for call in [
        "snowflake_from_text(repeat('+', 1000000))",
        "snowflake_from_text('a', repeat('é', 1000000))",
        "snowflake_decode(1, repeat('é', 1000000))",
        "snowflake_decode(1, repeat('timestamp:1 ', 1000000))",
        "snowflake_internal.lock_table('pg_class', repeat('x', 1000000))",
        "snowflake_internal.run('pg_class', 'SELECT 1', repeat('a b ', 250000))",
    ] {
        let error = client.expect_error(&format!("SELECT {call}"))?;
        for part in [&error.message, &error.detail, &error.hint] {
            ensure!(part.chars().count() < 500, "{call}: {part:.1000}");
        }
        ensure!(error.message.contains("..."), "{call}: {}", error.message);
    }
    Ok(())
}
