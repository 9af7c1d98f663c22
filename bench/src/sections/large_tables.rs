//! Large tables: loading, the depth of the index, lookups, a slice of time, VACUUM.
//! This takes long, and is measured only on request.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;

use crate::peers::Peer;
use crate::report::{Block, Section, Table, per_second, ratio, three};
use crate::run::Run;

const TABLE: &str = "large";

/// Sessions that load at the same time.
const LOADERS: u64 = 2;

/// Rows of one of their transactions.
const BATCH: u64 = 100_000;

/// One of that many slices of the loading time is read.
const SLICES: u64 = 30;

/// Rows that are looked up one by one.
const LOOKUPS: u64 = 20_000;

/// Above this number of rows UUIDs are not measured. Random keys take hours on a disk, and those of version 7 differ
/// from ours in size only.
const UUID_UP_TO: u64 = 10_000_000;

/// A way to key the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Keyed {
    name: &'static str,
    peer: Peer,
    columns: &'static str,
    /// The column of another index.
    index: Option<&'static str>,
    /// The condition for rows between the times `$1` and `$2`, if there is one.
    slice: Option<&'static str>,
}

const KEYED: [Keyed; 4] = [
    Keyed {
        name: "`snowflake_nextval()`",
        peer: Peer::Snowflake,
        columns: "id bigint DEFAULT snowflake_nextval() PRIMARY KEY, v int",
        index: None,
        slice: Some("snowflake_between(id, $1, $2)"),
    },
    Keyed {
        name: "`bigserial`, `created_at` with an index",
        peer: Peer::Sequence,
        columns: "id bigserial PRIMARY KEY, v int, created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
        index: Some("created_at"),
        slice: Some("created_at >= $1 AND created_at < $2"),
    },
    Keyed {
        name: "`uuidv7()`",
        peer: Peer::UuidV7,
        columns: "id uuid DEFAULT uuidv7() PRIMARY KEY, v int",
        index: None,
        slice: None,
    },
    Keyed {
        name: "`gen_random_uuid()`",
        peer: Peer::RandomUuid,
        columns: "id uuid DEFAULT gen_random_uuid() PRIMARY KEY, v int",
        index: None,
        slice: None,
    },
];

/// What was measured of one table.
struct Seen {
    keyed: Keyed,
    rows_a_second: f64,
    table: f64,
    indexes: f64,
    levels: i32,
    density: f64,
    lookup: Lookups,
    recent: Lookups,
    slice: Option<(f64, i64)>,
    vacuum: f64,
}

/// Rows that were looked up by their key.
struct Lookups {
    micros: f64,
    /// Blocks that were not in the shared buffers, for each lookup.
    read: f64,
}

fn keyed(run: &Run, rows: u64) -> Vec<Keyed> {
    let there = KEYED
        .into_iter()
        .filter(|keyed| run.peers().contains(&keyed.peer));
    there
        .filter(|keyed| {
            matches!(keyed.peer, Peer::Snowflake | Peer::Sequence) || rows <= UUID_UP_TO
        })
        .collect()
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let rows = run.scale().large.iter();
    let seconds = rows.map(|&rows| keyed(run, rows).len() as f64 * (5.0 + rows as f64 * 4e-6));
    Duration::from_secs_f64(seconds.sum())
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let mut client = run.connect()?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")?;
    let mut section = Section {
        title: "Large tables",
        blocks: vec![Block::Text(format!(
            "{LOADERS} sessions load each table at the same time by `INSERT … SELECT`, {} rows a transaction. Then {} rows are looked up by \
             random keys, and as many among the last hundredth of the rows. `SELECT count(v)` reads one of {SLICES} slices of the loading \
             time. Every tenth row is deleted, and the table is vacuumed. Blocks read are those that were not in the shared buffers, \
             whether or not the system's cache contained them. There is one round.",
            per_second(BATCH as f64),
            three(LOOKUPS as f64)
        ))],
        ..Section::default()
    };
    for &rows in run.scale().large {
        let mut seen = Vec::new();
        for keyed in keyed(run, rows) {
            seen.push(measure(run, &mut client, keyed, rows)?);
        }
        section
            .blocks
            .push(Block::Text(format!("**{} rows**", per_second(rows as f64))));
        section.blocks.push(Block::Table(table(&seen)));
    }
    client.batch_execute(&format!("DROP TABLE {TABLE}"))?;
    Ok(section)
}

