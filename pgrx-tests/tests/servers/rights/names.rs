//! No role gains a right by the migration's routines: not by exchanging what a
//! name means between a transaction's snapshot and the statement, not by code
//! in a table that a superuser works on, not by naming a stranger's sequence.
//!
//! SQL in functions sees the catalog by the transaction's snapshot, while the
//! names in a statement are resolved by the newest catalog. In REPEATABLE READ
//! the two differ for as long as an attacker likes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use snowflake_tests::attack::calls;

use super::server;
use crate::support::*;

/// The attacker's tables, which another one refers to.
const TABLES: &str = "
    SET client_min_messages = error;
    DROP SCHEMA IF EXISTS app CASCADE;
    CREATE SCHEMA app;
    CREATE TABLE app.t (id serial PRIMARY KEY, note text);
    INSERT INTO app.t (note) SELECT 'row' FROM generate_series(1, 20);
    CREATE TABLE app.r (t_id int REFERENCES app.t);
    INSERT INTO app.r SELECT 1;";

/// How far a table's migration is.
#[derive(Debug, Clone, Copy)]
enum State {
    New,
    HalfOnline,
    Migrated,
}

/// Makes the tables anew, as their owner does it. The OID of `app.t`.
fn tables(owner: &mut Client, schema: &str, state: State) -> Result<String> {
    owner.batch_execute(TABLES)?;
    owner.batch_execute(&format!("SET search_path = {schema}, public"))?;
    match state {
        State::New => {}
        State::HalfOnline => {
            for step in online::plan(owner, "'app.t'")? {
                if step.is_swap() {
                    break;
                }
                owner.batch_execute(&step.statement)?;
            }
        }
        State::Migrated => owner.batch_execute("CALL snowflake_migrate.run('app.t')")?,
    }
    owner.value("SELECT 'app.t'::regclass::oid")
}

/// A view of that name with the columns of a table, each of which strikes.
fn striking_view(name: &str, like: &str) -> String {
    format!(
        "DO $$ BEGIN EXECUTE (
             SELECT 'CREATE VIEW {name} AS SELECT ''(0,1)''::tid AS ctid, ' || string_agg(
                 CASE a.atttypid WHEN 'boolean'::regtype THEN format('arms.strike() > 0 AS %I', a.attname)
                 ELSE format('arms.strike()::text::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname) END, ', ' ORDER BY a.attnum)
             FROM pg_attribute AS a WHERE a.attrelid = '{like}'::regclass AND a.attnum > 0 AND NOT a.attisdropped);
         END $$;
         CREATE RULE struck AS ON UPDATE TO {name} DO INSTEAD SELECT arms.strike();"
    )
}

/// What is exchanged, how, and back again.
fn swaps() -> Vec<(&'static str, String, &'static str)> {
    let of_table = striking_view("app.t", "app.old");
    let of_sequence = striking_view("app.t_id_seq", "app.old_seq");
    let of_schema = striking_view("app.t", "app_old.t")
        + &striking_view("app.r", "app_old.r")
        + &striking_view("app.t_id_seq", "app_old.t_id_seq");
    vec![
        (
            "the sequence for a view",
            format!("ALTER SEQUENCE app.t_id_seq RENAME TO old_seq; {of_sequence}"),
            "DROP VIEW app.t_id_seq; ALTER SEQUENCE app.old_seq RENAME TO t_id_seq",
        ),
        (
            "the table for a view",
            format!("ALTER TABLE app.t RENAME TO old; {of_table}"),
            "DROP VIEW app.t; ALTER TABLE app.old RENAME TO t",
        ),
        (
            "the schema for one of views",
            format!("ALTER SCHEMA app RENAME TO app_old; CREATE SCHEMA app; {of_schema}"),
            "SET client_min_messages = error; DROP SCHEMA app CASCADE; ALTER SCHEMA app_old RENAME TO app",
        ),
        (
            "the table for a view over a stranger's table",
            "ALTER TABLE app.t RENAME TO old;
             CREATE VIEW app.t WITH (security_invoker) AS SELECT id, note FROM stranger.secret"
                .to_owned(),
            "DROP VIEW app.t; ALTER TABLE app.old RENAME TO t",
        ),
        (
            "the sequence for a view over a stranger's sequence",
            "ALTER SEQUENCE app.t_id_seq RENAME TO old_seq;
             CREATE VIEW app.t_id_seq WITH (security_invoker) AS SELECT last_value, log_cnt, is_called FROM stranger.seq"
                .to_owned(),
            "DROP VIEW app.t_id_seq; ALTER SEQUENCE app.old_seq RENAME TO t_id_seq",
        ),
    ]
}

/// Everything of the extension that the role can read, as text.
fn readable(session: &mut Session) -> Result<String> {
    let mut all = String::new();
    for relation in [
        "snowflake_migrate_internal.origins",
        "snowflake_migrate_internal.progress",
        "snowflake_migrate.columns",
        "snowflake_migrate.progress",
        "snowflake_internal.mark",
    ] {
        let query = format!("SAVEPOINT s; SELECT it::text FROM {relation} AS it; RELEASE s");
        let (worked, answer) = session.attempt(&query)?;
        if worked {
            all += &answer;
        } else {
            session.attempt("ROLLBACK TO s")?;
        }
    }
    Ok(all)
}

/// Every routine of the migration that takes a table, called by that role with
/// a snapshot from before the exchange, for each exchange. Each state has a server
/// of its own: with assertions, these thousands of calls take minutes.
fn names_are_exchanged(caller: &str, state: State) -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; {ATTACK_FUNCTIONS}"
    ))?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut owner = cluster.connect_as("mallory", "postgres")?;
    let mut session = Session::connect(&cluster, caller, "postgres")?;
    for (what, swap, back) in swaps() {
        let table = tables(&mut owner, "public", state)?;
        for call in calls(&mut owner, "public", &table)? {
            let what = format!("{caller}, {state:?}, {what}: {call}");
            session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1")?;
            owner.batch_execute(&swap)?;
            let (worked, mut answer) = session.attempt(&call)?;
            attacks.check(&what)?;
            if caller == "mallory" {
                // Naming a stranger's table takes the weakest lock
                // on it before privileges are looked at.
                let held = client.query(
                    "SELECT mode FROM pg_locks WHERE mode <> 'AccessShareLock' AND locktype = 'relation'
                       AND relation IN ('stranger.secret'::regclass, 'stranger.seq'::regclass)",
                    &[],
                )?;
                attacks.record(
                    !held.is_empty(),
                    format!("{what}: a lock on the stranger's table"),
                );
                if worked {
                    answer += &readable(&mut session)?;
                }
                attacks.check_leak(&answer, &what);
            }
            session.run("ROLLBACK")?;
            owner.batch_execute(back)?;
        }
    }
    attacks.end(&format!(
        "the owner of a table ({state:?}) exchanges names under a snapshot of {caller}"
    ));
    Ok(())
}

