//! The routines that run a text with the rights of a table's owner, lock a
//! table, read a sequence and write down what was there: called directly, by a
//! role that does not own the table, and by a superuser with the attacker's
//! text.

use snowflake_tests::attack::ROLES;

use crate::support::*;

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
    "CALL snowflake_migrate.run('app.t')",
    "SELECT public.snowflake_start_after(1)",
    "SELECT snowflake_internal.run('app.t', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.run('stranger.secret', 'SELECT arms.strike()')",
];

/// What a role tries on tables that it does not own.
const ON_OTHERS: &[&str] = &[
    "SELECT snowflake_internal.run('stranger.secret', 'SELECT note FROM stranger.secret')",
    "SELECT snowflake_internal.run('stranger.secret', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.run('stranger.secret', 'ALTER TABLE stranger.secret OWNER TO mallory')",
    "SELECT snowflake_migrate_internal.query('stranger.secret', 'SELECT note FROM stranger.secret')",
    "SELECT snowflake_migrate_internal.query('stranger.seq', 'SELECT last_value FROM stranger.seq')",
    "SELECT snowflake_internal.run('pg_catalog.pg_class', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.run('snowflake_migrate_internal.origins', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.run('snowflake_migrate_internal.origins', 'DELETE FROM snowflake_migrate_internal.origins')",
    "SELECT snowflake_internal.run('snowflake_internal.mark', 'SELECT arms.strike()')",
    "SELECT snowflake_internal.run(0, 'SELECT arms.strike()')",
    "SELECT snowflake_internal.run(NULL, 'SELECT arms.strike()')",
    "SELECT snowflake_internal.lock_table('stranger.secret', 'ACCESS EXCLUSIVE')",
    "SELECT snowflake_internal.lock_table('stranger.secret', 'SHARE ROW EXCLUSIVE')",
    "SELECT snowflake_internal.lock_table('stranger.secret', 'SHARE UPDATE EXCLUSIVE')",
    "SELECT snowflake_internal.lock_table('stranger.seq', 'SHARE UPDATE EXCLUSIVE')",
    "SELECT snowflake_internal.lock_table('app.over', 'ACCESS EXCLUSIVE')",
    "SELECT snowflake_internal.lock_table('pg_catalog.pg_class', 'ACCESS EXCLUSIVE')",
    "SELECT snowflake_internal.lock_table('snowflake_migrate_internal.origins', 'ACCESS EXCLUSIVE')",
    "SELECT * FROM snowflake_migrate_internal.sequence_state('stranger.seq', 'app.t')",
    "SELECT * FROM snowflake_migrate_internal.sequence_state('stranger.seq', 'stranger.secret')",
    "SELECT * FROM snowflake_migrate_internal.sequence_state('stranger.seq', 'app.thief')",
    "SELECT * FROM snowflake_migrate_internal.sequence_state('stranger.secret', 'app.t')",
    "SELECT * FROM snowflake_migrate_internal.sequence_state('app.over', 'app.t')",
    "SELECT snowflake_migrate_internal.origin('stranger.t', 'id')",
    "SELECT snowflake_migrate_internal.keep_origin(jsonb_populate_record(NULL::snowflake_migrate_internal.origins, '{\"target\": \"stranger.t\", \"column_name\": \"id\", \"kind\": \"none\",
        \"data_type\": \"SECRET-ROW\", \"first_id_ever\": 1, \"first_id\": 1, \"remembered_at\": \"2026-01-01\"}'))",
    "SELECT snowflake_migrate_internal.keep_origin(NULL::snowflake_migrate_internal.origins)",
    "SELECT snowflake_migrate_internal.keep_origin(ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::snowflake_migrate_internal.origins)",
    "SELECT snowflake_migrate_internal.keep_origin(jsonb_populate_record(NULL::snowflake_migrate_internal.origins, '{\"target\": \"app.t\"}'))",
    "SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(NULL::snowflake_migrate_internal.progress, '{\"target\": \"stranger.t\", \"column_name\": \"id\", \"relation\": \"stranger.t\",
        \"blocks_done\": 1, \"blocks_total\": 1, \"skipped\": \"{}\", \"rows_done\": 1, \"rows_total\": 1, \"run_rows\": 1, \"run_seconds\": 1, \"updated_at\": \"2026-01-01\"}'))",
    "SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(NULL::snowflake_migrate_internal.progress, '{\"target\": \"stranger.t\", \"column_name\": \"id\", \"relation\": \"app.t\",
        \"blocks_done\": 1, \"blocks_total\": 1, \"skipped\": \"{}\", \"rows_done\": 1, \"rows_total\": 1, \"run_rows\": 1, \"run_seconds\": 1, \"updated_at\": \"2026-01-01\"}'))",
    "SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(NULL::snowflake_migrate_internal.progress, '{\"target\": \"app.t\", \"column_name\": \"id\"}'))",
    "SELECT snowflake_migrate_internal.end_backfill('stranger.t', 'id')",
    "SELECT snowflake_migrate_internal.progress('stranger.t', 'id', 'stranger.t')",
    "CALL snowflake_migrate.run('stranger.t')",
    "CALL snowflake_migrate.revert('stranger.t')",
    "CALL snowflake_migrate.backfill('stranger.t')",
];

