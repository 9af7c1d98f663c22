//! A sequence that is used up within its tick.
//!
//! Twitter's IdWorker spins until the next millisecond, other generators
//! sleep in the middle of a transaction with a lock held, wrap around (and
//! repeat themselves), or run ahead of the clock without end. Here a burst
//! runs ahead by `max_borrow`, then waits in a way that a DBA can see and
//! end, and a wait that can't succeed isn't begun.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::ids::{self, Fields, SHORT_SEQUENCE, assert_increasing};
use snowflake_tests::server_error::{ServerError, expect_error};

use crate::support::{refused, wait_event};

/// A cancel, a timeout or a refusal is at once if it takes less than this: a
/// few milliseconds, and what a busy machine makes of them. What is not at once
/// takes as long as the wait, or `max_wait`: five seconds or more.
const AT_ONCE: Duration = Duration::from_secs(2);

fn cluster(max_borrow: &str) -> Result<Cluster> {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", SHORT_SEQUENCE.layout)
        .conf("snowflake.max_borrow", max_borrow)
        .start_with_extension()
}

/// Takes IDs in this session until its slot is `seconds` ahead of the clock;
/// needs a `max_borrow` that allows it. Returns the last one.
fn run_ahead(client: &mut Client, seconds: i64) -> Result<i64> {
    loop {
        let ids = ids::nextval(client, 16_000)?;
        let last = *ids.last().context("no IDs")?;
        if SHORT_SEQUENCE.lead_ms(last) >= seconds * 1_000 {
            return Ok(last);
        }
    }
}

#[test]
fn a_burst_runs_ahead_by_max_borrow_and_then_waits() -> Result<()> {
    const IDS: usize = 24_000;
    let cluster = cluster("1s")?;
    let mut client = cluster.connect()?;
    // A session that the machine leaves no time may not get as far ahead as it
    // could; then it tries again.
    for attempt in 1.. {
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
        let tick = |id| SHORT_SEQUENCE.tick(id);
        let used = tick(received[IDS - 1]) - tick(received[0]);
        println!(
            "exhaustion: {IDS} IDs at 16 a ms in {} ms, at most {most:.0} ms ahead with max_borrow = 1s, {used} ticks",
            took.as_millis()
        );
        assert!(most <= 1_000.0, "{most} ms ahead");
        // 1,500 ticks are needed, 1,000 can be borrowed, and no more.
        assert!(took >= Duration::from_millis(490), "{took:?}");
        assert!(used >= 1_499, "{used} ticks");
        // A tick was left only when it was used up or time had passed it.
        for pair in made.windows(2) {
            let [(before, _), (after, lead)] = [pair[0], pair[1]];
            let used_up = SHORT_SEQUENCE.field(before, "sequence") == 15;
            let goes_on = tick(after) == tick(before) + i64::from(used_up);
            assert!(goes_on || lead <= 1.0, "{before} and then {after}");
        }
        if most >= 900.0 && took < Duration::from_secs(3) {
            break;
        }
        assert!(attempt < 5, "never as far ahead as it could be");
        client.batch_execute("DROP TABLE burst")?;
        std::thread::sleep(Duration::from_millis(1_100));
    }
    Ok(())
}

#[test]
fn without_borrowing_no_id_is_ahead_of_the_clock() -> Result<()> {
    let cluster = cluster("0")?;
    let mut client = cluster.connect()?;
    let mut received = Vec::new();
    let begun = Instant::now();
    for _ in 0..80 {
        ids::fetch_into(
            &mut client,
            "SELECT snowflake_nextval() FROM generate_series(1, 40)",
            &mut received,
        )?;
        let lead = SHORT_SEQUENCE.lead_ms(received[received.len() - 1]);
        assert!(lead <= 0, "{lead} ms ahead of the clock");
    }
    let took = begun.elapsed();
    assert_increasing(&received, "the session");
    assert!(took >= Duration::from_millis(195), "3,200 IDs in {took:?}");
    println!(
        "exhaustion: max_borrow = 0: {} IDs in {} ms, none ahead of the clock",
        received.len(),
        took.as_millis()
    );

    // The strict generator: neither ahead nor late.
    client.batch_execute("SET snowflake.max_wait = 0")?;
    let begun = Instant::now();
    let refused = expect_error(
        &mut client,
        "SELECT count(snowflake_nextval()) FROM generate_series(1, 2000)",
    )?;
    let took = begun.elapsed();
    assert_eq!(refused.sqlstate, "58000", "{refused}");
    assert!(took < AT_ONCE, "{took:?}");
    std::thread::sleep(Duration::from_millis(3));
    let next = ids::one(&mut client)?;
    assert!(next > received[received.len() - 1]);
    println!("exhaustion: with max_wait = 0 as well: {refused}");
    Ok(())
}

