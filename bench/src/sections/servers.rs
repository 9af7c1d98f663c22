//! The index of a server that collects the rows of many, and layouts for them.
//!
//! - [`stream`]: what the servers send, by simulation
//! - [`apply`]: the sessions that insert it into a real table
//! - [`order`]: how far the inserted keys were from ascending
//! - [`layouts`]: how far node numbers and IDs a second reach
//! - [`random`]: random numbers that are the same in every run

mod apply;
mod layouts;
mod order;
mod random;
mod stream;

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plotters::style::RGBColor;
use postgres::Client;
use snowflake_id::{Layout, SnowflakeId};

use crate::measure::Samples;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Section, Table, per_second, ratio, three};
use crate::run::Run;
use apply::Arrival;
use order::Disorder;
use random::Random;
use stream::{Fleet, Transaction};

const TABLE: &str = "collected";

/// Numbers of servers. The clock of a single one has no other to differ from.
const SERVERS: [u32; 4] = [1, 4, 64, 1_000];
const RATES: [u32; 2] = [20_000, 100_000];
const SKEWS_MILLIS: [u32; 3] = [1, 10, 100];

/// The servers of the references.
const REFERENCE: Fleet = Fleet {
    servers: 64,
    rate: 100_000,
    skew_millis: 0,
};

/// What a table was filled with, and how its index is.
struct Seen {
    bytes: f64,
    density: f64,
    fragmentation: f64,
    disorder: Disorder,
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
        name: "ascending `bigint`, one session",
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
    ..REFERENCES[0]
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
    let cases = REFERENCES.len() + RATES.len() * fleets(0).count();
    let one = 0.5 + run.scale().collected_rows as f64 * 9e-6;
    Duration::from_secs_f64(cases as f64 * one)
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let mut client = run.connect()?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")?;
    let rows = run.scale().collected_rows;
    let mut section = Section {
        title: "The index of a collector",
        blocks: vec![Block::Text(method(rows))],
        describes_itself: true,
        ..Section::default()
    };
    let mut references = Vec::new();
    for reference in &REFERENCES {
        run.progress().step(reference.name);
        references.push(measure_reference(run, &mut client, reference)?);
    }
    let ascending = references[0].bytes;
    let mut all = Vec::new();
    let mut tables = Vec::new();
    for rate in RATES {
        let mut table = Table::of(head(&["servers", "clocks within ±, ms"]));
        for fleet in fleets(rate) {
            run.progress().step(format_args!(
                "{} servers, {rate} IDs a second, clocks within ±{} ms",
                fleet.servers, fleet.skew_millis
            ));
            let seen = measure_fleet(run, &mut client, fleet)?;
            let first = [fleet.servers.to_string(), fleet.skew_millis.to_string()];
            table.row(&cells(first.to_vec(), &seen, ascending));
            all.push((fleet, seen));
        }
        tables.push((rate, table));
    }
    client.batch_execute(&format!("DROP TABLE {TABLE}"))?;
    let seen = Results {
        references,
        fleets: all,
    };
    section.blocks.push(Block::Text(seen.conclusions()?));
    section.blocks.push(Block::Figure(seen.figure(rows)));
    for (rate, table) in tables {
        let words = format!(
            "**{} IDs a second of all servers**",
            per_second(rate.into())
        );
        section
            .blocks
            .extend([Block::Text(words), Block::Table(table)]);
    }
    section.blocks.extend([
        Block::Text("**Other keys, as a reference**".to_owned()),
        Block::Table(seen.reference_table()),
    ]);
    section.blocks.extend(layouts::blocks()?);
    Ok(section)
}

fn method(rows: usize) -> String {
    format!(
        "`make bench OPTIONS='--only servers'` writes this document. A collector is a server that receives the rows of many others, for \
         example by logical replication. This run simulates what they send, and inserts it into a real table with a primary key.\n\n\
         - Each of the servers has a node number, a layout for so many (below), and slots that generate its IDs with the code of the \
         extension. Its transactions have 1 to {most} rows and begin at random times. A row takes {row} µs.\n\
         - The clock of each server has a constant offset. The offsets are spread evenly over ±1, ±10 or ±100 ms.\n\
         - A transaction arrives up to {delay} ms after its commit. Those of a server arrive in the order of their commits.\n\
         - Each source has a session, as it has an apply worker; {sessions} sessions serve more sources. A transaction begins only when \
         those that arrived {apply} ms earlier are committed. The IDs a second are those of the simulated time.\n\
         - Each table has {rows} rows. `pgstatindex` of the contrib extension `pgstattuple` examines the index. A sequence in a second \
         column records the order of the insertions.\n\n\
         A row is out of order if a greater key was inserted before it. It is behind by the time between the two IDs, and by the number \
         of rows with a greater key. The rows behind tell how many of the latest keys share the part of the index that is written.",
        most = stream::MOST_ROWS,
        row = stream::ROW_MICROS,
        delay = stream::LONGEST_DELAY_MICROS / 1_000,
        sessions = apply::MOST_SESSIONS,
        apply = apply::APPLY_MICROS / 1_000,
        rows = per_second(rows as f64),
    )
}

