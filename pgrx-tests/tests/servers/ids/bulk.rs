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
use std::time::Duration;

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_tests::ids::{
    self, DEFAULT, Fields, SHORT_SEQUENCE, SHORT_SLOTS, Tally, assert_increasing, grouped,
    pairs_sharing_a_slot,
};
use snowflake_tests::{Cluster, ClusterBuilder, tier};

fn builder(fields: &Fields) -> ClusterBuilder {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", fields.layout)
}

fn cluster(fields: &Fields) -> Result<Cluster> {
    builder(fields).start_with_extension()
}

/// The number of ticks without an ID after which a session leaves the shared slot.
const QUIET: i64 = 10;

/// How many IDs there are of each backend number.
fn by_slot(ids: &[i64], fields: &Fields) -> HashMap<i64, u64> {
    let mut counts = HashMap::new();
    for &id in ids {
        *counts.entry(fields.field(id, "backend")).or_default() += 1;
    }
    counts
}

/// The counters of the slots that were used.
fn counted(client: &mut Client) -> Result<HashMap<i64, u64>> {
    let rows = client.query(
        "SELECT backend_id::int8, ids FROM snowflake_stat_slots WHERE ids > 0",
        &[],
    )?;
    rows.iter()
        .map(|row| Ok((row.get(0), u64::try_from(row.get::<_, i64>(1))?)))
        .collect()
}

/// The session in which `client` is gets IDs of its own slot.
fn assert_at_home(client: &mut Client, fields: &Fields) -> Result<()> {
    let pid = ids::backend_pid(client)?;
    let id = ids::one(client)?;
    assert_eq!(
        fields.field(id, "backend"),
        i64::from(pid) % fields.values("backend")
    );
    Ok(())
}

#[test]
fn a_session_uses_other_slots_and_returns() -> Result<()> {
    const IDS: usize = 100_000;
    let cluster = builder(&SHORT_SLOTS)
        .movable_clock()
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    assert_at_home(&mut client, &SHORT_SLOTS)?;
    let before = counted(&mut client)?;
    let mut received = Vec::with_capacity(IDS);
    let mut most = i64::MIN;
    while received.len() < IDS {
        let query = "SELECT snowflake_nextval() FROM generate_series(1, 20000)";
        ids::fetch_into(&mut client, query, &mut received)?;
        most = most.max(SHORT_SLOTS.lead_ms(received[received.len() - 1]));
    }
    assert_increasing(&received, "the burst");
    let mut by_tick: HashMap<i64, u64> = HashMap::new();
    for &id in &received {
        *by_tick.entry(SHORT_SLOTS.tick(id)).or_default() += 1;
    }
    let fullest = by_tick.values().max().copied().unwrap_or(0);
    let slots = by_slot(&received, &SHORT_SLOTS);
    println!(
        "bulk: {} IDs of one session in {} slots and {} ticks, up to {fullest} a tick where one slot has 16, at most {most} ms ahead",
        grouped(IDS),
        slots.len(),
        by_tick.len()
    );
    // Whichever its own is.
    assert_eq!(slots.len(), 16, "{slots:?}");
    assert!(fullest > 16, "{fullest}");
    assert!(most <= 1_000, "{most} ms");
    // Each ID is counted in the slot that it is of.
    let after = counted(&mut client)?;
    for (slot, count) in &slots {
        let counted = after[slot] - before.get(slot).copied().unwrap_or(0);
        assert_eq!(counted, *count, "slot {slot}");
    }
    Tally::of(received).assert_unique();

    // Its IDs may be as far ahead as `max_borrow`; ten ticks after that it is
    // back.
    cluster.clock().pass(Duration::from_millis(1_100))?;
    assert_at_home(&mut client, &SHORT_SLOTS)
}

/// The fourth ID within a tick is of the shared slot. Single ones are of the session's
/// own again, after ten ticks without an ID.
#[test]
fn single_ids_come_from_a_sessions_own_slot() -> Result<()> {
    const SESSIONS: usize = 8;
    let cluster = builder(&DEFAULT).movable_clock().start_with_extension()?;
    let (mut checked, mut in_bulk) = (0, 0);
    for _ in 0..SESSIONS {
        let mut client = cluster.connect()?;
        let own = i64::from(ids::backend_pid(&mut client)?) % DEFAULT.values("backend");
        for _ in 0..3 {
            assert_at_home(&mut client, &DEFAULT)?;
            let batch = ids::nextval(&mut client, 100)?;
            let mut single: HashMap<i64, u64> = HashMap::new();
            let mut last_in_bulk = None;
            for &id in &batch {
                let tick = DEFAULT.tick(id);
                match DEFAULT.field(id, "backend") {
                    // A session whose own slot is this one cannot be judged.
                    0 => {
                        in_bulk += 1;
                        last_in_bulk = (own != 0).then_some(tick);
                    }
                    slot if slot == own => {
                        *single.entry(tick).or_default() += 1;
                        // A session may be interrupted in the middle of a batch.
                        assert!(
                            last_in_bulk.is_none_or(|last| tick > last + QUIET),
                            "{id} is single after an ID in bulk of tick {last_in_bulk:?}"
                        );
                    }
                    slot => panic!("{id} is of slot {slot}"),
                }
            }
            assert!(single.values().all(|&ids| ids <= 3), "{single:?}");
            cluster.clock().pass(Duration::from_millis(15))?;
            checked += batch.len() + 1;
        }
    }
    println!("bulk: {checked} IDs of {SESSIONS} sessions, {in_bulk} of them in slot 0");
    assert!(in_bulk > 0, "no session generated in bulk");
    Ok(())
}

