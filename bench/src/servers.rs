//! The index of a server that collects the rows of many. `docs/benchmarks.md` describes the
//! simulation.
//!
//! - [`stream`]: what the servers send, by simulation
//! - [`apply`]: the sessions that insert it into a real table
//! - [`random`]: random numbers that are the same in every run

mod apply;
mod random;
mod stream;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use plotters::style::RGBColor;
use postgres::Client;

use crate::contenders::PLPGSQL;
use crate::drive::wal_bytes;
use crate::format::{mib, per_second, percent, ratio, three};
use crate::measure::Samples;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Table};
use crate::run::{Count, Run};
use random::Random;
use stream::{Fleet, Transaction};

/// Rows that the collector receives.
const ROWS: Count = Count(1_000_000, 50_000);
/// Numbers of servers. The clock of a single one has no other to differ from.
const SERVERS: [u32; 4] = [1, 4, 64, 1_000];
/// IDs a second of all servers together.
const RATES: [u32; 3] = [1_000, 20_000, 100_000];
const SKEWS_MILLIS: [u32; 3] = [1, 10, 100];

/// The number of servers in the figure, with a colour for each skew.
const MANY: u32 = 64;
const COLOURS: [RGBColor; 3] = [
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0x00, 0x3F, 0x66),
];

/// One of so many rows is inserted after a checkpoint.
const AFTER_CHECKPOINT: usize = 20;

/// How keys come into the table.
struct Keyed {
    name: &'static str,
    id: &'static str,
    insert: &'static str,
}

const SENT: Keyed = Keyed {
    name: "IDs of the servers",
    id: "id bigint",
    insert: "INSERT INTO collected (id) SELECT unnest($1::bigint[])",
};

const UUIDS: Keyed = Keyed {
    name: "`gen_random_uuid()`",
    id: "id uuid DEFAULT gen_random_uuid()",
    insert: "INSERT INTO collected SELECT FROM unnest($1::bigint[])",
};

/// The table of a collector after it has received all rows.
struct Seen {
    bytes: f64,
    density: f64,
    fragmentation: f64,
    /// Bytes of WAL for each row that is inserted after a checkpoint.
    wal: f64,
}

impl Seen {
    fn examine(client: &mut Client, wal: f64) -> Result<Self> {
        let query = "SELECT index_size::float8, avg_leaf_density, leaf_fragmentation FROM pgstatindex('collected_pkey')";
        let row = client.query_one(query, &[])?;
        Ok(Self {
            bytes: row.get(0),
            density: row.get(1),
            fragmentation: row.get(2),
            wal,
        })
    }

    /// A row of a table; `unit` is the size of an index with ascending keys.
    fn cells(&self, name: &str, unit: f64) -> [String; 6] {
        [
            name.to_owned(),
            three(mib(self.bytes)),
            ratio(self.bytes / unit),
            percent(self.density),
            percent(self.fragmentation),
            three(self.wal),
        ]
    }
}

fn table(first: &str) -> Table {
    Table::new(&[
        first,
        "index, MiB",
        "ratio to ascending",
        "leaf density",
        "fragmentation",
        "WAL after a checkpoint, bytes a row",
    ])
}

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

