//! Online migrations that are interrupted at each of their steps: cancelled,
//! with the server killed, with the connection lost; planned again, finished
//! and compared. Beside writers of every isolation level.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sys::signal::Signal;
use snowflake_tests::migration::{Contents, foreign_keys, widened};
use snowflake_tests::online::Columns;

use super::{LIMIT, interrupted, run_before, signal, sqlstate, waits};
use crate::support::*;

/// A table that references itself, one that references it with an index and
/// one that does so without.
const TABLES: &str =
    "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY (START 10 INCREMENT 5) PRIMARY KEY, parent int REFERENCES t, note text);
     CREATE TABLE child (t_id int PRIMARY KEY REFERENCES t ON DELETE CASCADE, note text);
     CREATE TABLE bare (n int, t_id int REFERENCES t ON DELETE CASCADE);
     INSERT INTO t (parent) SELECT CASE WHEN n > 1 THEN 10 END FROM generate_series(1, 400) AS n;
     INSERT INTO child SELECT id, 'n' FROM t; INSERT INTO bare SELECT id, id FROM t";

const WIDENED: &[(&str, &str)] = &[
    ("public.t", "id"),
    ("public.t", "parent"),
    ("public.child", "t_id"),
    ("public.bare", "t_id"),
];

/// No other session may do anything with the tables: a statement waits at its
/// beginning.
const LOCKED: &str = "LOCK TABLE t, child, bare IN ACCESS EXCLUSIVE MODE";

/// A row of each table was written and not committed: a statement waits where
/// it has to know the outcome. Some statements don't.
const WRITTEN: &str = "UPDATE t SET note = 'written' WHERE id = 500; UPDATE child SET note = 'written' WHERE t_id = 500;
     UPDATE bare SET n = -n WHERE n = 500";

/// The state before a migration.
struct Before {
    schema: String,
    columns: Columns,
    rows: Contents,
    keys: (i64, i64),
}

fn prepare(client: &mut Client, cluster: &Cluster) -> Result<Before> {
    client.batch_execute(TABLES)?;
    let columns = online::columns(client)?;
    Ok(Before {
        schema: schema(cluster, "postgres")?,
        rows: online::contents(client, &columns)?,
        columns,
        keys: foreign_keys(client)?,
    })
}

impl Before {
    fn assert_same_rows(&self, client: &mut Client, when: &str) -> Result<()> {
        assert_eq!(
            online::contents(client, &self.columns)?,
            self.rows,
            "{when}"
        );
        Ok(())
    }
}

/// The state in the end, migrated and reverted.
fn finish(cluster: &Cluster, before: &Before) -> Result<()> {
    let mut client = cluster.connect()?;
    let client = &mut client;
    assert!(online::plan(client, "'t'")?.is_empty());
    assert_eq!(foreign_keys(client)?, before.keys);
    client.answers("SELECT count(*) FROM snowflake_migrate.progress", 0)?;
    client.answers("SELECT count(*) FROM pg_index WHERE NOT indisvalid", 0)?;
    let insert = "INSERT INTO t (parent) VALUES (10) RETURNING id";
    let id = client.number(insert)?;
    assert!(id > 1 << 40, "{id} is no snowflake ID");
    client.batch_execute(&format!(
        "INSERT INTO child (t_id) VALUES ({id}); INSERT INTO bare (t_id) VALUES ({id}); DELETE FROM t WHERE id = {id}"
    ))?;
    for violation in [
        "INSERT INTO child (t_id) VALUES (11)",
        "INSERT INTO bare (t_id) VALUES (11)",
        "INSERT INTO t (parent) VALUES (11)",
        "DELETE FROM t WHERE id = 10",
    ] {
        client.refused(violation, "23503")?;
    }
    let last =
        client.number("SELECT sequence_last_value FROM snowflake_migrate_internal.origins")?;
    client.batch_execute("CALL snowflake_migrate.revert('t')")?;
    let next = client.number(insert)?;
    // Recovery leaves up to 32 numbers out.
    assert!(
        (last + 5..=last + 5 * 33).contains(&next) && next % 5 == 0,
        "{next} does not follow {last}"
    );
    assert_same_schema(
        &online::unordered(&widened(&before.schema, WIDENED)?),
        &online::unordered(&schema(cluster, "postgres")?),
        "reverted",
    );
    Ok(())
}

/// A step that is being interrupted.
struct Interrupted<'a> {
    before: &'a Before,
    step: &'a Step,
    /// The schema at its beginning.
    schema: String,
    /// How often it was interrupted by what.
    times: BTreeMap<&'static str, usize>,
}

