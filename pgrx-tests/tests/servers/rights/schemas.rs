//! No role gains a right by exchanging a schema in which other roles have tables.
//!
//! Who owns a schema can rename it, and needs no privilege on what is in it: the owner of
//! a database owns `public`. Each call waits for a lock on its table while the attacker
//! puts another schema in the place of the table's, in which the name is a table or a
//! view of his own. So each exchange falls between the reading of a name and its use.
//! No cheaper tier has two sessions.

use super::server;
use crate::support::*;

const DATABASE: &str = "shop";

/// Of the owner of the tables: one to migrate, one that references it, one that is half
/// migrated online, one with IDs and one that was migrated.
const TABLES: &str = "
    CREATE TABLE public.t (id serial PRIMARY KEY, n int); INSERT INTO public.t (n) SELECT 1 FROM generate_series(1, 20);
    CREATE TABLE public.u (id serial PRIMARY KEY, n int); INSERT INTO public.u (n) VALUES (1);
    CREATE TABLE public.r (t_id int REFERENCES public.t); INSERT INTO public.r SELECT id FROM public.t;
    CREATE FUNCTION public.gate() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(77); RETURN true; END $$;
    CREATE TABLE public.o (id serial PRIMARY KEY, n int, CHECK (public.gate())); INSERT INTO public.o (n) SELECT 1 FROM generate_series(1, 20);
    CREATE TABLE public.w (id bigint PRIMARY KEY DEFAULT ext.snowflake_nextval(), n int); INSERT INTO public.w (n) VALUES (1), (2);
    CREATE TABLE public.m (id serial PRIMARY KEY, n int); INSERT INTO public.m (n) VALUES (1);
    CREATE VIEW public.v AS SELECT id FROM public.t;
    CALL snowflake_migrate.run('public.m');
    GRANT REFERENCES ON public.t, public.u, public.o, public.w, public.m TO mallory;";

/// What another session has locked, and how: writes wait for SHARE, and reads too for
/// ACCESS EXCLUSIVE. And a call that works on it.
const CALLS: &[(&str, &str, &str)] = &[
    ("t", ALL, "SELECT * FROM snowflake_migrate.plan('public.t')"),
    (
        "t",
        ALL,
        "SELECT * FROM snowflake_migrate.plan('public.t', online => true)",
    ),
    ("t", ALL, "SELECT * FROM snowflake_migrate.survey()"),
    ("t", WRITES, "CALL snowflake_migrate.run('public.t')"),
    ("r", WRITES, "CALL snowflake_migrate.run('public.t')"),
    (
        "t",
        WRITES,
        "CALL snowflake_migrate.run('public.t', also => '{public.u}')",
    ),
    (
        "t",
        WRITES,
        "SELECT snowflake_migrate_internal.alter('ALTER TABLE public.t ALTER COLUMN id TYPE bigint')",
    ),
    ("o", WRITES, "CALL snowflake_migrate.backfill('public.o')"),
    ("o", ROWS, "CALL snowflake_migrate.backfill('public.o')"),
    ("w", ALL, "SELECT * FROM ext.snowflake_audit('public.w')"),
    ("w", ALL, "SELECT * FROM ext.snowflake_audit_tables()"),
    ("w", WRITES, "CALL ext.snowflake_watch('public.w')"),
    ("m", ALL, "CALL snowflake_migrate.revert('public.m')"),
    ("m", WRITES, "CALL snowflake_migrate.revert('public.m')"),
    ("o", WRITES, "CALL snowflake_migrate.revert('public.o')"),
];
const WRITES: &str = "LOCK TABLE # IN SHARE MODE";
const ALL: &str = "LOCK TABLE # IN ACCESS EXCLUSIVE MODE";
/// Each written row waits for it, and what comes after the rows falls into the exchange.
const ROWS: &str = "SELECT pg_advisory_xact_lock(77)";

