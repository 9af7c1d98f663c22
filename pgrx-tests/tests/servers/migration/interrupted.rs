//! A migration that is interrupted at any of its steps, by a lock that does
//! not come, by a cancel, by `kill -9` of the whole server, is planned again
//! and finished; and statements that need earlier ones refuse without those.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_tests::migration::{
    assert_same_schema, contents, foreign_keys, number, plan, psql, schema, widened,
};
use snowflake_tests::outcome::{Refusal, refusal};
use snowflake_tests::{Cluster, ids, migration};

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

/// Runs a statement while another session holds its lock, until `interrupt`
/// (told the backend's number) makes it fail.
fn interrupted(
    cluster: &Cluster,
    statement: &str,
    interrupt: impl FnOnce(i32) -> Result<()>,
) -> Result<Refusal> {
    let mut holder = cluster.connect()?;
    let mut holding = holder.transaction()?;
    holding.batch_execute(&format!(
        "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
        locked_by(statement)
    ))?;
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    let mut observer = cluster.connect()?;
    let refused = thread::scope(|scope| -> Result<Refusal> {
        let waiting = scope.spawn(|| refusal(&mut client, statement));
        // A short wait may be over before it is seen; how it ended tells.
        wait_for_lock(&mut observer, pid, || waiting.is_finished())?;
        interrupt(pid)?;
        waiting.join().expect("the session's thread")
    });
    holding.rollback()?;
    refused
}