/// Sessions that take batches in turn get IDs in the order of their statements.
#[test]
fn batches_of_several_sessions_ascend_in_the_order_of_their_statements() -> Result<()> {
    const TURNS: usize = 400;
    const BATCH: usize = 20;
    let cluster = cluster(&DEFAULT)?;
    let mut clients: Vec<Client> = (0..4).map(|_| cluster.connect()).collect::<Result<_>>()?;
    let mut all = Vec::new();
    for turn in 0..TURNS {
        all.extend(ids::nextval(&mut clients[turn % 4], BATCH)?);
    }
    // A session that is interrupted for ten ticks begins with three IDs of its own
    // slot again. All others are of the shared slot.
    let in_bulk: Vec<i64> = all
        .iter()
        .copied()
        .filter(|&id| DEFAULT.field(id, "backend") == 0)
        .collect();
    let tally = Tally::of(all);
    println!(
        "bulk: {TURNS} batches of 4 sessions in turn: {tally}, {} of them in bulk",
        grouped(in_bulk.len())
    );
    assert_increasing(&in_bulk, "the shared slot");
    assert!(in_bulk.len() * 2 > tally.ids, "{}", in_bulk.len());
    tally.assert_unique();
    Ok(())
}

/// The size of a primary key's index after batches of 16 writers in turn, divided by
/// that of `bigserial`. In turn, so that the order of the rows is not left to chance.
fn index_size(layout: &str) -> Result<f64> {
    const WRITERS: usize = 16;
    let transactions: usize = tier::size(30, 150);
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
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
    println!(
        "bulk: {WRITERS} writers, {} rows, 100 a transaction, layout \"{layout}\": an index of {} kB, {ratio:.3} of bigserial's",
        grouped((WRITERS * transactions * 100) as u64),
        sizes[0] / 1024
    );
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

/// Runs of IDs and single ones in turn: each is above the one before.
#[test]
fn runs_of_several_sessions_ascend() -> Result<()> {
    let cluster = cluster(&SHORT_SLOTS)?;
    let mut client = cluster.connect()?;
    let mut received = Vec::new();
    for count in [1, 15, 16, 17, 240, 256, 257, 5_000] {
        let query = format!("SELECT snowflake_nextvals({count})");
        ids::fetch_into(&mut client, &query, &mut received)?;
        received.push(ids::one(&mut client)?);
    }
    assert_increasing(&received, "the session");
    let tally = Tally::of(received);
    println!("bulk: runs and single IDs in turn: {tally}");
    tally.assert_unique();
    Ok(())
}

/// Without a backend number there is no other slot; where it stands below the
/// sequence, one in another slot would be a smaller ID.
#[test]
fn a_layout_without_slots_above_stays_in_one_slot() -> Result<()> {
    const ONE_SHORT_SLOT: Fields = Fields {
        layout: "timestamp:41 node:6 sequence:4",
        bits: &[("node", 6), ("sequence", 4)],
        ..SHORT_SLOTS
    };
    for fields in [&SHORT_SEQUENCE, &ONE_SHORT_SLOT] {
        let cluster = cluster(fields)?;
        let mut client = cluster.connect()?;
        let received = ids::nextval(&mut client, 8_000)?;
        assert_increasing(&received, "the session");
        let slots = by_slot(&received, fields);
        assert_eq!(slots.len(), 1, "{slots:?}");
        let ticks = fields.tick(received[7_999]) - fields.tick(received[0]);
        println!(
            "bulk: layout \"{}\": 8,000 IDs of one session in {ticks} ticks of one slot",
            fields.layout
        );
        assert!(ticks >= 499, "{ticks}");
    }
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
    println!(
        "bulk: {CALLS} calls with LIMIT 1, {in_one_tick} of them in the tick of the one before"
    );
    assert!(in_one_tick > 0, "each call has used up a tick");
    // Runs become longer, so a large call is not made of small ones.
    let whole = ids::fetch(&mut client, "SELECT snowflake_nextvals(20000)")?;
    assert_eq!(whole.len(), 20_000);
    assert_increasing(&whole, "the call");
    Tally::of([received, whole].concat()).assert_unique();
    Ok(())
}