/// The same for each state; at each push for the one in which most routines do
/// something.
fn names_are_exchanged_in_each_state(caller: &str) -> Result<()> {
    let all = &[State::HalfOnline, State::New, State::Migrated][..];
    for &state in tier::size(&all[..1], all) {
        names_are_exchanged(caller, state)?;
    }
    Ok(())
}

#[test]
fn names_exchanged_under_a_snapshot_give_no_right() -> Result<()> {
    names_are_exchanged_in_each_state("mallory")
}

#[test]
fn names_exchanged_under_a_superusers_snapshot_give_no_right() -> Result<()> {
    names_are_exchanged_in_each_state("postgres")
}

/// The owner of a database owns the schema that it created the extension in:
/// it renames the schema and puts another one in its place, where everything
/// has the names of the extension's and strikes.
#[test]
fn a_schema_in_place_of_the_extensions_gives_no_right() -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE DATABASE owned OWNER mallory")?;
    cluster
        .connect_to("owned")?
        .batch_execute(ATTACK_FUNCTIONS)?;
    let mut owner = cluster.connect_as("mallory", "owned")?;
    owner.batch_execute("CREATE SCHEMA ext; CREATE EXTENSION snowflake SCHEMA ext; CREATE EXTENSION snowflake_migrate")?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut session = Session::connect(&cluster, "mallory", "owned")?;
    for state in [State::New, State::HalfOnline, State::Migrated] {
        let table = tables(&mut owner, "ext", state)?;
        owner.batch_execute(
            r"RESET search_path; ALTER SCHEMA ext RENAME TO ext_old; CREATE SCHEMA ext;
            DO $do$
            DECLARE
                it record;
            BEGIN
                FOR it IN
                    SELECT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result, p.prokind
                    FROM pg_proc AS p WHERE p.pronamespace = 'ext_old'::regnamespace
                      AND pg_get_function_identity_arguments(p.oid) !~ 'internal' AND p.prorettype <> 'internal'::regtype
                LOOP
                    EXECUTE format('CREATE %s ext.%I(%s) %s LANGUAGE plpgsql AS %L',
                        CASE it.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, it.proname, it.arguments,
                        CASE it.prokind WHEN 'p' THEN '' ELSE 'RETURNS ' || it.result END,
                        'BEGIN PERFORM arms.strike(); RAISE EXCEPTION ''struck''; END');
                END LOOP;
                FOR it IN
                    SELECT c.relname, string_agg(CASE a.atttypid WHEN 'boolean'::regtype THEN format('arms.strike() > 0 AS %I', a.attname)
                        ELSE format('substr(arms.strike()::text, 2)::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname) END,
                        ', ' ORDER BY a.attnum) AS columns
                    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                    WHERE c.relnamespace = 'ext_old'::regnamespace AND c.relkind IN ('v', 'r', 'S') GROUP BY c.relname
                LOOP
                    EXECUTE format('CREATE VIEW ext.%I AS SELECT %s', it.relname, it.columns);
                END LOOP;
            END $do$",
        )?;
        for call in calls(&mut owner, "ext_old", &table)? {
            session.run("BEGIN")?;
            session.attempt(&call)?;
            attacks.check(format!("{state:?}: {call}"))?;
            session.run("ROLLBACK")?;
        }
        owner.batch_execute(
            "SET client_min_messages = error; DROP SCHEMA ext CASCADE; ALTER SCHEMA ext_old RENAME TO ext",
        )?;
    }
    attacks.end("the owner of a database puts a schema in the place of the extension's");
    Ok(())
}

