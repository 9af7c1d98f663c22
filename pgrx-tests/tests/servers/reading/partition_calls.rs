//! `snowflake_partitions.maintain` beside other sessions: interrupted at each statement, called
//! by several sessions at once, with a lock held, and beside changes of names and boundaries. A golden
//! file has one session.

use std::collections::BTreeMap;

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Two days that are due, two to be created, and rows of one of these in DEFAULT.
const TABLE: [&str; 5] = [
    "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text) PARTITION BY RANGE (id);
     SELECT snowflake_partitions.configure('events', '1 day', 'UTC', '1 day')",
    "CALL snowflake_partitions_internal.maintain('events', '2026-03-01 01:00+00', 1, 0)",
    "INSERT INTO events SELECT snowflake_compose('2026-03-01 00:00+00'::timestamptz + n * interval '1 minute', 1, 0, 0), 'due'
     FROM generate_series(0, 2879) AS n",
    "CREATE TABLE events_default PARTITION OF events DEFAULT;
     INSERT INTO events SELECT snowflake_compose('2026-03-04 00:00+00'::timestamptz + n * interval '1 minute', 1, 0, 0), 'late'
     FROM generate_series(0, 1499) AS n",
    "SELECT snowflake_partitions.configure('events', '1 day', 'UTC', '2 days', '1 day')",
];
const ROWS: i64 = 2_880 + 1_500;
const ROWS_NOT_DUE: i64 = 1_500;
const CALL: &str =
    "CALL snowflake_partitions_internal.maintain('events', '2026-03-04 01:00+00', 1, 0)";

/// Counts the statements of a session that sets `test.stop`, and waits in the one with that
/// number. A sequence is not rolled back.
const PAUSE: &str = "
    CREATE SEQUENCE steps;
    CREATE FUNCTION public.pause() RETURNS void LANGUAGE plpgsql AS $$
    DECLARE stop CONSTANT bigint := nullif(current_setting('test.stop', true), '')::bigint;
    BEGIN
        IF stop IS NOT NULL THEN
            IF pg_catalog.nextval('public.steps') = stop THEN PERFORM pg_catalog.pg_advisory_lock(7); END IF;
        END IF;
    END $$;
    CREATE FUNCTION public.pause_statement() RETURNS event_trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.pause(); END $$;
    CREATE FUNCTION public.pause_row() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.pause(); RETURN NULL; END $$;
    CREATE EVENT TRIGGER before_statement ON ddl_command_start EXECUTE FUNCTION public.pause_statement();
    CREATE EVENT TRIGGER after_statement ON ddl_command_end EXECUTE FUNCTION public.pause_statement();
    CREATE TRIGGER pause_row AFTER UPDATE ON snowflake_partitions_internal.settings
        FOR EACH ROW EXECUTE FUNCTION public.pause_row()";

