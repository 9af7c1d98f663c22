//! A sequence that is used up within its tick.
//!
//! Twitter's IdWorker spins until the next millisecond, other generators
//! sleep in the middle of a transaction with a lock held, wrap around (and
//! repeat themselves), or run ahead of the clock without end. Here a burst
//! runs ahead by `max_borrow`, then waits in a way that a DBA can see and
//! end, and a wait that can't succeed isn't begun.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::{self, DEFAULT, Fields, assert_increasing};
use snowflake_tests::query::{number, text};
use snowflake_tests::server_error::{ServerError, expect_error};
use snowflake_tests::{Cluster, tier, wait};

use crate::support::refused;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// 16 IDs for each second and slot: any machine uses them up faster than time
/// passes. A session stays in its slot.
const SLOW: Fields = Fields {
    layout: "timestamp:32 node:6 sequence:4 backend:4 tick:1s",
    bits: &[("node", 6), ("sequence", 4), ("backend", 4)],
    tick_us: 1_000_000,
    ..DEFAULT
};

/// The same for each 10 ms, where time has to pass by itself.
const TEN_MS: Fields = Fields {
    layout: "timestamp:38 node:6 sequence:4 backend:4 tick:10ms",
    bits: SLOW.bits,
    tick_us: 10_000,
    ..DEFAULT
};

/// How far ahead of the clock sessions are whose next ID has to be waited for: for
/// longer than any test takes.
const AHEAD: i64 = 600;

fn cluster(fields: &Fields, max_borrow: &str) -> Result<Cluster> {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", fields.layout)
        .conf("snowflake.max_borrow", max_borrow)
        .movable_clock()
        .start_with_extension()
}

/// Takes IDs in this session until its slot is [`AHEAD`] of the clock, and then allows
/// none to be ahead. Returns the last one.
fn run_ahead(cluster: &Cluster, client: &mut Client) -> Result<i64> {
    cluster.set_conf("snowflake.max_borrow", "1h")?;
    cluster.reload()?;
    let last = loop {
        let ids = ids::nextval(client, 1_600)?;
        let last = *ids.last().context("no IDs")?;
        if SLOW.time_us(last) - cluster.clock().now_us() >= AHEAD * 1_000_000 {
            break last;
        }
    };
    cluster.set_conf("snowflake.max_borrow", 0)?;
    cluster.reload()?;
    Ok(last)
}

/// Waits until a session waits in the extension, and returns the wait event that
/// `pg_stat_activity` shows.
fn wait_event(observer: &mut Client, pid: i32) -> Result<String> {
    let query = format!(
        "SELECT (SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity
                 WHERE pid = {pid} AND state = 'active' AND wait_event_type = 'Extension')"
    );
    let mut event = None;
    wait::until("the session to wait", PATIENCE, || {
        event = text(observer, &query)?;
        Ok(event.is_some())
    })?;
    event.context("no wait event")
}

#[test]
fn a_burst_runs_ahead_by_max_borrow_and_then_waits() -> Result<()> {
    // Two ticks more than the clock's own and the 50 that can be borrowed.
    const IDS: usize = 53 * 16;
    let cluster = cluster(&SLOW, "50s")?;
    let mut clients = Vec::new();
    // A session that the machine leaves no time for seconds may not get as far ahead
    // as it could; then another one tries, in a slot of its own.
    for attempt in 1.. {
        let mut client = cluster.connect()?;
        let begun = Instant::now();
        // How far each was ahead when it was made; OFFSET 0 keeps the calls apart.
        client.batch_execute(&format!(
            "CREATE TEMP TABLE burst AS
             SELECT id, extract(epoch FROM snowflake_timestamp(id) - clock_timestamp()) * 1000 AS lead
             FROM (SELECT snowflake_nextval() AS id FROM generate_series(1, {IDS}) OFFSET 0) AS made"
        ))?;
        let took = begun.elapsed();
        let made: Vec<(i64, f64)> = client
            .query("SELECT id, lead::float8 FROM burst ORDER BY ctid", &[])?
            .iter()
            .map(|row| (row.get(0), row.get(1)))
            .collect();
        let received: Vec<i64> = made.iter().map(|&(id, _)| id).collect();
        assert_increasing(&received, "the burst");
        let most = made.iter().map(|&(_, lead)| lead).fold(f64::MIN, f64::max);
        let tick = |id| SLOW.tick(id);
        let used = tick(received[IDS - 1]) - tick(received[0]);
        println!(
            "exhaustion: {IDS} IDs at 16 a second in {} ms, at most {most:.0} ms ahead with max_borrow = 50s, {used} ticks",
            took.as_millis()
        );
        assert!(most <= 50_000.0, "{most} ms ahead");
        // 53 ticks are needed, 50 can be borrowed, and no more.
        assert!(took >= Duration::from_millis(990), "{took:?}");
        assert!(used >= 52, "{used} ticks");
        // A tick was left only when it was used up or time had passed it.
        for pair in made.windows(2) {
            let [(before, _), (after, lead)] = [pair[0], pair[1]];
            let used_up = SLOW.field(before, "sequence") == 15;
            let continues = tick(after) == tick(before) + i64::from(used_up);
            assert!(continues || lead <= 1.0, "{before} and then {after}");
        }
        clients.push(client);
        if most >= 45_000.0 {
            break;
        }
        assert!(attempt < 5, "never as far ahead as it could be");
    }
    Ok(())
}