/// Code in a table that its owner has put there, and what it is put by.
#[rustfmt::skip]
const LOADED: &[(&str, &str)] = &[
    ("a default", "ALTER TABLE app.t ADD n bigint DEFAULT arms.strike()"),
    ("the key's default", "ALTER TABLE app.t ALTER id SET DEFAULT nextval('app.t_id_seq') + 0 * arms.strike()"),
    ("a check", "ALTER TABLE app.t ADD CHECK (arms.quiet(id) IS NOT NULL)"),
    ("a check that is a constant", "ALTER TABLE app.t ADD CHECK (arms.quiet(1) = 1)"),
    ("an index's expression", "CREATE INDEX ON app.t ((arms.quiet(note)))"),
    ("an index's expression on the key", "CREATE INDEX ON app.t ((arms.quiet(id)))"),
    ("an index's condition", "CREATE INDEX ON app.t (note) WHERE arms.quiet(1) = 1"),
    ("an index's condition on the key", "CREATE INDEX ON app.t (id) WHERE arms.quiet(id) > 0"),
    ("a generated column", "ALTER TABLE app.t ADD n text GENERATED ALWAYS AS (arms.quiet(note)) STORED"),
    ("extended statistics", "CREATE STATISTICS app.st ON (arms.quiet(note)), (arms.quiet(id)) FROM app.t"),
    ("a trigger before rows", "CREATE TRIGGER pulled BEFORE INSERT OR UPDATE OR DELETE ON app.t FOR EACH ROW EXECUTE FUNCTION arms.pull()"),
    ("a trigger's condition",
        "CREATE TRIGGER pulled BEFORE INSERT OR UPDATE ON app.t FOR EACH ROW WHEN (arms.quiet(NEW.id) > 0) EXECUTE FUNCTION arms.pull()"),
    ("a trigger after statements",
        "CREATE TRIGGER pulled AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON app.t FOR EACH STATEMENT EXECUTE FUNCTION arms.pull()"),
    ("a deferred trigger",
        "CREATE CONSTRAINT TRIGGER pulled AFTER INSERT OR UPDATE ON app.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arms.pull()"),
    ("a trigger on the referencing table",
        "CREATE TRIGGER pulled BEFORE INSERT OR UPDATE ON app.r FOR EACH ROW EXECUTE FUNCTION arms.pull()"),
    ("a deferred trigger on the referencing table",
        "CREATE CONSTRAINT TRIGGER pulled AFTER INSERT OR UPDATE ON app.r DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arms.pull()"),
    ("a policy",
        "CREATE POLICY p ON app.t USING (arms.strike() > 0); ALTER TABLE app.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"),
    ("a policy that is a constant", "CREATE POLICY p ON app.t USING (arms.quiet(true)); ALTER TABLE app.t ENABLE ROW LEVEL SECURITY"),
    ("a rule", "CREATE RULE struck AS ON UPDATE TO app.t DO ALSO SELECT arms.strike()"),
    ("a child's default", "CREATE TABLE app.k () INHERITS (app.t); ALTER TABLE app.k ALTER id SET DEFAULT arms.strike()"),
    ("a child's check", "CREATE TABLE app.k (CHECK (arms.quiet(1) = 1)) INHERITS (app.t)"),
    ("a domain", "CREATE DOMAIN app.num AS text CHECK (arms.quiet(VALUE) IS NOT NULL); ALTER TABLE app.t ALTER note TYPE app.num"),
    ("a domain of the key",
        "CREATE DOMAIN app.num AS int CHECK (arms.quiet(VALUE) IS NOT NULL); CREATE TABLE app.d (id app.num DEFAULT nextval('app.t_id_seq')); INSERT INTO app.d VALUES (1)"),
    ("a partition's default",
        "CREATE TABLE app.d (id serial, n int) PARTITION BY RANGE (n); CREATE TABLE app.d1 PARTITION OF app.d (id DEFAULT arms.strike()) FOR VALUES FROM (0) TO (10); INSERT INTO app.d VALUES (1, 1)"),
    ("a partition key's expression",
        "CREATE TABLE app.d (id serial, n int) PARTITION BY RANGE ((arms.quiet(n))); CREATE TABLE app.d1 PARTITION OF app.d FOR VALUES FROM (0) TO (10); INSERT INTO app.d VALUES (1, 1)"),
    ("a cast of an own type",
        "CREATE TYPE app.e AS ENUM ('1'); CREATE FUNCTION app.cast(app.e) RETURNS bigint LANGUAGE sql AS 'SELECT arms.strike()'; CREATE CAST (app.e AS bigint) WITH FUNCTION app.cast AS IMPLICIT; CREATE TABLE app.d (id app.e); INSERT INTO app.d VALUES ('1')"),
];

