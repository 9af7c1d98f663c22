//! A migration that is interrupted at any of its steps, by a lock that does
//! not come, by a cancel, by `kill -9` of the whole server, is planned again
//! and finished; and statements that need earlier ones refuse without those.

use snowflake_tests::migration::{self, Contents, contents, foreign_keys, plan, widened};

use super::{kill_and_start, signal, sqlstate};
use crate::support::*;

/// A table that is referenced from two others, one level and two away.
const TABLES: &str =
    "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5) PRIMARY KEY, parent int REFERENCES t);
     CREATE TABLE child (t_id int PRIMARY KEY REFERENCES t ON DELETE CASCADE, note text);
     CREATE TABLE grandchild (child_id int REFERENCES child, other bigint REFERENCES t);
     INSERT INTO t (parent) SELECT CASE WHEN n > 1 THEN 10 END FROM generate_series(1, 200) AS n;
     INSERT INTO child SELECT id, 'n' FROM t; INSERT INTO grandchild SELECT id, id FROM t;
     COMMENT ON SEQUENCE t_id_seq IS 'kept'; CREATE ROLE reader; GRANT USAGE ON SEQUENCE t_id_seq TO reader";

const WIDENED: &[(&str, &str)] = &[
    ("public.t", "id"),
    ("public.t", "parent"),
    ("public.child", "t_id"),
    ("public.grandchild", "child_id"),
];

/// Every statement that [`TABLES`]' plan has.
const STEPS: usize = 8;

/// The table that a statement of the plan locks.
fn locked_by(statement: &str) -> &'static str {
    if statement.contains("public.grandchild") {
        "grandchild"
    } else if statement.contains("public.child") {
        "child"
    } else {
        "t"
    }
}

/// The SQLSTATE of a statement that waited for another session's lock, and was
/// cancelled or ended by a lock timeout.
fn interrupted(cluster: &Cluster, statement: &str, is_cancelled: bool) -> Result<String> {
    let lock = format!(
        "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
        locked_by(statement)
    );
    let (_, answer) = super::interrupted(cluster, statement, &lock, |observer, pid| {
        if is_cancelled {
            signal("pg_cancel_backend")(observer, pid)?;
        }
        Ok(())
    })?;
    sqlstate(answer)
}

/// The state before a migration.
struct Before {
    schema: String,
    rows: Contents,
    keys: (i64, i64),
    plan: Vec<String>,
}

fn prepare(client: &mut Client, cluster: &Cluster) -> Result<Before> {
    client.batch_execute(TABLES)?;
    Ok(Before {
        schema: schema(cluster, "postgres")?,
        rows: contents(client)?,
        keys: foreign_keys(client)?,
        plan: plan(client, "'t'")?,
    })
}

/// Fails where the schema is another one than before.
fn assert_unchanged(cluster: &Cluster, schema_before: &str, when: &str) -> Result<()> {
    assert_same_schema(schema_before, &schema(cluster, "postgres")?, when);
    Ok(())
}

/// The state in the end, migrated and reverted.
fn finish(cluster: &Cluster, before: &Before) -> Result<()> {
    let mut client = cluster.connect()?;
    let client = &mut client;
    assert!(plan(client, "'t'")?.is_empty());
    assert_eq!(foreign_keys(client)?, before.keys);
    let insert = "INSERT INTO t (parent) VALUES (10) RETURNING id";
    let id = client.number(insert)?;
    assert!(id > 1 << 40, "{id} is no snowflake ID");
    client.batch_execute(&format!(
        "INSERT INTO child VALUES ({id}); INSERT INTO grandchild VALUES ({id}, {id})"
    ))?;
    for violation in [
        "INSERT INTO child VALUES (11)",
        "INSERT INTO grandchild VALUES (11)",
        "INSERT INTO t (parent) VALUES (11)",
    ] {
        client.refused(violation, "23503")?;
    }
    client.batch_execute("CALL snowflake_migrate.revert('t')")?;
    // 200 numbers from 10 on in steps of 5; recovery leaves some out.
    let next = client.number(insert)?;
    assert!(
        (1010..3000).contains(&next) && next % 5 == 0,
        "{next} is not the next number"
    );
    assert_unchanged(cluster, &widened(&before.schema, WIDENED)?, "reverted")
}

