//! The pace of a backfill, which other sessions change while it runs: batch size,
//! pause, limits, paused and resumed.

use super::{LIMIT, kill_and_start, run_before};
use crate::support::*;

const ROWS: i64 = 30_000;

/// A server with a table whose online migration has come to the backfill. Its
/// owner is no superuser.
fn prepared() -> Result<(Cluster, Client)> {
    let cluster = Cluster::with_migrate()?;
    cluster.run(&format!(
        "CREATE ROLE keeper LOGIN; CREATE ROLE stranger LOGIN; GRANT CREATE ON SCHEMA public TO keeper, stranger; SET ROLE keeper;
         CREATE TABLE t (id serial PRIMARY KEY, note text); INSERT INTO t (note) SELECT repeat('n', 400) FROM generate_series(1, {ROWS}); ANALYZE t"
    ))?;
    let mut client = cluster.connect_as("keeper", "postgres")?;
    run_before(&mut client, "'t'", Step::is_backfill)?;
    Ok((cluster, client))
}

/// Whether it has copied rows, and whether it waits.
const COPIES: &str = "SELECT sum(rows_done) > 0 FROM snowflake_migrate.progress";
const STANDS: &str = "SELECT waiting_for IS NOT NULL FROM snowflake_migrate.progress";
const RECORDED: &str = "SELECT count(*) FROM snowflake_migrate_internal.pace";
const DONE: &str = "SELECT coalesce(sum(rows_done), 0)::bigint FROM snowflake_migrate.progress";

/// Rows copied within a time, and per second. A busy machine copies fewer.
fn copied(client: &mut Client, time: Duration) -> Result<(i64, f64)> {
    let (begun, before) = (Instant::now(), client.number(DONE)?);
    thread::sleep(time);
    let rows = client.number(DONE)? - before;
    Ok((rows, rows as f64 / begun.elapsed().as_secs_f64()))
}

/// The most rows that one transaction has copied, as the rows tell. `initial` is the
/// transaction that inserted them all.
fn largest_batch(client: &mut Client, initial: &str) -> Result<i64> {
    client.number(&format!(
        "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM t WHERE xmin::text <> '{initial}' GROUP BY xmin::text) AS b"
    ))
}

/// Waits until more rows are copied. Returns how long that took.
fn until_more(client: &mut Client) -> Result<Duration> {
    let (begun, before) = (Instant::now(), client.number(DONE)?);
    wait::until(format!("more rows than {before}"), LIMIT, || {
        Ok(client.number(DONE)? != before)
    })?;
    Ok(begun.elapsed())
}

/// A backfill in a session of its own.
struct Backfill {
    pid: i32,
    notices: Box<dyn Fn() -> Vec<String>>,
    running: thread::JoinHandle<Result<(), postgres::Error>>,
}

impl Backfill {
    fn start(cluster: &Cluster, role: &str, arguments: &str) -> Result<Self> {
        let (mut client, notices) = listening(cluster, role)?;
        let pid = ids::backend_pid(&mut client)?;
        let call = format!("CALL snowflake_migrate.backfill({arguments})");
        let running = thread::spawn(move || client.batch_execute(&call));
        Ok(Self {
            pid,
            notices: Box::new(notices),
            running,
        })
    }

    fn end(self) -> Result<()> {
        wait::until("its end", LIMIT, || Ok(self.running.is_finished()))?;
        Ok(self.running.join().expect("the session's thread")?)
    }
}

const FULL_SPEED: &str = "CALL snowflake_migrate.pace('t', batch_size => 10000, pause => '0')";

