//! New rows of several servers in one table, read by key: the recipe of
//! docs/reading.md. No cheaper tier sees it: it needs servers that answer for their own
//! rows, replication between them, and the copy of a table that lasts.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};

use snowflake_tests::ids::fetch;

use crate::support::*;

const TABLES: &str = "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
    CREATE TABLE resolved (node_id integer PRIMARY KEY, id bigint NOT NULL)";

/// What each server says about its own rows.
const ANSWER: &str = "UPDATE resolved SET id = coalesce(snowflake_advance_resolved_id(), id)
    WHERE node_id = (SELECT node_id FROM snowflake_status)";

const BOUND: &str = "AND id < (SELECT min(id) FROM resolved)
    AND NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r')";

/// The same without the condition on the initial copies.
const BOUND_OF_ANSWERS: &str = "AND id < (SELECT min(id) FROM resolved)";

/// The tables that are being copied.
const NOT_READY: &str = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'";

fn server(node: i32) -> Result<Cluster> {
    let server = Cluster::node(node)
        .conf("wal_level", "logical")
        .conf("wal_retrieve_retry_interval", "200ms")
        // A worker of each subscription, and those that copy tables.
        .conf("max_worker_processes", 24)
        .conf("max_logical_replication_workers", 12)
        .movable_clock()
        .time_limit(Duration::from_secs(600))
        .start_with_extension()?;
    server.run(TABLES)?;
    Ok(server)
}

/// Fails unless docs/reading.md prints this recipe. Its table is `orders`.
fn require_printed() -> Result<()> {
    for printed in [ANSWER, BOUND] {
        document::require("docs/reading.md", printed)?;
    }
    Ok(())
}

/// A source, whose transactions take up to 10 ms.
fn write(mut client: Client, seed: u32, end: &AtomicBool) -> Result<()> {
    // More rows in a full run, in as many transactions.
    let batch = tier::size(1, 20);
    let mut round = seed;
    while !end.load(Relaxed) {
        round += 7;
        let pause = f64::from(round % 11) / 1_000.0;
        client.batch_execute(&format!(
            "BEGIN; INSERT INTO events DEFAULT VALUES; SELECT pg_sleep({pause});
             INSERT INTO events SELECT FROM generate_series(1, {batch}); COMMIT"
        ))?;
    }
    Ok(())
}

/// Reads by key until the end. `position` is the last ID that it has seen.
fn read(
    mut client: Client,
    bound: &str,
    position: &AtomicI64,
    end: &AtomicBool,
) -> Result<BTreeSet<i64>> {
    let (mut seen, mut last) = (BTreeSet::new(), 0);
    while !end.load(Relaxed) {
        let ids = fetch(
            &mut client,
            &format!("SELECT id FROM events WHERE id > {last} {bound} ORDER BY id LIMIT 1000"),
        )?;
        last = ids.last().copied().unwrap_or(last);
        for id in ids {
            ensure!(seen.insert(id), "{id} came twice");
        }
        position.store(last, Relaxed);
        thread::sleep(Duration::from_millis(3));
    }
    Ok(seen)
}