#[test]
fn a_migration_interrupted_at_any_step_is_finished() -> Result<()> {
    let mut cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let before = prepare(&mut client, &cluster)?;
    assert_eq!(before.plan.len(), STEPS, "{:#?}", before.plan);
    for done in 0..STEPS {
        let left = plan(&mut client, "'t'")?;
        assert_eq!(left, before.plan[done..], "after {done} statements");
        let statement = left[0].as_str();
        let now = schema(&cluster, "postgres")?;

        // A lock that does not come in time, and a cancel.
        let impatient = format!("SET lock_timeout = '50ms'; {statement}");
        assert_eq!(
            interrupted(&cluster, &impatient, false)?,
            "55P03",
            "{statement}"
        );
        assert_eq!(
            interrupted(&cluster, statement, true)?,
            "57014",
            "{statement}"
        );
        assert_eq!(plan(&mut client, "'t'")?, left);
        assert_unchanged(&cluster, &now, statement)?;

        // The server's end, with the statement done but not committed.
        client.run(["BEGIN", statement])?;
        client = kill_and_start(&mut cluster)?;
        assert_eq!(plan(&mut client, "'t'")?, left);
        assert_unchanged(&cluster, &now, statement)?;

        // And with the statement done.
        client.run([statement])?;
        client = kill_and_start(&mut cluster)?;
        assert_eq!(contents(&mut client)?, before.rows);
    }
    finish(&cluster, &before)
}

#[test]
fn an_interrupted_call_changes_nothing() -> Result<()> {
    let mut cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let before = prepare(&mut client, &cluster)?;
    // The table that the last of the CALL's locks is on.
    let call = "CALL snowflake_migrate.run('t') /* public.grandchild */";
    let patient = format!("SET lock_timeout = '100s'; {call}");
    assert_eq!(interrupted(&cluster, &patient, true)?, "57014");
    if tier::is_full() {
        // The call's own limit, of five seconds.
        let begun = Instant::now();
        assert_eq!(interrupted(&cluster, call, false)?, "55P03");
        let waited = begun.elapsed();
        assert!(waited.as_secs() >= 4, "waited {waited:?} for a lock");
    }
    let impatient = format!("SET lock_timeout = '50ms'; {call}");
    assert_eq!(interrupted(&cluster, &impatient, false)?, "55P03");
    client.batch_execute("BEGIN; CALL snowflake_migrate.run('t')")?;
    client = kill_and_start(&mut cluster)?;
    assert_eq!(plan(&mut client, "'t'")?, before.plan);
    assert_unchanged(&cluster, &before.schema, "interrupted")?;
    client.answers("SELECT count(*) FROM snowflake_migrate_internal.origins", 0)?;
    Ok(())
}

#[test]
fn an_interrupted_revert_changes_nothing() -> Result<()> {
    let mut cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let before = prepare(&mut client, &cluster)?;
    client.batch_execute("CALL snowflake_migrate.run('t')")?;
    let migrated = schema(&cluster, "postgres")?;
    let revert = "CALL snowflake_migrate.revert('t')";
    let patient = format!("SET lock_timeout = '100s'; {revert}");
    assert_eq!(interrupted(&cluster, &patient, true)?, "57014");
    client.batch_execute(&format!("BEGIN; {revert}"))?;
    client = kill_and_start(&mut cluster)?;
    assert_unchanged(&cluster, &migrated, "reverting interrupted")?;
    assert!(plan(&mut client, "'t'")?.is_empty());
    assert_eq!(contents(&mut client)?, before.rows);
    finish(&cluster, &before)?;

    // Reverted half way: only what was changed is restored.
    let half = plan(&mut client, "'t'")?;
    client.run([&half[0], revert])?;
    assert_eq!(plan(&mut client, "'t'")?.len(), half.len());
    client.run(["CALL snowflake_migrate.run('t')", revert])
}