/// The tables and the figure.
pub fn blocks(run: &Run) -> Result<Vec<Block>> {
    let mut client = run.common().connect()?;
    let bar = |name: &str, colour, size: f64| {
        let size: Samples = std::iter::once(size).collect();
        Bar::new(name, colour, &size)
    };
    let mut blocks = Vec::new();
    let mut groups = Vec::new();

    let mut of_others = table("");
    let references = references(run, &mut client)?;
    let unit = references[0].1.bytes;
    let mut bars = Vec::new();
    for (name, seen) in &references {
        of_others.row(&seen.cells(name, unit));
        bars.push(bar(name, PLPGSQL.colour, seen.bytes / unit));
    }
    let others = ("Other keys".to_owned(), bars);

    for rate in RATES {
        let mut of_rate = table("servers, and their clocks");
        let mut bars = Vec::new();
        for fleet in fleets(rate) {
            run.step(fleet);
            let seen = measure_fleet(run, &mut client, fleet)?;
            of_rate.row(&seen.cells(&fleet.describe(), unit));
            if fleet.servers == MANY {
                let name = format!("clocks within ±{} ms", fleet.skew_millis);
                let colour = COLOURS[bars.len() % COLOURS.len()];
                bars.push(bar(&name, colour, seen.bytes / unit));
            }
        }
        // The last table of this rate.
        client.batch_execute("REINDEX INDEX collected_pkey")?;
        let rebuilt = Seen::examine(&mut client, f64::NAN)?;
        of_rate.row(&rebuilt.cells("the last, after `REINDEX`", unit));
        let heading = format!("{} IDs a second", per_second(rate.into()));
        blocks.push(Block::Text(format!("**{heading} of all servers**")));
        blocks.push(Block::Table(of_rate));
        groups.push((heading, bars));
    }
    client.batch_execute("DROP TABLE collected")?;
    groups.push(others);

    let rows = per_second(run.count(ROWS) as f64);
    blocks.extend([
        Block::Text("**Other keys, as a reference**".to_owned()),
        Block::Table(of_others),
        Block::Figure(Figure {
            file: "index",
            about: "Size of a collector's index, for each rate of the IDs and each skew of the clocks",
            chart: Chart::Bars(Bars {
                title: format!("Index of {rows} rows of {MANY} servers"),
                unit: "size, relative to ascending keys of one session".to_owned(),
                one_scale: true,
                groups,
            }),
        }),
    ]);
    Ok(blocks)
}

/// Other keys. The first are ascending.
fn references(run: &Run, client: &mut Client) -> Result<[(&'static str, Seen); 3]> {
    let mut fleet = Fleet {
        servers: 1,
        rate: 100_000,
        skew_millis: 0,
    };
    run.step("other keys");
    let rows = run.count(ROWS) as usize;
    let mut arrivals = fleet.arrivals(rows)?;
    for (id, key) in arrivals.iter_mut().flat_map(|one| &mut one.ids).zip(1..) {
        *id = key;
    }
    let ascending = measure(run, client, &SENT, fleet, &arrivals)?;
    fleet.servers = MANY;
    let mut arrivals = fleet.arrivals(rows)?;
    let mut random = Random::new(0);
    for id in arrivals.iter_mut().flat_map(|one| &mut one.ids) {
        *id = (random.next() >> 1) as i64;
    }
    let of_random = measure(run, client, &SENT, fleet, &arrivals)?;
    let of_uuids = measure(run, client, &UUIDS, fleet, &arrivals)?;
    Ok([
        ("ascending, one session", ascending),
        ("random `bigint`", of_random),
        (UUIDS.name, of_uuids),
    ])
}

/// Fills the table with the IDs of these servers.
fn measure_fleet(run: &Run, client: &mut Client, fleet: Fleet) -> Result<Seen> {
    let arrivals = fleet.arrivals(run.count(ROWS) as usize)?;
    let senders: BTreeSet<u32> = arrivals.iter().map(|one| one.server).collect();
    let seen = measure(run, client, &SENT, fleet, &arrivals)?;
    // The extension reads the same node numbers from what the table has.
    let row = client.query_one(
        "SELECT count(DISTINCT snowflake_node_id(id, $1)) FROM collected",
        &[&fleet.layout()?.to_string()],
    )?;
    let nodes: i64 = row.get(0);
    ensure!(
        nodes == senders.len() as i64,
        "the table has IDs of {nodes} servers, not of {}",
        senders.len()
    );
    Ok(seen)
}

/// Fills the table, and examines its index.
fn measure(
    run: &Run,
    client: &mut Client,
    keyed: &Keyed,
    fleet: Fleet,
    arrivals: &[Transaction],
) -> Result<Seen> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS collected; CREATE TABLE collected ({} PRIMARY KEY, n bigserial)",
        keyed.id
    ))?;
    client.batch_execute("CHECKPOINT")?;
    let (before, after) = arrivals.split_at(arrivals.len() - arrivals.len() / AFTER_CHECKPOINT);
    apply::apply(run.common(), keyed.insert, fleet.servers, before)?;
    client.batch_execute("CHECKPOINT")?;
    let begin = wal_bytes(client)?;
    apply::apply(run.common(), keyed.insert, fleet.servers, after)
        .with_context(|| format!("{fleet}, {}", keyed.name))?;
    let rows: usize = after.iter().map(|one| one.ids.len()).sum();
    let wal = (wal_bytes(client)? - begin) / rows as f64;
    Seen::examine(client, wal)
}
