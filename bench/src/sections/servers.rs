//! The index of a server that collects the rows of many, and layouts for them.
//!
//! - [`stream`]: what the servers send, by simulation
//! - [`apply`]: the sessions that insert it into a real table
//! - [`order`]: how far the inserted keys were from ascending
//! - [`layouts`]: how far node numbers and IDs a second reach
//! - [`results`]: tables, figure and conclusions
//! - [`random`]: random numbers that are the same in every run

mod apply;
mod layouts;
mod order;
mod random;
mod results;
mod stream;

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_id::{Layout, SnowflakeId};

use crate::report::{Block, Section, per_second};
use crate::run::Run;
use order::Disorder;
use random::Random;
use results::Results;
use stream::{Fleet, Transaction};

const TABLE: &str = "collected";

/// Numbers of servers. The clock of a single one has no other to differ from.
const SERVERS: [u32; 4] = [1, 4, 64, 1_000];
/// IDs a second of all servers together.
const RATES: [u32; 3] = [1_000, 20_000, 100_000];
const SKEWS_MILLIS: [u32; 3] = [1, 10, 100];

/// One of so many rows is inserted after a checkpoint.
const AFTER_CHECKPOINT: usize = 20;

/// The servers of the references.
const REFERENCE: Fleet = Fleet {
    servers: 64,
    rate: 100_000,
    skew_millis: 0,
};

/// What a table was filled with, and how its index is.
struct Seen {
    index: Index,
    disorder: Disorder,
    /// Bytes of WAL for each row that is inserted after a checkpoint.
    wal: f64,
}

/// An index as `pgstatindex` describes it.
#[derive(Debug, Clone, Copy)]
struct Index {
    bytes: f64,
    density: f64,
    fragmentation: f64,
}

impl Index {
    fn examine(client: &mut Client) -> Result<Self> {
        let row = client.query_one(
            &format!(
                "SELECT index_size::float8, avg_leaf_density, leaf_fragmentation FROM pgstatindex('{TABLE}_pkey')"
            ),
            &[],
        )?;
        Ok(Self {
            bytes: row.get(0),
            density: row.get(1),
            fragmentation: row.get(2),
        })
    }
}

/// How keys come into the table.
struct Keyed {
    name: &'static str,
    columns: &'static str,
    insert: &'static str,
    /// The key as a `bigint` in the same order.
    key: &'static str,
    servers: u32,
    keys: Keys,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    Ascending,
    Random,
    /// The keys that are sent do not matter.
    OfTheTable,
}

const REFERENCES: [Keyed; 4] = [
    Keyed {
        name: "ascending, one session",
        columns: "id bigint PRIMARY KEY, n bigserial",
        insert: "INSERT INTO collected (id) SELECT unnest($1::bigint[])",
        key: "id",
        servers: 1,
        keys: Keys::Ascending,
    },
    Keyed {
        name: "`bigserial` of the collector",
        columns: "id bigserial PRIMARY KEY, n bigserial",
        insert: "INSERT INTO collected SELECT FROM unnest($1::bigint[])",
        key: "id",
        servers: 64,
        keys: Keys::OfTheTable,
    },
    Keyed {
        name: "random `bigint`",
        columns: "id bigint PRIMARY KEY, n bigserial",
        insert: "INSERT INTO collected (id) SELECT unnest($1::bigint[])",
        key: "id",
        servers: 64,
        keys: Keys::Random,
    },
    Keyed {
        name: "`gen_random_uuid()`",
        columns: "id uuid DEFAULT gen_random_uuid() PRIMARY KEY, n bigserial",
        insert: "INSERT INTO collected SELECT FROM unnest($1::bigint[])",
        // The first 60 bits.
        key: "('x' || left(replace(id::text, '-', ''), 15))::bit(60)::bigint",
        servers: 64,
        keys: Keys::OfTheTable,
    },
];

/// The IDs of servers.
const IDS: Keyed = Keyed {
    name: "IDs",
    columns: "id bigint PRIMARY KEY, n bigserial",
    insert: "INSERT INTO collected (id) SELECT unnest($1::bigint[])",
    key: "id",
    servers: 0,
    keys: Keys::Ascending,
};

