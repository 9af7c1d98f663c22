//! Logical replication between servers that all write.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use postgres::Config;

use crate::support::*;

/// Sessions of each server.
const SESSIONS: usize = 10;

fn server(node: i32) -> ClusterBuilder {
    Cluster::node(node)
        // False alarms would end the test.
        .conf("snowflake.on_node_conflict", "stop")
        .conf("wal_level", "logical")
        // Without it, PostgreSQL does not see that a row was changed by two servers.
        .conf("track_commit_timestamp", "on")
        .conf("wal_retrieve_retry_interval", "200ms")
        .time_limit(Duration::from_secs(600))
}

fn with_table(builder: ClusterBuilder) -> Result<Cluster> {
    let cluster = builder.start_with_extension()?;
    cluster.run(&format!(
        "{TABLE}; CALL snowflake_watch('orders'); CREATE PUBLICATION node_{} FOR TABLE orders",
        node(&cluster)?
    ))?;
    Ok(cluster)
}

fn node(server: &Server) -> Result<i64> {
    server
        .connect()?
        .number("SELECT node_id FROM snowflake_status")
}

/// Lets sessions write on each of the servers while `faults` runs. Returns the IDs
/// of acknowledged rows, and prints what happened.
fn writing<T>(
    servers: &[Config],
    sessions: usize,
    faults: impl FnOnce() -> Result<T>,
) -> Result<(Written, T)> {
    let end = AtomicBool::new(false);
    let begun = Instant::now();
    thread::scope(|scope| {
        let end = &end;
        let writers: Vec<_> = servers
            .iter()
            .zip(1..)
            .flat_map(|(server, place)| (0..sessions).map(move |_| (server, place)))
            .map(|(server, place)| scope.spawn(move || write(server, place, end)))
            .collect();
        let result = faults();
        end.store(true, Relaxed);
        let mut written = Written::default();
        for writer in writers {
            written.add(writer.join().expect("a session")?);
        }
        println!(
            "{} servers with {sessions} sessions each, {:.0} s: {} IDs acknowledged, {} statements failed with their server",
            servers.len(),
            begun.elapsed().as_secs_f64(),
            grouped(written.ids.len() as u64),
            written.failures
        );
        ensure!(written.failures > 0, "no session was interrupted");
        Ok((written, result?))
    })
}

/// Lets the sessions write for a while. How long does not matter to what is checked.
fn a_while() {
    thread::sleep(Duration::from_secs(3));
}

/// Two servers, each of which has the rows of both: subscriptions with
/// `origin = none`, which PostgreSQL 16 introduced.
#[test]
fn both_ways_of_two_servers_have_the_same_rows_after_restarts_and_crashes() -> Result<()> {
    let (mut one, mut two) = (with_table(server(1))?, with_table(server(2))?);
    let options = "WITH (origin = none, copy_data = off)";
    subscribe(&two, &one, "node_1", options)?;
    subscribe(&one, &two, "node_2", options)?;
    let configs = [
        one.config("postgres", "postgres"),
        two.config("postgres", "postgres"),
    ];
    let (written, ()) = writing(&configs, SESSIONS, || {
        a_while();
        one.restart()?;
        a_while();
        two.kill9_all()?;
        two.start()?;
        a_while();
        two.restart()?;
        a_while();
        one.kill9_all()?;
        one.start()?;
        a_while();
        Ok(())
    })?;
    let rows = same_rows(&[&one, &two])?;
    println!("both servers: {} rows, equal", grouped(rows));
    assert_kept(written, &mut one.connect()?)?;
    assert_no_conflict(&[&one, &two])?;
    for server in [&one, &two] {
        let log = server.log()?;
        let conflicts =
            log.matches("conflict detected").count() + log.matches("duplicate key").count();
        // Statistics begin anew after a crash; the log has all.
        let counted = server.connect()?.value(
            "SELECT sum(confl_insert_exists + confl_update_origin_differs + confl_update_exists + confl_update_missing
                        + confl_delete_origin_differs + confl_delete_missing + confl_multiple_unique_conflicts)
             FROM pg_stat_subscription_stats",
        )?;
        assert_eq!((conflicts, counted.as_str()), (0, "0"));
    }
    Ok(())
}

/// Rows of three servers in a table of a fourth, those from before the subscription
/// included.
#[test]
fn collector_of_three_servers_has_every_row() -> Result<()> {
    let mut sources = (1..=3)
        .map(|node| with_table(server(node)))
        .collect::<Result<Vec<_>>>()?;
    for (source, place) in sources.iter().zip(1..) {
        source.run(&format!(
            "INSERT INTO orders (place, note) SELECT {place}, 'before' FROM generate_series(1, 20000)"
        ))?;
    }
    let collector = with_table(
        server(4)
            .conf("max_logical_replication_workers", 16)
            .conf("max_worker_processes", 24),
    )?;
    for (source, place) in sources.iter().zip(1..) {
        subscribe(&collector, source, &format!("node_{place}"), "")?;
    }
    let configs: Vec<_> = sources
        .iter()
        .map(|source| source.config("postgres", "postgres"))
        .collect();
    let (mut written, ()) = writing(&configs, 3, || {
        // Bulk loads beside the sessions.
        for _ in 0..3 {
            for (source, place) in sources.iter().zip(1..) {
                source.run(&format!(
                    "CREATE TEMP TABLE loaded (note text); COPY loaded FROM PROGRAM 'seq 5000';
                     INSERT INTO orders (place, note) SELECT {place}, note FROM loaded;
                     COPY orders (note) FROM PROGRAM 'seq 5000'"
                ))?;
            }
            a_while();
        }
        sources[1].kill9_all()?;
        sources[1].start()?;
        a_while();
        sources[2].restart()?;
        a_while();
        Ok(())
    })?;
    let mut expected = 0;
    for source in &sources {
        expected += source.connect()?.number("SELECT count(*) FROM orders")?;
    }
    at_least(&collector, "SELECT count(*) FROM orders", expected)?;
    let mut client = collector.connect()?;
    for source in &sources {
        let node = node(source)?;
        let rows = source.connect()?.number("SELECT count(*) FROM orders")?;
        let here = client.number(&format!(
            "SELECT count(*) FROM orders WHERE snowflake_node_id(id) = {node}"
        ))?;
        assert_eq!(rows, here);
    }
    for source in &sources {
        let rows = source.connect()?.query(
            "SELECT id FROM orders WHERE note <> 'one' AND note <> 'of 20'",
            &[],
        )?;
        written
            .ids
            .extend(rows.iter().map(|row| row.get::<_, i64>(0)));
    }
    assert_kept(written, &mut client)?;
    let mut all: Vec<&Server> = sources.iter().map(|source| &**source).collect();
    all.push(&collector);
    assert_no_conflict(&all)?;
    print_density(&collector)?;
    for mut source in sources {
        source.stop(Stop::Fast)?;
    }
    Ok(())
}

fn print_density(collector: &Server) -> Result<()> {
    let mut client = collector.connect()?;
    client.batch_execute("CREATE TABLE sorted (id bigint); INSERT INTO sorted SELECT id FROM orders ORDER BY id; CREATE INDEX ON sorted (id)")?;
    let of = |relation: &str| format!("SELECT pg_relation_size('{relation}')");
    let fed = client.number(&of("orders_pkey"))?;
    let built = client.number(&of("sorted_id_idx"))?;
    println!(
        "index of the collector: {:.2} times the size of one that is built at once",
        fed as f64 / built as f64
    );
    Ok(())
}