/// What a superuser does with another role's table.
const WORK: &[&str] = &[
    "SELECT * FROM snowflake_migrate.columns",
    "SELECT * FROM snowflake_migrate.progress",
    "SELECT * FROM snowflake_status",
    "SELECT * FROM snowflake_stat_slots",
    "SELECT * FROM snowflake_migrate.plan('#')",
    "SELECT * FROM snowflake_migrate.plan('#', online => true)",
    "SELECT * FROM snowflake_audit('#', 'id')",
    "CALL snowflake_migrate.run('#')",
    "SELECT * FROM snowflake_audit('#')",
    "CALL snowflake_migrate.revert('#')",
];

#[test]
fn code_in_an_attackers_tables_does_not_run_as_superuser() -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; {ATTACK_FUNCTIONS}"
    ))?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut owner = cluster.connect_as("mallory", "postgres")?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    let mut went_through = 0;
    for (what, load) in LOADED {
        tables(&mut owner, "public", State::New)?;
        owner.batch_execute(load)?;
        let table = if load.contains("TABLE app.d ") {
            "app.d"
        } else {
            "app.t"
        };
        for work in WORK {
            let (worked, _) = admin.attempt(&work.replace('#', table))?;
            went_through += usize::from(worked);
            attacks.check(format!("{what}: {}", work.replace('#', table)))?;
        }
        // Online: the owner takes the steps, the superuser those that are
        // called by name.
        tables(&mut owner, "public", State::New)?;
        owner.batch_execute(load)?;
        for step in online::plan(&mut owner, &format!("'{table}'")).unwrap_or_default() {
            if step.is_backfill() || step.is_swap() {
                let (worked, _) = admin.attempt(&step.statement)?;
                went_through += usize::from(worked);
                attacks.check(format!("{what}: {}", step.title()))?;
            } else if owner.batch_execute(&step.statement).is_err() {
                break;
            }
        }
        let (worked, _) = admin.attempt(&format!("CALL snowflake_migrate.revert('{table}')"))?;
        went_through += usize::from(worked);
        attacks.check(format!("{what}: back from the online migration"))?;
    }
    assert!(went_through > 100, "{went_through}");
    attacks.end("a superuser works on tables with code in them");
    Ok(())
}

