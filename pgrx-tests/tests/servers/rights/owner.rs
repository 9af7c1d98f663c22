//! The routines that run a text with the rights of a table's owner, lock a
//! table, read a sequence and write down what was there: called directly, by a
//! role that does not own the table, and by a superuser with the attacker's
//! text.

use anyhow::{Result, ensure};
use snowflake_tests::Cluster;
use snowflake_tests::attack::{ATTACK_FUNCTIONS, Attacks, ROLES, Session};

/// Texts that an attacker would have a superuser run with the rights of the
/// attacker, to leave these rights.
const TEXTS: &[&str] = &[
    "SELECT arms.strike()",
    "SELECT arms.quiet(1)",
    "ALTER ROLE mallory SUPERUSER",
    "SELECT 1; ALTER ROLE mallory SUPERUSER",
    "; ALTER ROLE mallory SUPERUSER",
    "ALTER TABLE app.t ALTER note SET DEFAULT 0; ALTER ROLE mallory SUPERUSER; --",
    "DO $d$ BEGIN EXECUTE 'ALTER ROLE mallory SUPERUSER'; END $d$",
    "DO $d$ BEGIN PERFORM arms.strike(); END $d$",
    "SET ROLE postgres",
    "SET LOCAL ROLE postgres",
    "RESET ROLE",
    "SET SESSION AUTHORIZATION postgres",
    "RESET SESSION AUTHORIZATION",
    "SET SESSION AUTHORIZATION mallory",
    "SELECT set_config('role', 'postgres', false)",
    "SELECT set_config('search_path', 'arms, pg_catalog', false)",
    "SELECT set_config('session_replication_role', 'replica', false)",
    "SELECT set_config('session_preload_libraries', '/tmp/arms.so', false)",
    "SET search_path = arms, pg_catalog",
    "SET LOCAL search_path = arms, pg_catalog",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "SAVEPOINT s",
    "PREPARE TRANSACTION 'x'",
    "DECLARE c CURSOR WITH HOLD FOR SELECT arms.strike()",
    "DECLARE c CURSOR FOR SELECT arms.strike()",
    "PREPARE p AS SELECT arms.strike()",
    "LISTEN arms",
    "DISCARD ALL",
    "CREATE TEMP TABLE pg_class AS SELECT arms.strike()",
    "CREATE TABLE app.made AS SELECT arms.strike()",
    "INSERT INTO app.late VALUES (1)",
    "SET CONSTRAINTS ALL DEFERRED",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY app.t FROM '/etc/passwd'",
    "COPY app.t TO STDOUT",
    "SELECT pg_read_file('postgresql.conf')",
    "SELECT note FROM stranger.secret",
    "LOCK TABLE stranger.secret",
    "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION arms.pull()",
    "CREATE FUNCTION app.definer() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; ALTER FUNCTION app.definer() OWNER TO postgres",
    "ALTER TABLE app.t OWNER TO postgres",
    "REFRESH MATERIALIZED VIEW app.m",
    "CLUSTER app.t USING t_pkey",
    "VACUUM app.t",
    "ANALYZE app.t",
    "CALL public.snowflake_migrate('app.t')",
    "SELECT public.snowflake_start_after(1)",
    "SELECT snowflake_internal.migration_run('app.t', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_run('stranger.secret', 'SELECT arms.strike()')",
];