#[test]
fn without_borrowing_no_id_is_ahead_of_the_clock() -> Result<()> {
    let cluster = cluster(&TEN_MS, "0")?;
    let mut client = cluster.connect()?;
    let mut received = Vec::new();
    let begun = Instant::now();
    for _ in 0..8 {
        ids::fetch_into(
            &mut client,
            "SELECT snowflake_nextval() FROM generate_series(1, 40)",
            &mut received,
        )?;
        let lead = TEN_MS.lead_ms(received[received.len() - 1]);
        assert!(lead <= 0, "{lead} ms ahead of the clock");
    }
    let took = begun.elapsed();
    assert_increasing(&received, "the session");
    assert!(took >= Duration::from_millis(180), "320 IDs in {took:?}");
    println!(
        "exhaustion: max_borrow = 0: {} IDs in {} ms, none ahead of the clock",
        received.len(),
        took.as_millis()
    );

    // The strict generator: neither ahead nor late.
    client.batch_execute("SET snowflake.max_wait = 0")?;
    let refused = expect_error(
        &mut client,
        "SELECT count(snowflake_nextval()) FROM generate_series(1, 2000)",
    )?;
    assert_eq!(refused.sqlstate, "58000", "{refused}");
    // The next tick.
    std::thread::sleep(Duration::from_millis(20));
    let next = ids::one(&mut client)?;
    assert!(next > received[received.len() - 1]);
    println!("exhaustion: with max_wait = 0 as well: {refused}");
    Ok(())
}

#[test]
fn a_wait_bound_to_be_too_long_fails_at_once() -> Result<()> {
    let cluster = cluster(&SLOW, "1h")?;
    let mut client = cluster.connect()?;
    let last = run_ahead(&cluster, &mut client)?;
    for max_wait in ["0", "5ms", "5s"] {
        client.batch_execute(&format!("SET snowflake.max_wait = '{max_wait}'"))?;
        let refused = refused(&mut client, "SELECT snowflake_nextval()", "58000")?;
        println!("exhaustion: max_wait = {max_wait}, some minutes to wait: {refused}");
        assert!(!refused.detail.is_empty(), "no DETAIL: {refused}");
        assert!(!refused.hint.is_empty(), "no HINT: {refused}");
        self::refused(
            &mut client,
            "SELECT * FROM snowflake_nextvals(100)",
            "58000",
        )?;
    }
    let waits = number(&mut client, "SELECT waits FROM snowflake_status")?;
    assert_eq!(waits, 0, "a call has waited before it was refused");
    // The refusals changed nothing.
    cluster.set_conf("snowflake.max_borrow", "1h")?;
    cluster.reload()?;
    assert!(ids::one(&mut client)? > last);
    Ok(())
}

#[test]
fn a_wait_ends_when_time_has_caught_up() -> Result<()> {
    let cluster = cluster(&SLOW, "1h")?;
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    let last = run_ahead(&cluster, &mut client)?;
    client.batch_execute(PATIENT)?;
    let mut observer = cluster.connect()?;
    let clock = cluster.clock();
    let next = std::thread::scope(|scope| -> Result<i64> {
        let waiter = scope.spawn(|| ids::one(&mut client));
        wait_event(&mut observer, pid)?;
        // Half the time is not enough.
        clock.step(Offset::forward(Duration::from_secs(300)))?;
        std::thread::sleep(Duration::from_millis(300));
        ensure!(!waiter.is_finished(), "the wait ended too early");
        wait_event(&mut observer, pid)?;
        clock.step(Offset::forward(Duration::from_secs(3_600)))?;
        waiter.join().expect("the waiting session's thread")
    })?;
    let lead = (SLOW.time_us(next) - clock.now_us()) / 1_000;
    println!("exhaustion: a wait ended when the clock had caught up; the ID is {lead} ms ahead");
    assert!(next > last, "{next} came after {last}");
    assert!(lead <= 0, "{lead} ms ahead");
    Ok(())
}

