//! A table that becomes partitioned while it is in use: interrupted at each step, by a cancel, by
//! the end of its session and by `kill -9` of the whole server, it is continued or reverted; and
//! sessions that write beside it see no error and lose no row.
//!
//! Locks of other sessions, the end of a server and concurrent writers need several sessions; what
//! one session can see of a plan is in test/regress/sql/partitioning.sql.

use std::sync::atomic::{AtomicBool, Ordering};

use snowflake_tests::online::unordered;

use super::{LIMIT, interrupted, kill_and_start, signal, sqlstate};
use crate::support::*;

const TABLES: &str = "
    CREATE TABLE users (id bigint PRIMARY KEY); INSERT INTO users SELECT generate_series(1, 10);
    CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), user_id bigint NOT NULL REFERENCES users,
                         kind text NOT NULL CHECK (kind <> ''));
    CREATE INDEX ON events (user_id);
    CREATE TABLE notes (id bigserial PRIMARY KEY, event_id bigint NOT NULL REFERENCES events ON DELETE CASCADE);
    CREATE TABLE marks (id bigserial PRIMARY KEY, event_id bigint REFERENCES events DEFERRABLE INITIALLY DEFERRED);
    CREATE VIEW recent AS SELECT id, kind FROM events;
    CREATE TABLE seen (kind text, events bigint);
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO seen VALUES (NEW.kind, NEW.id); RETURN NULL; END $$;
    CREATE TRIGGER see AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION see();
    CREATE ROLE reader; GRANT SELECT ON events TO reader;
    INSERT INTO events (user_id, kind) SELECT 1 + n % 10, 'old' FROM generate_series(1, 500) AS n;
    INSERT INTO notes (event_id) SELECT id FROM events; INSERT INTO marks (event_id) SELECT id FROM events";

/// The check, the swap, two foreign keys, and statistics.
const STEPS: usize = 5;

const PLAN: &str = "SELECT statement FROM snowflake_migrate.partition_plan('events', '1 day', 'UTC') ORDER BY step_number";
/// Rows, and those whose references are broken.
const ROWS: &str = "SELECT concat_ws(' ', (SELECT count(*) FROM events), (SELECT count(*) FROM seen),
    (SELECT count(*) FROM notes AS n LEFT JOIN events AS e ON e.id = n.event_id WHERE e.id IS NULL))";

fn dump(cluster: &Cluster) -> Result<String> {
    Ok(unordered(&schema(cluster, "postgres")?))
}

/// What blocks a step until the test lets it go.
fn obstacle(statement: &str) -> &'static str {
    if statement.contains("public.notes") {
        "LOCK TABLE notes IN ACCESS EXCLUSIVE MODE"
    } else if statement.contains("public.marks") {
        "LOCK TABLE marks IN ACCESS EXCLUSIVE MODE"
    } else {
        "LOCK TABLE events IN SHARE UPDATE EXCLUSIVE MODE"
    }
}

#[test]
fn a_plan_interrupted_at_any_step_is_continued() -> Result<()> {
    let mut cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let before = dump(&cluster)?;
    let rows = client.value(ROWS)?;
    for done in 0..STEPS {
        let left: Vec<String> = client.column(PLAN)?;
        assert_eq!(left.len(), STEPS - done, "{left:#?}");
        let statement = left[0].as_str();
        let now = dump(&cluster)?;
        for function in ["pg_cancel_backend", "pg_terminate_backend"] {
            let (is_waiting, answer) =
                interrupted(&cluster, statement, obstacle(statement), signal(function))?;
            assert!(is_waiting, "{statement}");
            let code = sqlstate(answer)?;
            assert!(
                ["57014", "57P01"].contains(&code.as_str()),
                "{statement}: {code}"
            );
            assert_same_schema(&now, &dump(&cluster)?, statement);
        }
        // The server's end, with the statement done but not committed.
        client.run(["BEGIN", statement])?;
        client = kill_and_start(&mut cluster)?;
        assert_same_schema(&now, &dump(&cluster)?, statement);
        let again: Vec<String> = client.column(PLAN)?;
        assert_eq!(again.len(), STEPS - done, "{again:#?}");
        // And with the statement done.
        client.run([statement])?;
        client = kill_and_start(&mut cluster)?;
        client.answers(ROWS, &rows)?;
        client.run([
            "INSERT INTO events (user_id, kind) VALUES (1, 'between')",
            "DELETE FROM events WHERE kind = 'between'",
            "DELETE FROM seen WHERE kind = 'between'",
        ])?;
    }
    client.answers(
        "SELECT relkind FROM pg_class WHERE oid = 'events'::regclass",
        "p",
    )?;
    let left: Vec<String> = client.column(PLAN)?;
    assert!(left.is_empty(), "{left:#?}");
    // And back, in the same way.
    let revert = "CALL snowflake_migrate.partition_revert('events')";
    let partitioned = dump(&cluster)?;
    let (is_waiting, answer) = interrupted(
        &cluster,
        revert,
        obstacle(revert),
        signal("pg_cancel_backend"),
    )?;
    assert!(is_waiting);
    assert_eq!(sqlstate(answer)?, "57014");
    assert_same_schema(&partitioned, &dump(&cluster)?, revert);
    client.run([revert])?;
    assert_same_schema(&before, &dump(&cluster)?, "reverted");
    client.answers(ROWS, rows)?;
    Ok(())
}