/// Partitions with their bounds and numbers of rows.
fn state(client: &mut Client) -> Result<BTreeMap<String, String>> {
    let rows = client.query(
        "SELECT c.relname::text, pg_get_expr(c.relpartbound, c.oid) || ' ' || (SELECT count(*) FROM events AS e WHERE e.tableoid = c.oid)
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'events'::regclass",
        &[],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

#[derive(Clone, Copy, Debug)]
enum Interruption {
    Terminated,
    BackendKilled,
    ServerKilled,
}

/// A call that is interrupted in its statement with that number. The wait there is one for a lock.
fn interrupt(cluster: &mut Cluster, step: i64, how: Interruption) -> Result<()> {
    let mut holder = cluster.connect()?;
    holder.batch_execute("SELECT pg_advisory_lock(7)")?;
    let mut caller = cluster.connect()?;
    let pid = ids::backend_pid(&mut caller)?;
    let calling = thread::spawn(move || {
        caller
            .batch_execute(&format!(
                "SET test.stop = '{step}'; SET lock_timeout = '1min'"
            ))
            .and_then(|()| caller.batch_execute(CALL))
            .is_err()
    });
    holder.wait_until(&format!(
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'advisory'"
    ))?;
    match how {
        Interruption::Terminated => {
            holder.batch_execute(&format!("SELECT pg_terminate_backend({pid})"))?;
        }
        Interruption::BackendKilled => cluster.kill9_backend(pid)?,
        Interruption::ServerKilled => {
            cluster.kill9_all()?;
            cluster.start()?;
        }
    }
    wait::until("the call to end", TIMEOUT, || Ok(calling.is_finished()))?;
    let has_failed = calling.join().expect("the thread of the call");
    ensure!(has_failed, "{how:?} in statement {step}: the call ended");
    Ok(())
}

/// After each, the table has all rows that are not due, in partitions without an overlap, and the
/// next call does what is left.
#[test]
fn an_interrupted_call_is_completed_by_the_next_one() -> Result<()> {
    let mut cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    client.batch_execute(PAUSE)?;
    client.run(TABLE)?;
    client.batch_execute("SET test.stop = '0'")?;
    client.batch_execute(CALL)?;
    let expected = state(&mut client)?;
    let steps = client.number("SELECT last_value FROM steps")?;
    ensure!(steps > 20 && expected.len() == 5, "{steps} {expected:?}");
    for how in [
        Interruption::Terminated,
        Interruption::BackendKilled,
        Interruption::ServerKilled,
    ] {
        for step in 1..=steps {
            let mut client = cluster.connect()?;
            client.batch_execute("DROP TABLE events")?;
            client.run(TABLE)?;
            client.batch_execute("SELECT setval('steps', 1, false)")?;
            drop(client);
            interrupt(&mut cluster, step, how)?;
            let client = &mut cluster.connect()?;
            let case = format!("{how:?} in statement {step}");
            let rows = client.number("SELECT count(*) FROM events")?;
            ensure!((ROWS_NOT_DUE..=ROWS).contains(&rows), "{case}: {rows} rows");
            client.batch_execute(CALL)?;
            assert_eq!(state(client)?, expected, "{case}");
            client.answers("SELECT count(*) FROM events", ROWS_NOT_DUE)?;
        }
    }
    println!("partitions: {steps} statements of a call, each interrupted in 3 ways, rows lost: 0");
    Ok(())
}

const TWO_TABLES: [&str; 3] = [
    "CREATE TABLE a (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
     CREATE TABLE b (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
     SELECT snowflake_partitions.configure(t, '1 day', 'UTC', '20 days', '5 days') FROM unnest('{a,b}'::regclass[]) AS t (t)",
    "CALL snowflake_partitions_internal.maintain('a', now() - interval '40 days', 1, 0)",
    "INSERT INTO a SELECT snowflake_compose(now() - n * interval '1 hour', 1, 0, 0) FROM generate_series(600, 900) AS n",
];

/// What is left to do, of both tables: partitions, and errors.
const LEFT: &str =
    "SELECT sum(missing + due + kept) || ' ' || count(error_code) FROM snowflake_partitions.status";

#[test]
fn calls_at_once_leave_nothing_to_do() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let client = &mut cluster.connect()?;
    client.run(TWO_TABLES)?;
    thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|_| {
                scope
                    .spawn(|| -> Result<()> { cluster.run("CALL snowflake_partitions.maintain()") })
            })
            .collect();
        calls
            .into_iter()
            .try_for_each(|call| call.join().expect("the thread of a call"))
    })?;
    client.answers(LEFT, "0 0")?;
    client.answers(
        "SELECT count(*) FROM (SELECT until, lead(since) OVER (PARTITION BY parent ORDER BY since) AS next
                               FROM snowflake_partitions.partitions) AS p WHERE until <> next",
        0,
    )?;
    Ok(())
}