impl Interrupted<'_> {
    /// The rows are the same, and the step is still the next one.
    fn check(&mut self, cluster: &Cluster, client: &mut Client, how: &'static str) -> Result<()> {
        *self.times.entry(how).or_default() += 1;
        let statement = &self.step.statement;
        self.before
            .assert_same_rows(client, &format!("{how}: {statement}"))?;
        let left = online::plan(client, "'t'")?;
        if self.step.in_transaction {
            // The catalog as a whole, where it is most in doubt.
            if how.starts_with("kill") {
                assert_same_schema(&self.schema, &schema(cluster, "postgres")?, statement);
            }
            assert_eq!(
                left.first().map(|it| &it.statement),
                Some(statement),
                "{how}"
            );
        }
        Ok(())
    }

    /// By a cancel, a lost connection and the server's end.
    fn interrupt(&mut self, cluster: &mut Cluster, client: &mut Client) -> Result<()> {
        let statement = &self.step.statement;
        for (how, function, expected) in [
            ("a cancel", "pg_cancel_backend", "57014"),
            ("a closed connection", "pg_terminate_backend", "57P01"),
        ] {
            let (has_waited, answer) = interrupted(cluster, statement, LOCKED, signal(function))?;
            ensure!(has_waited, "it did not wait: {statement}");
            assert_eq!(sqlstate(answer)?, expected, "{statement}");
            self.check(cluster, client, how)?;
        }
        // A step that commits on its way is killed in the middle.
        let obstacle = if self.step.in_transaction {
            LOCKED
        } else {
            WRITTEN
        };
        let pid = cluster.pid()?;
        let (has_waited, _) = interrupted(cluster, statement, obstacle, |_, _| {
            processes::kill9_tree(pid).map(|_| ())
        })?;
        ensure!(has_waited, "it did not wait: {statement}");
        cluster.wait_for_end()?;
        cluster.start()?;
        *client = cluster.connect()?;
        self.check(cluster, client, "kill -9 of the server")
    }
}

#[test]
fn an_online_migration_interrupted_at_any_step_is_finished() -> Result<()> {
    let mut cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let before = prepare(&mut client, &cluster)?;
    let whole = online::plan(&mut client, "'t'")?;
    let mut times = BTreeMap::new();
    let mut steps = 0;
    let mut seen = BTreeSet::new();
    // Interrupted, a plan may have steps that clear up, so it is requested each time.
    while let Some(step) = online::plan(&mut client, "'t'")?.into_iter().next() {
        let statement = &step.statement;
        ensure!(
            steps < 3 * whole.len(),
            "the plan has no end, at: {step:#?}"
        );
        // A step that had to be begun anew has been interrupted enough.
        if !seen.insert(statement.clone()) {
            client.run([statement])?;
            steps += 1;
            continue;
        }
        let schema = schema(&cluster, "postgres")?;
        let mut at = Interrupted {
            before: &before,
            step: &step,
            schema,
            times,
        };
        at.interrupt(&mut cluster, &mut client)?;
        if step.in_transaction {
            // Some steps wait for writers, and some don't.
            let cancel = signal("pg_cancel_backend");
            let (has_waited, answer) = interrupted(&cluster, statement, WRITTEN, cancel)?;
            if has_waited {
                assert_eq!(sqlstate(answer)?, "57014", "{statement}");
                at.check(&cluster, &mut client, "a cancel")?;
            } else {
                answer.with_context(|| format!("running: {statement}"))?;
                steps += 1;
            }
        }
        times = at.times;
    }
    before.assert_same_rows(&mut client, "migrated")?;
    finish(&cluster, &before)?;
    assert!(
        times.values().all(|&times| times >= whole.len()),
        "{times:?}"
    );
    Ok(())
}

/// Runs a statement by psql until it waits, and kills psql. Returns the backend
/// that still runs the statement; none where it did not wait.
fn orphan(cluster: &Cluster, client: &mut Client, statement: &str) -> Result<Option<i64>> {
    let mut psql = cluster
        .client_command("psql", "postgres")
        .args(["-X", "-q", "-c", statement])
        .env("PGAPPNAME", "gone")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    while psql.try_wait()?.is_none() {
        let orphan = client.number(
            "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE application_name = 'gone' AND state = 'active'
               AND wait_event_type IN ('Lock', 'Timeout', 'Extension')",
        )?;
        if orphan != 0 {
            processes::send(i32::try_from(psql.id())?, Signal::SIGKILL)?;
            psql.wait()?;
            return Ok(Some(orphan));
        }
        ensure!(begun.elapsed() < LIMIT, "it neither ends nor waits");
    }
    Ok(None)
}