/// What a role tries on tables that it does not own.
const ON_OTHERS: &[&str] = &[
    "SELECT snowflake_internal.migration_run('stranger.secret', 'SELECT note FROM stranger.secret')",
    "SELECT snowflake_internal.migration_run('stranger.secret', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_run('stranger.secret', 'ALTER TABLE stranger.secret OWNER TO mallory')",
    "SELECT snowflake_internal.migration_query('stranger.secret', 'SELECT note FROM stranger.secret')",
    "SELECT snowflake_internal.migration_query('stranger.seq', 'SELECT last_value FROM stranger.seq')",
    "SELECT snowflake_internal.migration_run('pg_catalog.pg_class', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_run('snowflake_internal.origins', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_run('snowflake_internal.origins', 'DELETE FROM snowflake_internal.origins')",
    "SELECT snowflake_internal.migration_run('snowflake_internal.mark', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_run(0, 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_run(NULL, 'SELECT arms.strike()')",
    "SELECT snowflake_internal.migration_lock_table('stranger.secret', 'ACCESS EXCLUSIVE')",
    "SELECT snowflake_internal.migration_lock_table('stranger.secret', 'SHARE ROW EXCLUSIVE')",
    "SELECT snowflake_internal.migration_lock_table('stranger.secret', 'SHARE UPDATE EXCLUSIVE')",
    "SELECT snowflake_internal.migration_lock_table('stranger.seq', 'SHARE UPDATE EXCLUSIVE')",
    "SELECT snowflake_internal.migration_lock_table('app.over', 'ACCESS EXCLUSIVE')",
    "SELECT snowflake_internal.migration_lock_table('pg_catalog.pg_class', 'ACCESS EXCLUSIVE')",
    "SELECT snowflake_internal.migration_lock_table('snowflake_internal.origins', 'ACCESS EXCLUSIVE')",
    "SELECT * FROM snowflake_internal.migration_sequence_state('stranger.seq', 'app.t')",
    "SELECT * FROM snowflake_internal.migration_sequence_state('stranger.seq', 'stranger.secret')",
    "SELECT * FROM snowflake_internal.migration_sequence_state('stranger.seq', 'app.thief')",
    "SELECT * FROM snowflake_internal.migration_sequence_state('stranger.secret', 'app.t')",
    "SELECT * FROM snowflake_internal.migration_sequence_state('app.over', 'app.t')",
    "SELECT snowflake_internal.migration_origin('stranger.t', 'id')",
    "SELECT snowflake_internal.migration_keep_origin(jsonb_populate_record(NULL::snowflake_internal.origins, '{\"target\": \"stranger.t\", \"column_name\": \"id\", \"kind\": \"none\",
        \"data_type\": \"SECRET-ROW\", \"first_id_ever\": 1, \"first_id\": 1, \"remembered_at\": \"2026-01-01\"}'))",
    "SELECT snowflake_internal.migration_keep_origin(NULL::snowflake_internal.origins)",
    "SELECT snowflake_internal.migration_keep_origin(ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::snowflake_internal.origins)",
    "SELECT snowflake_internal.migration_keep_origin(jsonb_populate_record(NULL::snowflake_internal.origins, '{\"target\": \"app.t\"}'))",
    "SELECT snowflake_internal.migration_keep_progress(jsonb_populate_record(NULL::snowflake_internal.progress, '{\"target\": \"stranger.t\", \"column_name\": \"id\", \"relation\": \"stranger.t\",
        \"blocks_done\": 1, \"blocks_total\": 1, \"skipped\": \"{}\", \"rows_done\": 1, \"rows_total\": 1, \"run_rows\": 1, \"run_seconds\": 1, \"updated_at\": \"2026-01-01\"}'))",
    "SELECT snowflake_internal.migration_keep_progress(jsonb_populate_record(NULL::snowflake_internal.progress, '{\"target\": \"stranger.t\", \"column_name\": \"id\", \"relation\": \"app.t\",
        \"blocks_done\": 1, \"blocks_total\": 1, \"skipped\": \"{}\", \"rows_done\": 1, \"rows_total\": 1, \"run_rows\": 1, \"run_seconds\": 1, \"updated_at\": \"2026-01-01\"}'))",
    "SELECT snowflake_internal.migration_keep_progress(jsonb_populate_record(NULL::snowflake_internal.progress, '{\"target\": \"app.t\", \"column_name\": \"id\"}'))",
    "SELECT snowflake_internal.migration_end('stranger.t', 'id')",
    "SELECT snowflake_internal.migration_progress('stranger.t', 'id', 'stranger.t')",
    "CALL snowflake_migrate('stranger.t')",
    "CALL snowflake_migrate_revert('stranger.t')",
    "CALL snowflake_migrate_backfill('stranger.t')",
];

