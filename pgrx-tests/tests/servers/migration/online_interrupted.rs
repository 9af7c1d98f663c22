//! Online migrations that are interrupted at each of their steps: cancelled,
//! with the server killed, with the connection lost; planned again, finished
//! and compared. Beside writers of every isolation level.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use postgres::Client;
use snowflake_tests::migration::{assert_same_schema, foreign_keys, number, schema, widened};
use snowflake_tests::online::{self, Step};
use snowflake_tests::outcome::{Refusal, refusal};
use snowflake_tests::{Cluster, ids, processes};

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

/// What keeps a statement from getting on.
#[derive(Debug, Clone, Copy)]
enum Obstacle {
    /// Nobody else may do anything with the tables: it waits at its beginning.
    Locked,
    /// A row of each was written and not committed: it waits where it has to
    /// know what becomes of that. Some statements don't.
    Written,
}

impl Obstacle {
    fn sql(self) -> &'static str {
        match self {
            Self::Locked => "LOCK TABLE t, child, bare IN ACCESS EXCLUSIVE MODE",
            Self::Written => {
                "UPDATE t SET note = 'written' WHERE id = 500; UPDATE child SET note = 'written' WHERE t_id = 500;
                 UPDATE bare SET n = -n WHERE n = 500"
            }
        }
    }
}

/// Waits until a backend waits for somebody; false where `is_done` first.
fn waits(client: &mut Client, pid: i32, is_done: impl Fn() -> bool) -> Result<bool> {
    let begun = Instant::now();
    let mut seen = 0;
    while seen < 3 {
        if is_done() {
            return Ok(false);
        }
        let waiting = number(
            client,
            &format!(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' AND wait_event_type IN ('Lock', 'Timeout')"
            ),
        )?;
        seen = if waiting > 0 { seen + 1 } else { 0 };
        ensure!(
            begun.elapsed() < Duration::from_secs(30),
            "it neither ends nor waits"
        );
        thread::sleep(Duration::from_millis(8));
    }
    Ok(true)
}

/// Runs a statement until it waits for a transaction of another session, then
/// does `interrupt` to it. Returns what it answered: `None` where it did not
/// wait, and went through.
fn interrupted(
    cluster: &Cluster,
    statement: &str,
    obstacle: Obstacle,
    interrupt: impl FnOnce(&mut Client, i32) -> Result<()>,
) -> Result<Option<Result<(), postgres::Error>>> {
    let mut holder = cluster.connect()?;
    let mut observer = cluster.connect()?;
    let mut holding = holder.transaction()?;
    holding.batch_execute(obstacle.sql())?;
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    let answer = thread::scope(|scope| -> Result<_> {
        let running = scope.spawn(|| client.batch_execute(statement));
        let is_waiting = waits(&mut observer, pid, || running.is_finished())?;
        if is_waiting {
            interrupt(&mut observer, pid)?;
        }
        let answer = running.join().expect("the session's thread");
        if !is_waiting {
            answer.with_context(|| format!("running: {statement}"))?;
            return Ok(None);
        }
        Ok(Some(answer))
    });
    // The server may be gone.
    let _ = holding.rollback();
    answer
}

fn signal(function: &str) -> impl FnOnce(&mut Client, i32) -> Result<()> {
    let function = function.to_owned();
    move |client, pid| {
        client
            .batch_execute(&format!("SELECT {function}({pid})"))
            .map_err(Into::into)
    }
}

/// What an interrupted statement answered; a connection may be closed before
/// its reason has arrived.
fn sqlstate(answer: Result<(), postgres::Error>) -> Result<String> {
    match answer {
        Ok(()) => bail!("it went through although it was interrupted"),
        Err(error) if error.is_closed() || error.code().is_none() => Ok("57P01".to_owned()),
        Err(error) => Ok(Refusal::from_error(error)?.sqlstate),
    }
}