/// Answers of a statement beside the same one: done, or what the first one has
/// created, or is about to, prevents it.
const BESIDE: [&str; 9] = [
    "done", "55000", "42P07", "42701", "42710", "42704", "40P01", "55P03", "57014",
];

/// A lost client's statement is still running when the migration is planned again.
#[test]
fn a_migration_is_finished_beside_statements_of_lost_clients() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let before = prepare(client, &cluster)?;
    let (mut gone, mut both, mut steps) = (0, BTreeMap::<String, usize>::new(), 0);
    while let Some(Step { statement, .. }) = online::plan(client, "'t'")?.into_iter().next() {
        steps += 1;
        ensure!(steps < 100, "the plan has no end, at: {statement}");
        let mut holder = cluster.connect()?;
        let mut holding = holder.transaction()?;
        holding.batch_execute(WRITTEN)?;
        let Some(orphan) = orphan(&cluster, client, &statement)? else {
            holding.rollback()?;
            continue;
        };
        gone += 1;
        // Planned again at once, and run a second time beside it.
        let mut second = cluster.connect()?;
        let pid = ids::backend_pid(&mut second)?;
        let mut observer = cluster.connect()?;
        let answer = thread::scope(|scope| -> Result<_> {
            let running = scope.spawn(|| second.batch_execute(&statement));
            waits(&mut observer, pid, || running.is_finished())?;
            holding.rollback()?;
            Ok(running.join().expect("the session's thread"))
        })?;
        let answer = match answer {
            Ok(()) => "done".to_owned(),
            Err(error) => ServerError::from_error(error)?.sqlstate,
        };
        assert!(BESIDE.contains(&answer.as_str()), "{answer}: {statement}");
        *both.entry(answer).or_default() += 1;
        client.wait_until(&format!(
            "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = {orphan} AND state = 'active'"
        ))?;
        before.assert_same_rows(client, &statement)?;
    }
    finish(&cluster, &before)?;
    // The first step, the backfill and the swap need what the transaction holds.
    assert!(gone >= 3, "{gone}");
    println!(
        "online interrupted: {gone} clients lost at {steps} steps; the same statement beside theirs: {both:?}"
    );
    Ok(())
}

/// What a writer did, and the answers it received.
#[derive(Debug, Default)]
struct Written {
    /// Rows that it committed and that have to exist, with their notes.
    rows: BTreeMap<i64, String>,
    deleted: Vec<i64>,
}

/// Writes until it is stopped, and counts its transactions in `committed`.
fn write(
    cluster: &Cluster,
    number: usize,
    isolation: &str,
    committed: &AtomicUsize,
    stop: &AtomicBool,
) -> Result<Written> {
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "SET default_transaction_isolation = '{isolation}'"
    ))?;
    let mut written = Written::default();
    let mut turn = 0;
    while !stop.load(Ordering::SeqCst) {
        turn += 1;
        let note = format!("{number}/{turn}");
        let oldest = written
            .rows
            .keys()
            .next()
            .copied()
            .filter(|_| turn % 3 == 0);
        let newest = written.rows.keys().next_back().copied();
        let outcome = (|| -> Result<i64, postgres::Error> {
            let mut transaction = client.transaction()?;
            let query = format!(
                "INSERT INTO t (parent, note) VALUES ({}, '{note}') RETURNING id",
                newest.unwrap_or(10)
            );
            let mut id = 0;
            for message in transaction.simple_query(&query)? {
                if let postgres::SimpleQueryMessage::Row(row) = message {
                    id = row.get(0).and_then(|it| it.parse().ok()).unwrap_or(0);
                }
            }
            transaction.batch_execute(&format!(
                "INSERT INTO child (t_id, note) VALUES ({id}, '{note}'); INSERT INTO bare (n, t_id) VALUES ({turn}, {id})"
            ))?;
            if let Some(newest) = newest {
                transaction.batch_execute(&format!(
                    "UPDATE t SET note = note || '+' WHERE id = {newest}; UPDATE bare SET n = n + 1 WHERE t_id = {newest}"
                ))?;
            }
            if let Some(oldest) = oldest {
                transaction.batch_execute(&format!(
                    "UPDATE t SET parent = NULL WHERE parent = {oldest}; DELETE FROM t WHERE id = {oldest}"
                ))?;
            }
            // Every writer meets the others, and the rows that are copied.
            transaction.batch_execute(&format!(
                "UPDATE child SET note = '{note}' WHERE t_id = {}",
                10 + 5 * (turn % 400)
            ))?;
            transaction.commit()?;
            Ok(id)
        })();
        match outcome {
            Ok(id) => {
                committed.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(4));
                if let Some(oldest) = oldest {
                    written.rows.remove(&oldest);
                    written.deleted.push(oldest);
                }
                if let Some(note) = newest.and_then(|id| written.rows.get_mut(&id)) {
                    note.push('+');
                }
                written.rows.insert(id, note);
            }
            Err(error) => {
                let refused = ServerError::from_error(error)?;
                ensure!(
                    refused.sqlstate == "40001" && isolation != "read committed",
                    "a writer at {isolation}: {refused}"
                );
            }
        }
    }
    Ok(written)
}