#[test]
fn the_switch_is_refused_without_an_earlier_statement() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let before = prepare(client, &cluster)?;
    let whole = &before.plan;
    let switch = whole
        .iter()
        .position(|it| it.starts_with("DO "))
        .expect("a switch");
    // With any one of the earlier ones left out, and alone.
    for left_out in 0..=switch {
        client.batch_execute("BEGIN")?;
        let is_run = |position: usize| left_out < switch && position != left_out;
        let earlier = whole[..switch].iter().enumerate();
        client.run(earlier.filter(|it| is_run(it.0)).map(|it| it.1))?;
        let refused = client.refused(&whole[switch], "55000")?;
        assert!(refused.hint.contains("in order"), "{refused}");
        client.batch_execute("ROLLBACK")?;
    }
    assert_unchanged(&cluster, &before.schema, "out of order")?;
    assert_eq!(&plan(client, "'t'")?, whole);
    Ok(())
}

#[test]
fn rows_inserted_between_two_steps_are_respected() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let insert = "INSERT INTO big VALUES (DEFAULT) RETURNING id";
    // IDs that no new one may meet.
    client.batch_execute("CREATE TABLE big (id bigserial PRIMARY KEY)")?;
    let of_big = plan(client, "'big'")?;
    client.run([
        &of_big[0],
        "INSERT INTO big VALUES (snowflake_max_id('infinity'))",
    ])?;
    let refused = client.refused(&of_big[1], "55000")?;
    assert!(
        refused.detail.contains("not below the first snowflake ID"),
        "{refused}"
    );
    client.batch_execute("DELETE FROM big")?;
    client.answers(insert, 1)?;
    // Numbers that were used are not used again.
    client
        .batch_execute("DROP TABLE big; CREATE TABLE big (id int GENERATED ALWAYS AS IDENTITY)")?;
    let of_big = plan(client, "'big'")?;
    client.batch_execute(&of_big[0])?;
    client.batch_execute("INSERT INTO big SELECT FROM generate_series(1, 50); DELETE FROM big")?;
    client.run(&of_big[1..])?;
    client.batch_execute("CALL snowflake_migrate.revert('big')")?;
    client.answers(insert, 51)?;
    Ok(())
}

/// Without `ON_ERROR_STOP`, with each of the tables locked in turn.
#[test]
fn psql_that_continues_after_errors_does_no_harm() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let before = prepare(client, &cluster)?;
    let script = "SELECT statement FROM snowflake_migrate.plan('t') \\gexec\n";
    let impatient = format!("SET lock_timeout = '50ms';\n{script}");
    let through_psql = |script: &str| psql(&cluster, "postgres", "postgres", script, false);
    for table in ["t", "child", "grandchild"] {
        let mut holder = cluster.connect()?;
        let mut holding = holder.transaction()?;
        // The plan can still be read.
        holding.batch_execute(&format!("LOCK TABLE {table} IN SHARE MODE"))?;
        let errors = through_psql(&impatient)?.errors;
        assert!(errors.contains("lock timeout"), "{errors}");
        holding.rollback()?;
        // No session gets snowflake IDs while a column is too narrow.
        let kind = "SELECT attidentity::text FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'id'";
        client.answers(kind, "a")?;
        assert!(!plan(client, "'t'")?.is_empty());
    }
    assert_eq!(through_psql(script)?.errors, "");
    finish(&cluster, &before)
}

/// One session migrates. The other one is told so at once, whatever its `lock_timeout`,
/// and the first state is still known for reverting.
#[test]
fn two_sessions_migrate_a_table_at_once() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let before = prepare(&mut client, &cluster)?;
    client.batch_execute("BEGIN; CALL snowflake_migrate.run('t')")?;
    let run = "SET lock_timeout = 0; CALL snowflake_migrate.run('t')";
    let told = cluster.connect()?.refused(run, "55P03")?;
    let pid = ids::backend_pid(&mut client)?;
    assert_eq!(told.detail, format!("It is process {pid}."), "{told}");
    client.batch_execute("COMMIT")?;
    finish(&cluster, &before)
}