#[test]
fn a_plan_interrupted_at_any_step_is_reverted() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let before = dump(&cluster)?;
    let rows = client.value(ROWS)?;
    for done in 1..=STEPS {
        let steps: Vec<String> = client.column(PLAN)?;
        client.run(&steps[..done])?;
        client.run(["CALL snowflake_migrate.partition_revert('events')"])?;
        assert_same_schema(&before, &dump(&cluster)?, &format!("after {done} steps"));
        client.answers(ROWS, &rows)?;
    }
    Ok(())
}

/// Writes with prepared statements until it is told to stop; how many rows.
fn write(mut client: Client, has_ended: &AtomicBool) -> Result<i64> {
    let event =
        client.prepare("INSERT INTO events (user_id, kind) VALUES ($1, 'new') RETURNING id")?;
    let note = client.prepare("INSERT INTO notes (event_id) VALUES ($1)")?;
    let mark = client.prepare("INSERT INTO marks (event_id) VALUES ($1)")?;
    let change = client.prepare("UPDATE events SET kind = 'newer' WHERE id = $1")?;
    let seen = client.prepare("SELECT kind FROM recent WHERE id = $1")?;
    let mut written = 0;
    while !has_ended.load(Ordering::Relaxed) {
        let mut transaction = client.transaction()?;
        let id: i64 = transaction
            .query_one(&event, &[&(1 + written % 10)])?
            .get(0);
        transaction.execute(&mark, &[&id])?;
        transaction.execute(&note, &[&id])?;
        assert_eq!(transaction.execute(&change, &[&id])?, 1);
        // The view after its table: the conversion takes the locks of both.
        let kind: String = transaction.query_one(&seen, &[&id])?.get(0);
        assert_eq!(kind, "newer");
        transaction.commit()?;
        written += 1;
    }
    Ok(written)
}

#[test]
fn writers_beside_a_conversion_see_no_error() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let count = "SELECT count(*) FROM events";
    let before = client.number(count)?;
    let has_ended = AtomicBool::new(false);
    let rounds = tier::size(2, 6);
    let written = thread::scope(|scope| -> Result<i64> {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                Ok(scope.spawn({
                    let session = cluster.connect()?;
                    let has_ended = &has_ended;
                    move || write(session, has_ended)
                }))
            })
            .collect::<Result<_>>()?;
        let mut convert = || -> Result<()> {
            for _ in 0..rounds {
                for call in [
                    "CALL snowflake_migrate.partition('events', '1 day', 'UTC')",
                    "CALL snowflake_migrate.partition_revert('events')",
                ] {
                    // With rows that are written in each state.
                    let now = client.number(count)?;
                    wait::until("rows of all writers", LIMIT, || {
                        Ok(client.number(count)? > now + 40)
                    })?;
                    client.run([call])?;
                }
            }
            Ok(())
        };
        let conversion = convert();
        has_ended.store(true, Ordering::Relaxed);
        let mut written = 0;
        for writer in writers {
            written += writer.join().expect("a writer's thread")?;
        }
        conversion.map(|()| written)
    })?;
    client.answers(count, before + written)?;
    client.answers("SELECT count(DISTINCT events) FROM seen", before + written)?;
    let broken = "SELECT count(*) FROM (SELECT event_id FROM notes UNION ALL SELECT event_id FROM marks) AS r
                  LEFT JOIN events AS e ON e.id = r.event_id WHERE e.id IS NULL";
    client.answers(broken, 0)?;
    println!(
        "partitioning: {rounds} times there and back beside 4 writers, {written} different IDs written and found"
    );
    Ok(())
}