/// Waits until a backend waits for a lock, or its statement is `over`.
fn wait_for_lock(client: &mut Client, pid: i32, over: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !over() {
        let waiting = number(
            client,
            &format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND NOT granted"),
        )?;
        if waiting > 0 {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < Duration::from_secs(30),
            "the backend never waited for a lock"
        );
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn cancel(cluster: &Cluster) -> impl FnOnce(i32) -> Result<()> {
    |pid| {
        cluster
            .connect()?
            .batch_execute(&format!("SELECT pg_cancel_backend({pid})"))
            .map_err(Into::into)
    }
}

/// What everything has to be like in the end, there and back.
fn finish(cluster: &Cluster, before: &str, keys: (i64, i64)) -> Result<()> {
    let mut client = cluster.connect()?;
    let client = &mut client;
    assert!(plan(client, "'t'")?.is_empty());
    assert_eq!(foreign_keys(client)?, keys);
    let id = number(client, "INSERT INTO t (parent) VALUES (10) RETURNING id")?;
    assert!(id > 1 << 40, "{id} is no snowflake ID");
    client.batch_execute(&format!(
        "INSERT INTO child VALUES ({id}); INSERT INTO grandchild VALUES ({id}, {id})"
    ))?;
    for violation in [
        "INSERT INTO child VALUES (11)",
        "INSERT INTO grandchild VALUES (11)",
        "INSERT INTO t (parent) VALUES (11)",
    ] {
        assert_eq!(refusal(client, violation)?.sqlstate, "23503");
    }
    client.batch_execute("CALL snowflake_migrate_revert('t')")?;
    // 200 numbers from 10 on in steps of 5; recovery leaves some out.
    let next = number(client, "INSERT INTO t (parent) VALUES (10) RETURNING id")?;
    assert!(
        (1010..3000).contains(&next) && next % 5 == 0,
        "{next} is not the next number"
    );
    assert_same_schema(
        &widened(before, WIDENED)?,
        &schema(cluster, "postgres")?,
        "reverted",
    );
    Ok(())
}

#[test]
fn at_every_step() -> Result<()> {
    let mut cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let before = schema(&cluster, "postgres")?;
    let rows = contents(&mut client)?;
    let keys = foreign_keys(&mut client)?;
    let whole = plan(&mut client, "'t'")?;
    assert_eq!(whole.len(), STEPS, "{whole:#?}");
    let mut interruptions = 0;
    for done in 0..STEPS {
        let left = plan(&mut client, "'t'")?;
        assert_eq!(left, whole[done..], "after {done} statements");
        let statement = left[0].as_str();
        let now = schema(&cluster, "postgres")?;

        // A lock that does not come in time, and a cancel.
        let refused = interrupted(
            &cluster,
            &format!("SET lock_timeout = '50ms'; {statement}"),
            |_| Ok(()),
        );
        assert_eq!(refused?.sqlstate, "55P03", "{statement}");
        let refused = interrupted(&cluster, statement, cancel(&cluster))?;
        assert_eq!(refused.sqlstate, "57014", "{statement}: {refused}");
        assert_eq!(plan(&mut client, "'t'")?, left);
        assert_same_schema(&now, &schema(&cluster, "postgres")?, statement);

        // The server's end, with the statement done but not committed.
        client.batch_execute("BEGIN")?;
        client.batch_execute(statement)?;
        cluster.kill9_all()?;
        cluster.start()?;
        client = cluster.connect()?;
        assert_eq!(plan(&mut client, "'t'")?, left);
        assert_same_schema(&now, &schema(&cluster, "postgres")?, statement);

        // And with the statement done.
        client.batch_execute(statement)?;
        cluster.kill9_all()?;
        cluster.start()?;
        client = cluster.connect()?;
        assert_eq!(contents(&mut client)?, rows);
        interruptions += 4;
    }
    finish(&cluster, &before, keys)?;
    println!(
        "migration interrupted: {interruptions} times at {STEPS} steps, half of them by kill -9 of the server; \
         planned again and finished, {} tables with the same rows",
        rows.len()
    );
    Ok(())
}

#[test]
fn calls_and_the_way_back() -> Result<()> {
    let mut cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let before = schema(&cluster, "postgres")?;
    let rows = contents(&mut client)?;
    let keys = foreign_keys(&mut client)?;
    let whole = plan(&mut client, "'t'")?;
    let mut interruptions = 0;
    // The table that the last of the CALL's locks is on.
    let call = "CALL snowflake_migrate('t') /* public.grandchild */";
    let refused = interrupted(&cluster, call, cancel(&cluster))?;
    assert_eq!(refused.sqlstate, "57014", "{refused}");
    let begun = Instant::now();
    let refused = interrupted(&cluster, call, |_| Ok(()))?;
    assert_eq!(refused.sqlstate, "55P03", "{refused}");
    let waited = begun.elapsed();
    assert!(
        (4..20).contains(&waited.as_secs()),
        "waited {waited:?} for a lock"
    );
    let refused = interrupted(
        &cluster,
        &format!("SET lock_timeout = '50ms'; {call}"),
        |_| Ok(()),
    )?;
    assert_eq!(refused.sqlstate, "55P03", "{refused}");
    interruptions += 3;
    client.batch_execute("BEGIN; CALL snowflake_migrate('t')")?;
    cluster.kill9_all()?;
    cluster.start()?;
    client = cluster.connect()?;
    interruptions += 1;
    assert_eq!(plan(&mut client, "'t'")?, whole);
    assert_same_schema(&before, &schema(&cluster, "postgres")?, "interrupted");
    assert_eq!(
        number(&mut client, "SELECT count(*) FROM snowflake_origins")?,
        0
    );

    client.batch_execute("CALL snowflake_migrate('t')")?;
    let migrated = schema(&cluster, "postgres")?;
    let back = "CALL snowflake_migrate_revert('t')";
    let refused = interrupted(&cluster, back, cancel(&cluster))?;
    assert_eq!(refused.sqlstate, "57014", "{refused}");
    client.batch_execute(&format!("BEGIN; {back}"))?;
    cluster.kill9_all()?;
    cluster.start()?;
    client = cluster.connect()?;
    interruptions += 2;
    assert_same_schema(
        &migrated,
        &schema(&cluster, "postgres")?,
        "the way back interrupted",
    );
    assert!(plan(&mut client, "'t'")?.is_empty());
    assert_eq!(contents(&mut client)?, rows);

    // Back from half of the way: there is nothing to put back but what stayed.
    finish(&cluster, &before, keys)?;
    let half = plan(&mut client, "'t'")?;
    client.batch_execute(&half[0])?;
    client.batch_execute(back)?;
    assert_eq!(plan(&mut client, "'t'")?.len(), half.len());
    client.batch_execute("CALL snowflake_migrate('t')")?;
    client.batch_execute(back)?;
    println!(
        "migration interrupted: CALL of both procedures {interruptions} times, nothing changed; {waited:.1?} at most for a lock"
    );
    Ok(())
}

#[test]
fn out_of_order() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLES)?;
    let before = schema(&cluster, "postgres")?;
    let keys = foreign_keys(client)?;
    let whole = plan(client, "'t'")?;
    let switch = whole
        .iter()
        .position(|it| it.starts_with("DO "))
        .expect("a switch");
    // The last of them with any one of the earlier ones left out, and alone.
    let mut tried = 0;
    for left_out in 0..=switch {
        client.batch_execute("BEGIN")?;
        if left_out < switch {
            for (position, statement) in whole[..switch].iter().enumerate() {
                if position != left_out {
                    client.batch_execute(statement)?;
                }
            }
        }
        let refused = refusal(client, &whole[switch])?;
        assert_eq!(refused.sqlstate, "55000", "without {left_out}: {refused}");
        assert!(refused.hint.contains("in their order"), "{refused}");
        client.batch_execute("ROLLBACK")?;
        tried += 1;
    }
    assert_same_schema(&before, &schema(&cluster, "postgres")?, "out of order");
    assert_eq!(plan(client, "'t'")?, whole);

    // Rows that came in between are seen: those that no new ID may meet.
    client.batch_execute("CREATE TABLE big (id bigserial PRIMARY KEY)")?;
    let of_big = plan(client, "'big'")?;
    client.batch_execute(&of_big[0])?;
    client.batch_execute("INSERT INTO big VALUES (snowflake_max_id('infinity'))")?;
    let refused = refusal(client, &of_big[1])?;
    assert_eq!(refused.sqlstate, "55000", "{refused}");
    assert!(
        refused.detail.contains("not below the first snowflake ID"),
        "{refused}"
    );
    // Numbers that were given in between are not given again.
    client.batch_execute("DELETE FROM big")?;
    assert_eq!(
        number(client, "INSERT INTO big VALUES (DEFAULT) RETURNING id")?,
        1
    );
    client
        .batch_execute("DROP TABLE big; CREATE TABLE big (id int GENERATED ALWAYS AS IDENTITY)")?;
    let of_big = plan(client, "'big'")?;
    client.batch_execute(&of_big[0])?;
    client.batch_execute("INSERT INTO big SELECT FROM generate_series(1, 50); DELETE FROM big")?;
    for statement in &of_big[1..] {
        client.batch_execute(statement)?;
    }
    client.batch_execute("CALL snowflake_migrate_revert('big')")?;
    assert_eq!(
        number(client, "INSERT INTO big VALUES (DEFAULT) RETURNING id")?,
        51
    );
    client.batch_execute("DROP TABLE big")?;

    // psql goes on after an error: with each of the tables locked in turn.
    let mut errors = 0;
    for table in ["t", "child", "grandchild"] {
        let mut holder = cluster.connect()?;
        let mut holding = holder.transaction()?;
        // What the plan reads, it can read.
        holding.batch_execute(&format!("LOCK TABLE {table} IN SHARE MODE"))?;
        let written = psql(
            &cluster,
            "postgres",
            "postgres",
            "SET lock_timeout = '50ms';\nSELECT statement FROM snowflake_migration_plan('t') \\gexec\n",
            false,
        )?;
        assert!(
            written.errors.contains("lock timeout"),
            "{}",
            written.errors
        );
        errors += written.errors.matches("ERROR").count();
        holding.rollback()?;
        // Nobody gets snowflake IDs while a column is too narrow.
        let kind = number(
            client,
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 't'::regclass AND attidentity = 'a'",
        )?;
        assert_eq!(kind, 1, "switched: {}", written.errors);
        assert!(!plan(client, "'t'")?.is_empty());
    }
    let written = psql(
        &cluster,
        "postgres",
        "postgres",
        "SELECT statement FROM snowflake_migration_plan('t') \\gexec\n",
        false,
    )?;
    assert_eq!(written.errors, "");
    finish(&cluster, &before, keys)?;
    println!(
        "migration interrupted: the switch refused {tried} times without what comes before it; \
         psql without ON_ERROR_STOP went on after {errors} errors without harm"
    );
    Ok(())
}

