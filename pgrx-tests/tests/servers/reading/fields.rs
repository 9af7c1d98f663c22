//! What an ID shows of the server: its backend and node numbers are those of the session and the
//! setting, and its time is not before the clock's. The crate's tests show how the last bits are
//! spread, the simulator that a session's IDs grow.

use crate::support::*;

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
        let cluster = Cluster::node(node)
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
