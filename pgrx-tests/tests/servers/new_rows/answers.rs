//! A statement has one answer, and the answer never contradicts its snapshot.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use postgres::{IsolationLevel, Row};

use super::{builder, insert, server, wait_for_rows};
use crate::support::*;

/// Runs something beside sessions that insert and commit.
fn beside_writers(server: &Cluster, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.connect().expect("a connection");
                while !stop.load(Relaxed) {
                    insert(&mut client, "new").expect("a row");
                }
            });
        }
        run()
    })
}

#[test]
fn a_statement_has_one_answer_while_others_commit() -> Result<()> {
    let server = server(builder())?;
    let mut client = server.connect()?;
    client.batch_execute(
        "CREATE FUNCTION newer() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
         BEGIN
             PERFORM pg_sleep(0.0005);
             RETURN (SELECT snowflake_resolved_id());
         END $$",
    )?;
    // Once a session has asked, the answer is known beside writers too.
    insert(&mut client, "first")?;
    wait_for_rows(&mut client, &["first"])?;
    beside_writers(&server, || {
        // Each row asks, in two places; in between, statements with newer snapshots do.
        let answers = "SELECT count(DISTINCT a) + count(DISTINCT b), count(DISTINCT newer)
             FROM (SELECT snowflake_resolved_id() AS a, newer() AS newer, snowflake_resolved_id() AS b
                   FROM generate_series(1, 100)) AS t
             WHERE a = b";
        let begun = Instant::now();
        let (mut statements, mut newer) = (0, 0);
        while statements < 10 || newer <= statements {
            ensure!(
                begun.elapsed() < Duration::from_secs(100),
                "statements within {statements} statements had {newer} answers"
            );
            statements += 1;
            let row = client.query_one(answers, &[])?;
            assert_eq!(row.get::<_, i64>(0), 2, "one answer in each of two places");
            newer += row.get::<_, i64>(1);
        }
        Ok(())
    })
}

#[test]
fn a_cursor_and_a_transaction_with_one_snapshot_keep_their_answer() -> Result<()> {
    let server = server(builder())?;
    let mut client = server.connect()?;
    insert(&mut client, "first")?;
    wait_for_rows(&mut client, &["first"])?;
    beside_writers(&server, || {
        for _ in 0..20 {
            let mut transaction = client
                .build_transaction()
                .isolation_level(IsolationLevel::ReadCommitted)
                .start()?;
            transaction.batch_execute(
                "DECLARE c CURSOR FOR SELECT snowflake_resolved_id() FROM generate_series(1, 60)",
            )?;
            let mut answers = Vec::new();
            for _ in 0..3 {
                let rows = transaction.query("FETCH 20 FROM c", &[])?;
                answers.extend(rows.iter().map(|row| row.get::<_, Option<i64>>(0)));
                transaction.batch_execute("SELECT pg_sleep(0.003), snowflake_resolved_id()")?;
            }
            answers.dedup();
            assert_eq!(answers.len(), 1, "{answers:?}");
            transaction.commit()?;

            let mut transaction = client
                .build_transaction()
                .isolation_level(IsolationLevel::RepeatableRead)
                .start()?;
            let count = |rows: Vec<Row>| rows[0].get::<_, i64>(0);
            let read = "SELECT count(*) FROM events WHERE id < snowflake_resolved_id()";
            let before = count(transaction.query(read, &[])?);
            transaction.batch_execute("SELECT pg_sleep(0.005)")?;
            assert_eq!(count(transaction.query(read, &[])?), before);
            transaction.commit()?;
        }
        Ok(())
    })
}

#[test]
fn the_planner_and_parallel_queries_can_ask() -> Result<()> {
    let server = server(builder())?;
    let mut client = server.connect()?;
    client.batch_execute(
        "INSERT INTO events (note) SELECT 'many' FROM generate_series(1, 20000); ANALYZE events;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
         SELECT pg_sleep(0.05)",
    )?;
    let once = "SELECT count(*) FROM events WHERE id < (SELECT snowflake_resolved_id())";
    let plan: Vec<String> = client.column(&format!("EXPLAIN (COSTS off) {once}"))?;
    assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:?}");
    client.answers(once, 20_000)?;
    // In the leader, above the parallel part.
    let above = "SELECT count(*) FROM events GROUP BY id < 0 HAVING snowflake_resolved_id() > 0";
    client.answers(above, 20_000)?;
    // A function that hides it from the planner: the worker cannot tell.
    client.batch_execute(
        "CREATE FUNCTION hidden() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
             SET work_mem = '1MB' AS 'SELECT snowflake_resolved_id()';
         SET parallel_leader_participation = off",
    )?;
    let hidden = "SELECT count(hidden()) FROM events WHERE id < 9223372036854775807";
    let plan: Vec<String> = client.column(&format!("EXPLAIN (COSTS off) {hidden}"))?;
    assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:?}");
    client.answers(hidden, "0")?;
    Ok(())
}
