//! What a call of `snowflake_resolved_id()` takes, with many connections.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::measure::{Samples, in_turn};
use crate::report::{Block, Table, spread, three};
use crate::run::Run;

/// Connections beside the one that calls. Half of them are in a transaction with an ID.
const CONNECTIONS: [usize; 3] = [0, 100, 1_000];

/// The calls, and how often each is made in a round.
const CALLS: [(&str, &str); 3] = [
    ("a constant function", "pg_backend_pid()"),
    (
        "core: `pg_current_snapshot()`",
        "pg_current_snapshot()::text",
    ),
    ("`snowflake_resolved_id()`", "snowflake_resolved_id()::text"),
];
const TIMES: u32 = 2_000;

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    Duration::from_millis(300) * (CONNECTIONS.len() * CALLS.len() * run.scale().rounds) as u32
        + Duration::from_secs(20)
}

/// What it shows.
pub fn blocks(run: &Run) -> Result<Vec<Block>> {
    let server = run.with_settings(&[("max_connections", "1100")])?;
    let mut others = Vec::new();
    let mut client = server.connect()?;
    let mut head = vec!["µs a call".to_owned()];
    let mut columns: Vec<Vec<Samples>> = Vec::new();
    for count in CONNECTIONS {
        run.progress().step(format_args!("{count} connections"));
        while others.len() < count {
            let mut other = server.connect()?;
            if others.len() % 2 == 0 {
                other.batch_execute("BEGIN; SELECT snowflake_nextval()")?;
            }
            others.push(other);
        }
        head.push(format!("{count} other connections"));
        let statements = CALLS
            .iter()
            .map(|(_, call)| client.prepare(&format!("SELECT {call}")))
            .collect::<Result<Vec<_>, _>>()?;
        let places: Vec<usize> = (0..CALLS.len()).collect();
        let samples = in_turn(
            &[()],
            &places,
            1,
            |_| run.scale().rounds,
            |(), place, _| {
                let begun = Instant::now();
                for _ in 0..TIMES {
                    client.query_one(&statements[place], &[])?;
                }
                Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES))
            },
        )?
        .remove(0);
        columns.push(samples);
    }
    let mut table = Table::of(head);
    for (place, (name, _)) in CALLS.iter().enumerate() {
        let mut row = vec![(*name).to_owned()];
        row.extend(columns.iter().map(|column| spread(&column[place], three)));
        table.row(&row);
    }
    Ok(vec![
        Block::Text(format!(
            "**The call.** One session executes a prepared statement {TIMES} times a round, including the round trip. Half of the other \
             connections are in a transaction that has generated an ID; each of these is looked at."
        )),
        Block::Table(table),
    ])
}