/// What everything has to be like in the end, there and back.
fn finish(cluster: &Cluster, before: &str, keys: (i64, i64)) -> Result<()> {
    let mut client = cluster.connect()?;
    let client = &mut client;
    assert!(online::plan(client, "'t'")?.is_empty());
    assert_eq!(foreign_keys(client)?, keys);
    assert_eq!(
        number(client, "SELECT count(*) FROM snowflake_migrations")?,
        0
    );
    assert_eq!(
        number(client, "SELECT count(*) FROM pg_index WHERE NOT indisvalid")?,
        0
    );
    let id = number(client, "INSERT INTO t (parent) VALUES (10) RETURNING id")?;
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
        assert_eq!(refusal(client, violation)?.sqlstate, "23503", "{violation}");
    }
    let last = number(client, "SELECT sequence_last_value FROM snowflake_origins")?;
    client.batch_execute("CALL snowflake_migrate_revert('t')")?;
    let next = number(client, "INSERT INTO t (parent) VALUES (10) RETURNING id")?;
    // Recovery leaves up to 32 numbers out.
    assert!(
        (last + 5..=last + 5 * 33).contains(&next) && next % 5 == 0,
        "{next} does not follow {last}"
    );
    assert_same_schema(
        &online::unordered(&widened(before, WIDENED)?),
        &online::unordered(&schema(cluster, "postgres")?),
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
    let columns = online::columns(&mut client)?;
    let rows = online::contents(&mut client, &columns)?;
    let keys = foreign_keys(&mut client)?;
    let whole = online::plan(&mut client, "'t'")?;
    let mut interruptions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut steps = 0;
    let mut seen = BTreeSet::new();
    // Interrupted, a plan may have steps that clear up, so it is asked each time.
    while let Some(step) = online::plan(&mut client, "'t'")?.into_iter().next() {
        ensure!(
            steps < 3 * whole.len(),
            "the plan has no end, at: {step:#?}"
        );
        // One that had to be begun anew has been interrupted enough.
        if !seen.insert(step.statement.clone()) {
            client
                .batch_execute(&step.statement)
                .with_context(|| step.statement.clone())?;
            steps += 1;
            continue;
        }
        let now = schema(&cluster, "postgres")?;
        let mut again = |cluster: &Cluster, client: &mut Client, how| -> Result<()> {
            *interruptions.entry(how).or_default() += 1;
            assert_eq!(
                online::contents(client, &columns)?,
                rows,
                "{how}: {}",
                step.statement
            );
            let left = online::plan(client, "'t'")?;
            if step.in_transaction {
                // The catalog as a whole, where that is most in doubt.
                if how.starts_with("kill") {
                    assert_same_schema(&now, &schema(cluster, "postgres")?, &step.statement);
                }
                assert_eq!(
                    left.first().map(|it| &it.statement),
                    Some(&step.statement),
                    "{how}"
                );
            }
            Ok(())
        };

        let statement = &step.statement;
        for (how, function, expected) in [
            ("a cancel", "pg_cancel_backend", "57014"),
            ("a closed connection", "pg_terminate_backend", "57P01"),
        ] {
            let answer = interrupted(&cluster, statement, Obstacle::Locked, signal(function))?;
            let answer = answer.with_context(|| format!("it did not wait: {statement}"))?;
            assert_eq!(sqlstate(answer)?, expected, "{statement}");
            again(&cluster, &mut client, how)?;
        }
        // The server's end; of what commits on its way, in the middle.
        let obstacle = if step.in_transaction {
            Obstacle::Locked
        } else {
            Obstacle::Written
        };
        let killed = interrupted(&cluster, statement, obstacle, |_, _| {
            processes::kill9_tree(cluster.pid()?).map(|_| ())
        })?;
        cluster.wait_for_end()?;
        cluster.start()?;
        client = cluster.connect()?;
        ensure!(killed.is_some(), "it did not wait: {statement}");
        again(&cluster, &mut client, "kill -9 of the server")?;
        if step.in_transaction {
            // Some wait for the writers that are there, and some don't.
            match interrupted(
                &cluster,
                statement,
                Obstacle::Written,
                signal("pg_cancel_backend"),
            )? {
                None => steps += 1,
                Some(answer) => {
                    assert_eq!(sqlstate(answer)?, "57014", "{statement}");
                    again(&cluster, &mut client, "a cancel")?;
                }
            }
        }
    }
    assert_eq!(online::contents(&mut client, &columns)?, rows);
    finish(&cluster, &before, keys)?;
    let total: usize = interruptions.values().sum();
    assert!(
        interruptions.values().all(|&times| times >= whole.len()),
        "{interruptions:?}"
    );
    println!(
        "online interrupted: {total} times at {steps} steps ({interruptions:?}); planned again and finished: the same rows, \
         the same schema after the way back"
    );
    Ok(())
}

