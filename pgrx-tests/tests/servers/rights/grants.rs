//! No role gains a right by privileges that were granted wholesale, nor by a
//! text that is kept in the extension's tables; and what is for administrators
//! is refused to others.

use super::server;
use crate::support::*;

/// How privileges are granted to the attacker: before the extension is created
/// and after.
#[rustfmt::skip]
const GRANTS: &[(&str, &str, &str)] = &[
    ("default privileges", "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO mallory", ""),
    ("grants on all in the schema", "", "GRANT ALL ON ALL TABLES IN SCHEMA public, snowflake_internal TO mallory; GRANT ALL ON ALL SEQUENCES IN SCHEMA public, snowflake_internal TO mallory;
         GRANT ALL ON ALL ROUTINES IN SCHEMA public, snowflake_internal TO mallory; GRANT ALL ON SCHEMA public TO mallory"),
    ("roles that read and write all data", "", "GRANT pg_read_all_data, pg_write_all_data TO mallory"),
    ("grants of TRIGGER", "",
        "GRANT TRIGGER, REFERENCES, SELECT ON snowflake_migrate_internal.origins, snowflake_migrate_internal.progress TO mallory"),
];

/// Takes the grants back that hold in the whole server.
const REVOKE: &str = "REVOKE pg_read_all_data, pg_write_all_data FROM mallory";

/// Statements that write to a table, or make another role's statement do so.
const WRITES: &[&str] = &[
    "INSERT INTO snowflake_migrate_internal.origins (target, column_name, kind, data_type, first_id_ever, first_id)
     VALUES ('app.t', 'id', 'none', 'integer', 1, 1)",
    "INSERT INTO snowflake_migrate_internal.origins (target, column_name, kind, data_type, first_id_ever, first_id)
     SELECT target, column_name, kind, data_type, 1, 1 FROM snowflake_migrate_internal.origins
     ON CONFLICT (target, column_name) DO UPDATE SET default_expression = 'arms.strike()'",
    "INSERT INTO snowflake_migrate_internal.progress (target, column_name, relation) VALUES ('app.t', 'id', 'app.t')",
    "UPDATE snowflake_migrate_internal.origins SET default_expression = '0; alter role mallory superuser; --'",
    "UPDATE snowflake_migrate_internal.progress SET blocks_done = blocks_total + 1",
    "WITH written AS (UPDATE snowflake_migrate_internal.origins SET first_id = 2 RETURNING *) SELECT count(*) FROM written",
    "WITH written AS (DELETE FROM snowflake_migrate_internal.progress RETURNING *) SELECT count(*) FROM written",
    "MERGE INTO snowflake_migrate_internal.origins AS o USING (SELECT 1) AS s ON true WHEN MATCHED THEN UPDATE SET first_id_ever = 3",
    "SET LOCAL session_replication_role = replica; DELETE FROM snowflake_migrate_internal.origins",
    "ALTER TABLE snowflake_migrate_internal.origins DISABLE TRIGGER ALL",
    "ALTER TABLE snowflake_migrate_internal.origins OWNER TO mallory",
    "ALTER TABLE snowflake_migrate_internal.progress ENABLE ROW LEVEL SECURITY",
    "CREATE RULE struck AS ON INSERT TO snowflake_migrate_internal.origins DO ALSO SELECT arms.strike()",
    "CREATE POLICY struck ON snowflake_migrate_internal.origins USING (arms.strike() > 0)",
    "CREATE INDEX ON snowflake_migrate_internal.origins ((arms.quiet(kind)))",
    "CREATE TABLE app.inherits () INHERITS (snowflake_migrate_internal.origins)",
    "CREATE VIEW app.through AS SELECT * FROM snowflake_migrate_internal.origins; DELETE FROM app.through",
    "DELETE FROM snowflake_migrate_internal.progress",
    "DELETE FROM snowflake_migrate_internal.origins",
    "TRUNCATE snowflake_migrate_internal.progress",
    "TRUNCATE snowflake_migrate_internal.origins CASCADE",
];

/// Code of the attacker's beside the tables, and rows of his that hold theirs.
const BESIDE: &[&str] = &[
    "CREATE TRIGGER pulled_row BEFORE INSERT OR UPDATE OR DELETE ON snowflake_migrate_internal.origins FOR EACH ROW EXECUTE FUNCTION arms.pull()",
    "CREATE TRIGGER pulled_all AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_migrate_internal.origins FOR EACH STATEMENT EXECUTE FUNCTION arms.pull()",
    "CREATE CONSTRAINT TRIGGER pulled_late AFTER INSERT OR UPDATE OR DELETE ON snowflake_migrate_internal.origins DEFERRABLE INITIALLY DEFERRED
     FOR EACH ROW EXECUTE FUNCTION arms.pull()",
    "CREATE TRIGGER pulled_row BEFORE INSERT OR UPDATE OR DELETE ON snowflake_migrate_internal.progress FOR EACH ROW EXECUTE FUNCTION arms.pull()",
    "CREATE TRIGGER pulled_all AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_migrate_internal.progress FOR EACH STATEMENT EXECUTE FUNCTION arms.pull()",
    "CREATE OR REPLACE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON snowflake_migrate_internal.origins
     FOR EACH STATEMENT EXECUTE FUNCTION arms.pull()",
    "CREATE TRIGGER a BEFORE INSERT ON snowflake_internal.restore FOR EACH ROW EXECUTE FUNCTION arms.pull()",
    "SET search_path = app, snowflake_internal; CREATE TRIGGER b BEFORE INSERT ON restore FOR EACH STATEMENT EXECUTE FUNCTION arms.pull()",
    "CREATE OR REPLACE TRIGGER restore_row BEFORE INSERT ON snowflake_internal.restore FOR EACH ROW EXECUTE FUNCTION arms.pull()",
    "CREATE TABLE app.holds (target regclass, column_name name, FOREIGN KEY (target, column_name) REFERENCES snowflake_migrate_internal.origins);
     INSERT INTO app.holds SELECT target, column_name FROM snowflake_migrate_internal.origins",
    "CREATE TABLE app.held (target regclass, column_name name, relation regclass,
         FOREIGN KEY (target, column_name, relation) REFERENCES snowflake_migrate_internal.progress);
     INSERT INTO app.held SELECT target, column_name, relation FROM snowflake_migrate_internal.progress",
];

