//! Two sessions that execute steps of one online plan at the same time: one of them
//! finishes its step, and the other one is told at once.

use std::process::Stdio;
use std::sync::Barrier;

use nix::sys::signal::Signal;

use super::run_before;
use crate::support::*;

const TABLES: &str = "CREATE TABLE t (id serial PRIMARY KEY, note text);
     CREATE TABLE child (id serial PRIMARY KEY, t_id int REFERENCES t, note text);
     CREATE INDEX ON child (t_id);
     INSERT INTO t (note) SELECT 'n' FROM generate_series(1, 500); INSERT INTO child (t_id) SELECT id FROM t; ANALYZE";

/// A session that waits for the other one would wait until the end of this limit.
const STATEMENT_TIMEOUT: &str = "SET statement_timeout = '90s'";

/// What the session that loses is told: that the other one executes a step; what that one
/// has changed; what is not there yet, as steps are tried out of their order, too; or that
/// PostgreSQL's own CREATE INDEX CONCURRENTLY waits for it.
const TOLD: [&str; 10] = [
    "done", "55P03", "55000", "42P07", "42701", "42710", "42703", "42704", "42830", "40P01",
];

/// Executes a statement, and returns what the session was told, and how long that took.
fn told(client: &mut Client, statement: &str) -> Result<(String, Duration)> {
    client.batch_execute(STATEMENT_TIMEOUT)?;
    let begun = Instant::now();
    let answer = match client.batch_execute(statement) {
        Ok(()) => "done".to_owned(),
        Err(error) => {
            let error = ServerError::from_error(error)?;
            ensure!(
                TOLD.contains(&error.sqlstate.as_str()) || error.sqlstate == "23514",
                "{error}: {statement}"
            );
            error.sqlstate
        }
    };
    Ok((answer, begun.elapsed()))
}

/// Two statements at the same time, in a copy of a database.
fn at_once(
    cluster: &Cluster,
    template: &str,
    statements: [&str; 2],
) -> Result<[(String, Duration); 2]> {
    let mut admin = cluster.connect()?;
    admin.batch_execute(&format!("CREATE DATABASE pair TEMPLATE {template}"))?;
    let start = Barrier::new(2);
    let run = |statement| {
        let mut client = cluster.connect_to("pair")?;
        start.wait();
        told(&mut client, statement)
    };
    let [first, second] = thread::scope(|scope| {
        let other = scope.spawn(|| run(statements[1]));
        [
            run(statements[0]),
            other.join().expect("the session's thread"),
        ]
    });
    let answers = [first?, second?];
    let mut client = cluster.connect_to("pair")?;
    finish(&mut client).with_context(|| format!("after {statements:?}"))?;
    drop(client);
    admin.batch_execute("DROP DATABASE pair WITH (FORCE)")?;
    Ok(answers)
}

/// What is left of the plan is executed, and the tables are what they should be.
fn finish(client: &mut Client) -> Result<()> {
    let mut steps = 0;
    while let Some(step) = online::plan(client, "'t'")?.into_iter().next() {
        client
            .batch_execute(&step.statement)
            .with_context(|| step.statement.clone())?;
        steps += 1;
        ensure!(steps < 60, "the plan has no end");
    }
    ensure!(
        client.value(
            "SELECT concat_ws(' ', count(*), count(DISTINCT t.id), bool_and(c.id IS NOT NULL)) FROM t LEFT JOIN child AS c ON c.t_id = t.id",
        )? == "500 500 t"
    );
    ensure!(client.number("INSERT INTO t DEFAULT VALUES RETURNING id")? > 1 << 40);
    Ok(())
}

/// The test of a server that a lock of another session decides: no cheaper tier has two.
#[test]
fn two_sessions_at_a_step_are_told_at_once() -> Result<()> {
    // Some two hundred pairs, a second or two each.
    let cluster = Cluster::node(1)
        .time_limit(Duration::from_secs(900))
        .start_with_migrate()?;
    let mut client = cluster.connect_to_new_database("state_0")?;
    client.batch_execute(TABLES)?;
    let steps: Vec<Step> = online::plan(&mut client, "'t'")?;
    drop(client);
    for (number, step) in steps.iter().enumerate() {
        let template = format!("state_{number}");
        for (other_number, other) in steps.iter().enumerate() {
            // Those of an older plan beside the last one find what is not theirs any more.
            if !tier::is_full() && other_number != number && number + 1 != steps.len() {
                continue;
            }
            let [(mine, _), (others, _)] =
                at_once(&cluster, &template, [&step.statement, &other.statement])?;
            let pair = format!(
                "step {} ({}) beside step {} ({})",
                step.number, step.what, other.number, other.what
            );
            ensure!(
                mine == "done"
                    || others == "done" && number == other_number
                    || mine == "55P03"
                    // Both, if the deadlock of one left an index for the other to find.
                    || [&mine, &others].contains(&&"40P01".to_owned()),
                "{pair}: {mine}, {others}"
            );
        }
        let next = format!("state_{}", number + 1);
        cluster.run(&format!("CREATE DATABASE {next} TEMPLATE {template}"))?;
        cluster.connect_to(&next)?.batch_execute(&step.statement)?;
    }
    Ok(())
}

/// A swap that waits for a lock ends with its client, and another session swaps.
#[test]
fn a_swap_ends_with_its_client() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    let (steps, swap) = run_before(&mut client, "'t'", Step::is_swap)?;
    let mut holder = cluster.connect()?;
    let mut holding = holder.transaction()?;
    holding.batch_execute("SELECT FROM t LIMIT 1")?;
    let mut psql = cluster
        .client_command("psql", "postgres")
        .args(["-X", "-q", "-c", &steps[swap].statement])
        .env("PGAPPNAME", "gone")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let swaps = "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'gone' AND wait_event_type IN ('Lock', 'Timeout', 'Extension')";
    client.wait_until(swaps)?;
    // Beside it, another session is told at once.
    let (answer, _) = told(&mut cluster.connect()?, &steps[swap].statement)?;
    ensure!(answer == "55P03", "{answer}");
    processes::send(i32::try_from(psql.id())?, Signal::SIGKILL)?;
    psql.wait()?;
    client
        .wait_until("SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'gone'")?;
    holding.rollback()?;
    finish(&mut client)?;
    Ok(())
}
