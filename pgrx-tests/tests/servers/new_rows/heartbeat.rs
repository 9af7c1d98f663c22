//! `snowflake_advance_resolved_id()`: the answer of a server that generates no IDs follows
//! the clock.

use super::{PRINTED_ID, PRINTED_QUERY, builder, insert, resolved_id, server, wait_for_rows};
use crate::support::*;

const LEASE_US: i64 = 2_000_000;
const TICK_US: i64 = 1_000;

/// A server on which no other transaction ends.
fn idle() -> ClusterBuilder {
    builder().movable_clock().conf("autovacuum", "off")
}

/// What a heartbeat returns.
fn advance(client: &mut Client) -> Result<i64> {
    let answer: Option<i64> = client
        .query_one("SELECT snowflake_advance_resolved_id()", &[])?
        .get(0);
    answer.context("no answer")
}

fn plain(client: &mut Client) -> Result<i64> {
    resolved_id(client)?.context("no answer")
}

/// Asserts that a heartbeat returns the present tick.
fn assert_present(server: &Cluster, client: &mut Client) -> Result<i64> {
    let began = server.clock().now_us();
    let answer = advance(client)?;
    let ended = server.clock().now_us();
    let at = DEFAULT.time_us(answer);
    assert!(
        (began - TICK_US..=ended).contains(&at),
        "{} us after the call began, {} us before it ended",
        at - began,
        ended - at
    );
    Ok(answer)
}

#[test]
fn the_first_heartbeat_of_a_database_can_be_read_only_and_any_roles() -> Result<()> {
    let server = server(idle())?;
    let mut owner = server.connect_to_new_database("other")?;
    owner.batch_execute("CREATE ROLE ordinary LOGIN")?;
    let mut ordinary = server.connect_as("ordinary", "other")?;
    ordinary.batch_execute("BEGIN READ ONLY")?;
    assert_present(&server, &mut ordinary)?;
    ordinary.batch_execute("COMMIT")?;
    server.clock().pass(Duration::from_secs(10))?;
    assert_present(&server, &mut owner)?;
    // As the first ID does.
    let recorded = "SELECT count(*) FROM snowflake_internal.accepted_layout";
    owner.answers(recorded, 1)?;
    let id = ids::one(&mut owner)?;
    assert!(DEFAULT.time_us(id) <= server.clock().now_us());
    Ok(())
}

/// Asserts that a heartbeat leaves the answer as it is, at once.
fn assert_unmoved(server: &Cluster, client: &mut Client, what: &str) -> Result<()> {
    // The clock passes the mark. Until then, the answer follows the clock anyway.
    server.clock().pass(Duration::from_secs(10))?;
    let before = plain(client)?;
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(advance(client)?, before, "{what}");
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{what}: {took:?}");
    assert_eq!(plain(client)?, before, "{what}");
    Ok(())
}

#[test]
fn a_heartbeat_returns_the_old_answer_where_ids_are_refused_or_wait() -> Result<()> {
    let server = server(
        idle()
            .conf("snowflake.on_node_conflict", "stop")
            .conf("snowflake.max_wait", "60s"),
    )?;
    let mut client = server.connect()?;
    insert(&mut client, "first")?;
    wait_for_rows(&mut client, &["first"])?;

    let mut blocker = server.connect()?;
    blocker.batch_execute("BEGIN; ALTER SEQUENCE snowflake_internal.mark CACHE 1")?;
    assert_unmoved(&server, &mut client, "a locked mark")?;
    // Also in a session that knows nothing yet.
    assert_unmoved(&server, &mut server.connect()?, "a locked mark")?;
    blocker.batch_execute("ROLLBACK")?;
    assert_present(&server, &mut client)?;

    const STEP: Duration = Duration::from_secs(48 * 3_600);
    server.clock().step(Offset::back(STEP))?;
    client.expect_error("SELECT snowflake_nextval()")?;
    assert_unmoved(&server, &mut client, "the clock set back")?;
    server.clock().step(Offset::forward(STEP))?;
    assert_present(&server, &mut client)?;

    let mut stranger = server.connect()?;
    stranger.batch_execute(
        "CALL snowflake_watch('events'); SET session_replication_role = replica;
         INSERT INTO events (id) VALUES (snowflake_compose(
             snowflake_timestamp(snowflake_nextval()) + interval '100 milliseconds', 1, 9, 0))",
    )?;
    client.answers("SELECT stopped FROM snowflake_status", "t")?;
    assert_unmoved(&server, &mut client, "a node conflict")?;
    stranger.batch_execute("RESET session_replication_role; SELECT snowflake_accept_node_id()")?;
    assert_present(&server, &mut client)?;
    Ok(())
}

