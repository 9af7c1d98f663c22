//! What tests of several servers share: sessions that write while servers end and
//! start, and the comparison of what arrived.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::{Client, Config, NoTls};
use snowflake_tests::ids::{Tally, grouped};
use snowflake_tests::query::{number, value};
use snowflake_tests::{Server, wait};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(180);

/// The table of every part. A place is the server that wrote the row.
pub(crate) const TABLE: &str = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), place int, note text, version int DEFAULT 0)";

/// A subscription on `to` of the publication `publication` on `from`.
pub(crate) fn subscribe(
    to: &Server,
    from: &Server,
    publication: &str,
    options: &str,
) -> Result<()> {
    let statement = format!(
        "CREATE SUBSCRIPTION of_{publication} CONNECTION 'host={} port={} user=postgres dbname=postgres' \
         PUBLICATION {publication} {options}",
        from.sockets().display(),
        from.port()
    );
    to.connect()?.batch_execute(&statement).context(statement)
}

/// What a session writes in each round, with the IDs of the rows; `$1` is the place.
const STATEMENTS: [&str; 3] = [
    "INSERT INTO orders (place, note) VALUES ($1, 'one') RETURNING id",
    "INSERT INTO orders (place, note) SELECT $1, 'of 20' FROM generate_series(1, 20) RETURNING id",
    "UPDATE orders SET version = version + 1
     WHERE id = (SELECT max(id) FROM orders WHERE place = $1) RETURNING id",
];

/// Writes until `end` is set, through every end and start of the server. Returns the
/// IDs of inserted rows whose commit was acknowledged, and how often a statement failed.
pub(crate) fn write(server: &Config, place: i32, end: &AtomicBool) -> Result<(Vec<i64>, usize)> {
    let mut ids = Vec::new();
    let mut failures = 0;
    'sessions: while !end.load(Relaxed) {
        let Ok(mut client) = server.connect(NoTls) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !end.load(Relaxed) {
            for statement in STATEMENTS {
                match client.query(statement, &[&place]) {
                    Ok(rows) if statement.starts_with("INSERT") => {
                        ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
                    }
                    Ok(_) => {}
                    // The server has ended, or this session was ended with it.
                    Err(error) if is_end_of_server(&error) => {
                        failures += 1;
                        continue 'sessions;
                    }
                    Err(error) => return Err(error).context(statement),
                }
            }
        }
    }
    Ok((ids, failures))
}

fn is_end_of_server(error: &postgres::Error) -> bool {
    error.is_closed()
        || error.code().is_none()
        || error
            .code()
            .is_some_and(|code| matches!(code.code(), "57P01" | "57P02" | "57P03"))
}

/// The number of rows of the table, and a checksum of all of them.
pub(crate) fn checksum(client: &mut Client) -> Result<String> {
    value(
        client,
        "SELECT count(*) || ' rows ' || coalesce(sum(hashtextextended(o::text, 0)::numeric), 0) FROM orders AS o",
    )
}

/// Waits until the servers have the same rows, and returns how many.
pub(crate) fn same_rows(servers: &[&Server]) -> Result<u64> {
    let begun = Instant::now();
    let mut clients = servers
        .iter()
        .map(|server| server.connect())
        .collect::<Result<Vec<_>>>()?;
    loop {
        let sums = clients
            .iter_mut()
            .map(checksum)
            .collect::<Result<HashSet<_>>>()?;
        if sums.len() == 1 {
            return Ok(number(&mut clients[0], "SELECT count(*) FROM orders")? as u64);
        }
        ensure!(begun.elapsed() < TIMEOUT, "the rows still differ: {sums:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Asserts that acknowledged IDs are distinct and that each is the key of a row.
pub(crate) fn assert_kept(acknowledged: Vec<i64>, client: &mut Client) -> Result<()> {
    let rows: HashSet<i64> = client
        .query("SELECT id FROM orders", &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|&id| !rows.contains(id))
        .take(5)
        .collect();
    ensure!(lost.is_empty(), "acknowledged rows are lost: {lost:?}");
    let tally = Tally::of(acknowledged);
    println!("{tally}, each the key of a row");
    tally.assert_unique();
    Ok(())
}

/// Asserts that no server took another one for a second one with its number.
pub(crate) fn assert_no_conflict(servers: &[&Server]) -> Result<()> {
    for server in servers {
        let mut client = server.connect()?;
        assert_eq!(
            number(&mut client, "SELECT node_conflicts FROM snowflake_status")?,
            0
        );
        assert_eq!(
            value(
                &mut client,
                "SELECT coalesce(copied_from, 'original') FROM snowflake_status"
            )?,
            "original"
        );
        let findings =
            "SELECT coalesce(string_agg(a::text, ', '), 'none') FROM snowflake_audit_tables() AS a";
        assert_eq!(value(&mut client, findings)?, "none");
    }
    println!(
        "{} servers: no node conflict, no finding of the audit",
        servers.len()
    );
    Ok(())
}

/// Waits until a query of the server returns at least this number.
pub(crate) fn at_least(server: &Server, query: &str, least: i64) -> Result<()> {
    let mut client = server.connect()?;
    wait::until(
        format!("{} from {query}", grouped(least as u64)),
        TIMEOUT,
        || Ok(number(&mut client, query)? >= least),
    )
}