#[test]
fn another_session_changes_the_pace() -> Result<()> {
    let (cluster, mut client) = prepared()?;
    let client = &mut client;
    let initial = client.value("SELECT DISTINCT xmin::text FROM t")?;
    let backfill = Backfill::start(
        &cluster,
        "keeper",
        "'t', batch_size => 50, pause => '1 hour'",
    )?;
    client.wait_until(COPIES)?;
    let (rows, _) = copied(client, Duration::from_millis(500))?;
    assert_eq!(rows, 0, "it did not pause");
    client.answers(
        "SELECT (batch_size, pause, is_paused, waiting_for IS NULL) FROM snowflake_migrate.progress",
        "(50,01:00:00,f,t)",
    )?;

    // While it sleeps for an hour.
    // The rows suffice for 60 batches of 500, which is half a minute.
    client.batch_execute("CALL snowflake_migrate.pace('t', pause => '400 ms')")?;
    until_more(client)?;
    until_more(client)?;
    let slow = largest_batch(client, &initial)?;
    assert!((1..=50).contains(&slow), "batches of {slow}");
    // While it copies.
    client.batch_execute("CALL snowflake_migrate.pace('t', 'id', 500)")?;
    // A batch ends with a page, and is at most twice as large as the one before.
    let mut fast = 0;
    wait::until("a batch of more than 250", LIMIT, || {
        fast = largest_batch(client, &initial)?;
        Ok(fast > 250)
    })?;
    client.answers(
        "SELECT (batch_size, pause) FROM snowflake_migrate.progress",
        "(500,00:00:00.4)",
    )?;

    // A transaction that is open has changed nothing yet, and holds nothing up.
    client.batch_execute(
        "BEGIN; CALL snowflake_migrate.pace('t', pause => '1 hour', is_paused => true)",
    )?;
    let mut observer = cluster.connect()?;
    until_more(&mut observer)?;
    until_more(&mut observer)?;
    client.batch_execute("ROLLBACK")?;

    client.batch_execute(FULL_SPEED)?;
    backfill.end()?;
    online::migrate(client, "'t'")?;
    client.answers(RECORDED, 0)?;
    Ok(())
}

#[test]
fn a_paused_backfill_holds_nothing_and_resumes() -> Result<()> {
    let begun = Instant::now();
    let (cluster, mut client) = prepared()?;
    let client = &mut client;
    let backfill = Backfill::start(
        &cluster,
        "keeper",
        "'t', batch_size => 100, pause => '100 ms'",
    )?;
    client.wait_until(COPIES)?;
    client.batch_execute("CALL snowflake_migrate.pace('t', is_paused => true)")?;
    client.wait_until(
        "SELECT is_paused AND waiting_for IS NOT DISTINCT FROM 'snowflake_migrate.pace(is_paused => false)' FROM snowflake_migrate.progress",
    )?;
    let stands = Instant::now();
    let stood_at = client.number(DONE)?;

    // It looks at its pace five times a second, and holds nothing in between.
    let mut observer = cluster.connect()?;
    let held = format!(
        "SELECT ((a.backend_xmin IS NOT NULL)::int + (a.backend_xid IS NOT NULL)::int
               + (SELECT count(*) FROM pg_locks AS l WHERE l.pid = a.pid AND l.locktype <> 'virtualxid'))::bigint
         FROM pg_stat_activity AS a WHERE a.pid = {}",
        backfill.pid
    );
    let mut free = 0;
    wait::until("twenty looks at which it holds nothing", LIMIT, || {
        free += i64::from(observer.number(&held)? == 0);
        Ok(free >= 20 && stands.elapsed() > Duration::from_secs(1))
    })?;
    observer.batch_execute(
        "SET lock_timeout = '60 s'; BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE; ROLLBACK",
    )?;
    client.answers(DONE, stood_at)?;
    let notices = (backfill.notices)();
    assert!(
        notices
            .iter()
            .any(|it| it.starts_with("paused: CALL snowflake_migrate.pace(")),
        "{notices:?}"
    );

    let stood = stands.elapsed();
    client.batch_execute("CALL snowflake_migrate.pace('t', is_paused => false)")?;
    until_more(client)?;
    client.batch_execute(FULL_SPEED)?;
    backfill.end()?;
    // Paused time is no time of copying.
    let copying: f64 = client
        .value("SELECT sum(run_seconds) FROM snowflake_migrate_internal.progress")?
        .parse()?;
    let all = begun.elapsed();
    assert!(
        copying <= (all - stood).as_secs_f64(),
        "{copying} s of {all:?}, of which it was paused for {stood:?}"
    );
    online::migrate(client, "'t'")?;
    Ok(())
}