#[test]
fn internal_routines_touch_no_table_of_another_role() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("log_min_messages", "log")
        .conf("max_prepared_transactions", 2)
        .start_with_migrate()?;
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
    stranger.run("CALL snowflake_migrate.run('stranger.t')")?;
    let contents = "SELECT (SELECT string_agg(o::text, E'\\n' ORDER BY o::text) FROM snowflake_migrate_internal.origins AS o WHERE o.target = 'stranger.t'::regclass)
            || (SELECT count(*) FROM snowflake_migrate_internal.progress WHERE target = 'stranger.t'::regclass OR relation = 'stranger.t'::regclass)
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
    for routine in ["snowflake_internal.run", "snowflake_migrate_internal.query"] {
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

/// A row of progress about the attacker's table that names these keys.
fn set(targets: &str, names: &str) -> String {
    format!(
        "SELECT snowflake_migrate_internal.keep_progress(jsonb_populate_record(NULL::snowflake_migrate_internal.progress, jsonb_build_object(
             'target', 'app.x', 'column_name', 'id', 'relation', 'app.x', 'blocks_done', 0, 'blocks_total', 1, 'skipped', '{{}}',
             'rows_done', 0, 'rows_total', 0, 'run_rows', 0, 'run_seconds', 0, 'updated_at', now(),
             'key_targets', '{{{targets}}}', 'key_column_names', '{{{names}}}')))"
    )
}

/// The set of an online migration is what its rows of progress name. A role that names
/// tables of others would block their migrations, and have a superuser change them.
#[test]
fn sets_of_migrations_include_no_table_of_another_role() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    admin.run(ROLES)?;
    admin.run(ATTACK_FUNCTIONS)?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut thief = Session::connect(&cluster, "mallory", "postgres")?;
    let mut stranger = Session::connect(&cluster, "stranger", "postgres")?;
    for session in [&mut admin, &mut thief, &mut stranger] {
        session.run("SET statement_timeout = '1min'")?;
    }
    thief.run(
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO PUBLIC;
         CREATE TABLE app.x (id serial PRIMARY KEY); INSERT INTO app.x SELECT FROM generate_series(1, 10);
         CREATE TABLE app.z (id serial PRIMARY KEY); INSERT INTO app.z SELECT FROM generate_series(1, 10)",
    )?;
    stranger.run(
        "CREATE TABLE stranger.orders (id serial PRIMARY KEY); INSERT INTO stranger.orders SELECT FROM generate_series(1, 100)",
    )?;
    let many = |what: &str| vec![what; 1_601].join(",");
    for (targets, names, sqlstate) in [
        (
            "app.x,stranger.orders".to_owned(),
            "id,id".to_owned(),
            "42501",
        ),
        (
            "stranger.orders,app.x".to_owned(),
            "id,id".to_owned(),
            "42501",
        ),
        ("stranger.orders".to_owned(), "id".to_owned(), "42501"),
        ("app.x,pg_class".to_owned(), "id,oid".to_owned(), "42501"),
        ("app.x,app.z".to_owned(), "id".to_owned(), "22023"),
        ("app.x".to_owned(), many("id"), "22023"),
        (many("app.x"), many("id"), "54000"),
    ] {
        let (worked, answer) = thief.attempt(&set(&targets, &names))?;
        let what = &targets[..targets.len().min(40)];
        attacks.record(
            worked || !answer.contains(&format!("{sqlstate}: ")),
            format!("a set of {what}: {}", &answer[..answer.len().min(200)]),
        );
    }

    // A set of the attacker's own tables, one of which is given to another role.
    let statements: Vec<String> = thief
        .client
        .query(
            "SELECT statement FROM snowflake_migrate.plan('app.x', also => '{app.z}', online => true) WHERE statement IS NOT NULL ORDER BY step",
            &[],
        )?
        .iter()
        .map(|row| row.get(0))
        .take_while(|statement: &String| !statement.contains("snowflake_migrate.backfill"))
        .collect();
    for statement in &statements {
        thief.run(statement)?;
    }
    let kept = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.z'::regclass AND tgfoid = 'snowflake_migrate_internal.shadow()'::regprocedure";
    ensure!(admin.client.number(kept)? == 1, "{statements:#?}");
    admin.run(
        "ALTER TABLE app.z OWNER TO stranger; GRANT USAGE, CREATE ON SCHEMA app TO stranger",
    )?;
    for call in [
        "SELECT count(*) FROM snowflake_migrate.plan('app.z', online => true)",
        "CALL snowflake_migrate.backfill('app.z')",
    ] {
        let (worked, answer) = stranger.attempt(call)?;
        attacks.record(!worked, format!("{call}: {answer}"));
    }
    admin.run("CALL snowflake_migrate.revert('app.x')")?;
    attacks.record(
        admin.client.number(kept)? == 0,
        "a superuser who cancels the attacker's migration cancels another role's",
    );
    online::migrate(&mut stranger.client, "'app.z'")?;
    attacks.end("sets of online migrations with tables of others");
    Ok(())
}