#[test]
fn internal_routines_touch_no_table_of_another_role() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("log_min_messages", "log")
        .conf("max_prepared_transactions", 2)
        .start_with_extension()?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    admin.run(ROLES)?;
    admin.run(ATTACK_FUNCTIONS)?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut thief = Session::connect(&cluster, "mallory", "postgres")?;
    thief.run(
        "CREATE SCHEMA app; CREATE TABLE app.t (id serial PRIMARY KEY, note text); INSERT INTO app.t DEFAULT VALUES;
         CREATE TABLE app.thief (id bigint DEFAULT nextval('stranger.seq'));
         CREATE TABLE app.late (id int);
         CREATE CONSTRAINT TRIGGER late AFTER INSERT ON app.late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION arms.pull();
         CREATE MATERIALIZED VIEW app.m AS SELECT arms.strike();
         CREATE VIEW app.over WITH (security_invoker) AS SELECT * FROM stranger.secret",
    )?;
    let mut stranger = Session::connect(&cluster, "stranger", "postgres")?;
    stranger.run("CREATE TABLE stranger.t (id serial PRIMARY KEY)")?;
    stranger.run("CALL snowflake_migrate('stranger.t')")?;
    let contents = "SELECT (SELECT string_agg(o::text, E'\\n' ORDER BY o::text) FROM snowflake_internal.origins AS o WHERE o.target = 'stranger.t'::regclass)
            || (SELECT count(*) FROM snowflake_internal.progress WHERE target = 'stranger.t'::regclass OR relation = 'stranger.t'::regclass)
            || (SELECT relowner::regrole::text FROM pg_class WHERE oid = 'stranger.t'::regclass)
            || (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'stranger.t'::regclass)";
    let before = admin.run(contents)?;
    for attack in ON_OTHERS {
        thief.run("BEGIN")?;
        let (worked, answer) = thief.attempt(attack)?;
        attacks.check(attack)?;
        attacks.check_leak(&answer, attack);
        let locks = admin.run(
            "SELECT string_agg(l.mode || ' on ' || l.relation::regclass::text, ', ') FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
             JOIN pg_class AS c ON c.oid = l.relation
             WHERE a.usename = 'mallory' AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock') AND c.relowner <> 'mallory'::regrole",
        )?;
        attacks.record(locks.trim() != "NULL", format!("{attack}: {locks}"));
        thief.attempt("COMMIT")?;
        let after = admin.run(contents)?;
        attacks.record(after != before, format!("{attack}: {after}"));
        ensure!(
            !worked || !answer.contains("stranger.t,id"),
            "{attack}: {answer}"
        );
    }
    let state = "SELECT concat_ws(' ', current_user, session_user, current_setting('role'), current_setting('search_path'), current_setting('session_replication_role'),
        current_setting('default_transaction_read_only'), current_setting('is_superuser'), current_setting('session_preload_libraries'))";
    let mut missing = Vec::new();
    for routine in [
        "snowflake_internal.migration_run",
        "snowflake_internal.migration_query",
    ] {
        for text in TEXTS {
            for block in [false, true] {
                let mut session = Session::connect(&cluster, "postgres", "postgres")?;
                let before = session.run(state)?;
                let call = format!("SELECT {routine}('app.t', $x${text}$x$)");
                if block {
                    session.run("BEGIN")?;
                }
                let (worked, answer) = session.attempt(&call)?;
                if answer.contains("42883: ") && answer.contains(routine) {
                    missing.push(call.clone());
                }
                attacks.check_leak(&answer, &call);
                if block {
                    session.attempt("COMMIT")?;
                }
                let after = session.run(state)?;
                session.attempt("FETCH ALL FROM c")?;
                attacks.check(format!("{call}, which worked: {worked}"))?;
                attacks.record(before != after, format!("{call}: {after}"));
            }
        }
    }
    attacks.record(
        !missing.is_empty(),
        format!("there is no routine for {} calls", missing.len()),
    );
    attacks.end("texts, locks, sequences and rows of tables of others");
    Ok(())
}