#[test]
fn a_wait_bound_to_be_too_long_fails_at_once() -> Result<()> {
    let cluster = cluster("1min")?;
    let mut client = cluster.connect()?;
    let last = run_ahead(&mut client, 20)?;
    cluster.set_conf("snowflake.max_borrow", 0)?;
    cluster.reload()?;
    for max_wait in ["0", "5ms", "5s"] {
        client.batch_execute(&format!("SET snowflake.max_wait = '{max_wait}'"))?;
        let begun = Instant::now();
        let refused = refused(&mut client, "SELECT snowflake_nextval()", "58000")?;
        let took = begun.elapsed();
        println!(
            "exhaustion: max_wait = {max_wait}, some 18 s to wait, refused after {:.1} ms: {refused}",
            took.as_secs_f64() * 1e3
        );
        assert!(!refused.detail.is_empty(), "no DETAIL: {refused}");
        assert!(!refused.hint.is_empty(), "no HINT: {refused}");
        assert!(took < AT_ONCE, "{took:?}");
        self::refused(
            &mut client,
            "SELECT * FROM snowflake_nextvals(100)",
            "58000",
        )?;
    }
    // The refusals changed nothing.
    cluster.set_conf("snowflake.max_borrow", "1min")?;
    cluster.reload()?;
    assert!(ids::one(&mut client)? > last);
    Ok(())
}

#[test]
fn a_wait_ends_when_time_has_caught_up() -> Result<()> {
    let cluster = cluster("1min")?;
    let mut client = cluster.connect()?;
    client.batch_execute("SET snowflake.max_wait = '30s'")?;
    let last = run_ahead(&mut client, 6)?;
    cluster.set_conf("snowflake.max_borrow", 0)?;
    cluster.reload()?;
    let lead = SHORT_SEQUENCE.lead_ms(last);
    assert!(lead > 500, "nothing left to wait for: {lead} ms");
    let begun = Instant::now();
    let next = ids::one(&mut client)?;
    let took = i64::try_from(begun.elapsed().as_millis())?;
    println!("exhaustion: {lead} ms ahead of a clock without borrowing, waited {took} ms");
    assert!(next > last);
    assert!(SHORT_SEQUENCE.lead_ms(next) <= 0);
    assert!((lead - 2..lead + 5_000).contains(&took));
    Ok(())
}

/// A session whose next ID has to be waited for half a minute.
fn waiting(cluster: &Cluster) -> Result<(Client, i32)> {
    cluster.set_conf("snowflake.max_borrow", "1min")?;
    cluster.reload()?;
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    run_ahead(&mut client, 30)?;
    cluster.set_conf("snowflake.max_borrow", 0)?;
    cluster.reload()?;
    client.batch_execute("SET snowflake.max_wait = '5min'")?;
    Ok((client, pid))
}

#[test]
fn a_timeout_and_a_cancel_end_a_wait_at_once() -> Result<()> {
    let cluster = cluster("1min")?;
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
        assert!(took >= timeout && took < timeout + AT_ONCE, "{took:?}");
    }
    client.batch_execute("SET statement_timeout = 0")?;

    let mut other = cluster.connect()?;
    for (ender, sqlstate) in [
        ("pg_cancel_backend", "57014"),
        ("pg_terminate_backend", "57P01"),
    ] {
        let (refused, took, event) = std::thread::scope(|scope| -> Result<_> {
            let waiter = scope.spawn(|| {
                let refused = client.simple_query("SELECT snowflake_nextval()").err();
                (refused, Instant::now())
            });
            let event = wait_event(&mut other, Some(pid))?;
            let begun = Instant::now();
            other.query(&format!("SELECT {ender}($1)"), &[&pid])?;
            let (refused, ended) = waiter.join().expect("the waiting session's thread");
            let error = refused.context("the wait came to an end by itself")?;
            // The server hangs up after it said why, which the client may see first.
            let refused = if sqlstate == "57P01" && error.is_closed() {
                format!("{sqlstate}: the connection is closed")
            } else {
                ServerError::from_error(error)?.to_string()
            };
            Ok((refused, ended.saturating_duration_since(begun), event))
        })?;
        println!(
            "exhaustion: {ender} ended a wait (wait event {event}) after {:.1} ms: {refused}",
            took.as_secs_f64() * 1e3
        );
        assert!(refused.starts_with(sqlstate), "{refused}");
        assert!(took < AT_ONCE, "{took:?}");
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
    let cluster = cluster("1min")?;
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
        wait_event(&mut other, Some(pid))?;
        let begun = Instant::now();
        let ids = ids::nextval(&mut other, 320)?;
        let took = begun.elapsed();
        assert_increasing(&ids, "the other session");
        assert!(took < Duration::from_millis(20) + AT_ONCE, "{took:?}");
        other.query("SELECT pg_cancel_backend($1)", &[&pid])?;
        assert!(waiter.join().expect("the waiting session's thread"));
        println!(
            "exhaustion: 320 IDs in {} ms beside a session that waits",
            took.as_millis()
        );
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

#[test]
fn presets_whose_time_is_not_over_generate_ids() -> Result<()> {
    for &(layout, bits, tick_us, epoch_ms) in PRESETS {
        let mut builder = Cluster::builder().conf("snowflake.layout", layout);
        let has_node = bits.iter().any(|&(field, _)| field == "node");
        if has_node {
            builder = builder.conf("snowflake.node_id", 17);
        }
        let cluster = builder.start_with_extension()?;
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
                (-5_000_000..=1_000_000).contains(&ahead),
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