/// What the names are in the attacker's schema.
const FORGERIES: [&str; 3] = ["table", "view", "linked table"];

/// A schema `fake` with tables or views of the names and columns of those in `public`,
/// each of which strikes.
fn forge(attacker: &mut Client, forgery: &str) -> Result<()> {
    attacker.batch_execute(
        "SET client_min_messages = error; DROP SCHEMA IF EXISTS fake CASCADE; CREATE SCHEMA fake; GRANT USAGE ON SCHEMA fake TO PUBLIC",
    )?;
    for name in ["t", "u", "r", "o", "w", "m", "v"] {
        let columns = |column: &str| -> String {
            format!(
                "(SELECT string_agg({column}, ', ' ORDER BY a.attnum) FROM pg_attribute AS a
                  WHERE a.attrelid = 'public.{name}'::regclass AND a.attnum > 0 AND NOT a.attisdropped)"
            )
        };
        // A change of the key's type checks the constraint again.
        let key = if name == "r" { "t_id" } else { "id" };
        let forged = if forgery == "linked table" {
            // The planner evaluates an expression of an index that is constant.
            let reference = if ["t", "u", "o", "w", "m"].contains(&name) {
                format!(
                    "; ALTER TABLE fake.{name} ADD FOREIGN KEY (id) REFERENCES public.{name} NOT VALID"
                )
            } else {
                String::new()
            };
            format!(
                "'CREATE TABLE fake.{name} (' || {} || '); CREATE INDEX ON fake.{name} ((arms.quiet(1))){reference}'",
                columns("format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))")
            )
        } else if forgery == "table" {
            format!(
                "'CREATE TABLE fake.{name} (' || {} || ', CHECK (arms.strike() > 0 AND ({key} IS NULL OR true))); INSERT INTO fake.{name} DEFAULT VALUES'",
                columns("format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))")
            )
        } else {
            format!(
                "'CREATE VIEW fake.{name} AS SELECT ''(0,1)''::tid AS ctid, ' || {} || '; CREATE RULE struck AS ON UPDATE TO fake.{name} DO INSTEAD SELECT arms.strike()'",
                columns(
                    "format('arms.strike()::text::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname)"
                )
            )
        };
        attacker.batch_execute(&format!(
            "DO $$ BEGIN EXECUTE {forged}; END $$; GRANT ALL ON fake.{name} TO PUBLIC"
        ))?;
    }
    Ok(())
}

/// Whether the attacker's exchange went through. It gives up if it has to wait.
fn exchange(attacker: &mut Client, to: [&str; 2]) -> Result<bool> {
    let [away, from] = to;
    let swapped = attacker.batch_execute(&format!(
        "SET lock_timeout = '500ms'; BEGIN; ALTER SCHEMA public RENAME TO {away}; ALTER SCHEMA {from} RENAME TO public; COMMIT"
    ));
    let Err(error) = swapped else {
        return Ok(true);
    };
    attacker.batch_execute("ROLLBACK")?;
    match error.as_db_error().map(|error| error.code().code()) {
        Some("55P03") => Ok(false),
        _ => Err(error).context("exchanging the schemas"),
    }
}

/// Waits until the session of this process waits for a lock, or is done.
fn waits(observer: &mut Client, pid: i32, is_done: impl Fn() -> bool) -> Result<()> {
    let query = format!("SELECT count(*) > 0 FROM pg_locks WHERE pid = {pid} AND NOT granted");
    // The server's statement_timeout ends what does not end by itself.
    while observer.value(&query)? != "t" && !is_done() {
        thread::sleep(std::time::Duration::from_millis(2));
    }
    Ok(())
}