/// An hour of the clock, in a full run a second before each poll. With `wal_level = minimal`
/// the server itself writes nothing while it is idle: the same hour without polls is shown to.
/// No cheaper tier sees it: a golden file has the machine's clock, and a log that other
/// sessions write to.
#[test]
fn an_hour_of_polls_writes_nothing() -> Result<()> {
    const HOUR: Duration = Duration::from_secs(3_600);
    let (rounds, polls): (u32, u32) = tier::size((4, 250), (3_600, 1));
    let server = server(
        idle()
            .conf("wal_level", "minimal")
            .conf("max_wal_senders", 0)
            .conf("checkpoint_timeout", "1h")
            .time_limit(Duration::from_secs(900)),
    )?;
    let mut client = server.connect()?;
    client.batch_execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
         INSERT INTO orders (note) SELECT 'before' FROM generate_series(1, 500)",
    )?;
    let last = client.number("SELECT max(id) FROM orders")?;
    let printed = document::block("docs/reading.md", PRINTED_QUERY)?;
    let from = |position: i64| printed.replace(PRINTED_ID, &position.to_string());
    let (from_start, poll) = (from(0), from(last));
    wait::until("the rows to be read", Duration::from_secs(60), || {
        Ok(client.query(&from_start, &[])?.len() == 500)
    })?;
    let position = "SELECT pg_current_wal_insert_lsn()";
    // Whatever a session writes once, such as hints.
    for _ in 0..250 {
        ensure!(client.query(&poll, &[])?.is_empty(), "an unexpected row");
        client.value(position)?;
    }
    let written = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
    let begun = client.number(written)?;
    server.clock().pass(HOUR)?;
    let without = client.number(written)?;
    for _ in 0..rounds {
        server.clock().pass(HOUR / rounds)?;
        for _ in 0..polls {
            ensure!(client.query(&poll, &[])?.is_empty(), "an unexpected row");
        }
    }
    let with = client.number(written)?;
    assert_eq!((without - begun, with - without), (0, 0));
    // It is able to fail: a heartbeat writes.
    advance(&mut client)?;
    assert!(client.number(written)? > with);
    Ok(())
}

/// Five heartbeats a second move the mark about once a second, which is half a lease, and do
/// not carry the IDs ahead of the clock.
#[test]
fn heartbeats_write_once_in_half_a_lease() -> Result<()> {
    let length = Duration::from_secs(tier::size(120, 3_600));
    let server = server(idle().time_limit(Duration::from_secs(900)))?;
    let mut client = server.connect()?;
    insert(&mut client, "first")?;
    advance(&mut client)?;
    let began = server.clock().now_us();
    let end = began + i64::try_from(length.as_micros())?;
    let mark = "SELECT last_value FROM snowflake_internal.mark";
    let (mut beats, mut moves, mut last) = (0, 0, client.number(mark)?);
    while server.clock().now_us() < end {
        server.clock().pass(Duration::from_millis(200))?;
        advance(&mut client)?;
        beats += 1;
        let bound = client.number(mark)?;
        if bound != last {
            assert!(bound > last, "{bound} after {last}");
            let ahead = DEFAULT.time_us(bound) - server.clock().now_us();
            assert!(ahead <= LEASE_US + TICK_US, "reserved {ahead} us ahead");
            moves += 1;
            last = bound;
        }
    }
    let passed = server.clock().now_us() - began;
    assert!(moves <= passed / (LEASE_US / 2) + 2, "{moves} moves");
    // On a slow machine heartbeats are less frequent, and fewer of them are needed.
    assert!(moves >= (passed / LEASE_US).min(beats) - 2, "{moves} moves");
    let id = ids::one(&mut client)?;
    assert!(DEFAULT.time_us(id) <= server.clock().now_us());
    Ok(())
}
