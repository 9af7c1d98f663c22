//! Migrations that were begun with the earlier version are finished and
//! reverted with the new one, wherever they had got to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use snowflake_tests::ids::{self, Tally};
use snowflake_tests::online;
use snowflake_tests::query::{number, value};

use super::{UPDATE, create_earlier, earlier_in_use, earlier_server, replace_library};
use crate::support::{column, refused, run, wait_until};

#[test]
fn migrations_of_the_earlier_version_are_finished_and_reverted() -> Result<()> {
    let (cluster, mut old, _app) = earlier_in_use()?;
    old.batch_execute(UPDATE)?;
    let mut new = cluster.connect_as("app", "old")?;
    let new = &mut new;
    assert!(online::migrate(new, "'own.o'")? > 0);
    let kind = value(
        new,
        "SELECT string_agg(format_type(atttypid, atttypmod), ',') FROM pg_attribute WHERE attname IN ('id', 'o_id') AND attrelid IN ('own.o'::regclass, 'own.r'::regclass)",
    )?;
    assert_eq!(kind, "bigint,bigint");
    assert!(number(new, "INSERT INTO own.o (n) VALUES (1) RETURNING id")? > 1 << 40);
    let findings: Vec<String> = column(
        new,
        "SELECT finding FROM snowflake_audit('own.o', first_id => 1000000)",
    )?;
    assert_eq!(findings, ["IDs below first_id"]);
    for table in ["own.t", "own.i"] {
        new.batch_execute(&format!("CALL snowflake_migrate_revert('{table}')"))?;
        let insert = format!("INSERT INTO {table} (n) VALUES (1) RETURNING id");
        assert_eq!(number(new, &insert)?, 11, "{table}");
    }
    let identity = "SELECT attidentity::text FROM pg_attribute WHERE attrelid = 'own.i'::regclass AND attname = 'id'";
    assert_eq!(value(new, identity)?, "a");
    old.batch_execute("DROP VIEW own.decoded; DROP TABLE own.o CASCADE; DROP EXTENSION snowflake")?;
    Ok(())
}

/// The rows of a table before its migration.
const ROWS: i64 = 400;

/// Tables that reference themselves and each other.
fn tables(name: &str, rows: i64) -> String {
    format!(
        "CREATE TABLE own.{name} (id serial PRIMARY KEY, parent int REFERENCES own.{name}, n int);
         INSERT INTO own.{name} (parent, n) SELECT nullif(n - 1, 0), n FROM generate_series(1, {rows}) AS n;
         CREATE TABLE own.{name}_child (n int, p_id int REFERENCES own.{name} ON DELETE CASCADE);
         INSERT INTO own.{name}_child SELECT n, id FROM own.{name}"
    )
}

/// Types and rows as after a migration, and what the rows have in common.
fn check_migrated(client: &mut postgres::Client, name: &str) -> Result<()> {
    let kinds = value(
        client,
        &format!(
            "SELECT string_agg(DISTINCT format_type(atttypid, atttypmod), ',') FROM pg_attribute
             WHERE attname IN ('id', 'parent', 'p_id') AND attrelid IN ('own.{name}'::regclass, 'own.{name}_child'::regclass)"
        ),
    )?;
    assert_eq!(kinds, "bigint", "{name}");
    let broken = number(
        client,
        &format!(
            "SELECT (SELECT count(*) FROM own.{name} WHERE n <= {ROWS} AND (id <> n OR parent IS DISTINCT FROM nullif(n - 1, 0)))
                  + (SELECT count(*) FROM own.{name}_child AS c LEFT JOIN own.{name} AS p ON p.id = c.p_id WHERE p.id IS NULL OR c.n <> p.n)"
        ),
    )?;
    assert_eq!(broken, 0, "{name}");
    let left = number(
        client,
        &format!(
            "SELECT count(*) FROM pg_attribute WHERE attrelid IN ('own.{name}'::regclass, 'own.{name}_child'::regclass) AND attname ~ 'snowflake' AND NOT attisdropped"
        ),
    )?;
    assert_eq!(left, 0, "{name}: shadow columns are left");
    Ok(())
}

fn insert(name: &str) -> String {
    format!(
        "INSERT INTO own.{name} (n) SELECT {ROWS} + 1 FROM generate_series(1, 500) RETURNING id::bigint"
    )
}