/// A client that is gone has a statement behind that goes on; whoever plans
/// again meets it.
#[test]
fn clients_that_are_gone() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLES)?;
    let before = schema(&cluster, "postgres")?;
    let columns = online::columns(client)?;
    let rows = online::contents(client, &columns)?;
    let keys = foreign_keys(client)?;
    let (mut gone, mut both, mut steps) = (0, BTreeMap::<String, usize>::new(), 0);
    while let Some(step) = online::plan(client, "'t'")?.into_iter().next() {
        steps += 1;
        ensure!(steps < 100, "the plan has no end, at: {step:#?}");
        let mut holder = cluster.connect()?;
        let mut holding = holder.transaction()?;
        holding.batch_execute(Obstacle::Written.sql())?;
        let mut psql = cluster
            .client_command("psql", "postgres")
            .args(["-X", "-q", "-c", &step.statement])
            .env("PGAPPNAME", "gone")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        let mut orphan = 0;
        while orphan == 0 && psql.try_wait()?.is_none() {
            orphan = number(
                client,
                "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE application_name = 'gone' AND state = 'active'
                   AND wait_event_type IN ('Lock', 'Timeout')",
            )?;
            ensure!(
                begun.elapsed() < Duration::from_secs(30),
                "it neither ends nor waits"
            );
        }
        if orphan == 0 {
            holding.rollback()?;
            continue;
        }
        processes::send(i32::try_from(psql.id())?, Signal::SIGKILL)?;
        psql.wait()?;
        gone += 1;
        // Planned again at once, and run a second time beside it.
        let mut second = cluster.connect()?;
        let pid = ids::backend_pid(&mut second)?;
        let mut observer = cluster.connect()?;
        let statement = step.statement.clone();
        let answer = thread::scope(|scope| -> Result<_> {
            let running = scope.spawn(|| second.batch_execute(&statement));
            waits(&mut observer, pid, || running.is_finished())?;
            holding.rollback()?;
            Ok(running.join().expect("the session's thread"))
        })?;
        let answer = match answer {
            Ok(()) => "done".to_owned(),
            Err(error) => Refusal::from_error(error)?.sqlstate,
        };
        assert!(
            // In its way: what the first one has made, or is about to.
            [
                "done", "55000", "42P07", "42701", "42710", "42704", "40P01", "55P03", "57014"
            ]
            .contains(&answer.as_str()),
            "{answer}: {}",
            step.statement
        );
        *both.entry(answer).or_default() += 1;
        let ended = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {orphan} AND state = 'active'"
        );
        while number(client, &ended)? > 0 {
            ensure!(
                begun.elapsed() < Duration::from_secs(60),
                "{} goes on",
                step.statement
            );
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(online::contents(client, &columns)?, rows);
    }
    finish(&cluster, &before, keys)?;
    assert!(gone >= 3, "{gone}");
    println!(
        "online interrupted: {gone} clients gone at {steps} steps; the same statement beside the one that went on: {both:?}"
    );
    Ok(())
}