/// Where a superuser copies the rows of a table, its owner's code runs. With
/// `session_replication_role = replica` it could violate foreign keys of others, and
/// pretend that its rows come from another server.
#[test]
fn a_backfill_by_a_superuser_lends_no_replica_role() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("snowflake.on_node_conflict", "stop")
        .start_with_migrate()?;
    let mut admin = Session::connect(&cluster, "postgres", "postgres")?;
    admin.run(ROLES)?;
    admin.run(ATTACK_FUNCTIONS)?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut thief = Session::connect(&cluster, "mallory", "postgres")?;
    thief.run(
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO PUBLIC;
         CREATE TABLE app.parent (id int PRIMARY KEY); INSERT INTO app.parent VALUES (1); GRANT REFERENCES, SELECT ON app.parent TO stranger;
         CREATE TABLE app.w (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         CREATE FUNCTION app.f(n int) RETURNS boolean LANGUAGE plpgsql AS $$
         BEGIN
             IF current_setting('session_replication_role') = 'replica' THEN
                 DELETE FROM app.parent;
                 INSERT INTO app.w VALUES (public.snowflake_compose(now() + interval '1 hour', 1, 0, 0)) ON CONFLICT DO NOTHING;
             END IF;
             RETURN true;
         END $$;
         CREATE FUNCTION app.noop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;
         CREATE TABLE app.x (id serial PRIMARY KEY, n int CHECK (app.f(n))); INSERT INTO app.x (n) VALUES (1)",
    )?;
    thief.run("CALL snowflake_watch('app.w')")?;
    Session::connect(&cluster, "stranger", "postgres")?.run(
        "CREATE TABLE stranger.child (parent int NOT NULL REFERENCES app.parent); INSERT INTO stranger.child VALUES (1)",
    )?;
    // The steps before the trigger exists.
    let steps = online::plan(&mut admin.client, "'app.x'")?;
    for step in steps.iter().take_while(|step| !step.is_backfill()) {
        admin.run(&step.statement)?;
    }
    thief.run(
        "CREATE TRIGGER noop BEFORE UPDATE ON app.x FOR EACH ROW EXECUTE FUNCTION app.noop()",
    )?;
    for call in [
        "CALL snowflake_migrate.backfill('app.x')",
        // As if the trigger were newer than the check for obstacles.
        "SELECT snowflake_migrate_internal.backfill_batch('{\"(app.x,id)\"}', 'app.x', 1000)",
    ] {
        let (worked, answer) = admin.attempt(call)?;
        attacks.record(
            worked
                || !answer.contains("55000: ")
                || !answer.contains("triggers of app.x would fire when rows are copied: noop"),
            format!("{call}: {answer}"),
        );
    }
    // The trigger gets a condition, which needs no such setting.
    online::migrate(&mut admin.client, "'app.x'")?;
    let orphans = "SELECT count(*) FROM stranger.child AS c WHERE NOT EXISTS (SELECT FROM app.parent AS p WHERE p.id = c.parent)";
    attacks.record(
        admin.client.number(orphans)? > 0,
        "a row of another role references none",
    );
    // A row that the attacker writes in the session of a superuser, which has the setting.
    admin.run(
        "SET session_replication_role = replica; SET ROLE mallory;
         INSERT INTO app.w VALUES (snowflake_compose(now() + interval '2 hours', 1, 0, 0));
         RESET ROLE; RESET session_replication_role",
    )?;
    let status = admin
        .client
        .value("SELECT concat_ws(' ', stopped, node_conflicts) FROM snowflake_status")?;
    attacks.record(status != "f 0", format!("a node conflict: {status}"));
    admin.run("SELECT snowflake_nextval()")?;
    attacks.end("the replica role, lent by a superuser's session");
    Ok(())
}