/// Each plan is left after each of its statements, with rows written all the
/// time, and continued after the update: to its end, or back.
fn left_after_each_statement(online: bool) -> Result<()> {
    let mut cluster = earlier_server()?;
    cluster.connect()?.batch_execute("CREATE ROLE app LOGIN")?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute("CREATE SCHEMA own AUTHORIZATION app")?;
    let mut app = cluster.connect_as("app", "old")?;
    app.batch_execute(&tables("measure", ROWS))?;
    let steps = online::plan_for(&mut app, "'own.measure'", online)?.len();
    ensure!(steps >= 4, "{steps}");
    let mut names = Vec::new();
    for done in 0..=steps {
        for end in ["finish", "back"] {
            let name = format!("{end}_{done}");
            app.batch_execute(&tables(&name, ROWS))?;
            let plan = online::plan_for(&mut app, &format!("'own.{name}'"), online)?;
            run(&mut app, online::statements(&plan).into_iter().take(done))?;
            app.simple_query(&insert(&name))?;
            names.push((name, done, end));
        }
    }
    // A backfill that was cancelled halfway.
    if online {
        app.batch_execute(&tables("halfway", 20_000))?;
        let plan = online::plan(&mut app, "'own.halfway'")?;
        let backfill = plan
            .iter()
            .position(online::Step::is_backfill)
            .context("no backfill")?;
        run(
            &mut app,
            online::statements(&plan).into_iter().take(backfill),
        )?;
        let pid = ids::backend_pid(&mut app)?;
        let done = "SELECT coalesce(max(rows_done), 0) FROM snowflake_migrations WHERE table_name = 'own.halfway'::regclass";
        let copied = thread::scope(|scope| -> Result<i64> {
            let app = &mut app;
            let call = scope.spawn(move || {
                refused(
                    app,
                    "CALL snowflake_migrate_backfill('own.halfway', batch_size => 500, pause => '200 ms')",
                    "57014",
                )
            });
            wait_until(&mut old, &format!("SELECT ({done}) > 0"))?;
            old.batch_execute(&format!("SELECT pg_cancel_backend({pid})"))?;
            call.join().expect("the backfill's thread")?;
            number(&mut old, done)
        })?;
        let filled = number(
            &mut old,
            "SELECT rows_total - rows_done FROM snowflake_migrations WHERE table_name = 'own.halfway'::regclass",
        )?;
        ensure!(copied > 0 && filled > 0, "{copied} copied, {filled} left");
        println!("upgrade: a backfill was left after {copied} rows, {filled} left");
        names.push(("halfway".to_owned(), backfill, "finish"));
    }
    drop((old, app));
    replace_library(&mut cluster)?;
    let mut old = cluster.connect_to("old")?;
    // Sessions that write before, during and after the update.
    let stop = AtomicBool::new(false);
    let write = || -> Result<Vec<i64>> {
        let mut client = cluster.connect_as("app", "old")?;
        let (mut received, mut turn) = (Vec::new(), 0);
        while !stop.load(Ordering::SeqCst) || turn < names.len() {
            let name = &names[turn % names.len()].0;
            received.extend(ids::nextval(&mut client, 200)?);
            client.batch_execute(&format!(
                "INSERT INTO own.{name} (n) VALUES ({ROWS} + 1); UPDATE own.{name} SET n = n WHERE id = 7"
            ))?;
            turn += 1;
        }
        Ok(received)
    };
    let mut received = thread::scope(|scope| -> Result<Vec<i64>> {
        let sessions = [scope.spawn(write), scope.spawn(write)];
        thread::sleep(Duration::from_millis(300));
        let updated = old.batch_execute(UPDATE);
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for session in sessions {
            all.extend(session.join().expect("a session's thread")?);
        }
        updated?;
        Ok(all)
    })?;
    let (mut finished, mut reverted) = (0, 0);
    let mut new = cluster.connect_as("app", "old")?;
    for (name, done, end) in &names {
        let arguments = format!("'own.{name}'");
        let is_begun = *done > 0;
        if *end == "finish" {
            for step in online::plan_for(&mut new, &arguments, online)? {
                new.batch_execute(&step.statement).with_context(|| {
                    format!("{name} after {done} statements: {}", step.statement)
                })?;
            }
            assert_eq!(
                online::plan_for(&mut new, &arguments, online)?,
                [],
                "{name}"
            );
            check_migrated(&mut new, name)?;
            received.extend(ids::fetch(&mut new, &insert(name))?);
            finished += 1;
        }
        if is_begun || *end == "finish" {
            let next = number(
                &mut new,
                &format!("SELECT max(id) + 1 FROM own.{name} WHERE id < 1 << 30"),
            )?;
            new.batch_execute(&format!("CALL snowflake_migrate_revert('own.{name}')"))
                .with_context(|| format!("{name} after {done} statements"))?;
            let id = number(
                &mut new,
                &format!("INSERT INTO own.{name} (n) VALUES (0) RETURNING id"),
            )?;
            assert!(
                (next..next + 10).contains(&id),
                "{name} after {done} statements: {id}, not {next}"
            );
            reverted += 1;
        }
    }
    let tally = Tally::of(received);
    println!(
        "upgrade: {} plan left after each of its {steps} statements: {finished} finished after the update, {reverted} reverted; {tally}",
        if online { "online" } else { "window" }
    );
    tally.assert_unique();
    Ok(())
}

#[test]
fn a_window_plan_is_continued_after_the_update_from_each_of_its_statements() -> Result<()> {
    left_after_each_statement(false)
}

#[test]
fn an_online_plan_is_continued_after_the_update_from_each_of_its_statements() -> Result<()> {
    left_after_each_statement(true)
}