/// Other parameters of their index, the default last.
const REMEDIES: [Keyed; 3] = [
    Keyed {
        name: "`fillfactor = 50`",
        columns: "id bigint PRIMARY KEY WITH (fillfactor = 50), n bigserial",
        ..IDS
    },
    Keyed {
        name: "`fillfactor = 70`",
        columns: "id bigint PRIMARY KEY WITH (fillfactor = 70), n bigserial",
        ..IDS
    },
    Keyed {
        name: "`fillfactor = 90`, the default",
        ..IDS
    },
];

const FOR_REMEDIES: Fleet = Fleet {
    servers: 64,
    rate: 100_000,
    skew_millis: 10,
};

/// The cases with this total rate.
fn fleets(rate: u32) -> impl Iterator<Item = Fleet> {
    SERVERS.into_iter().flat_map(move |servers| {
        let skews = if servers == 1 {
            &[0][..]
        } else {
            &SKEWS_MILLIS
        };
        skews.iter().map(move |&skew_millis| Fleet {
            servers,
            rate,
            skew_millis,
        })
    })
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let cases = REFERENCES.len() + REMEDIES.len() + RATES.len() * fleets(0).count();
    let one = 0.5 + run.scale().collected_rows as f64 * 9e-6;
    Duration::from_secs_f64(cases as f64 * one)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let mut client = run.connect()?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")?;
    let mut results = Results::default();
    for reference in &REFERENCES {
        run.progress().step(reference.name);
        let seen = measure_reference(run, &mut client, reference)?;
        results.references.push((reference.name, seen));
    }
    for fleet in RATES.into_iter().flat_map(fleets) {
        run.progress().step(fleet);
        let seen = measure_fleet(run, &mut client, fleet, &IDS)?;
        results.fleets.push((fleet, seen));
    }
    for remedy in &REMEDIES {
        run.progress()
            .step(format_args!("{FOR_REMEDIES}, {}", remedy.name));
        let seen = measure_fleet(run, &mut client, FOR_REMEDIES, remedy)?;
        results.remedies.push((remedy.name, seen.index));
    }
    client.batch_execute(&format!("REINDEX INDEX {TABLE}_pkey"))?;
    results
        .remedies
        .push(("after `REINDEX`", Index::examine(&mut client)?));
    client.batch_execute(&format!("DROP TABLE {TABLE}"))?;
    let rows = run.scale().collected_rows;
    let mut blocks = vec![Block::Text(method(rows))];
    blocks.extend(results.blocks(rows)?);
    blocks.extend(layouts::blocks()?);
    Ok(Section {
        title: "The index of a collector",
        blocks,
        describes_itself: true,
        ..Section::default()
    })
}

fn method(rows: usize) -> String {
    format!(
        "A collector is a server that receives the rows of many others, for example by logical replication. `make bench OPTIONS='--only \
         servers'` simulates what up to 1,000 servers send, and inserts it into a real table with a primary key.\n\n\
         - Each server has a node number, the layout for so many servers (below), and slots. The code of the extension generates its IDs. \
         Its transactions have 1 to {most} rows, begin at random times, and take {row} µs a row.\n\
         - The clock of each server has a constant offset. The offsets are spread evenly over ±1, ±10 or ±100 ms.\n\
         - A transaction arrives up to {delay} ms after its commit. Those of a server arrive in the order of their commits.\n\
         - Each source has a session, as it has an apply worker of logical replication. With more sources, {sessions} sessions serve all. \
         The sessions insert as fast as they can, but a transaction begins only when all that arrived {apply} ms earlier are committed. \
         IDs a second are those of the simulated time.\n\
         - Each table has {rows} rows. `pgstatindex` of the contrib extension `pgstattuple` examines the index. A sequence in a second \
         column records the order of the insertions. The last twentieth of the transactions follows a checkpoint, for the figures on WAL, \
         which is of the whole row.\n\n\
         A row is out of order if a greater key was inserted before it. It is behind by the time between the two IDs, whole \
         milliseconds, and by the number of rows with a greater key. There is one round.",
        most = stream::MOST_ROWS,
        row = stream::ROW_MICROS,
        delay = stream::LONGEST_DELAY_MICROS / 1_000,
        sessions = apply::MOST_SESSIONS,
        apply = apply::APPLY_MICROS / 1_000,
        rows = per_second(rows as f64),
    )
}