/// What a writer did and was told.
#[derive(Debug, Default)]
struct Written {
    /// Rows that it committed and that are to be there, with their notes.
    rows: BTreeMap<i64, String>,
    deleted: Vec<i64>,
    /// Transactions that had to be repeated.
    repeated: usize,
}

fn write(cluster: &Cluster, number: usize, isolation: &str, stop: &AtomicBool) -> Result<Written> {
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
                let refused = Refusal::from_error(error)?;
                ensure!(
                    refused.sqlstate == "40001" && isolation != "read committed",
                    "a writer at {isolation}: {refused}"
                );
                written.repeated += 1;
            }
        }
    }
    Ok(written)
}

#[test]
fn beside_writers_of_every_isolation_level() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let before = schema(&cluster, "postgres")?;
    let keys = foreign_keys(&mut client)?;
    let levels = ["read committed", "repeatable read", "serializable"];
    let stop = AtomicBool::new(false);
    let mut cancelled = 0;
    let mut steps = 0;
    let written = thread::scope(|scope| -> Result<Vec<Written>> {
        let (cluster, stop) = (&cluster, &stop);
        let writers: Vec<_> = (0..levels.len())
            .map(|number| scope.spawn(move || write(cluster, number, levels[number], stop)))
            .collect();
        let migrated = (|| -> Result<()> {
            // Cut short at any point, until there is time enough for each.
            let mut patience: BTreeMap<String, u32> = BTreeMap::new();
            thread::sleep(Duration::from_millis(500));
            while let Some(step) = online::plan(&mut client, "'t'")?.into_iter().next() {
                ensure!(
                    !writers.iter().any(thread::ScopedJoinHandle::is_finished),
                    "a writer has given up"
                );
                let patience = patience.entry(step.statement.clone()).or_insert(2);
                client.batch_execute(&format!("SET statement_timeout = {patience}"))?;
                let outcome = client.batch_execute(&step.statement);
                // Which is a statement too, and may take as long.
                while let Err(error) = client.batch_execute("SET statement_timeout = '60s'") {
                    let refused = Refusal::from_error(error)?;
                    ensure!(refused.sqlstate == "57014", "{refused}");
                }
                match outcome {
                    Ok(()) => {
                        steps += 1;
                    }
                    Err(error) => {
                        let refused = Refusal::from_error(error)?;
                        ensure!(refused.sqlstate == "57014", "{}: {refused}", step.statement);
                        cancelled += 1;
                        *patience = (*patience * 3).min(60_000);
                    }
                }
            }
            thread::sleep(Duration::from_millis(500));
            Ok(())
        })();
        stop.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for writer in writers {
            all.push(writer.join().expect("a writer's thread")?);
        }
        migrated?;
        Ok(all)
    })?;
    // What every writer has committed is there, and nothing else.
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
    let lost: Vec<_> = expected
        .keys()
        .filter(|id| !found.contains_key(id))
        .take(5)
        .collect();
    assert!(lost.is_empty(), "rows are lost: {lost:?}");
    assert!(expected == found, "other rows than were written");
    let rows = i64::try_from(expected.len())?;
    assert_eq!(number(&mut client, "SELECT count(*) FROM t")?, 400 + rows);
    assert_eq!(
        number(&mut client, "SELECT count(*) FROM child")?,
        400 + rows
    );
    assert_eq!(
        number(&mut client, "SELECT count(*) FROM bare")?,
        400 + rows
    );
    let new = number(&mut client, "SELECT count(*) FROM t WHERE id > 2147483647")?;
    assert!(new > 0 && new < rows, "{new} of {rows} rows are new");
    client.batch_execute("DELETE FROM bare WHERE t_id > 2005; UPDATE t SET parent = NULL WHERE id > 2005; DELETE FROM t WHERE id > 2005")?;
    finish(&cluster, &before, keys)?;
    let repeated: Vec<String> = (0..3)
        .map(|level| {
            let times: usize = written
                .iter()
                .skip(level)
                .step_by(3)
                .map(|it| it.repeated)
                .sum();
            format!("{times} at {}", levels[level])
        })
        .collect();
    println!(
        "online interrupted: {steps} steps cut short {cancelled} times beside {} writers; {rows} rows of theirs there, {} deleted; \
         transactions repeated for 40001: {}",
        written.len(),
        written.iter().map(|it| it.deleted.len()).sum::<usize>(),
        repeated.join(", ")
    );
    Ok(())
}

