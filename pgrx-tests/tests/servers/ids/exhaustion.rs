//! A sequence that is used up within its tick.
//!
//! Twitter's IdWorker spins until the next millisecond, other generators
//! sleep in the middle of a transaction with a lock held, wrap around (and
//! repeat themselves), or run ahead of the clock without end. Here a burst
//! runs ahead by `max_borrow`, then waits in a way that a DBA can see and
//! end, and a wait that can't succeed isn't begun.

use crate::support::*;

/// 16 IDs for each second and slot: any machine uses them up faster than time
/// passes. A session stays in its slot.
const SLOW: Fields = Fields {
    layout: "timestamp:32 node:6 sequence:4 backend:4 tick:1s",
    bits: &[("node", 6), ("sequence", 4), ("backend", 4)],
    tick_us: 1_000_000,
    ..DEFAULT
};

/// How far ahead of the clock sessions are whose next ID has to be waited for: for
/// longer than any test takes.
const AHEAD: i64 = 600;

fn cluster(fields: &Fields, max_borrow: &str) -> Result<Cluster> {
    Cluster::node(1)
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

#[test]
fn a_wait_bound_to_be_too_long_fails_at_once() -> Result<()> {
    let cluster = cluster(&SLOW, "1h")?;
    let mut client = cluster.connect()?;
    let last = run_ahead(&cluster, &mut client)?;
    for max_wait in ["0", "5ms", "5s"] {
        client.batch_execute(&format!("SET snowflake.max_wait = '{max_wait}'"))?;
        let refused = client.refused("SELECT snowflake_nextval()", "58000")?;
        assert!(!refused.detail.is_empty(), "no DETAIL: {refused}");
        assert!(!refused.hint.is_empty(), "no HINT: {refused}");
        client.refused("SELECT * FROM snowflake_nextvals(100)", "58000")?;
    }
    client.answers("SELECT waits FROM snowflake_status", 0)?;
    // The refusals changed nothing.
    cluster.set_conf("snowflake.max_borrow", "1h")?;
    cluster.reload()?;
    assert!(ids::one(&mut client)? > last);
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
        let refused = client.expect_error(statement)?;
        let took = begun.elapsed();
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
        let refused = std::thread::scope(|scope| -> Result<_> {
            let waiter = scope.spawn(|| client.simple_query("SELECT snowflake_nextval()").err());
            wait_event(&mut other, Some(pid))?;
            other.query(&format!("SELECT {ender}($1)"), &[&pid])?;
            let refused = waiter.join().expect("the waiting session's thread");
            let error = refused.context("the wait came to an end by itself")?;
            // The server hangs up after it said why, which the client may see first.
            Ok(if sqlstate == "57P01" && error.is_closed() {
                format!("{sqlstate}: the connection is closed")
            } else {
                ServerError::from_error(error)?.to_string()
            })
        })?;
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
        wait_event(&mut other, Some(pid))?;
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
            client.refused(statement, "2200H")?;
        }
    }
    Ok(())
}