/// Fills the table with the IDs of these servers.
fn measure_fleet(run: &Run, client: &mut Client, fleet: Fleet, keyed: &Keyed) -> Result<Seen> {
    let arrivals = fleet.arrivals(run.scale().collected_rows)?;
    let layout = fleet.layout()?;
    let senders: BTreeSet<u32> = arrivals.iter().map(|one| one.server).collect();
    let millis = |greatest, id| (micros(&layout, greatest) - micros(&layout, id)) / 1e3;
    let seen = measure(run, client, keyed, fleet.servers, &arrivals, millis)?;
    // The extension reads the same node numbers from what the table has.
    let row = client.query_one(
        &format!("SELECT count(DISTINCT snowflake_node_id(id, $1)) FROM {TABLE}"),
        &[&layout.to_string()],
    )?;
    let nodes: i64 = row.get(0);
    ensure!(
        nodes == senders.len() as i64,
        "the table has IDs of {nodes} servers, not of {}",
        senders.len()
    );
    Ok(seen)
}

/// The time of an ID in microseconds.
fn micros(layout: &Layout, id: i64) -> f64 {
    let id = SnowflakeId::new(id).expect("an ID is not negative");
    layout.time_of(layout.tick_of(id)).unix_micros() as f64
}

fn measure_reference(run: &Run, client: &mut Client, keyed: &Keyed) -> Result<Seen> {
    let fleet = Fleet {
        servers: keyed.servers,
        ..REFERENCE
    };
    let mut arrivals = fleet.arrivals(run.scale().collected_rows)?;
    let mut random = Random::new(0);
    let mut last = 0;
    for id in arrivals.iter_mut().flat_map(|one| &mut one.ids) {
        last += 1;
        match keyed.keys {
            Keys::Ascending => *id = last,
            Keys::Random => *id = (random.next() >> 1) as i64,
            Keys::OfTheTable => {}
        }
    }
    measure(run, client, keyed, keyed.servers, &arrivals, |_, _| {
        f64::NAN
    })
}

/// Fills the table, and examines its index.
fn measure(
    run: &Run,
    client: &mut Client,
    keyed: &Keyed,
    sources: u32,
    arrivals: &[Transaction],
    distance: impl Fn(i64, i64) -> f64,
) -> Result<Seen> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE} ({}); CHECKPOINT",
        keyed.columns
    ))?;
    let (before, after) = arrivals.split_at(arrivals.len() - arrivals.len() / AFTER_CHECKPOINT);
    apply::apply(run.cluster(), keyed.insert, sources, before)?;
    client.batch_execute("CHECKPOINT")?;
    let begin = wal_bytes(client)?;
    apply::apply(run.cluster(), keyed.insert, sources, after)?;
    let rows: usize = after.iter().map(|one| one.ids.len()).sum();
    let wal = (wal_bytes(client)? - begin) / rows as f64;
    let keys = inserted(client, keyed.key)?;
    ensure!(
        keys.len() == run.scale().collected_rows,
        "the table has {} rows",
        keys.len()
    );
    Ok(Seen {
        index: Index::examine(client)?,
        disorder: order::disorder(&keys, distance),
        wal,
    })
}

fn wal_bytes(client: &mut Client) -> Result<f64> {
    let query = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
    Ok(client.query_one(query, &[])?.get(0))
}

/// The keys in the order in which they were inserted.
fn inserted(client: &mut Client, key: &str) -> Result<Vec<i64>> {
    let mut text = String::new();
    client
        .copy_out(&format!(
            "COPY (SELECT {key} FROM {TABLE} ORDER BY n) TO STDOUT"
        ))?
        .read_to_string(&mut text)?;
    text.lines()
        .map(|line| line.parse().context("a key is a number"))
        .collect()
}
