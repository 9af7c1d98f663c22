//! What tests of several servers share: sessions that write while servers end and
//! start, and the comparison of what arrived.

use std::collections::HashSet;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use postgres::Config;

pub(crate) use snowflake_tests::prelude::*;

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
    to.run(&statement).context(statement)
}

/// Insert rows, `$1` is the place, and return their IDs.
const INSERTS: [&str; 2] = [
    "INSERT INTO orders (place, note) VALUES ($1, 'one') RETURNING id",
    "INSERT INTO orders (place, note) SELECT $1, 'of 20' FROM generate_series(1, 20) RETURNING id",
];

/// Changes a row of this place, which sessions of other servers leave alone.
const UPDATE: &str = "UPDATE orders SET version = version + 1
    WHERE id = (SELECT max(id) FROM orders WHERE place = $1)";

/// What a session has written.
#[derive(Default)]
pub(crate) struct Written {
    /// IDs of inserted rows whose commit was acknowledged.
    pub(crate) ids: Vec<i64>,
    /// Those of them that were deleted, or may have been.
    pub(crate) deleted: HashSet<i64>,
    /// How often a statement failed because the server ended.
    pub(crate) failures: usize,
}

impl Written {
    /// The same of several sessions.
    pub(crate) fn add(&mut self, other: Written) {
        self.ids.extend(other.ids);
        self.deleted.extend(other.deleted);
        self.failures += other.failures;
    }

    /// Inserts, updates and deletes.
    fn round(&mut self, client: &mut Client, place: i32) -> Result<(), postgres::Error> {
        for statement in INSERTS {
            let rows = client.query(statement, &[&place])?;
            self.ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        client.execute(UPDATE, &[&place])?;
        if let Some(&id) = self.ids.last() {
            // It may be deleted although that is not acknowledged.
            self.deleted.insert(id);
            client.execute("DELETE FROM orders WHERE id = $1", &[&id])?;
        }
        let mut copy = client.copy_in("COPY orders (place, note) FROM STDIN")?;
        for _ in 0..10 {
            if copy
                .write_all(format!("{place}\tcopied\n").as_bytes())
                .is_err()
            {
                break;
            }
        }
        copy.finish()?;
        Ok(())
    }
}

/// Writes until `end` is set, through every end and start of the server.
pub(crate) fn write(server: &Config, place: i32, end: &AtomicBool) -> Result<Written> {
    let mut written = Written::default();
    while !end.load(Relaxed) {
        let Ok(mut client) = server.connect(NoTls) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !end.load(Relaxed) {
            match written.round(&mut client, place) {
                Ok(()) => {}
                // The server has ended, or this session was ended with it.
                Err(error) if is_end_of_server(&error) => {
                    written.failures += 1;
                    break;
                }
                Err(error) => return Err(error).context("writing"),
            }
        }
    }
    ensure!(!written.ids.is_empty(), "a session has written nothing");
    Ok(written)
}

fn is_end_of_server(error: &postgres::Error) -> bool {
    let is_io =
        || std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
    let is_shutdown = || {
        error
            .code()
            .is_some_and(|code| matches!(code.code(), "57P01" | "57P02" | "57P03"))
    };
    error.is_closed() || is_io() || is_shutdown()
}

/// The number of rows of the table, and a checksum of all of them.
pub(crate) fn checksum(client: &mut Client) -> Result<String> {
    client.value(
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
            return Ok(clients[0].number("SELECT count(*) FROM orders")? as u64);
        }
        ensure!(begun.elapsed() < TIMEOUT, "the rows still differ: {sums:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Asserts that acknowledged IDs are distinct and that each is the key of a row, unless
/// it was deleted.
pub(crate) fn assert_kept(written: Written, client: &mut Client) -> Result<()> {
    let rows: HashSet<i64> = client
        .query("SELECT id FROM orders", &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let is_lost = |id: &&i64| !rows.contains(id) && !written.deleted.contains(id);
    let lost: Vec<_> = written.ids.iter().filter(is_lost).take(5).collect();
    ensure!(lost.is_empty(), "acknowledged rows are lost: {lost:?}");
    let tally = Tally::of(written.ids);
    println!(
        "{tally}, each the key of a row, except {} that were deleted",
        grouped(written.deleted.len() as u64)
    );
    tally.assert_unique();
    Ok(())
}

/// Asserts that no server took another one for a second one with its number.
pub(crate) fn assert_no_conflict(servers: &[&Server]) -> Result<()> {
    for server in servers {
        let mut client = server.connect()?;
        client.answers("SELECT node_conflicts FROM snowflake_status", 0)?;
        client.answers(
            "SELECT coalesce(copied_from, 'original') FROM snowflake_status",
            "original",
        )?;
        let findings =
            "SELECT coalesce(string_agg(a::text, ', '), 'none') FROM snowflake_audit_tables() AS a";
        client.answers(findings, "none")?;
    }
    Ok(())
}

/// Waits until a query of the server returns at least this number.
pub(crate) fn at_least(server: &Server, query: &str, least: i64) -> Result<()> {
    let mut client = server.connect()?;
    wait::until(
        format!("{} from {query}", grouped(least as u64)),
        TIMEOUT,
        || Ok(client.number(query)? >= least),
    )
}