#[test]
fn two_at_once_and_changes_in_between() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    // Two people press the button: one does it, the other one has nothing to
    // do or is told so, and the way back still knows the first state.
    client.batch_execute(TABLES)?;
    let before = schema(&cluster, "postgres")?;
    let keys = foreign_keys(client)?;
    let mut second = cluster.connect()?;
    let pid = ids::backend_pid(&mut second)?;
    client.batch_execute("BEGIN; CALL snowflake_migrate('t')")?;
    let answer = thread::scope(|scope| -> Result<_> {
        let waiting = scope
            .spawn(|| second.batch_execute("SET lock_timeout = 0; CALL snowflake_migrate('t')"));
        wait_for_lock(&mut cluster.connect()?, pid, || false)?;
        client.batch_execute("COMMIT")?;
        Ok(waiting.join().expect("the session's thread"))
    })?;
    let answer = match answer {
        Ok(()) => "nothing to do".to_owned(),
        Err(error) => Refusal::from_error(error)?.sqlstate,
    };
    assert!(
        ["nothing to do", "55000"].contains(&answer.as_str()),
        "{answer}"
    );
    finish(&cluster, &before, keys)?;

    // What happens to a table between there and back: renamed, moved, its
    // sequence renamed or dropped, default privileges that were not there.
    client.batch_execute(
        "CREATE SCHEMA elsewhere; CREATE ROLE stranger;
         CREATE TABLE a (id serial PRIMARY KEY); INSERT INTO a SELECT FROM generate_series(1, 3);
         CREATE TABLE b (id serial PRIMARY KEY); INSERT INTO b SELECT FROM generate_series(1, 3); GRANT USAGE ON SEQUENCE b_id_seq TO reader; COMMENT ON SEQUENCE b_id_seq IS 'b';
         CREATE TABLE c (id int GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 1000)); INSERT INTO c SELECT FROM generate_series(1, 3);
         CREATE TABLE d (id serial PRIMARY KEY); INSERT INTO d SELECT FROM generate_series(1, 3);
         CREATE TABLE e (id smallserial PRIMARY KEY);
         CALL snowflake_migrate('a'); CALL snowflake_migrate('b'); CALL snowflake_migrate('c'); CALL snowflake_migrate('d'); CALL snowflake_migrate('e');
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO stranger;
         ALTER TABLE a RENAME TO a2; ALTER TABLE a2 SET SCHEMA elsewhere; ALTER SEQUENCE elsewhere.a_id_seq RENAME TO anew;
         DROP SEQUENCE b_id_seq; ALTER TABLE c SET SCHEMA elsewhere;
         INSERT INTO d VALUES (1000), (4000000000); INSERT INTO e VALUES (32767);
         CALL snowflake_migrate_revert('elsewhere.a2'); CALL snowflake_migrate_revert('b'); CALL snowflake_migrate_revert('elsewhere.c');
         CALL snowflake_migrate_revert('d'); CALL snowflake_migrate_revert('e')",
    )?;
    for (table, next) in [
        ("elsewhere.a2", 4),
        ("b", 4),
        ("elsewhere.c", 4),
        ("d", 1001),
    ] {
        let id = number(
            client,
            &format!("INSERT INTO {table} VALUES (DEFAULT) RETURNING id"),
        )?;
        assert_eq!(id, next, "{table}");
    }
    // A sequence whose type's end is reached has no next number.
    assert_eq!(
        refusal(client, "INSERT INTO e VALUES (DEFAULT)")?.sqlstate,
        "2200H"
    );
    let strangers = number(
        client,
        "SELECT count(*) FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.relkind = 'S' AND a.grantee = 'stranger'::regrole",
    )?;
    assert_eq!(strangers, 0, "default privileges");
    assert_eq!(
        migration::value(
            client,
            "SELECT concat_ws(' ', obj_description('b_id_seq'::regclass, 'pg_class'), has_sequence_privilege('reader', 'b_id_seq', 'USAGE'),
                              pg_get_serial_sequence('b', 'id'), pg_get_serial_sequence('elsewhere.a2', 'id'), pg_get_serial_sequence('elsewhere.c', 'id'))"
        )?,
        "b t public.b_id_seq elsewhere.anew elsewhere.c_id_seq"
    );
    // By hand in between: what is remembered is not what there is.
    client.batch_execute(
        "CREATE TABLE f (id int GENERATED ALWAYS AS IDENTITY); CREATE SEQUENCE own START 77;
         SELECT snowflake_migration_remember('f', 'id'); ALTER TABLE f ALTER id DROP IDENTITY; ALTER TABLE f ALTER id SET DEFAULT nextval('own');
         CALL snowflake_migrate('f'); INSERT INTO f VALUES (DEFAULT); CALL snowflake_migrate_revert('f')",
    )?;
    assert_eq!(
        number(client, "INSERT INTO f VALUES (DEFAULT) RETURNING id")?,
        77
    );
    // Tables that are gone are forgotten, and not dumped.
    client
        .batch_execute("CREATE TABLE g (id serial); CALL snowflake_migrate('g'); DROP TABLE g")?;
    let dumped = migration::dump(&cluster, "postgres", &["--data-only"])?;
    assert!(
        dumped.contains("public.f\tid\t") && !dumped.contains("public.g\t"),
        "{dumped}"
    );
    let stale = "SELECT count(*) FROM snowflake_origins AS o WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = o.target)";
    assert_eq!(number(client, stale)?, 1);
    client.batch_execute("CALL snowflake_migrate('f')")?;
    assert_eq!(number(client, stale)?, 0);
    println!(
        "migration interrupted: two at once ({answer}); 6 tables changed between there and back"
    );
    Ok(())
}