/// Fills the table with the IDs of these servers.
fn measure_fleet(run: &Run, client: &mut Client, fleet: Fleet) -> Result<Seen> {
    let arrivals = fleet.arrivals(run.scale().collected_rows)?;
    let layout = fleet.layout()?;
    let senders: BTreeSet<u32> = arrivals.iter().map(|one| one.server).collect();
    let millis = |greatest, id| (micros(&layout, greatest) - micros(&layout, id)) / 1e3;
    let seen = measure(run, client, &IDS, fleet.servers, arrivals, millis)?;
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
    measure(run, client, keyed, keyed.servers, arrivals, |_, _| f64::NAN)
}

/// Fills the table, and examines its index.
fn measure(
    run: &Run,
    client: &mut Client,
    keyed: &Keyed,
    sources: u32,
    arrivals: Vec<Transaction>,
    distance: impl Fn(i64, i64) -> f64,
) -> Result<Seen> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE} ({}); CHECKPOINT",
        keyed.columns
    ))?;
    let arrivals: Vec<Arrival<i64>> = arrivals
        .into_iter()
        .map(|one| Arrival {
            micros: one.arrives,
            source: one.server,
            keys: one.ids,
        })
        .collect();
    apply::apply(run.cluster(), keyed.insert, sources, &arrivals)?;
    let keys = inserted(client, keyed.key)?;
    ensure!(
        keys.len() == run.scale().collected_rows,
        "the table has {} rows",
        keys.len()
    );
    let shape = client.query_one(
        &format!(
            "SELECT index_size::float8, avg_leaf_density, leaf_fragmentation FROM pgstatindex('{TABLE}_pkey')"
        ),
        &[],
    )?;
    Ok(Seen {
        bytes: shape.get(0),
        density: shape.get(1),
        fragmentation: shape.get(2),
        disorder: order::disorder(&keys, distance),
    })
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

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn head(first: &[&str]) -> Vec<String> {
    let last = [
        "index, MiB",
        "ratio to ascending",
        "leaf density",
        "fragmentation",
        "out of order",
        "behind, ms: median",
        "99 of 100",
        "behind, rows: median",
        "99 of 100",
    ];
    first.iter().chain(&last).map(ToString::to_string).collect()
}

fn cells(mut first: Vec<String>, seen: &Seen, ascending: f64) -> Vec<String> {
    let Disorder {
        share,
        distance,
        rows,
    } = seen.disorder;
    first.extend([
        three(mib(seen.bytes)),
        ratio(seen.bytes / ascending),
        percent(seen.density),
        percent(seen.fragmentation),
        percent(100.0 * share),
        three(distance.median),
        three(distance.p99),
        per_second(rows.median),
        per_second(rows.p99),
    ]);
    first
}

/// What was measured.
struct Results {
    references: Vec<Seen>,
    fleets: Vec<(Fleet, Seen)>,
}

impl Results {
    fn reference_table(&self) -> Table {
        let mut table = Table::of(head(&[""]));
        for (keyed, seen) in REFERENCES.iter().zip(&self.references) {
            let first = vec![keyed.name.to_owned()];
            table.row(&cells(first, seen, self.references[0].bytes));
        }
        table
    }

    fn ratio(&self, seen: &Seen) -> f64 {
        seen.bytes / self.references[0].bytes
    }

    fn of(&self, servers: u32, rate: u32, skew_millis: u32) -> Result<&Seen> {
        let wanted = Fleet {
            servers,
            rate,
            skew_millis,
        };
        let found = self.fleets.iter().find(|(fleet, _)| *fleet == wanted);
        Ok(&found.context("a case that was measured")?.1)
    }

    fn conclusions(&self) -> Result<String> {
        let _ = self.of(1, RATES[0], 0)?;
        Ok(String::new())
    }

    fn figure(&self, rows: usize) -> Figure {
        let colours = [
            RGBColor(0x56, 0xB4, 0xE9),
            RGBColor(0x00, 0x72, 0xB2),
            RGBColor(0x00, 0x3F, 0x66),
        ];
        let groups = SERVERS.iter().map(|&servers| {
            let of_them = self
                .fleets
                .iter()
                .filter(|(fleet, _)| fleet.servers == servers && fleet.rate == RATES[1]);
            let bars = of_them.enumerate().map(|(place, (fleet, seen))| {
                let name = match fleet.skew_millis {
                    0 => "one clock".to_owned(),
                    millis => format!("clocks within ±{millis} ms"),
                };
                let value: Samples = [self.ratio(seen)].into_iter().collect();
                Bar::new(&name, colours[place], &value)
            });
            let heading = match servers {
                1 => "1 server".to_owned(),
                _ => format!("{servers} servers"),
            };
            (heading, bars.collect())
        });
        let references = REFERENCES
            .iter()
            .zip(&self.references)
            .map(|(keyed, seen)| {
                let value: Samples = [self.ratio(seen)].into_iter().collect();
                Bar::new(
                    &keyed.name.replace('`', ""),
                    RGBColor(0x99, 0x99, 0x99),
                    &value,
                )
            });
        let mut groups: Vec<_> = groups.collect();
        groups.push(("other keys".to_owned(), references.collect()));
        Figure {
            file: "index",
            about: "Size of a collector's index, for each number of servers and each skew of their clocks",
            chart: Chart::Bars(Bars {
                title: format!(
                    "Index of {} rows, {} IDs a second",
                    per_second(rows as f64),
                    per_second(RATES[1].into())
                ),
                unit: "size, relative to ascending keys of one session",
                one_scale: true,
                groups,
            }),
        }
    }
}