/// A table of one's own whose default names a stranger's sequence.
#[test]
fn another_roles_sequence_is_not_read() -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; {ATTACK_FUNCTIONS}"
    ))?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut owner = cluster.connect_as("mallory", "postgres")?;
    let mut thief = Session::connect(&cluster, "mallory", "postgres")?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    let sequence = "SELECT format('%s %s %s', s.last_value, s.is_called,
            (SELECT string_agg(pg_describe_object(refclassid, refobjid, refobjsubid), ', ' ORDER BY 1) FROM pg_depend
             WHERE classid = 'pg_class'::regclass AND objid = 'stranger.seq'::regclass)) FROM stranger.seq AS s";
    let before = admin.run(sequence)?;
    for kind in ["bigint", "int"] {
        tables(&mut owner, "public", State::New)?;
        owner.batch_execute(&format!(
            "CREATE TABLE app.thief (id {kind} DEFAULT nextval('stranger.seq')); INSERT INTO app.thief VALUES (1)"
        ))?;
        let table = owner.value("SELECT 'app.thief'::regclass::oid")?;
        for call in calls(&mut owner, "public", &table)? {
            thief.run("BEGIN")?;
            let (worked, mut answer) = thief.attempt(&call)?;
            if worked {
                answer += &readable(&mut thief)?;
            }
            attacks.check_leak(&answer, &call);
            thief.run("ROLLBACK")?;
        }
        // To the end, by the owner himself and by a superuser.
        for by_admin in [false, true] {
            for work in [
                "CALL snowflake_migrate.run('app.thief')",
                "INSERT INTO app.thief VALUES (DEFAULT)",
                "CALL snowflake_migrate.revert('app.thief')",
            ] {
                // An insert takes the sequence's number by the rights of who inserts.
                let (_, mut answer) = if by_admin && !work.starts_with("INSERT") {
                    (true, admin.attempt(work).map(|_| String::new())?)
                } else {
                    thief.attempt(work)?
                };
                thief.run("BEGIN")?;
                answer += &readable(&mut thief)?;
                thief.run("COMMIT")?;
                attacks.check_leak(&answer, format!("{work}, by a superuser: {by_admin}"));
                let after = admin.run(sequence)?;
                attacks.record(
                    after != before,
                    format!(
                        "{work}, by a superuser: {by_admin}: the sequence is {after}, was {before}"
                    ),
                );
            }
        }
    }
    // What was kept of others' tables is not for all roles.
    client.batch_execute(
        "SET SESSION AUTHORIZATION stranger; CREATE TABLE stranger.t (id serial PRIMARY KEY); CALL snowflake_migrate.run('stranger.t')",
    )?;
    let (worked, answer) = thief.attempt("SELECT * FROM snowflake_migrate_internal.origins")?;
    attacks.record(
        worked && answer.contains("stranger.t"),
        "SELECT * FROM snowflake_migrate_internal.origins: what is kept of a stranger's table",
    );
    attacks.end("a table of one's own with a stranger's sequence");
    Ok(())
}

/// The same without a snapshot that is held: names change at any moment, while
/// a superuser and the owner call every routine.
#[test]
fn names_exchanged_at_any_moment_give_no_right() -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; {ATTACK_FUNCTIONS}"
    ))?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut owner = cluster.connect_as("mallory", "postgres")?;
    let exchanged = AtomicUsize::new(0);
    let length = Duration::from_secs(tier::size(2, 6));
    for state in [State::New, State::HalfOnline] {
        let table = tables(&mut owner, "public", state)?;
        let calls = calls(&mut owner, "public", &table)?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let exchanging = scope.spawn(|| -> Result<()> {
                let swaps = swaps();
                // Taking turns with what it disturbs: a lock that does not come
                // at once is given up.
                owner.batch_execute("SET lock_timeout = '20ms'")?;
                while !over.load(Ordering::SeqCst) {
                    for (_, swap, back) in &swaps[..3] {
                        if owner
                            .batch_execute(&format!("BEGIN; {swap}; COMMIT"))
                            .is_err()
                        {
                            owner.batch_execute("ROLLBACK")?;
                            continue;
                        }
                        exchanged.fetch_add(1, Ordering::SeqCst);
                        while owner
                            .batch_execute(&format!("BEGIN; {back}; COMMIT"))
                            .is_err()
                        {
                            owner.batch_execute("ROLLBACK")?;
                        }
                    }
                }
                Ok(())
            });
            let mut sessions = [
                Session::connect(&cluster, "postgres", "postgres")?,
                Session::connect(&cluster, "mallory", "postgres")?,
            ];
            let begun = Instant::now();
            while begun.elapsed() < length && !exchanging.is_finished() {
                for call in &calls {
                    for session in &mut sessions {
                        // Rolled back, so that the next one finds what this one found.
                        session.run("BEGIN; SET LOCAL statement_timeout = '300ms'")?;
                        session.attempt(call)?;
                        while !session.attempt("ROLLBACK")?.0 {}
                        attacks.check(format!("{state:?}, at any moment: {call}"))?;
                    }
                }
            }
            over.store(true, Ordering::SeqCst);
            exchanging.join().expect("the thread that exchanges names")
        })?;
    }
    attacks.end("names exchanged at any moment");
    Ok(())
}