/// Lets a session wait for longer than any test takes.
const PATIENT: &str = "SET snowflake.max_wait = '2h'; SET statement_timeout = 0";

/// A session whose next ID has to be waited for, and its process.
fn waiting(cluster: &Cluster) -> Result<(Client, i32)> {
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    run_ahead(cluster, &mut client)?;
    client.batch_execute(PATIENT)?;
    Ok((client, pid))
}

#[test]
fn a_timeout_and_a_cancel_end_a_wait_at_once() -> Result<()> {
    let cluster = cluster(&SLOW, "1h")?;
    let (mut client, pid) = waiting(&cluster)?;

    let timeout = Duration::from_millis(300);
    client.batch_execute("SET statement_timeout = '300ms'")?;
    for statement in [
        "SELECT snowflake_nextval()",
        "SELECT * FROM snowflake_nextvals(40)",
    ] {
        let begun = Instant::now();
        let refused = expect_error(&mut client, statement)?;
        let took = begun.elapsed();
        println!(
            "exhaustion: statement_timeout = 300ms ended a wait after {:.1} ms: {refused}",
            took.as_secs_f64() * 1e3
        );
        assert_eq!(refused.sqlstate, "57014", "{refused}");
        assert!(took >= timeout, "{took:?}");
    }
    client.batch_execute("SET statement_timeout = 0")?;

    // Without them, the wait would be longer than the test may take.
    let mut other = cluster.connect()?;
    for (ender, sqlstate) in [
        ("pg_cancel_backend", "57014"),
        ("pg_terminate_backend", "57P01"),
    ] {
        let (refused, event) = std::thread::scope(|scope| -> Result<_> {
            let waiter = scope.spawn(|| client.simple_query("SELECT snowflake_nextval()").err());
            let event = wait_event(&mut other, pid)?;
            other.query(&format!("SELECT {ender}($1)"), &[&pid])?;
            let refused = waiter.join().expect("the waiting session's thread");
            let error = refused.context("the wait came to an end by itself")?;
            // The server hangs up after it said why, which the client may see first.
            let refused = if sqlstate == "57P01" && error.is_closed() {
                format!("{sqlstate}: the connection is closed")
            } else {
                ServerError::from_error(error)?.to_string()
            };
            Ok((refused, event))
        })?;
        println!("exhaustion: {ender} ended a wait (wait event {event}): {refused}");
        assert!(refused.starts_with(sqlstate), "{refused}");
    }
    assert!(
        client.batch_execute("SELECT 1").is_err(),
        "the session still answers"
    );
    Ok(())
}

/// A waiting session must not hold up the others: it waits outside any lock.
#[test]
fn a_waiting_session_holds_up_no_other() -> Result<()> {
    let cluster = cluster(&SLOW, "1h")?;
    let (mut client, pid) = waiting(&cluster)?;
    // One on a slot of its own: the waiting session's is as far ahead for all.
    let mut others = Vec::new();
    let mut other = loop {
        let mut client = cluster.connect()?;
        if ids::backend_pid(&mut client)? % 16 != pid % 16 {
            break client;
        }
        others.push(client);
    };
    std::thread::scope(|scope| -> Result<()> {
        let waiter = scope.spawn(|| client.simple_query("SELECT snowflake_nextval()").is_err());
        wait_event(&mut other, pid)?;
        // A tick's IDs, for which it waits a second at most itself.
        let ids = ids::nextval(&mut other, 16)?;
        assert_increasing(&ids, "the other session");
        assert!(!waiter.is_finished(), "the session does not wait any more");
        other.query("SELECT pg_cancel_backend($1)", &[&pid])?;
        assert!(waiter.join().expect("the waiting session's thread"));
        println!("exhaustion: a tick's IDs beside a session that waits");
        Ok(())
    })
}

const TWITTER: &[(&str, u32)] = &[("node", 5), ("backend", 5), ("sequence", 12)];
const TEN_TWELVE: &[(&str, u32)] = &[("node", 10), ("sequence", 12)];