const CONTENTS: &str = "SELECT (SELECT coalesce(string_agg(o::text, E'\\n' ORDER BY o::text), '') FROM snowflake_migrate_internal.origins AS o)
    || (SELECT coalesce(string_agg(p::text, E'\\n' ORDER BY p::text), '') FROM snowflake_migrate_internal.progress AS p)
    || (SELECT string_agg(c.relowner::text || c.relrowsecurity || c.relhasrules || c.relhassubclass || (SELECT count(*) FROM pg_index WHERE indrelid = c.oid)
                          || (SELECT string_agg(tgenabled::text, '') FROM pg_trigger WHERE tgrelid = c.oid AND tgname !~ '^pulled|^RI_'), ' ' ORDER BY c.oid)
        FROM pg_class AS c WHERE c.oid IN ('snowflake_migrate_internal.origins'::regclass, 'snowflake_migrate_internal.progress'::regclass))";

#[test]
fn grants_on_all_tables_give_no_right_to_records() -> Result<()> {
    let cluster = server()?;
    let mut attacks = Attacks::on(&cluster)?;
    for (number, (what, before, after)) in GRANTS.iter().enumerate() {
        let database = format!("granted{number}");
        cluster.run(&format!("CREATE DATABASE {database}"))?;
        let mut admin = Session::connect(&cluster, "postgres", &database)?;
        admin.run(before)?;
        admin.run("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
        admin.run(after)?;
        admin.run(ATTACK_FUNCTIONS)?;
        let mut thief = Session::connect(&cluster, "mallory", &database)?;
        thief.run(
            "CREATE SCHEMA app; CREATE TABLE app.t (id serial PRIMARY KEY); INSERT INTO app.t DEFAULT VALUES;
             GRANT USAGE ON SCHEMA app TO PUBLIC",
        )?;
        let mut stranger = Session::connect(&cluster, "stranger", &database)?;
        stranger.run(
            "CREATE TABLE stranger.t (id serial PRIMARY KEY); INSERT INTO stranger.t DEFAULT VALUES;
             CREATE TABLE stranger.o (id serial PRIMARY KEY); INSERT INTO stranger.o SELECT FROM generate_series(1, 100)",
        )?;
        stranger.run("CALL snowflake_migrate.run('stranger.t')")?;
        let steps = online::plan(&mut stranger.client, "'stranger.o'")?;
        let rest = steps
            .iter()
            .position(online::Step::is_backfill)
            .unwrap_or(0);
        for step in &steps[..=rest] {
            stranger.run(&step.statement)?;
        }
        for session in [&mut stranger, &mut admin] {
            session.run("SET statement_timeout = '30s'")?;
        }
        let mut contents = admin.run(CONTENTS)?;
        for write in WRITES {
            thief.attempt(&format!("BEGIN; {write}"))?;
            attacks.check(format!("{what}: {write}"))?;
            thief.attempt("COMMIT")?;
            let now = admin.run(CONTENTS)?;
            attacks.record(now != contents, format!("{what}: {write}: written"));
            contents = now;
        }
        for beside in BESIDE {
            let (worked, answer) = thief.attempt(beside)?;
            attacks.check(format!("{what}: {beside}"))?;
            attacks.record(
                beside.contains("TRIGGER") && (worked || !answer.contains("42501: ")),
                format!("{what}: {beside}: {answer}"),
            );
        }
        thief.attempt("DELETE FROM snowflake_migrate_internal.origins")?;
        attacks.record(
            admin.run(CONTENTS)? != contents,
            format!("{what}: the guard was replaced"),
        );
        // As a superuser does who restores a dump into this database.
        admin.run("INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 2)")?;
        attacks.check(format!("{what}: a restored row"))?;
        // Others work on their tables as if nothing were there.
        let mut work: Vec<(bool, String)> = [
            (false, "CALL snowflake_migrate.revert('stranger.t')"),
            (false, "CALL snowflake_migrate.run('stranger.t')"),
            (true, "CALL snowflake_migrate.revert('stranger.t')"),
            (true, "CALL snowflake_migrate.run('stranger.t')"),
            (true, "CALL snowflake_migrate.run('app.t')"),
            (true, "CALL snowflake_migrate.revert('app.t')"),
        ]
        .map(|(by_admin, work)| (by_admin, work.to_owned()))
        .to_vec();
        work.extend(
            steps[rest..]
                .iter()
                .map(|step| (step.is_backfill(), step.statement.clone())),
        );
        work.push((
            false,
            "CALL snowflake_migrate.revert('stranger.o')".to_owned(),
        ));
        for (by_admin, work) in work {
            let session = if by_admin { &mut admin } else { &mut stranger };
            let (worked, answer) = session.attempt(&work)?;
            attacks.check(format!("{what}: {work}, by a superuser: {by_admin}"))?;
            attacks.record(
                !worked,
                format!("{what}: {work}, by a superuser: {by_admin}, does not work: {answer}"),
            );
        }
        cluster.run(REVOKE)?;
    }
    attacks.end("privileges on the extension's tables, granted wholesale");
    Ok(())
}

/// The owner of a database may make a table a member of the extension. Its privileges
/// are the owner's matter.
#[test]
fn grants_of_a_superuser_revoke_no_privilege() -> Result<()> {
    let cluster = server()?;
    cluster.run("CREATE ROLE first; CREATE ROLE second")?;
    cluster.run("CREATE DATABASE shop OWNER mallory")?;
    let mut owner = cluster.connect_as("mallory", "shop")?;
    owner.batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    owner.batch_execute(
        "CREATE TABLE x (i int); ALTER EXTENSION snowflake ADD TABLE x; GRANT INSERT ON x TO first WITH GRANT OPTION",
    )?;
    let mut admin = cluster.connect_to("shop")?;
    admin.batch_execute(
        "SET ROLE first; GRANT INSERT ON x TO second; RESET ROLE;
         CREATE TABLE y (i int); GRANT SELECT ON y TO first",
    )?;
    let left = "SELECT concat_ws(' ', has_table_privilege('second', 'x', 'INSERT'), has_table_privilege('first', 'y', 'SELECT'))";
    admin.answers(left, "t t")?;
    Ok(())
}

const POISONS: &[&str] = &[
    "0; alter role mallory superuser; --",
    "0); alter role mallory superuser; --",
    "x'; alter role mallory superuser; --",
    "x\"; alter role mallory superuser; --",
    "(arms.strike())",
];

/// Where a text can be that a superuser's statement might be put together of.
const FIELDS: &[&str] = &[
    "default_expression = #",
    "data_type = #",
    "sequence_schema = #",
    "sequence_name = #",
    "sequence_comment = #",
    "sequence_options = sequence_options || jsonb_build_object('type', #)",
    "sequence_options = sequence_options || jsonb_build_object('start', #)",
    "sequence_options = sequence_options || jsonb_build_object('increment', #)",
    "sequence_options = sequence_options || jsonb_build_object('minimum', #)",
    "sequence_options = sequence_options || jsonb_build_object('maximum', #)",
    "sequence_options = sequence_options || jsonb_build_object('cache', #)",
    "sequence_options = sequence_options || jsonb_build_object('cycle', #)",
    "sequence_options = sequence_options || jsonb_build_object('next', #)",
    "sequence_privileges = jsonb_build_array(jsonb_build_object('grantee', #, 'privilege', 'USAGE', 'grantable', true))",
    "sequence_privileges = jsonb_build_array(jsonb_build_object('grantee', 'stranger', 'privilege', #, 'grantable', true))",
    "child_defaults = jsonb_build_array(jsonb_build_object('schema', 'app', 'name', 'k', 'default', #))",
    "child_defaults = jsonb_build_array(jsonb_build_object('schema', 'app', 'name', #, 'default', '1'))",
    "child_defaults = jsonb_build_array(jsonb_build_object('schema', #, 'name', 'k', 'default', '1'))",
];

/// Worst case: the texts are in the table, however they came there, and a
/// superuser reverts.
#[test]
fn recorded_texts_do_not_run_as_superuser() -> Result<()> {
    let cluster = server()?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    admin.run("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    admin.run(ATTACK_FUNCTIONS)?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut owner = Session::connect(&cluster, "mallory", "postgres")?;
    owner.run("SET client_min_messages = error")?;
    let mut kept = 0;
    for (kind, table, afterwards) in [
        ("serial", "id serial PRIMARY KEY", ""),
        (
            "a sequence that was dropped",
            "id serial PRIMARY KEY",
            "DROP SEQUENCE app.t_id_seq",
        ),
        (
            "identity",
            "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "",
        ),
    ] {
        for field in FIELDS {
            for poison in &POISONS[..tier::size(2, POISONS.len())] {
                owner.run(&format!(
                    "DROP SCHEMA IF EXISTS app CASCADE; CREATE SCHEMA app; CREATE TABLE app.t ({table}); CREATE TABLE app.k () INHERITS (app.t)",
                ))?;
                owner.run("CALL snowflake_migrate.run('app.t')")?;
                owner.run(afterwards)?;
                let field = field.replace('#', &format!("$p${poison}$p$::text"));
                let (worked, _) = admin.attempt(&format!(
                    "UPDATE snowflake_migrate_internal.origins SET {field} WHERE target = 'app.t'::regclass"
                ))?;
                kept += usize::from(worked);
                for work in [
                    "SELECT * FROM snowflake_migrate.plan('app.t')",
                    "CALL snowflake_migrate.revert('app.t')",
                ] {
                    admin.attempt(work)?;
                    attacks.check(format!("{kind}: {field}: {work}"))?;
                }
            }
        }
    }
    assert!(kept > 0);
    attacks.end("texts in the extension's tables, and a superuser who reverts");
    Ok(())
}

/// What only superusers may call, with arguments.
const ADMINISTRATIVE: &[(&str, &str)] = &[
    ("snowflake_accept_clock", "now()"),
    ("snowflake_start_after", "1"),
    ("snowflake_accept_layout", ""),
    ("snowflake_stat_reset", ""),
];

#[test]
fn administrative_functions_are_refused_to_others() -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    for statement in [
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate",
        "CREATE DATABASE owned OWNER mallory",
        "CREATE DATABASE granted",
    ] {
        client.batch_execute(statement)?;
    }
    cluster
        .connect_as("mallory", "owned")?
        .batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    cluster.connect_to("granted")?.batch_execute(
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO mallory; CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate;
         GRANT ALL ON ALL ROUTINES IN SCHEMA public, snowflake_internal TO mallory",
    )?;
    let mut attacks = Attacks::on(&cluster)?;
    for database in ["postgres", "owned", "granted"] {
        let mark = "SELECT last_value FROM snowflake_internal.mark";
        let mut session = Session::connect(&cluster, "mallory", database)?;
        let before = session.client.value(mark)?;
        for (function, argument) in ADMINISTRATIVE {
            // Counters are all that it resets: a role that was granted it may call it.
            if database == "granted" && *function == "snowflake_stat_reset" {
                continue;
            }
            for call in [
                format!("SELECT {function}({argument})"),
                format!(
                    "GRANT EXECUTE ON FUNCTION {function} TO mallory; SELECT {function}({argument})"
                ),
                format!(
                    "ALTER FUNCTION {function} OWNER TO mallory; SELECT {function}({argument})"
                ),
                format!("DO $$ BEGIN PERFORM {function}({argument}); END $$"),
            ] {
                let (worked, answer) = session.attempt(&call)?;
                attacks.record(
                    worked || !answer.contains("42501: "),
                    format!("{database}: {call}: {answer}"),
                );
            }
        }
        attacks.record(session.client.value(mark)? != before, "the mark was moved");
    }
    attacks.end("what only superusers may call");
    Ok(())
}