/// Migrates a key while a transaction is open whose snapshot is older, and
/// which then reads `column` of `table`. Says whether that held it up.
fn with_an_old_snapshot(
    cluster: &Cluster,
    arguments: &str,
    table: &str,
    column: &str,
) -> Result<bool> {
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
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type IN ('Lock', 'Timeout')"
    );
    thread::scope(|scope| -> Result<bool> {
        let running = scope.spawn(move || online::migrate(&mut migrating, arguments));
        // Until it is through, or waits for this transaction.
        let begun = Instant::now();
        let mut waiting = 0;
        while !running.is_finished() && waiting < 60 {
            waiting += number(&mut observer, &waiting_now)?;
            ensure!(begun.elapsed() < Duration::from_secs(60), "it does not end");
            thread::sleep(Duration::from_millis(25));
        }
        let is_held_up = !running.is_finished();
        match old.query_one(&query, &[]) {
            Ok(row) => assert_eq!(counted(&row), before, "{table} in an old snapshot"),
            // Told that it can't be seen is all right; wrong rows are not.
            Err(error) => {
                let refused = Refusal::from_error(error)?;
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
                .map(Refusal::from_error)??;
            assert_eq!(refused.sqlstate, "55000", "{refused}");
            online::migrate(&mut observer, arguments)?;
            return Ok(true);
        }
        Ok(is_held_up)
    })
}

/// A transaction whose snapshot is older than the copied rows holds no lock on
/// tables that it has not read yet. Whenever it reads them, it has to see them
/// as they were, with their IDs.
#[test]
fn snapshots_that_are_older() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    cluster
        .connect()?
        .batch_execute("CREATE ROLE keeper LOGIN; GRANT CREATE ON SCHEMA public TO keeper")?;
    let mut client = cluster.connect_as("keeper", "postgres")?;
    let mut read = 0;
    let mut held_up = 0;
    for (table, column) in [("t", "id"), ("child", "t_id"), ("bare", "t_id")] {
        client.batch_execute("DROP TABLE IF EXISTS t, child, bare")?;
        client.batch_execute(TABLES)?;
        held_up +=
            usize::from(with_an_old_snapshot(&cluster, "'t'", table, column).context(table)?);
        read += 1;
    }
    // Building an index waits for old snapshots; here is none.
    client.batch_execute("CREATE TABLE plain (id serial, n int); INSERT INTO plain (n) SELECT n FROM generate_series(1, 400) AS n")?;
    held_up +=
        usize::from(with_an_old_snapshot(&cluster, "'plain'", "plain", "id").context("plain")?);
    // All is ready; then comes a table without an index.
    client.batch_execute("DROP TABLE t, child, bare")?;
    client.batch_execute(TABLES)?;
    let steps = online::plan(&mut client, "'t'")?;
    let swap = steps.iter().position(Step::is_swap).context("no swap")?;
    for step in &steps[..swap] {
        client.batch_execute(&step.statement)?;
    }
    client.batch_execute(
        "CREATE TABLE late (n int, t_id int REFERENCES t); INSERT INTO late SELECT id, id FROM t",
    )?;
    held_up += usize::from(with_an_old_snapshot(&cluster, "'t'", "late", "t_id").context("late")?);
    read += 2;
    println!(
        "online interrupted: {read} tables read in snapshots older than their migration ({held_up} held it up): the rows as they were"
    );
    Ok(())
}