/// Loads and reads one table.
fn measure(run: &Run, client: &mut Client, keyed: Keyed, rows: u64) -> Result<Seen> {
    let step = |what: &str| {
        run.progress().step(format_args!(
            "{} rows, {}, {what}",
            per_second(rows as f64),
            keyed.name
        ));
    };
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE} ({})",
        keyed.columns
    ))?;
    if let Some(column) = keyed.index {
        client.batch_execute(&format!("CREATE INDEX ON {TABLE} ({column})"))?;
    }
    client.batch_execute("CHECKPOINT")?;
    step("loading");
    let load = load(run, client, rows)?;
    step("reading");
    client.batch_execute(&format!("VACUUM (ANALYZE) {TABLE}"))?;
    client.batch_execute("CHECKPOINT")?;
    let shape = client.query_one(
        &format!(
            "SELECT pg_relation_size('{TABLE}')::float8, pg_indexes_size('{TABLE}')::float8, tree_level, avg_leaf_density
             FROM pgstatindex('{TABLE}_pkey')"
        ),
        &[],
    )?;
    let lookup = lookups(client, "random() < $1", LOOKUPS as f64 / rows as f64)?;
    let recent = lookups(
        client,
        "ctid > (SELECT format('(%s,0)', pg_relation_size('large') / 8192 * 99 / 100)::tid) AND random() < $1",
        (LOOKUPS as f64 * 100.0 / rows as f64).min(1.0),
    )?;
    let slice = keyed
        .slice
        .map(|condition| slice(client, condition, &load))
        .transpose()?;
    step("vacuum");
    client.batch_execute(&format!("DELETE FROM {TABLE} WHERE v % 10 = 0"))?;
    let begun = Instant::now();
    client.batch_execute(&format!("VACUUM {TABLE}"))?;
    Ok(Seen {
        keyed,
        rows_a_second: rows as f64 / load.seconds,
        table: shape.get(0),
        indexes: shape.get(1),
        levels: shape.get(2),
        density: shape.get(3),
        lookup,
        recent,
        slice,
        vacuum: begun.elapsed().as_secs_f64(),
    })
}

/// What was measured of a load.
struct Load {
    seconds: f64,
    /// The server's time at the beginning and the end of a slice, as text.
    slice: [String; 2],
}