/// Renamed, moved, its sequence renamed or dropped, default privileges that
/// were granted since.
#[test]
fn tables_changed_after_their_migration_are_reverted() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE SCHEMA elsewhere; CREATE ROLE stranger; CREATE ROLE reader;
         CREATE TABLE a (id serial PRIMARY KEY); INSERT INTO a SELECT FROM generate_series(1, 3);
         CREATE TABLE b (id serial PRIMARY KEY); INSERT INTO b SELECT FROM generate_series(1, 3); GRANT USAGE ON SEQUENCE b_id_seq TO reader; COMMENT ON SEQUENCE b_id_seq IS 'b';
         CREATE TABLE c (id int GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 1000)); INSERT INTO c SELECT FROM generate_series(1, 3);
         CREATE TABLE d (id serial PRIMARY KEY); INSERT INTO d SELECT FROM generate_series(1, 3);
         CREATE TABLE e (id smallserial PRIMARY KEY);
         CALL snowflake_migrate.run('a'); CALL snowflake_migrate.run('b'); CALL snowflake_migrate.run('c'); CALL snowflake_migrate.run('d'); CALL snowflake_migrate.run('e');
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO stranger;
         ALTER TABLE a RENAME TO a2; ALTER TABLE a2 SET SCHEMA elsewhere; ALTER SEQUENCE elsewhere.a_id_seq RENAME TO anew;
         DROP SEQUENCE b_id_seq; ALTER TABLE c SET SCHEMA elsewhere;
         INSERT INTO d VALUES (1000), (4000000000); INSERT INTO e VALUES (32767);
         CALL snowflake_migrate.revert('elsewhere.a2'); CALL snowflake_migrate.revert('b'); CALL snowflake_migrate.revert('elsewhere.c');
         CALL snowflake_migrate.revert('d'); CALL snowflake_migrate.revert('e')",
    )?;
    for (table, next) in [
        ("elsewhere.a2", 4),
        ("b", 4),
        ("elsewhere.c", 4),
        ("d", 1001),
    ] {
        let insert = format!("INSERT INTO {table} VALUES (DEFAULT) RETURNING id");
        client.answers(&insert, next)?;
    }
    // A sequence whose type's end is reached has no next number.
    client.refused("INSERT INTO e VALUES (DEFAULT)", "2200H")?;
    let strangers = "SELECT count(*) FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.relkind = 'S' AND a.grantee = 'stranger'::regrole";
    client.answers(strangers, 0)?;
    client.answers(
        "SELECT concat_ws(' ', obj_description('b_id_seq'::regclass, 'pg_class'), has_sequence_privilege('reader', 'b_id_seq', 'USAGE'),
                              pg_get_serial_sequence('b', 'id'), pg_get_serial_sequence('elsewhere.a2', 'id'), pg_get_serial_sequence('elsewhere.c', 'id'))",
        "b t public.b_id_seq elsewhere.anew elsewhere.c_id_seq",
    )?;
    Ok(())
}

#[test]
fn records_follow_changes_by_hand_and_dropped_tables() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    // What is recorded is no longer the column's state.
    client.batch_execute(
        "CREATE TABLE f (id int GENERATED ALWAYS AS IDENTITY); CREATE SEQUENCE own START 77;
         SELECT snowflake_migrate_internal.record_origin('f', 'id'); ALTER TABLE f ALTER id DROP IDENTITY; ALTER TABLE f ALTER id SET DEFAULT nextval('own');
         CALL snowflake_migrate.run('f'); INSERT INTO f VALUES (DEFAULT); CALL snowflake_migrate.revert('f')",
    )?;
    client.answers("INSERT INTO f VALUES (DEFAULT) RETURNING id", 77)?;
    // Dropped tables are forgotten, and not dumped.
    client.batch_execute(
        "CREATE TABLE g (id serial); CALL snowflake_migrate.run('g'); DROP TABLE g",
    )?;
    let dumped = migration::dump(&cluster, "postgres", &["--data-only"])?;
    assert!(
        dumped.contains("public\tf\tid\t") && !dumped.contains("public\tg\t"),
        "{dumped}"
    );
    let stale = "SELECT count(*) FROM snowflake_migrate_internal.origins AS o WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = o.target)";
    client.answers(stale, 1)?;
    client.batch_execute("CALL snowflake_migrate.run('f')")?;
    client.answers(stale, 0)?;
    Ok(())
}