#[test]
fn the_backfill_slows_down_beside_active_sessions() -> Result<()> {
    let (cluster, mut client) = prepared()?;
    let client = &mut client;
    cluster.run("GRANT pg_monitor TO keeper")?;
    let backfill = Backfill::start(
        &cluster,
        "keeper",
        "'t', batch_size => 30, pause => '10 ms', max_active_sessions => 2",
    )?;
    client.wait_until(COPIES)?;
    let mut busy = Vec::new();
    for _ in 0..4 {
        let mut session = cluster.connect()?;
        let cancel = session.cancel_token();
        let running = thread::spawn(move || session.batch_execute("SELECT pg_sleep(110)"));
        busy.push((cancel, running));
    }
    client.wait_until(
        "SELECT waiting_for IS NOT DISTINCT FROM 'other sessions: more than 2 are active' FROM snowflake_migrate.progress",
    )?;
    // The pause doubles from batch to batch, from 0.1 s on.
    thread::sleep(Duration::from_secs(1));
    let (_, beside) = copied(client, Duration::from_secs(2))?;
    for (cancel, running) in busy {
        cancel.cancel_query(NoTls)?;
        assert!(running.join().expect("the session's thread").is_err());
    }
    until_more(client)?;
    client.wait_until("SELECT waiting_for IS NULL FROM snowflake_migrate.progress")?;
    let notices = (backfill.notices)();
    ensure!(
        notices
            .iter()
            .any(|it| it.starts_with("slowing down to a pause of")),
        "no NOTICE in {notices:?}"
    );
    // 30 rows each 10 ms would be 3,000; no machine is too slow for a tenth of that.
    assert!(beside < 300.0, "{beside} rows/s");

    // Without the limit, sessions do not matter.
    client.batch_execute("CALL snowflake_migrate.pace('t', max_active_sessions => -1)")?;
    client.answers(
        "SELECT max_active_sessions IS NULL FROM snowflake_migrate.progress",
        "t",
    )?;
    client.batch_execute(FULL_SPEED)?;
    backfill.end()?;
    online::migrate(client, "'t'")?;
    Ok(())
}

#[test]
fn the_pace_survives_a_crash() -> Result<()> {
    let (mut cluster, mut client) = prepared()?;
    // Set before, it holds from the first batch on.
    client.batch_execute("CALL snowflake_migrate.pace('t', pause => '1 hour')")?;
    let backfill = Backfill::start(&cluster, "keeper", "'t', batch_size => 70")?;
    client.wait_until(COPIES)?;
    client.batch_execute("CALL snowflake_migrate.pace('t', is_paused => true)")?;
    client.wait_until(STANDS)?;
    kill_and_start(&mut cluster)?;
    assert!(backfill.end().is_err());
    let mut client = cluster.connect_as("keeper", "postgres")?;
    let client = &mut client;
    let pace = "SELECT (batch_size, pause, is_paused, waiting_for) FROM snowflake_migrate.progress";
    client.answers(pace, "(70,01:00:00,t,)")?;

    // The same call again is still paused, and then pauses for an hour.
    let backfill = Backfill::start(&cluster, "keeper", "'t'")?;
    client.wait_until(STANDS)?;
    assert_eq!(copied(client, Duration::from_millis(400))?.0, 0);
    client.batch_execute("CALL snowflake_migrate.pace('t', is_paused => false)")?;
    until_more(client)?;
    assert_eq!(copied(client, Duration::from_millis(400))?.0, 0);
    client.answers(pace, "(70,01:00:00,f,)")?;

    // Cancelled where it waits: the migration ends, and its pace is forgotten.
    client.batch_execute("CALL snowflake_migrate.pace('t', is_paused => true)")?;
    client.wait_until(STANDS)?;
    client.batch_execute("CALL snowflake_migrate.revert('t')")?;
    let error = backfill.end().expect_err("it was ended");
    let error = ServerError::in_chain(&error).context("no error of the server")?;
    assert_eq!(error.sqlstate, "55000", "{error}");
    client.answers(RECORDED, 0)?;
    online::migrate(client, "'t'")?;
    Ok(())
}