/// Name, fields, tick in microseconds, epoch in milliseconds (two of them fall
/// within a second).
type Preset = (&'static str, &'static [(&'static str, u32)], i64, i64);

#[rustfmt::skip]
const PRESETS: &[Preset] = &[
    ("default", ids::DEFAULT.bits, 1_000, ids::DEFAULT.epoch * 1_000),
    ("twitter", TWITTER, 1_000, 1_288_834_974_657),
    ("discord", TWITTER, 1_000, 1_420_070_400_000),
    ("instagram", &[("node", 13), ("sequence", 10)], 1_000, 1_314_220_021_721),
    ("sonyflake", &[("sequence", 8), ("node", 16)], 10_000, 1_409_529_600_000),
    ("tsid", TEN_TWELVE, 1_000, 1_577_836_800_000),
    ("mastodon", &[("sequence", 16)], 1_000, 0),
    ("clickhouse", TEN_TWELVE, 1_000, 0),
    ("pgedge", TEN_TWELVE, 1_000, 1_672_531_200_000),
    ("ipv4", &[("node", 24), ("sequence", 11)], 1_000_000, ids::DEFAULT.epoch * 1_000),
    ("game", &[("node", 20), ("sequence", 12)], 1_000_000, ids::DEFAULT.epoch * 1_000),
    ("js53", &[("node", 5), ("sequence", 10)], 10_000, ids::DEFAULT.epoch * 1_000),
];

/// Those that one server has one after another: with IDs that grow, of different
/// fields, ticks and epochs.
const ONE_AFTER_ANOTHER: [&str; 3] = ["js53", "sonyflake", "twitter"];

/// A server of node 17, or of none, on which a preset is used.
fn generates_ids(cluster: &Cluster, preset: &Preset) -> Result<()> {
    let &(layout, bits, tick_us, epoch_ms) = preset;
    let has_node = bits.iter().any(|&(field, _)| field == "node");
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    let received = ids::nextval(&mut client, 1_000)?;
    assert_increasing(&received, layout);
    let fields = Fields {
        layout,
        bits,
        tick_us,
        epoch: 0,
    };
    // The first one: the later ones are in bulk.
    let backend = fields.field(received[0], "backend");
    let expected = i64::from(pid) % fields.values("backend");
    assert_eq!(backend, expected, "{layout}: {}", received[0]);
    let now = ids::now_us() - epoch_ms * 1_000;
    for &id in &received {
        assert!(id > 0);
        let node = if has_node { 17 } else { 0 };
        assert_eq!(fields.field(id, "node"), node, "{layout}: {id}");
        // At most `max_borrow` ahead, and its tick may have begun a while ago.
        let ahead = fields.tick(id) * tick_us - now;
        assert!(
            (-300_000_000..=1_000_000).contains(&ahead),
            "{layout}: {id} is {ahead} us ahead"
        );
    }
    if layout == "js53" {
        assert!(received[999] < 1 << 53);
    }
    println!(
        "exhaustion: preset {layout}: 1,000 IDs, the last is {}",
        received[999]
    );
    Ok(())
}

/// The presets themselves are proved by the crate's tests: here three, in a full run
/// all of them.
#[test]
fn presets_whose_time_is_not_over_generate_ids() -> Result<()> {
    let mut cluster = Cluster::builder().conf("snowflake.node_id", 17).prepare()?;
    for layout in ONE_AFTER_ANOTHER {
        cluster.set_conf("snowflake.layout", layout)?;
        if cluster.is_running() {
            cluster.restart()?;
        } else {
            cluster.start()?;
        }
        cluster
            .connect()?
            .batch_execute("CREATE EXTENSION IF NOT EXISTS snowflake")?;
        let preset = PRESETS.iter().find(|preset| preset.0 == layout);
        generates_ids(&cluster, preset.context("no such preset")?)?;
    }
    if !tier::is_full() {
        return Ok(());
    }
    for preset in PRESETS {
        let mut builder = Cluster::builder().conf("snowflake.layout", preset.0);
        if preset.1.iter().any(|&(field, _)| field == "node") {
            builder = builder.conf("snowflake.node_id", 17);
        }
        generates_ids(&builder.start_with_extension()?, preset)?;
    }
    Ok(())
}

#[test]
fn a_layout_whose_time_is_over_or_not_begun_refuses() -> Result<()> {
    for layout in [
        // Baidu's 28 bits of seconds since 2016 ended in November 2024.
        "uid-generator",
        "timestamp:41 node:6 sequence:12 epoch:2200-01-01T00:00:00Z",
    ] {
        let cluster = Cluster::builder()
            .conf("snowflake.layout", layout)
            .conf("snowflake.node_id", 1)
            .start_with_extension()?;
        let mut client = cluster.connect()?;
        for statement in [
            "SELECT snowflake_nextval()",
            "SELECT * FROM snowflake_nextvals(10)",
        ] {
            let refused = refused(&mut client, statement, "2200H")?;
            println!("exhaustion: layout \"{layout}\": {refused}");
        }
    }
    Ok(())
}
