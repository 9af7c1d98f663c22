//! A session that asks for more IDs than its slot makes goes on in others.
//!
//! A slot has as many IDs a tick as the sequence has numbers: 4,096 a
//! millisecond in the default layout, a quarter of what a loop of calls asks
//! for. Other generators wait then, or run ahead of the clock. Here a burst that
//! lasts goes on in the slots above, in the same tick, so that its IDs still
//! ascend; when it is over, the session comes back to its own.

use std::collections::HashMap;
use std::sync::Barrier;
use std::time::Duration;

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::ids::{
    self, DEFAULT, Fields, SHORT_SEQUENCE, SHORT_SLOTS, Tally, assert_increasing, grouped,
    pairs_sharing_a_slot,
};

fn cluster(fields: &Fields) -> Result<Cluster> {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", fields.layout)
        .start_with_extension()
}

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
fn a_burst_goes_on_in_other_slots_and_returns() -> Result<()> {
    const IDS: usize = 100_000;
    let cluster = cluster(&SHORT_SLOTS)?;
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
        "bursts: {} IDs of one session in {} slots and {} ticks, up to {fullest} a tick where one slot has 16, at most {most} ms ahead",
        grouped(IDS),
        slots.len(),
        by_tick.len()
    );
    assert!(slots.len() >= 9, "{slots:?}");
    assert!(fullest > 16);
    assert!(most <= 1_000, "{most} ms");
    // Each ID is counted in the slot that it is of.
    let after = counted(&mut client)?;
    for (slot, count) in &slots {
        let counted = after[slot] - before.get(slot).copied().unwrap_or(0);
        assert_eq!(counted, *count, "slot {slot}");
    }
    Tally::of(received).assert_unique();

    // Home at the latest when it next reserves: half of the lease of 2 s.
    std::thread::sleep(Duration::from_millis(2_100));
    ids::one(&mut client)?;
    assert_at_home(&mut client, &SHORT_SLOTS)
}

/// Runs of IDs and single ones in turn: each is above the one before.
#[test]
fn runs_ascend_too() -> Result<()> {
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
    println!("bursts: runs and single IDs in turn: {tally}");
    tally.assert_unique();
    Ok(())
}

/// Without a backend number there is no other slot; where it stands below the
/// sequence, one in another slot would be a smaller ID.
#[test]
fn a_layout_without_slots_above_stays_in_one() -> Result<()> {
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
            "bursts: layout \"{}\": 8,000 IDs of one session in {ticks} ticks of one slot",
            fields.layout
        );
        assert!(ticks >= 499, "{ticks}");
    }
    Ok(())
}

/// More sessions than slots, all in a burst, all in each other's way: nothing
/// comes twice, and each session's IDs ascend.
#[test]
fn more_bursts_than_slots() -> Result<()> {
    const SESSIONS: usize = 40;
    const EACH: usize = 20_000;
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
                            format!("SELECT snowflake_nextval() FROM generate_series(1, {EACH})");
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
            "bursts: {SESSIONS} sessions, {pairs} pairs sharing a slot, up to {slots} slots a session, layout \"{}\": {tally}",
            fields.layout
        );
        assert!(pairs > 0);
        tally.assert_unique();
    }
    Ok(())
}