/// Runs the steps of a plan, each cut short until there is time enough for it.
fn migrate_cut_short(client: &mut Client, is_disturbed: impl Fn() -> bool) -> Result<()> {
    let mut limits: BTreeMap<String, u32> = BTreeMap::new();
    while let Some(step) = online::plan(client, "'t'")?.into_iter().next() {
        ensure!(!is_disturbed(), "a writer has given up");
        let limit = limits.entry(step.statement.clone()).or_insert(2);
        client.batch_execute(&format!("SET statement_timeout = {limit}"))?;
        let outcome = client.batch_execute(&step.statement);
        // This is a statement too, and may take as long.
        while let Err(error) = client.batch_execute("SET statement_timeout = '60s'") {
            let refused = ServerError::from_error(error)?;
            ensure!(refused.sqlstate == "57014", "{refused}");
        }
        if let Err(error) = outcome {
            let refused = ServerError::from_error(error)?;
            ensure!(refused.sqlstate == "57014", "{}: {refused}", step.statement);
            *limit = (*limit * 3).min(60_000);
        }
    }
    Ok(())
}

/// Exactly the rows that the writers have committed exist. Returns how many.
fn assert_all_rows_exist(client: &mut Client, written: &[Written]) -> Result<i64> {
    let expected: BTreeMap<i64, String> = written
        .iter()
        .flat_map(|one| &one.rows)
        .map(|(id, note)| (*id, format!("{note}|1|1")))
        .collect();
    let found: BTreeMap<i64, String> = client
        .query(
            "SELECT t.id, concat_ws('|', t.note, count(DISTINCT c.ctid), count(DISTINCT b.ctid))
             FROM t LEFT JOIN child AS c ON c.t_id = t.id LEFT JOIN bare AS b ON b.t_id = t.id
             WHERE t.id > 2005 GROUP BY t.id, t.note",
            &[],
        )?
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let lost = expected.keys().filter(|id| !found.contains_key(id));
    let lost: Vec<_> = lost.take(5).collect();
    assert!(lost.is_empty(), "rows are lost: {lost:?}");
    assert!(expected == found, "other rows than were written");
    let rows = i64::try_from(expected.len())?;
    for table in ["t", "child", "bare"] {
        client.answers(&format!("SELECT count(*) FROM {table}"), 400 + rows)?;
    }
    Ok(rows)
}

#[test]
fn a_migration_loses_no_row_of_writers_at_any_isolation_level() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let before = prepare(&mut client, &cluster)?;
    let levels = ["read committed", "repeatable read", "serializable"];
    let stop = AtomicBool::new(false);
    let committed = [const { AtomicUsize::new(0) }; 3];
    let written = thread::scope(|scope| -> Result<_> {
        let (cluster, stop, committed) = (&cluster, &stop, &committed);
        let writers: Vec<_> = (0..levels.len())
            .map(|number| {
                scope
                    .spawn(move || write(cluster, number, levels[number], &committed[number], stop))
            })
            .collect();
        let is_disturbed = || writers.iter().any(thread::ScopedJoinHandle::is_finished);
        // Each writer has rows from before the migration, and from after it.
        let work = || {
            let wanted = committed
                .each_ref()
                .map(|it| it.load(Ordering::SeqCst) + 30);
            wait::until("the writers", LIMIT, || {
                Ok(is_disturbed()
                    || committed
                        .iter()
                        .zip(wanted)
                        .all(|(it, wanted)| it.load(Ordering::SeqCst) >= wanted))
            })
        };
        let migrated = work().and_then(|()| {
            migrate_cut_short(&mut client, is_disturbed)?;
            work()
        });
        stop.store(true, Ordering::SeqCst);
        let written = writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer's thread"))
            .collect::<Result<Vec<_>>>()?;
        migrated?;
        Ok(written)
    })?;
    let rows = assert_all_rows_exist(&mut client, &written)?;
    let new = client.number("SELECT count(*) FROM t WHERE id > 2147483647")?;
    assert!(new > 0 && new < rows, "{new} of {rows} rows are new");
    client.batch_execute("DELETE FROM bare WHERE t_id > 2005; UPDATE t SET parent = NULL WHERE id > 2005; DELETE FROM t WHERE id > 2005")?;
    finish(&cluster, &before)?;
    Ok(())
}

