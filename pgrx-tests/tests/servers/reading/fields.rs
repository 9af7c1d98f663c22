//! What an ID shows of the server: its backend and node numbers are those of
//! the session and the setting, a session's IDs grow, the last bits are spread.
//!
//! The last one guards against the fault of the plain algorithm, which
//! restarts its sequence at 0 each tick: at a low rate every ID then ends in
//! 12 zero bits, and a table that is sharded or partitioned by `id % n` puts
//! everything into one part ("only even numbers", in the field's reports).

use std::time::Duration;

use anyhow::Result;
use postgres::Client;
use snowflake_tests::ids::{self, DEFAULT, Fields, assert_increasing, now_us};
use snowflake_tests::{Cluster, tier};

#[test]
fn the_backend_number_is_of_the_pid_and_the_node_number_of_the_setting() -> Result<()> {
    let mut checked = 0;
    for (fields, node) in [
        (DEFAULT, 63_i64),
        (
            Fields {
                layout: "timestamp:38 backend:9 node:3 sequence:13 tick:2ms",
                bits: &[("backend", 9), ("node", 3), ("sequence", 13)],
                tick_us: 2_000,
                epoch: DEFAULT.epoch,
            },
            5,
        ),
        (
            Fields {
                layout: "timestamp:41 sequence:9 node:4 backend:3",
                bits: &[("sequence", 9), ("node", 4), ("backend", 3)],
                tick_us: 1_000,
                epoch: DEFAULT.epoch,
            },
            0,
        ),
    ] {
        let cluster = Cluster::builder()
            .conf("snowflake.node_id", node)
            .conf("snowflake.layout", fields.layout)
            .start_with_extension()?;
        for _ in 0..20 {
            let mut client = cluster.connect()?;
            let pid = ids::backend_pid(&mut client)?;
            let own = i64::from(pid) % fields.values("backend");
            for (number, id) in ids::nextval(&mut client, 50)?.into_iter().enumerate() {
                assert_eq!(fields.field(id, "node"), node, "{id}");
                // The fourth within a tick is in bulk: of slot 0.
                let backend = fields.field(id, "backend");
                assert!(
                    backend == own || backend == 0 && number >= 3,
                    "number {number}, {id}, of PID {pid}"
                );
                // The harness takes IDs apart by itself; the extension agrees.
                let row = client.query_one(
                    "SELECT (extract(epoch FROM created_at) * 1000000)::bigint, node_id::bigint,
                            backend_id::bigint, sequence::bigint FROM snowflake_decode($1)",
                    &[&id],
                )?;
                let decoded: [i64; 4] = std::array::from_fn(|column| row.get(column));
                let sequence = fields.field(id, "sequence");
                assert_eq!(decoded, [fields.time_us(id), node, backend, sequence]);
                checked += 1;
            }
        }
    }
    println!("fields: {checked} IDs of 3 layouts, 60 backends: node and backend as they should be");
    Ok(())
}

#[test]
fn the_ids_of_a_session_grow_and_have_the_time_of_the_clock() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let mut received = Vec::new();
    let statement = client.prepare("SELECT snowflake_nextval()")?;
    for round in 0..500 {
        let before = now_us();
        let id: i64 = client.query_one(&statement, &[])?.get(0);
        let after = now_us();
        // With its fourth ID within a tick the session starts to generate in bulk, in
        // the following tick. One more tick, because two processes read the clock.
        let ticks = tick_of(before) - 1..=tick_of(after) + 2;
        assert!(
            ticks.contains(&DEFAULT.tick(id)),
            "ID {id} of tick {} was generated in the ticks {ticks:?}",
            DEFAULT.tick(id)
        );
        received.push(id);
        if round % 50 == 0 {
            received.extend(ids::fetch(
                &mut client,
                "SELECT * FROM snowflake_nextvals(100)",
            )?);
        }
        let current: i64 = client.query_one("SELECT snowflake_currval()", &[])?.get(0);
        assert_eq!(Some(&current), received.last());
    }
    assert_increasing(&received, "the session");
    println!(
        "fields: {} IDs of one session grow, and their times are the clock's",
        received.len()
    );
    Ok(())
}

/// The tick of the default layout at this time, microseconds since 1970.
fn tick_of(time_us: i64) -> i64 {
    (time_us - DEFAULT.epoch * 1_000_000) / DEFAULT.tick_us
}

/// Between two readings of the clock the processor's counter shows whether the
/// tick has ended. No ID is of an earlier tick than the clock's before the call.
#[test]
fn no_id_is_older_than_the_clock() -> Result<()> {
    let asked: i64 = tier::size(300_000, 2_000_000);
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    // One after the other, as they stand in the select list.
    let row = client.query_one(
        &format!(
            "SELECT count(*), count(*) FILTER (WHERE made < date_trunc('milliseconds', before)),
                    max(before - made)::text
             FROM (SELECT before, snowflake_timestamp(id) AS made
                   FROM (SELECT clock_timestamp() AS before, snowflake_nextval() AS id
                         FROM generate_series(1, {asked}) OFFSET 0) AS calls) AS times"
        ),
        &[],
    )?;
    let (ids, older, most): (i64, i64, String) = (row.get(0), row.get(1), row.get(2));
    println!(
        "fields: {ids} IDs, {older} older than the clock, the oldest by {most} within its tick"
    );
    assert_eq!((ids, older), (asked, 0));
    Ok(())
}

#[test]
fn the_last_bits_are_spread_at_a_low_rate() -> Result<()> {
    const SESSIONS: usize = 16;
    const ROUNDS: usize = 96;
    let cluster = Cluster::with_extension()?;
    let mut clients: Vec<Client> = (0..SESSIONS)
        .map(|_| cluster.connect())
        .collect::<Result<_>>()?;
    let mut counts = [0_usize; 16];
    let mut last_ticks = [i64::MIN; SESSIONS];
    for _ in 0..ROUNDS {
        // At least two ticks between two IDs of a session.
        std::thread::sleep(Duration::from_millis(2));
        for (client, last_tick) in clients.iter_mut().zip(&mut last_ticks) {
            let id = ids::one(client)?;
            counts[usize::try_from(id % 16)?] += 1;
            let tick = DEFAULT.tick(id);
            assert!(tick > *last_tick, "two IDs of a session in tick {tick}");
            *last_tick = tick;
        }
    }
    let expected = (SESSIONS * ROUNDS) as f64 / 16.0;
    let chi_square: f64 = counts
        .iter()
        .map(|&count| (count as f64 - expected).powi(2) / expected)
        .sum();
    println!(
        "fields: {} IDs, at most one a tick and session: id % 16 came {counts:?} times, chi-square {chi_square:.1}",
        SESSIONS * ROUNDS
    );
    // With 15 degrees of freedom, chance alone exceeds 60 once in millions of runs;
    // the plain algorithm gets 23,040.
    assert!(chi_square < 60.0, "id % 16 is not spread: {counts:?}");
    Ok(())
}