/// The other table is maintained all the same.
#[test]
fn a_lock_that_is_held_fails_a_call_for_its_table() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let client = &mut cluster.connect()?;
    client.run(TWO_TABLES)?;
    let mut holder = cluster.connect()?;
    holder.batch_execute("BEGIN; LOCK TABLE a IN ACCESS SHARE MODE")?;
    let locked = client.refused("CALL snowflake_partitions.maintain(attempts => 1)", "55000")?;
    assert_eq!(locked.detail, "public.a was locked.");
    let codes = "SELECT string_agg(concat(parent, ' ', error_code), ', ' ORDER BY parent::text) FROM snowflake_partitions.status";
    client.answers(codes, "a 55P03, b ")?;
    let b = "SELECT missing FROM snowflake_partitions.status WHERE parent = 'b'::regclass";
    client.answers(b, 0)?;
    holder.batch_execute("ROLLBACK")?;
    // Its settings are being changed.
    holder.batch_execute("BEGIN; UPDATE snowflake_partitions_internal.settings SET ahead = '21 days' WHERE parent = 'a'::regclass")?;
    let locked = client.refused("CALL snowflake_partitions.maintain(attempts => 1)", "55000")?;
    assert_eq!(locked.detail, "public.a was locked.");
    holder.batch_execute("ROLLBACK")?;
    client.batch_execute("CALL snowflake_partitions.maintain()")?;
    client.answers(LEFT, "0 0")?;
    Ok(())
}

/// The result of a statement that waits for what a session has done, and continues once that commits.
fn across_commit(
    cluster: &Cluster,
    client: &mut Client,
    done: &str,
    statement: &str,
) -> Result<Option<String>> {
    let mut holder = cluster.connect()?;
    holder.batch_execute(&format!("BEGIN; {done}"))?;
    let pid = ids::backend_pid(client)?;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.batch_execute(statement));
        let is_blocked = format!("SELECT cardinality(pg_blocking_pids({pid})) = 1");
        cluster.connect()?.wait_until(&is_blocked)?;
        holder.batch_execute("COMMIT")?;
        let result = waiting.join().expect("the thread of the statement");
        Ok(result
            .err()
            .and_then(|error| Some(error.code()?.code().to_owned())))
    })
}

/// The tables of two schemas, one of which has partitions of the other's table.
const TWO_SCHEMAS: [&str; 3] = [
    "CREATE SCHEMA live; CREATE SCHEMA staging;
     CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
     SELECT snowflake_partitions.configure('events', '1 day', 'UTC', '1 day')",
    "CALL snowflake_partitions_internal.maintain('events', '2026-03-01 01:00+00', 1, 0)",
    "ALTER TABLE events_p20260301 SET SCHEMA live;
     CREATE TABLE staging.events_p20260301 AS SELECT generate_series(1, 1000) AS id;
     SELECT snowflake_partitions.configure('events', '1 day', 'UTC', '2 days', '1 day')",
];

/// The partition that is due is dropped, not the table that has its name now.
#[test]
fn schemas_that_are_exchanged_during_a_call_lose_no_other_table() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let client = &mut cluster.connect()?;
    client.run(TWO_SCHEMAS)?;
    client.batch_execute("SET lock_timeout = '1min'")?;
    let exchange = "ALTER SCHEMA live RENAME TO old; ALTER SCHEMA staging RENAME TO live";
    assert_eq!(across_commit(&cluster, client, exchange, CALL)?, None);
    client.answers("SELECT count(*) FROM live.events_p20260301", 1000)?;
    client.answers("SELECT to_regclass('old.events_p20260301') IS NULL", "t")?;
    Ok(())
}

#[test]
fn a_boundary_that_is_set_meanwhile_is_not_lowered() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(
        "CREATE TABLE a (id bigint); SELECT snowflake_set_id_boundary('a', 'id', 100)",
    )?;
    let higher = "SELECT snowflake_set_id_boundary('a', 'id', 1000)";
    let lower = "SELECT snowflake_set_id_boundary('a', 'id', 500)";
    let code = across_commit(&cluster, client, higher, lower)?;
    assert_eq!(code.as_deref(), Some("22023"));
    client.answers("SELECT snowflake_id_boundary('a')", 1000)?;
    Ok(())
}