#[test]
fn a_reader_of_two_servers_rows_loses_none_below_the_least_answer() -> Result<()> {
    require_printed()?;
    let (sources, collector) = ([server(1)?, server(2)?], server(9)?);
    for (source, node) in sources.iter().zip(1..) {
        source.run(&format!(
            "INSERT INTO resolved SELECT node_id, 0 FROM snowflake_status;
             CREATE PUBLICATION node_{node} FOR TABLE events, resolved"
        ))?;
        subscribe(&collector, source, &format!("node_{node}"), "")?;
    }
    at_least(&collector, "SELECT count(*) FROM resolved", 2)?;
    let (end, no_more) = (AtomicBool::new(false), AtomicBool::new(false));
    let positions = [AtomicI64::new(0), AtomicI64::new(0)];
    let [unsafe_position, safe_position] = &positions;
    let (seen, without) = thread::scope(|scope| -> Result<_> {
        let _end = (SetOnDrop(&end), SetOnDrop(&no_more));
        let mut writers = Vec::new();
        for source in &sources {
            for seed in 0..3 {
                let (client, no_more) = (source.connect()?, &no_more);
                writers.push(scope.spawn(move || write(client, seed, no_more)));
            }
            let (mut client, end) = (source.connect()?, &end);
            scope.spawn(move || {
                while !end.load(Relaxed) {
                    client.batch_execute(ANSWER).expect("an answer");
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let readers = [("", unsafe_position), (BOUND, safe_position)].map(|(bound, position)| {
            let (client, end) = (collector.connect(), &end);
            scope.spawn(move || read(client?, bound, position, end))
        });
        // The reader without a bound passes the row of an open transaction.
        let mut holder = sources[0].connect()?;
        let mut held = holder.transaction()?;
        let id: i64 = held
            .query_one("INSERT INTO events DEFAULT VALUES RETURNING id", &[])?
            .get(0);
        wait::until("a reader to pass an open transaction", TIMEOUT, || {
            Ok(unsafe_position.load(Relaxed) > id)
        })?;
        held.commit()?;
        at_least(
            &collector,
            "SELECT count(*) FROM events",
            tier::size(4_000, 100_000),
        )?;
        no_more.store(true, Relaxed);
        for writer in writers {
            writer.join().expect("a writer")?;
        }
        // Until every row is below both answers.
        let mut client = collector.connect()?;
        let mut last = Vec::new();
        for source in &sources {
            last.extend(fetch(&mut source.connect()?, "SELECT max(id) FROM events")?);
        }
        let last = last.into_iter().max().unwrap_or_default();
        wait::until("both answers are above all rows", TIMEOUT, || {
            Ok(fetch(&mut client, "SELECT min(id) FROM resolved")? > vec![last])
        })?;
        wait::until("the reader to see the last row", TIMEOUT, || {
            Ok(safe_position.load(Relaxed) >= last)
        })?;
        end.store(true, Relaxed);
        let [without, seen] = readers.map(|reader| reader.join().expect("a reader"));
        Ok((seen?, without?))
    })?;
    let mut all = BTreeSet::new();
    for source in &sources {
        all.extend(fetch(&mut source.connect()?, "SELECT id FROM events")?);
    }
    println!(
        "{} rows of two servers: {} lost by the reader below the least answer, {} by one without a bound",
        grouped(all.len() as u64),
        all.difference(&seen).count(),
        all.difference(&without).count()
    );
    assert_eq!(all, seen);
    ensure!(without.len() < all.len(), "no row could be lost");
    Ok(())
}

/// Waits until no table of the server's subscriptions is being copied.
fn copied(collector: &Cluster) -> Result<()> {
    let mut client = collector.connect()?;
    wait::until("the end of the initial copies", TIMEOUT, || {
        Ok(fetch(&mut client, NOT_READY)? == [0])
    })
}

/// Three servers, of which the third generates no IDs. The rows that the second one has
/// from before are copied only after reading has begun. Later ten minutes pass.
#[test]
fn readers_pass_an_idle_server_and_wait_for_an_initial_copy() -> Result<()> {
    require_printed()?;
    let earlier: i32 = tier::size(20_000, 100_000);
    // Inserted after the ten minutes.
    let later: i32 = tier::size(2_000, 100_000);
    let (sources, collector) = ([server(1)?, server(2)?, server(3)?], server(9)?);
    for (source, tables) in sources
        .iter()
        .zip(["events, resolved", "resolved", "events, resolved"])
    {
        let mut client = source.connect()?;
        let node = client.number("SELECT node_id FROM snowflake_status")?;
        client.batch_execute(&format!(
            "INSERT INTO resolved SELECT node_id, 0 FROM snowflake_status;
             CREATE PUBLICATION node_{node} FOR TABLE {tables}"
        ))?;
        subscribe(&collector, source, &format!("node_{node}"), "")?;
    }
    let mut second = sources[1].connect()?;
    second.batch_execute(&format!(
        "INSERT INTO events SELECT FROM generate_series(1, {earlier})"
    ))?;
    let last_earlier = second.number("SELECT max(id) FROM events")?;
    at_least(&collector, "SELECT count(*) FROM resolved", 3)?;
    copied(&collector)?;
    // The slot of the copy waits for the end of this transaction, which has no IDs.
    let mut open = sources[1].connect()?;
    open.batch_execute("BEGIN; SELECT txid_current()")?;
    second.batch_execute("ALTER PUBLICATION node_2 ADD TABLE events")?;
    collector.run("ALTER SUBSCRIPTION of_node_2 REFRESH PUBLICATION")?;

    let (end, no_more) = (AtomicBool::new(false), AtomicBool::new(false));
    let positions = [AtomicI64::new(0), AtomicI64::new(0)];
    let [unsafe_position, safe_position] = &positions;
    let (seen, without) = thread::scope(|scope| -> Result<_> {
        let _end = (SetOnDrop(&end), SetOnDrop(&no_more));
        let mut writers = Vec::new();
        for (source, seed) in sources[..2].iter().zip(0..) {
            let (client, no_more) = (source.connect()?, &no_more);
            writers.push(scope.spawn(move || write(client, seed, no_more)));
        }
        for source in &sources {
            let (mut client, end) = (source.connect()?, &end);
            scope.spawn(move || {
                while !end.load(Relaxed) {
                    client.batch_execute(ANSWER).expect("an answer");
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let readers = [(BOUND_OF_ANSWERS, unsafe_position), (BOUND, safe_position)].map(
            |(bound, position)| {
                let (client, end) = (collector.connect(), &end);
                scope.spawn(move || read(client?, bound, position, end))
            },
        );
        wait::until("a reader to pass the rows to be copied", TIMEOUT, || {
            Ok(unsafe_position.load(Relaxed) > last_earlier)
        })?;
        assert_eq!(safe_position.load(Relaxed), 0);
        open.batch_execute("COMMIT")?;
        copied(&collector)?;
        at_least(
            &collector,
            "SELECT count(*) FROM events",
            i64::from(earlier) + 1_000,
        )?;
        wait::until("the reader to pass the copied rows", TIMEOUT, || {
            Ok(safe_position.load(Relaxed) > last_earlier)
        })?;

        let passing: Vec<_> = sources
            .iter()
            .map(|source| scope.spawn(move || source.clock().pass(Duration::from_secs(600))))
            .collect();
        for thread in passing {
            thread.join().expect("a clock")?;
        }
        for _ in 0..10 {
            for source in &sources[..2] {
                source.run(&format!(
                    "INSERT INTO events SELECT FROM generate_series(1, {})",
                    later / 20
                ))?;
            }
        }
        let id = fetch(
            &mut sources[0].connect()?,
            "INSERT INTO events DEFAULT VALUES RETURNING id",
        )?[0];
        wait::until("a row of ten minutes later to be read", TIMEOUT, || {
            Ok(safe_position.load(Relaxed) >= id)
        })?;

        no_more.store(true, Relaxed);
        for writer in writers {
            writer.join().expect("a writer")?;
        }
        let mut last = 0;
        for source in &sources {
            let of_source = "SELECT coalesce(max(id), 0) FROM events";
            last = last.max(source.connect()?.number(of_source)?);
        }
        wait::until("the reader to see the last row", TIMEOUT, || {
            Ok(safe_position.load(Relaxed) >= last)
        })?;
        end.store(true, Relaxed);
        let [without, seen] = readers.map(|reader| reader.join().expect("a reader"));
        Ok((seen?, without?))
    })?;
    let mut all = BTreeSet::new();
    for source in &sources {
        all.extend(fetch(&mut source.connect()?, "SELECT id FROM events")?);
    }
    let lost = all.difference(&without).count();
    println!(
        "{} rows of three servers, one of them idle: {} lost by the reader, {} by one that did not wait for the copy",
        grouped(all.len() as u64),
        all.difference(&seen).count(),
        grouped(lost as u64)
    );
    assert_eq!(all, seen);
    ensure!(all.len() >= (earlier + later) as usize, "too few rows");
    ensure!(lost >= earlier as usize, "no row could be lost");
    Ok(())
}