#[test]
fn only_owners_change_the_pace_of_a_running_migration() -> Result<()> {
    let (cluster, mut client) = prepared()?;
    let client = &mut client;
    let mut stranger = cluster.connect_as("stranger", "postgres")?;
    let mut superuser = cluster.connect()?;
    superuser.batch_execute("CREATE TABLE two (id serial PRIMARY KEY); CREATE TABLE other (id serial PRIMARY KEY, two_id int REFERENCES two); ALTER TABLE two OWNER TO keeper; ALTER TABLE other OWNER TO keeper")?;
    for (arguments, sqlstate) in [
        ("'t', batch_size => 0", "22023"),
        ("'t', batch_size => -1", "22023"),
        ("'t', pause => '-1 s'", "22023"),
        ("'t', max_replay_lag => '-1 s'", "22023"),
        ("'t', max_active_sessions => -2", "22023"),
        ("'t', max_slot_wal => '-1 MB'", "22023"),
        ("'t', max_growth => '-1 MB'", "22023"),
        ("'t', max_growth => 'much'", "22023"),
        ("'t', max_active_sessions => 3", "42501"),
        ("'t', max_replay_lag => '1 s'", "42501"),
        ("'two', is_paused => true", "55000"),
        ("'nowhere', is_paused => true", "42P01"),
        ("'t', 'nothing', is_paused => true", "42703"),
        ("'pg_class', is_paused => true", "42501"),
        ("NULL, is_paused => true", "42P01"),
    ] {
        let call = format!("CALL snowflake_migrate.pace({arguments})");
        let refused = client.refused(&call, sqlstate)?;
        if sqlstate == "42501" && arguments.starts_with("'t'") {
            assert!(refused.hint.contains("pg_monitor"), "{refused}");
        }
    }
    client.answers(RECORDED, 0)?;

    // Another role: by the procedure, the functions below it, and the table.
    superuser.batch_execute("GRANT ALL ON ALL TABLES IN SCHEMA snowflake_internal TO stranger; GRANT SELECT ON t TO stranger; CREATE TABLE lure (id int)")?;
    let row = "ROW('t'::regclass, 'id', 1, '1 day', NULL, NULL, NULL, NULL, true)::snowflake_migrate_internal.pace";
    for statement in [
        "CALL snowflake_migrate.pace('t', is_paused => true)".to_owned(),
        format!("SELECT snowflake_migrate_internal.keep_pace({row})"),
        "SELECT snowflake_migrate_internal.pace('t', 'id')".to_owned(),
        "SELECT snowflake_migrate_internal.set_pace('{\"(t,id)\"}', 1, NULL, NULL, NULL, NULL, NULL, true)"
            .to_owned(),
        format!("INSERT INTO snowflake_migrate_internal.pace SELECT ({row}).*"),
        "DELETE FROM snowflake_migrate_internal.pace".to_owned(),
        "TRUNCATE snowflake_migrate_internal.pace".to_owned(),
    ] {
        stranger.refused(&statement, "42501")?;
    }
    // What the owner writes past the procedure is read with care.
    client.batch_execute("SELECT snowflake_migrate_internal.keep_pace(ROW('t'::regclass, 'id', -5, '-1 day', NULL, NULL, NULL, NULL, false)::snowflake_migrate_internal.pace)")?;
    client.answers(
        "SELECT (batch_size, pause) FROM snowflake_migrate.progress",
        "(1,00:00:00)",
    )?;
    client.refused(
        "SELECT snowflake_migrate_internal.keep_pace(ROW('t'::regclass, 'id', 1, NULL, NULL, NULL, NULL, NULL, NULL)::snowflake_migrate_internal.pace)",
        "23502",
    )?;

    // A limit that the backfill's role cannot observe is waited for, not ignored.
    superuser
        .batch_execute("CALL snowflake_migrate.pace('t', batch_size => 100, pause => '100 ms')")?;
    let backfill = Backfill::start(&cluster, "keeper", "'t'")?;
    client.wait_until(COPIES)?;
    superuser.batch_execute("CALL snowflake_migrate.pace('t', max_active_sessions => 50)")?;
    client.wait_until(
        "SELECT waiting_for IS NOT DISTINCT FROM 'GRANT pg_monitor TO keeper' FROM snowflake_migrate.progress",
    )?;
    superuser.batch_execute("GRANT pg_monitor TO keeper")?;
    until_more(client)?;
    client.batch_execute(FULL_SPEED)?;
    backfill.end()?;
    online::migrate(client, "'t'")?;
    client.refused(
        "CALL snowflake_migrate.pace('t', is_paused => true)",
        "55000",
    )?;

    // Several keys have one pace, by the name of any of them.
    run_before(client, "'two', also => '{other}'", Step::is_backfill)?;
    client.batch_execute("CALL snowflake_migrate.pace('other', 'id', batch_size => 7)")?;
    client.answers(
        "SELECT string_agg(format('%s %s', table_name, batch_size), ', ' ORDER BY table_name::text) FROM snowflake_migrate.progress",
        "other 7, two 7",
    )?;
    client.answers(RECORDED, 1)?;
    Ok(())
}