/// Migrates a key while a transaction is open whose snapshot is older, and
/// which then reads `column` of `table`.
fn with_an_old_snapshot(
    cluster: &Cluster,
    arguments: &str,
    table: &str,
    column: &str,
) -> Result<()> {
    let query = format!("SELECT count(*), count({column}), sum({column})::bigint FROM {table}");
    let mut observer = cluster.connect()?;
    let counted =
        |row: &postgres::Row| -> (i64, i64, Option<i64>) { (row.get(0), row.get(1), row.get(2)) };
    let before = counted(&observer.query_one(&query, &[])?);
    ensure!(before.1 > 100, "{table} has no rows");
    let mut old = cluster.connect()?;
    let mut old = old
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()?;
    old.batch_execute("SELECT 1 FROM pg_class LIMIT 1")?;
    let mut migrating = cluster.connect_as("keeper", "postgres")?;
    let pid = ids::backend_pid(&mut migrating)?;
    let waiting_now = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type IN ('Lock', 'Timeout', 'Extension')"
    );
    thread::scope(|scope| -> Result<()> {
        let running = scope.spawn(move || online::migrate(&mut migrating, arguments));
        // Until it has ended, or waits for this transaction.
        let begun = Instant::now();
        let mut waiting = 0;
        while !running.is_finished() && waiting < 20 {
            waiting += observer.number(&waiting_now)?;
            ensure!(begun.elapsed() < LIMIT, "it does not end");
            thread::sleep(Duration::from_millis(25));
        }
        match old.query_one(&query, &[]) {
            Ok(row) => assert_eq!(counted(&row), before, "{table} in an old snapshot"),
            // An error is right; wrong rows are not.
            Err(error) => {
                let refused = ServerError::from_error(error)?;
                assert!(
                    ["40001", "55000", "72000"].contains(&refused.sqlstate.as_str()),
                    "{refused}"
                );
            }
        }
        old.rollback()?;
        if let Err(error) = running.join().expect("the session's thread") {
            // Or a statement refuses as long as there is such a transaction.
            let refused = error
                .downcast::<postgres::Error>()
                .map(ServerError::from_error)??;
            assert_eq!(refused.sqlstate, "55000", "{refused}");
            online::migrate(&mut observer, arguments)?;
        }
        Ok(())
    })
}

/// A transaction whose snapshot is older than the copied rows holds no lock on
/// tables that it has not read yet. Whenever it reads them, it has to see them
/// as they were, with their IDs.
#[test]
fn a_transaction_with_an_older_snapshot_sees_the_rows_as_they_were() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN; GRANT CREATE ON SCHEMA public TO keeper")?;
    let mut client = cluster.connect_as("keeper", "postgres")?;
    for (table, column) in [("t", "id"), ("child", "t_id"), ("bare", "t_id")] {
        client.run(["DROP TABLE IF EXISTS t, child, bare", TABLES])?;
        with_an_old_snapshot(&cluster, "'t'", table, column).context(table)?;
    }
    // Building an index waits for old snapshots; this table has none.
    client.batch_execute("CREATE TABLE plain (id serial, n int); INSERT INTO plain (n) SELECT n FROM generate_series(1, 400) AS n")?;
    with_an_old_snapshot(&cluster, "'plain'", "plain", "id").context("plain")?;
    // A table without an index is created after the preparation.
    client.run(["DROP TABLE t, child, bare", TABLES])?;
    run_before(&mut client, "'t'", Step::is_swap)?;
    client.batch_execute(
        "CREATE TABLE late (n int, t_id int REFERENCES t); INSERT INTO late SELECT id, id FROM t",
    )?;
    with_an_old_snapshot(&cluster, "'t'", "late", "t_id").context("late")
}