fn load(run: &Run, client: &mut Client, rows: u64) -> Result<Load> {
    let transactions = rows.div_ceil(LOADERS * BATCH);
    let batch = rows / (LOADERS * transactions);
    let insert = format!("INSERT INTO {TABLE} (v) SELECT generate_series(1, {batch})");
    let begun = Instant::now();
    let slice = std::thread::scope(|scope| -> Result<[String; 2]> {
        let loaders: Vec<_> = (0..LOADERS)
            .map(|_| {
                let (insert, cluster) = (&insert, run.cluster());
                scope.spawn(move || -> Result<()> {
                    let mut session = cluster.connect()?;
                    session.batch_execute("SET synchronous_commit = off")?;
                    for _ in 0..transactions {
                        session.batch_execute(insert)?;
                    }
                    Ok(())
                })
            })
            .collect();
        // The slice in the middle, by the size of the table.
        let mut wait_for = |part: f64| -> Result<String> {
            loop {
                let row = client.query_one(
                    &format!("SELECT pg_relation_size('{TABLE}')::float8 / {rows}, clock_timestamp()::text"),
                    &[],
                )?;
                let (bytes, now): (f64, String) = (row.get(0), row.get(1));
                // A row takes some 40 bytes. The position of the slice does not
                // matter if it is the same share of all tables.
                if bytes >= part * 40.0 || loaders.iter().all(|loader| loader.is_finished()) {
                    return Ok(now);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let begin = wait_for(0.5)?;
        let end = wait_for(0.5 + 1.0 / SLICES as f64)?;
        for loader in loaders {
            loader.join().ok().context("a loader panicked")??;
        }
        Ok([begin, end])
    })?;
    Ok(Load {
        seconds: begun.elapsed().as_secs_f64(),
        slice,
    })
}

/// Looks up rows that fulfil a condition, one after another.
fn lookups(client: &mut Client, condition: &str, share: f64) -> Result<Lookups> {
    client.batch_execute("DROP TABLE IF EXISTS keys; SET enable_seqscan = on")?;
    client.batch_execute(&format!(
        "CREATE TEMP TABLE keys AS SELECT id FROM {TABLE} WHERE {} ORDER BY random(); ANALYZE keys",
        condition.replace("$1", &share.to_string())
    ))?;
    let query = format!(
        "SELECT count(l.v), count(*) FROM keys, LATERAL (SELECT v FROM {TABLE} WHERE id = keys.id OFFSET 0) AS l"
    );
    let read = "SELECT blks_read::float8 FROM (SELECT heap_blks_read + idx_blks_read AS blks_read
                FROM pg_statio_user_tables WHERE relname = 'large') AS s";
    client.batch_execute(
        "SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT pg_stat_force_next_flush()",
    )?;
    let before: f64 = client.query_one(read, &[])?.get(0);
    let begun = Instant::now();
    let row = client.query_one(&query, &[])?;
    let seconds = begun.elapsed().as_secs_f64();
    client.batch_execute(
        "SELECT pg_stat_force_next_flush(); RESET enable_hashjoin; RESET enable_mergejoin",
    )?;
    let after: f64 = client.query_one(read, &[])?.get(0);
    let found: i64 = row.get(1);
    Ok(Lookups {
        micros: seconds * 1e6 / found as f64,
        read: (after - before) / found as f64,
    })
}

/// The milliseconds of reading a slice, and its rows.
fn slice(client: &mut Client, condition: &str, load: &Load) -> Result<(f64, i64)> {
    let [begin, end] = &load.slice;
    let condition = condition
        .replace("$1", &format!("timestamptz '{begin}'"))
        .replace("$2", &format!("timestamptz '{end}'"));
    let begun = Instant::now();
    let row = client.query_one(
        &format!("SELECT count(v) FROM {TABLE} WHERE {condition}"),
        &[],
    )?;
    Ok((begun.elapsed().as_secs_f64() * 1e3, row.get(0)))
}

fn table(seen: &[Seen]) -> Table {
    let mut table = Table::new(&[
        "",
        "rows a second",
        "ratio to ours",
        "table, GiB",
        "indexes, GiB",
        "levels above the leaves",
        "leaf density",
        "a lookup, µs",
        "blocks read",
        "among the last hundredth, µs",
        "blocks read",
        "a slice, ns a row",
        "VACUUM, s",
    ]);
    let gib = |bytes: f64| three(bytes / f64::from(1 << 30));
    for one in seen {
        table.row(&[
            one.keyed.name.to_owned(),
            per_second(one.rows_a_second),
            ratio(one.rows_a_second / seen[0].rows_a_second),
            gib(one.table),
            gib(one.indexes),
            one.levels.to_string(),
            format!("{:.1} %", one.density),
            three(one.lookup.micros),
            three(one.lookup.read),
            three(one.recent.micros),
            three(one.recent.read),
            one.slice.map_or("–".to_owned(), |(ms, rows)| {
                format!("{} ({rows} rows)", three(ms * 1e6 / rows as f64))
            }),
            three(one.vacuum),
        ]);
    }
    table
}
