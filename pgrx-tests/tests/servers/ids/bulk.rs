//! Sessions that generate in bulk share a slot.
//!
//! In slots of their own, each session's rows of a millisecond would enter an
//! index below those of a session with a greater number, and split full pages:
//! sixteen writers of batches would make an index larger by a third. In a shared
//! slot they get IDs in the order in which they call, as from a sequence. When
//! its numbers of a tick are used up, a session continues in its own slot and
//! those above, in the same tick, so that its IDs still ascend. After a while
//! without a call it returns to its own.

use std::collections::HashMap;
use std::sync::Barrier;

use snowflake_tests::ids::{SHORT_SLOTS, pairs_sharing_a_slot};

use crate::support::*;

fn builder(fields: &Fields) -> ClusterBuilder {
    Cluster::node(1).conf("snowflake.layout", fields.layout)
}

fn cluster(fields: &Fields) -> Result<Cluster> {
    builder(fields).start_with_extension()
}

/// How many IDs there are of each backend number.
fn by_slot(ids: &[i64], fields: &Fields) -> HashMap<i64, u64> {
    let mut counts = HashMap::new();
    for &id in ids {
        *counts.entry(fields.field(id, "backend")).or_default() += 1;
    }
    counts
}

/// The size of a primary key's index after batches of 16 writers in turn, divided by
/// that of `bigserial`. In turn, so that the order of the rows is not left to chance.
fn index_size(layout: &str) -> Result<f64> {
    const WRITERS: usize = 16;
    let transactions: usize = tier::size(30, 150);
    let cluster = Cluster::node(1)
        .conf("snowflake.layout", layout)
        .conf("synchronous_commit", "off")
        .conf("autovacuum", "off")
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    let mut sizes = Vec::new();
    for column in [
        "bigint DEFAULT snowflake_nextval() PRIMARY KEY",
        "bigserial PRIMARY KEY",
    ] {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS t; CREATE TABLE t (id {column}, v int)"
        ))?;
        let mut writers: Vec<Client> = (0..WRITERS)
            .map(|_| cluster.connect())
            .collect::<Result<_>>()?;
        for _ in 0..transactions {
            for writer in &mut writers {
                writer.batch_execute("INSERT INTO t (v) SELECT generate_series(1, 100)")?;
            }
        }
        let size: i64 = client
            .query_one("SELECT pg_relation_size('t_pkey')", &[])?
            .get(0);
        sizes.push(size);
    }
    let ratio = sizes[0] as f64 / sizes[1] as f64;
    Ok(ratio)
}

#[test]
fn the_index_of_batches_is_dense() -> Result<()> {
    let ratio = index_size(DEFAULT.layout)?;
    assert!(ratio < 1.05, "{ratio}");
    // As many slots, where each session stays in its own: what the measure is
    // worth. With ticks so long that batches of all writers are of one.
    let apart = index_size("timestamp:34 node:6 sequence:19 backend:4 tick:100ms")?;
    assert!(apart > 1.15, "{apart}");
    Ok(())
}

/// More sessions than slots, all in a burst, all in each other's way: nothing
/// is repeated, and each session's IDs ascend.
#[test]
fn more_bursts_than_slots_repeat_no_id() -> Result<()> {
    const SESSIONS: usize = 40;
    let each: usize = tier::size(5_000, 20_000);
    for fields in [&SHORT_SLOTS, &DEFAULT] {
        let cluster = cluster(fields)?;
        let mut clients = Vec::new();
        let mut pids = Vec::new();
        for _ in 0..SESSIONS {
            let mut client = cluster.connect()?;
            client.batch_execute("SET snowflake.max_wait = '1min'")?;
            pids.push(ids::backend_pid(&mut client)?);
            clients.push(client);
        }
        let pairs = pairs_sharing_a_slot(&pids, fields);
        let together = Barrier::new(SESSIONS);
        let received: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let together = &together;
            let sessions: Vec<_> = clients
                .iter_mut()
                .map(|client| {
                    scope.spawn(move || {
                        together.wait();
                        let query =
                            format!("SELECT snowflake_nextval() FROM generate_series(1, {each})");
                        ids::fetch(client, &query)
                    })
                })
                .collect();
            sessions
                .into_iter()
                .map(|session| session.join().ok().context("a session panicked")?)
                .collect::<Result<_>>()
        })?;
        for ids in &received {
            assert_increasing(ids, "a session");
        }
        let slots = received
            .iter()
            .map(|ids| by_slot(ids, fields).len())
            .max()
            .unwrap_or(0);
        let tally = Tally::of(received.concat());
        println!(
            "bulk: {SESSIONS} sessions, {pairs} pairs sharing a slot, up to {slots} slots a session, layout \"{}\": {tally}",
            fields.layout
        );
        assert!(pairs > 0);
        tally.assert_unique();
    }
    Ok(())
}

/// Sessions of all databases share the numbers of a tick. A call that returns one ID must
/// not use up the rest of it. Within a tick, numbers show what each call has used.
#[test]
fn a_limit_of_one_uses_up_few_numbers_of_a_tick() -> Result<()> {
    const CALLS: usize = 3_000;
    const FIRST_RUN: i64 = 16;
    let cluster = cluster(&DEFAULT)?;
    let mut client = cluster.connect()?;
    client.batch_execute(&format!(
        "CREATE TEMP TABLE single (place serial, id bigint);
         DO $do$ BEGIN FOR i IN 1..{CALLS} LOOP
             INSERT INTO single (id) SELECT snowflake_nextvals(4096) LIMIT 1;
         END LOOP; END $do$"
    ))?;
    let received = ids::fetch(&mut client, "SELECT id FROM single ORDER BY place")?;
    assert_eq!(received.len(), CALLS);
    assert_increasing(&received, "the session");
    // A call that used up a tick would leave no other ID of it.
    let mut in_one_tick = 0;
    for pair in received.windows(2) {
        let [before, after] = [pair[0], pair[1]];
        let is_one_slot = DEFAULT.field(before, "backend") == DEFAULT.field(after, "backend");
        if is_one_slot && DEFAULT.tick(before) == DEFAULT.tick(after) {
            let used = DEFAULT.field(after, "sequence") - DEFAULT.field(before, "sequence");
            assert!(used <= FIRST_RUN, "a call has used {used} numbers");
            in_one_tick += 1;
        }
    }
    assert!(in_one_tick > 0, "each call has used up a tick");
    // Runs become longer, so a large call is not made of small ones.
    let whole = ids::fetch(&mut client, "SELECT snowflake_nextvals(20000)")?;
    assert_eq!(whole.len(), 20_000);
    assert_increasing(&whole, "the call");
    Tally::of([received, whole].concat()).assert_unique();
    Ok(())
}