/// Each call of `caller` on the tables of `owner`, and each forgery. Returns how many
/// exchanges fell into a call.
fn schemas_are_exchanged(
    cluster: &Cluster,
    owner: &str,
    caller: &str,
    attacks: &mut Attacks<'_>,
) -> Result<usize> {
    let mut admin = cluster.connect_to(DATABASE)?;
    let mut attacker = cluster.connect_as("mallory", DATABASE)?;
    let mut exchanged = 0;
    for forgery in FORGERIES {
        for (table, lock, call) in CALLS {
            let mut keeper = cluster.connect_as(owner, DATABASE)?;
            keeper.batch_execute(
                "SET client_min_messages = error; DROP TABLE IF EXISTS public.t, public.u, public.r, public.o, public.w, public.m CASCADE; DROP FUNCTION IF EXISTS public.gate()",
            )?;
            keeper.batch_execute(TABLES)?;
            begin_online(&mut keeper)?;
            forge(&mut attacker, forgery)?;

            keeper.batch_execute(&format!(
                "BEGIN; {}",
                lock.replace('#', &format!("public.{table}"))
            ))?;
            let mut session = Session::connect(cluster, caller, DATABASE)?;
            session.run("SET statement_timeout = '60s'; SET lock_timeout = '60s'")?;
            let pid = i32::try_from(session.client.number("SELECT pg_backend_pid()")?)?;
            let running = thread::spawn(move || session.attempt(call));
            waits(&mut admin, pid, || running.is_finished())?;
            let is_exchanged = exchange(&mut attacker, ["public_old", "fake"])?;
            exchanged += usize::from(is_exchanged);
            keeper.batch_execute("ROLLBACK")?;
            let Ok(answer) = running.join() else {
                bail!("the calling thread panicked");
            };
            let (_, answer) = answer?;
            let what = format!(
                "{caller} calls {call} on tables of {owner}; in between, a {forgery} of another schema"
            );
            attacks.check(&what)?;
            attacks.check_leak(&answer, &what);
            if is_exchanged && !exchange(&mut attacker, ["fake", "public_old"])? {
                bail!("{what}: the schemas can't be exchanged again");
            }
        }
    }
    Ok(exchanged)
}

/// Migrates `public.o` up to the copying of its rows.
fn begin_online(owner: &mut Client) -> Result<()> {
    let steps: Vec<String> = owner
        .query(
            "SELECT statement FROM snowflake_migrate.plan('public.o', online => true) WHERE statement IS NOT NULL ORDER BY step",
            &[],
        )?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let adding = steps
        .iter()
        .take_while(|statement| !statement.contains("snowflake_migrate.backfill"));
    owner.run(adding)
}

#[test]
fn schemas_exchanged_under_a_call_give_no_right() -> Result<()> {
    let cluster = server()?;
    cluster.run("CREATE ROLE victim LOGIN")?;
    cluster.run(&format!("CREATE DATABASE {DATABASE} OWNER mallory"))?;
    let mut admin = cluster.connect_to(DATABASE)?;
    admin.batch_execute(
        "CREATE SCHEMA ext; GRANT USAGE ON SCHEMA ext TO PUBLIC; CREATE EXTENSION snowflake SCHEMA ext; CREATE EXTENSION snowflake_migrate;
         GRANT ALL ON SCHEMA public TO victim",
    )?;
    admin.batch_execute(ATTACK_FUNCTIONS)?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut exchanged = 0;
    let roles = [
        ("postgres", "postgres"),
        ("victim", "postgres"),
        ("victim", "victim"),
    ];
    for (owner, caller) in &roles[..tier::size(2, 3)] {
        exchanged += schemas_are_exchanged(&cluster, owner, caller, &mut attacks)?;
        cluster.connect_to(DATABASE)?.batch_execute(
            "SET client_min_messages = error; DROP TABLE IF EXISTS public.t, public.u, public.r, public.o, public.w, public.m CASCADE; DROP FUNCTION IF EXISTS public.gate()",
        )?;
    }
    assert!(exchanged > 20, "{exchanged}");
    attacks.end("schemas of others, exchanged while a call works on a table");
    Ok(())
}
